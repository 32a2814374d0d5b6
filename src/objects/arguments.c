#include "objects/arguments.h"

#include <string.h>

#include "base/clock.h"
#include "model/call.h"
#include "target/kept_files.h"

enum {
	TOTAL_MAX = 16 << 20, /* bytes of all arguments together */
	/* delay for threads that are about to return to their call: 100 us, doubled
	   each time, 12.7 ms in total */
	NAP_NS = 100 * 1000,
	NAPS = 7,
};

struct arguments {
	struct ss_facts *facts;
	const struct ss_process_memory *memory;
	size_t left;   /* of TOTAL_MAX */
	unsigned naps; /* delays spent on unknown calls */
	/* The last code that was read: many threads wait at the same place. */
	uint64_t restarted_pc;
	enum ss_syscall_id restarted;
};

static const uint8_t *find_copy(const struct ss_capture_thread *thread, uint64_t address,
				size_t size)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		const struct ss_stack_copy *copy = &thread->stacks[i];
		if (copy->bytes && address >= copy->address &&
		    address - copy->address <= copy->size &&
		    size <= ss_stack_copy_present(copy, address - copy->address))
			return copy->bytes + (address - copy->address);
	}
	return NULL;
}

/* Reads up to size bytes; strings may be shorter. */
static size_t read_memory(const struct ss_process_memory *memory, uint64_t address,
			  void *bytes, size_t size)
{
	struct ss_piece piece = { .address = address, .bytes = bytes, .size = size };

	ss_process_memory_read(memory, &piece, 1);
	return piece.done;
}

static void take_bytes(struct arguments *a, const struct ss_capture_thread *thread,
		       uint64_t address, size_t size, struct ss_memory_fact *ret)
{
	const uint8_t *copy = find_copy(thread, address, size);

	if (address == 0 || size == 0 || size > a->left)
		return;
	uint8_t *bytes = ss_facts_keep(a->facts, size);
	if (!bytes)
		return;
	a->left -= size;
	if (copy)
		memcpy(bytes, copy, size);
	else
		size = read_memory(a->memory, address, bytes, size);
	*ret = (struct ss_memory_fact){ .address = address,
					.size = size,
					.bytes = bytes };
}

static void nap(unsigned doublings)
{
	ss_sleep_ns((uint64_t)NAP_NS << doublings);
}

/* If a call was made with syscall(3), the code does not show its number. The kernel
   function in which it waits does, once the thread is back in the call; these names
   have been stable for many years. UNKNOWN otherwise. */
static enum ss_syscall_id find_where_it_waits(struct arguments *a,
					      const struct ss_target *target, pid_t tid)
{
	static const struct {
		const char *begin;
		enum ss_syscall_id id;
	} places[] = { { "futex_", SS_SYS_FUTEX },
		       { "poll_schedule_timeout", SS_SYS_POLL },
		       { "do_poll", SS_SYS_POLL },
		       { "do_sys_poll", SS_SYS_POLL } };
	_cleanup_buffer_ struct ss_buffer text = {};

	for (;; nap(a->naps++)) {
		bool known = ss_target_read_task(target, tid, "wchan", &text);
		for (size_t i = 0; known && i < SS_ARRAY_SIZE(places); i++) {
			const char *begin = places[i].begin;
			if (strncmp(text.bytes, begin, strlen(begin)) == 0)
				return places[i].id;
		}
		if (!known || strcmp(text.bytes, "0") != 0 || a->naps == NAPS)
			return SS_SYS_UNKNOWN;
	}
}

/* The call that the code before pc makes. UNKNOWN: it does not show it. */
static enum ss_syscall_id find_in_code(struct arguments *a, uint64_t pc)
{
	uint8_t code[SS_SYSCALL_CODE];

	if (pc == a->restarted_pc)
		return a->restarted;
	a->restarted_pc = pc;
	a->restarted = SS_SYS_UNKNOWN;
	if (pc >= sizeof(code) &&
	    read_memory(a->memory, pc - sizeof(code), code, sizeof(code)) == sizeof(code))
		a->restarted = ss_arch_restarted_call(&ss_arch_host, code, sizeof(code));
	return a->restarted;
}

static void find_restarted(struct arguments *a, const struct ss_target *target,
			   const struct ss_capture_thread *thread,
			   struct ss_thread_facts *facts)
{
	enum ss_syscall_id id = find_in_code(a, ss_regs_pc(&ss_arch_host, &thread->regs));

	facts->restarted = true;
	if (id == SS_SYS_UNKNOWN)
		id = find_where_it_waits(a, target, thread->tid);
	if (id == SS_SYS_UNKNOWN)
		return;
	facts->call.id = id;
	facts->call.number = ss_arch_syscall_number(&ss_arch_host, id);
}

void ss_arguments_read(struct ss_facts *facts, const struct ss_capture *capture,
		       const struct ss_target *target,
		       const struct ss_process_memory *memory)
{
	struct arguments a = { .facts = facts, .memory = memory, .left = TOTAL_MAX };

	for (size_t i = 0; i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		const struct ss_capture_thread *from = &capture->threads.items[i];
		if (thread->call.id == SS_SYS_RESTART_SYSCALL)
			find_restarted(&a, target, from, thread);
		const struct ss_call *call = ss_call_find(thread->call.id);
		for (size_t m = 0; call && m < SS_CALL_MEMORY; m++) {
			const struct ss_call_memory *spec = &call->memory[m];
			if (spec->arg == 0)
				break;
			int arg = spec->arg - 1;
			take_bytes(&a, from, thread->call.args[arg],
				   ss_call_memory_size(spec, &thread->call),
				   &thread->memory[arg]);
		}
	}
}

/* After a stop a call may continue as restart_syscall; or, if the stop ended the wait,
   as the same call with the remaining time. */
static bool is_same(const struct ss_syscall_text *now, const struct ss_syscall *then,
		    const struct ss_call *call, uint64_t sp)
{
	if (now->kind != SS_SYSCALL_BLOCKED || now->sp != sp ||
	    (now->number != then->number &&
	     ss_arch_syscall_id(&ss_arch_host, now->number) != SS_SYS_RESTART_SYSCALL))
		return false;
	for (int i = 0; i < SS_SYSCALL_ARGS; i++) {
		bool is_time = call->timeout_type == SS_TIMEOUT_MS &&
			       i == call->timeout - 1;
		if (now->args[i] != then->args[i] && !is_time)
			return false;
	}
	return true;
}

static bool has_objects(const struct ss_call *call)
{
	return call && (call->fd || call->kind == SS_WAIT_POLL ||
			call->kind == SS_WAIT_SELECT || call->kind == SS_WAIT_CHILD);
}

/* Returns false if the thread runs: after a stop, it runs until it is back in its
   call. */
static bool check_thread(struct ss_thread_facts *thread,
			 const struct ss_capture_thread *from,
			 const struct ss_target *target,
			 const struct ss_kept_files *counters, struct ss_buffer *text)
{
	const struct ss_call *call = ss_call_find(thread->call.id);
	struct ss_syscall_text now;

	if (!has_objects(call) || thread->still_in_call || from->state == 'R')
		return true;
	if (from->consistent && from->run_count != 0 &&
	    ss_kept_files_count_runs(counters, thread->tid) == from->run_count) {
		thread->still_in_call = true;
		return true;
	}
	if (!ss_target_read_task(target, thread->tid, "syscall", text) ||
	    !ss_syscall_parse(text->bytes, text->size, &now))
		return true;
	if (now.kind == SS_SYSCALL_RUNNING)
		return false;
	thread->still_in_call = is_same(&now, &from->syscall, call,
					ss_regs_sp(&ss_arch_host, &from->regs));
	return true;
}

void ss_arguments_check(struct ss_facts *facts, const struct ss_capture *capture,
			const struct ss_target *target,
			const struct ss_kept_files *counters)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	size_t first = 0; /* all earlier ones are done */

	for (unsigned i = 0; i < NAPS; i++) {
		size_t runs = facts->threads.count;
		for (size_t k = facts->threads.count; k-- > first;) {
			if (!check_thread(&facts->threads.items[k],
					  &capture->threads.items[k], target, counters,
					  &text))
				runs = k;
		}
		first = runs;
		if (first == facts->threads.count)
			return;
		nap(i);
	}
}
