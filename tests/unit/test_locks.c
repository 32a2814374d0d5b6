/*
 * Functions on the stack that wait, and the layouts of locks in memory.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "diagnose/lock.h"
#include "data/snapshot.h"

enum { LOCK = 0x10000, WORDS = 16 };

TEST(test_plain_names)
{
	static const char *const names[][2] = {
		{ "___pthread_mutex_lock", "pthread_mutex_lock" },
		{ "__GI___lll_lock_wait", "lll_lock_wait" },
		{ "pthread_cond_wait@@GLIBC_2.3.2", "pthread_cond_wait" },
		{ "__new_sem_wait_slow64.constprop.0", "new_sem_wait_slow64" },
		{ "futex_wait.part.12", "futex_wait" },
		{ "wait.particular", "wait.particular" },
		{ "", "" },
		{ "____", "" },
	};
	char name[20];

	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++) {
		ss_wait_function_plain_name(names[i][0], name, sizeof(name));
		assert_string_equal(name, names[i][1]);
	}
	ss_wait_function_plain_name("a_name_that_is_longer_than_that", name, 7);
	assert_string_equal(name, "a_name");
}

/* A snapshot of one thread with these functions, the innermost first. */
static struct ss_snapshot *make_stack(const char *const *names, size_t count)
{
	struct ss_snapshot *snapshot = ss_snapshot_new();
	struct ss_frame frames[8] = {};

	assert_non_null(snapshot);
	for (size_t i = 0; i < count; i++)
		frames[i] = (struct ss_frame){ .pc = i + 1, .symbol = names[i] };
	struct ss_task *thread = ss_vector_push(&snapshot->tasks[SS_TASK_THREAD]);
	assert_non_null(thread);
	thread->frame_count = count;
	assert_true(ss_snapshot_add_stack(snapshot, frames, count, SS_END_ROOT,
					  &thread->stack_id));
	return snapshot;
}

static struct ss_wait_function function_of(const char *inner, const char *middle,
					   const char *outer)
{
	const char *const names[] = { inner, middle, outer };
	struct ss_snapshot *snapshot = make_stack(names, 3);
	struct ss_wait_function found = ss_wait_function_find(
		snapshot, &snapshot->tasks[SS_TASK_THREAD].items[0]);

	ss_snapshot_free(snapshot);
	return found;
}

TEST(test_wait_functions)
{
	struct ss_wait_function found = function_of("futex_wait", "__GI___lll_lock_wait",
						    "___pthread_mutex_lock");
	assert_int_equal(found.lock_class, SS_CLASS_MUTEX);
	assert_true(found.has_symbols && !found.musl);
	/* A condition variable that takes its mutex again waits for the mutex. */
	found = function_of("__GI___lll_lock_wait", "__pthread_mutex_cond_lock",
			    "pthread_cond_wait@@GLIBC_2.3.2");
	assert_int_equal(found.lock_class, SS_CLASS_MUTEX);
	found = function_of("__timedwait", "__pthread_mutex_timedlock", "main");
	assert_int_equal(found.lock_class, SS_CLASS_MUTEX);
	assert_true(found.musl);
	found = function_of(NULL, NULL, "sem_wait");
	assert_int_equal(found.lock_class, SS_CLASS_SEMAPHORE);
	found = function_of(NULL, NULL, NULL);
	assert_false(found.has_symbols);
	found = function_of("syscall", "my_pthread_mutex_lock", "main");
	assert_int_equal(found.lock_class, SS_CLASS_UNKNOWN);
	found = function_of("syscall",
			    "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
			    "main");
	assert_int_equal(found.lock_class, SS_CLASS_RUST_MUTEX);
	found = function_of("syscall",
			    "std::sys::sync::rwlock::futex::RwLock::write_contended",
			    "main");
	assert_int_equal(found.lock_class, SS_CLASS_RUST_WRITE);
	found = function_of("syscall", "app::std::sys::Mutex::lock_contended", "main");
	assert_int_equal(found.lock_class, SS_CLASS_UNKNOWN);
}

/* A lock at LOCK, with the futex at that word of it. */
static bool read_lock(const uint32_t *words, size_t word,
		      struct ss_wait_function function, int operation,
		      struct ss_lock_state *ret)
{
	uint32_t bytes[WORDS] = {};
	const struct ss_memory_fact memory = { .address = LOCK,
					       .size = sizeof(bytes),
					       .bytes = (const uint8_t *)bytes };
	const struct ss_futex futex = { .address = LOCK + word * sizeof(*words),
					.operation = operation,
					.value = words[word] };

	memcpy(bytes, words, sizeof(bytes));
	return ss_lock_read(&memory, &ss_arch_host, &futex, &function, ret);
}

TEST(test_mutexes)
{
	const struct ss_wait_function glibc = { .lock_class = SS_CLASS_MUTEX };
	const struct ss_wait_function musl = { .lock_class = SS_CLASS_MUTEX,
					       .musl = true };
	uint32_t words[WORDS] = { 2, 0, 4711, 1, 0 };
	struct ss_lock_state lock;

	assert_true(read_lock(words, 0, glibc, FUTEX_WAIT, &lock));
	assert_int_equal(lock.owner, 4711);
	assert_int_equal(lock.type, SS_LOCK_MUTEX);
	words[4] = 128 + 2;
	assert_true(read_lock(words, 0, glibc, FUTEX_WAIT, &lock));
	assert_int_equal(lock.type, SS_LOCK_ERRORCHECK_MUTEX);
	assert_true(lock.shared);
	words[2] = 0; /* it is just being taken */
	assert_true(read_lock(words, 0, glibc, FUTEX_WAIT, &lock));
	assert_int_equal(lock.owner, 0);
	assert_int_equal(lock.unknown, SS_OWNER_CHANGING);
	words[2] = 4711;
	words[4] = 0xdeadbeef; /* not a mutex */
	assert_true(read_lock(words, 0, glibc, FUTEX_WAIT, &lock));
	assert_int_equal(lock.owner, 0);
	words[4] = 16;
	words[0] = FUTEX_WAITERS | 4712; /* robust: the futex has the owner */
	assert_true(read_lock(words, 0, glibc, FUTEX_WAIT, &lock));
	assert_int_equal(lock.owner, 4712);
	words[0] = FUTEX_OWNER_DIED;
	assert_true(read_lock(words, 0, glibc, FUTEX_WAIT, &lock));
	assert_true(lock.owner_died && lock.owner == 0);
	words[0] = FUTEX_WAITERS | 4713;
	assert_true(
		read_lock(words, 0, (struct ss_wait_function){}, FUTEX_LOCK_PI, &lock));
	assert_int_equal(lock.owner, 4713);
	words[0] = 0; /* musl: the type, then the lock */
	words[1] = FUTEX_WAITERS | 16;
	assert_true(read_lock(words, 1, musl, FUTEX_WAIT, &lock));
	assert_int_equal(lock.owner, 0);
	assert_int_equal(lock.address, LOCK);
	words[0] = 2;
	words[1] = FUTEX_WAITERS | 4714;
	assert_true(read_lock(words, 1, musl, FUTEX_WAIT, &lock));
	assert_int_equal(lock.owner, 4714);
}

TEST(test_others)
{
	uint32_t rwlock[WORDS] = { 3 | 4, 1, 3, 3, 0, 0, 4711 };
	uint32_t barrier[WORDS] = { 5, 3, 4 };
	uint32_t stream[WORDS] = { 2, 1, 0x1000, 0x7f00 };
	struct ss_lock_state lock;

	for (size_t word = 2; word < 4; word++) {
		assert_true(read_lock(
			rwlock, word,
			(struct ss_wait_function){ .lock_class = SS_CLASS_READ },
			FUTEX_WAIT_BITSET, &lock));
		assert_int_equal(lock.address, LOCK);
		assert_int_equal(lock.owner, 4711);
	}
	rwlock[0] = 7 << 3 | 2; /* seven readers, and a writer that is next */
	assert_true(read_lock(rwlock, 2,
			      (struct ss_wait_function){ .lock_class = SS_CLASS_WRITE },
			      FUTEX_WAIT_BITSET, &lock));
	assert_true(lock.owner == 0 && lock.readers == 7);
	assert_true(read_lock(barrier, 1,
			      (struct ss_wait_function){ .lock_class = SS_CLASS_BARRIER },
			      FUTEX_WAIT, &lock));
	assert_true(lock.arrived == 2 && lock.needed == 4 && lock.address == LOCK);
	assert_true(read_lock(stream, 0,
			      (struct ss_wait_function){ .lock_class = SS_CLASS_LIBC },
			      FUTEX_WAIT, &lock));
	assert_true(lock.owner_pointer == 0x7f0000001000);
	stream[1] = 0; /* glibc 2.41 counts from 0 */
	assert_true(read_lock(stream, 0,
			      (struct ss_wait_function){ .lock_class = SS_CLASS_LIBC },
			      FUTEX_WAIT, &lock));
	assert_true(lock.owner_pointer == 0x7f0000001000);
}

/* The copied memory may end anywhere. */
TEST(test_short_copies)
{
	uint8_t bytes[64];
	struct ss_lock_state lock;

	memset(bytes, 0xff, sizeof(bytes));
	for (size_t size = 0; size <= sizeof(bytes); size++) {
		for (int layout = 0; layout < SS_CLASS_COUNT; layout++) {
			const struct ss_memory_fact memory = { .address = LOCK,
							       .size = size,
							       .bytes = bytes };
			struct ss_wait_function found = {
				.lock_class = (enum ss_lock_class)layout, .musl = size % 2
			};
			for (uint64_t at = 0; at < sizeof(bytes); at += 4) {
				const struct ss_futex futex = { .address = LOCK + at };
				bool known = ss_lock_read(&memory, &ss_arch_host, &futex,
							  &found, &lock);
				assert_int_equal(known, at + 4 <= size);
			}
		}
	}
}
