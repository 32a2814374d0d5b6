#include "report/json.h"

#include <arpa/inet.h>

#include "report/wait_text.h"

static void write_access(struct ss_json *json, const char *key, enum ss_access access)
{
	static const char *const names[] = { [SS_ACCESS_NONE] = NULL,
					     [SS_ACCESS_SHARED] = "shared",
					     [SS_ACCESS_EXCLUSIVE] = "exclusive" };

	ss_json_text(json, key, names[access]);
}

static void write_positive(struct ss_json *json, const char *key, int64_t number)
{
	ss_json_signed_if(json, key, number > 0, number);
}

void ss_json_signals(struct ss_json *json, const char *key, uint64_t signals)
{
	ss_json_open(json, key, '[');
	for (int number = 1; number <= 64; number++) {
		if (signals >> (number - 1) & 1)
			ss_json_signed(json, NULL, number);
	}
	ss_json_close(json, ']');
}

static void write_processes(struct ss_json *json, const char *key,
			    const struct ss_related_process *processes, size_t count)
{
	ss_json_open(json, key, '[');
	for (size_t i = 0; i < count; i++) {
		ss_json_open(json, NULL, '{');
		ss_json_signed(json, "pid", processes[i].pid);
		ss_json_text(json, "name", processes[i].name);
		ss_json_state(json, "state", processes[i].state);
		ss_json_bool(json, "same", processes[i].same);
		ss_json_close(json, '}');
	}
	ss_json_close(json, ']');
}

static void write_address(struct ss_json *json, const char *key,
			  const struct ss_socket_address *address)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (address->size == 0 || !inet_ntop(address->size == 16 ? AF_INET6 : AF_INET,
					     address->bytes, text, sizeof(text))) {
		ss_json_null(json, key);
		return;
	}
	ss_json_open(json, key, '{');
	ss_json_text(json, "address", text);
	ss_json_unsigned(json, "port", address->port);
	ss_json_close(json, '}');
}

static void write_socket(struct ss_json *json, const struct ss_descriptor *d)
{
	ss_json_text(json, "protocol", d->protocol);
	ss_json_bool(json, "listening", d->listening);
	write_positive(json, "tcp_state", d->tcp_state);
	write_address(json, "local", &d->local);
	if (d->remote.port)
		write_address(json, "remote", &d->remote);
	else
		ss_json_null(json, "remote");
	ss_json_text(json, "path", d->path);
	ss_json_text(json, "peer_path", d->peer_path);
}

static void write_timer(struct ss_json *json, const struct ss_descriptor *d)
{
	if (!d->timer_known)
		return;
	ss_json_unsigned(json, "timer_left_ns", d->timer_left_ns);
	ss_json_unsigned(json, "timer_interval_ns", d->timer_interval_ns);
}

static void write_descriptor_text(struct ss_json *json, const char *key,
				  const struct ss_descriptor *descriptor)
{
	_cleanup_free_ char *text = ss_wait_text_new_descriptor(descriptor);

	ss_json_text(json, key, text);
}

static void write_members(struct ss_json *json, const struct ss_descriptor *d)
{
	ss_json_text(json, "kind", ss_fd_kind_name(d->kind));
	ss_json_text(json, "name", d->name);
	write_descriptor_text(json, "text", d);
	ss_json_signed(json, "flags", d->flags);
	write_processes(json, "peers", d->peers, d->peer_count);
	ss_json_bool(json, "peers_complete", d->peers_searched && !d->peers_incomplete);
	if (d->kind == SS_FD_SOCKET)
		write_socket(json, d);
	if (d->kind == SS_FD_TIMERFD)
		write_timer(json, d);
	if (d->kind == SS_FD_PIDFD)
		ss_json_bool(json, "ended", d->process_ended);
	if (d->kind == SS_FD_SIGNALFD)
		ss_json_signals(json, "signals", d->signals);
	if (d->kind == SS_FD_INOTIFY)
		ss_json_unsigned(json, "watch_count", d->inotify_watches);
}

/* Omits what these descriptors watch themselves, which may form a cycle. */
static void write_watched(struct ss_json *json, const char *key,
			  const struct ss_watched_fd *fds, size_t count)
{
	ss_json_open(json, key, '[');
	for (size_t i = 0; i < count; i++) {
		ss_json_open(json, NULL, '{');
		ss_json_signed(json, "fd", fds[i].fd);
		ss_json_bool(json, "input", fds[i].input);
		ss_json_bool(json, "output", fds[i].output);
		if (fds[i].what) {
			ss_json_open(json, "descriptor", '{');
			write_members(json, fds[i].what);
			ss_json_close(json, '}');
		} else {
			ss_json_null(json, "descriptor");
		}
		ss_json_close(json, '}');
	}
	ss_json_close(json, ']');
}

static void write_descriptor(struct ss_json *json, const struct ss_descriptor *d)
{
	if (!d) {
		ss_json_null(json, "descriptor");
		return;
	}
	ss_json_open(json, "descriptor", '{');
	write_members(json, d);
	if (d->kind == SS_FD_EPOLL) {
		write_watched(json, "watches", d->watches, d->watch_count);
		ss_json_bool(json, "watches_complete", !d->watches_incomplete);
	}
	ss_json_close(json, '}');
}

static bool is_lock(enum ss_wait_kind kind)
{
	return kind >= SS_WAIT_FUTEX && kind <= SS_WAIT_ONCE;
}

static void write_lock(struct ss_json *json, const struct ss_wait *wait)
{
	ss_json_hex_if(json, "address", wait->address, wait->address);
	if (is_lock(wait->kind) || wait->kind == SS_WAIT_FILE_LOCK)
		write_access(json, "access", wait->access);
	if (!is_lock(wait->kind))
		return;
	ss_json_text(json, "lock", wait->lock ? ss_lock_type_name(wait->lock) : NULL);
	ss_json_text(json, "function", wait->function);
	ss_json_text(json, "symbol", wait->symbol);
	ss_json_signed_if(json, "symbol_offset", wait->symbol,
			  (int64_t)wait->symbol_offset);
	if (wait->kind == SS_WAIT_RWLOCK)
		ss_json_unsigned(json, "readers", wait->readers);
	if (wait->kind == SS_WAIT_SEMAPHORE)
		ss_json_unsigned(json, "value", wait->value);
	if (wait->kind == SS_WAIT_BARRIER) {
		ss_json_signed_if(json, "arrived", wait->needed, wait->arrived);
		write_positive(json, "needed", wait->needed);
	}
	if (wait->kind == SS_WAIT_FUTEX)
		ss_json_unsigned(json, "futexes", wait->futexes ? wait->futexes : 1);
}

static void write_owner_frames(struct ss_json *json, const struct ss_wait *wait)
{
	ss_json_open(json, "owner_frames", '[');
	for (size_t i = 0; i < wait->owner_frame_count; i++) {
		const struct ss_owner_frame *frame = &wait->owner_frames[i];
		ss_json_open(json, NULL, '{');
		ss_json_unsigned(json, "frame", frame->frame);
		ss_json_text(json, "file", frame->file);
		ss_json_signed_if(json, "line", frame->line, frame->line);
		ss_json_close(json, '}');
	}
	ss_json_close(json, ']');
}

static void write_owner(struct ss_json *json, const struct ss_wait *wait)
{
	_cleanup_free_ char *reason = ss_wait_text_new_owner_unknown(wait);

	write_positive(json, "owner_tid", wait->owner_tid);
	write_positive(json, "owner_pid", wait->owner_pid);
	ss_json_text(json, "owner_reason", reason);
	write_owner_frames(json, wait);
	if (!wait->owner_unknown && !wait->owner_tid && !wait->owner_pid)
		return;
	ss_json_text(json, "owner_name", wait->owner_name);
	ss_json_text(json, "owner_process", wait->owner_process);
	write_access(json, "owner_access", wait->owner_access);
	ss_json_bool(json, "self_owned", wait->self_owned);
	ss_json_text(json, "owner_unknown",
		     wait->owner_unknown ? ss_owner_unknown_name(wait->owner_unknown) :
					   NULL);
	write_positive(json, "owner_unknown_tid", wait->owner_unknown_tid);
	write_positive(json, "owner_unknown_pid", wait->owner_unknown_pid);
}

static void write_fds(struct ss_json *json, const struct ss_wait *wait)
{
	ss_json_signed_if(json, "fd", wait->fd >= 0, wait->fd);
	write_descriptor_text(json, "object", wait->descriptor);
	write_descriptor(json, wait->descriptor);
	if (wait->kind != SS_WAIT_POLL && wait->kind != SS_WAIT_SELECT)
		return;
	write_watched(json, "fds", wait->fds, wait->fd_count);
	ss_json_bool(json, "fds_complete", !wait->fds_incomplete);
}

static void write_range(struct ss_json *json, const struct ss_wait *wait)
{
	if (wait->range == SS_RANGE_BYTES) {
		ss_json_open(json, "range", '[');
		ss_json_unsigned(json, NULL, wait->range_first);
		ss_json_signed_if(json, NULL, wait->range_last != UINT64_MAX,
				  (int64_t)wait->range_last);
		ss_json_close(json, ']');
	} else {
		ss_json_null(json, "range");
	}
	ss_json_bool(json, "range_relative", wait->range == SS_RANGE_PART);
}

static void write_child(struct ss_json *json, const struct ss_wait *wait)
{
	static const char *const scopes[] = {
		[SS_CHILD_NONE] = "none",	[SS_CHILD_PID] = "pid",
		[SS_CHILD_ANY] = "any",		[SS_CHILD_GROUP] = "group",
		[SS_CHILD_OWN_GROUP] = "group", [SS_CHILD_PIDFD] = "pidfd",
		[SS_CHILD_VFORK] = "vfork",
	};

	ss_json_text(json, "child_scope", scopes[wait->child_scope]);
	write_positive(json, "child_id", wait->child_id);
	write_processes(json, "children", wait->children, wait->child_count);
	ss_json_unsigned(json, "children_total", wait->children_total);
	ss_json_bool(json, "children_known", wait->children_known);
}

static void write_ipc(struct ss_json *json, const struct ss_wait *wait)
{
	static const char *const operations[] = {
		[SS_IPC_NONE] = "none",
		[SS_IPC_SEMAPHORE] = "semaphore",
		[SS_IPC_RECEIVE] = "receive",
		[SS_IPC_SEND] = "send",
	};

	ss_json_text(json, "ipc", operations[wait->ipc]);
	ss_json_signed_if(json, "ipc_id", wait->ipc_id >= 0, wait->ipc_id);
	if (wait->semaphore_operations == 0)
		return;
	ss_json_unsigned(json, "semaphore", wait->semaphore);
	ss_json_signed(json, "semaphore_change", wait->semaphore_change);
	ss_json_unsigned(json, "semaphore_operations", wait->semaphore_operations);
}

/* Members that only some kinds of waits have. */
static void write_details(struct ss_json *json, const struct ss_wait *wait)
{
	if (wait->kind == SS_WAIT_FILE_LOCK)
		write_range(json, wait);
	if (wait->kind == SS_WAIT_CHILD)
		write_child(json, wait);
	if (wait->kind == SS_WAIT_SIGNAL && wait->signals_known)
		ss_json_signals(json, "signals", wait->signals);
	else if (wait->kind == SS_WAIT_SIGNAL)
		ss_json_null(json, "signals");
	if (wait->kind == SS_WAIT_IPC)
		write_ipc(json, wait);
	if (wait->kind == SS_WAIT_IO)
		write_positive(json, "completions", wait->completions);
	if (wait->path)
		ss_json_text(json, "path", wait->path);
	if (wait->command >= 0)
		ss_json_signed(json, "command", wait->command);
	if (wait->fanotify)
		ss_json_bool(json, "fanotify", true);
}

void ss_json_wait_text(struct ss_json *json, const char *key, const struct ss_wait *wait)
{
	_cleanup_free_ char *text = wait ? ss_wait_text_new(wait) : NULL;

	ss_json_text(json, key, text);
}

/* A thread of a cycle or chain through several processes. */
static void write_thread_ref(struct ss_json *json, const struct ss_thread_ref *ref)
{
	const struct ss_process *process = ss_snapshot_process(ref->snapshot);
	const struct ss_wait *wait = ref->thread->wait;

	ss_json_open(json, NULL, '{');
	ss_json_signed(json, "pid", process->pid);
	ss_json_text(json, "process", process->name);
	ss_json_signed(json, "tid", ref->thread->tid);
	ss_json_text(json, "name", ref->thread->name);
	ss_json_state(json, "state", ref->thread->state);
	ss_json_wait_text(json, "wait", wait);
	ss_json_text(json, "wait_kind", wait ? ss_wait_kind_name(wait->kind) : NULL);
	ss_json_close(json, '}');
}

static void write_chain(struct ss_json *json, const struct ss_wait *wait)
{
	_cleanup_free_ char *text = ss_wait_text_new_chain(wait);

	ss_json_text(json, "beyond", text);
	ss_json_open(json, "chain", '[');
	for (size_t i = 0; i < wait->chain_length; i++)
		write_thread_ref(json, &wait->chain[i]);
	ss_json_close(json, ']');
}

void ss_json_wait(struct ss_json *json, const char *key, const struct ss_wait *wait)
{
	if (!wait) {
		ss_json_null(json, key);
		return;
	}
	ss_json_open(json, key, '{');
	ss_json_text(json, "kind", ss_wait_kind_name(wait->kind));
	ss_json_wait_text(json, "text", wait);
	ss_json_text(json, "syscall", wait->syscall);
	ss_json_text(json, "purpose",
		     wait->purpose ? ss_wait_purpose_name(wait->purpose) : NULL);
	ss_json_text(json, "purpose_function", wait->purpose_function);
	ss_json_text(json, "purpose_description", wait->purpose_words);
	ss_json_bool(json, "timed", wait->timed);
	ss_json_signed_if(json, "timeout_ns", wait->timeout_ns >= 0, wait->timeout_ns);
	ss_json_signed_if(json, "left_ns", wait->left_ns >= 0, wait->left_ns);
	write_lock(json, wait);
	write_owner(json, wait);
	write_fds(json, wait);
	write_details(json, wait);
	write_chain(json, wait);
	ss_json_close(json, '}');
}

static void write_deadlock(struct ss_json *json, const struct ss_snapshot *snapshot,
			   const struct ss_deadlock *deadlock)
{
	ss_json_open(json, NULL, '{');
	ss_json_open(json, "tids", '[');
	for (size_t i = 0; i < deadlock->count; i++)
		ss_json_signed(
			json, NULL,
			ss_snapshot_task(snapshot, SS_TASK_THREAD, deadlock->threads[i])
				->tid);
	ss_json_close(json, ']');
	ss_json_unsigned(json, "behind", deadlock->behind);
	ss_json_bool(json, "timed", deadlock->timed);
	ss_json_close(json, '}');
}

static void write_cycle(struct ss_json *json, const struct ss_cycle *cycle)
{
	ss_json_open(json, NULL, '{');
	ss_json_open(json, "members", '[');
	for (size_t i = 0; i < cycle->count; i++)
		write_thread_ref(json, &cycle->members[i]);
	ss_json_close(json, ']');
	ss_json_close(json, '}');
}

static void write_blocker(struct ss_json *json, const struct ss_snapshot *snapshot,
			  const struct ss_blocker *blocker)
{
	ss_json_open(json, NULL, '{');
	ss_json_signed(json, "tid",
		       ss_snapshot_task(snapshot, SS_TASK_THREAD, blocker->thread)->tid);
	ss_json_unsigned(json, "waiting", blocker->waiting);
	ss_json_unsigned(json, "locks", blocker->locks);
	ss_json_close(json, '}');
}

static void write_application_lock(struct ss_json *json,
				   const struct ss_snapshot *snapshot,
				   const struct ss_application_lock *lock)
{
	ss_json_open(json, NULL, '{');
	ss_json_text(json, "function", lock->function);
	ss_json_text(json, "description", lock->words);
	ss_json_unsigned(json, "waiting", lock->waiting);
	ss_json_open(json, "suspects", '[');
	for (size_t i = 0; i < lock->suspect_count; i++)
		ss_json_signed(
			json, NULL,
			ss_snapshot_task(snapshot, SS_TASK_THREAD, lock->suspects[i])
				->tid);
	ss_json_close(json, ']');
	ss_json_unsigned(json, "suspects_total", lock->suspects_total);
	ss_json_text(json, "common_function", lock->common_function);
	ss_json_open(json, "client_suspects", '[');
	for (size_t i = 0; i < lock->client_suspect_count; i++)
		ss_json_signed(json, NULL,
			       ss_snapshot_task(snapshot, SS_TASK_THREAD,
						lock->client_suspects[i])
				       ->tid);
	ss_json_close(json, ']');
	ss_json_unsigned(json, "client_suspects_total", lock->client_suspects_total);
	ss_json_text(json, "client_function", lock->client_function);
	ss_json_close(json, '}');
}

void ss_json_deadlocks(struct ss_json *json, const struct ss_snapshot *snapshot)
{
	ss_json_open(json, "deadlocks", '[');
	for (size_t i = 0; i < ss_snapshot_deadlock_count(snapshot); i++)
		write_deadlock(json, snapshot, ss_snapshot_deadlock(snapshot, i));
	ss_json_close(json, ']');
	ss_json_open(json, "cycles", '[');
	for (size_t i = 0; i < ss_snapshot_cycle_count(snapshot); i++)
		write_cycle(json, ss_snapshot_cycle(snapshot, i));
	ss_json_close(json, ']');
	ss_json_open(json, "blockers", '[');
	for (size_t i = 0; i < ss_snapshot_blocker_count(snapshot); i++)
		write_blocker(json, snapshot, ss_snapshot_blocker(snapshot, i));
	ss_json_close(json, ']');
	ss_json_open(json, "application_locks", '[');
	for (size_t i = 0; i < ss_snapshot_application_lock_count(snapshot); i++)
		write_application_lock(json, snapshot,
				       ss_snapshot_application_lock(snapshot, i));
	ss_json_close(json, ']');
}
