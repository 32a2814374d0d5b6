#include "runtime/python/python.h"

#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "data/futex.h"

enum {
	/* The object is an argument of functions that have called the one that waits. */
	STACK_WORDS = 96,
	SEMAPHORES_MAX = 1024,
	FRAMES_MAX = 1 << 12, /* of a thread */
	CODES_MAX = 256,      /* inside of a with statement */
	STATEMENTS_MAX = 64,  /* of a frame */
	STACK_MAX = 1 << 16,  /* values of a frame */
	TABLE_MAX = 1 << 16,
	NAMES_MAX = 1 << 12,
	NAME_WORK = 64, /* as much as reading so many bytes of a table */
	/* lockobject, rlockobject (Modules/_threadmodule.c) */
	LOCK_SEMAPHORE = 16,
	LOCK_LOCKED = 32,
	RLOCK_OWNER = 24,
	RLOCK_COUNT = 32,
	LOCK_READ = 40,
	/* From 3.14 on, and in later releases of 3.13: a PyMutex, in an RLock followed by the
	   same as before. A thread that waits has a struct wait_entry (Python/parking_lot.c) on
	   its stack, with a semaphore. */
	LOCK_MUTEX = 16,
	MUTEX_LOCKED = 1,
	ENTRY_MUTEX = 8, /* before the semaphore */
	/* From 3.13 on, join() waits so for an event in a ThreadHandle, which has these at such
	   distances before it. The second handle is the same, where threads are POSIX's. */
	HANDLE_IDENT = 25,
	HANDLE_OS = 17,
	HANDLE_STATE = 5,
	HANDLE_RUNNING = 3,
	/* PyCFunctionObject, PyMethodDef */
	FUNCTION_METHOD = 16,
	FUNCTION_SELF = 24,
	/* PyMethodDescrObject */
	DESCRIPTOR_TYPE = 16,
	DESCRIPTOR_METHOD = 40,
	/* PyWeakReference */
	WEAK_OBJECT = 16,
	/* PyTupleObject, PyBytesObject */
	OBJECT_SIZE = 16,
	TUPLE_ITEMS = 24,
	TUPLE_ITEMS_14 = 32, /* after a hash */
	BYTES_DATA = 32,
};

/* Where with statements are recorded, and what else is needed to find them; x86-64, as the
   layouts of object.c. */
struct places {
	unsigned minor;
	/* PyCodeObject */
	uint32_t code_names;
	uint32_t code_locals;	  /* how many values precede the stack */
	uint32_t code_exceptions; /* from 3.11 on */
	uint32_t code_code;	  /* to 3.10: the bytecode, a bytes object */
	/* _PyInterpreterFrame: localsplus; PyFrameObject: f_valuestack */
	uint32_t frame_values;
	/* PyThreadState: to 3.12, a weak reference to the lock of threading.Thread that its end
	   releases, for which join() waits */
	uint32_t state_on_delete;
	/* PyFrameObject */
	uint32_t frame_block_count;
	uint32_t frame_blocks;
	bool handler_in_units; /* of two bytes */
	/* Opcodes with which the handler of a with statement begins; 0: one is enough */
	uint8_t push;
	uint8_t exit;
	/* From this one on: what tracing puts in place of others; 0: of none */
	uint8_t instrumented;
	/* From 3.14 on */
	bool has_mutex; /* a lock is no semaphore */
	bool has_self;	/* __exit__ and its object are two values on the stack */
};

static const struct places places[] = {
	{ .minor = 8,
	  .code_names = 64,
	  .code_code = 48,
	  .frame_values = 64,
	  .state_on_delete = 208,
	  .frame_block_count = 112,
	  .frame_blocks = 120,
	  .exit = 81 },
	{ .minor = 9,
	  .code_names = 64,
	  .code_code = 48,
	  .frame_values = 64,
	  .state_on_delete = 208,
	  .frame_block_count = 112,
	  .frame_blocks = 120,
	  .exit = 49 },
	{ .minor = 10,
	  .code_names = 64,
	  .code_code = 48,
	  .frame_values = 64,
	  .state_on_delete = 208,
	  .frame_block_count = 104,
	  .frame_blocks = 112,
	  .handler_in_units = true,
	  .exit = 49 },
	{ .minor = 11,
	  .code_names = 32,
	  .code_locals = 76,
	  .code_exceptions = 40,
	  .frame_values = 72,
	  .state_on_delete = 192,
	  .push = 35,
	  .exit = 49 },
	{ .minor = 12,
	  .code_names = 32,
	  .code_locals = 72,
	  .code_exceptions = 40,
	  .frame_values = 72,
	  .state_on_delete = 176,
	  .push = 35,
	  .exit = 49,
	  .instrumented = 237 },
	{ .minor = 13,
	  .code_names = 32,
	  .code_locals = 72,
	  .code_exceptions = 40,
	  .frame_values = 72,
	  .push = 33,
	  .exit = 44,
	  .instrumented = 236 },
	{ .minor = 14,
	  .code_names = 32,
	  .code_locals = 72,
	  .code_exceptions = 40,
	  .frame_values = 80,
	  .push = 32,
	  .exit = 43,
	  .instrumented = 234,
	  .has_mutex = true,
	  .has_self = true },
};

static const struct places *find_places(const struct ss_python_layout *layout)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(places); i++) {
		if (places[i].minor == layout->minor)
			return &places[i];
	}
	return NULL;
}

/* Locks that threads wait for ------------------------------------------------ */

/* Whether there is a lock at an address, with a semaphore, and it is locked. */
static bool read_lock(const struct ss_memory *memory, uint64_t address,
		      uint64_t semaphore, struct ss_python_lock *ret)
{
	char name[SS_PYTHON_TYPE_NAME_MAX];
	uint8_t bytes[LOCK_READ];
	uint64_t found;
	uint64_t type;
	uint32_t value;

	if (!ss_memory_read_u64(memory, address + LOCK_SEMAPHORE, &found) ||
	    found != semaphore || !ss_python_type_of(memory, address, &type) ||
	    !ss_python_type_name(memory, type, name))
		return false;
	bool recursive = strcmp(name, "_thread.RLock") == 0;
	if ((!recursive && strcmp(name, "_thread.lock") != 0) ||
	    !ss_memory_read(memory, address, bytes, sizeof(bytes)) ||
	    !ss_memory_read_u32(memory, semaphore, &value) || value != 0)
		return false;
	*ret = (struct ss_python_lock){ .address = address,
					.shown = semaphore,
					.semaphore = semaphore,
					.recursive = recursive };
	if (!recursive)
		return bytes[LOCK_LOCKED] == 1;
	ret->owner_id = ss_load_u64(bytes, RLOCK_OWNER);
	return ss_load_u64(bytes, RLOCK_COUNT) != 0;
}

bool ss_python_lock_has_same_owner(const struct ss_memory *fresh,
				   const struct ss_python_lock *lock)
{
	uint64_t owner;

	return lock->recursive &&
	       ss_memory_read_u64(fresh, lock->address + RLOCK_OWNER, &owner) &&
	       owner == lock->owner_id;
}

/* The lock whose mutex is in the entry of a thread that waits. */
static bool find_parked(const struct ss_runtime_process *process,
			const struct ss_memory *copied, uint64_t semaphore,
			struct ss_python_lock *ret)
{
	const struct ss_memory *memory = process->memory;
	char name[SS_PYTHON_TYPE_NAME_MAX];
	uint8_t bytes[LOCK_READ];
	uint64_t mutex;
	uint64_t type;

	if (!ss_memory_read_u64(copied, semaphore - ENTRY_MUTEX, &mutex) ||
	    !ss_python_type_of(memory, mutex - LOCK_MUTEX, &type) ||
	    !ss_python_type_name(memory, type, name))
		return false;
	bool recursive = strcmp(name, "_thread.RLock") == 0;
	if ((!recursive && strcmp(name, "_thread.lock") != 0) ||
	    !ss_memory_read(memory, mutex - LOCK_MUTEX, bytes, sizeof(bytes)) ||
	    !(bytes[LOCK_MUTEX] & MUTEX_LOCKED))
		return false;
	*ret = (struct ss_python_lock){ .address = mutex - LOCK_MUTEX,
					.shown = mutex,
					.semaphore = semaphore,
					.recursive = recursive,
					.certain = true };
	if (recursive)
		ret->owner_id = ss_load_u64(bytes, RLOCK_OWNER);
	return true;
}

/* From 3.13 on: the thread whose end another one waits for, whose entry has the address of the
   event. */
static bool find_join(const struct ss_runtime_process *process,
		      const struct ss_memory *copied, uint64_t semaphore,
		      struct ss_python_lock *ret)
{
	uint8_t bytes[HANDLE_IDENT];
	uint64_t event;

	if (!ss_memory_read_u64(copied, semaphore - ENTRY_MUTEX, &event) ||
	    !ss_memory_read(process->memory, event - HANDLE_IDENT, bytes,
			    sizeof(bytes)) ||
	    bytes[HANDLE_IDENT - HANDLE_STATE] != HANDLE_RUNNING)
		return false;
	*ret = (struct ss_python_lock){ .address = event,
					.shown = event,
					.semaphore = semaphore,
					.joined_id = ss_load_u64(bytes, 0) };
	return ret->joined_id &&
	       ret->joined_id == ss_load_u64(bytes, HANDLE_IDENT - HANDLE_OS);
}

/* An object on the heap, and not on the stack itself or in code. */
static bool may_be_object(const struct ss_capture *capture, uint64_t address, uint64_t sp)
{
	if (address % 8 || address - sp < (uint64_t)STACK_WORDS * sizeof(address))
		return false;
	const struct ss_area *area = ss_capture_find_area(capture, address);
	return area && (area->prot & PROT_WRITE) && area->module < 0;
}

/* The lock that a thread waits for: the function that waits has the object, and its callees save
   the registers on the stack. */
static bool find_lock(const struct ss_runtime_process *process,
		      const struct ss_memory *copied,
		      const struct ss_capture_thread *thread, uint64_t semaphore,
		      struct ss_python_lock *ret)
{
	const uint64_t sp = ss_regs_sp(process->capture->arch, &thread->regs);
	uint64_t word;

	for (unsigned i = 0; i < STACK_WORDS; i++) {
		if (!ss_memory_read_u64(copied, sp + i * sizeof(word), &word))
			return false;
		if (may_be_object(process->capture, word, sp) &&
		    read_lock(process->memory, word, semaphore, ret))
			return true;
	}
	return false;
}

/* Semaphores that were looked at, of locks or not: native threads of a pool wait for the same
   one, and so do threads for the global interpreter lock. */
struct semaphores {
	uint64_t addresses[SEMAPHORES_MAX];
	size_t count;
};

static bool is_known(const struct semaphores *known, uint64_t address)
{
	return ss_any(known->count, i, known->addresses[i] == address);
}

size_t ss_python_locks_find(const struct ss_runtime_process *process,
			    const struct ss_python_layout *layout,
			    const struct ss_memory *copied, struct ss_python_lock *ret,
			    size_t max)
{
	const struct ss_capture *capture = process->capture;
	const struct places *at = find_places(layout);
	struct semaphores known;
	size_t count = 0;

	if (!at)
		return 0;
	known.count = 0;
	for (size_t i = 0;
	     i < capture->threads.count && count < max && known.count < SEMAPHORES_MAX;
	     i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		struct ss_futex futex;
		if (!ss_futex_parse(&thread->syscall, &futex) ||
		    is_known(&known, futex.address))
			continue;
		known.addresses[known.count++] = futex.address;
		struct ss_python_lock *lock = &ret[count];
		bool found = (at->minor >= 13 &&
			      find_parked(process, copied, futex.address, lock)) ||
			     (!at->has_mutex &&
			      find_lock(process, copied, thread, futex.address, lock));
		if (!found &&
		    (at->minor < 13 || !find_join(process, copied, futex.address, lock)))
			continue;
		ret[count++].waiter = thread;
	}
	return count;
}

/* Whether an object is a weak reference to another one: a type that C code defines. */
static bool refers_weakly(const struct ss_memory *memory, uint64_t reference,
			  uint64_t object)
{
	char name[SS_PYTHON_TYPE_NAME_MAX];
	uint64_t found;
	uint64_t type;

	return ss_memory_read_u64(memory, reference + WEAK_OBJECT, &found) &&
	       found == object && ss_python_type_of(memory, reference, &type) &&
	       ss_python_type_name(memory, type, name) &&
	       (strcmp(name, "weakref") == 0 ||
		strcmp(name, "weakref.ReferenceType") == 0);
}

void ss_python_joins_find(const struct ss_memory *memory,
			  const struct ss_python_layout *layout, uint64_t state,
			  const struct ss_capture_thread *thread,
			  struct ss_python_lock *locks, size_t count)
{
	const struct places *at = find_places(layout);
	uint64_t reference;

	if (!at || !at->state_on_delete ||
	    !ss_memory_read_u64(memory, state + at->state_on_delete, &reference) ||
	    reference == 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (!locks[i].recursive &&
		    refers_weakly(memory, reference, locks[i].address))
			locks[i].joined = thread;
	}
}

/* With statements ------------------------------------------------------------- */

/* What a function is named, or refers to by its name. */
struct names {
	bool release; /* or __exit__: a lock may be released */
	bool acquire; /* as code does that has released a lock before */
	bool enter;   /* __enter__ does so, too */
};

struct search {
	const struct ss_memory *memory;
	const struct ss_python_layout *layout;
	const struct places *places;
	const struct ss_capture_thread *thread;
	struct ss_python_lock *locks;
	size_t count;
	uint64_t *work_left;
	/* The frames from the innermost one up to here may have released a lock */
	bool may_release;
	/* What these frames refer to: those inside of the current one, and that one. codes:
	   those for which that was not looked up yet; the last one is the current one. */
	struct names inside;
	struct names current;
	uint64_t codes[CODES_MAX];
	size_t code_count;
};

/* False: there is no more work to be done for this process. */
static bool take_work(const struct search *search, uint64_t work)
{
	*search->work_left -= SS_MIN(*search->work_left, work);
	return *search->work_left > 0;
}

static bool read_bytes_size(const struct ss_memory *memory, uint64_t address,
			    uint64_t *ret)
{
	return ss_python_has_type(memory, address, "bytes") &&
	       ss_memory_read_u64(memory, address + OBJECT_SIZE, ret);
}

static void add_names(struct names *names, struct names more)
{
	names->release |= more.release;
	names->acquire |= more.acquire;
	names->enter |= more.enter;
}

static bool read_name(const struct search *search, uint64_t address, struct names *ret)
{
	char text[4 * SS_PYTHON_NAME_MAX + 1];
	uint64_t name;

	if (!ss_memory_read_u64(search->memory, address, &name) ||
	    !ss_python_string(search->layout, search->memory, name, text))
		return false;
	add_names(ret, (struct names){ .release = strstr(text, "release") ||
						  strcmp(text, "__exit__") == 0,
				       .acquire = strstr(text, "acquire"),
				       .enter = strcmp(text, "__enter__") == 0 });
	return true;
}

static struct names read_names(const struct search *search, uint64_t code)
{
	struct names ret = {};
	uint64_t names;
	uint64_t count;

	if (!ss_memory_read_u64(search->memory, code + search->places->code_names,
				&names) ||
	    !ss_python_has_type(search->memory, names, "tuple") ||
	    !ss_memory_read_u64(search->memory, names + OBJECT_SIZE, &count) ||
	    count > NAMES_MAX ||
	    !read_name(search, code + search->layout->code_name, &ret))
		return (struct names){ .release = true };
	const uint64_t items =
		names + (search->places->minor >= 14 ? TUPLE_ITEMS_14 : TUPLE_ITEMS);
	for (uint64_t i = 0; i < count && !ret.release; i++) {
		if (!take_work(search, NAME_WORK) ||
		    !read_name(search, items + i * 8, &ret))
			ret.release = true;
	}
	return ret;
}

static void look_up_names(struct search *search)
{
	for (size_t i = 0; i < search->code_count && !search->inside.release; i++) {
		add_names(&search->inside, search->current);
		search->current = read_names(search, search->codes[i]);
	}
	search->code_count = 0;
}

/* Whether the thread waits for another one to end, in the function of threading.Thread that
   would release the lock after that. */
static bool is_joining(const struct search *search, uint64_t code)
{
	char text[4 * SS_PYTHON_NAME_MAX + 1];
	struct ss_futex futex;
	uint64_t name;
	bool joins = false;

	if (!ss_futex_parse(&search->thread->syscall, &futex))
		return false;
	for (size_t i = 0; i < search->count; i++)
		joins |= search->locks[i].joined &&
			 search->locks[i].semaphore == futex.address;
	return joins &&
	       ss_memory_read_u64(search->memory, code + search->layout->code_name,
				  &name) &&
	       ss_python_string(search->layout, search->memory, name, text) &&
	       strcmp(text, "_wait_for_tstate_lock") == 0;
}

static bool waits_for(const struct search *search, const struct ss_python_lock *lock)
{
	struct ss_futex futex;

	if (!ss_futex_parse(&search->thread->syscall, &futex))
		return false;
	/* Several threads may wait for it, each at a semaphore of its own. */
	return ss_any(search->count, i,
		      search->locks[i].address == lock->address &&
			      search->locks[i].semaphore == futex.address);
}

/* Whether the thread may have released a lock since it began the current frame's with
   statement. What has released it and returned leaves nothing; but such code acquires the lock
   again, and that is where it waits: what acquires a lock inside of the frame counts, too.
   A thread that waits for this very lock has it only if nothing but with statements
   leads there. */
static bool may_have_released(struct search *search, const struct ss_python_lock *lock)
{
	look_up_names(search);
	const struct names *inside = &search->inside;
	const struct names *current = &search->current;
	search->may_release |= inside->release || current->release || inside->acquire;
	return search->may_release ||
	       ((current->acquire || current->enter || inside->enter) &&
		waits_for(search, lock));
}

static bool is_exit(const struct ss_memory *memory, uint64_t method)
{
	char name[SS_PYTHON_TYPE_NAME_MAX];
	uint64_t text;

	return ss_memory_read_u64(memory, method, &text) &&
	       ss_memory_read_string(memory, text, name, sizeof(name)) &&
	       strcmp(name, "__exit__") == 0;
}

/* The object of a with statement: its __exit__ is on the stack of the frame, from 3.14 on the
   method of the type, and then the object. False: __exit__ is not written in C. */
static bool find_self(const struct search *search, uint64_t slot, uint64_t *ret)
{
	const struct ss_memory *memory = search->memory;
	const uint64_t mask = search->layout->frame_code_mask;
	uint64_t function;
	uint64_t method;
	uint64_t owner;
	uint64_t type;

	if (!search->places->has_self)
		return ss_memory_read_u64(memory, slot, &function) &&
		       ss_python_has_type(memory, function,
					  "builtin_function_or_method") &&
		       ss_memory_read_u64(memory, function + FUNCTION_METHOD, &method) &&
		       is_exit(memory, method) &&
		       ss_memory_read_u64(memory, function + FUNCTION_SELF, ret);
	if (!ss_memory_read_u64(memory, slot - 8, &function) ||
	    !ss_memory_read_u64(memory, slot, ret))
		return false;
	function &= mask;
	*ret &= mask;
	if (!ss_python_has_type(memory, function, "method_descriptor") ||
	    !ss_memory_read_u64(memory, function + DESCRIPTOR_METHOD, &method) ||
	    !is_exit(memory, method) ||
	    !ss_memory_read_u64(memory, function + DESCRIPTOR_TYPE, &owner) ||
	    !ss_python_type_of(memory, *ret, &type))
		return false;
	/* A lock has it from its own type. */
	if (type != owner)
		*ret = 0;
	return true;
}

static void add_statement(struct search *search, uint64_t slot)
{
	uint64_t self;

	/* Functions in Python may do anything, for instance release a lock as they begin. */
	if (!find_self(search, slot, &self)) {
		search->may_release = true;
		return;
	}
	for (size_t i = 0; i < search->count; i++) {
		struct ss_python_lock *lock = &search->locks[i];
		if (lock->address != self || lock->recursive || search->may_release ||
		    may_have_released(search, lock))
			continue;
		lock->several |= lock->owner && lock->owner != search->thread;
		lock->owner = search->thread;
	}
}

/* An entry of an exception table: Objects/exception_handling_notes.txt. In units of two
   bytes. */
struct entry {
	uint64_t start;
	uint64_t size;
	uint64_t target;
	uint64_t depth;
	bool last_instruction; /* pushed, too */
};

struct table {
	uint8_t bytes[TABLE_MAX];
	size_t size;
	size_t at;
};

/* Big-endian, six bits in each byte. */
static uint64_t take_number(struct table *table)
{
	uint64_t value = 0;

	for (int i = 0; i < 6 && table->at < table->size; i++) {
		uint8_t byte = table->bytes[table->at++];
		value = value << 6 | (byte & 0x3f);
		if (!(byte & 0x40))
			break;
	}
	return value;
}

static bool find_entry(struct table *table, uint64_t unit, struct entry *ret)
{
	table->at = 0;
	while (table->at < table->size) {
		ret->start = take_number(table);
		ret->size = take_number(table);
		ret->target = take_number(table);
		ret->depth = take_number(table);
		ret->last_instruction = ret->depth & 1;
		ret->depth >>= 1;
		if (unit - ret->start < ret->size)
			return true;
	}
	return false;
}

static bool read_exceptions(const struct search *search, uint64_t code, struct table *ret)
{
	uint64_t address;
	uint64_t size;

	if (!ss_memory_read_u64(search->memory, code + search->places->code_exceptions,
				&address) ||
	    !read_bytes_size(search->memory, address, &size) || size > sizeof(ret->bytes))
		return false;
	ret->size = size;
	ret->at = 0;
	return ss_memory_read(search->memory, address + BYTES_DATA, ret->bytes, size);
}

/* From 3.11 on: the handlers of the statements around an instruction, from the innermost one on.
   Each is in the statement around its own. */
static bool add_by_table(struct search *search, uint64_t frame, const uint8_t *bytes,
			 uint64_t code)
{
	const struct ss_python_layout *layout = search->layout;
	struct table table; /* it is large, and most are short */
	uint32_t locals;
	int64_t offset;

	if (!ss_python_offset(layout, bytes, code, &offset) ||
	    !read_exceptions(search, code, &table) ||
	    !ss_memory_read_u32(search->memory, code + search->places->code_locals,
				&locals) ||
	    locals > STACK_MAX)
		return false;
	uint64_t unit = (uint64_t)offset / 2;
	for (int i = 0; offset >= 0; i++) {
		uint8_t handler[3];
		struct entry entry;
		bool found = find_entry(&table, unit, &entry);
		if (!take_work(search, table.at))
			return false;
		if (!found)
			break;
		if (i == STATEMENTS_MAX || entry.depth > STACK_MAX ||
		    !ss_memory_read(search->memory,
				    code + layout->code_bytes + 2 * entry.target, handler,
				    sizeof(handler)))
			return false;
		if (handler[0] == search->places->push &&
		    handler[2] == search->places->exit) {
			if (!entry.last_instruction ||
			    entry.depth < 1U + search->places->has_self)
				return false;
			add_statement(search, frame + search->places->frame_values +
						      8 * (locals + entry.depth - 1));
		}
		/* It may be that of an object that is written in Python. */
		if (search->places->instrumented && entry.last_instruction &&
		    handler[0] >= search->places->instrumented)
			search->may_release = true;
		unit = entry.target;
	}
	return true;
}

/* To 3.10: PyTryBlock. A frame has those that it is in. */
static bool add_by_blocks(struct search *search, uint64_t frame, uint64_t code)
{
	enum { BLOCKS_MAX = 20, SETUP_FINALLY = 122 };
	struct {
		int32_t type;
		int32_t handler;
		int32_t level;
	} block;
	const struct places *at = search->places;
	const struct ss_memory *memory = search->memory;
	uint64_t bytecode;
	uint64_t values;
	uint64_t size;
	uint32_t count;

	if (!ss_memory_read_u32(memory, frame + at->frame_block_count, &count) ||
	    count > BLOCKS_MAX ||
	    !ss_memory_read_u64(memory, code + at->code_code, &bytecode) ||
	    !ss_memory_read_u64(memory, frame + at->frame_values, &values) ||
	    !read_bytes_size(memory, bytecode, &size))
		return false;
	while (count-- > 0) {
		uint8_t opcode;
		if (!ss_memory_read(memory,
				    frame + at->frame_blocks + count * sizeof(block),
				    &block, sizeof(block)))
			return false;
		if (block.type != SETUP_FINALLY)
			continue;
		uint64_t handler = (uint32_t)block.handler;
		handler *= at->handler_in_units ? 2 : 1;
		if (handler >= size || block.level < 0 || block.level > STACK_MAX ||
		    !ss_memory_read(memory, bytecode + BYTES_DATA + handler, &opcode, 1))
			return false;
		if (opcode != at->exit)
			continue;
		if (block.level == 0)
			return false;
		add_statement(search, values + 8 * ((uint64_t)block.level - 1));
	}
	return true;
}

static bool search_frame(struct search *search, uint64_t address, const uint8_t *bytes,
			 bool innermost)
{
	const struct ss_python_layout *layout = search->layout;
	uint64_t code = ss_python_frame_code(layout, bytes);

	if (!ss_python_has_type(search->memory, code, "code"))
		return false;
	if (innermost && is_joining(search, code))
		return true;
	if (search->code_count < CODES_MAX)
		search->codes[search->code_count++] = code;
	else
		search->may_release = true;
	return layout->frames == SS_PYTHON_COUNT ?
		       add_by_blocks(search, address, code) :
		       add_by_table(search, address, bytes, code);
}

/* The innermost frame of a thread state. */
static bool find_frame(const struct search *search, uint64_t state, uint64_t *ret)
{
	const struct ss_python_layout *layout = search->layout;

	return ss_memory_read_u64(search->memory, state + layout->thread_frame, ret) &&
	       (!layout->has_cframe ||
		ss_memory_read_u64(search->memory, *ret + layout->cframe_frame, ret));
}

static void search_frames(struct search *search, uint64_t state)
{
	enum { OWNER_SHIM = 3 };
	const struct ss_python_layout *layout = search->layout;
	uint8_t bytes[SS_PYTHON_HEADER_MAX];
	bool innermost = true;
	uint64_t frame;

	if (!find_frame(search, state, &frame))
		return;
	for (int i = 0; frame && frame % 8 == 0 && !search->may_release && i < FRAMES_MAX;
	     i++) {
		if (!ss_memory_read(search->memory, frame, bytes, layout->frame_size))
			return;
		bool shim = layout->frames == SS_PYTHON_SHIM &&
			    bytes[layout->frame_entry] >= OWNER_SHIM;
		if (!shim && !search_frame(search, frame, bytes, innermost))
			return;
		innermost &= shim;
		frame = ss_load_u64(bytes, layout->frame_previous);
	}
}

void ss_python_locks_search(const struct ss_memory *memory,
			    const struct ss_python_layout *layout, uint64_t state,
			    const struct ss_capture_thread *thread,
			    struct ss_python_lock *locks, size_t count,
			    uint64_t *work_left)
{
	struct search search = { .memory = memory,
				 .layout = layout,
				 .places = find_places(layout),
				 .thread = thread,
				 .locks = locks,
				 .count = count,
				 .work_left = work_left };

	if (search.places && *work_left > 0)
		search_frames(&search, state);
	/* Another thread may own what is owned here. */
	for (size_t i = 0; *work_left == 0 && i < count; i++)
		locks[i].several = true;
}
