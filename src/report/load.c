#include "report/load.h"

#include <stdio.h>
#include <string.h>

#include "report/frames.h"
#include "report/waits.h"

/* A year at 1 kHz would be more; such a recording is read with a shorter window. */
enum { TICKS_MAX = 64 << 20 };

/* Less is a clock that is slowed down or sped up, not one that was set. */
enum { CLOCK_STEP_NS = 500000000 };

struct load {
	struct ss_profile *profile;
	struct ss_recording *recording;
	const struct ss_recording_info *info;
	const struct ss_load_options *options;
	struct ss_load_frames frames;
	struct ss_load_waits waits;
	uint32_t number;     /* of the recording in the profile */
	uint32_t *processes; /* by process of the recording: number + 1 */
	uint32_t *threads;   /* by thread: number + 1 */
	bool *unwanted;	     /* by thread */
	uint64_t first_tick;
	bool has_tick;
	int64_t clock;	/* how far the clock is from the steady time, at the last tick */
	unsigned steps; /* how often it was set meanwhile */
	size_t runs;
	uint64_t samples; /* read, also those that are not wanted */
	bool cut;
};

static void load_deinit(struct load *load)
{
	ss_load_frames_deinit(&load->frames);
	free(load->processes);
	free(load->threads);
	free(load->unwanted);
}

static struct ss_profile_recording *current(const struct load *load)
{
	return &load->profile->recordings.items[load->number];
}

static bool load_init(struct load *load, const char *file)
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
	recording->missed = load->info->missed;
	size_t processes = ss_recording_process_count(load->recording);
	size_t threads = ss_recording_thread_count(load->recording);
	load->processes = calloc(processes + 1, sizeof(*load->processes));
	load->threads = calloc(threads + 1, sizeof(*load->threads));
	load->unwanted = calloc(threads + 1, sizeof(*load->unwanted));
	return recording->file && load->processes && load->threads && load->unwanted &&
	       ss_load_frames_init(&load->frames);
}

/* SS_NUMBER_NOT without memory, as the two below. */
static uint32_t process_of(struct load *load, uint32_t index)
{
	const struct ss_recorded_process *recorded =
		ss_recording_process(load->recording, index);

	if (load->processes[index])
		return load->processes[index] - 1;
	struct ss_profile_process *process = ss_vector_push(&load->profile->processes);
	if (!process)
		return SS_NUMBER_NOT;
	process->recording = load->number;
	process->pid = recorded->pid;
	process->name = ss_profile_text(load->profile, recorded->name);
	process->executable = ss_profile_text(load->profile, recorded->executable);
	if (!process->name)
		return SS_NUMBER_NOT;
	load->processes[index] = (uint32_t)load->profile->processes.count;
	return load->processes[index] - 1;
}

static uint32_t thread_of(struct load *load, uint32_t index)
{
	const struct ss_recorded_thread *recorded =
		ss_recording_thread(load->recording, index);

	if (load->threads[index])
		return load->threads[index] - 1;
	uint32_t process = process_of(load, recorded->process);
	struct ss_profile_thread *thread =
		process == SS_NUMBER_NOT ? NULL : ss_vector_push(&load->profile->threads);
	if (!thread)
		return SS_NUMBER_NOT;
	thread->process = process;
	thread->tid = recorded->tid;
	thread->name = ss_profile_text(load->profile, recorded->name);
	if (!thread->name)
		return SS_NUMBER_NOT;
	load->threads[index] = (uint32_t)load->profile->threads.count;
	return load->threads[index] - 1;
}

static bool is_wanted(struct load *load, const struct ss_sample *sample)
{
	const struct ss_load_options *options = load->options;

	if (options->states &&
	    (!sample->state || !strchr(options->states, sample->state)))
		return false;
	return !load->unwanted[sample->thread] &&
	       ss_load_frames_wants(&load->frames, sample->stack);
}

/* The clock may be set while it is recorded. What counts is how long after the begin a
   sample was taken, so that none is moved to another one's time. */
static uint64_t steady_time(const struct load *load, const struct ss_sample *sample)
{
	return load->info->begin_ns +
	       (sample->monotonic_ns - load->info->begin_monotonic_ns);
}

/* Of each sample: whether the clock went its own way since the one before. */
static void watch_clock(struct load *load, const struct ss_sample *sample)
{
	int64_t clock = (int64_t)(sample->time_ns - steady_time(load, sample));
	uint64_t jump = clock > load->clock ? (uint64_t)clock - (uint64_t)load->clock :
					      (uint64_t)load->clock - (uint64_t)clock;

	load->steps += jump >= CLOCK_STEP_NS;
	load->clock = clock;
}

/* Ticks go on though no sample of theirs is wanted: time passes. The window alone cuts
   them. False: the profile is full, or there is no memory. */
static bool add_ticks(struct load *load, const struct ss_sample *sample, uint64_t time_ns)
{
	struct ss_profile_recording *recording = current(load);
	uint64_t start = load->profile->start_ns;
	uint64_t time = time_ns > start ? time_ns - start : 0;

	if (!load->has_tick)
		load->first_tick = sample->tick;
	load->has_tick = true;
	if (sample->tick < load->first_tick ||
	    sample->tick - load->first_tick >= TICKS_MAX) {
		load->cut = true;
		return false;
	}
	while (recording->ticks.count <= sample->tick - load->first_tick) {
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

/* False: enough, see load->cut, or no memory. */
static bool add_sample(struct load *load, const struct ss_sample *sample)
{
	struct ss_profile_run run = { .count = 1,
				      .state = sample->state,
				      .cpu_ns = sample->on_cpu_ns };

	uint64_t time_ns = steady_time(load, sample);

	load->cut = ++load->samples > SS_PROFILE_SAMPLES_MAX;
	if (load->cut)
		return false;
	watch_clock(load, sample);
	if (!is_in_window(load, time_ns))
		return true;
	if (!add_ticks(load, sample, time_ns))
		return false;
	if (!is_wanted(load, sample))
		return true;
	uint32_t thread = thread_of(load, sample->thread);
	run.call = ss_load_frames_call(&load->frames, sample->stack);
	if (thread == SS_NUMBER_NOT || run.call == SS_NUMBER_NOT ||
	    !ss_load_waits_set(&load->waits, sample, &run))
		return false;
	run.tick = (uint32_t)(sample->tick - load->first_tick);
	size_t before = load->profile->threads.items[thread].runs.count;
	if (!ss_profile_sample(load->profile, thread, &run))
		return false;
	load->runs += load->profile->threads.items[thread].runs.count - before;
	load->cut = load->runs > SS_PROFILE_RUNS_MAX;
	return !load->cut;
}

static void find_unwanted(struct load *load)
{
	for (size_t i = 0; i < ss_recording_thread_count(load->recording); i++) {
		const struct ss_recorded_thread *thread =
			ss_recording_thread(load->recording, i);
		load->unwanted[i] = load->options->wants_thread &&
				    !load->options->wants_thread(load->options->data,
								 thread->tid,
								 thread->name);
	}
}

/* A moment of the recording's steady clock, since the begin of the profile. */
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
		struct ss_profile_lifetime *lifetime =
			process == SS_NUMBER_NOT ?
				NULL :
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

/* Of threads that have samples here. */
static bool add_links(struct load *load)
{
	for (size_t i = 0; i < ss_recording_wait_count(load->recording); i++) {
		const struct ss_recorded_wait *wait =
			ss_recording_wait(load->recording, i);
		uint32_t owner = wait->owner == UINT32_MAX ? 0 :
							     load->threads[wait->owner];
		if (!load->threads[wait->thread])
			continue;
		struct ss_profile_link *link = ss_vector_push(&load->profile->links);
		if (!link)
			return false;
		*link = (struct ss_profile_link){
			.thread = load->threads[wait->thread] - 1,
			.owner = owner ? owner - 1 : SS_NUMBER_NOT,
			.kind = ss_profile_text(load->profile, wait->kind),
			.text = ss_profile_text(load->profile, wait->text),
			.in_circle = wait->in_circle,
		};
		if (!link->kind || !link->text)
			return false;
	}
	return true;
}

/* What is missing, in words. */
static bool add_notes(const struct load *load)
{
	struct ss_profile *profile = load->profile;
	const char *file = current(load)->file;
	bool whole = true;

	if (load->info->problem)
		whole = ss_profile_note(profile, "%s: %s", file, load->info->problem);
	if (load->info->missed)
		whole = whole && ss_profile_note(profile, "%s: %llu %s missed", file,
						 (unsigned long long)load->info->missed,
						 load->info->missed == 1 ? "tick was" :
									   "ticks were");
	if (load->steps)
		whole = whole &&
			ss_profile_note(profile,
					"%s: the clock was set meanwhile, or the machine "
					"slept (%+.1f s, in %u steps): times are counted "
					"from its begin",
					file, (double)load->clock / 1e9, load->steps);
	if (load->cut || load->frames.cut)
		whole = whole &&
			ss_profile_note(profile, "%s: too large to be shown whole", file);
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
		.frames = { .profile = profile,
			    .recording = recording,
			    .options = options },
	};
	struct ss_sample sample;
	ss_load_waits_init(&load.waits, profile, load.info->machine);
	bool whole = load_init(&load, file) && add_lifetimes(&load);

	if (whole)
		find_unwanted(&load);
	ss_recording_rewind(recording);
	while (whole && ss_recording_next(recording, &sample))
		whole = add_sample(&load, &sample);
	return (whole || load.cut) && ss_load_waits_finish(&load.waits) &&
			       add_links(&load) && add_notes(&load) ?
		       NULL :
		       ss_error_no_memory();
}
