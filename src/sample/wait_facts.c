#include "sample/wait_facts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "data/futex.h"
#include "process/objects.h"
#include "base/proc_process.h"

/* How long to read the memory of locks: a file system may not answer. */
enum { READ_NS = 2 * 1000 * 1000 };

struct locks {
	struct ss_piece pieces[SS_WAIT_FACTS_MAX];
	uint8_t bytes[SS_WAIT_FACTS_MAX][SS_LOCK_MAX];
};

/* Copies the memory around the futexes, within their areas. */
static void read_locks(struct ss_sampler *sampler, struct locks *locks,
		       const struct ss_blocked_thread *threads, size_t count)
{
	struct ss_process_memory memory = sampler->space.memory;

	for (size_t i = 0; i < count; i++) {
		struct ss_piece *piece = &locks->pieces[i];
		struct ss_futex futex;
		const struct ss_area *area =
			ss_futex_parse(&threads[i].call, &futex) ?
				ss_capture_find_area(sampler->space.capture,
						     futex.address) :
				NULL;
		*piece = (struct ss_piece){ .bytes = locks->bytes[i] };
		if (!area)
			continue;
		uint64_t before =
			SS_MIN(futex.address - area->start, (uint64_t)SS_LOCK_REACH);
		piece->address = futex.address - before;
		piece->size = before +
			      SS_MIN(area->end - futex.address, (uint64_t)SS_LOCK_REACH);
	}
	memory.deadline_ns = ss_now_ns() + (uint64_t)READ_NS;
	ss_process_memory_read_present(&memory, locks->pieces, count);
}

struct ss_facts *ss_wait_facts_read(struct ss_sampler *sampler,
				    const struct ss_blocked_thread *threads, size_t count)
{
	/* The captured threads of this tick are not needed any more. */
	struct ss_capture *capture = sampler->space.capture;
	struct ss_facts *before = capture->facts;
	struct locks locks;

	capture->threads.count = 0;
	if (!ss_vector_reserve(&capture->threads, count + 1))
		return NULL;
	read_locks(sampler, &locks, threads, count);
	for (size_t i = 0; i < count; i++) {
		const struct ss_piece *piece = &locks.pieces[i];
		capture->threads.items[i] = (struct ss_capture_thread){
			.tid = threads[i].tid,
			.state = threads[i].state,
			.syscall = threads[i].call,
			.regs = threads[i].regs,
			.lock = { .address = piece->address,
				  .size = piece->done,
				  .bytes = piece->bytes },
		};
	}
	capture->threads.count = count;
	capture->process.pid = sampler->target->pid;
	capture->process.time_ns = ss_clock_ns(CLOCK_REALTIME);
	capture->facts = NULL;
	ss_objects_collect(capture, sampler->target, &sampler->space.memory, NULL, NULL);
	struct ss_facts *facts = capture->facts;
	capture->facts = before;
	capture->threads.count = 0;
	return facts;
}

bool ss_wait_facts_are_of(struct ss_sampler *sampler,
			  const struct ss_blocked_thread *thread)
{
	return sampler->access->read_run_count(sampler->target, thread->tid,
					       &sampler->text) == thread->run_count;
}

bool ss_wait_facts_read_memory(const struct ss_sampler *sampler, uint64_t address,
			       void *ret, size_t size)
{
	struct ss_process_memory memory = sampler->space.memory;
	struct ss_piece piece = { .address = address, .bytes = ret, .size = size };

	memory.deadline_ns = ss_now_ns() + (uint64_t)READ_NS;
	ss_process_memory_read_present(&memory, &piece, 1);
	return piece.done == size;
}

bool ss_wait_facts_read_link(const struct ss_sampler *sampler, int fd, char *ret,
			     size_t size)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "fd/%d", fd); /* it fits */
	ssize_t length = readlinkat(sampler->target->proc_fd, path, ret, size - 1);
	if (length <= 0)
		return false;
	ret[length] = '\0';
	return true;
}

pid_t ss_wait_facts_inner_tid(struct ss_sampler *sampler, pid_t tid)
{
	struct ss_status status;

	return ss_target_read_task(sampler->target, tid, "status", &sampler->text) &&
			       ss_status_parse(sampler->text.bytes, sampler->text.size,
					       &status) ?
		       status.inner_id :
		       0;
}
