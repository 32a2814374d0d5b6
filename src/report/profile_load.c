#include "report/profile_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/names.h"
#include "report/profile.h"
#include "report/profile_waits.h"
#include "data/recording.h"
#include "data/snapshot_fields.h"
#include "stacksnap/record.h"
#include "stacksnap/trace.h"

/*
 * Why samples of a recording have native frames instead of the functions of a language: counted for
 * the notes of a report.
 */

enum { SS_NATIVE_REASONS_MAX = 16 };

/* Zeroed, it is empty. */
struct ss_native_reasons {
	struct {
		const char *reason; /* of the recording */
		uint64_t count;
	} items[SS_NATIVE_REASONS_MAX];
	size_t count;
};

/* Counts a sample with a stack: if the stack is whole and has a reason nevertheless. */
static void native_reasons_count(struct ss_native_reasons *reasons,
				 const struct ss_recorded_stack *stack)
{
	size_t at = 0;

	if (!stack->reason || !ss_end_is_outermost(stack->end) || stack->count == 0)
		return;
	while (at < reasons->count &&
	       strcmp(reasons->items[at].reason, stack->reason) != 0)
		at++;
	if (at == SS_NATIVE_REASONS_MAX)
		return;
	reasons->items[at].reason = stack->reason;
	reasons->items[at].count++;
	if (at == reasons->count)
		reasons->count++;
}

/* Adds a note for each reason. They do not mean that the report is incomplete. False without memory. */
static bool native_reasons_add_notes(const struct ss_native_reasons *reasons,
				     struct ss_profile *profile, const char *file)
{
	for (size_t i = 0; i < reasons->count; i++) {
		const uint64_t count = reasons->items[i].count;
		if (!ss_profile_note(
			    profile, "%s: of %llu %s only native frames are known: %s",
			    file, (unsigned long long)count,
			    count == 1 ? "sample" : "samples", reasons->items[i].reason))
			return false;
		profile->harmless++;
	}
	return true;
}

/*
 * Adds the events of a recorded trace to the runs of a profile: what each sample stands for, how
 * long its scope took, and how much of that was not within other scopes.
 */

/* The scopes that a thread is in. */
struct ss_load_scope {
	uint32_t event;
	uint32_t depth;
	uint64_t end_ns;
};

struct ss_load_scopes {
	SS_VECTOR(struct ss_load_scope) items; /* outermost first */
};

struct ss_load_events {
	struct ss_profile *profile;
	const struct ss_recording *recording;
	uint32_t *probes;			 /* by probe of the recording */
	SS_VECTOR(struct ss_load_scopes) scopes; /* by thread of the profile */
};

static bool add_probe(struct ss_load_events *events, size_t index,
		      const uint32_t *modules)
{
	struct ss_profile *profile = events->profile;
	const struct ss_recorded_probe *recorded =
		&events->recording->probes.items[index];
	const struct ss_profile_probe probe = {
		.name = ss_profile_text(profile, recorded->name),
		.module = recorded->module == UINT32_MAX ? SS_ID_NONE :
							   modules[recorded->module],
		.offset = recorded->offset,
		.kind = recorded->usdt ? SS_PROBE_OF_USDT :
			recorded->line ? SS_PROBE_OF_LINE :
					 SS_PROBE_OF_FUNCTION,
	};

	events->probes[index] = probe.name ? ss_idtable_add(&profile->probes, &probe,
							    sizeof(probe), NULL) :
					     SS_ID_NONE;
	return events->probes[index] != SS_ID_NONE;
}

/* Translates the probes; modules are those of the profile, by module of the recording. False
   without memory. */
static bool load_events_init(struct ss_load_events *events, struct ss_profile *profile,
			     const struct ss_recording *recording,
			     const uint32_t *modules)
{
	size_t count = recording->probes.count;
	bool added = true;

	*events = (struct ss_load_events){ .profile = profile, .recording = recording };
	events->probes = calloc(count + 1, sizeof(*events->probes));
	for (size_t i = 0; events->probes && added && i < count; i++)
		added = add_probe(events, i, modules);
	return events->probes && added;
}

static void load_events_deinit(struct ss_load_events *events)
{
	for (size_t i = 0; i < events->scopes.count; i++)
		ss_vector_free(&events->scopes.items[i].items);
	ss_vector_free(&events->scopes);
	free(events->probes);
}

/* The time of a scope is not that of the scope that contains it. False without memory. */
static bool nest(struct ss_load_events *events, struct ss_load_scopes *scopes,
		 uint32_t number, uint64_t begin_ns)
{
	struct ss_profile_event *all = events->profile->events.items;
	const struct ss_profile_event *event = &all[number];
	uint64_t end_ns = begin_ns + event->duration_ns;

	if (event->kind == SS_TRACE_HIT)
		return true;
	while (scopes->items.count) {
		const struct ss_load_scope *last =
			&scopes->items.items[scopes->items.count - 1];
		if (last->depth < event->depth && last->end_ns >= end_ns)
			break;
		scopes->items.count--;
	}
	if (scopes->items.count) {
		struct ss_profile_event *outer =
			&all[scopes->items.items[scopes->items.count - 1].event];
		outer->self_ns -= SS_MIN(outer->self_ns, event->duration_ns);
	}
	struct ss_load_scope *scope = ss_vector_push(&scopes->items);
	if (scope)
		*scope = (struct ss_load_scope){ .event = number,
						 .depth = event->depth,
						 .end_ns = end_ns };
	return scope;
}

static bool copy_args(const struct ss_load_events *events,
		      const struct ss_recorded_event *from)
{
	for (unsigned i = 0; i < from->arg_count; i++) {
		uint64_t *arg = ss_vector_push(&events->profile->event_args);
		if (!arg)
			return false;
		*arg = events->recording->event_args.items[from->args + i];
	}
	return true;
}

/* Sets the event of a run, the sample of a thread. False without memory. */
static bool load_events_set(struct ss_load_events *events, const struct ss_sample *sample,
			    uint32_t thread, struct ss_profile_run *run)
{
	struct ss_profile *profile = events->profile;
	const struct ss_recorded_event *recorded =
		ss_recording_event(events->recording, sample);

	if (!recorded)
		return true;
	while (events->scopes.count <= thread) {
		if (!ss_vector_push(&events->scopes))
			return false;
	}
	struct ss_profile_event *event = ss_vector_push(&profile->events);
	if (!event)
		return false;
	*event = (struct ss_profile_event){
		.duration_ns = recorded->duration_ns,
		.self_ns = recorded->duration_ns,
		.probe = events->probes[recorded->probe],
		.args = (uint32_t)profile->event_args.count,
		.depth = recorded->depth,
		.kind = recorded->kind,
		.arg_count = recorded->arg_count,
	};
	run->event = (uint32_t)profile->events.count;
	return copy_args(events, recorded) && nest(events, &events->scopes.items[thread],
						   run->event - 1, sample->monotonic_ns);
}

/* Limit of the ticks of a recording: 18 hours at 1 kHz. */
enum { TICKS_MAX = 64 << 20 };

/* Limit of the memory for what samples of all recordings wait for. */
enum { DETAIL_BYTES_MAX = 128 << 20 };

/* A smaller difference is a clock that is being adjusted, not one that was set. */
enum { CLOCK_STEP_NS = 500000000 };

struct load {
	struct ss_profile *profile;
	struct ss_recording *recording;
	const struct ss_recording_info *info;
	const struct ss_load_options *options;
	struct ss_load_frames frames;
	struct ss_load_waits waits;
	struct ss_load_events events;
	struct ss_native_reasons natives;
	struct ss_idtable details; /* const struct ss_wait *: of the recording */
	size_t first_detail;	   /* of them in the profile */
	size_t first_thread;	   /* likewise, of its threads */
	bool details_left;	   /* some were left out */
	uint32_t number;	   /* index of the recording in the profile */
	uint32_t *processes;	   /* by process of the recording: index + 1 */
	uint32_t *threads;	   /* by thread of the recording: index + 1 */
	bool *excluded;		   /* by thread of the recording */
	struct ss_series series;
	size_t base_tick; /* ticks of the series before */
	uint64_t first_tick;
	bool has_tick;
	uint64_t missed_tick; /* the last tick whose missed ticks were counted */
	uint64_t before_ns;   /* its time */
	double missed;	      /* in the selected time */
	int64_t clock;	      /* wall clock minus steady time, at the last tick */
	unsigned steps;	      /* how often the wall clock was set */
	uint64_t ticks_max;   /* limits, by the size of the file */
	uint64_t runs_max;
	uint64_t samples_max;
	size_t runs;
	uint64_t samples; /* read so far, including excluded ones */
	bool truncated;
};

static void load_deinit(struct load *load)
{
	ss_load_frames_deinit(&load->frames);
	load_events_deinit(&load->events);
	ss_idtable_deinit(&load->details);
	free(load->processes);
	free(load->threads);
	free(load->excluded);
}

/* Whether the recording is a snapshot of a series that the profile has. */
static bool continues(const struct load *load)
{
	return load->series.process != SS_ID_NONE;
}

static struct ss_profile_recording *current(const struct load *load)
{
	return &load->profile->recordings.items[load->number];
}

static void set_limits(struct load *load)
{
	uint64_t size = load->info->size;

	load->ticks_max = SS_MIN(SS_PROFILE_TICKS + SS_PROFILE_TICKS_PER_BYTE * size,
				 (uint64_t)TICKS_MAX);
	load->runs_max = SS_MIN(SS_PROFILE_RUNS + SS_PROFILE_RUNS_PER_BYTE * size,
				(uint64_t)SS_PROFILE_RUNS_MAX);
	load->samples_max =
		SS_MIN(SS_PROFILE_SAMPLES + SS_PROFILE_SAMPLES_PER_BYTE * size,
		       SS_PROFILE_SAMPLES_MAX);
	load->profile->bytes += size;
}

static bool copy_labels(struct load *load, struct ss_profile_recording *recording)
{
	size_t count = load->info->label_count;
	const char **labels = calloc(count + 1, sizeof(*labels));

	recording->labels = labels;
	for (size_t i = 0; labels && i < count; i++) {
		labels[i] = ss_profile_text(load->profile, load->info->labels[i]);
		if (!labels[i])
			return false;
		recording->label_count++;
	}
	return labels;
}

static bool add_recording(struct load *load, const char *file)
{
	struct ss_profile_recording *recording =
		ss_vector_push(&load->profile->recordings);

	if (!recording)
		return false;
	load->number = (uint32_t)load->profile->recordings.count - 1;
	recording->file = ss_profile_text(load->profile, file);
	recording->host = ss_profile_text(load->profile, load->info->host);
	recording->machine = ss_profile_text(load->profile, load->info->machine);
	recording->problem = ss_profile_text(load->profile, load->info->problem);
	recording->start_ns = load->info->begin_ns;
	recording->period_ns = load->info->period_ns;
	recording->scope = load->info->scope;
	recording->boot_id = ss_profile_text(load->profile, load->info->boot_id);
	recording->set = load->options->set;
	return recording->file && recording->boot_id && copy_labels(load, recording);
}

static void continue_series(struct load *load)
{
	load->number = load->profile->processes.items[load->series.process].recording;
	load->base_tick = current(load)->ticks.count;
	current(load)->more++;
}

static bool load_init(struct load *load, const char *file)
{
	if (continues(load))
		continue_series(load);
	else if (!add_recording(load, file))
		return false;
	set_limits(load);
	load->first_detail = load->profile->details.count;
	load->first_thread = load->profile->threads.count;
	size_t processes = ss_recording_process_count(load->recording);
	size_t threads = ss_recording_thread_count(load->recording);
	load->processes = calloc(processes + 1, sizeof(*load->processes));
	load->threads = calloc(threads + 1, sizeof(*load->threads));
	load->excluded = calloc(threads + 1, sizeof(*load->excluded));
	return load->processes && load->threads && load->excluded &&
	       ss_load_frames_init(&load->frames) &&
	       load_events_init(&load->events, load->profile, load->recording,
				load->frames.modules);
}

/* Returns SS_ID_NONE without memory, as does thread_of(). */
static uint32_t process_of(struct load *load, uint32_t index)
{
	const struct ss_recorded_process *recorded =
		ss_recording_process(load->recording, index);

	if (load->processes[index])
		return load->processes[index] - 1;
	if (continues(load)) {
		load->processes[index] = load->series.process + 1;
		return load->series.process;
	}
	struct ss_profile_process *process = ss_vector_push(&load->profile->processes);
	if (!process)
		return SS_ID_NONE;
	process->recording = load->number;
	process->pid = recorded->pid;
	process->begin_ns = recorded->begin_ns;
	process->name = ss_profile_text(load->profile, recorded->name);
	process->executable = ss_profile_text(load->profile, recorded->executable);
	if (!process->name)
		return SS_ID_NONE;
	load->processes[index] = (uint32_t)load->profile->processes.count;
	return load->processes[index] - 1;
}

/* Each is a thread of the profile, and takes memory as one. */
enum { TASKS_MAX = 200000 };

/* What tells a task, or a thread of snapshots, from others: texts by their addresses. A task that
   does something else in a later snapshot is another one; a thread may have another name. */
struct task_key {
	uint64_t id;
	uint64_t name;
	uint64_t runtime;
	uint64_t task;
	uint64_t process;
};

/* The number of the thread, which is added if it is new; SS_ID_NONE: there are too many. False without
   memory. */
static bool find_task(struct ss_profile *profile, const struct ss_profile_thread *thread,
		      const char *runtime, uint32_t *ret)
{
	const bool is_thread = ss_profile_is_thread(thread);
	const struct task_key key = {
		.id = is_thread ? (uint64_t)thread->tid : thread->id,
		.name = is_thread ? 0 : (uint64_t)(uintptr_t)thread->name,
		.runtime = (uint64_t)(uintptr_t)runtime,
		.task = (uint64_t)(uintptr_t)thread->task,
		.process = thread->process,
	};
	uint32_t id = ss_idtable_find(&profile->tasks, &key, sizeof(key));

	*ret = SS_ID_NONE;
	if (id != SS_ID_NONE) {
		*ret = profile->task_threads.items[id];
		return true;
	}
	if (profile->tasks.count >= TASKS_MAX && !is_thread)
		return true;
	uint32_t *slot = ss_vector_push(&profile->task_threads);
	struct ss_profile_thread *added = slot ? ss_vector_push(&profile->threads) : NULL;
	if (!added ||
	    ss_idtable_add(&profile->tasks, &key, sizeof(key), NULL) == SS_ID_NONE)
		return false;
	*added = *thread;
	profile->task_counts[thread->kind]++;
	*ret = *slot = (uint32_t)profile->threads.count - 1;
	return true;
}

static uint32_t thread_of(struct load *load, uint32_t index)
{
	const struct ss_recorded_thread *recorded =
		ss_recording_thread(load->recording, index);
	struct ss_profile *profile = load->profile;
	uint32_t number = (uint32_t)profile->threads.count;

	if (load->threads[index])
		return load->threads[index] - 1;
	const struct ss_profile_thread thread = {
		.process = process_of(load, recorded->process),
		.tid = recorded->tid,
		.name = ss_profile_text(profile, recorded->name),
	};
	if (thread.process == SS_ID_NONE || !thread.name)
		return SS_ID_NONE;
	if (load->series.is_snapshot) {
		if (!find_task(profile, &thread, NULL, &number))
			return SS_ID_NONE;
	} else {
		struct ss_profile_thread *slot = ss_vector_push(&profile->threads);
		if (!slot)
			return SS_ID_NONE;
		*slot = thread;
	}
	load->threads[index] = number + 1;
	return number;
}

static bool is_selected(struct load *load, const struct ss_sample *sample)
{
	const struct ss_load_options *options = load->options;

	if (options->states &&
	    (!sample->state || !strchr(options->states, sample->state)))
		return false;
	return !load->excluded[sample->thread] &&
	       ss_load_frames_wants(&load->frames, sample->stack);
}

/* The wall clock may be set during a recording. The time since its start orders samples
   correctly. */
static uint64_t steady_time(const struct load *load, const struct ss_sample *sample)
{
	return load->info->begin_ns +
	       (sample->monotonic_ns - load->info->begin_monotonic_ns);
}

/* Counts steps of the wall clock between samples. */
static void watch_clock(struct load *load, const struct ss_sample *sample)
{
	int64_t clock = (int64_t)(sample->time_ns - steady_time(load, sample));
	uint64_t jump = clock > load->clock ? (uint64_t)clock - (uint64_t)load->clock :
					      (uint64_t)load->clock - (uint64_t)clock;

	load->steps += jump >= CLOCK_STEP_NS;
	load->clock = clock;
}

/* Adds the ticks up to this sample, whether samples of them are wanted or not. Returns false
   without memory, or if there are too many (load->truncated). */
static bool add_ticks(struct load *load, const struct ss_sample *sample, uint64_t time_ns)
{
	struct ss_profile_recording *recording = current(load);
	uint64_t start = load->profile->start_ns;
	uint64_t time = time_ns > start ? time_ns - start : 0;

	if (!load->has_tick)
		load->first_tick = sample->tick;
	load->has_tick = true;
	if (sample->tick < load->first_tick ||
	    sample->tick - load->first_tick >= load->ticks_max) {
		load->truncated = true;
		return false;
	}
	while (recording->ticks.count <=
	       load->base_tick + (sample->tick - load->first_tick)) {
		uint64_t *last =
			recording->ticks.count ?
				&recording->ticks.items[recording->ticks.count - 1] :
				NULL;
		uint64_t previous = last ? *last : 0;
		uint64_t *tick = ss_vector_push(&recording->ticks);
		if (!tick)
			return false;
		*tick = SS_MAX(previous, time);
	}
	return true;
}

static bool is_in_window(const struct load *load, uint64_t time_ns)
{
	return time_ns >= load->options->from_ns &&
	       (!load->options->to_ns || time_ns < load->options->to_ns);
}

/* Counts the missed ticks before this one that are in the window. They are spread evenly over
   the time since the tick before. */
static void count_missed(struct load *load, const struct ss_sample *sample,
			 uint64_t time_ns)
{
	const struct ss_load_options *options = load->options;
	uint64_t end = options->to_ns ? SS_MIN(options->to_ns, time_ns) : time_ns;
	uint64_t begin = SS_MAX(options->from_ns, load->before_ns);

	if (sample->tick == load->missed_tick && load->before_ns)
		return;
	if (sample->missed && load->before_ns && end > begin && time_ns > load->before_ns)
		load->missed += (double)sample->missed * (double)(end - begin) /
				(double)(time_ns - load->before_ns);
	load->missed_tick = sample->tick;
	load->before_ns = time_ns;
}

static const char *copy_text(void *profile, const char *text)
{
	return ss_profile_text(profile, text);
}

/* Copies a wait of the recording, without its chain: one block for free(3). Adds its size to
   *bytes, which may be NULL. NULL without memory. */
static struct ss_wait *copy_wait(struct ss_profile *profile, const struct ss_wait *wait,
				 size_t *bytes)
{
	return ss_schema_copy(&ss_recorded_wait_schema, wait, copy_text, profile, bytes);
}

/* Copies what a thread waits for. False without memory. */
static bool set_detail(struct load *load, const struct ss_wait *wait,
		       struct ss_profile_run *run)
{
	bool added = false;

	if (!wait)
		return true;
	if (load->profile->detail_bytes >= DETAIL_BYTES_MAX &&
	    ss_idtable_find(&load->details, &wait, sizeof(wait)) == SS_ID_NONE) {
		load->details_left = true;
		return true;
	}
	uint32_t id = ss_idtable_add(&load->details, &wait, sizeof(wait), &added);
	if (added) {
		struct ss_wait *copy =
			copy_wait(load->profile, wait, &load->profile->detail_bytes);
		struct ss_wait **slot = copy ? ss_vector_push(&load->profile->details) :
					       NULL;
		if (!slot) {
			free(copy);
			return false;
		}
		*slot = copy;
	}
	run->detail = (uint32_t)load->first_detail + id + 1;
	return id != SS_ID_NONE;
}

/* Returns false without memory, or at a limit (load->truncated). */
static bool add_sample(struct load *load, const struct ss_sample *sample)
{
	struct ss_profile_run run = { .count = 1,
				      .state = sample->state,
				      .cpu_ns = sample->on_cpu_ns,
				      .ready_ns = sample->ready_ns };

	uint64_t time_ns = steady_time(load, sample);

	load->truncated = ++load->samples > load->samples_max;
	if (load->truncated)
		return false;
	watch_clock(load, sample);
	count_missed(load, sample, time_ns);
	if (!is_in_window(load, time_ns))
		return true;
	if (!add_ticks(load, sample, time_ns))
		return false;
	if (!is_selected(load, sample))
		return true;
	uint32_t thread = thread_of(load, sample->thread);
	run.call = ss_load_frames_call(&load->frames, sample->stack);
	if (thread == SS_ID_NONE || run.call == SS_ID_NONE ||
	    !ss_load_waits_set(&load->waits, sample, &run) ||
	    !set_detail(load, sample->wait, &run) ||
	    !load_events_set(&load->events, sample, thread, &run))
		return false;
	native_reasons_count(&load->natives,
			     ss_recording_stack(load->recording, sample->stack));
	run.tick = (uint32_t)(load->base_tick + (sample->tick - load->first_tick));
	size_t before = load->profile->threads.items[thread].runs.count;
	if (!ss_profile_sample(load->profile, thread, &run))
		return false;
	load->runs += load->profile->threads.items[thread].runs.count - before;
	load->truncated = load->runs > load->runs_max;
	return !load->truncated;
}

static void find_excluded(struct load *load)
{
	for (size_t i = 0; i < ss_recording_thread_count(load->recording); i++) {
		const struct ss_recorded_thread *thread =
			ss_recording_thread(load->recording, i);
		load->excluded[i] = load->options->selects_thread &&
				    !load->options->selects_thread(load->options->data,
								   thread->tid,
								   thread->name);
	}
}

/* Converts a time of the recording's steady clock to the time since the profile's start. */
static int64_t since_start(const struct load *load, uint64_t monotonic_ns)
{
	return (int64_t)(load->info->begin_ns - load->profile->start_ns +
			 (monotonic_ns - load->info->begin_monotonic_ns));
}

static bool add_lifetimes(struct load *load)
{
	for (size_t i = 0; i < ss_recording_module_count(load->recording); i++) {
		const struct ss_recorded_module *recorded =
			ss_recording_module(load->recording, i);
		uint32_t process = process_of(load, recorded->process);
		if (continues(load) &&
		    ss_series_has_module(load->profile, &load->series, i,
					 load->frames.modules[i], recorded->module->base))
			continue;
		struct ss_profile_lifetime *lifetime =
			process == SS_ID_NONE ? NULL :
						ss_vector_push(&load->profile->lifetimes);
		if (!lifetime)
			return false;
		*lifetime = (struct ss_profile_lifetime){
			.module = load->frames.modules[i],
			.process = process,
			.base = recorded->module->base,
			.size = recorded->module->size,
			.from_ns = since_start(load, recorded->begin_ns),
			.to_ns = recorded->end_ns ? since_start(load, recorded->end_ns) :
						    INT64_MAX,
		};
	}
	return true;
}

/* Marks the threads that others wait for. */
static bool *find_owners(const struct ss_recording *recording)
{
	bool *owns = calloc(ss_recording_thread_count(recording) + 1, sizeof(*owns));

	for (size_t i = 0; owns && i < recording->waits.count; i++) {
		const struct ss_recorded_wait *wait = &recording->waits.items[i];
		if (wait->owner != UINT32_MAX)
			owns[wait->owner] = true;
	}
	return owns;
}

/* Whether it is a wait for a lock, a condition or another process, be it known who ends it or not. */
static bool is_for_another(const struct ss_wait *wait)
{
	return wait->lock != SS_LOCK_NONE || wait->kind == SS_WAIT_FILE_LOCK ||
	       wait->owner_tid || wait->owner_pid || wait->owner_unknown;
}

/* Sets the waits of threads that have samples: of each the first one, since a recording may claim
   several. Those of the last snapshot of a series remain. */
static bool add_waits(struct load *load)
{
	_cleanup_free_ bool *owns = find_owners(load->recording);

	if (continues(load))
		ss_series_drop_waits(load->profile, &load->series);
	for (size_t i = 0; owns && i < load->recording->waits.count; i++) {
		const struct ss_recorded_wait *wait = &load->recording->waits.items[i];
		bool owned = wait->owner != UINT32_MAX;
		struct ss_profile_thread *thread =
			load->threads[wait->thread] ?
				&load->profile->threads
					 .items[load->threads[wait->thread] - 1] :
				NULL;
		if (!thread || thread->wait)
			continue;
		thread->wait = copy_wait(load->profile, &wait->wait, NULL);
		if (!thread->wait)
			return false;
		thread->owner = owned ? load->threads[wait->owner] : 0;
		thread->in_wait_graph = owned || owns[wait->thread] || wait->in_cycle ||
					is_for_another(&wait->wait);
		thread->in_cycle = wait->in_cycle;
	}
	return owns != NULL;
}

/* Ticks that were due after the last sample are counted only if the end is selected. A
   recording of --last knows the missed ticks of dropped parts no longer. */
static void set_missed(struct load *load)
{
	const struct ss_load_options *options = load->options;
	uint64_t missed = load->missed > 0 && load->missed < 1e18 ?
				  (uint64_t)(load->missed + 0.5) :
				  0;

	if (continues(load))
		return;
	current(load)->missed = options->from_ns || options->to_ns ? missed :
								     load->info->missed;
}

/* Adds the totals of a trace, and a note about what it lost. */
static bool add_trace(const struct load *load)
{
	const struct ss_trace_summary *totals = &load->recording->trace;

	if (!load->recording->has_trace)
		return true;
	struct ss_profile_trace *trace = ss_vector_push(&load->profile->traces);
	if (!trace)
		return false;
	*trace = (struct ss_profile_trace){ load->number, *totals };
	return !totals->lost ||
	       ss_profile_note(load->profile, "%s: %llu of %llu hits were lost",
			       current(load)->file, (unsigned long long)totals->lost,
			       (unsigned long long)totals->hits);
}

/* The index of a tick of the recording among those of the profile, or SIZE_MAX: it is not in the
   selected time. */
static size_t tick_of(const struct load *load, uint64_t tick)
{
	uint64_t at = tick - load->first_tick;

	if (!load->has_tick || tick < load->first_tick ||
	    at >= current(load)->ticks.count - load->base_tick)
		return SIZE_MAX;
	return (size_t)(load->base_tick + at);
}

/* Whether a run begins after the last one of its thread: a recording may claim anything. */
static bool is_later(const struct load *load, uint32_t thread,
		     const struct ss_profile_run *run)
{
	const struct ss_profile_thread *of = &load->profile->threads.items[thread];
	const struct ss_profile_run *last =
		of->runs.count ? &of->runs.items[of->runs.count - 1] : NULL;

	return !last || run->tick >= (uint64_t)last->tick + last->count;
}

/* "goroutine (chan receive)", "greenlet (suspended)", "task (waiting for Future)" */
static const char *name_of_task(struct ss_profile *profile, const struct ss_task *from)
{
	const char *status = ss_task_status_name(from->status);
	char name[192];

	if (from->kind == SS_TASK_GOROUTINE)
		(void)snprintf(name, sizeof(name), "goroutine (%s)", ss_task_words(from));
	else if (from->greenlet)
		(void)snprintf(name, sizeof(name), "greenlet (%s)", ss_task_words(from));
	else if (from->wait_reason)
		(void)snprintf(name, sizeof(name), "task (%s for %s)", status,
			       from->wait_reason);
	else
		(void)snprintf(name, sizeof(name), "task (%s)", status);
	return ss_profile_text(profile, name);
}

static char state_of_task(const struct ss_task *from)
{
	return from->status == SS_STATUS_RUNNABLE || from->status == SS_STATUS_RUNNING ?
		       'R' :
		       'S';
}

/* The task as a thread without runs. False without memory. */
static bool make_thread(struct load *load, const struct ss_recorded_task *recorded,
			struct ss_profile_thread *ret)
{
	const struct ss_task *from = &recorded->task;
	const bool numbered = from->kind == SS_TASK_GOROUTINE;

	*ret = (struct ss_profile_thread){
		.process = process_of(load, recorded->process),
		.tid = numbered && from->id <= INT32_MAX ? (pid_t)from->id : 0,
		.name = name_of_task(load->profile, from),
		.kind = from->kind,
		.id = from->id,
		.task = numbered ? NULL : ss_profile_text(load->profile, from->name),
	};
	return ret->process != SS_ID_NONE && ret->name && (ret->task || numbered);
}

/* Whether it is on no thread and selected. Otherwise its frames, or all but one, are those of a
   thread. */
static bool is_task_selected(struct load *load, const struct ss_recorded_task *from,
			     const struct ss_profile_thread *thread)
{
	const struct ss_load_options *options = load->options;
	const struct ss_task *task = &from->task;

	if (task->on_thread ||
	    (task->kind == SS_TASK_ASYNCIO && task->status == SS_STATUS_RUNNING) ||
	    tick_of(load, from->tick) == SIZE_MAX ||
	    (options->states && !strchr(options->states, state_of_task(task))) ||
	    (options->selects_thread &&
	     !options->selects_thread(options->data, thread->tid, thread->name)))
		return false;
	return ss_load_frames_wants(&load->frames, from->stack);
}

/* A task on no thread is a thread of its own in the profile. *left counts those that are too many. */
static bool add_task(struct load *load, const struct ss_recorded_task *from, size_t *left)
{
	const char *runtime = ss_profile_text(load->profile, from->task.runtime);
	struct ss_profile_thread task;
	uint32_t thread = SS_ID_NONE;

	if (!make_thread(load, from, &task) || (from->task.runtime && !runtime))
		return false;
	if (!is_task_selected(load, from, &task))
		return true;
	struct ss_profile_run run = {
		.tick = (uint32_t)tick_of(load, from->tick),
		.count = 1,
		.state = state_of_task(&from->task),
		.wait = SS_ID_NONE,
		.call = ss_load_frames_call(&load->frames, from->stack),
	};
	if (!find_task(load->profile, &task, runtime, &thread))
		return false;
	bool counts = thread != SS_ID_NONE && is_later(load, thread, &run);
	*left += !counts;
	return run.call != SS_ID_NONE &&
	       (!counts || ss_profile_sample(load->profile, thread, &run));
}

static bool add_tasks(struct load *load)
{
	static const char *const names[] = {
		[SS_TASK_GOROUTINE] = "goroutines", [SS_TASK_ASYNCIO] = "tasks"
	};
	size_t left[SS_TASK_KINDS] = {};
	bool ok = true;

	for (size_t i = 0; i < load->recording->tasks.count && ok; i++) {
		const struct ss_recorded_task *from = &load->recording->tasks.items[i];
		ok = add_task(load, from, &left[from->task.kind]);
	}
	for (size_t i = 0; i < SS_TASK_KINDS && ok; i++) {
		if (left[i])
			ok = ss_profile_note(load->profile,
					     "%s: %zu more %s are not counted",
					     current(load)->file, left[i], names[i]);
	}
	return ok;
}

/* Of a selection of stacks or states it is not known what belongs to it. */
static bool add_unsampled(struct load *load)
{
	const struct ss_load_options *options = load->options;

	if (!options->unsampled || options->states || options->selects_module ||
	    continues(load) ||
	    !ss_unsampled_has(load->profile, load->number, load->first_thread))
		return true;
	uint32_t call = ss_load_frames_unsampled(&load->frames);
	if (call == SS_ID_NONE)
		return ss_profile_is_full(load->profile);
	return ss_unsampled_add(load->profile, load->number, load->first_thread, call);
}

/* Adds a note for everything that is missing. */
static bool add_notes(const struct load *load)
{
	struct ss_profile *profile = load->profile;
	const char *file = current(load)->file;
	uint64_t missed = current(load)->missed;
	bool whole = true;

	if (load->info->problem)
		whole = ss_profile_note(profile, "%s: %s", file, load->info->problem);
	if (missed)
		whole = whole && ss_profile_note(profile, "%s: %llu %s missed", file,
						 (unsigned long long)missed,
						 missed == 1 ? "tick was" : "ticks were");
	profile->harmless += missed > 0;
	whole = whole && native_reasons_add_notes(&load->natives, profile, file);
	if (load->info->loss)
		whole = whole &&
			ss_profile_note(profile, "%s: %s", file, load->info->loss);
	if (load->steps)
		whole = whole &&
			ss_profile_note(
				profile,
				"%s: the clock was set, or the machine slept, during "
				"the recording (%+.1f s, in %u steps): times count "
				"from its start",
				file, (double)load->clock / 1e9, load->steps);
	if (load->info->waits_left_out || load->details_left)
		whole = whole && ss_profile_note(profile,
						 "%s: too many different waits: some "
						 "are shown without their object and "
						 "owner",
						 file);
	if (load->truncated || load->frames.truncated)
		whole = whole &&
			ss_profile_note(profile, "%s: too large, shown only in part",
					file);
	return whole;
}

struct ss_error *ss_load_recording(struct ss_profile *profile,
				   struct ss_recording *recording, const char *file,
				   const struct ss_load_options *options)
{
	_cleanup_(load_deinit) struct load load = {
		.profile = profile,
		.recording = recording,
		.info = ss_recording_info(recording),
		.options = options,
		.series = ss_series_find(profile, recording, options->set),
		.frames = { .profile = profile,
			    .recording = recording,
			    .options = options },
	};
	struct ss_sample sample;

	ss_load_waits_init(&load.waits, profile, load.info->machine);
	bool whole = load_init(&load, file) && add_lifetimes(&load);

	if (whole)
		find_excluded(&load);
	ss_recording_rewind(recording);
	while (whole && ss_recording_next(recording, &sample))
		whole = add_sample(&load, &sample);
	set_missed(&load);
	whole = (whole || load.truncated) && ss_load_waits_finish(&load.waits) &&
		add_tasks(&load) && add_waits(&load) && add_trace(&load) &&
		add_unsampled(&load) && add_notes(&load);
	return whole ? NULL : ss_error_no_memory();
}
