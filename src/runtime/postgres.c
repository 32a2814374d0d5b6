#include "runtime/runtimes.h"

#include <string.h>

#include "base/cleanup.h"
#include "data/capture.h"
#include "runtime/runtime.h"

/*
 * PGPROC (src/include/storage/proc.h) differs between versions, LOCK and PROCLOCK (lock.h) are the
 * same from 9.6 to 18. So PGPROC is searched: for the pointers to the LOCK that the session waits for
 * and to its own PROCLOCK, which points back to both; and for its own pid. What it points to is checked in
 * the same way: each PROCLOCK in the list of a LOCK points to it.
 */
enum {
	PROC_WORDS = 160, /* of PGPROC that are searched: waitLock is before 400 bytes */
	MODES = 8,
	LIST_MAX = 4096, /* sessions that hold a lock, or wait for it */
	/* offsets */
	LOCK_HOLDERS = 24, /* list of PROCLOCK */
	LOCK_WAITERS = 40, /* list of PGPROC */
	LOCK_SIZE = 56,
	HOLDER_LINK = 32, /* of PROCLOCK, in that list */
	WORD = 8,
};

/* src/backend/storage/lmgr/lock.c: LockConflicts, by mode; bit n is mode n */
static const uint32_t conflicts[MODES + 1] = {
	0, 0x100, 0x180, 0x1e0, 0x1f0, 0x1d8, 0x1f8, 0x1fc, 0x1fe,
};

struct proc_lock {
	uint64_t lock;
	uint64_t proc;
	uint64_t
		group; /* the leader of its parallel workers, which do not wait for each other */
	uint32_t held; /* bits of modes */
	uint32_t release;
	uint64_t previous;
	uint64_t next; /* in the list of the lock */
};

struct session {
	const struct ss_memory *memory;
	uint64_t proc; /* its PGPROC */
	uint64_t words[PROC_WORDS];
	size_t wait; /* the word that is waitLock; then follow waitProcLock and the mode */
	size_t pid;  /* the 32-bit word that is its pid */
	struct proc_lock own;
};

static uint32_t half(const uint64_t *words, size_t index)
{
	uint32_t value;

	memcpy(&value, (const uint8_t *)words + index * sizeof(value), sizeof(value));
	return value;
}

static bool read_proc_lock(const struct session *s, uint64_t address,
			   struct proc_lock *ret)
{
	return address % WORD == 0 &&
	       ss_memory_read(s->memory, address, ret, sizeof(*ret));
}

/* Finds the words of its own PGPROC. False: it does not wait for a lock. */
static bool find_words(struct session *s, pid_t pid, const struct ss_area *shared)
{
	bool waits = false;

	for (size_t i = 0; i + 2 < PROC_WORDS && !waits; i++) {
		uint64_t lock = s->words[i];
		uint64_t proc_lock = s->words[i + 1];
		waits = lock >= shared->start && lock < shared->end &&
			proc_lock >= shared->start && proc_lock < shared->end &&
			read_proc_lock(s, proc_lock, &s->own) && s->own.lock == lock &&
			s->own.proc == s->proc;
		s->wait = i;
	}
	for (s->pid = 0; s->pid < (size_t)2 * PROC_WORDS; s->pid++) {
		if (half(s->words, s->pid) == (uint32_t)pid)
			return waits;
	}
	return false;
}

/* The mode in which a session waits; 0: none. */
static unsigned mode_of(const struct session *s, const uint64_t *words)
{
	uint32_t mode = half(words, 2 * (s->wait + 2));

	return words[s->wait] == s->own.lock && mode <= MODES ? mode : 0;
}

static pid_t pid_of(const struct session *s, const uint64_t *words)
{
	uint32_t pid = half(words, s->pid);

	return pid <= INT32_MAX ? (pid_t)pid : 0;
}

/* The first session that holds the lock in a mode that conflicts. *own: whether the list is valid, and has
   this session. */
static pid_t find_holder(const struct session *s, unsigned mode, bool *own)
{
	const uint64_t head = s->own.lock + LOCK_HOLDERS;
	uint64_t links[2];
	uint64_t words[PROC_WORDS];
	pid_t found = 0;

	if (!ss_memory_read(s->memory, head, links, sizeof(links)))
		return 0;
	uint64_t at = links[1];
	bool listed = false;
	for (int i = 0; i < LIST_MAX && at != head; i++) {
		struct proc_lock holder;
		if (!read_proc_lock(s, at - HOLDER_LINK, &holder) ||
		    holder.lock != s->own.lock)
			return 0;
		listed |= holder.proc == s->proc;
		if (!found && holder.group != s->own.group &&
		    (holder.held & conflicts[mode]) != 0 &&
		    ss_memory_read(s->memory, holder.proc, words, sizeof(words)))
			found = pid_of(s, words);
		at = holder.next;
	}
	*own = listed && at == head;
	return *own ? found : 0;
}

/* The first session before this one that waits for the lock in a mode that conflicts. */
static pid_t find_earlier_waiter(const struct session *s, unsigned mode)
{
	const uint64_t head = s->own.lock + LOCK_WAITERS;
	uint64_t links[2];
	uint64_t words[PROC_WORDS];

	if (!ss_memory_read(s->memory, head, links, sizeof(links)))
		return 0;
	for (int i = 0; i < LIST_MAX && links[1] != head && links[1] != s->proc; i++) {
		if (!ss_memory_read(s->memory, links[1], words, sizeof(words)))
			return 0;
		unsigned other = mode_of(s, words);
		if (other == 0)
			return 0; /* the list has changed */
		if (conflicts[mode] & 1U << other)
			return pid_of(s, words);
		memcpy(links, words, sizeof(links)); /* they come first */
	}
	return 0;
}

bool ss_postgres_read_lock(const struct ss_memory *memory, uint64_t proc, pid_t pid,
			   const struct ss_area *shared, struct ss_postgres_lock *ret)
{
	struct session s = { .memory = memory, .proc = proc };
	bool listed = false;

	if (proc % WORD != 0 || !ss_memory_read(memory, proc, s.words, sizeof(s.words)) ||
	    !find_words(&s, pid, shared))
		return false;
	unsigned mode = mode_of(&s, s.words);
	pid_t holder = mode ? find_holder(&s, mode, &listed) : 0;
	if (!listed) /* it is not such a list, or it has changed */
		return false;
	if (!holder)
		holder = find_earlier_waiter(&s, mode);
	*ret = (struct ss_postgres_lock){ .address = s.own.lock, .holder = holder };
	return holder > 0;
}

static int32_t find_program(const struct ss_capture *capture)
{
	const char *path = capture->process.executable;
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!slash || strcmp(slash + 1, "postgres") != 0)
		return -1;
	for (size_t i = 0; i < capture->modules.count; i++) {
		if (strcmp(capture->modules.items[i]->pub.path, path) == 0)
			return (int32_t)i;
	}
	return -1;
}

bool ss_postgres_find_lock(const struct ss_runtime_process *process,
			   struct ss_postgres_lock *ret)
{
	static const char *const names[] = { "MyProc" };
	const struct ss_process *own = &process->capture->process;
	const struct ss_memory *memory = process->memory;
	const struct ss_area *shared = NULL;
	struct ss_elf_symbol symbol;
	uint64_t bias;
	uint64_t proc;

	int32_t program = find_program(process->capture);
	/* Ids are those of its pid namespace. */
	if (program >= 0 && (!own->inner_pid || own->inner_pid == own->pid) &&
	    ss_module_symbols_find(process, program, names, SS_ARRAY_SIZE(names), NULL,
				   &symbol, &bias) &&
	    ss_memory_read_u64(memory, symbol.address + bias, &proc))
		shared = ss_capture_find_area(process->capture, proc);
	return shared && ss_postgres_read_lock(memory, proc, own->pid, shared, ret);
}
