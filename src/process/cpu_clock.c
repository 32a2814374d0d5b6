#include "process/cpu_clock.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

enum {
	/* Room for a few samples where a tick is late. Users without CAP_IPC_LOCK may lock
	   516 KiB for each CPU (perf_event_mlock_kb). */
	RING_BYTES = 1 << 20,
	RING_BYTES_MANY = 256 << 10, /* of each of many CPUs */
	RING_BYTES_MIN = 128 << 10,
	MANY_CPUS = 16,
	SET_MAX = 8, /* each call to set one interrupts a CPU */
};

/* PERF_RECORD_SAMPLE with these sample types. The registers follow, then the size of the
   stack, its bytes, and how many of them were copied. */
struct head {
	struct perf_event_header header;
	uint32_t pid;
	uint32_t tid;
	uint64_t time_ns;
	uint64_t abi;
};

static size_t regs_size(void)
{
	return (size_t)__builtin_popcountll(ss_arch_host.attach->sample_mask) *
	       SS_REG_WORD;
}

/* Of the size of the stack in a record. */
static size_t stack_offset(void)
{
	return sizeof(struct head) + regs_size();
}

static int open_cpu(struct ss_cpu_clock *clock, int cpu, uint64_t period_ns, size_t size)
{
	struct ss_clock_ring ring = { .cpu = cpu };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = ss_arch_host.attach->sample_mask,
		.sample_stack_user = (uint32_t)clock->stack_max,
		/* The reader wakes up by itself. */
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
	int errnum = ss_perf_ring_open(&ring.ring, &attr, cpu, size, RING_BYTES_MIN);

	if (errnum == ENODEV) /* offline */
		return 0;
	if (errnum)
		return errnum;
	struct ss_clock_ring *slot =
		ss_io_may_keep(ring.ring.fd) ? ss_vector_push(&clock->rings) : NULL;
	if (!slot) {
		errnum = ss_io_may_keep(ring.ring.fd) ? ENOMEM : EMFILE;
		ss_perf_ring_close(&ring.ring);
		return errnum;
	}
	*slot = ring;
	return 0;
}

int ss_cpu_clock_open(struct ss_cpu_clock *clock, uint64_t period_ns, size_t max_stack)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t size = cpus > MANY_CPUS ? RING_BYTES_MANY : RING_BYTES;
	int errnum = 0;

	*clock = (struct ss_cpu_clock){
		.stack_max = SS_MIN(max_stack, (size_t)SS_CPU_CLOCK_STACK_MAX) &
			     ~(size_t)(SS_REG_WORD - 1),
	};
	for (int cpu = 0; cpu < cpus && errnum == 0; cpu++)
		errnum = open_cpu(clock, cpu, period_ns, size);
	if (errnum == 0 && clock->rings.count == 0)
		errnum = ENODEV;
	if (errnum)
		ss_cpu_clock_close(clock);
	return errnum;
}

void ss_cpu_clock_start(const struct ss_cpu_clock *clock)
{
	/* Fails for a CPU that went offline. */
	for (size_t i = 0; i < clock->rings.count; i++)
		(void)ioctl(clock->rings.items[i].ring.fd, PERF_EVENT_IOC_ENABLE, 0);
}

void ss_cpu_clock_close(struct ss_cpu_clock *clock)
{
	for (size_t i = 0; i < clock->rings.count; i++)
		ss_perf_ring_close(&clock->rings.items[i].ring);
	ss_vector_free(&clock->rings);
	*clock = (struct ss_cpu_clock){};
}

void ss_cpu_clock_set(struct ss_cpu_clock *clock, uint64_t interval_ns)
{
	size_t count = SS_MIN(clock->rings.count, (size_t)SET_MAX);

	for (size_t i = 0; i < count; i++) {
		size_t at = clock->setting++ % clock->rings.count;
		/* If it fails (the CPU went offline), its interval stays. */
		(void)ioctl(clock->rings.items[at].ring.fd, PERF_EVENT_IOC_PERIOD,
			    &interval_ns);
	}
}

/* How much of the stack was copied. */
static size_t read_stack_size(const struct ss_cpu_clock *clock,
			      const struct ss_perf_ring *ring, bool *truncated)
{
	size_t at = stack_offset();
	uint64_t size = 0;
	uint64_t copied = 0;

	if (!ss_perf_ring_copy(ring, at, &size, sizeof(size)) || size == 0 ||
	    !ss_perf_ring_copy(ring, at + sizeof(size) + size, &copied, sizeof(copied)))
		return 0;
	*truncated = copied == size && size >= clock->stack_max;
	return SS_MIN(copied, size);
}

static bool read_sample(const struct ss_cpu_clock *clock,
			const struct ss_clock_ring *from, struct ss_clock_sample *ret)
{
	const struct ss_perf_ring *ring = &from->ring;
	uint64_t regs[sizeof(ss_arch_host.attach->sample_mask) * 8];
	struct head head;

	if (!ss_perf_ring_copy(ring, 0, &head, sizeof(head)))
		return false;
	*ret = (struct ss_clock_sample){
		.pid = (pid_t)head.pid,
		.tid = (pid_t)head.tid,
		.cpu = from->cpu,
		.time_ns = head.time_ns,
		.in_kernel = (head.header.misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
			     PERF_RECORD_MISC_KERNEL,
		.has_regs = head.abi == PERF_SAMPLE_REGS_ABI_64 &&
			    ss_perf_ring_copy(ring, sizeof(head), regs, regs_size()),
	};
	if (!ret->has_regs)
		return true;
	ss_arch_host.attach->from_sample(regs, &ret->kernel);
	ret->stack_size = read_stack_size(clock, ring, &ret->truncated);
	return true;
}

/* PERF_RECORD_LOST: id, count. */
static void count_lost(struct ss_cpu_clock *clock, const struct ss_perf_ring *ring)
{
	uint64_t fields[2];

	if (ss_perf_ring_copy(ring, sizeof(struct perf_event_header), fields,
			      sizeof(fields)))
		clock->lost += fields[1];
}

bool ss_cpu_clock_next(struct ss_cpu_clock *clock, struct ss_clock_sample *ret)
{
	struct perf_event_header header;

	for (; clock->reading < clock->rings.count; clock->reading++) {
		struct ss_clock_ring *from = &clock->rings.items[clock->reading];
		/* The one that was returned last. */
		if (from->ring.next > from->ring.page->data_tail)
			ss_perf_ring_drop(&from->ring);
		while (ss_perf_ring_next(&from->ring, &header)) {
			if (header.type == PERF_RECORD_LOST)
				count_lost(clock, &from->ring);
			if (header.type == PERF_RECORD_SAMPLE &&
			    read_sample(clock, from, ret))
				return true;
			ss_perf_ring_drop(&from->ring);
		}
	}
	clock->reading = 0;
	return false;
}

bool ss_cpu_clock_copy_stack(const struct ss_cpu_clock *clock, void *ret, size_t size)
{
	return ss_perf_ring_copy(&clock->rings.items[clock->reading].ring,
				 stack_offset() + sizeof(uint64_t), ret, size);
}
