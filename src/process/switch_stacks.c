#include "process/switch_stacks.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/search.h"
#include "process/perf_ring.h"

enum {
	/* Two records: the newest one stays whole while the next one is written. */
	RING_BYTES = 64 << 10,
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
struct head {
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
	size_t at = find_place(stacks, tid);

	return at < stacks->events.count && stacks->events.items[at].tid == tid ?
		       &stacks->events.items[at] :
		       NULL;
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
	int errnum = ss_perf_ring_open_newest(ring, &attr, tid, RING_BYTES);

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
static bool read_sample(const struct ss_perf_ring *ring, uint64_t at,
			struct ss_switch_sample *ret, uint8_t *stack)
{
	size_t regs_size =
		(size_t)__builtin_popcountll(ss_arch_host.attach->sample_mask) *
		SS_REG_WORD;
	uint64_t regs[sizeof(ss_arch_host.attach->sample_mask) * 8];
	uint64_t size = 0;
	uint64_t copied = 0;
	struct head head;

	ss_perf_ring_peek(ring, at, &head, sizeof(head));
	if (head.abi != PERF_SAMPLE_REGS_ABI_64) /* in the kernel only */
		return false;
	at += sizeof(head);
	ss_perf_ring_peek(ring, at, regs, regs_size);
	at += regs_size;
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
					       read_sample(ring, at, ret, stack) ?
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
