#include "process/perf.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { PAGE = 4096 };

static int map_ring(struct ss_perf_ring *ring, int fd, size_t size, int prot)
{
	void *page = mmap(NULL, PAGE + size, prot, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return errno;
	*ring = (struct ss_perf_ring){ .fd = fd, .page = page, .size = size };
	return 0;
}

static int open_event(struct ss_perf_ring *ring, struct perf_event_attr *attr, pid_t tid,
		      int cpu, size_t size, size_t size_min)
{
	/* The kernel overwrites records of a ring that the reader cannot write. */
	int prot = PROT_READ | (attr->write_backward ? 0 : PROT_WRITE);
	int errnum = EINVAL;

	attr->size = sizeof(*attr);
	attr->disabled = 1;
	attr->exclude_idle = 1;
	attr->exclude_guest = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	_cleanup_close_ int fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1,
					      PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno;
	for (; size >= size_min; size /= 2) {
		errnum = map_ring(ring, fd, size, prot);
		if (errnum != EPERM && errnum != ENOMEM)
			break;
	}
	if (errnum == 0)
		(void)take_fd(fd);
	return errnum;
}

int ss_perf_ring_open(struct ss_perf_ring *ring, struct perf_event_attr *attr, int cpu,
		      size_t size, size_t size_min)
{
	return open_event(ring, attr, -1, cpu, size, size_min);
}

int ss_perf_ring_open_thread(struct ss_perf_ring *ring, struct perf_event_attr *attr,
			     pid_t tid, size_t size)
{
	return open_event(ring, attr, tid, -1, size, size);
}

int ss_perf_ring_open_newest(struct ss_perf_ring *ring, struct perf_event_attr *attr,
			     pid_t tid, size_t size)
{
	attr->write_backward = 1;
	return open_event(ring, attr, tid, -1, size, size);
}

uint64_t ss_perf_ring_head(const struct ss_perf_ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

/* A record may continue at the beginning of the ring. */
void ss_perf_ring_peek(const struct ss_perf_ring *ring, uint64_t at, void *ret,
		       size_t size)
{
	const char *data = (const char *)ring->page + PAGE;
	size_t from = at % ring->size;
	size_t first = SS_MIN(size, ring->size - from);

	memcpy(ret, data + from, first);
	memcpy((char *)ret + first, data, size - first);
}

void ss_perf_ring_close(struct ss_perf_ring *ring)
{
	if (ring->page)
		(void)munmap(ring->page, PAGE + ring->size); /* our mapping */
	ring->page = NULL;
	close_cleanup(&ring->fd);
}

bool ss_perf_ring_copy(const struct ss_perf_ring *ring, size_t offset, void *ret,
		       size_t size)
{
	uint64_t left = ring->next - ring->page->data_tail;

	if (offset > left || size > left - offset)
		return false;
	ss_perf_ring_peek(ring, ring->page->data_tail + offset, ret, size);
	return true;
}

bool ss_perf_ring_next(struct ss_perf_ring *ring, struct perf_event_header *ret)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;

	if (head - tail < sizeof(*ret))
		return false;
	ring->next = tail + sizeof(*ret);
	(void)ss_perf_ring_copy(ring, 0, ret, sizeof(*ret)); /* it is there */
	ring->next = tail + SS_MAX((size_t)ret->size, sizeof(*ret));
	return true;
}

void ss_perf_ring_drop(struct ss_perf_ring *ring)
{
	__atomic_store_n(&ring->page->data_tail, ring->next, __ATOMIC_RELEASE);
}
