#include "sample/modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/search.h"
#include "data/capture.h"

void ss_module_loads_close(struct ss_module_loads *loads)
{
	for (size_t i = 0; i < loads->pending.count; i++)
		free(loads->pending.items[i]);
	ss_vector_free(&loads->pending);
	free(loads->recent);
}

/* A short path needs no room for a long one. */
static struct ss_mmap_event *copy(const struct ss_mmap_event *event)
{
	size_t size = offsetof(struct ss_mmap_event, path) + strlen(event->path) + 1;
	struct ss_mmap_event *ret = malloc(size);

	if (ret)
		memcpy(ret, event, size);
	return ret;
}

/* In the order of time: each CPU has a ring of its own. */
static bool insert(struct ss_module_loads *loads, struct ss_mmap_event *event)
{
	struct ss_mmap_event **slot = event ? ss_vector_push(&loads->pending) : NULL;
	size_t at = loads->pending.count - 1;

	if (!slot) {
		free(event);
		return false;
	}
	for (; at > 0 && loads->pending.items[at - 1]->time_ns > event->time_ns; at--)
		loads->pending.items[at] = loads->pending.items[at - 1];
	loads->pending.items[at] = event;
	return true;
}

/* False: no memory. */
static bool note_place(struct ss_module_loads *loads, const struct ss_mmap_event *event)
{
	if (!loads->recent)
		loads->recent = calloc(SS_RECENT_LOADS, sizeof(*loads->recent));
	if (!loads->recent)
		return false;
	struct ss_recent_load *recent =
		&loads->recent[loads->recent_count++ % SS_RECENT_LOADS];
	loads->unknown_ns = SS_MAX(loads->unknown_ns, recent->time_ns);
	*recent = (struct ss_recent_load){ .time_ns = event->time_ns,
					   .start = event->start,
					   .end = event->start + event->size };
	return true;
}

bool ss_module_loads_add(struct ss_module_loads *loads, const struct ss_mmap_event *event)
{
	loads->last_code_ns = SS_MAX(loads->last_code_ns, event->time_ns);
	if (event->anonymous)
		return true;
	loads->last_ns = SS_MAX(loads->last_ns, event->time_ns);
	return note_place(loads, event) && (loads->pending.count == SS_MODULE_LOADS_MAX ||
					    insert(loads, copy(event)));
}

bool ss_module_loads_covered(const struct ss_module_loads *loads, uint64_t address,
			     uint64_t since_ns)
{
	if (loads->unknown_ns >= since_ns)
		return true;
	for (size_t i = 0; loads->recent && i < SS_RECENT_LOADS; i++) {
		const struct ss_recent_load *recent = &loads->recent[i];
		if (recent->time_ns >= since_ns && address >= recent->start &&
		    address < recent->end)
			return true;
	}
	return false;
}

static struct ss_mmap_event *take(struct ss_module_loads *loads, size_t at)
{
	struct ss_mmap_event *event = loads->pending.items[at];

	loads->pending.count--;
	memmove(&loads->pending.items[at], &loads->pending.items[at + 1],
		(loads->pending.count - at) * sizeof(*loads->pending.items));
	return event;
}

/* Whether an event is of a segment of a module. */
static bool is_of(const struct ss_mmap_event *event, const struct ss_module *module)
{
	return event->start >= module->base && event->start - module->base < module->size;
}

uint64_t ss_module_loads_date(struct ss_module_loads *loads,
			      const struct ss_module *module, uint64_t before_ns)
{
	uint64_t time_ns = 0;
	uint64_t start = 0;
	size_t i = ss_lower_bound(loads->pending.count, k,
				  loads->pending.items[k]->time_ns < before_ns);
	size_t late = i;

	while (i-- > 0) {
		const struct ss_mmap_event *event = loads->pending.items[i];
		if (!is_of(event, module))
			continue;
		/* A load has an event for each executable segment. The same segment once
		   more is of an earlier load. */
		if (time_ns && event->start == start)
			return time_ns;
		if (!time_ns)
			start = event->start;
		time_ns = event->time_ns;
		free(take(loads, i));
	}
	/* It was loaded while the memory map was read. */
	for (; !time_ns && late < loads->pending.count; late++) {
		if (!is_of(loads->pending.items[late], module))
			continue;
		time_ns = loads->pending.items[late]->time_ns;
		free(take(loads, late));
	}
	return time_ns;
}

uint64_t ss_module_loads_first(const struct ss_module_loads *loads,
			       const struct ss_module *module)
{
	for (size_t i = 0; i < loads->pending.count; i++) {
		const struct ss_mmap_event *event = loads->pending.items[i];
		if (event->start < module->base + module->size &&
		    event->start + event->size > module->base)
			return event->time_ns;
	}
	return 0;
}

struct ss_mmap_event *ss_module_loads_take(struct ss_module_loads *loads,
					   uint64_t before_ns)
{
	if (loads->pending.count == 0 || loads->pending.items[0]->time_ns >= before_ns)
		return NULL;
	return take(loads, 0);
}

const struct ss_module_impl *ss_module_loads_find(const struct ss_mmap_event *event,
						  const struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->modules.count; i++) {
		const struct ss_module_impl *module = capture->modules.items[i];
		if (event->start >= module->pub.base &&
		    event->start - module->pub.base < module->pub.size &&
		    strcmp(event->path, module->pub.path) == 0)
			return module;
	}
	return NULL;
}

struct ss_module_impl *ss_module_loads_make(const struct ss_mmap_event *event)
{
	/* As linkers lay out files: from the beginning of the file on. */
	uint64_t before = SS_MIN(event->offset, event->start);
	struct ss_module_impl *module = ss_module_new(event->path, event->start - before,
						      event->start + event->size);

	if (module && event->build_id_size)
		(void)ss_module_set_build_id(module, event->build_id,
					     event->build_id_size); /* or none */
	return module;
}

/* The feed ---------------------------------------------------------------- */

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

static int open_cpu(struct ss_load_feed *feed, int cpu, bool build_ids)
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
		ss_io_may_keep(ring.fd) ? ss_vector_push(&feed->rings) : NULL;
	if (!slot) {
		errnum = ss_io_may_keep(ring.fd) ? ENOMEM : EMFILE;
		ss_perf_ring_close(&ring);
		return errnum;
	}
	*slot = ring;
	return 0;
}

static int open_all(struct ss_load_feed *feed, bool build_ids)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int errnum = 0;

	for (int cpu = 0; cpu < cpus && errnum == 0; cpu++)
		errnum = open_cpu(feed, cpu, build_ids);
	if (errnum == 0 && feed->rings.count == 0)
		errnum = ENODEV;
	if (errnum)
		ss_load_feed_close(feed);
	return errnum;
}

int ss_load_feed_open(struct ss_load_feed *feed)
{
	*feed = (struct ss_load_feed){};
	int errnum = open_all(feed, true);
	if (errnum == EINVAL || errnum == E2BIG) /* before Linux 5.12 */
		errnum = open_all(feed, false);
	/* Fails for a CPU that went offline. */
	for (size_t i = 0; i < feed->rings.count; i++)
		(void)ioctl(feed->rings.items[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	return errnum;
}

void ss_load_feed_close(struct ss_load_feed *feed)
{
	for (size_t i = 0; i < feed->rings.count; i++)
		ss_perf_ring_close(&feed->rings.items[i]);
	ss_vector_free(&feed->rings);
	ss_vector_free(&feed->readers);
	*feed = (struct ss_load_feed){};
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
static void count_lost(struct ss_load_feed *feed, const struct ss_perf_ring *ring)
{
	uint64_t fields[2];

	if (ss_perf_ring_copy(ring, sizeof(struct perf_event_header), fields,
			      sizeof(fields)))
		feed->lost += fields[1];
}

/* It may have mapped something until now that is not known. */
static void forget(struct ss_module_loads *loads)
{
	loads->last_ns = loads->last_code_ns = loads->unknown_ns = ss_now_ns();
}

bool ss_load_feed_add(struct ss_load_feed *feed, pid_t pid, struct ss_module_loads *loads)
{
	struct ss_load_reader *slot = ss_vector_push(&feed->readers);

	if (slot)
		*slot = (struct ss_load_reader){ .pid = pid, .loads = loads };
	forget(loads);
	return slot;
}

void ss_load_feed_remove(struct ss_load_feed *feed, const struct ss_module_loads *loads)
{
	size_t kept = 0;

	for (size_t i = 0; i < feed->readers.count; i++) {
		if (feed->readers.items[i].loads != loads)
			feed->readers.items[kept++] = feed->readers.items[i];
	}
	feed->readers.count = kept;
}

/* Hands an event over. False: no memory. */
static bool hand_over(const struct ss_load_feed *feed, const struct ss_mmap_event *event)
{
	bool ok = true;

	for (size_t i = 0; i < feed->readers.count; i++) {
		if (feed->readers.items[i].pid == event->pid)
			ok &= ss_module_loads_add(feed->readers.items[i].loads, event);
	}
	return ok;
}

static bool read_ring(struct ss_load_feed *feed, struct ss_perf_ring *ring)
{
	struct perf_event_header header;
	struct ss_mmap_event event;
	bool ok = true;

	while (ss_perf_ring_next(ring, &header)) {
		const bool found = header.type == PERF_RECORD_MMAP2 &&
				   read_event(ring, &header, &event);
		if (header.type == PERF_RECORD_LOST)
			count_lost(feed, ring);
		ss_perf_ring_drop(ring);
		if (found)
			ok &= hand_over(feed, &event);
	}
	return ok;
}

bool ss_load_feed_read(struct ss_load_feed *feed)
{
	bool ok = true;

	for (size_t i = 0; i < feed->rings.count; i++)
		ok &= read_ring(feed, &feed->rings.items[i]);
	/* Any process may have mapped something at any time. */
	for (size_t i = 0; feed->known_lost != feed->lost && i < feed->readers.count; i++)
		forget(feed->readers.items[i].loads);
	feed->known_lost = feed->lost;
	return ok;
}
