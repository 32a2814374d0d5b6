#include "diagnose/call.h"

#include <seccomp.h>
#include <sys/syscall.h>

#include "diagnose/descriptor.h"
#include "diagnose/duration.h"
#include "diagnose/futex.h"
#include "diagnose/others.h"
#include "diagnose/sets.h"
#include "model/call.h"

static const char *call_name(struct ss_diagnosis *d, long number)
{
	_cleanup_free_ char *name =
		seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);

	return ss_diagnosis_keep(d, name);
}

/* The descriptor of a call that has one. */
static int descriptor(const struct ss_diagnosis *d)
{
	const struct ss_call *call = ss_call_find(d->facts->call.number);

	return call && call->fd ? (int)(uint32_t)d->facts->call.args[call->fd - 1] : -1;
}

/* Whether it is a disk, or a file system elsewhere, that is waited for. */
static bool is_file(const struct ss_diagnosis *d)
{
	const struct ss_fd_fact *fd = ss_facts_find_fd(d->snapshot->facts, descriptor(d));

	return fd && (fd->kind == SS_FD_FILE || fd->kind == SS_FD_MEMFD);
}

static void describe_read(struct ss_diagnosis *d)
{
	ss_words_add(&d->text, is_file(d) ? "data of " : "input from ");
	ss_descriptor_describe(d, descriptor(d));
}

static void describe_write(struct ss_diagnosis *d)
{
	ss_words_add(&d->text,
		     is_file(d) ? "its data to be written to " : "room to write to ");
	ss_descriptor_describe(d, descriptor(d));
}

static void describe_accept(struct ss_diagnosis *d)
{
	ss_words_add(&d->text, "a connection to ");
	ss_descriptor_describe(d, descriptor(d));
}

static void describe_connect(struct ss_diagnosis *d)
{
	ss_words_add(&d->text, "the other end to accept ");
	ss_descriptor_describe(d, descriptor(d));
}

static void describe_receive(struct ss_diagnosis *d)
{
	ss_words_add(&d->text, "input from ");
	ss_descriptor_describe(d, descriptor(d));
	ss_duration_write_limit(d);
}

static void describe_send(struct ss_diagnosis *d)
{
	ss_words_add(&d->text, "room to send to ");
	ss_descriptor_describe(d, descriptor(d));
}

static void describe_sleep(struct ss_diagnosis *d)
{
	const struct ss_wait *wait = d->wait;

	if (wait->timeout_ns < 0 && wait->left_ns < 0) {
		ss_words_add(&d->text, "a time to pass that could not be read");
		return;
	}
	ss_duration_write((uint64_t)SS_MAX(wait->timeout_ns, wait->left_ns), &d->text);
	ss_words_add(&d->text,
		     wait->timeout_ns >= 0 ? " to pass" : " to pass, which are left");
}

static void describe_io(struct ss_diagnosis *d)
{
	const struct ss_syscall *call = &d->facts->call;

	if (call->number == SYS_io_getevents || call->number == SYS_io_pgetevents) {
		ss_words_add(&d->text, "%u completion%s of asynchronous input or output",
			     (unsigned)call->args[1], call->args[1] == 1 ? "" : "s");
		ss_duration_write_limit(d);
	} else if (call->number == SYS_io_uring_enter) {
		ss_words_add(&d->text, "%u completion%s of ", (unsigned)call->args[2],
			     call->args[2] == 1 ? "" : "s");
		ss_descriptor_describe(d, descriptor(d));
	} else {
		ss_words_add(&d->text, "%s to be done",
			     d->wait->syscall ? d->wait->syscall : "input or output");
		if (descriptor(d) < 0)
			return;
		ss_words_add(&d->text, " on ");
		ss_descriptor_describe(d, descriptor(d));
	}
}

/* A path that open() was given. */
static const struct ss_memory_fact *find_path(const struct ss_diagnosis *d)
{
	long number = d->facts->call.number;

	if (number != SYS_open && number != SYS_openat)
		return NULL;
	const struct ss_memory_fact *path = &d->facts->memory[number == SYS_open ? 0 : 1];
	return path->size ? path : NULL;
}

/* What a call that goes on after a stop is, if that could be found out, is in its place.
 */
static void describe_other(struct ss_diagnosis *d)
{
	const struct ss_memory_fact *path = find_path(d);

	if (d->facts->call.number == SYS_restart_syscall)
		ss_words_add(&d->text, "something with a time limit: an interrupted call "
				       "that goes on, and which one is not known");
	else if (path)
		ss_words_add(&d->text, "the opening of %.*s", (int)path->size,
			     (const char *)path->bytes);
	else if (d->wait->syscall)
		ss_words_add(&d->text, "the system call %s", d->wait->syscall);
	else
		ss_words_add(&d->text, "system call number %ld", d->facts->call.number);
	if (descriptor(d) < 0)
		return;
	ss_words_add(&d->text, " on ");
	ss_descriptor_describe(d, descriptor(d));
}

static void describe(struct ss_diagnosis *d, enum ss_wait_kind kind)
{
	static void (*const describers[])(struct ss_diagnosis * d) = {
		[SS_WAIT_POLL] = ss_sets_describe_poll,
		[SS_WAIT_SELECT] = ss_sets_describe_select,
		[SS_WAIT_EPOLL] = ss_sets_describe_epoll,
		[SS_WAIT_SLEEP] = describe_sleep,
		[SS_WAIT_READ] = describe_read,
		[SS_WAIT_WRITE] = describe_write,
		[SS_WAIT_ACCEPT] = describe_accept,
		[SS_WAIT_CONNECT] = describe_connect,
		[SS_WAIT_RECEIVE] = describe_receive,
		[SS_WAIT_SEND] = describe_send,
		[SS_WAIT_CHILD] = ss_others_describe_child,
		[SS_WAIT_FILE_LOCK] = ss_others_describe_file_lock,
		[SS_WAIT_SIGNAL] = ss_others_describe_signal,
		[SS_WAIT_IPC] = ss_others_describe_ipc,
		[SS_WAIT_IO] = describe_io,
	};

	if ((size_t)kind < SS_ARRAY_SIZE(describers) && describers[kind])
		describers[kind](d);
	else
		describe_other(d);
}

void ss_call_describe(struct ss_diagnosis *d)
{
	long number = d->facts->call.number;
	const struct ss_call *call = ss_call_find(number);

	d->wait->syscall = call_name(d, number);
	if (ss_futex_describe(d))
		return;
	if (call) {
		d->wait->kind = call->kind;
		ss_duration_read(d, call);
	}
	describe(d, d->wait->kind);
}
