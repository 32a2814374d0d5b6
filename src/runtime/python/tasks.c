#include "runtime/python/python.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"

enum {
	TASKS_MAX = 1 << 17,
	CHAIN_MAX =
		1000, /* coroutines that await each other: CPython's recursion limit */
	AWAITED_MAX = 1 << 14, /* by one task */
	ITEMS_MAX = 1 << 20,   /* coroutines and awaited tasks of all tasks */
	/* Of tasks that changed between two readings, each again, and of all */
	RETRIES = 8,
	RETRIES_ALL = 1 << 13,
	SET_READS = 4,
	GENERATOR_SIZE = 80,
	FRAME_SIZE = 128,
	WRAPPED = 16, /* the first member of an object that stands for another one */
	WEAKREF_OBJECT = 16,
	CODE_BYTECODE = 48, /* to 3.10: the bytes object */
	BYTES_DATA = 32,
	STACK_TOP = 64, /* from 3.11 on: index of the first free word in LOCALS */
	LOCALS = 72,
	LOCALS_MAX = 1 << 20,
	TASK_SIZE_MAX = 192,
	PENDING = 0, /* _asyncio's fut_state */
};

/* TaskObj of Modules/_asynciomodule.c, PyGenObject, and PyFrameObject (to 3.10). */
struct task_layout {
	unsigned minor;
	uint32_t size; /* of a task, as its type has it */
	uint32_t state;
	uint32_t waiter; /* the future that it waits for */
	uint32_t coroutine;
	uint32_t name;
	/* From 3.11 on the frame is in the generator. */
	uint32_t generator_frame;
	uint32_t generator_state;
	uint32_t frame_locals;
};

static const struct task_layout task_layouts[] = {
	{ 8, 144, 72, 104, 112, 120, 16, 24, 360 },
	{ 9, 184, 80, 144, 152, 160, 16, 24, 360 },
	{ 10, 192, 88, 152, 160, 168, 16, 0, 352 },
	{ 11, 176, 88, 128, 136, 144, 80, 75, LOCALS },
	{ 12, 176, 88, 128, 136, 144, 72, 67, LOCALS },
	{ 13, 144, 96, 112, 120, 128, 72, 67, LOCALS },
};

/* What a coroutine or generator does. */
enum state {
	STATE_CREATED,
	STATE_AWAITS, /* in yield from or await */
	STATE_YIELDED,
	STATE_EXECUTES,
	STATE_ENDED,
};

/* What the memory of a task says. */
struct decoded {
	uint64_t name;
	uint64_t loop;
	uint64_t waiter;
	uint64_t waiter_type;
	uint64_t object; /* through which it waits; 0: none, or not known */
	enum ss_task_status status;
	bool awaits_all;
	struct ss_python_links links;
	struct ss_python_objects awaited;
};

/* Memory that ends when so much has been read. */
struct limited_memory {
	struct ss_memory memory; /* first: see data/memory.h */
	const struct ss_memory *from;
	uint64_t *reads_left;
};

struct reader {
	const struct ss_python_tasks_source *source;
	struct task_layout layout;
	struct ss_python_task_table table; /* from 3.14 on */
	const struct ss_memory *memory;	   /* of this reading */
	const struct ss_memory *after;	   /* that of the second one */
	size_t retries_left;
	size_t items_left;
	uint64_t loop; /* of the last task, and whether it is empty */
	bool loop_empty;
	bool no_memory;
	struct ss_runtime_tasks *ret;
};

static size_t read_limited(const struct ss_memory *memory, uint64_t address, void *bytes,
			   size_t size)
{
	const struct limited_memory *self = (const struct limited_memory *)memory;

	if (*self->reads_left == 0)
		return 0;
	--*self->reads_left;
	return self->from->read(self->from, address, bytes, size);
}

/* Whether one more item may be added to a task. */
static bool take_item(struct reader *reader)
{
	if (reader->items_left == 0)
		return false;
	reader->items_left--;
	return true;
}

static bool is_at_limit(const struct reader *reader)
{
	const struct ss_python_tasks_source *source = reader->source;

	return reader->items_left == 0 || *source->reads_left == 0 ||
	       (source->process->limited && *source->process->limited);
}

static uint64_t word_at(const uint8_t *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

static bool type_is(const struct reader *reader, uint64_t address, const char *name)
{
	return ss_python_has_type(reader->memory, address, name);
}

static bool ends_with(const char *text, const char *end)
{
	const size_t size = strlen(text);

	return size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0;
}

/* One coroutine ------------------------------------------------------------- */

struct coroutine {
	enum state state;
	uint64_t frame;
	uint8_t bytes[FRAME_SIZE];
	uint64_t code;
	uint64_t awaited; /* AWAITS */
};

static bool read_opcode(const struct reader *reader, uint64_t address, uint8_t ret[2])
{
	return ss_memory_read(reader->memory, address, ret, 2);
}

/* From 3.14 on: what an object is referred to by in a frame has tags. */
static uint64_t untag(const struct reader *reader, uint64_t reference)
{
	const uint64_t mask = reader->source->layout->frame_code_mask;

	return mask ? reference & mask : reference;
}

/* Where the stack of a coroutine that is suspended ends. */
static uint64_t stack_end(const struct reader *reader, const struct coroutine *coroutine)
{
	enum { VALUE_STACK = 64, STACK_TOP_9 = 72, DEPTH_10 = 80 };
	const unsigned minor = reader->layout.minor;
	uint32_t depth;

	if (minor <= 9)
		return word_at(coroutine->bytes, STACK_TOP_9);
	if (minor >= 14)
		return word_at(coroutine->bytes, reader->source->layout->frame_stack);
	memcpy(&depth, coroutine->bytes + (minor == 10 ? DEPTH_10 : STACK_TOP),
	       sizeof(depth));
	depth = SS_MIN(depth, (uint32_t)LOCALS_MAX);
	return (minor == 10 ? word_at(coroutine->bytes, VALUE_STACK) :
			      coroutine->frame + reader->layout.frame_locals) +
	       (uint64_t)depth * 8;
}

static bool find_awaited(const struct reader *reader, struct coroutine *coroutine)
{
	const uint64_t locals = coroutine->frame + reader->layout.frame_locals;
	const uint64_t end = stack_end(reader, coroutine);

	if (end % 8 || end - locals - 8 >= LOCALS_MAX * 8 ||
	    !ss_memory_read_u64(reader->memory, end - 8, &coroutine->awaited))
		return false;
	coroutine->awaited = untag(reader, coroutine->awaited);
	return true;
}

/* To 3.10 a yield from has not advanced the index of the instruction. */
static bool find_awaited_10(const struct reader *reader, struct coroutine *coroutine)
{
	enum { YIELD_FROM = 72 };
	const struct ss_python_layout *layout = reader->source->layout;
	uint8_t opcode[2];
	uint64_t bytecode;
	int64_t offset;

	if (!ss_python_offset(layout, coroutine->bytes, coroutine->code, &offset) ||
	    offset < 0 ||
	    !ss_memory_read_u64(reader->memory, coroutine->code + CODE_BYTECODE,
				&bytecode) ||
	    !read_opcode(reader, bytecode + BYTES_DATA + (uint64_t)offset + 2, opcode))
		return false;
	coroutine->state = opcode[0] == YIELD_FROM ? STATE_AWAITS : STATE_YIELDED;
	return coroutine->state == STATE_YIELDED || find_awaited(reader, coroutine);
}

static bool read_coroutine_10(const struct reader *reader, const uint8_t *generator,
			      struct coroutine *ret)
{
	enum { STATE_10 = 108, CREATED = -2, SUSPENDED = -1, EXECUTING = 0 };
	const struct ss_python_layout *layout = reader->source->layout;
	int32_t index;

	ret->frame = word_at(generator, reader->layout.generator_frame);
	if (!ret->frame) {
		ret->state = STATE_ENDED;
		return true;
	}
	if (!type_is(reader, ret->frame, "frame") ||
	    !ss_memory_read(reader->memory, ret->frame, ret->bytes, FRAME_SIZE))
		return false;
	ret->code = word_at(ret->bytes, layout->frame_code);
	memcpy(&index, ret->bytes + layout->frame_instruction, sizeof(index));
	bool executes = layout->minor == 10 ? (int8_t)ret->bytes[STATE_10] == EXECUTING :
					      generator[reader->layout.generator_state];
	if (executes) {
		ret->state = STATE_EXECUTES;
	} else if (index < 0) {
		ret->state = STATE_CREATED;
	} else {
		if (layout->minor == 10 && (int8_t)ret->bytes[STATE_10] != SUSPENDED)
			return false;
		return find_awaited_10(reader, ret);
	}
	return true;
}

/* 3.11 and 3.12: the next instruction is a RESUME, with the reason. */
static bool is_awaiting(const struct reader *reader, const struct coroutine *coroutine,
			bool *ret)
{
	enum { RESUME_QUICK_11 = 150, RESUME = 151, INSTRUMENTED_12 = 240 };
	const unsigned minor = reader->source->layout->minor;
	const uint64_t at =
		word_at(coroutine->bytes, reader->source->layout->frame_instruction);
	uint8_t opcode[2];

	if (!read_opcode(reader, at + 2, opcode))
		return false;
	bool resume = opcode[0] == RESUME ||
		      opcode[0] == (minor == 11 ? RESUME_QUICK_11 : INSTRUMENTED_12);
	*ret = resume && (opcode[1] & 3) >= 2;
	return true;
}

static bool read_coroutine_11(const struct reader *reader, uint64_t address,
			      const uint8_t *generator, struct coroutine *ret)
{
	const struct ss_python_layout *layout = reader->source->layout;
	const int8_t value = (int8_t)generator[reader->layout.generator_state];
	/* 3.13 has one more, AWAITS, before EXECUTES. */
	const int state = layout->minor >= 13 || value >= 0 ? value : value - 1;
	bool awaits = state == -1;

	ret->frame = address + reader->layout.generator_frame;
	if (!ss_memory_read(reader->memory, ret->frame, ret->bytes,
			    reader->layout.frame_locals))
		return false;
	ret->code = ss_python_frame_code(layout, ret->bytes);
	if (layout->minor < 13 && state == -2 && !is_awaiting(reader, ret, &awaits))
		return false;
	ret->state = state > 0	 ? STATE_ENDED :
		     state == 0	 ? STATE_EXECUTES :
		     state == -3 ? STATE_CREATED :
		     awaits	 ? STATE_AWAITS :
				   STATE_YIELDED;
	return state >= -3 && (ret->state != STATE_AWAITS || find_awaited(reader, ret));
}

static bool read_coroutine(const struct reader *reader, uint64_t address,
			   struct coroutine *ret)
{
	uint8_t generator[GENERATOR_SIZE];

	*ret = (struct coroutine){};
	if (!ss_memory_read(reader->memory, address, generator, sizeof(generator)))
		return false;
	return reader->source->layout->minor <= 10 ?
		       read_coroutine_10(reader, generator, ret) :
		       read_coroutine_11(reader, address, generator, ret);
}

/* The coroutine or generator that runs when an object is awaited; 0: it is none. */
static uint64_t find_coroutine(const struct reader *reader, uint64_t object)
{
	static const char *const wrappers[] = { "coroutine_wrapper",
						"async_generator_asend",
						"async_generator_athrow",
						"anext_awaitable" };
	static const char *const coroutines[] = { "coroutine", "generator",
						  "async_generator" };

	for (size_t depth = 0; depth < SS_ARRAY_SIZE(wrappers); depth++) {
		bool wrapper = false;
		for (size_t i = 0; i < SS_ARRAY_SIZE(coroutines); i++) {
			if (type_is(reader, object, coroutines[i]))
				return object;
		}
		for (size_t i = 0; i < SS_ARRAY_SIZE(wrappers) && !wrapper; i++)
			wrapper = type_is(reader, object, wrappers[i]);
		if (!wrapper ||
		    !ss_memory_read_u64(reader->memory, object + WRAPPED, &object))
			return 0;
	}
	return 0;
}

static void set_words(const struct reader *reader, const struct coroutine *coroutine,
		      struct ss_python_link *ret)
{
	const uint64_t locals = coroutine->frame + reader->layout.frame_locals;
	const uint64_t end = stack_end(reader, coroutine);

	if (coroutine->state != STATE_AWAITS || end % 8 ||
	    end - locals > LOCALS_MAX * UINT64_C(8))
		return;
	ret->words = locals;
	ret->word_count = (uint32_t)((end - locals) / 8);
}

/* Methods of asyncio's locks and queues have their object as the first argument. */
static void set_self(struct reader *reader, uint64_t address, struct ss_python_link *ret)
{
	static const char *const files[] = { "/asyncio/locks.py", "/asyncio/queues.py" };
	static const char enter[] = "__aenter__";
	const struct ss_python_code *code = NULL;
	bool is_method = false;

	if (ret->word_count == 0)
		return;
	if (!ss_python_codes_find(reader->source->codes, address, &code)) {
		reader->no_memory = true;
		return;
	}
	for (size_t i = 0; code && i < SS_ARRAY_SIZE(files); i++)
		is_method |= ends_with(code->file, files[i]);
	if (is_method && ss_memory_read_u64(reader->memory, ret->words, &ret->self))
		ret->self = untag(reader, ret->self);
	ret->enters = is_method && ends_with(code->name, enter);
}

/* What is awaited ----------------------------------------------------------- */

static bool is_task(const struct reader *reader, uint64_t object)
{
	uint64_t type;

	return ss_python_type_of(reader->memory, object, &type) &&
	       ss_python_is_a(reader->memory, type, "_asyncio.Task", reader->layout.size);
}

static void add_if_task(struct reader *reader, uint64_t object, struct decoded *ret)
{
	if (!is_task(reader, object) || !take_item(reader))
		return;
	uint64_t *slot = ss_vector_push(&ret->awaited.list);
	if (slot)
		*slot = object;
	else
		reader->no_memory = true;
}

static void add_tasks(struct reader *reader, uint64_t container, struct decoded *ret)
{
	struct ss_python_objects found = {};

	if (!ss_python_elements(reader->memory, container, AWAITED_MAX, &found))
		reader->no_memory = true;
	for (size_t i = 0; i < found.list.count && !reader->no_memory; i++)
		add_if_task(reader, found.list.items[i], ret);
	ss_vector_free(&found.list);
}

/* Functions of asyncio that wait for tasks by a future of their own: the first argument is a
   task, has tasks, or has them in an attribute. */
static const struct waiting_function {
	const char *name;
	const char *attribute;
	bool all; /* it waits for all of them, without a time limit */
} waiting_functions[] = {
	{ "_wait", NULL, false },
	{ "wait_for", NULL, false },
	{ "TaskGroup.__aexit__", "_tasks", true },
	{ "TaskGroup._aexit", "_tasks", true },
};

static const struct waiting_function *find_function(const struct ss_python_code *code)
{
	const char *part = code ? strstr(code->file, "/asyncio/") : NULL;

	for (size_t i = 0; part && i < SS_ARRAY_SIZE(waiting_functions); i++) {
		if (strcmp(code->name, waiting_functions[i].name) == 0)
			return &waiting_functions[i];
	}
	return NULL;
}

static void add_argument(struct reader *reader, const struct coroutine *innermost,
			 struct decoded *ret)
{
	const struct ss_python_tasks_source *source = reader->source;
	const struct ss_python_code *code = NULL;
	uint64_t argument;

	if (!ss_python_codes_find(source->codes, innermost->code, &code)) {
		reader->no_memory = true;
		return;
	}
	const struct waiting_function *function = find_function(code);
	if (!function ||
	    !ss_memory_read_u64(reader->memory,
				innermost->frame + reader->layout.frame_locals,
				&argument))
		return;
	argument = untag(reader, argument);
	if (function->attribute &&
	    !ss_python_attribute(source->layout, reader->memory, argument,
				 function->attribute, &argument))
		return;
	ret->awaits_all = function->all;
	add_if_task(reader, argument, ret);
	add_tasks(reader, argument, ret);
}

static void find_awaited_tasks(struct reader *reader, const struct coroutine *innermost,
			       struct decoded *ret)
{
	uint64_t children;

	ret->awaits_all = true;
	add_if_task(reader, ret->waiter, ret);
	/* asyncio.gather() */
	if (ret->awaited.list.count == 0 &&
	    ss_python_attribute(reader->source->layout, reader->memory, ret->waiter,
				"_children", &children))
		add_tasks(reader, children, ret);
	if (ret->awaited.list.count == 0 && innermost->code)
		add_argument(reader, innermost, ret);
}

/* One task ------------------------------------------------------------------ */

static void deinit(struct decoded *decoded)
{
	ss_vector_free(&decoded->links.list);
	ss_vector_free(&decoded->awaited.list);
}

/* Follows what the coroutines await. The limit ends a cycle. */
static bool decode_chain(struct reader *reader, uint64_t object, struct decoded *ret,
			 struct coroutine *innermost)
{
	const struct ss_python_layout *layout = reader->source->layout;
	uint64_t next = find_coroutine(reader, object);

	if (!next)
		return false; /* compiled by Cython, for instance */
	for (size_t i = 0; next && i < CHAIN_MAX; i++) {
		if (!read_coroutine(reader, next, innermost))
			return false;
		if (innermost->state == STATE_ENDED || !take_item(reader))
			return false;
		struct ss_python_link *link = ss_vector_push(&ret->links.list);
		if (!link) {
			reader->no_memory = true;
			return false;
		}
		*link = (struct ss_python_link){ .code = innermost->code,
						 .offset = INT64_MIN };
		if (innermost->state == STATE_EXECUTES) {
			ret->status = SS_STATUS_RUNNING;
			return true;
		}
		if (!ss_python_offset(layout, innermost->bytes, innermost->code,
				      &link->offset))
			return false;
		set_words(reader, innermost, link);
		set_self(reader, innermost->code, link);
		if (innermost->state != STATE_AWAITS)
			return true;
		next = find_coroutine(reader, innermost->awaited);
	}
	return !next;
}

/* *ret_pending: it has not ended. False: it is not valid. */
static bool decode(struct reader *reader, uint64_t task, struct decoded *ret,
		   bool *ret_pending)
{
	enum { LOOP = 16 };
	const struct task_layout *layout = &reader->layout;
	struct coroutine innermost = {};
	uint8_t bytes[TASK_SIZE_MAX];
	uint32_t state;

	*ret = (struct decoded){};
	if (!ss_memory_read(reader->memory, task, bytes, layout->size))
		return false;
	memcpy(&state, bytes + layout->state, sizeof(state));
	*ret_pending = state == PENDING;
	if (state != PENDING)
		return state <= 2;
	ret->loop = word_at(bytes, LOOP);
	ret->name = word_at(bytes, layout->name);
	ret->waiter = word_at(bytes, layout->waiter);
	ret->status = ret->waiter ? SS_STATUS_WAITING : SS_STATUS_RUNNABLE;
	if (ret->waiter &&
	    !ss_python_type_of(reader->memory, ret->waiter, &ret->waiter_type))
		return false;
	if (!decode_chain(reader, word_at(bytes, layout->coroutine), ret, &innermost))
		return false;
	if (ret->waiter && ret->status != SS_STATUS_RUNNING)
		find_awaited_tasks(reader, &innermost, ret);
	if (ret->waiter && ret->status == SS_STATUS_WAITING &&
	    ret->awaited.list.count == 0)
		ret->object = ss_python_awaited_object(reader->memory, &ret->links,
						       ret->waiter);
	return !reader->no_memory && !is_at_limit(reader);
}

static bool is_same_link(const struct ss_python_link *a, const struct ss_python_link *b)
{
	return a->code == b->code && a->offset == b->offset && a->words == b->words &&
	       a->word_count == b->word_count && a->self == b->self;
}

static bool is_equal(const struct decoded *a, const struct decoded *b)
{
	if (a->name != b->name || a->loop != b->loop || a->waiter != b->waiter ||
	    a->waiter_type != b->waiter_type || a->status != b->status ||
	    a->awaits_all != b->awaits_all || a->object != b->object ||
	    a->links.list.count != b->links.list.count ||
	    a->awaited.list.count != b->awaited.list.count)
		return false;
	for (size_t i = 0; i < a->links.list.count; i++) {
		if (!is_same_link(&a->links.list.items[i], &b->links.list.items[i]))
			return false;
	}
	return ss_all(a->awaited.list.count, i,
		      a->awaited.list.items[i] == b->awaited.list.items[i]);
}

/* Names --------------------------------------------------------------------- */

bool ss_python_task_call(const struct ss_python_tasks_source *source, uint64_t address,
			 int64_t offset, struct ss_runtime_call *ret, bool *ret_no_memory)
{
	const struct ss_python_code *code = NULL;

	if (!ss_python_codes_find(source->codes, address, &code)) {
		*ret_no_memory = true;
		return false;
	}
	if (!code)
		return false;
	*ret = (struct ss_runtime_call){ .function = code->name, .file = code->file };
	return offset == INT64_MIN ||
	       ss_python_line(source->layout->lines, code->table, code->table_size,
			      code->identity.first_line, offset, &ret->line);
}

bool ss_python_task_has_code(const struct ss_python_tasks_source *source,
			     const struct ss_memory *memory, uint64_t address,
			     bool *ret_no_memory)
{
	const struct ss_python_code *code = NULL;
	struct ss_python_identity now;

	if (!ss_python_codes_find(source->codes, address, &code)) {
		*ret_no_memory = true;
		return false;
	}
	return code && ss_python_identity_read(source->layout, memory, address, &now) &&
	       ss_python_identity_equal(&now, &code->identity);
}

static const char *intern_name(struct reader *reader, uint64_t name)
{
	char text[4 * SS_PYTHON_NAME_MAX + 1];
	uint64_t number;

	/* From 3.12 on, one that was not given is a number until it is asked for. */
	if (ss_python_integer(reader->source->layout, reader->memory, name, &number))
		(void)snprintf(text, sizeof(text), "Task-%" PRIu64, number);
	else if (!ss_python_string(reader->source->layout, reader->memory, name, text))
		return NULL;
	const char *ret = ss_intern_string(reader->source->process->strings, text);
	reader->no_memory |= !ret;
	return ret;
}

static const char *intern_type(struct reader *reader, uint64_t type)
{
	char text[SS_PYTHON_TYPE_NAME_MAX];

	if (!ss_python_type_name(reader->memory, type, text))
		return NULL;
	const char *dot = strrchr(text, '.');
	const char *ret =
		ss_intern_string(reader->source->process->strings, dot ? dot + 1 : text);
	reader->no_memory |= !ret;
	return ret;
}

/* Adds what was decoded. False: it is not valid, or there is no memory. */
static bool add(struct reader *reader, uint64_t address, const struct decoded *decoded)
{
	struct ss_runtime_tasks *ret = reader->ret;
	struct ss_runtime_task task = {
		.address = address,
		.status = decoded->status,
		.first_call = ret->calls.count,
		.call_count = decoded->links.list.count,
		.first_awaited = ret->awaited.count,
		.awaited_count = decoded->awaited.list.count,
		.awaits_all = decoded->awaits_all,
	};
	uint64_t thread;

	task.name = intern_name(reader, decoded->name);
	if (decoded->loop != reader->loop) {
		reader->loop = decoded->loop;
		reader->loop_empty = ss_python_loop_is_empty(
			reader->source->layout, reader->memory, decoded->loop);
	}
	task.loop_empty = reader->loop_empty;
	if (decoded->status == SS_STATUS_WAITING)
		task.wait_reason = intern_type(reader, decoded->waiter_type);
	if (!task.name)
		return false;
	if (ss_python_attribute(reader->source->layout, reader->memory, decoded->loop,
				"_thread_id", &thread))
		(void)ss_python_integer(reader->source->layout, reader->memory, thread,
					&task.loop_thread);
	for (size_t i = decoded->links.list.count; i-- > 0;) {
		struct ss_runtime_call *call = ss_vector_push(&ret->calls);
		reader->no_memory |= !call;
		if (!call || !ss_python_task_call(reader->source,
						  decoded->links.list.items[i].code,
						  decoded->links.list.items[i].offset,
						  call, &reader->no_memory))
			return false;
	}
	for (size_t i = 0; i < decoded->awaited.list.count; i++) {
		uint64_t *slot = ss_vector_push(&ret->awaited);
		reader->no_memory |= !slot;
		if (!slot)
			return false;
		*slot = decoded->awaited.list.items[i];
	}
	struct ss_runtime_task *slot = ss_vector_push(&ret->items);
	reader->no_memory |= !slot;
	if (slot)
		*slot = task;
	return slot != NULL;
}

/* All of them --------------------------------------------------------------- */

/* A pending task that was read once. */
struct candidate {
	uint64_t address;
	struct decoded decoded;
	bool is_decoded; /* or the rest of what it has is not valid */
	bool valid;	 /* and it has names */
	bool same;	 /* in the second reading */
	bool endless;	 /* as struct ss_python_waiter has it */
};

struct candidates {
	SS_VECTOR(struct candidate) list;
};

/* An element of a set: a task, or a weak reference to one. */
static uint64_t find_object(const struct reader *reader, uint64_t element)
{
	if (!type_is(reader, element, "weakref") &&
	    !type_is(reader, element, "weakref.ReferenceType"))
		return element;
	return ss_memory_read_u64(reader->memory, element + WEAKREF_OBJECT, &element) ?
		       element :
		       0;
}

static void add_candidate(struct reader *reader, struct candidates *candidates,
			  uint64_t address)
{
	struct decoded decoded;
	bool pending = true;

	bool valid = decode(reader, address, &decoded, &pending);
	struct candidate *slot = pending ? ss_vector_push(&candidates->list) : NULL;
	if (!slot || !valid)
		deinit(&decoded);
	if (slot)
		*slot = (struct candidate){ .address = address,
					    .decoded = valid ? decoded :
							       (struct decoded){},
					    .is_decoded = valid,
					    .valid = valid };
	reader->no_memory |= pending && !slot;
	if (!pending && !valid)
		reader->ret->unread++;
}

/* Whether it is a task of another implementation, of asyncio itself in Python for instance. */
static bool is_other_task(const struct reader *reader, uint64_t object)
{
	char name[SS_PYTHON_TYPE_NAME_MAX];
	uint64_t type;

	return ss_python_type_of(reader->memory, object, &type) &&
	       ss_python_type_name(reader->memory, type, name) &&
	       strstr(name, "Task") != NULL;
}

static void forget(const struct reader *reader)
{
	const struct ss_runtime_process *process = reader->source->process;

	if (process->forget)
		process->forget(process->after);
}

enum { SET_USED = 24, SET_MASK = 32, SET_HEAD = 16 };

/* Adds the elements of a set. Its table may be replaced while it is read. False: it was. */
static bool add_elements(struct reader *reader, uint64_t set,
			 struct ss_python_objects *ret)
{
	uint64_t before[2];
	uint64_t now[2];

	if (!ss_memory_read(reader->memory, set + SET_MASK, before, SET_HEAD))
		return true;
	reader->no_memory |= !ss_python_elements(reader->memory, set, TASKS_MAX, ret);
	return !ss_memory_read(reader->source->process->fresh, set + SET_MASK, now,
			       SET_HEAD) ||
	       memcmp(before, now, SET_HEAD) == 0;
}

/* Adds what a WeakSet or set in asyncio.tasks refers to. */
static void add_set(struct reader *reader, uint64_t module, const char *name,
		    struct ss_python_objects *ret)
{
	enum { MODULE_DICT = 16 };
	const struct ss_python_layout *layout = reader->source->layout;
	const struct ss_memory *memory = reader->memory;
	size_t first = ret->list.count;
	bool same = false;
	uint64_t dict;
	uint64_t set;
	uint64_t used;

	if (!ss_memory_read_u64(reader->memory, module + MODULE_DICT, &dict) ||
	    !ss_python_dict_find(layout, reader->memory, dict, name, &set))
		return;
	if (type_is(reader, set, "WeakSet") &&
	    !ss_python_attribute(layout, reader->memory, set, "data", &set))
		return;
	for (int i = 0; !same && i < SET_READS && !reader->no_memory; i++) {
		first = ret->list.count;
		same = add_elements(reader, set, ret);
		forget(reader);
		reader->memory = reader->after;
	}
	reader->memory = memory;
	const size_t count = ret->list.count - first;
	if (type_is(reader, set, "set") &&
	    ss_memory_read_u64(memory, set + SET_USED, &used) && used > count && !same)
		reader->ret->changed += SS_MIN(used, (uint64_t)TASKS_MAX) - count;
}

/* Makes elements of sets the objects that they are or refer to, each once. */
static void find_objects(const struct reader *reader, struct ss_python_objects *objects)
{
	uint64_t *items = objects->list.items;
	const size_t count = objects->list.count;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		items[i] = find_object(reader, items[i]);
	if (count > 1)
		qsort(items, count, sizeof(*items), ss_compare_u64);
	for (size_t i = 0; i < count; i++) {
		if (items[i] && (kept == 0 || items[i] != items[kept - 1]))
			items[kept++] = items[i];
	}
	objects->list.count = kept;
}

static void read_candidates(struct reader *reader,
			    const struct ss_python_objects *objects,
			    struct candidates *ret)
{
	for (size_t i = 0; i < objects->list.count && !reader->no_memory; i++) {
		const uint64_t object = objects->list.items[i];
		if (is_task(reader, object))
			add_candidate(reader, ret, object);
		else if (is_at_limit(reader))
			reader->ret->unread++;
		else if (!type_is(reader, object, "NoneType")) /* a dead one */
			*(is_other_task(reader, object) ? &reader->ret->unread :
							  &reader->ret->changed) += 1;
	}
}

/* The code objects are those of which the names were read. */
static bool have_codes(struct reader *reader, const struct decoded *decoded)
{
	return ss_all(decoded->links.list.count, i,
		      ss_python_task_has_code(reader->source, reader->memory,
					      decoded->links.list.items[i].code,
					      &reader->no_memory));
}

/* Whether a task is what it was: for one that was not valid, whether it still is not. */
static bool is_same(const struct candidate *candidate, struct reader *reader)
{
	struct decoded now = {};
	bool pending = false;
	bool same = is_task(reader, candidate->address);

	if (same && !candidate->is_decoded)
		same = !decode(reader, candidate->address, &now, &pending);
	else if (same)
		same = decode(reader, candidate->address, &now, &pending) && pending &&
		       is_equal(&candidate->decoded, &now) &&
		       (!candidate->valid || have_codes(reader, &now));
	deinit(&now);
	return same;
}

/* Reads a task that has changed twice again, now without others in between. *ret_pending: it
   has not ended. */
static bool read_again(struct reader *reader, uint64_t address, bool *ret_pending)
{
	struct ss_runtime_tasks *ret = reader->ret;
	const struct ss_runtime_tasks before = *ret;
	struct candidate found = { .address = address };

	forget(reader);
	*ret_pending = is_task(reader, address);
	if (!*ret_pending)
		return false;
	found.valid = found.is_decoded =
		decode(reader, address, &found.decoded, ret_pending) && *ret_pending &&
		add(reader, address, &found.decoded);
	if (found.valid) {
		forget(reader);
		found.valid = is_same(&found, reader);
	}
	deinit(&found.decoded);
	if (!found.valid) {
		ret->items.count = before.items.count;
		ret->calls.count = before.calls.count;
		ret->awaited.count = before.awaited.count;
	}
	return found.valid;
}

/* A task that changed between its two readings. One that has ended is not missing. */
static void retry(struct reader *reader, uint64_t address)
{
	bool pending = true;

	for (int i = 0; i < RETRIES && reader->retries_left > 0 && !is_at_limit(reader) &&
			reader->source->process->forget && !reader->no_memory;
	     i++) {
		reader->retries_left--;
		if (read_again(reader, address, &pending))
			return;
		if (!pending && !is_at_limit(reader))
			return;
	}
	*(is_at_limit(reader) ? &reader->ret->unread : &reader->ret->changed) += 1;
}

static void compare_candidates(struct reader *reader, struct candidates *candidates,
			       size_t first)
{
	struct ss_runtime_tasks *ret = reader->ret;
	size_t kept = first;
	size_t at = first;
	bool woken = false;

	for (size_t i = 0; i < candidates->list.count && !reader->no_memory; i++) {
		struct candidate *candidate = &candidates->list.items[i];
		candidate->same = is_same(candidate, reader);
		woken |= candidate->endless && !candidate->same;
		if (candidate->valid && candidate->same)
			ret->items.items[kept++] = ret->items.items[at];
		ret->unread += candidate->same && !candidate->valid;
		at += candidate->valid;
	}
	ret->items.count = kept;
	/* What others refer to counts only if all of them wait. */
	for (size_t i = first; woken && i < kept; i++)
		ret->items.items[i].endless = false;
	for (size_t i = 0; i < candidates->list.count && !reader->no_memory; i++) {
		if (!candidates->list.items[i].same)
			retry(reader, candidates->list.items[i].address);
	}
}

/* Whether the members of a frame lie in what is read of it. From 3.13 on, the process says where
   they are. */
static bool has_known_frame(const struct ss_python_layout *layout)
{
	if (layout->minor >= 14)
		return layout->frame_size <= layout->frame_locals &&
		       layout->frame_locals <= FRAME_SIZE &&
		       layout->frame_stack <= layout->frame_locals - 8 &&
		       layout->generator_state < GENERATOR_SIZE;
	return layout->frame_size <= (layout->minor >= 11 ? LOCALS : FRAME_SIZE);
}

/* Members of tasks that are not in the table are at fixed distances from those that are. */
static bool make_layout(const struct ss_python_layout *layout,
			const struct ss_python_task_table *table, struct task_layout *ret)
{
	enum { IS_TASK_AFTER_STATE = 4, COROUTINE_AFTER_WAITER = 8, WAITER_MIN = 104 };

	*ret = (struct task_layout){
		.minor = layout->minor,
		.size = table->task_size,
		.state = table->task_is_task - IS_TASK_AFTER_STATE,
		.waiter = table->task_coroutine - COROUTINE_AFTER_WAITER,
		.coroutine = table->task_coroutine,
		.name = table->task_name,
		.generator_frame = layout->generator_frame,
		.generator_state = layout->generator_state,
		.frame_locals = layout->frame_locals,
	};
	return table->task_size <= TASK_SIZE_MAX &&
	       table->task_is_task >= IS_TASK_AFTER_STATE && ret->state % 4 == 0 &&
	       table->task_coroutine >= WAITER_MIN;
}

/* False: the tasks of this version cannot be read. */
static bool find_layout(struct reader *reader)
{
	const struct ss_python_layout *layout = reader->source->layout;
	const char *problem = NULL;

	if (!has_known_frame(layout))
		return false;
	for (size_t i = 0; i < SS_ARRAY_SIZE(task_layouts); i++) {
		reader->layout = task_layouts[i];
		if (reader->layout.minor == layout->minor)
			return true;
	}
	problem = ss_python_task_table_find(reader->source->process, &reader->table);
	if (!problem && !make_layout(layout, &reader->table, &reader->layout))
		problem = "its table of offsets is not valid";
	if (problem)
		reader->ret->problem = problem;
	return !problem;
}

static void add_list(struct reader *reader, uint64_t head, struct ss_python_objects *ret)
{
	bool whole = true;

	reader->no_memory |= !ss_python_task_list_read(
		reader->memory, reader->source->process->fresh, head,
		reader->table.task_node, TASKS_MAX, ret, &whole);
	/* How many there are is not recorded. */
	reader->ret->changed += !whole;
}

/* Those of threads first: what a thread leaves when it ends is appended to the other list. */
static void add_lists(struct reader *reader, struct ss_python_objects *ret)
{
	const struct ss_python_tasks_source *source = reader->source;

	for (size_t i = 0; i < source->thread_count && !reader->no_memory; i++)
		add_list(reader, source->threads[i] + reader->table.thread_tasks, ret);
	add_list(reader, source->interpreter + reader->table.interpreter_tasks, ret);
}

/* Finds the module asyncio.tasks. */
static bool find_module(const struct reader *reader, uint64_t *ret)
{
	const struct ss_python_layout *layout = reader->source->layout;
	uint64_t modules;

	return ss_memory_read_u64(reader->memory,
				  reader->source->interpreter + layout->interp_modules,
				  &modules) &&
	       ss_python_dict_find(layout, reader->memory, modules, "asyncio.tasks",
				   ret) &&
	       type_is(reader, *ret, "module");
}

/* The first reading: all names are read in it. */
static void read_tasks(struct reader *reader, uint64_t module, struct candidates *ret)
{
	struct ss_python_objects objects = {};

	if (reader->source->layout->minor <= 11) {
		add_set(reader, module, "_all_tasks", &objects);
	} else {
		if (reader->layout.minor >= 14)
			add_lists(reader, &objects);
		add_set(reader, module, "_scheduled_tasks", &objects);
		add_set(reader, module, "_eager_tasks", &objects);
	}
	find_objects(reader, &objects);
	read_candidates(reader, &objects, ret);
	ss_vector_free(&objects.list);
	for (size_t i = 0; i < ret->list.count && !reader->no_memory; i++) {
		struct candidate *candidate = &ret->list.items[i];
		candidate->valid = candidate->valid &&
				   add(reader, candidate->address, &candidate->decoded);
	}
}

/* What holds a lock is what the task waits for. False without memory. */
static bool set_owner(struct reader *reader, const struct ss_python_waiter *waiter,
		      struct ss_runtime_task *task)
{
	uint64_t type;

	if (waiter->object != waiter->future &&
	    ss_python_type_of(reader->memory, waiter->object, &type))
		task->object = intern_type(reader, type);
	task->endless = waiter->endless &&
			!ss_python_is_usual(reader->memory, waiter->object);
	if (!waiter->owner)
		return true;
	uint64_t *slot = ss_vector_push(&reader->ret->awaited);
	if (!slot)
		return false;
	*slot = waiter->owner->address;
	task->first_awaited = reader->ret->awaited.count - 1;
	task->awaited_count = 1;
	task->awaits_all = !waiter->timed;
	return true;
}

/* Finds who holds what the tasks wait for, of those that are valid: first is the index of the first one
   in the result. Their memory is that of the first reading. */
static void find_owners(struct reader *reader, struct candidates *candidates,
			size_t first)
{
	_cleanup_free_ struct ss_python_waiter *waiters =
		calloc(candidates->list.count + 1, sizeof(*waiters));
	size_t count = 0;

	reader->no_memory |= !waiters;
	for (size_t i = 0; waiters && i < candidates->list.count; i++) {
		const struct candidate *candidate = &candidates->list.items[i];
		const struct decoded *decoded = &candidate->decoded;
		if (!candidate->valid)
			continue;
		waiters[count++] = (struct ss_python_waiter){
			.links = &decoded->links,
			.awaited = decoded->awaited.list.items,
			.awaited_count = decoded->awaited.list.count,
			.address = candidate->address,
			.future = decoded->status == SS_STATUS_WAITING ? decoded->waiter :
									 0,
			.object = decoded->object,
			.timed = decoded->awaited.list.count && !decoded->awaits_all,
		};
	}
	reader->no_memory |= waiters &&
			     !ss_python_owners_find(reader->source->layout,
						    reader->memory, waiters, count);
	for (size_t i = 0, k = 0; !reader->no_memory && i < count; k++) {
		struct candidate *candidate = &candidates->list.items[k];
		if (!candidate->valid)
			continue;
		candidate->endless = waiters[i].endless;
		if (waiters[i].object)
			reader->no_memory |=
				!set_owner(reader, &waiters[i],
					   &reader->ret->items.items[first + i]);
		i++;
	}
}

bool ss_python_tasks_read(const struct ss_python_tasks_source *source,
			  struct ss_runtime_tasks *ret)
{
	/* Half of it is for the second reading. */
	const uint64_t reserve = *source->reads_left / 2;
	const size_t items_left =
		ITEMS_MAX -
		SS_MIN(ret->calls.count + ret->awaited.count, (size_t)ITEMS_MAX);
	const struct limited_memory before = { { read_limited },
					       source->process->memory,
					       source->reads_left };
	const struct limited_memory after = { { read_limited },
					      source->process->after,
					      source->reads_left };
	struct reader reader = { .source = source,
				 .memory = &before.memory,
				 .after = &after.memory,
				 .retries_left = RETRIES_ALL,
				 .items_left = items_left,
				 .ret = ret };
	const size_t first = ret->items.count;
	struct candidates candidates = {};
	uint64_t module;

	if (!find_module(&reader, &module) || !find_layout(&reader))
		return true;
	*source->reads_left -= reserve;
	read_tasks(&reader, module, &candidates);
	if (!reader.no_memory)
		find_owners(&reader, &candidates, first);
	*source->reads_left += reserve;
	reader.memory = &after.memory;
	reader.items_left = items_left;
	compare_candidates(&reader, &candidates, first);
	for (size_t i = 0; i < candidates.list.count; i++)
		deinit(&candidates.list.items[i].decoded);
	ss_vector_free(&candidates.list);
	return !reader.no_memory;
}
