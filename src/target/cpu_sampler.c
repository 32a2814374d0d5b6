#include "target/cpu_sampler.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum {
	PAGE = 4096,
	DATA_BYTES = 8 * PAGE, /* 160 samples; a power of two */
	RING_BYTES = PAGE + DATA_BYTES,
	WAIT_MAX = 64, /* CPUs whose samples end a wait early */
	REGS_MAX = 64,
};

struct ss_cpu_event {
	int cpu;
	int fd;
	struct perf_event_mmap_page *ring;
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

static int open_event(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = SS_CPU_PERIOD_NS,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER,
		.sample_regs_user = ss_arch_host.attach->sample_mask,
		.disabled = 1,
		.exclude_idle = 1,
		.exclude_guest = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.wakeup_events = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

static void close_event(struct ss_cpu_event *event)
{
	if (event->ring)
		(void)munmap(event->ring, RING_BYTES); /* cannot fail: our mapping */
	close_cleanup(&event->fd);
}

static struct ss_cpu_event *add_event(struct ss_cpu_sampler *sampler, int cpu)
{
	_cleanup_close_ int fd = open_event(cpu);

	if (fd < 0)
		return NULL;
	void *ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct ss_cpu_event *event =
		ring == MAP_FAILED ? NULL : ss_vector_push(&sampler->events);
	if (event)
		*event = (struct ss_cpu_event){ .cpu = cpu,
						.fd = take_fd(fd),
						.ring = ring };
	else if (ring != MAP_FAILED)
		(void)munmap(ring, RING_BYTES); /* cannot fail: our mapping */
	return event;
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
	    ioctl(event->fd, PERF_EVENT_IOC_REFRESH, samples) == 0)
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
		fds[i] = (struct pollfd){ .fd = sampler->events.items[i].fd,
					  .events = POLLIN };
	(void)ppoll(fds, count, &limit, NULL); /* however it ends: the caller looks */
}

/* Copies from the ring, in which a record may continue at the beginning. */
static void copy(const struct ss_cpu_event *event, uint64_t at, void *ret, size_t size)
{
	const char *data = (const char *)event->ring + PAGE;
	size_t from = at % DATA_BYTES;
	size_t first = SS_MIN(size, DATA_BYTES - from);

	memcpy(ret, data + from, first);
	memcpy((char *)ret + first, data, size - first);
}

/* Removes one record. False: there is none, or it is no sample with registers. */
static bool take_record(struct ss_cpu_event *event, struct record *ret, bool *any)
{
	uint64_t head = __atomic_load_n(&event->ring->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = event->ring->data_tail;
	struct perf_event_header header;

	*any = head - tail >= sizeof(header);
	if (!*any)
		return false;
	copy(event, tail, &header, sizeof(header));
	size_t size = SS_MIN((size_t)header.size, sizeof(*ret));
	copy(event, tail, ret, size);
	__atomic_store_n(&event->ring->data_tail, tail + header.size, __ATOMIC_RELEASE);
	size_t regs = (size_t)__builtin_popcountll(ss_arch_host.attach->sample_mask);
	return header.type == PERF_RECORD_SAMPLE &&
	       size >= offsetof(struct record, regs) + regs * SS_REG_WORD &&
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
		close_event(&sampler->events.items[i]);
	ss_vector_free(&sampler->events);
	*sampler = (struct ss_cpu_sampler){};
}
