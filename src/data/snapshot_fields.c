#include "data/snapshot_fields.h"

static const struct ss_field related_process_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_related_process, pid, INT32_MAX),
	SS_FIELD(2, TEXT, ss_related_process, name, 0),
	SS_FIELD(3, UNSIGNED, ss_related_process, state, INT8_MAX),
	SS_FIELD(4, UNSIGNED, ss_related_process, same, 1),
};
static const struct ss_related_process no_process = { .state = '?' };
static const struct ss_schema related_process =
	SS_SCHEMA(related_process_fields, ss_related_process, &no_process);

static const struct ss_field address_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_socket_address, port, UINT16_MAX),
	SS_FIELD_OF(2, BYTES, ss_socket_address, bytes, size, NULL, 0, 0),
};
static const struct ss_schema address =
	SS_SCHEMA(address_fields, ss_socket_address, NULL);

/* The set of an epoll instance is the last one: descriptors in a set have none. */
#define DESCRIPTOR_FIELDS                                                                \
	SS_FIELD(1, SIGNED, ss_descriptor, fd, INT32_MAX),                               \
		SS_FIELD(2, UNSIGNED, ss_descriptor, kind, SS_FD_OTHER),                 \
		SS_FIELD(3, TEXT, ss_descriptor, name, 0),                               \
		SS_FIELD(4, UNSIGNED, ss_descriptor, flags, INT32_MAX),                  \
		SS_FIELD(6, UNSIGNED, ss_descriptor, peers_searched, 1),                 \
		SS_FIELD(7, UNSIGNED, ss_descriptor, peers_incomplete, 1),               \
		SS_FIELD(10, TEXT, ss_descriptor, protocol, 0),                          \
		SS_FIELD(11, UNSIGNED, ss_descriptor, listening, 1),                     \
		SS_FIELD(12, UNSIGNED, ss_descriptor, tcp_state, UINT8_MAX),             \
		SS_FIELD(15, TEXT, ss_descriptor, path, 0),                              \
		SS_FIELD(16, TEXT, ss_descriptor, peer_path, 0),                         \
		SS_FIELD(20, UNSIGNED, ss_descriptor, process_ended, 1),                 \
		SS_FIELD(21, UNSIGNED, ss_descriptor, timer_known, 1),                   \
		SS_FIELD(22, UNSIGNED, ss_descriptor, timer_left_ns, 0),                 \
		SS_FIELD(23, UNSIGNED, ss_descriptor, timer_interval_ns, 0),             \
		SS_FIELD(24, UNSIGNED, ss_descriptor, signals, 0),                       \
		SS_FIELD(25, UNSIGNED, ss_descriptor, inotify_watches, 0),               \
		SS_FIELD(27, UNSIGNED, ss_descriptor, watches_incomplete, 1),            \
		SS_FIELD_OF(5, LIST, ss_descriptor, peers, peer_count, &related_process, \
			    0, 0),                                                       \
		SS_FIELD_NESTED(13, STRUCT, ss_descriptor, local, &address, 0),          \
		SS_FIELD_NESTED(14, STRUCT, ss_descriptor, remote, &address, 0)

static const struct ss_field watched_descriptor_fields[] = { DESCRIPTOR_FIELDS };
static const struct ss_schema watched_descriptor =
	SS_SCHEMA(watched_descriptor_fields, ss_descriptor, NULL);

static const struct ss_field watched_fields[] = {
	SS_FIELD(1, SIGNED, ss_watched_fd, fd, INT32_MAX),
	SS_FIELD(2, UNSIGNED, ss_watched_fd, input, 1),
	SS_FIELD(3, UNSIGNED, ss_watched_fd, output, 1),
	SS_FIELD_NESTED(4, POINTER, ss_watched_fd, what, &watched_descriptor,
			SS_TABLE_DESCRIPTORS),
};
static const struct ss_schema watched = SS_SCHEMA(watched_fields, ss_watched_fd, NULL);

static const struct ss_field descriptor_fields[] = {
	DESCRIPTOR_FIELDS,
	SS_FIELD_OF(26, LIST, ss_descriptor, watches, watch_count, &watched, 0, 0),
};
static const struct ss_schema descriptor =
	SS_SCHEMA(descriptor_fields, ss_descriptor, NULL);

static const struct ss_field owner_frame_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_owner_frame, frame, 0),
	SS_FIELD(2, UNSIGNED, ss_owner_frame, line, 0),
	SS_FIELD(3, TEXT, ss_owner_frame, file, 0),
};
static const struct ss_schema owner_frame =
	SS_SCHEMA(owner_frame_fields, ss_owner_frame, NULL);

enum { UNRECORDED = 3 };

/* Recordings do not have the last ones. */
static const struct ss_field wait_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_wait, kind, SS_WAIT_WORK),
	SS_FIELD(2, TEXT, ss_wait, syscall, 0),
	SS_FIELD(3, SIGNED, ss_wait, syscall_number, 0),
	SS_FIELD(4, TEXT, ss_wait, function, 0),
	SS_FIELD(5, UNSIGNED, ss_wait, timed, 1),
	SS_FIELD(6, SIGNED, ss_wait, timeout_ns, 0),
	SS_FIELD(7, SIGNED, ss_wait, left_ns, 0),
	SS_FIELD(10, UNSIGNED, ss_wait, lock, SS_LOCK_TYPE_LAST),
	SS_FIELD(11, UNSIGNED, ss_wait, address, 0),
	SS_FIELD(12, TEXT, ss_wait, symbol, 0),
	SS_FIELD(13, UNSIGNED, ss_wait, symbol_offset, 0),
	SS_FIELD(14, UNSIGNED, ss_wait, access, SS_ACCESS_EXCLUSIVE),
	SS_FIELD(15, UNSIGNED, ss_wait, readers, 0),
	SS_FIELD(16, UNSIGNED, ss_wait, value, 0),
	SS_FIELD(17, UNSIGNED, ss_wait, arrived, 0),
	SS_FIELD(18, UNSIGNED, ss_wait, needed, 0),
	SS_FIELD(19, UNSIGNED, ss_wait, futexes, 0),
	SS_FIELD(20, UNSIGNED, ss_wait, owner_tid, INT32_MAX),
	SS_FIELD(21, UNSIGNED, ss_wait, owner_pid, INT32_MAX),
	SS_FIELD(22, TEXT, ss_wait, owner_name, 0),
	SS_FIELD(23, TEXT, ss_wait, owner_process, 0),
	SS_FIELD(24, UNSIGNED, ss_wait, owner_access, SS_ACCESS_EXCLUSIVE),
	SS_FIELD(25, UNSIGNED, ss_wait, self_owned, 1),
	SS_FIELD(26, UNSIGNED, ss_wait, owner_unknown, SS_OWNER_IN_PARENT),
	SS_FIELD(27, UNSIGNED, ss_wait, owner_unknown_tid, INT32_MAX),
	SS_FIELD(30, SIGNED, ss_wait, fd, INT32_MAX),
	SS_FIELD_NESTED(31, POINTER, ss_wait, descriptor, &descriptor,
			SS_TABLE_DESCRIPTORS),
	SS_FIELD_OF(32, LIST, ss_wait, fds, fd_count, &watched, 0, 0),
	SS_FIELD(33, UNSIGNED, ss_wait, fds_incomplete, 1),
	SS_FIELD(40, UNSIGNED, ss_wait, range, SS_RANGE_BYTES),
	SS_FIELD(41, UNSIGNED, ss_wait, range_first, 0),
	SS_FIELD(42, UNSIGNED, ss_wait, range_last, 0),
	SS_FIELD(50, UNSIGNED, ss_wait, child_scope, SS_CHILD_VFORK),
	SS_FIELD(51, UNSIGNED, ss_wait, child_id, INT32_MAX),
	SS_FIELD_OF(52, LIST, ss_wait, children, child_count, &related_process, 0, 0),
	SS_FIELD(53, UNSIGNED, ss_wait, children_total, UINT32_MAX),
	SS_FIELD(54, UNSIGNED, ss_wait, children_known, 1),
	SS_FIELD(60, UNSIGNED, ss_wait, signals_known, 1),
	SS_FIELD(61, UNSIGNED, ss_wait, signals, 0),
	SS_FIELD(70, UNSIGNED, ss_wait, ipc, SS_IPC_SEND),
	SS_FIELD(71, SIGNED, ss_wait, ipc_id, INT32_MAX),
	SS_FIELD(72, UNSIGNED, ss_wait, semaphore, UINT16_MAX),
	SS_FIELD(73, SIGNED, ss_wait, semaphore_change, INT16_MAX),
	SS_FIELD(74, UNSIGNED, ss_wait, semaphore_operations, UINT32_MAX),
	SS_FIELD(80, UNSIGNED, ss_wait, completions, 0),
	SS_FIELD(81, TEXT, ss_wait, path, 0),
	SS_FIELD(82, SIGNED, ss_wait, command, INT32_MAX),
	SS_FIELD(83, UNSIGNED, ss_wait, fanotify, 1),
	SS_FIELD(90, UNSIGNED, ss_wait, purpose, SS_PURPOSE_SERVICE),
	SS_FIELD(91, TEXT, ss_wait, purpose_function, 0),
	SS_FIELD(92, TEXT, ss_wait, purpose_words, 0),
	SS_FIELD(100, UNSIGNED, ss_wait, owner_unknown_pid, INT32_MAX),
	SS_FIELD(101, UNSIGNED, ss_wait, within_process, 1),
	SS_FIELD_OF(102, ARRAY, ss_wait, owner_frames, owner_frame_count, &owner_frame, 0,
		    SS_OWNER_FRAMES_MAX),
};
static const struct ss_wait no_wait = { .syscall_number = -1,
					.fd = -1,
					.timeout_ns = -1,
					.left_ns = -1,
					.ipc_id = -1,
					.command = -1 };
const struct ss_schema ss_wait_schema = SS_SCHEMA(wait_fields, ss_wait, &no_wait);
const struct ss_schema ss_recorded_wait_schema = {
	.fields = wait_fields,
	.count = SS_ARRAY_SIZE(wait_fields) - UNRECORDED,
	.size = sizeof(struct ss_wait),
	.none = &no_wait,
};

/* The table says of which kind a task is. */
static const struct ss_field task_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_task, tid, INT32_MAX),
	SS_FIELD(2, TEXT, ss_task, name, 0),
	SS_FIELD(3, UNSIGNED, ss_task, state, INT8_MAX),
	SS_FIELD(4, UNSIGNED, ss_task, stopped_ns, 0),
	SS_FIELD(5, UNSIGNED, ss_task, end, SS_END_RUNNABLE),
	SS_FIELD(6, TEXT, ss_task, reason, 0),
	SS_FIELD_INDEX(7, UNSIGNED, ss_task, stack_id, SS_TABLE_STACKS),
	SS_FIELD(8, UNSIGNED, ss_task, consistent, 1),
	SS_FIELD(9, UNSIGNED, ss_task, thread_pointer, 0),
	SS_FIELD(10, UNSIGNED, ss_task, inner_tid, INT32_MAX),
	SS_FIELD(11, UNSIGNED, ss_task, missing, 0),
	SS_FIELD_NESTED(12, POINTER, ss_task, wait, &ss_wait_schema, 0),
	SS_FIELD(13, TEXT, ss_task, wchan, 0),
	SS_FIELD(14, TEXT, ss_task, kernel_stack, 0),
	SS_FIELD(15, TEXT, ss_task, native_reason, 0),
	SS_FIELD(16, UNSIGNED, ss_task, id, 0),
	SS_FIELD(17, UNSIGNED, ss_task, status, SS_STATUS_COPYSTACK),
	SS_FIELD(18, TEXT, ss_task, wait_reason, 0),
	SS_FIELD(20, UNSIGNED, ss_task, waiting_ns, 0),
	SS_FIELD(21, UNSIGNED, ss_task, on_thread, 1),
	SS_FIELD(22, UNSIGNED, ss_task, changed, 1),
	SS_FIELD(23, TEXT, ss_task, lock_function, 0),
	SS_FIELD(24, UNSIGNED, ss_task, blocked, 1),
	SS_FIELD(25, UNSIGNED, ss_task, run_mark, 0),
	SS_FIELD(26, TEXT, ss_task, runtime, 0),
	SS_FIELD_OF(30, INDEXES, ss_task, awaited, awaited_count, NULL, SS_TABLE_ASYNCIO,
		    0),
	SS_FIELD(31, UNSIGNED, ss_task, awaits_all, 1),
	SS_FIELD(32, UNSIGNED, ss_task, in_cycle, 1),
	SS_FIELD_INDEX(33, UNSIGNED, ss_task, cycle_next, SS_TABLE_ASYNCIO),
};
static const struct ss_task no_task = { .name = "", .state = '?' };
static const struct ss_schema task = SS_SCHEMA(task_fields, ss_task, &no_task);

static const struct ss_field coverage_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_task_coverage, known, 1),
	SS_FIELD(2, UNSIGNED, ss_task_coverage, changed, UINT32_MAX),
	SS_FIELD(3, UNSIGNED, ss_task_coverage, unread, UINT32_MAX),
	SS_FIELD(4, TEXT, ss_task_coverage, problem, 0),
};
const struct ss_schema ss_coverage_schema =
	SS_SCHEMA(coverage_fields, ss_task_coverage, NULL);

static const struct ss_field frame_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_frame, pc, 0),
	SS_FIELD_INDEX(2, SIGNED, ss_frame, module_index, SS_TABLE_MODULES),
	SS_FIELD(3, UNSIGNED, ss_frame, offset, 0),
	SS_FIELD(4, TEXT, ss_frame, symbol, 0),
	SS_FIELD(5, UNSIGNED, ss_frame, symbol_offset, 0),
	SS_FIELD(6, TEXT, ss_frame, file, 0),
	SS_FIELD(7, UNSIGNED, ss_frame, line, 0),
	SS_FIELD(8, UNSIGNED, ss_frame, column, 0),
	SS_FIELD(9, UNSIGNED, ss_frame, inlined, 1),
	SS_FIELD(10, UNSIGNED, ss_frame, signal_frame, 1),
	SS_FIELD(11, UNSIGNED, ss_frame, source, SS_FROM_RUNTIME),
	SS_FIELD(12, UNSIGNED, ss_frame, lookup_offset, 0),
	SS_FIELD(13, TEXT, ss_frame, area, 0),
	SS_FIELD(14, UNSIGNED, ss_frame, area_offset, 0),
	SS_FIELD(15, UNSIGNED, ss_frame, function, 0),
	SS_FIELD(16, UNSIGNED, ss_frame, kind, SS_FRAME_JIT),
	SS_FIELD(17, UNSIGNED, ss_frame, replaced, 1),
	SS_FIELD(18, UNSIGNED, ss_frame, omitted, 0),
};
static const struct ss_frame no_frame = { .module_index = -1 };
static const struct ss_schema frame = SS_SCHEMA(frame_fields, ss_frame, &no_frame);

static const struct ss_field stack_fields[] = {
	SS_FIELD_OF(1, OWNED, ss_stack, frames, count, &frame, 0, 0),
	SS_FIELD(2, UNSIGNED, ss_stack, end, SS_END_RUNNABLE),
};
static const struct ss_schema stack = SS_SCHEMA(stack_fields, ss_stack, NULL);

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
	SS_FIELD(3, UNSIGNED, ss_module, base, 0),
	SS_FIELD(4, UNSIGNED, ss_module, size, 0),
	SS_FIELD(5, UNSIGNED, ss_module, deleted, 1),
	SS_FIELD(6, TEXT, ss_module, problem, 0),
	SS_FIELD_NESTED(7, STRUCT, ss_module, file, &file, 0),
	SS_FIELD(8, UNSIGNED, ss_module, by_file, 1),
};
static const struct ss_module no_module = { .path = "" };
const struct ss_schema ss_module_schema = SS_SCHEMA(module_fields, ss_module, &no_module);

static const struct ss_field crash_fields[] = {
	SS_FIELD(1, SIGNED, ss_crash, signal, 0),
	SS_FIELD(2, SIGNED, ss_crash, code, 0),
	SS_FIELD(3, UNSIGNED, ss_crash, has_info, 1),
	SS_FIELD(4, UNSIGNED, ss_crash, address, 0),
	SS_FIELD(5, UNSIGNED, ss_crash, sender, INT32_MAX),
	SS_FIELD(6, UNSIGNED, ss_crash, tid, INT32_MAX),
	SS_FIELD(7, UNSIGNED, ss_crash, stack_overflow, 1),
};
static const struct ss_schema crash = SS_SCHEMA(crash_fields, ss_crash, NULL);

static const struct ss_field process_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_process, pid, INT32_MAX),
	SS_FIELD(2, TEXT, ss_process, name, 0),
	SS_FIELD(3, TEXT, ss_process, executable, 0),
	SS_FIELD(4, TEXT, ss_process, host, 0),
	SS_FIELD(5, UNSIGNED, ss_process, time_ns, 0),
	SS_FIELD(6, UNSIGNED, ss_process, mode, SS_MODE_CORE),
	SS_FIELD(7, UNSIGNED, ss_process, stopped_ns, 0),
	SS_FIELD(8, UNSIGNED, ss_process, threads_stopped, 0),
	SS_FIELD(9, UNSIGNED, ss_process, consistent, 1),
	SS_FIELD(10, UNSIGNED, ss_process, copied_bytes, 0),
	SS_FIELD(11, UNSIGNED, ss_process, running_stopped_ns, 0),
	SS_FIELD(12, UNSIGNED, ss_process, threads_unseen, 0),
	SS_FIELD(13, UNSIGNED, ss_process, inner_pid, INT32_MAX),
	SS_FIELD(14, TEXT, ss_process, frozen, 0),
	SS_FIELD_NESTED(15, STRUCT, ss_process, crash, &crash, 0),
	SS_FIELD(16, UNSIGNED, ss_process, core_truncated, 1),
	SS_FIELD(17, UNSIGNED, ss_process, handled_signals, 0),
	SS_FIELD(18, UNSIGNED, ss_process, start_time, 0),
};
static const struct ss_process unknown_process = { .name = "", .mode = SS_MODE_STOP };
static const struct ss_schema process =
	SS_SCHEMA(process_fields, ss_process, &unknown_process);

static const struct ss_field regs_fields[] = {
	SS_FIELD(1, WORDS, ss_regs, value, 0),
	SS_FIELD(2, UNSIGNED, ss_regs, valid, 0),
};
static const struct ss_schema regs = SS_SCHEMA(regs_fields, ss_regs, NULL);

static const struct ss_field runtime_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_runtime_info, kind, SS_FRAME_JIT),
	SS_FIELD(2, TEXT, ss_runtime_info, version, 0),
	SS_FIELD(3, TEXT, ss_runtime_info, problem, 0),
};
static const struct ss_schema runtime = SS_SCHEMA(runtime_fields, ss_runtime_info, NULL);

static const struct ss_field deadlock_fields[] = {
	SS_FIELD_OF(1, INDEXES, ss_deadlock, threads, count, NULL, SS_TABLE_THREADS, 0),
	SS_FIELD(2, UNSIGNED, ss_deadlock, behind, UINT32_MAX),
	SS_FIELD(3, UNSIGNED, ss_deadlock, timed, 1),
};
static const struct ss_schema deadlock = SS_SCHEMA(deadlock_fields, ss_deadlock, NULL);

/* The index of its thread has no default: a blocker begins with it. */
static const struct ss_blocker no_blocker = { .thread = SIZE_MAX };
static const struct ss_field blocker_fields[] = {
	SS_FIELD_INDEX(1, UNSIGNED, ss_blocker, thread, SS_TABLE_THREADS),
	SS_FIELD(2, UNSIGNED, ss_blocker, waiting, UINT32_MAX),
	SS_FIELD(3, UNSIGNED, ss_blocker, locks, UINT32_MAX),
};
static const struct ss_schema blocker =
	SS_SCHEMA(blocker_fields, ss_blocker, &no_blocker);

static const struct ss_field application_lock_fields[] = {
	SS_FIELD(1, TEXT, ss_application_lock, function, 0),
	SS_FIELD(2, TEXT, ss_application_lock, words, 0),
	SS_FIELD(3, UNSIGNED, ss_application_lock, waiting, UINT32_MAX),
	SS_FIELD_OF(4, INDEXES, ss_application_lock, suspects, suspect_count, NULL,
		    SS_TABLE_THREADS, 0),
	SS_FIELD(5, UNSIGNED, ss_application_lock, suspects_total, UINT32_MAX),
	SS_FIELD(6, TEXT, ss_application_lock, common_function, 0),
	SS_FIELD_OF(7, INDEXES, ss_application_lock, client_suspects,
		    client_suspect_count, NULL, SS_TABLE_THREADS, 0),
	SS_FIELD(8, UNSIGNED, ss_application_lock, client_suspects_total, UINT32_MAX),
	SS_FIELD(9, TEXT, ss_application_lock, client_function, 0),
};
static const struct ss_application_lock no_application_lock = { .function = "" };
static const struct ss_schema application_lock =
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
	SS_FIELD_NESTED(2, STRUCT, ss_snapshot_fields, process, &process, 0),
	SS_FIELD_NESTED(3, STRUCT, ss_snapshot_fields, crash_regs, &regs, 0),
	VECTOR(4, modules, ss_module_schema),
	VECTOR(5, stacks, stack),
	VECTOR(6, descriptors, descriptor),
	VECTOR(7, tasks[SS_TASK_THREAD], task),
	VECTOR(8, runtimes, runtime),
	VECTOR(9, deadlocks, deadlock),
	VECTOR(10, blockers, blocker),
	VECTOR(11, application_locks, application_lock),
	VECTOR(12, tasks[SS_TASK_GOROUTINE], task),
	SS_FIELD_NESTED(13, STRUCT, ss_snapshot_fields, coverage[SS_TASK_GOROUTINE],
			&ss_coverage_schema, 0),
	VECTOR(15, tasks[SS_TASK_ASYNCIO], task),
	SS_FIELD_NESTED(16, STRUCT, ss_snapshot_fields, coverage[SS_TASK_ASYNCIO],
			&ss_coverage_schema, 0),
	VECTOR(20, chains, thread_numbers),
	VECTOR(21, cycles, thread_numbers),
};
static const struct ss_snapshot_fields no_snapshot = {
	.process = { .name = "", .mode = SS_MODE_STOP }
};
const struct ss_schema ss_snapshot_schema =
	SS_SCHEMA(snapshot_fields, ss_snapshot_fields, &no_snapshot);
