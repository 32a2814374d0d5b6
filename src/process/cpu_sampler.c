#include "process/perf.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum {
	RING_BYTES = 8 * 4096, /* 160 samples */
	WAIT_MAX = 64,	       /* CPUs whose samples end a wait early */
	REGS_MAX = 64,
};

struct ss_cpu_event {
	int cpu;
	struct ss_perf_ring ring;
	uint64_t until_ns; /* it is active at most until then */
};

/* PERF_RECORD_SAMPLE with these sample types. */
struct record {
	struct perf_event_header header;
	uint32_t pid;
	uint32_t tid;
	uint64_t time_ns;
	uint64_t abi; /* PERF_SAMPLE_REGS_ABI_NONE: no registers follow */
	uint64_t regs[REGS_MAX];
};

static struct ss_cpu_event *add_event(struct ss_cpu_sampler *sampler, int cpu)
{
	struct ss_cpu_event event = { .cpu = cpu };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = SS_CPU_PERIOD_NS,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER,
		.sample_regs_user = ss_arch_host.attach->sample_mask,
		.wakeup_events = 1,
	};

	if (ss_perf_ring_open(&event.ring, &attr, cpu, RING_BYTES, RING_BYTES) != 0)
		return NULL;
	struct ss_cpu_event *slot = ss_vector_push(&sampler->events);
	if (slot)
		*slot = event;
	else
		ss_perf_ring_close(&event.ring);
	return slot;
}

static struct ss_cpu_event *find_event(const struct ss_cpu_sampler *sampler, int cpu)
{
	for (size_t i = 0; i < sampler->events.count; i++)
		if (sampler->events.items[i].cpu == cpu)
			return &sampler->events.items[i];
	return NULL;
}

bool ss_cpu_sampler_start(struct ss_cpu_sampler *sampler, int cpu, unsigned samples)
{
	uint64_t now = ss_now_ns();

	if (sampler->refused)
		return false;
	struct ss_cpu_event *event = find_event(sampler, cpu);
	if (!event)
		event = add_event(sampler, cpu);
	/* An event ends itself after so many samples: stopping it would interrupt its CPU
	   once more. */
	if (event && now >= event->until_ns &&
	    ioctl(event->ring.fd, PERF_EVENT_IOC_REFRESH, samples) == 0)
		event->until_ns = now + samples * (uint64_t)SS_CPU_PERIOD_NS;
	sampler->refused = !event;
	return event;
}

static void wait_for_sample(struct pollfd *fds, size_t count, uint64_t limit_ns)
{
	struct timespec limit = { .tv_sec = (time_t)(limit_ns / SS_NS_PER_SECOND),
				  .tv_nsec = (long)(limit_ns % SS_NS_PER_SECOND) };

	/* However it ends: the caller looks. */
	(void)ppoll(fds, count, &limit, NULL);
}

void ss_cpu_sampler_wait(const struct ss_cpu_sampler *sampler, uint64_t limit_ns)
{
	struct pollfd fds[WAIT_MAX];
	size_t count = SS_MIN(sampler->events.count, (size_t)WAIT_MAX);

	for (size_t i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = sampler->events.items[i].ring.fd,
					  .events = POLLIN };
	wait_for_sample(fds, count, limit_ns);
}

/* Removes one record. False: there is none, or it is no sample with registers. */
static bool take_record(struct ss_cpu_event *event, struct record *ret, bool *any)
{
	size_t regs = (size_t)__builtin_popcountll(ss_arch_host.attach->sample_mask);
	size_t size = offsetof(struct record, regs) + regs * SS_SAMPLE_WORD;
	struct perf_event_header header;

	*any = ss_perf_ring_next(&event->ring, &header);
	if (!*any)
		return false;
	bool whole = ss_perf_ring_copy(&event->ring, 0, ret, size);
	ss_perf_ring_drop(&event->ring);
	return whole && header.type == PERF_RECORD_SAMPLE &&
	       ret->abi != PERF_SAMPLE_REGS_ABI_NONE;
}

bool ss_cpu_sampler_next(struct ss_cpu_sampler *sampler, struct ss_cpu_sample *ret)
{
	struct record record;

	for (size_t i = 0; i < sampler->events.count; i++) {
		for (bool any = true; any;) {
			if (!take_record(&sampler->events.items[i], &record, &any))
				continue;
			uint16_t mode = record.header.misc &
					PERF_RECORD_MISC_CPUMODE_MASK;
			*ret = (struct ss_cpu_sample){
				.tid = (pid_t)record.tid,
				.time_ns = record.time_ns,
				.in_kernel = mode == PERF_RECORD_MISC_KERNEL,
			};
			ss_arch_host.attach->from_sample(record.regs, &ret->kernel);
			return true;
		}
	}
	return false;
}

void ss_cpu_sampler_deinit(struct ss_cpu_sampler *sampler)
{
	for (size_t i = 0; i < sampler->events.count; i++)
		ss_perf_ring_close(&sampler->events.items[i].ring);
	ss_vector_free(&sampler->events);
	*sampler = (struct ss_cpu_sampler){};
}

enum {
	USER_RING_BYTES = 4096, /* 170 samples; an unprivileged user may lock few pages */
	EVENTS_MAX = 48,
	/* of the time that the thread runs: a sample in the kernel is left out, and the next
	   one is twice as far */
	NEXT_NS = SS_USER_PERIOD_NS + SS_USER_PERIOD_NS / 2,
	USER_WAKEUP = 4, /* samples; each wake-up may take the CPU from the thread */
	SAMPLES_MIN = 10,
	USER_PART = 10, /* at least one in so many */
};

struct ss_user_event {
	pid_t tid;
	struct ss_perf_ring ring;
	uint64_t last_ran_ns;
	unsigned in_succession;
	uint64_t count;
	uint64_t seen_ns;
};

/* PERF_RECORD_SAMPLE with these sample types. */
struct user_record {
	struct perf_event_header header;
	uint64_t time_ns;
	uint64_t ran_ns;
};

static struct ss_user_event *find_thread(const struct ss_user_sampler *sampler, pid_t tid)
{
	for (size_t i = 0; i < sampler->events.count; i++)
		if (sampler->events.items[i].tid == tid)
			return &sampler->events.items[i];
	return NULL;
}

/* 0, or an error number. */
static int add_thread(struct ss_user_sampler *sampler, pid_t tid)
{
	struct ss_user_event event = { .tid = tid };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = SS_USER_PERIOD_NS,
		.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_READ,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.wakeup_events = USER_WAKEUP,
	};

	int error = ss_perf_ring_open_thread(&event.ring, &attr, tid, USER_RING_BYTES);
	if (error)
		return error;
	struct ss_user_event *slot = ss_vector_push(&sampler->events);
	if (!slot || ioctl(event.ring.fd, PERF_EVENT_IOC_ENABLE, 0) != 0) {
		sampler->events.count -= slot != NULL;
		ss_perf_ring_close(&event.ring);
		return ENOMEM;
	}
	*slot = event;
	return 0;
}

bool ss_user_sampler_start(struct ss_user_sampler *sampler, pid_t tid)
{
	if (find_thread(sampler, tid))
		return true;
	if (sampler->refused || sampler->events.count == EVENTS_MAX)
		return false;
	int error = add_thread(sampler, tid);
	sampler->refused = error && error != ESRCH;
	return error == 0;
}

void ss_user_sampler_wait(const struct ss_user_sampler *sampler, uint64_t limit_ns)
{
	struct pollfd fds[EVENTS_MAX];

	for (size_t i = 0; i < sampler->events.count; i++)
		fds[i] = (struct pollfd){ .fd = sampler->events.items[i].ring.fd,
					  .events = POLLIN };
	wait_for_sample(fds, sampler->events.count, limit_ns);
}

uint64_t ss_user_sampler_ran_ns(const struct ss_user_sampler *sampler, pid_t tid)
{
	const struct ss_user_event *event = find_thread(sampler, tid);
	uint64_t ran_ns = 0;

	return event && read(event->ring.fd, &ran_ns, sizeof(ran_ns)) == sizeof(ran_ns) ?
		       ran_ns :
		       0;
}

/* Takes the samples. */
static void take_samples(struct ss_user_event *event, unsigned in_succession)
{
	struct perf_event_header header;
	struct user_record record;

	while (ss_perf_ring_next(&event->ring, &header)) {
		bool whole = ss_perf_ring_copy(&event->ring, 0, &record, sizeof(record));
		ss_perf_ring_drop(&event->ring);
		if (!whole || header.type != PERF_RECORD_SAMPLE)
			continue;
		bool next = record.ran_ns - event->last_ran_ns <= (uint64_t)NEXT_NS;
		event->in_succession = next ? event->in_succession + 1 : 1;
		if (event->in_succession >= in_succession)
			event->seen_ns = record.time_ns;
		event->last_ran_ns = record.ran_ns;
		event->count++;
	}
}

uint64_t ss_user_sampler_seen(const struct ss_user_sampler *sampler, pid_t tid,
			      unsigned in_succession)
{
	struct ss_user_event *event = find_thread(sampler, tid);

	if (!event)
		return 0;
	take_samples(event, in_succession);
	uint64_t all = ss_user_sampler_ran_ns(sampler, tid) / SS_USER_PERIOD_NS;
	return all >= SAMPLES_MIN && event->count >= all / USER_PART ? event->seen_ns : 0;
}

void ss_user_sampler_deinit(struct ss_user_sampler *sampler)
{
	for (size_t i = 0; i < sampler->events.count; i++)
		ss_perf_ring_close(&sampler->events.items[i].ring);
	ss_vector_free(&sampler->events);
	*sampler = (struct ss_user_sampler){};
}
