#include "process/perf.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/search.h"

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
	       SS_SAMPLE_WORD;
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
			     ~(size_t)(SS_SAMPLE_WORD - 1),
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
		.has_regs = head.abi != PERF_SAMPLE_REGS_ABI_NONE &&
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

enum {
	/* Two records: the newest one stays whole while the next one is written. */
	SWITCH_RING_BYTES = 64 << 10,
	EVENTS_MAX = 128,
	/* Records in a second, each of a switch: 0.4 % of its time. */
	RATE_MAX = 2000,
	RECORD_MIN = 32, /* of a switch, to count them */
};

struct ss_switch_event {
	pid_t tid;
	struct ss_perf_ring ring;
	uint64_t asked_ns;
	uint64_t head; /* at the last sweep */
};

/* PERF_RECORD_SAMPLE with these sample types. The registers follow, then the size of the
   stack, its bytes, and how many of them were copied. */
struct switch_head {
	struct perf_event_header header;
	uint64_t time_ns;
	uint64_t abi;
};

static size_t find_place(const struct ss_switch_stacks *stacks, pid_t tid)
{
	return ss_lower_bound(stacks->events.count, i, stacks->events.items[i].tid < tid);
}

static struct ss_switch_event *find_event(const struct ss_switch_stacks *stacks,
					  pid_t tid)
{
	return ss_search(stacks->events.items, stacks->events.count, tid, tid);
}

static struct perf_event_attr describe(void)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CONTEXT_SWITCHES,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.sample_regs_user = ss_arch_host.attach->sample_mask,
		.sample_stack_user = SS_SWITCH_STACK_MAX,
		.disabled = 1,
		/* A record says whether it gave the CPU up itself, and when it got one. */
		.context_switch = 1,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
}

void ss_switch_stacks_open(struct ss_switch_stacks *stacks)
{
	struct perf_event_attr attr = describe();

	/* Of this thread; it stays disabled. */
	stacks->first = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
				     PERF_FLAG_FD_CLOEXEC) +
			1;
}

void ss_switch_stacks_close(struct ss_switch_stacks *stacks)
{
	for (size_t i = 0; i < stacks->events.count; i++)
		ss_perf_ring_close(&stacks->events.items[i].ring);
	ss_vector_free(&stacks->events);
	if (stacks->first)
		(void)close(stacks->first - 1);
	*stacks = (struct ss_switch_stacks){};
}

static int open_event(struct ss_perf_ring *ring, pid_t tid)
{
	struct perf_event_attr attr = describe();
	int errnum = ss_perf_ring_open_newest(ring, &attr, tid, SWITCH_RING_BYTES);

	if (errnum)
		return errnum;
	if (!ss_io_may_keep(ring->fd)) {
		ss_perf_ring_close(ring);
		return EMFILE;
	}
	(void)ioctl(ring->fd, PERF_EVENT_IOC_ENABLE, 0); /* ours, and disabled */
	return 0;
}

bool ss_switch_stacks_are_full(const struct ss_switch_stacks *stacks)
{
	return stacks->events.count == EVENTS_MAX;
}

bool ss_switch_stacks_start(struct ss_switch_stacks *stacks, pid_t tid)
{
	struct ss_switch_event event = { .tid = tid, .asked_ns = ss_now_ns() };
	size_t at = find_place(stacks, tid);

	if (find_event(stacks, tid))
		return true;
	if (stacks->first == 0 || ss_switch_stacks_are_full(stacks) ||
	    open_event(&event.ring, tid) != 0)
		return false;
	if (!ss_vector_push(&stacks->events)) {
		ss_perf_ring_close(&event.ring);
		return false;
	}
	struct ss_switch_event *slot = &stacks->events.items[at];
	memmove(slot + 1, slot, (stacks->events.count - 1 - at) * sizeof(*slot));
	*slot = event;
	return true;
}

void ss_switch_stacks_end(struct ss_switch_stacks *stacks, pid_t tid)
{
	struct ss_switch_event *event = find_event(stacks, tid);

	if (!event)
		return;
	size_t at = (size_t)(event - stacks->events.items);
	ss_perf_ring_close(&event->ring);
	stacks->events.count--;
	memmove(event, event + 1, (stacks->events.count - at) * sizeof(*event));
}

/* Reads a sample that begins at a position of the ring. */
static bool read_switch(const struct ss_perf_ring *ring, uint64_t at,
			struct ss_switch_sample *ret, uint8_t *stack)
{
	uint64_t regs[sizeof(ss_arch_host.attach->sample_mask) * 8];
	uint64_t size = 0;
	uint64_t copied = 0;
	struct switch_head head;

	ss_perf_ring_peek(ring, at, &head, sizeof(head));
	if (head.abi == PERF_SAMPLE_REGS_ABI_NONE) /* in the kernel only */
		return false;
	at += sizeof(head);
	ss_perf_ring_peek(ring, at, regs, regs_size());
	at += regs_size();
	ss_perf_ring_peek(ring, at, &size, sizeof(size));
	if (size == 0 || size > SS_SWITCH_STACK_MAX)
		return false;
	at += sizeof(size);
	ss_perf_ring_peek(ring, at + size, &copied, sizeof(copied));
	if (copied == 0 || copied > size)
		return false;
	ss_perf_ring_peek(ring, at, stack, copied);
	ss_arch_host.attach->from_sample(regs, &ret->kernel);
	ret->time_ns = head.time_ns;
	ret->stack_size = copied;
	ret->truncated = copied == size;
	return true;
}

/* The records of one time on a CPU, newest first: perhaps that it got one, that it left it, its
   sample. */
static enum ss_switch_result read_newest(const struct ss_perf_ring *ring, uint64_t head,
					 struct ss_switch_sample *ret, uint8_t *stack)
{
	enum ss_switch_result result = SS_SWITCH_UNKNOWN;
	struct perf_event_header header;

	for (uint64_t at = head; at != 0;
	     at += header.size) { /* the first one ends at 0 */
		ss_perf_ring_peek(ring, at, &header, sizeof(header));
		if (header.size < sizeof(header) || at - head > ring->size / 2)
			return SS_SWITCH_UNKNOWN;
		if (header.type == PERF_RECORD_SAMPLE)
			return result != SS_SWITCH_UNKNOWN &&
					       read_switch(ring, at, ret, stack) ?
				       result :
				       SS_SWITCH_UNKNOWN;
		if (header.type != PERF_RECORD_SWITCH)
			return SS_SWITCH_UNKNOWN;
		if (header.misc & PERF_RECORD_MISC_SWITCH_OUT)
			result = header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ?
					 SS_SWITCH_PREEMPTED :
					 SS_SWITCH_LEFT;
	}
	return SS_SWITCH_NONE_YET;
}

enum ss_switch_result ss_switch_stacks_find(struct ss_switch_stacks *stacks, pid_t tid,
					    uint64_t now_ns, struct ss_switch_sample *ret,
					    uint8_t *stack)
{
	struct ss_switch_event *event = find_event(stacks, tid);

	if (!event)
		return SS_SWITCH_UNKNOWN;
	event->asked_ns = now_ns;
	uint64_t head = ss_perf_ring_head(&event->ring);
	enum ss_switch_result result = read_newest(&event->ring, head, ret, stack);
	/* Records that were written meanwhile have not overwritten these. */
	return head - ss_perf_ring_head(&event->ring) < event->ring.size / 4 ?
		       result :
		       SS_SWITCH_UNKNOWN;
}

/* Whether a thread is still worth its event. */
static bool is_useful(struct ss_switch_event *event, uint64_t now_ns)
{
	uint64_t head = ss_perf_ring_head(&event->ring);
	uint64_t written = event->head - head;
	uint64_t each = SS_SWITCH_STACK_MAX + RECORD_MIN; /* at least */

	event->head = head;
	return written / each < RATE_MAX && now_ns - event->asked_ns < SS_NS_PER_SECOND;
}

void ss_switch_stacks_sweep(struct ss_switch_stacks *stacks, uint64_t now_ns)
{
	size_t kept = 0;

	if (now_ns - stacks->swept_ns < SS_NS_PER_SECOND)
		return;
	stacks->swept_ns = now_ns;
	for (size_t i = 0; i < stacks->events.count; i++) {
		struct ss_switch_event *event = &stacks->events.items[i];
		if (is_useful(event, now_ns))
			stacks->events.items[kept++] = *event;
		else
			ss_perf_ring_close(&event->ring);
	}
	stacks->events.count = kept;
}
