#include "runtime/python/python.h"

#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/search.h"

enum {
	/* Up to 3.13: struct _gc_runtime_state of Include/internal/pycore_gc.h. A generation is the head
	   of a list and two numbers; generation0 points to the first one of the array before it. */
	GENERATIONS = 3,
	GENERATION_SIZE = 24,
	INTERPRETER_SEARCHED = 64 << 10,
	HEAD_SIZE = 16, /* PyGC_Head, before each object: next, previous */
	HEAD_FLAGS = 3,
	TYPES_MAX = 1 << 10, /* that are remembered: a power of two */
	CHAIN_MAX = 1000,    /* frames of one: CPython's recursion limit */
	MINOR_MIN = 10,
	MINOR_MAX = 13,
	FRAME_OBJECT_FRAME = 24, /* PyFrameObject, from 3.11 on: f_frame */
	OWNER_C_STACK = 3, /* from 3.12 on: a frame without code, on the native stack */
	/* greenlet 1.x: struct _greenlet; from 2.0 on it points to an object of C++ */
	OBJECT_STACK = 16,
	OBJECT_FRAME = 72,
	OBJECT_STATE = 32,
	OBJECT_SIZE = 40, /* from 2.0 on */
	OBJECT_SIZE_10 = 160,
	OBJECT_SIZE_11 = 176,
	STATE_SIZE = 128,
	STACK_SIZE = 40, /* class StackState */
};

/* What a type is: whether its objects are greenlets. */
enum kind {
	KIND_UNKNOWN,
	KIND_OTHER,
	KIND_STRUCT, /* greenlet 1.x */
	KIND_CLASS,  /* from 2.0 on */
};

struct type {
	uint64_t address;
	enum kind kind;
};

/* A call of a greenlet that is suspended. */
struct call {
	uint64_t code;
	int64_t offset;
};

/* The memory of a greenlet: a part of its stack is on the heap while others use the native one. */
struct greenlet {
	struct ss_memory memory; /* first: see data/memory.h */
	const struct ss_memory *from;
	uint64_t address;
	uint64_t start; /* of its stack */
	uint64_t stop;	/* UINT64_MAX: that of the main greenlet of a thread */
	uint64_t copy;	/* of the first bytes of its stack */
	uint64_t copied;
	uint64_t frame; /* the innermost one; 0: it is not suspended */
	const struct ss_capture_thread *thread;
	SS_VECTOR(struct call) calls; /* innermost first */
	bool valid;		      /* it is in the result */
};

struct search {
	const struct ss_python_tasks_source *source;
	struct ss_runtime_tasks *ret;
	struct type types[TYPES_MAX];
	struct ss_python_objects found;
	SS_VECTOR(struct greenlet) greenlets; /* in the order of found */
	size_t *calls_left;		      /* in source->left */
	bool no_memory;
};

bool ss_python_is_greenlet(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && strncmp(slash + 1, "_greenlet.", strlen("_greenlet.")) == 0;
}

/* One greenlet ---------------------------------------------------------------- */

static size_t read_stack(const struct ss_memory *memory, uint64_t address, void *bytes,
			 size_t size)
{
	const struct greenlet *self = (const struct greenlet *)memory;
	const uint64_t at = address - self->start;

	if (at < self->copied)
		return self->from->read(self->from, self->copy + at, bytes,
					SS_MIN(size, self->copied - at));
	return self->from->read(self->from, address, bytes, size);
}

/* Whether an address is in the module of greenlets. */
static bool is_of_module(const struct ss_capture *capture, uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(capture, address);

	return area && area->module >= 0 &&
	       ss_python_is_greenlet(capture->modules.items[area->module]->pub.path);
}

/* The thread whose stack has an address. Stacks of threads are areas of their own. */
static const struct ss_capture_thread *find_thread(const struct ss_capture *capture,
						   uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(capture, address);

	for (size_t i = 0; area && i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		const uint64_t sp = ss_regs_sp(capture->arch, &thread->regs);
		if (sp >= area->start && sp < area->end)
			return thread;
	}
	return NULL;
}

/* class Greenlet: a table of functions; from 3.2 on the object; struct _PyErr_StackItem and a pointer
   to one; two arguments; class StackState; a context and the innermost frame. */
static bool read_class(const struct search *search, struct greenlet *greenlet,
		       uint8_t stack[STACK_SIZE])
{
	enum { SELF = 8, EXCEPTION = 24, EXCEPTION_10 = 40, ARGUMENTS = 16, CONTEXT = 8 };
	const struct ss_python_tasks_source *source = search->source;
	uint8_t bytes[STATE_SIZE];
	size_t at = SELF;
	uint64_t state;

	if (!ss_memory_read_u64(greenlet->from, greenlet->address + OBJECT_STATE,
				&state) ||
	    !ss_memory_read(greenlet->from, state, bytes, sizeof(bytes)) ||
	    !is_of_module(source->process->capture, ss_load_u64(bytes, 0)))
		return false;
	at += ss_load_u64(bytes, SELF) == greenlet->address ? sizeof(uint64_t) : 0;
	at += (size_t)(source->layout->minor >= 11 ? EXCEPTION : EXCEPTION_10) +
	      ARGUMENTS;
	memcpy(stack, bytes + at, STACK_SIZE);
	greenlet->frame = ss_load_u64(bytes, at + STACK_SIZE + CONTEXT);
	return true;
}

/* What it is at this moment. False: not a greenlet that is suspended. */
static bool read_state(const struct search *search, enum kind kind,
		       struct greenlet *greenlet)
{
	enum { START = 0, STOP = 8, COPY = 16, COPIED = 24 };
	uint8_t stack[STACK_SIZE];
	const bool read =
		kind == KIND_CLASS ?
			read_class(search, greenlet, stack) :
			ss_memory_read(greenlet->from, greenlet->address + OBJECT_STACK,
				       stack, sizeof(stack)) &&
				ss_memory_read_u64(greenlet->from,
						   greenlet->address + OBJECT_FRAME,
						   &greenlet->frame);

	if (!read || greenlet->frame == 0)
		return false;
	greenlet->start = ss_load_u64(stack, START);
	greenlet->stop = ss_load_u64(stack, STOP);
	greenlet->copy = ss_load_u64(stack, COPY);
	greenlet->copied = ss_load_u64(stack, COPIED);
	greenlet->thread = find_thread(search->source->process->capture, greenlet->start);
	return greenlet->thread && greenlet->start < greenlet->stop &&
	       greenlet->copied <= greenlet->stop - greenlet->start &&
	       ss_python_has_type(greenlet->from, greenlet->frame, "frame");
}

/* Reads its calls. False: they are not valid. */
static bool read_calls(struct search *search, struct greenlet *greenlet)
{
	const struct ss_python_layout *layout = search->source->layout;
	uint64_t frame = greenlet->frame;
	uint8_t bytes[SS_PYTHON_HEADER_MAX];

	if (layout->minor >= 11 &&
	    !ss_memory_read_u64(greenlet->from, frame + FRAME_OBJECT_FRAME, &frame))
		return false;
	for (size_t i = 0; frame; frame = ss_load_u64(bytes, layout->frame_previous)) {
		if (i++ == CHAIN_MAX || *search->calls_left == 0 ||
		    !ss_memory_read(&greenlet->memory, frame, bytes, layout->frame_size))
			return false;
		if (layout->minor >= 12 && bytes[layout->frame_entry] >= OWNER_C_STACK)
			continue;
		struct call *call = ss_vector_push(&greenlet->calls);
		if (!call) {
			search->no_memory = true;
			return false;
		}
		--*search->calls_left;
		call->code = ss_python_frame_code(layout, bytes);
		if (!ss_python_offset(layout, bytes, call->code, &call->offset))
			return false;
	}
	return greenlet->calls.count > 0;
}

/* *ret_suspended: it is, or may be; calls are to be freed. False: it is not valid, or not suspended. */
static bool decode(struct search *search, const struct ss_memory *memory, enum kind kind,
		   uint64_t address, struct greenlet *ret, bool *ret_suspended)
{
	*ret = (struct greenlet){ .memory = { read_stack },
				  .from = memory,
				  .address = address };
	*ret_suspended = read_state(search, kind, ret);
	return *ret_suspended && read_calls(search, ret);
}

static bool is_equal(const struct greenlet *a, const struct greenlet *b)
{
	if (a->start != b->start || a->stop != b->stop || a->frame != b->frame ||
	    a->calls.count != b->calls.count)
		return false;
	return !ss_any(a->calls.count, i,
		       a->calls.items[i].code != b->calls.items[i].code ||
			       a->calls.items[i].offset != b->calls.items[i].offset);
}

/* All of them ----------------------------------------------------------------- */

static enum kind kind_of_type(struct search *search, uint64_t address)
{
	const struct ss_memory *memory = search->source->process->memory;
	const unsigned minor = search->source->layout->minor;
	struct type *type = &search->types[(address >> 4) % TYPES_MAX];

	if (type->address == address && type->kind != KIND_UNKNOWN)
		return type->kind;
	type->address = address;
	if (ss_python_is_a(memory, address, "greenlet.greenlet", OBJECT_SIZE))
		type->kind = KIND_CLASS;
	else if (minor <= 11 &&
		 ss_python_is_a(memory, address, "greenlet.greenlet",
				minor == 11 ? OBJECT_SIZE_11 : OBJECT_SIZE_10))
		type->kind = KIND_STRUCT;
	else
		type->kind = KIND_OTHER;
	return type->kind;
}

static enum kind kind_of(struct search *search, uint64_t object)
{
	uint64_t type;

	return ss_python_type_of(search->source->process->memory, object, &type) ?
		       kind_of_type(search, type) :
		       KIND_OTHER;
}

/* From the object that was added last. False: the list changes, or there are too many. */
static bool search_list(struct search *search, uint64_t head)
{
	const struct ss_memory *memory = search->source->process->memory;
	struct ss_python_greenlets_left *left = search->source->left;
	uint64_t words[4]; /* of a node: next, previous, references, type */
	uint64_t node = head;
	uint64_t from;

	if (!ss_memory_read(memory, head, words, HEAD_SIZE))
		return false;
	for (;;) {
		from = node;
		node = words[1] & ~(uint64_t)HEAD_FLAGS;
		if (node == head)
			return true;
		if (left->objects == 0 || search->no_memory)
			return false;
		left->objects--;
		if (node % 8 || !ss_memory_read(memory, node, words, sizeof(words)) ||
		    (words[0] & ~(uint64_t)HEAD_FLAGS) != from)
			return false;
		if (kind_of_type(search, words[3]) < KIND_STRUCT)
			continue;
		if (left->greenlets == 0) {
			search->ret->unread++;
			continue;
		}
		left->greenlets--;
		uint64_t *slot = ss_vector_push(&search->found.list);
		search->no_memory |= !slot;
		if (slot)
			*slot = node + HEAD_SIZE;
	}
}

/* The first generation of an interpreter's garbage collector; 0: not found. */
static uint64_t find_generations(const struct search *search)
{
	const struct ss_memory *memory = search->source->process->memory;
	uint64_t words[512];
	uint64_t at = search->source->interpreter;
	const uint64_t end = at + INTERPRETER_SEARCHED;

	for (; at < end && ss_memory_read(memory, at, words, sizeof(words));
	     at += sizeof(words)) {
		for (size_t i = 0; i < SS_ARRAY_SIZE(words); i++) {
			const uint64_t address =
				at + i * sizeof(*words) - GENERATIONS * GENERATION_SIZE;
			if (words[i] == address)
				return address;
		}
	}
	return 0;
}

static void search_generations(struct search *search)
{
	const uint64_t first = find_generations(search);
	bool complete = true;

	/* After the last one is a pointer, then the one of objects that are never looked at again. */
	for (int i = 0; first && i <= GENERATIONS; i++)
		complete &= search_list(search, first + (uint64_t)i * GENERATION_SIZE +
							(i == GENERATIONS ? 8 : 0));
	if (!first)
		search->ret->greenlets_problem = "the list of objects was not found";
	else if (!complete)
		search->ret->greenlets_problem = search->source->left->objects == 0 ?
							 "there are too many objects" :
							 "the list of objects changed";
}

/* Adds one that was decoded. False: one of its functions has no name. */
static bool add(struct search *search, const struct greenlet *greenlet)
{
	struct ss_runtime_tasks *ret = search->ret;
	const struct ss_runtime_tasks before = *ret;
	struct ss_runtime_task task = {
		.address = greenlet->address,
		.status = SS_STATUS_WAITING,
		.wait_reason = "suspended",
		.greenlet = true,
		.first_call = ret->calls.count,
		.call_count = greenlet->calls.count,
		.first_awaited = ret->awaited.count,
		.thread = greenlet->thread,
	};
	bool valid = true;

	for (size_t i = 0; valid && i < greenlet->calls.count; i++) {
		struct ss_runtime_call *call = ss_vector_push(&ret->calls);
		search->no_memory |= !call;
		valid = call &&
			ss_python_task_call(search->source, greenlet->calls.items[i].code,
					    greenlet->calls.items[i].offset, call,
					    &search->no_memory);
		if (valid)
			task.name = call->function;
	}
	if (greenlet->stop == UINT64_MAX)
		task.name = "main greenlet";
	struct ss_runtime_task *slot = valid ? ss_vector_push(&ret->items) : NULL;
	search->no_memory |= valid && !slot;
	if (slot)
		*slot = task;
	else
		ret->calls.count = before.calls.count;
	return valid;
}

/* The first reading: all names are read in it. */
static void read_greenlets(struct search *search)
{
	for (size_t i = 0; i < search->found.list.count && !search->no_memory; i++) {
		const uint64_t address = search->found.list.items[i];
		const enum kind kind = kind_of(search, address);
		struct greenlet *greenlet = ss_vector_push(&search->greenlets);
		bool suspended = false;
		if (!greenlet) {
			search->no_memory = true;
			return;
		}
		*greenlet = (struct greenlet){};
		if (kind >= KIND_STRUCT)
			greenlet->valid = decode(search, search->source->process->memory,
						 kind, address, greenlet, &suspended) &&
					  add(search, greenlet);
		search->ret->unread += suspended && !greenlet->valid;
	}
}

/* Whether one is the same in a second reading, as are its code objects. */
static bool is_same(struct search *search, const struct greenlet *greenlet)
{
	const struct ss_memory *after = search->source->process->after;
	struct greenlet now;
	bool suspended = false;
	bool same = decode(search, after, kind_of(search, greenlet->address),
			   greenlet->address, &now, &suspended) &&
		    is_equal(greenlet, &now);

	for (size_t i = 0; same && i < now.calls.count; i++)
		same = ss_python_task_has_code(search->source, after,
					       now.calls.items[i].code,
					       &search->no_memory);
	ss_vector_free(&now.calls);
	return same;
}

/* first: the index of the first greenlet in the result. */
static void compare_greenlets(struct search *search, size_t first)
{
	struct ss_runtime_tasks *ret = search->ret;
	size_t kept = first;
	size_t at = first;

	for (size_t i = 0; i < search->greenlets.count; i++) {
		struct greenlet *greenlet = &search->greenlets.items[i];
		if (greenlet->valid && !search->no_memory) {
			if (is_same(search, greenlet))
				ret->items.items[kept++] = ret->items.items[at];
			else
				ret->changed++;
			at++;
		}
		ss_vector_free(&greenlet->calls);
	}
	ret->items.count = kept;
}

bool ss_python_greenlets_read(const struct ss_python_tasks_source *source,
			      struct ss_runtime_tasks *ret)
{
	const size_t first = ret->items.count;
	struct search search = {
		.source = source,
		.ret = ret,
		.calls_left = &source->left->calls,
	};

	if (source->layout->minor < MINOR_MIN || source->layout->minor > MINOR_MAX) {
		ret->greenlets_problem = "they are not read in this version of CPython";
		return true;
	}
	search_generations(&search);
	read_greenlets(&search);
	search.calls_left = &source->left->calls_again;
	compare_greenlets(&search, first);
	ss_vector_free(&search.found.list);
	ss_vector_free(&search.greenlets);
	return !search.no_memory;
}
