#include "process/mmap_events.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

/* Users without CAP_IPC_LOCK may lock 516 KiB for each CPU (perf_event_mlock_kb). */
enum { RING_BYTES = 128 << 10, RING_BYTES_MIN = 32 << 10 };

/* PERF_RECORD_MMAP2. The path follows, and at the end the time. */
struct head {
	struct perf_event_header header;
	uint32_t pid;
	uint32_t tid;
	uint64_t start;
	uint64_t size;
	uint64_t offset;
	uint8_t build_id_size; /* or other fields, see misc of the header */
	uint8_t reserved[3];
	uint8_t build_id[SS_MMAP_BUILD_ID_MAX];
	uint32_t prot;
	uint32_t flags;
};

static int open_cpu(struct ss_mmap_events *events, int cpu, bool build_ids)
{
	struct ss_perf_ring ring = { .fd = -1 };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.build_id = build_ids,
		/* The reader wakes up by itself. */
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
	int errnum = ss_perf_ring_open(&ring, &attr, cpu, RING_BYTES, RING_BYTES_MIN);

	if (errnum == ENODEV) /* offline */
		return 0;
	if (errnum)
		return errnum;
	struct ss_perf_ring *slot =
		ss_io_may_keep(ring.fd) ? ss_vector_push(&events->rings) : NULL;
	if (!slot) {
		errnum = ss_io_may_keep(ring.fd) ? ENOMEM : EMFILE;
		ss_perf_ring_close(&ring);
		return errnum;
	}
	*slot = ring;
	return 0;
}

static int open_all(struct ss_mmap_events *events, bool build_ids)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int errnum = 0;

	for (int cpu = 0; cpu < cpus && errnum == 0; cpu++)
		errnum = open_cpu(events, cpu, build_ids);
	if (errnum == 0 && events->rings.count == 0)
		errnum = ENODEV;
	if (errnum)
		ss_mmap_events_close(events);
	return errnum;
}

int ss_mmap_events_open(struct ss_mmap_events *events)
{
	*events = (struct ss_mmap_events){};
	int errnum = open_all(events, true);
	if (errnum == EINVAL || errnum == E2BIG) /* before Linux 5.12 */
		errnum = open_all(events, false);
	/* Fails for a CPU that went offline. */
	for (size_t i = 0; i < events->rings.count; i++)
		(void)ioctl(events->rings.items[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	return errnum;
}

void ss_mmap_events_close(struct ss_mmap_events *events)
{
	for (size_t i = 0; i < events->rings.count; i++)
		ss_perf_ring_close(&events->rings.items[i]);
	ss_vector_free(&events->rings);
	*events = (struct ss_mmap_events){};
}

/* False: it is not of code. */
static bool read_event(const struct ss_perf_ring *ring,
		       const struct perf_event_header *header, struct ss_mmap_event *ret)
{
	struct head head;

	if (header->size < sizeof(head) + sizeof(ret->time_ns) ||
	    !ss_perf_ring_copy(ring, 0, &head, sizeof(head)) ||
	    !ss_perf_ring_copy(ring, header->size - sizeof(ret->time_ns), &ret->time_ns,
			       sizeof(ret->time_ns)))
		return false;
	size_t size = SS_MIN(header->size - sizeof(head) - sizeof(ret->time_ns),
			     sizeof(ret->path) - 1);
	if (!ss_perf_ring_copy(ring, sizeof(head), ret->path, size))
		return false;
	ret->path[size] = '\0';
	ret->pid = (pid_t)head.pid;
	ret->start = head.start;
	ret->size = head.size;
	ret->offset = head.offset;
	ret->build_id_size = 0;
	if (head.header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID &&
	    head.build_id_size <= sizeof(ret->build_id)) {
		ret->build_id_size = head.build_id_size;
		memcpy(ret->build_id, head.build_id, sizeof(ret->build_id));
	}
	/* "[vdso]", "//anon", "//toolong" */
	ret->anonymous = ret->path[0] != '/' || ret->path[1] == '/';
	return head.prot & PROT_EXEC && head.size <= UINT64_MAX - head.start;
}

/* PERF_RECORD_LOST: id, count. */
static void count_lost(struct ss_mmap_events *events, const struct ss_perf_ring *ring)
{
	uint64_t fields[2];

	if (ss_perf_ring_copy(ring, sizeof(struct perf_event_header), fields,
			      sizeof(fields)))
		events->lost += fields[1];
}

bool ss_mmap_events_next(struct ss_mmap_events *events, struct ss_mmap_event *ret)
{
	struct perf_event_header header;

	for (; events->reading < events->rings.count; events->reading++) {
		struct ss_perf_ring *ring = &events->rings.items[events->reading];
		while (ss_perf_ring_next(ring, &header)) {
			bool found = header.type == PERF_RECORD_MMAP2 &&
				     read_event(ring, &header, ret);
			if (header.type == PERF_RECORD_LOST)
				count_lost(events, ring);
			ss_perf_ring_drop(ring);
			if (found)
				return true;
		}
	}
	events->reading = 0;
	return false;
}
