#include "diagnose/futex.h"

#include <inttypes.h>

#include "diagnose/lock_owner.h"

static enum ss_wait_kind kind_of(enum ss_lock_layout layout)
{
	static const enum ss_wait_kind kinds[] = {
		[SS_LOCK_UNKNOWN] = SS_WAIT_FUTEX,
		[SS_LOCK_MUTEX] = SS_WAIT_MUTEX,
		[SS_LOCK_READ] = SS_WAIT_RWLOCK,
		[SS_LOCK_WRITE] = SS_WAIT_RWLOCK,
		[SS_LOCK_COND] = SS_WAIT_CONDVAR,
		[SS_LOCK_SEM] = SS_WAIT_SEMAPHORE,
		[SS_LOCK_BARRIER] = SS_WAIT_BARRIER,
		[SS_LOCK_JOIN] = SS_WAIT_JOIN,
		[SS_LOCK_ONCE] = SS_WAIT_ONCE,
		[SS_LOCK_STATIC] = SS_WAIT_ONCE,
		[SS_LOCK_INTERNAL] = SS_WAIT_MUTEX,
		[SS_LOCK_RUST_MUTEX] = SS_WAIT_MUTEX,
		[SS_LOCK_RUST_READ] = SS_WAIT_RWLOCK,
		[SS_LOCK_RUST_WRITE] = SS_WAIT_RWLOCK,
		[SS_LOCK_RUST_COND] = SS_WAIT_CONDVAR,
		[SS_LOCK_RUST_ONCE] = SS_WAIT_ONCE,
		[SS_LOCK_RUST_PARK] = SS_WAIT_FUTEX,
		[SS_LOCK_JAVA] = SS_WAIT_MUTEX,
	};

	return kinds[layout];
}

/* " server_lock+0x0 (0x55...)", or " at 0x7f..." where it lies in no variable. */
static void add_place(struct ss_diagnosis *d, const struct ss_futex *futex)
{
	const struct ss_lock_place *place =
		ss_snapshot_find_place(d->snapshot, futex->address);
	uint64_t address = d->wait->address;

	if (place && place->symbol && address >= place->symbol_address)
		ss_words_add(&d->text, " %s+0x%" PRIx64 " (0x%" PRIx64 ")", place->symbol,
			     address - place->symbol_address, address);
	else
		ss_words_add(&d->text, " at 0x%" PRIx64, address);
}

static bool wants_to_read(enum ss_lock_layout layout)
{
	return layout == SS_LOCK_READ || layout == SS_LOCK_RUST_READ;
}

static bool wants_to_write(enum ss_lock_layout layout)
{
	return layout == SS_LOCK_WRITE || layout == SS_LOCK_RUST_WRITE;
}

/* The process of an owner that is of another one, or NULL. */
static const struct ss_process *other_process(const struct ss_snapshot *snapshot,
					      const struct ss_thread *owner)
{
	const struct ss_snapshot *party;

	for (size_t i = 0; (party = ss_snapshot_party(snapshot, i)) != NULL; i++) {
		if (party != snapshot && party->threads.count &&
		    owner >= party->threads.items &&
		    owner < party->threads.items + party->threads.count)
			return &party->process;
	}
	return NULL;
}

static void add_process(struct ss_diagnosis *d, const struct ss_thread *owner)
{
	const struct ss_process *process = other_process(d->snapshot, owner);

	if (!process)
		return;
	d->wait->owner_pid = process->pid;
	if (process->pid == owner->tid)
		ss_words_add(&d->text, " of another process");
	else
		ss_words_add(&d->text, " of process %d (%s)", process->pid,
			     process->name);
}

static void add_owner(struct ss_diagnosis *d, const struct ss_thread *owner,
		      enum ss_lock_layout layout)
{
	if (owner == d->thread) {
		ss_words_add(&d->text, ", which it holds itself");
	} else if (owner) {
		ss_words_add(&d->text, ", held by %d (%s)", owner->tid, owner->name);
		add_process(d, owner);
		if (wants_to_read(layout) || wants_to_write(layout))
			ss_words_add(&d->text, " to write");
	} else if (d->wait->owner_reason) {
		ss_words_add(&d->text, ", owner unknown: %s", d->wait->owner_reason);
	}
}

static void add_join(struct ss_diagnosis *d, const struct ss_thread *joined)
{
	if (joined)
		ss_words_add(&d->text, "the end of thread %d (%s), which it joins",
			     joined->tid, joined->name);
	else
		ss_words_add(&d->text,
			     "the end of a thread, which it joins: which one is not "
			     "known");
}

static void add_details(struct ss_diagnosis *d, const struct ss_lock_words *lock,
			enum ss_lock_layout layout)
{
	if (layout == SS_LOCK_SEM)
		ss_words_add(&d->text, ", its value is %" PRIu32, lock->value);
	if (lock->needed)
		ss_words_add(&d->text, ", where %" PRIu32 " of %" PRIu32 " have arrived",
			     lock->arrived, lock->needed);
	if (wants_to_read(layout))
		ss_words_add(&d->text, ", which it wants to read");
	if (wants_to_write(layout))
		ss_words_add(&d->text, ", which it wants to write");
	if (lock->readers)
		ss_words_add(&d->text, ", held by %" PRIu32 " reader%s", lock->readers,
			     lock->readers == 1 ? "" : "s");
}

static void describe_lock(struct ss_diagnosis *d, const struct ss_futex *futex,
			  const struct ss_lock_sign *sign,
			  const struct ss_lock_words *lock)
{
	const struct ss_thread *owner = ss_lock_owner_find(
		d->snapshot, d->thread, futex, sign, lock, &d->wait->owner_reason);

	d->wait->address = lock->address;
	if (owner) {
		d->wait->owner_tid = owner->tid;
		d->wait->owner_reason = NULL;
	}
	if (sign->layout == SS_LOCK_JOIN) {
		add_join(d, owner);
		return;
	}
	ss_words_add(&d->text, "%s", lock->kind);
	if (lock->address)
		add_place(d, futex);
	add_details(d, lock, sign->layout);
	add_owner(d, owner, sign->layout);
}

/* Without the words around it, or without a function that tells what it is. */
static void describe_bare(struct ss_diagnosis *d, const struct ss_futex *futex,
			  const struct ss_lock_sign *sign,
			  const struct ss_lock_words *lock)
{
	d->wait->address = futex->address;
	ss_words_add(&d->text, "%s", lock->kind);
	add_place(d, futex);
	if (!sign->named && !d->wait->owner_reason)
		d->wait->owner_reason = "the stack has no names that tell what it is";
}

/*
 * glibc and musl answer a refusal of a PI mutex (it would be a deadlock, or the owner has
 * ended) by waiting for ever on a word of their own that is zero; nobody waits for a
 * mutex that is.
 */
static bool is_refused(const struct ss_futex *futex, const struct ss_lock_sign *sign)
{
	return sign->layout == SS_LOCK_MUTEX && futex->value == 0 &&
	       (futex->operation == FUTEX_WAIT || futex->operation == FUTEX_WAIT_BITSET);
}

static void describe_refused(struct ss_diagnosis *d)
{
	ss_words_add(&d->text, "nothing, for ever: the kernel refused it a PI mutex, "
			       "as a deadlock or because its owner has ended");
	d->wait->owner_reason = "which mutex it is cannot be seen";
}

/* The thread waits to be told, and not on the monitor itself. */
static void describe_monitor(struct ss_diagnosis *d)
{
	d->wait->owner_reason = "the virtual machine knows it (jstack tells)";
	ss_words_add(&d->text, "a Java monitor, owner unknown: %s",
		     d->wait->owner_reason);
}

static bool describe_several(struct ss_diagnosis *d)
{
	if (d->facts->call.number != SYS_futex_waitv)
		return false;
	d->wait->kind = SS_WAIT_FUTEX;
	ss_words_add(&d->text, "any of %" PRIu32 " futexes",
		     (uint32_t)d->facts->call.args[1]);
	return true;
}

bool ss_futex_describe(struct ss_diagnosis *d)
{
	struct ss_lock_words lock = { .kind = "futex" };
	struct ss_futex futex;

	if (describe_several(d))
		return true;
	if (!ss_futex_parse(&d->facts->call, &futex))
		return false;
	struct ss_lock_sign sign = ss_lock_sign_find(d->snapshot, d->thread);
	if (futex.restarted && sign.layout == SS_LOCK_UNKNOWN)
		return false;
	if (futex.restarted) /* the stack proves which call it is that goes on */
		d->wait->syscall = ss_diagnosis_keep(d, "futex");
	d->wait->kind = kind_of(sign.layout);
	if (is_refused(&futex, &sign)) {
		describe_refused(d);
	} else if (sign.layout == SS_LOCK_JAVA) {
		describe_monitor(d);
	} else if (!ss_lock_layout_read(&d->facts->lock, &futex, &sign, &lock)) {
		d->wait->owner_reason = "the lock could not be read";
		describe_bare(d, &futex, &sign, &lock);
	} else if (sign.layout == SS_LOCK_UNKNOWN && lock.owner == 0) {
		describe_bare(d, &futex, &sign, &lock);
	} else {
		describe_lock(d, &futex, &sign, &lock);
	}
	if (lock.owner && sign.layout == SS_LOCK_UNKNOWN)
		d->wait->kind = SS_WAIT_MUTEX; /* the kernel's own: PI */
	if (futex.timed)
		ss_words_add(&d->text, ", with a time limit");
	return true;
}
