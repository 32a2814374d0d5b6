#include "data/snapshot_fields.h"

#include "data/names.h"

#define CASE(kind) (UINT64_C(1) << (kind))

static const struct ss_field related_process_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_related_process, pid, INT32_MAX),
	SS_FIELD(2, TEXT, ss_related_process, name, 0),
	SS_FIELD(3, UNSIGNED, ss_related_process, state, INT8_MAX, .flags = SS_LETTER),
	SS_FIELD(4, UNSIGNED, ss_related_process, same, 1),
};
static const struct ss_related_process no_process = { .state = '?' };
static const struct ss_schema related_process =
	SS_SCHEMA(related_process_fields, ss_related_process, &no_process);

static const struct ss_field address_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_socket_address, port, UINT16_MAX),
	SS_FIELD_OF(2, BYTES, ss_socket_address, bytes, size, NULL, 0, 0,
		    .name = "address"),
};
static const struct ss_schema address =
	SS_SCHEMA(address_fields, ss_socket_address, NULL);

enum {
	LOCAL = 1 << 16,
	REMOTE = 1 << 17,
	TIMER = 1 << 18,
	SET = 1 << 19, /* it has what an epoll instance watches */
};

static uint64_t watched_descriptor_cases(const void *structure)
{
	const struct ss_descriptor *d = structure;

	return CASE(d->kind) | (d->local.size ? LOCAL : 0) |
	       (d->remote.size && d->remote.port ? REMOTE : 0) |
	       (d->kind == SS_FD_TIMERFD && d->timer_known ? TIMER : 0);
}

/* A descriptor in a set does not show its own one: they may form a cycle. */
static uint64_t descriptor_cases(const void *structure)
{
	const struct ss_descriptor *d = structure;

	return watched_descriptor_cases(d) | (d->kind == SS_FD_EPOLL ? SET : 0);
}

/* The set of an epoll instance is the last one: descriptors in a set have none. */
#define DESCRIPTOR_FIELDS                                                                \
	SS_FIELD(1, SIGNED, ss_descriptor, fd, INT32_MAX, .flags = SS_HIDDEN),           \
		SS_FIELD(2, UNSIGNED, ss_descriptor, kind, SS_FD_OTHER,                  \
			 .names = &ss_names_fd_kind),                                    \
		SS_FIELD(3, TEXT, ss_descriptor, name, 0),                               \
		SS_FIELD(4, UNSIGNED, ss_descriptor, flags, INT32_MAX),                  \
		SS_FIELD(6, UNSIGNED, ss_descriptor, peers_searched, 1,                  \
			 .flags = SS_HIDDEN),                                            \
		SS_FIELD(7, UNSIGNED, ss_descriptor, peers_incomplete, 1,                \
			 .flags = SS_HIDDEN),                                            \
		SS_FIELD(10, TEXT, ss_descriptor, protocol, 0,                           \
			 .only = CASE(SS_FD_SOCKET)),                                    \
		SS_FIELD(11, UNSIGNED, ss_descriptor, listening, 1,                      \
			 .only = CASE(SS_FD_SOCKET)),                                    \
		SS_FIELD(12, UNSIGNED, ss_descriptor, tcp_state, UINT8_MAX,              \
			 .flags = SS_NULLABLE, .only = CASE(SS_FD_SOCKET)),              \
		SS_FIELD(15, TEXT, ss_descriptor, path, 0, .only = CASE(SS_FD_SOCKET)),  \
		SS_FIELD(16, TEXT, ss_descriptor, peer_path, 0,                          \
			 .only = CASE(SS_FD_SOCKET)),                                    \
		SS_FIELD(20, UNSIGNED, ss_descriptor, process_ended, 1, .name = "ended", \
			 .only = CASE(SS_FD_PIDFD)),                                     \
		SS_FIELD(21, UNSIGNED, ss_descriptor, timer_known, 1,                    \
			 .flags = SS_HIDDEN),                                            \
		SS_FIELD(22, UNSIGNED, ss_descriptor, timer_left_ns, 0, .only = TIMER),  \
		SS_FIELD(23, UNSIGNED, ss_descriptor, timer_interval_ns, 0,              \
			 .only = TIMER),                                                 \
		SS_FIELD(24, UNSIGNED, ss_descriptor, signals, 0, .flags = SS_SIGNALS,   \
			 .only = CASE(SS_FD_SIGNALFD)),                                  \
		SS_FIELD(25, UNSIGNED, ss_descriptor, inotify_watches, 0,                \
			 .name = "watch_count", .only = CASE(SS_FD_INOTIFY)),            \
		SS_FIELD(27, UNSIGNED, ss_descriptor, watches_incomplete, 1,             \
			 .name = "watches_complete", .flags = SS_INVERTED, .only = SET), \
		SS_FIELD_OF(5, LIST, ss_descriptor, peers, peer_count, &related_process, \
			    0, 0),                                                       \
		SS_FIELD_NESTED(13, STRUCT, ss_descriptor, local, &address, 0,           \
				.only = CASE(SS_FD_SOCKET), .known = LOCAL),             \
		SS_FIELD_NESTED(14, STRUCT, ss_descriptor, remote, &address, 0,          \
				.only = CASE(SS_FD_SOCKET), .known = REMOTE)

static const struct ss_field watched_descriptor_fields[] = { DESCRIPTOR_FIELDS };
const struct ss_schema ss_watched_descriptor_schema =
	SS_SCHEMA(watched_descriptor_fields, ss_descriptor, NULL,
		  .cases = watched_descriptor_cases);

static const struct ss_field watched_fields[] = {
	SS_FIELD(1, SIGNED, ss_watched_fd, fd, INT32_MAX),
	SS_FIELD(2, UNSIGNED, ss_watched_fd, input, 1),
	SS_FIELD(3, UNSIGNED, ss_watched_fd, output, 1),
	SS_FIELD_NESTED(4, POINTER, ss_watched_fd, what, &ss_watched_descriptor_schema,
			SS_TABLE_DESCRIPTORS, .name = "descriptor"),
	SS_FIELD(5, UNSIGNED, ss_watched_fd, unread, UINT32_MAX, .flags = SS_OPTIONAL),
};
static const struct ss_schema watched = SS_SCHEMA(watched_fields, ss_watched_fd, NULL);

static const struct ss_field descriptor_fields[] = {
	DESCRIPTOR_FIELDS,
	SS_FIELD_OF(26, LIST, ss_descriptor, watches, watch_count, &watched, 0, 0,
		    .only = SET),
};
const struct ss_schema ss_descriptor_schema =
	SS_SCHEMA(descriptor_fields, ss_descriptor, NULL, .cases = descriptor_cases);

static const struct ss_field owner_frame_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_owner_frame, frame, 0),
	SS_FIELD(2, UNSIGNED, ss_owner_frame, line, 0, .flags = SS_NULLABLE),
	SS_FIELD(3, TEXT, ss_owner_frame, file, 0),
};
static const struct ss_schema owner_frame =
	SS_SCHEMA(owner_frame_fields, ss_owner_frame, NULL);

/* Locks and other futexes. */
#define LOCKS (CASE(SS_WAIT_ONCE + 1) - CASE(SS_WAIT_FUTEX))

#define SYMBOL CASE(32)
#define COUNTED CASE(33)
#define OWNER CASE(34) /* it is known, or why it is not */
#define SIGNALS CASE(35)
#define SEMAPHORE CASE(36)
#define FIFO CASE(37) /* one is being opened */

static uint64_t wait_cases(const void *structure)
{
	const struct ss_wait *wait = structure;

	return CASE(wait->kind) | (wait->symbol ? SYMBOL : 0) |
	       (wait->needed ? COUNTED : 0) |
	       (wait->owner_tid || wait->owner_pid || wait->owner_unknown ? OWNER : 0) |
	       (wait->signals_known ? SIGNALS : 0) |
	       (wait->kind == SS_WAIT_IPC && wait->semaphore_operations ? SEMAPHORE : 0) |
	       (wait->opens_fifo ? FIFO : 0);
}

enum { UNRECORDED = 4 };

/* Recordings do not have the last ones. */
static const struct ss_field wait_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_wait, kind, SS_WAIT_WORK, .names = &ss_names_wait_kind),
	SS_FIELD(2, TEXT, ss_wait, syscall, 0),
	SS_FIELD(3, SIGNED, ss_wait, syscall_number, 0, .flags = SS_HIDDEN),
	SS_FIELD(4, TEXT, ss_wait, function, 0, .only = LOCKS),
	SS_FIELD(5, UNSIGNED, ss_wait, timed, 1),
	SS_FIELD(6, SIGNED, ss_wait, timeout_ns, 0, .flags = SS_NULLABLE),
	SS_FIELD(7, SIGNED, ss_wait, left_ns, 0, .flags = SS_NULLABLE),
	SS_FIELD(10, UNSIGNED, ss_wait, lock, SS_LOCK_TYPE_LAST,
		 .names = &ss_names_lock_type, .flags = SS_NULLABLE, .only = LOCKS),
	SS_FIELD(11, UNSIGNED, ss_wait, address, 0, .flags = SS_HEX | SS_NULLABLE),
	SS_FIELD(12, TEXT, ss_wait, symbol, 0, .only = LOCKS),
	SS_FIELD(13, UNSIGNED, ss_wait, symbol_offset, 0, .only = LOCKS, .known = SYMBOL),
	SS_FIELD(14, UNSIGNED, ss_wait, access, SS_ACCESS_EXCLUSIVE,
		 .names = &ss_names_access,
		 .only = LOCKS | CASE(SS_WAIT_FILE_LOCK) | FIFO),
	SS_FIELD(15, UNSIGNED, ss_wait, readers, 0, .only = CASE(SS_WAIT_RWLOCK)),
	SS_FIELD(16, UNSIGNED, ss_wait, value, 0, .only = CASE(SS_WAIT_SEMAPHORE)),
	SS_FIELD(17, UNSIGNED, ss_wait, arrived, 0, .only = CASE(SS_WAIT_BARRIER),
		 .known = COUNTED),
	SS_FIELD(18, UNSIGNED, ss_wait, needed, 0, .flags = SS_NULLABLE,
		 .only = CASE(SS_WAIT_BARRIER)),
	SS_FIELD(19, UNSIGNED, ss_wait, futexes, 0, .flags = SS_HIDDEN),
	SS_FIELD(20, UNSIGNED, ss_wait, owner_tid, INT32_MAX, .flags = SS_NULLABLE),
	SS_FIELD(21, UNSIGNED, ss_wait, owner_pid, INT32_MAX, .flags = SS_NULLABLE),
	SS_FIELD(22, TEXT, ss_wait, owner_name, 0, .only = OWNER),
	SS_FIELD(23, TEXT, ss_wait, owner_process, 0, .only = OWNER),
	SS_FIELD(24, UNSIGNED, ss_wait, owner_access, SS_ACCESS_EXCLUSIVE,
		 .names = &ss_names_access, .only = OWNER),
	SS_FIELD(25, UNSIGNED, ss_wait, self_owned, 1, .only = OWNER),
	SS_FIELD(26, UNSIGNED, ss_wait, owner_unknown, SS_OWNER_ALONE,
		 .names = &ss_names_owner_unknown, .flags = SS_NULLABLE, .only = OWNER),
	SS_FIELD(27, UNSIGNED, ss_wait, owner_unknown_tid, INT32_MAX,
		 .flags = SS_NULLABLE, .only = OWNER),
	SS_FIELD(30, SIGNED, ss_wait, fd, INT32_MAX, .flags = SS_NULLABLE),
	SS_FIELD_NESTED(31, POINTER, ss_wait, descriptor, &ss_descriptor_schema,
			SS_TABLE_DESCRIPTORS),
	SS_FIELD_OF(32, LIST, ss_wait, fds, fd_count, &watched, 0, 0,
		    .only = CASE(SS_WAIT_POLL) | CASE(SS_WAIT_SELECT)),
	SS_FIELD(33, UNSIGNED, ss_wait, fds_incomplete, 1, .name = "fds_complete",
		 .flags = SS_INVERTED, .only = CASE(SS_WAIT_POLL) | CASE(SS_WAIT_SELECT)),
	SS_FIELD(40, UNSIGNED, ss_wait, range, SS_RANGE_BYTES, .flags = SS_HIDDEN),
	SS_FIELD(41, UNSIGNED, ss_wait, range_first, 0, .flags = SS_HIDDEN),
	SS_FIELD(42, UNSIGNED, ss_wait, range_last, 0, .flags = SS_HIDDEN),
	SS_FIELD(50, UNSIGNED, ss_wait, child_scope, SS_CHILD_VFORK,
		 .names = &ss_names_child_scope, .only = CASE(SS_WAIT_CHILD)),
	SS_FIELD(51, UNSIGNED, ss_wait, child_id, INT32_MAX, .flags = SS_NULLABLE,
		 .only = CASE(SS_WAIT_CHILD)),
	SS_FIELD_OF(52, LIST, ss_wait, children, child_count, &related_process, 0, 0,
		    .only = CASE(SS_WAIT_CHILD)),
	SS_FIELD(53, UNSIGNED, ss_wait, children_total, UINT32_MAX,
		 .only = CASE(SS_WAIT_CHILD)),
	SS_FIELD(54, UNSIGNED, ss_wait, children_known, 1, .only = CASE(SS_WAIT_CHILD)),
	SS_FIELD(60, UNSIGNED, ss_wait, signals_known, 1, .flags = SS_HIDDEN),
	SS_FIELD(61, UNSIGNED, ss_wait, signals, 0, .flags = SS_SIGNALS,
		 .only = CASE(SS_WAIT_SIGNAL), .known = SIGNALS),
	SS_FIELD(70, UNSIGNED, ss_wait, ipc, SS_IPC_SEND, .names = &ss_names_ipc,
		 .only = CASE(SS_WAIT_IPC)),
	SS_FIELD(71, SIGNED, ss_wait, ipc_id, INT32_MAX, .flags = SS_NULLABLE,
		 .only = CASE(SS_WAIT_IPC)),
	SS_FIELD(72, UNSIGNED, ss_wait, semaphore, UINT16_MAX, .only = SEMAPHORE),
	SS_FIELD(73, SIGNED, ss_wait, semaphore_change, INT16_MAX, .only = SEMAPHORE),
	SS_FIELD(74, UNSIGNED, ss_wait, semaphore_operations, UINT32_MAX,
		 .only = SEMAPHORE),
	SS_FIELD(80, UNSIGNED, ss_wait, completions, 0, .flags = SS_NULLABLE,
		 .only = CASE(SS_WAIT_IO)),
	SS_FIELD(81, TEXT, ss_wait, path, 0, .flags = SS_OPTIONAL),
	SS_FIELD(82, SIGNED, ss_wait, command, INT32_MAX, .flags = SS_OPTIONAL),
	SS_FIELD(83, UNSIGNED, ss_wait, fanotify, 1, .flags = SS_OPTIONAL),
	SS_FIELD(90, UNSIGNED, ss_wait, purpose, SS_PURPOSE_SERVICE,
		 .names = &ss_names_wait_purpose, .flags = SS_NULLABLE),
	SS_FIELD(91, TEXT, ss_wait, purpose_function, 0),
	SS_FIELD(92, TEXT, ss_wait, purpose_words, 0, .name = "purpose_description"),
	SS_FIELD(100, UNSIGNED, ss_wait, owner_unknown_pid, INT32_MAX,
		 .flags = SS_NULLABLE, .only = OWNER),
	SS_FIELD(104, UNSIGNED, ss_wait, opens_fifo, 1, .flags = SS_OPTIONAL),
	SS_FIELD(105, TEXT, ss_wait, mount, 0, .flags = SS_OPTIONAL),
	SS_FIELD(106, UNSIGNED, ss_wait, operator_pid, INT32_MAX, .flags = SS_NULLABLE,
		 .only = CASE(SS_WAIT_IPC)),
	SS_FIELD(107, TEXT, ss_wait, operator_process, 0, .only = CASE(SS_WAIT_IPC)),
	SS_FIELD(101, UNSIGNED, ss_wait, within_process, 1, .flags = SS_HIDDEN),
	SS_FIELD_OF(102, ARRAY, ss_wait, owner_frames, owner_frame_count, &owner_frame, 0,
		    SS_OWNER_FRAMES_MAX),
	SS_FIELD(103, UNSIGNED, ss_wait, stuck_elsewhere, 1, .flags = SS_HIDDEN),
	SS_FIELD(108, UNSIGNED, ss_wait, closed, 1, .flags = SS_HIDDEN),
};
static const struct ss_wait no_wait = { .syscall_number = -1,
					.fd = -1,
					.timeout_ns = -1,
					.left_ns = -1,
					.ipc_id = -1,
					.command = -1 };
const struct ss_schema ss_wait_schema =
	SS_SCHEMA(wait_fields, ss_wait, &no_wait, .cases = wait_cases);
const struct ss_schema ss_recorded_wait_schema = {
	.fields = wait_fields,
	.count = SS_ARRAY_SIZE(wait_fields) - UNRECORDED,
	.size = sizeof(struct ss_wait),
	.none = &no_wait,
};

#define IN_CYCLE CASE(32)
#define JAVA CASE(33)

static uint64_t task_cases(const void *structure)
{
	const struct ss_task *task = structure;

	return (task->in_cycle ? IN_CYCLE : 0) | (task->priority ? JAVA : 0);
}

/* The table says of which kind a task is. Recordings have the fields from RECORDED_FIRST on. */
enum { RECORDED_FIRST = 1, RECORDED_COUNT = 20 };

static const struct ss_field task_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_task, tid, INT32_MAX, .only = SS_SHOW_THREAD),
	SS_FIELD(2, TEXT, ss_task, name, 0, .only = SS_SHOW_THREAD | SS_SHOW_OBJECT),
	SS_FIELD(16, UNSIGNED, ss_task, id, 0, .name = "address", .flags = SS_HEX,
		 .only = SS_SHOW_OBJECT),
	SS_FIELD(17, UNSIGNED, ss_task, status, SS_STATUS_COPYSTACK,
		 .names = &ss_names_task_status, .only = SS_SHOW_DOING),
	SS_FIELD(18, TEXT, ss_task, wait_reason, 0, .only = SS_SHOW_DOING),
	SS_FIELD(20, UNSIGNED, ss_task, waiting_ns, 0, .flags = SS_HIDDEN),
	SS_FIELD(21, UNSIGNED, ss_task, on_thread, 1, .only = SS_SHOW_DOING),
	SS_FIELD(22, UNSIGNED, ss_task, changed, 1, .only = SS_SHOW_DOING),
	SS_FIELD(23, TEXT, ss_task, lock_function, 0, .only = SS_SHOW_DOING),
	SS_FIELD(24, UNSIGNED, ss_task, blocked, 1, .flags = SS_HIDDEN),
	SS_FIELD(26, TEXT, ss_task, runtime, 0, .only = SS_SHOW_DOING),
	SS_FIELD_OF(30, INDEXES, ss_task, awaited, awaited_count, NULL, SS_TABLE_ASYNCIO,
		    0, .name = "awaited_tasks", .only = SS_SHOW_AWAITED),
	SS_FIELD(31, UNSIGNED, ss_task, awaits_all, 1, .flags = SS_HIDDEN),
	SS_FIELD(32, UNSIGNED, ss_task, in_cycle, 1, .flags = SS_HIDDEN),
	SS_FIELD_INDEX(33, UNSIGNED, ss_task, cycle_next, SS_TABLE_ASYNCIO,
		       .only = SS_SHOW_AWAITED, .known = IN_CYCLE),
	SS_FIELD(38, TEXT, ss_task, object, 0, .only = SS_SHOW_AWAITED),
	SS_FIELD(39, UNSIGNED, ss_task, endless, SS_ENDLESS_NIL_CHANNEL,
		 .names = &ss_names_endless, .flags = SS_NULLABLE, .only = SS_SHOW_DOING),
	SS_FIELD(40, UNSIGNED, ss_task, loop_empty, 1, .flags = SS_HIDDEN),
	SS_FIELD(41, UNSIGNED, ss_task, holder, 0, .name = "probable_holder",
		 .flags = SS_NULLABLE, .only = SS_SHOW_DOING),
	SS_FIELD(42, UNSIGNED, ss_task, greenlet, 1, .only = SS_SHOW_AWAITED),
	SS_FIELD(43, UNSIGNED, ss_task, idle, 1, .flags = SS_HIDDEN),
	SS_FIELD(3, UNSIGNED, ss_task, state, INT8_MAX, .flags = SS_LETTER,
		 .only = SS_SHOW_THREAD),
	SS_FIELD(4, UNSIGNED, ss_task, stopped_ns, 0, .only = SS_SHOW_CAPTURED),
	SS_FIELD(5, UNSIGNED, ss_task, end, SS_END_GUESSED, .names = &ss_names_end,
		 .only = SS_SHOW_END),
	SS_FIELD(6, TEXT, ss_task, reason, 0, .only = SS_SHOW_END),
	SS_FIELD_INDEX(7, UNSIGNED, ss_task, stack_id, SS_TABLE_STACKS,
		       .only = SS_SHOW_STACK),
	SS_FIELD(8, UNSIGNED, ss_task, consistent, 1, .only = SS_SHOW_CAPTURED),
	SS_FIELD(9, UNSIGNED, ss_task, thread_pointer, 0, .flags = SS_HIDDEN),
	SS_FIELD(10, UNSIGNED, ss_task, inner_tid, INT32_MAX, .flags = SS_NULLABLE,
		 .only = SS_SHOW_THREAD),
	SS_FIELD(11, UNSIGNED, ss_task, missing, 0, .flags = SS_HIDDEN),
	SS_FIELD_NESTED(12, POINTER, ss_task, wait, &ss_wait_schema, 0,
			.only = SS_SHOW_CAPTURED),
	SS_FIELD(13, TEXT, ss_task, wchan, 0, .only = SS_SHOW_CAPTURED),
	SS_FIELD(14, TEXT, ss_task, kernel_stack, 0, .flags = SS_LINES,
		 .only = SS_SHOW_CAPTURED),
	SS_FIELD(15, TEXT, ss_task, native_reason, 0, .only = SS_SHOW_CAPTURED),
	SS_FIELD(25, UNSIGNED, ss_task, run_mark, 0, .flags = SS_HIDDEN),
	SS_FIELD(34, TEXT, ss_task, comm, 0, .only = SS_SHOW_CAPTURED),
	SS_FIELD(35, UNSIGNED, ss_task, runtime_id, 0, .flags = SS_NULLABLE,
		 .only = SS_SHOW_CAPTURED),
	SS_FIELD(36, UNSIGNED, ss_task, priority, UINT8_MAX, .flags = SS_NULLABLE,
		 .only = SS_SHOW_CAPTURED),
	SS_FIELD(37, UNSIGNED, ss_task, daemon, 1, .only = SS_SHOW_CAPTURED,
		 .known = JAVA),
};
static const struct ss_task no_task = { .name = "", .state = '?' };
const struct ss_schema ss_task_schema =
	SS_SCHEMA(task_fields, ss_task, &no_task, .cases = task_cases);
const struct ss_schema ss_recorded_task_schema = {
	.fields = task_fields + RECORDED_FIRST,
	.count = RECORDED_COUNT,
	.size = sizeof(struct ss_task),
	.none = &no_task,
};

static const struct ss_field coverage_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_task_coverage, known, 1),
	SS_FIELD(2, UNSIGNED, ss_task_coverage, changed, UINT32_MAX),
	SS_FIELD(3, UNSIGNED, ss_task_coverage, unread, UINT32_MAX),
	SS_FIELD(4, TEXT, ss_task_coverage, problem, 0),
};
const struct ss_schema ss_coverage_schema =
	SS_SCHEMA(coverage_fields, ss_task_coverage, NULL);

#define NATIVE CASE(32)
#define IN_MODULE CASE(33)
#define IN_SYMBOL CASE(34)
#define IN_AREA CASE(35)

static uint64_t frame_cases(const void *structure)
{
	const struct ss_frame *f = structure;
	bool native = f->kind == SS_FRAME_NATIVE;

	return (native ? NATIVE : 0) | (f->module ? IN_MODULE : 0) |
	       (native && f->symbol && !f->inlined ? IN_SYMBOL : 0) |
	       (f->area ? IN_AREA : 0);
}

static const struct ss_field frame_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_frame, pc, 0, .flags = SS_HEX, .known = NATIVE),
	SS_FIELD_INDEX(2, SIGNED, ss_frame, module_index, SS_TABLE_MODULES,
		       .name = "module", .only = SS_SHOW_NUMBERED, .known = IN_MODULE),
	SS_FIELD(3, UNSIGNED, ss_frame, offset, 0, .flags = SS_HEX, .known = IN_MODULE),
	SS_FIELD(4, TEXT, ss_frame, symbol, 0),
	SS_FIELD(5, UNSIGNED, ss_frame, symbol_offset, 0, .known = IN_SYMBOL),
	SS_FIELD(6, TEXT, ss_frame, file, 0),
	SS_FIELD(7, UNSIGNED, ss_frame, line, 0, .flags = SS_NULLABLE),
	SS_FIELD(8, UNSIGNED, ss_frame, column, 0, .flags = SS_NULLABLE),
	SS_FIELD(9, UNSIGNED, ss_frame, inlined, 1),
	SS_FIELD(10, UNSIGNED, ss_frame, signal_frame, 1),
	SS_FIELD(11, UNSIGNED, ss_frame, source, SS_FROM_RUNTIME,
		 .names = &ss_names_frame_source),
	SS_FIELD(12, UNSIGNED, ss_frame, lookup_offset, 0, .flags = SS_HEX,
		 .known = IN_MODULE),
	SS_FIELD(13, TEXT, ss_frame, area, 0),
	SS_FIELD(14, UNSIGNED, ss_frame, area_offset, 0, .flags = SS_HEX,
		 .known = IN_AREA),
	SS_FIELD(15, UNSIGNED, ss_frame, function, 0, .flags = SS_HIDDEN),
	SS_FIELD(16, UNSIGNED, ss_frame, kind, SS_FRAME_JIT,
		 .names = &ss_names_frame_kind),
	SS_FIELD(17, UNSIGNED, ss_frame, replaced, 1, .flags = SS_HIDDEN),
	SS_FIELD(18, UNSIGNED, ss_frame, omitted, 0),
	SS_FIELD(19, TEXT, ss_frame, called, 0),
};
static const struct ss_frame no_frame = { .module_index = -1 };
const struct ss_schema ss_frame_schema =
	SS_SCHEMA(frame_fields, ss_frame, &no_frame, .cases = frame_cases);

static const struct ss_field stack_fields[] = {
	SS_FIELD_OF(1, OWNED, ss_stack, frames, count, &ss_frame_schema, 0, 0),
	SS_FIELD(2, UNSIGNED, ss_stack, end, SS_END_GUESSED),
};
const struct ss_schema ss_stack_schema = SS_SCHEMA(stack_fields, ss_stack, NULL);

static const struct ss_field file_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_file_identity, size, 0),
	SS_FIELD(2, UNSIGNED, ss_file_identity, modified_ns, 0),
	SS_FIELD(3, UNSIGNED, ss_file_identity, inode, 0),
	SS_FIELD(4, TEXT, ss_file_identity, hash, 0),
};
static const struct ss_schema file = SS_SCHEMA(file_fields, ss_file_identity, NULL);

static const struct ss_field module_fields[] = {
	SS_FIELD(1, TEXT, ss_module, path, 0),
	SS_FIELD(2, TEXT, ss_module, build_id, 0),
	SS_FIELD(3, UNSIGNED, ss_module, base, 0, .flags = SS_HEX),
	SS_FIELD(4, UNSIGNED, ss_module, size, 0),
	SS_FIELD(5, UNSIGNED, ss_module, deleted, 1),
	SS_FIELD(6, TEXT, ss_module, problem, 0),
	SS_FIELD_NESTED(7, STRUCT, ss_module, file, &file, 0, .flags = SS_HIDDEN),
	SS_FIELD(8, UNSIGNED, ss_module, by_file, 1, .flags = SS_HIDDEN),
};
static const struct ss_module no_module = { .path = "" };
const struct ss_schema ss_module_schema = SS_SCHEMA(module_fields, ss_module, &no_module);

enum {
	INFO = 1 << 0,
	ADDRESS = 1 << 1,
	SENDER = 1 << 2,
};

static uint64_t crash_cases(const void *structure)
{
	const struct ss_crash *c = structure;

	return (c->has_info ? INFO : 0) | (c->has_info && c->code > 0 ? ADDRESS : 0) |
	       (c->sender > 0 ? SENDER : 0);
}

static const struct ss_field crash_fields[] = {
	SS_FIELD(1, SIGNED, ss_crash, signal, 0),
	SS_FIELD(2, SIGNED, ss_crash, code, 0, .known = INFO),
	SS_FIELD(3, UNSIGNED, ss_crash, has_info, 1, .flags = SS_HIDDEN),
	SS_FIELD(4, UNSIGNED, ss_crash, address, 0, .flags = SS_HEX, .known = ADDRESS),
	SS_FIELD(5, UNSIGNED, ss_crash, sender, INT32_MAX, .known = SENDER),
	SS_FIELD(6, UNSIGNED, ss_crash, tid, INT32_MAX),
	SS_FIELD(7, UNSIGNED, ss_crash, stack_overflow, 1),
};
const struct ss_schema ss_crash_schema =
	SS_SCHEMA(crash_fields, ss_crash, NULL, .cases = crash_cases);

static const struct ss_field process_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_process, pid, INT32_MAX, .only = SS_SHOW_PROCESS),
	SS_FIELD(2, TEXT, ss_process, name, 0, .only = SS_SHOW_PROCESS),
	SS_FIELD(3, TEXT, ss_process, executable, 0, .only = SS_SHOW_PROCESS),
	SS_FIELD(4, TEXT, ss_process, host, 0, .only = SS_SHOW_PROCESS),
	SS_FIELD(5, UNSIGNED, ss_process, time_ns, 0, .only = SS_SHOW_TIME),
	SS_FIELD(6, UNSIGNED, ss_process, mode, SS_MODE_CORE, .names = &ss_names_mode,
		 .only = SS_SHOW_CAPTURE),
	SS_FIELD(7, UNSIGNED, ss_process, stopped_ns, 0, .only = SS_SHOW_CAPTURE),
	SS_FIELD(8, UNSIGNED, ss_process, threads_stopped, 0, .only = SS_SHOW_CAPTURE),
	SS_FIELD(9, UNSIGNED, ss_process, consistent, 1, .only = SS_SHOW_CAPTURE),
	SS_FIELD(10, UNSIGNED, ss_process, copied_bytes, 0, .only = SS_SHOW_SINGLE),
	SS_FIELD(11, UNSIGNED, ss_process, running_stopped_ns, 0, .only = SS_SHOW_SINGLE),
	SS_FIELD(12, UNSIGNED, ss_process, threads_unseen, 0, .only = SS_SHOW_CAPTURE),
	SS_FIELD(13, UNSIGNED, ss_process, inner_pid, INT32_MAX, .flags = SS_NULLABLE,
		 .only = SS_SHOW_PROCESS),
	SS_FIELD(14, TEXT, ss_process, frozen, 0, .only = SS_SHOW_PROCESS),
	SS_FIELD_NESTED(15, STRUCT, ss_process, crash, &ss_crash_schema, 0,
			.flags = SS_HIDDEN),
	SS_FIELD(16, UNSIGNED, ss_process, core_truncated, 1, .name = "truncated",
		 .only = SS_SHOW_SINGLE),
	SS_FIELD(17, UNSIGNED, ss_process, handled_signals, 0, .flags = SS_SIGNALS,
		 .only = SS_SHOW_PROCESS),
	SS_FIELD(18, UNSIGNED, ss_process, start_time, 0, .flags = SS_HIDDEN),
	SS_FIELD(19, UNSIGNED, ss_process, threads_left_out, 0, .flags = SS_HIDDEN),
};
static const struct ss_process unknown_process = { .name = "", .mode = SS_MODE_STOP };
const struct ss_schema ss_process_schema =
	SS_SCHEMA(process_fields, ss_process, &unknown_process);

static const struct ss_field regs_fields[] = {
	SS_FIELD(1, WORDS, ss_regs, value, 0),
	SS_FIELD(2, UNSIGNED, ss_regs, valid, 0),
};
static const struct ss_schema regs = SS_SCHEMA(regs_fields, ss_regs, NULL);

static const struct ss_field runtime_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_runtime_info, kind, SS_FRAME_JIT,
		 .names = &ss_names_frame_kind),
	SS_FIELD(2, TEXT, ss_runtime_info, version, 0),
	SS_FIELD(3, TEXT, ss_runtime_info, problem, 0),
	SS_FIELD(4, UNSIGNED, ss_runtime_info, no_signal_code, 1, .flags = SS_HIDDEN),
};
const struct ss_schema ss_runtime_info_schema =
	SS_SCHEMA(runtime_fields, ss_runtime_info, NULL);

static const struct ss_field runtime_lock_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_runtime_lock, kind, SS_FRAME_JIT),
	SS_FIELD(2, UNSIGNED, ss_runtime_lock, type, SS_LOCK_TYPE_LAST),
	SS_FIELD(3, UNSIGNED, ss_runtime_lock, address, 0),
	SS_FIELD(4, UNSIGNED, ss_runtime_lock, start, 0),
	SS_FIELD(5, UNSIGNED, ss_runtime_lock, end, 0),
	SS_FIELD(6, UNSIGNED, ss_runtime_lock, owner, INT32_MAX),
	SS_FIELD(7, UNSIGNED, ss_runtime_lock, waiter, INT32_MAX),
	SS_FIELD(8, UNSIGNED, ss_runtime_lock, process, INT32_MAX),
	SS_FIELD(9, UNSIGNED, ss_runtime_lock, cyclic, 1),
};
static const struct ss_schema runtime_lock =
	SS_SCHEMA(runtime_lock_fields, ss_runtime_lock, NULL);

static const struct ss_lock_reference no_reference = { .module_index = -1 };
static const struct ss_field lock_reference_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_lock_reference, futex, 0),
	SS_FIELD(2, UNSIGNED, ss_lock_reference, thread, 0),
	SS_FIELD(3, UNSIGNED, ss_lock_reference, frame, 0),
	SS_FIELD(4, UNSIGNED, ss_lock_reference, in_code, 1),
	SS_FIELD(5, UNSIGNED, ss_lock_reference, exact, 1),
	SS_FIELD(6, UNSIGNED, ss_lock_reference, calls, 0),
	SS_FIELD_INDEX(7, SIGNED, ss_lock_reference, module_index, SS_TABLE_MODULES),
	SS_FIELD(8, UNSIGNED, ss_lock_reference, call_offset, 0),
	SS_FIELD(9, TEXT, ss_lock_reference, call_file, 0),
	SS_FIELD(10, UNSIGNED, ss_lock_reference, call_line, 0),
};
static const struct ss_schema lock_reference =
	SS_SCHEMA(lock_reference_fields, ss_lock_reference, &no_reference);

static const struct ss_field deadlock_fields[] = {
	SS_FIELD_OF(1, INDEXES, ss_deadlock, threads, count, NULL, SS_TABLE_THREADS, 0,
		    .name = "tids"),
	SS_FIELD(2, UNSIGNED, ss_deadlock, behind, UINT32_MAX),
	SS_FIELD(3, UNSIGNED, ss_deadlock, timed, 1),
};
const struct ss_schema ss_deadlock_schema = SS_SCHEMA(deadlock_fields, ss_deadlock, NULL);

/* The index of its thread has no default: a blocker begins with it. */
static const struct ss_blocker no_blocker = { .thread = SIZE_MAX };
static const struct ss_field blocker_fields[] = {
	SS_FIELD_INDEX(1, UNSIGNED, ss_blocker, thread, SS_TABLE_THREADS, .name = "tid"),
	SS_FIELD(2, UNSIGNED, ss_blocker, waiting, UINT32_MAX),
	SS_FIELD(3, UNSIGNED, ss_blocker, locks, UINT32_MAX),
};
const struct ss_schema ss_blocker_schema =
	SS_SCHEMA(blocker_fields, ss_blocker, &no_blocker);

static const struct ss_field application_lock_fields[] = {
	SS_FIELD(1, TEXT, ss_application_lock, function, 0),
	SS_FIELD(2, TEXT, ss_application_lock, words, 0, .name = "description"),
	SS_FIELD(3, UNSIGNED, ss_application_lock, waiting, UINT32_MAX),
	SS_FIELD_OF(4, INDEXES, ss_application_lock, suspects, suspect_count, NULL,
		    SS_TABLE_THREADS, 0),
	SS_FIELD(5, UNSIGNED, ss_application_lock, suspects_total, UINT32_MAX),
	SS_FIELD(6, TEXT, ss_application_lock, common_function, 0),
	SS_FIELD_OF(7, INDEXES, ss_application_lock, client_suspects,
		    client_suspect_count, NULL, SS_TABLE_THREADS, 0),
	SS_FIELD(8, UNSIGNED, ss_application_lock, client_suspects_total, UINT32_MAX),
	SS_FIELD(9, TEXT, ss_application_lock, client_function, 0),
	SS_FIELD(10, UNSIGNED, ss_application_lock, owner_pid, INT32_MAX,
		 .flags = SS_NULLABLE),
	SS_FIELD(11, TEXT, ss_application_lock, owner_process, 0),
};
static const struct ss_application_lock no_application_lock = { .function = "" };
const struct ss_schema ss_application_lock_schema =
	SS_SCHEMA(application_lock_fields, ss_application_lock, &no_application_lock);

static const struct ss_field thread_number_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_thread_number, process, 0),
	SS_FIELD(2, UNSIGNED, ss_thread_number, thread, 0),
};
static const struct ss_schema thread_number =
	SS_SCHEMA(thread_number_fields, ss_thread_number, NULL);

static const struct ss_field thread_numbers_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_thread_numbers, thread, UINT32_MAX),
	SS_FIELD_OF(2, LIST, ss_thread_numbers, numbers, count, &thread_number, 0, 0),
};
static const struct ss_schema thread_numbers =
	SS_SCHEMA(thread_numbers_fields, ss_thread_numbers, NULL);

#define VECTOR(number, member, nested)                                                   \
	SS_FIELD_OF(number, VECTOR, ss_snapshot_fields, member.items, member.count,      \
		    &(nested), 0, 0)

/* Tables precede those that have indexes of them. */
static const struct ss_field snapshot_fields[] = {
	SS_FIELD(1, TEXT, ss_snapshot_fields, arch, 0),
	SS_FIELD_NESTED(2, STRUCT, ss_snapshot_fields, process, &ss_process_schema, 0),
	SS_FIELD_NESTED(3, STRUCT, ss_snapshot_fields, crash_regs, &regs, 0),
	VECTOR(4, modules, ss_module_schema),
	VECTOR(5, stacks, ss_stack_schema),
	VECTOR(6, descriptors, ss_descriptor_schema),
	VECTOR(7, tasks[SS_TASK_THREAD], ss_task_schema),
	VECTOR(8, runtimes, ss_runtime_info_schema),
	VECTOR(9, deadlocks, ss_deadlock_schema),
	VECTOR(10, blockers, ss_blocker_schema),
	VECTOR(11, application_locks, ss_application_lock_schema),
	VECTOR(12, tasks[SS_TASK_GOROUTINE], ss_task_schema),
	SS_FIELD_NESTED(13, STRUCT, ss_snapshot_fields, coverage[SS_TASK_GOROUTINE],
			&ss_coverage_schema, 0),
	VECTOR(15, tasks[SS_TASK_ASYNCIO], ss_task_schema),
	SS_FIELD_NESTED(16, STRUCT, ss_snapshot_fields, coverage[SS_TASK_ASYNCIO],
			&ss_coverage_schema, 0),
	VECTOR(20, chains, thread_numbers),
	VECTOR(21, cycles, thread_numbers),
	VECTOR(22, runtime_locks, runtime_lock),
	VECTOR(23, references, lock_reference),
};
static const struct ss_snapshot_fields no_snapshot = {
	.process = { .name = "", .mode = SS_MODE_STOP }
};
const struct ss_schema ss_snapshot_schema =
	SS_SCHEMA(snapshot_fields, ss_snapshot_fields, &no_snapshot);
