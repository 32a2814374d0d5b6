#include "sample/recorder_process.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/search.h"
#include "stacksnap/record.h"

enum { MEMBERS_MAX = 4096 };

static const uint64_t interval_ns = 50000000;

void ss_family_init(struct ss_family *family, const struct ss_process_access *access)
{
	*family = (struct ss_family){ .access = access };
}

void ss_family_deinit(struct ss_family *family)
{
	ss_vector_free(&family->members);
}

bool ss_family_add(struct ss_family *family, struct ss_target *target)
{
	struct ss_target **slot = ss_vector_push(&family->members);

	if (slot)
		*slot = target;
	return slot != NULL;
}

void ss_family_remove(struct ss_family *family, const struct ss_target *target)
{
	size_t kept = 0;

	for (size_t i = 0; i < family->members.count; i++) {
		if (family->members.items[i] != target)
			family->members.items[kept++] = family->members.items[i];
	}
	family->members.count = kept;
}

static bool has(const struct ss_family *family, pid_t pid)
{
	return ss_any(family->members.count, i, family->members.items[i]->pid == pid);
}

static bool add_child(struct ss_family *family, pid_t pid, ss_family_adopt *adopt,
		      void *data)
{
	struct ss_target *target = NULL;

	if (family->members.count >= MEMBERS_MAX || has(family, pid))
		return true;
	ss_error_free(family->access->open_child(pid, &target));
	return !target || adopt(data, target);
}

bool ss_family_search(struct ss_family *family, uint64_t now_ns, ss_family_adopt *adopt,
		      void *data)
{
	struct ss_children children = {};
	bool ok = true;

	if (now_ns < family->searched_ns + interval_ns)
		return true;
	family->searched_ns = now_ns;
	/* Finds children of new members in the same pass. */
	for (size_t i = 0; ok && i < family->members.count; i++) {
		ok = family->access->list_children(family->members.items[i], &children);
		for (size_t c = 0; ok && c < children.pids.count; c++)
			ok = add_child(family, children.pids.items[c], adopt, data);
	}
	ss_vector_free(&children.pids);
	return ok;
}

/* If none were left for ticks, the threads of all processes would seem to end. */
enum { SPARE_FILES = 32, PROCESS_FILES = 10 };

/* Takes over an owned target. False: no memory. */
static bool add(struct ss_processes *processes, struct ss_target *target, bool owned)
{
	struct ss_recorder_process *process =
		ss_recorder_process_new(target, owned, &processes->options);
	struct ss_recorder_process **slot =
		process && ss_family_add(&processes->family, target) ?
			ss_vector_push(&processes->items) :
			NULL;

	if (slot)
		*slot = process;
	else
		ss_recorder_process_free(process);
	return slot != NULL;
}

/* The unwinder may take seconds, if it hangs. */
static bool release_late(void *data)
{
	struct ss_processes *processes = data;
	bool any = false;

	for (size_t i = 0; i < processes->items.count; i++)
		any |= ss_sampler_release_late(&processes->items.items[i]->sampler);
	return any;
}

struct ss_error *ss_processes_init(struct ss_processes *processes,
				   struct ss_target *target, struct ss_writer *writer,
				   const struct ss_recorder_options *recorder,
				   const struct ss_capture_options *options,
				   struct ss_load_feed *feed,
				   struct ss_sample_reader *reader)
{
	*processes = (struct ss_processes){ .children = recorder->children };
	ss_family_init(&processes->family, &ss_process_access);
	processes->options = (struct ss_recorder_process_options){
		.on_cpu = recorder->on_cpu,
		.only_samples = recorder->on_cpu && reader,
		.period_ns = recorder->period_ns,
		.feed = feed,
		.reader = reader,
		.capture = *options,
		.arena = &processes->arena,
		.writer = writer,
		.waits_budget = &processes->waits_budget,
		.unwinder = &processes->unwinder
	};
	struct ss_error *error = ss_arena_share(&processes->arena, options->max_total);
	if (!error)
		error = ss_unwinder_init(&processes->unwinder, target, &processes->arena,
					 recorder->max_frames, release_late, processes);
	if (error)
		return error;
	return add(processes, target, false) ? NULL : ss_error_no_memory();
}

void ss_processes_deinit(struct ss_processes *processes)
{
	for (size_t i = 0; i < processes->items.count; i++)
		ss_recorder_process_free(processes->items.items[i]);
	ss_vector_free(&processes->items);
	ss_family_deinit(&processes->family);
	ss_unwinder_deinit(&processes->unwinder);
	ss_arena_deinit(&processes->arena);
}

/* How many descriptors must be free for another child: others open some of theirs at their first
   tick. */
static unsigned count_files(const struct ss_processes *processes)
{
	unsigned count = SPARE_FILES + PROCESS_FILES;

	for (size_t i = 0; i < processes->items.count; i++)
		count += processes->items.items[i]->sampler.space.maps_fd < 0 ?
				 PROCESS_FILES :
				 0;
	return count;
}

static bool adopt(void *data, struct ss_target *target)
{
	struct ss_processes *processes = data;

	if (ss_io_can_open(count_files(processes)))
		return add(processes, target, true);
	processes->left_out = true;
	ss_target_close(target);
	return true;
}

static void drop_ended(struct ss_processes *processes)
{
	size_t kept = 0;

	for (size_t i = 0; i < processes->items.count; i++) {
		struct ss_recorder_process *process = processes->items.items[i];
		if (process->state != SS_PROCESS_ENDED) {
			processes->items.items[kept++] = process;
			continue;
		}
		processes->ended_stops += process->sampler.thread_stops;
		processes->ended_not_stopped += process->sampler.limit.not_stopped;
		ss_family_remove(&processes->family, process->target);
		ss_recorder_process_free(process);
	}
	processes->items.count = kept;
}

/* Whether an error affects only one child, which is then ignored. */
static bool is_of_one(const struct ss_processes *processes, const struct ss_error *error)
{
	enum ss_error_code code = ss_error_code(error);

	return processes->items.count > 1 &&
	       (code == SS_ERROR_DENIED || code == SS_ERROR_TRACED ||
		code == SS_ERROR_NO_PROCESS);
}

static struct ss_error *end_one(struct ss_processes *processes,
				struct ss_recorder_process *process,
				struct ss_error *error)
{
	processes->busy_since = 0;
	processes->late |= process->sampler.late;
	processes->lost |= process->state == SS_PROCESS_LOST;
	if (!error || !is_of_one(processes, error))
		return error;
	ss_error_free(error);
	process->state = SS_PROCESS_ENDED;
	return ss_recorder_process_finish(process); /* still writes its perf map */
}

static struct ss_error *begin_tick(struct ss_processes *processes, uint64_t now_ns)
{
	struct ss_error *error = NULL;

	processes->busy_since = ss_now_ns();
	if (processes->children &&
	    !ss_family_search(&processes->family, now_ns, adopt, processes))
		error = ss_error_no_memory();
	processes->busy_since = 0;
	processes->late = processes->lost = false;
	ss_recorder_waits_budget_begin(&processes->waits_budget);
	return error;
}

struct ss_error *ss_processes_tick(struct ss_processes *processes, uint64_t now_ns,
				   const struct ss_on_cpu_sample *clocked, size_t count,
				   struct ss_samples *samples,
				   struct ss_tick_record *written)
{
	struct ss_error *error = begin_tick(processes, now_ns);

	for (size_t i = 0; !error && i < processes->items.count; i++) {
		struct ss_recorder_process *process = processes->items.items[i];
		processes->busy_since = ss_now_ns();
		error = end_one(processes, process,
				ss_recorder_process_tick(process, now_ns, clocked, count,
							 samples, written));
	}
	if (!error)
		drop_ended(processes);
	return error;
}

bool ss_processes_have(void *data, pid_t pid)
{
	const struct ss_processes *processes = data;

	return ss_any(processes->items.count, i,
		      processes->items.items[i]->target->pid == pid);
}

struct ss_error *ss_processes_roll(struct ss_processes *processes, uint64_t monotonic_ns,
				   uint64_t wall_ns)
{
	struct ss_samples last = {};
	bool ok = true;

	for (size_t i = 0; ok && i < processes->items.count; i++)
		ok = ss_recorder_process_last(processes->items.items[i], &last);
	struct ss_error *error = ok ? ss_writer_roll(processes->options.writer,
						     monotonic_ns, wall_ns,
						     last.items.items, last.items.count) :
				      ss_error_no_memory();
	const struct ss_sample_record *next = last.items.items;
	for (size_t i = 0; !error && i < processes->items.count; i++)
		ss_recorder_process_renumber(processes->items.items[i], &next);
	ss_vector_free(&last.items);
	return error;
}

struct ss_error *ss_processes_finish(struct ss_processes *processes)
{
	struct ss_error *error = NULL;

	for (size_t i = 0; !error && i < processes->items.count; i++) {
		processes->busy_since = ss_now_ns(); /* reading its perf map */
		error = ss_recorder_process_finish(processes->items.items[i]);
		processes->busy_since = 0;
	}
	return error;
}

void ss_processes_count_stops(const struct ss_processes *processes, uint64_t *ret_stops,
			      uint64_t *ret_not_stopped)
{
	*ret_stops = processes->ended_stops;
	*ret_not_stopped = processes->ended_not_stopped;
	for (size_t i = 0; i < processes->items.count; i++) {
		const struct ss_sampler *sampler = &processes->items.items[i]->sampler;
		*ret_stops += sampler->thread_stops;
		*ret_not_stopped += sampler->limit.not_stopped;
	}
}
