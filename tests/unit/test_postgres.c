/*
 * Locks in the shared memory of a made-up server of PostgreSQL, whose PGPROC has offsets of its own.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/runtimes.h"

enum {
	START = 0x10000,
	SIZE = 32 * 1024,
	LOCK = START + 0x100,
	SESSIONS = 4,
	PROCS = START + 0x1000, /* one each 2 KiB */
	PROC_SIZE = 0x800,
	HOLDERS = START + 0x4000, /* one PROCLOCK each 0x100 bytes */
	FIRST_PID = 4711,
	WAIT = 104, /* offset of waitLock */
	SHARE = 5,
	EXCLUSIVE = 7,
};

struct server {
	struct ss_memory memory; /* first */
	uint8_t bytes[SIZE];
};

static const struct ss_area area = { .start = START, .end = START + SIZE };

static size_t read_bytes(const struct ss_memory *memory, uint64_t address, void *bytes,
			 size_t size)
{
	const struct server *server = (const struct server *)memory;

	return unit_copy(bytes, size, server->bytes, SIZE, address - START);
}

static void set_word(struct server *server, uint64_t address, uint64_t value)
{
	memcpy(server->bytes + (address - START), &value, sizeof(value));
}

static void set_half(struct server *server, uint64_t address, uint32_t value)
{
	memcpy(server->bytes + (address - START), &value, sizeof(value));
}

static uint64_t proc(int session)
{
	return PROCS + (uint64_t)session * PROC_SIZE;
}

static uint64_t holder(int session)
{
	return HOLDERS + (uint64_t)session * 0x100;
}

/* Links the addresses in both directions, to and from the head. */
static void link_all(struct server *server, uint64_t head, const uint64_t *items,
		     size_t count)
{
	uint64_t before = head;

	for (size_t i = 0; i < count; i++) {
		set_word(server, before + 8, items[i]);
		set_word(server, items[i], before);
		before = items[i];
	}
	set_word(server, before + 8, head);
	set_word(server, head, before);
}

/* All sessions are in the list of the lock; none holds it, or waits. */
static struct server *make(void)
{
	struct server *server = calloc(1, sizeof(*server));
	uint64_t links[SESSIONS];

	assert_non_null(server);
	server->memory.read = read_bytes;
	for (int i = 0; i < SESSIONS; i++) {
		set_half(server, proc(i) + 60, (uint32_t)(FIRST_PID + i));
		set_word(server, holder(i), LOCK);
		set_word(server, holder(i) + 8, proc(i));
		set_word(server, holder(i) + 16, proc(i));
		links[i] = holder(i) + 32;
	}
	link_all(server, LOCK + 24, links, SESSIONS);
	link_all(server, LOCK + 40, NULL, 0);
	return server;
}

static void wait_for(struct server *server, int session, uint32_t mode)
{
	set_word(server, proc(session) + WAIT, LOCK);
	set_word(server, proc(session) + WAIT + 8, holder(session));
	set_half(server, proc(session) + WAIT + 16, mode);
}

static void hold(struct server *server, int session, uint32_t mode)
{
	set_half(server, holder(session) + 24, 1U << mode);
}

/* Whom session 0 waits for; 0: not known. */
static pid_t find(const struct server *server)
{
	struct ss_postgres_lock lock = {};

	return ss_postgres_read_lock(&server->memory, proc(0), FIRST_PID, &area, &lock) ?
		       lock.holder :
		       0;
}

TEST(test_holder)
{
	struct server *server = make();

	hold(server, 2, SHARE);
	assert_int_equal(find(server), 0); /* it does not wait */
	wait_for(server, 0, EXCLUSIVE);
	assert_int_equal(find(server), FIRST_PID + 2);
	wait_for(server, 0, SHARE); /* no conflict */
	assert_int_equal(find(server), 0);
	hold(server, 3, EXCLUSIVE);
	assert_int_equal(find(server), FIRST_PID + 3);
	/* its own worker */
	set_word(server, holder(3) + 16, proc(0));
	assert_int_equal(find(server), 0);
	free(server);
}

/* Who has asked before. */
TEST(test_queue)
{
	struct server *server = make();
	const uint64_t queue[] = { proc(1), proc(2), proc(0), proc(3) };

	link_all(server, LOCK + 40, queue, sizeof(queue) / sizeof(queue[0]));
	wait_for(server, 1, SHARE);
	wait_for(server, 2, EXCLUSIVE);
	wait_for(server, 3, EXCLUSIVE);
	wait_for(server, 0, SHARE);
	assert_int_equal(find(server), FIRST_PID + 2);
	wait_for(server, 2, SHARE);
	assert_int_equal(find(server), 0);
	free(server);
}

TEST(test_hostile)
{
	struct server *server = make();

	wait_for(server, 0, EXCLUSIVE);
	hold(server, 2, SHARE);
	/* a list that is not the lock's */
	set_word(server, holder(1), LOCK + 8);
	assert_int_equal(find(server), 0);
	set_word(server, holder(1), LOCK);
	assert_int_equal(find(server), FIRST_PID + 2);
	/* a list without an end, and one that leaves the memory */
	set_word(server, holder(1) + 40, holder(1) + 32);
	assert_int_equal(find(server), 0);
	set_word(server, holder(1) + 40, UINT64_MAX - 7);
	assert_int_equal(find(server), 0);
	/* a mode that there is not */
	wait_for(server, 0, UINT32_MAX);
	assert_int_equal(find(server), 0);
	free(server);
}
