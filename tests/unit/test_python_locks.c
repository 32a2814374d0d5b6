/*
 * Locks of CPython 3.14 in memory that is made up: a Lock and an RLock, as threading has them, the
 * entries of threads that wait for them, and the frame of a with statement.
 */
#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "data/capture.h"
#include "data/futex.h"
#include "runtime/python/python.h"

enum {
	BASE = 0x10000,
	SIZE = 0x4000,
	STACK_BASE = 0x80000,
	STACK_SIZE = 0x400,
	/* Addresses of the heap */
	LOCK = BASE + 0x100,
	RLOCK = BASE + 0x200,
	LOCK_TYPE = BASE + 0x400,
	RLOCK_TYPE = BASE + 0x500,
	OTHER_TYPE = BASE + 0x600,
	CODE_TYPE = BASE + 0x700,
	TUPLE_TYPE = BASE + 0x800,
	BYTES_TYPE = BASE + 0x900,
	STRING_TYPE = BASE + 0xa00,
	DESCRIPTOR_TYPE = BASE + 0xb00,
	STATE = BASE + 0xc00, /* two of them */
	FRAME = BASE + 0xe00,
	CODE = BASE + 0x1000,
	NAMES = BASE + 0x1200,
	NAME = BASE + 0x1300,
	EXCEPTIONS = BASE + 0x1400,
	EXIT = BASE + 0x1500,
	METHOD = BASE + 0x1580,
	TEXT = BASE + 0x1600,
	LAST = BASE + SIZE - 0x20, /* less than an object follows */
	/* In structs */
	CODE_BYTES = 200,
	MUTEX = 16, /* in either lock */
	OWNER = 24,
	LEVEL = 32,
	ENTRY_ADDRESS = 8, /* of the mutex, in an entry */
	ENTRY_SEMAPHORE = 16,
	/* Values of a mutex */
	LOCKED = 1,
	PARKED = 2, /* threads wait */
	THREAD_ID = 0x7123,
	LOCKS_MAX = 8,
};

/* An exception table: instructions 2 to 11 are in a with statement, whose handler is 20, and which
   has two values on the stack: __exit__ and the lock. */
enum { INSTRUCTION = 5, HANDLER = 20, DEPTH = 2, LAST_INSTRUCTION = 1 };
static const uint8_t exceptions[] = { 0x80 | 2, 10, HANDLER,
				      DEPTH << 1 | LAST_INSTRUCTION };
enum { PUSH_EXC_INFO = 32, WITH_EXCEPT_START = 43 };

static const struct ss_python_layout layout = {
	.minor = 14,
	.frames = SS_PYTHON_SHIM,
	.lines = SS_PYTHON_LOCATIONS,
	.thread_frame = 72,
	.frame_previous = 8,
	.frame_code_mask = ~UINT64_C(3),
	.frame_instruction = 56,
	.frame_entry = 74,
	.frame_size = 88,
	.frame_stack = 64,
	.frame_locals = 80,
	.code_name = 120,
	.code_bytes = CODE_BYTES,
	.code_size = CODE_BYTES,
	.ascii = 40,
	.compact = 56,
};

static uint8_t heap[SIZE];
static uint8_t stack[STACK_SIZE];

static size_t read_heap(const struct ss_memory *memory, uint64_t address, void *ret,
			size_t size)
{
	(void)memory;
	return unit_copy(ret, size, heap, SIZE, address - BASE);
}

static size_t read_stack(const struct ss_memory *memory, uint64_t address, void *ret,
			 size_t size)
{
	(void)memory;
	return unit_copy(ret, size, stack, STACK_SIZE, address - STACK_BASE);
}

static const struct ss_memory memory = { .read = read_heap };
static const struct ss_memory copied = { .read = read_stack };

static void put(uint64_t address, uint64_t value)
{
	memcpy(heap + (address - BASE), &value, sizeof(value));
}

static void put_bytes(uint64_t address, const void *bytes, size_t size)
{
	memcpy(heap + (address - BASE), bytes, size);
}

static void put_type(uint64_t address, const char *name)
{
	put(address + 24, address + 0x80);
	put_bytes(address + 0x80, name, strlen(name) + 1);
}

static void put_object(uint64_t address, uint64_t type)
{
	put(address, 1);
	put(address + 8, type);
}

static void put_string(uint64_t address, const char *text)
{
	put_object(address, STRING_TYPE);
	put(address + 16, strlen(text));
	put(address + 32, 1U << 2 | 1U << 5 | 1U << 6);
	put_bytes(address + 40, text, strlen(text));
}

/* The function "holds", in "with lock:", which refers to one name. */
static void put_frame(const char *name)
{
	put(STATE + layout.thread_frame, FRAME);
	put(FRAME, CODE | 1); /* with a tag */
	put(FRAME + layout.frame_previous, 0);
	put(FRAME + layout.frame_instruction, CODE + CODE_BYTES + 2 * INSTRUCTION);
	put(FRAME + layout.frame_locals, 0); /* a variable, then the stack: */
	put(FRAME + layout.frame_locals + 8, EXIT | 1);
	put(FRAME + layout.frame_locals + 16, LOCK | 1);
	put_object(CODE, CODE_TYPE);
	put(CODE + 32, NAMES);
	put(CODE + 40, EXCEPTIONS);
	put(CODE + 72, 1); /* variables */
	put_string(NAME, "holds");
	put(CODE + layout.code_name, NAME);
	heap[CODE + CODE_BYTES + 2 * HANDLER - BASE] = PUSH_EXC_INFO;
	heap[CODE + CODE_BYTES + 2 * HANDLER + 2 - BASE] = WITH_EXCEPT_START;
	put_object(NAMES, TUPLE_TYPE);
	put(NAMES + 16, 1);
	put(NAMES + 32, NAME + 0x80);
	put_string(NAME + 0x80, name);
	put_object(EXCEPTIONS, BYTES_TYPE);
	put(EXCEPTIONS + 16, sizeof(exceptions));
	put_bytes(EXCEPTIONS + 32, exceptions, sizeof(exceptions));
	put_object(EXIT, DESCRIPTOR_TYPE);
	put(EXIT + 16, LOCK_TYPE);
	put(EXIT + 40, METHOD);
	put(METHOD, TEXT);
	put_bytes(TEXT, "__exit__", sizeof("__exit__"));
}

static struct ss_capture_thread threads[3];
static struct ss_capture capture;

static uint64_t entry_of(size_t thread)
{
	return STACK_BASE + 0x100 * thread;
}

/* A thread is in futex(FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG) at the semaphore of its entry. */
static void set_waiting(size_t thread, uint64_t mutex)
{
	memcpy(stack + 0x100 * thread + ENTRY_ADDRESS, &mutex, sizeof(mutex));
	threads[thread].syscall = (struct ss_syscall){
		.id = SS_SYS_FUTEX,
		.args = { entry_of(thread) + ENTRY_SEMAPHORE,
			  FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG },
	};
}

static void set_mutex(uint64_t lock, uint8_t value)
{
	heap[lock + MUTEX - BASE] = value;
}

/* A Lock and an RLock that nobody has; nobody waits. */
static int set_up(void **state)
{
	(void)state;
	memset(heap, 0, sizeof(heap));
	memset(stack, 0, sizeof(stack));
	memset(threads, 0, sizeof(threads));
	put_type(LOCK_TYPE, "_thread.lock");
	put_type(RLOCK_TYPE, "_thread.RLock");
	put_type(OTHER_TYPE, "_queue.SimpleQueue");
	put_type(CODE_TYPE, "code");
	put_type(TUPLE_TYPE, "tuple");
	put_type(BYTES_TYPE, "bytes");
	put_type(STRING_TYPE, "str");
	put_type(DESCRIPTOR_TYPE, "method_descriptor");
	put_object(LOCK, LOCK_TYPE);
	put_object(RLOCK, RLOCK_TYPE);
	put_frame("print");
	for (size_t i = 0; i < SS_ARRAY_SIZE(threads); i++)
		threads[i].tid = (pid_t)(4711 + i);
	capture.threads.items = threads;
	capture.threads.count = SS_ARRAY_SIZE(threads);
	return 0;
}

static size_t find(struct ss_python_lock *ret, size_t max)
{
	const struct ss_runtime_process process = { .capture = &capture,
						    .memory = &memory };

	return ss_python_locks_find(&process, &layout, &copied, ret, max);
}

static size_t count(void)
{
	struct ss_python_lock locks[LOCKS_MAX];

	return find(locks, LOCKS_MAX);
}

/* The one that thread 0 waits for, after thread 1, whose state it is, was searched. */
static struct ss_python_lock find_owner(void)
{
	struct ss_python_lock lock = {};
	uint64_t work_left = SS_PYTHON_LOCKS_WORK;

	set_mutex(LOCK, LOCKED | PARKED);
	set_waiting(0, LOCK + MUTEX);
	assert_int_equal(find(&lock, 1), 1);
	ss_python_locks_search(&memory, &layout, STATE, &threads[1], &lock, 1,
			       &work_left);
	return lock;
}

TEST_WITH(test_held_lock, set_up, NULL)
{
	struct ss_python_lock lock = find_owner();

	assert_int_equal(lock.address, LOCK);
	assert_int_equal(lock.shown, LOCK + MUTEX);
	assert_int_equal(lock.semaphore, entry_of(0) + ENTRY_SEMAPHORE);
	assert_true(lock.certain && !lock.recursive && !lock.several);
	assert_ptr_equal(lock.owner, &threads[1]);
}

TEST_WITH(test_held_rlock, set_up, NULL)
{
	struct ss_python_lock lock = {};

	set_mutex(RLOCK, LOCKED | PARKED);
	put(RLOCK + OWNER, THREAD_ID);
	put(RLOCK + LEVEL, 3);
	set_waiting(2, RLOCK + MUTEX);
	assert_int_equal(find(&lock, 1), 1);
	assert_int_equal(lock.address, RLOCK);
	assert_int_equal(lock.shown, RLOCK + MUTEX);
	assert_int_equal(lock.semaphore, entry_of(2) + ENTRY_SEMAPHORE);
	assert_int_equal(lock.owner_id, THREAD_ID);
	assert_true(lock.certain && lock.recursive);
	/* It was handed to the thread that waits, which is about to write that it has it. */
	put(RLOCK + OWNER, 0);
	assert_int_equal(find(&lock, 1), 1);
	assert_int_equal(lock.owner_id, 0);
}

/* It was released, and the thread that waits is about to be woken. */
TEST_WITH(test_unlocked, set_up, NULL)
{
	static const uint8_t values[] = { 0, PARKED };

	for (size_t i = 0; i < SS_ARRAY_SIZE(values); i++) {
		set_mutex(LOCK, values[i]);
		set_mutex(RLOCK, values[i]);
		set_waiting(0, LOCK + MUTEX);
		assert_int_equal(count(), 0);
		set_waiting(0, RLOCK + MUTEX);
		put(RLOCK + OWNER, THREAD_ID); /* of before */
		assert_int_equal(count(), 0);
	}
}

/* Each has an entry, and the owner is the owner of all. */
TEST_WITH(test_waiters, set_up, NULL)
{
	struct ss_python_lock locks[LOCKS_MAX] = {};
	uint64_t work_left = SS_PYTHON_LOCKS_WORK;

	set_mutex(LOCK, LOCKED | PARKED);
	set_mutex(RLOCK, LOCKED | PARKED);
	put(RLOCK + OWNER, THREAD_ID);
	set_waiting(0, LOCK + MUTEX);
	set_waiting(1, RLOCK + MUTEX);
	set_waiting(2, LOCK + MUTEX);
	assert_int_equal(find(locks, LOCKS_MAX), 3);
	ss_python_locks_search(&memory, &layout, STATE, &threads[1], locks, 3,
			       &work_left);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(locks[i].address, i == 1 ? RLOCK : LOCK);
		assert_int_equal(locks[i].semaphore, entry_of(i) + ENTRY_SEMAPHORE);
		assert_ptr_equal(locks[i].owner, i == 1 ? NULL : &threads[1]);
	}
	assert_int_equal(find(locks, 2), 2);
	/* Two threads cannot have it: what one of them says is from another time. */
	ss_python_locks_search(&memory, &layout, STATE, &threads[0], locks, 1,
			       &work_left);
	ss_python_locks_search(&memory, &layout, STATE, &threads[1], locks, 1,
			       &work_left);
	assert_true(locks[0].several);
	/* Nor does a search count that did not look at all threads. */
	memset(locks, 0, sizeof(locks));
	assert_int_equal(find(locks, LOCKS_MAX), 3);
	work_left = 1;
	ss_python_locks_search(&memory, &layout, STATE, &threads[1], locks, 3,
			       &work_left);
	assert_true(locks[0].several);
}

/* Entries that refer to nothing, to other objects, or to a part of one. */
TEST_WITH(test_torn_entry, set_up, NULL)
{
	static const uint64_t mutexes[] = {
		0,	     MUTEX,    LOCK + MUTEX + 1, LOCK + MUTEX + 4, LOCK,
		BASE + SIZE, BASE - 8, UINT64_MAX,	 UINT64_MAX - 7,   LAST + MUTEX,
	};

	set_mutex(LOCK, LOCKED);
	put_object(LAST, LOCK_TYPE);
	set_mutex(LAST, LOCKED);
	for (size_t i = 0; i < SS_ARRAY_SIZE(mutexes); i++) {
		set_waiting(0, mutexes[i]);
		if (count() != 0)
			fail_msg("a lock is found at 0x%llx",
				 (unsigned long long)mutexes[i]);
	}
	set_waiting(0, LOCK + MUTEX);
	assert_int_equal(count(), 1);
	/* The entry was not copied. */
	threads[0].syscall.args[0] = STACK_BASE + STACK_SIZE + ENTRY_SEMAPHORE;
	assert_int_equal(count(), 0);
	threads[0].syscall.args[0] = 4; /* the word before it would be before 0 */
	assert_int_equal(count(), 0);
	/* The thread waits for nothing. */
	set_waiting(0, LOCK + MUTEX);
	threads[0].syscall.args[1] = FUTEX_WAKE;
	assert_int_equal(count(), 0);
}

/* The object is freed, and its memory reused. */
TEST_WITH(test_torn_lock, set_up, NULL)
{
	static const uint64_t torn[] = { 0, OTHER_TYPE, LOCK_TYPE + 1, BASE + SIZE,
					 UINT64_MAX - 7 };

	set_mutex(LOCK, LOCKED);
	set_waiting(0, LOCK + MUTEX);
	for (size_t i = 0; i < SS_ARRAY_SIZE(torn); i++) {
		put(LOCK + 8, torn[i]);
		assert_int_equal(count(), 0);
	}
	put(LOCK + 8, LOCK_TYPE);
	assert_int_equal(count(), 1);
	put(LOCK_TYPE + 24, BASE + SIZE); /* its name */
	assert_int_equal(count(), 0);
}

/* What the frame has is not valid, or not that of a with statement of the lock: no owner. */
TEST_WITH(test_torn_frame, set_up, NULL)
{
	const uint64_t values = FRAME + layout.frame_locals;
	const struct {
		uint64_t address;
		uint64_t value;
	} changes[] = {
		{ STATE + layout.thread_frame, 0 },
		{ STATE + layout.thread_frame, FRAME + 4 },
		{ STATE + layout.thread_frame, LAST },
		{ FRAME, OTHER_TYPE },
		{ FRAME, 0 },
		{ FRAME + layout.frame_instruction, CODE + CODE_BYTES + 3 },
		{ FRAME + layout.frame_instruction, CODE + CODE_BYTES + 2 * 12 },
		{ FRAME + layout.frame_instruction, CODE },
		{ values + 8, 0 },
		{ values + 8, LOCK },
		{ values + 16, 0 },
		{ values + 16, RLOCK },
		{ EXIT + 16, RLOCK_TYPE },
		{ EXIT + 40, BASE + SIZE },
		{ METHOD, TEXT + 2 },
		{ CODE + 8, OTHER_TYPE },
		{ CODE + 32, 0 },
		{ CODE + 40, NAMES },
		{ CODE + 40, BASE + SIZE - 8 },
		{ CODE + 72, UINT32_MAX },
		{ CODE + 72, 0 },
		{ CODE + layout.code_name, 0 },
		{ NAMES + 16, UINT64_MAX },
		{ NAMES + 32, 0 },
		{ EXCEPTIONS + 16, 0 },
		{ EXCEPTIONS + 16, UINT64_MAX },
		{ EXCEPTIONS + 32, UINT64_MAX },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(changes); i++) {
		set_up(state);
		put(changes[i].address, changes[i].value);
		if (find_owner().owner)
			fail_msg("change %zu: there is an owner", i);
	}
	/* The frame is one of C code. */
	set_up(state);
	heap[FRAME + layout.frame_entry - BASE] = 3;
	assert_null(find_owner().owner);
	/* The handler is another one. */
	set_up(state);
	heap[CODE + CODE_BYTES + 2 * HANDLER + 2 - BASE] = 1;
	assert_null(find_owner().owner);
	/* The function may have released the lock. */
	set_up(state);
	put_frame("release");
	assert_null(find_owner().owner);
	set_up(state);
	assert_ptr_equal(find_owner().owner, &threads[1]);
}
