#include "diagnose/call.h"

#include <seccomp.h>
#include <string.h>
#include <sys/sem.h>

#include "diagnose/descriptor.h"
#include "diagnose/futex.h"
#include "diagnose/poll.h"
#include "diagnose/process.h"
#include "diagnose/time_limit.h"
#include "model/call.h"

static const char *call_name(struct ss_diagnosis *d, long number)
{
	_cleanup_free_ char *name = seccomp_syscall_resolve_num_arch(
		seccomp_arch_resolve_name(d->snapshot->arch->name), (int)number);

	return name ? ss_intern_string(d->snapshot->strings, name) : NULL;
}

static void fill_signal(struct ss_diagnosis *d)
{
	const struct ss_memory_fact *memory = &d->facts->memory[0];

	if (d->facts->call.id != SS_SYS_RT_SIGTIMEDWAIT ||
	    memory->size != sizeof(d->wait->signals))
		return;
	memcpy(&d->wait->signals, memory->bytes, sizeof(d->wait->signals));
	d->wait->signals_known = true;
}

static void fill_semaphore(struct ss_diagnosis *d)
{
	const struct ss_memory_fact *memory = &d->facts->memory[1];
	struct sembuf first;

	d->wait->ipc = SS_IPC_SEMAPHORE;
	if (memory->size < sizeof(first))
		return;
	memcpy(&first, memory->bytes, sizeof(first));
	d->wait->semaphore = first.sem_num;
	d->wait->semaphore_change = first.sem_op;
	d->wait->semaphore_operations = memory->size / sizeof(first);
}

static void fill_ipc(struct ss_diagnosis *d)
{
	enum ss_syscall_id call = d->facts->call.id;

	if (call == SS_SYS_MSGRCV || call == SS_SYS_MQ_TIMEDRECEIVE)
		d->wait->ipc = SS_IPC_RECEIVE;
	else if (call == SS_SYS_MSGSND || call == SS_SYS_MQ_TIMEDSEND)
		d->wait->ipc = SS_IPC_SEND;
	else
		fill_semaphore(d);
	if (d->wait->fd < 0)
		d->wait->ipc_id = (int)(uint32_t)d->facts->call.args[0];
}

/* Whether struct io_uring_getevents_arg points to a time limit (io_uring_enter(2)). The
   limit itself is not copied. */
static bool has_uring_limit(const struct ss_thread_facts *facts)
{
	enum { EXT_ARG = 1 << 3, EXT_ARG_REG = 1 << 6, TIME = 2 };
	const struct ss_memory_fact *memory = &facts->memory[4];
	uint64_t words[3];

	if ((facts->call.args[3] & (EXT_ARG | EXT_ARG_REG)) != EXT_ARG ||
	    memory->size != sizeof(words))
		return false;
	memcpy(words, memory->bytes, sizeof(words));
	return words[TIME] != 0;
}

static void fill_io(struct ss_diagnosis *d)
{
	const struct ss_syscall *call = &d->facts->call;

	if (call->id == SS_SYS_IO_GETEVENTS || call->id == SS_SYS_IO_PGETEVENTS)
		d->wait->completions = (uint32_t)call->args[1];
	if (call->id != SS_SYS_IO_URING_ENTER)
		return;
	d->wait->completions = (uint32_t)call->args[2];
	d->wait->timed = has_uring_limit(d->facts);
}

static void fill_other(struct ss_diagnosis *d)
{
	enum ss_syscall_id call = d->facts->call.id;

	if (call != SS_SYS_OPEN && call != SS_SYS_OPENAT)
		return;
	const struct ss_memory_fact *path =
		&d->facts->memory[call == SS_SYS_OPEN ? 0 : 1];
	if (path->size)
		d->wait->path = ss_intern_bytes(d->snapshot->strings,
						(const char *)path->bytes, path->size);
}

/* Fills in what a kind has besides the file descriptor and the time limit. */
static void (*const families[])(struct ss_diagnosis *d) = {
	[SS_WAIT_OTHER] = fill_other,
	[SS_WAIT_POLL] = ss_poll_fill,
	[SS_WAIT_SELECT] = ss_poll_fill_select,
	[SS_WAIT_CHILD] = ss_process_fill_child,
	[SS_WAIT_FILE_LOCK] = ss_process_fill_file_lock,
	[SS_WAIT_SIGNAL] = fill_signal,
	[SS_WAIT_IPC] = fill_ipc,
	[SS_WAIT_IO] = fill_io,
};

/* fs/notify/fanotify/fanotify.c: the function that waits for an answer may be inlined into the
   other one. */
static bool waits_for_permission(const struct ss_thread *thread)
{
	const char *stack = thread->kernel_stack;

	return stack && (strncmp(stack, "fanotify_handle_event", 21) == 0 ||
			 strncmp(stack, "fanotify_get_response", 21) == 0);
}

void ss_call_fill(struct ss_diagnosis *d)
{
	const struct ss_syscall *made = &d->facts->call;
	const struct ss_call *call = ss_call_find(made->id);

	d->wait->syscall_number = made->number;
	d->wait->syscall = call_name(d, made->number);
	d->wait->fanotify = waits_for_permission(d->thread);
	if (ss_futex_fill(d))
		return;
	if (call) {
		d->wait->kind = call->kind;
		ss_time_limit_read(d, call);
	}
	if (call && call->fd)
		ss_descriptor_fill(d, (int)(uint32_t)made->args[call->fd - 1]);
	if ((size_t)d->wait->kind < SS_ARRAY_SIZE(families) && families[d->wait->kind])
		families[d->wait->kind](d);
}
