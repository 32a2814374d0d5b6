#include "diagnose/task_cycle.h"
#include "diagnose/diagnosis.h"

#include "base/error.h"
#include "diagnose/call.h"
#include "diagnose/chain.h"
#include "diagnose/deadlock.h"
#include "diagnose/descriptor.h"
#include "diagnose/goroutine_lock.h"
#include "diagnose/owner_frames.h"
#include "diagnose/process_cycle.h"
#include "diagnose/purpose.h"
#include "model/futex.h"

void *ss_diagnosis_alloc(struct ss_diagnosis *d, size_t count, size_t size)
{
	void *memory = ss_snapshot_alloc(d->snapshot, count, size);

	d->failed |= !memory;
	return memory;
}

static void fill_tracer(struct ss_diagnosis *d)
{
	d->wait->kind = SS_WAIT_PTRACE;
	d->wait->owner_pid = d->facts->tracer.pid;
	d->wait->owner_process = d->facts->tracer.name;
}

/* Whether the call waits for threads of the process only. glibc joins with a call that is not
   private. */
static bool is_within_process(const struct ss_diagnosis *d)
{
	struct ss_futex futex;

	return ss_futex_parse(&d->facts->call, &futex) &&
	       (futex.private || d->wait->kind == SS_WAIT_JOIN);
}

/* Fills in the wait of a thread. False: it does not wait, or its wait is unknown. */
static bool fill(struct ss_diagnosis *d)
{
	switch (d->thread->state) {
	case 'R':
	case 'Z':
	case 'X':
		return false;
	case 't':
		fill_tracer(d);
		return true;
	case 'T':
		d->wait->kind = SS_WAIT_STOPPED;
		return true;
	default:
		break;
	}
	if (d->facts->worker) {
		d->wait->kind = SS_WAIT_WORK;
		return true;
	}
	if (d->facts->call.number >= 0) {
		ss_call_fill(d);
		d->wait->within_process = is_within_process(d);
		return true;
	}
	d->wait->kind = SS_WAIT_PAGE_FAULT;
	return d->thread->state == 'D';
}

static bool diagnose_threads(struct ss_snapshot *snapshot)
{
	static const struct ss_thread_facts nothing = { .call.number = -1 };

	for (size_t i = 0; i < snapshot->threads.count; i++) {
		struct ss_thread *thread = &snapshot->threads.items[i];
		const struct ss_thread_facts *facts =
			ss_facts_find_thread(snapshot->facts, thread->tid);
		struct ss_diagnosis d = { .snapshot = snapshot,
					  .thread = thread,
					  .facts = facts ? facts : &nothing,
					  .wait = &snapshot->waits[i] };
		*d.wait = (struct ss_wait){ .syscall_number = -1,
					    .fd = -1,
					    .timeout_ns = -1,
					    .left_ns = -1,
					    .ipc_id = -1,
					    .command = -1 };
		if (fill(&d))
			thread->wait = d.wait;
		if (d.failed)
			return false;
	}
	return true;
}

static bool diagnose(struct ss_snapshot *snapshot, const struct ss_wait_table *table)
{
	snapshot->waits = calloc(snapshot->threads.count + 1, sizeof(*snapshot->waits));
	return snapshot->waits && ss_descriptors_init(snapshot) &&
	       diagnose_threads(snapshot) && ss_purposes_find(snapshot, table);
}

static bool diagnose_all(struct ss_snapshot *snapshot, const struct ss_wait_table *table)
{
	bool ok = diagnose(snapshot, table);

	for (size_t i = 0; ok && i < snapshot->others.count; i++)
		ok = diagnose(snapshot->others.items[i], table);
	if (ok)
		ss_owner_frames_find(snapshot);
	return ok && ss_goroutine_locks_find(snapshot, table) &&
	       ss_deadlock_find(snapshot) && ss_application_locks_find(snapshot) &&
	       ss_chains_find(snapshot) && ss_process_cycle_find(snapshot) &&
	       ss_task_cycles_find(snapshot);
}

SS_DEFINE_CLEANUP(struct ss_wait_table, table, ss_wait_table_free)

struct ss_error *ss_snapshot_diagnose(struct ss_snapshot *snapshot,
				      const struct ss_diagnose_options *options)
{
	_cleanup_(table_cleanup) struct ss_wait_table *own = NULL;
	const struct ss_wait_table *table = options ? options->waits : NULL;
	struct ss_error *error = NULL;

	if (options && options->size != sizeof(*options))
		return ss_error_new(SS_ERROR_INVALID,
				    "the size of the options is not the library's");
	if (snapshot->waits)
		return ss_error_new(SS_ERROR_INVALID,
				    "the snapshot has already been diagnosed");
	if (!table)
		error = ss_wait_table_new(&own);
	if (error)
		return error;
	return diagnose_all(snapshot, table ? table : own) ? NULL : ss_error_no_memory();
}
