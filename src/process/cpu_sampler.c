#include "process/cpu_sampler.h"

#include <poll.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "process/perf_ring.h"

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

void ss_cpu_sampler_wait(const struct ss_cpu_sampler *sampler, uint64_t limit_ns)
{
	struct timespec limit = { .tv_sec = (time_t)(limit_ns / SS_NS_PER_SECOND),
				  .tv_nsec = (long)(limit_ns % SS_NS_PER_SECOND) };
	struct pollfd fds[WAIT_MAX];
	size_t count = SS_MIN(sampler->events.count, (size_t)WAIT_MAX);

	for (size_t i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = sampler->events.items[i].ring.fd,
					  .events = POLLIN };
	(void)ppoll(fds, count, &limit, NULL); /* however it ends: the caller looks */
}

/* Removes one record. False: there is none, or it is no sample with registers. */
static bool take_record(struct ss_cpu_event *event, struct record *ret, bool *any)
{
	size_t regs = (size_t)__builtin_popcountll(ss_arch_host.attach->sample_mask);
	size_t size = offsetof(struct record, regs) + regs * SS_REG_WORD;
	struct perf_event_header header;

	*any = ss_perf_ring_next(&event->ring, &header);
	if (!*any)
		return false;
	bool whole = ss_perf_ring_copy(&event->ring, 0, ret, size);
	ss_perf_ring_drop(&event->ring);
	return whole && header.type == PERF_RECORD_SAMPLE &&
	       ret->abi == PERF_SAMPLE_REGS_ABI_64;
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
