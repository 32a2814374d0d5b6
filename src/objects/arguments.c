#include "objects/arguments.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "model/call.h"

enum {
	TOTAL_MAX = 16 << 20, /* bytes of all arguments */
	/* For threads that are on their way back into their call: 100 us, twice that,
	   and so on; 12.7 ms in all where more wants to run than there are CPUs. */
	NAP_NS = 100 * 1000,
	NAPS = 7,
};

struct arguments {
	struct ss_facts *facts;
	const struct ss_memory *memory;
	size_t left;   /* of TOTAL_MAX */
	unsigned naps; /* that were taken for calls that are not known */
};

static const uint8_t *find_copy(const struct ss_capture_thread *thread, uint64_t address,
				size_t size)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		const struct ss_stack_copy *copy = &thread->stacks[i];
		if (copy->bytes && address >= copy->address &&
		    address - copy->address <= copy->size &&
		    size <= copy->size - (address - copy->address))
			return copy->bytes + (address - copy->address);
	}
	return NULL;
}

/* As much as can be read, of what may end before size bytes (a path does). */
static size_t read_memory(const struct ss_memory *memory, uint64_t address, void *bytes,
			  size_t size)
{
	struct ss_piece piece = { .address = address, .bytes = bytes, .size = size };

	ss_memory_read(memory, &piece, 1);
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
	struct timespec ts = { .tv_nsec = (long)NAP_NS << doublings };

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL); /* or less */
}

/* Of a call that was made by syscall(3) no code has its number. Where the kernel waits for
   it tells, once it is back there; its names have been these for many years. -1: no. */
static long find_where_it_waits(struct arguments *a, const struct ss_target *target,
				pid_t tid)
{
	static const struct {
		const char *begin;
		long number;
	} places[] = { { "futex_", SYS_futex },
		       { "poll_schedule_timeout", SYS_poll },
		       { "do_poll", SYS_poll },
		       { "do_sys_poll", SYS_poll } };
	_cleanup_text_ struct ss_text text = {};

	for (;; nap(a->naps++)) {
		bool known = ss_target_read_task(target, tid, "wchan", &text);
		for (size_t i = 0; known && i < SS_ARRAY_SIZE(places); i++) {
			const char *begin = places[i].begin;
			if (strncmp(text.bytes, begin, strlen(begin)) == 0)
				return places[i].number;
		}
		if (!known || strcmp(text.bytes, "0") != 0 || a->naps == NAPS)
			return -1;
	}
}

static void find_restarted(struct arguments *a, const struct ss_target *target,
			   const struct ss_capture_thread *thread,
			   struct ss_thread_facts *facts)
{
	uint8_t code[SS_RESTARTED_SIZE];
	uint64_t pc = ss_regs_pc(&thread->regs);

	long number = -1;

	facts->restarted = true;
	if (pc >= sizeof(code) &&
	    read_memory(a->memory, pc - sizeof(code), code, sizeof(code)) == sizeof(code))
		number = ss_arch_restarted_call(code, sizeof(code));
	if (number < 0)
		number = find_where_it_waits(a, target, thread->tid);
	if (number >= 0)
		facts->call.number = number;
}

void ss_arguments_read(struct ss_facts *facts, const struct ss_capture *capture,
		       const struct ss_target *target, const struct ss_memory *memory)
{
	struct arguments a = { .facts = facts, .memory = memory, .left = TOTAL_MAX };

	for (size_t i = 0; i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		const struct ss_capture_thread *from = &capture->threads.items[i];
		if (thread->call.number == SYS_restart_syscall)
			find_restarted(&a, target, from, thread);
		const struct ss_call *call = ss_call_find(thread->call.number);
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

/* What was stopped in a call may be in restart_syscall now, for the same; or, where a
   stop ended its wait, in the same call again for what is left of the time. */
static bool is_same(const struct ss_syscall_text *now, const struct ss_syscall *then,
		    const struct ss_call *call, uint64_t sp)
{
	if (now->kind != SS_SYSCALL_BLOCKED || now->sp != sp ||
	    (now->number != then->number && now->number != SYS_restart_syscall))
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

/* False: it runs, which it does until it is in its call again after a stop. */
static bool check_thread(struct ss_thread_facts *thread,
			 const struct ss_capture_thread *from,
			 const struct ss_target *target, struct ss_text *text)
{
	const struct ss_call *call = ss_call_find(thread->call.number);
	struct ss_syscall_text now;

	if (!has_objects(call) || thread->stayed || from->state == 'R' ||
	    !ss_target_read_task(target, thread->tid, "syscall", text) ||
	    !ss_syscall_parse(text->bytes, text->size, &now))
		return true;
	if (now.kind == SS_SYSCALL_RUNNING)
		return false;
	thread->stayed = is_same(&now, &from->syscall, call, ss_regs_sp(&from->regs));
	return true;
}

void ss_arguments_check(struct ss_facts *facts, const struct ss_capture *capture,
			const struct ss_target *target)
{
	_cleanup_text_ struct ss_text text = {};
	size_t first = 0; /* all before it are settled */

	for (unsigned i = 0; i < NAPS; i++) {
		size_t runs = facts->threads.count;
		for (size_t k = facts->threads.count; k-- > first;) {
			if (!check_thread(&facts->threads.items[k],
					  &capture->threads.items[k], target, &text))
				runs = k;
		}
		first = runs;
		if (first == facts->threads.count)
			return;
		nap(i);
	}
}
