/*
 * Traces a command and its descendants. A stop is answered at once, except those of held
 * processes.
 *
 * Stops are looked at without consuming their wait status: if this program were killed
 * between the two, the kernel would regard the signal of a consumed stop as delivered, and it
 * would be lost (wait_task_stopped()). Only threads of held processes are consumed.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/auxvec.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/procfs.h"
#include "base/scan.h"
#include "base/search.h"
#include "base/vector.h"
#include "process/registers.h"
#include "process/target.h"
#include "crash/supervisor.h"

/*
 * Programs that must not stay traced. They are looked at when they have been executed, before
 * their first instruction.
 */

enum { RECORD_MAX = 32 * 1024, WORD = sizeof(long) };

static const char *const debuggers[] = {
	"gdb", "gdbserver", "lldb",	"lldb-server", "strace",  "ltrace",
	"rr",  "dlv",	    "eu-stack", "stacksnap",   "tbstack", "reptyr",
};

static bool is_debugger(pid_t pid)
{
	char link[64];
	char path[PATH_MAX];

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", pid); /* always fits */
	ssize_t size = readlink(link, path, sizeof(path) - 1);
	if (size <= 0)
		return false;
	path[size] = '\0';
	const char *name = ss_path_base(path);
	return ss_any(SS_ARRAY_SIZE(debuggers), i, strcmp(name, debuggers[i]) == 0);
}

/* Whether the process lacks rights that its file grants. */
static bool lacks_rights(pid_t pid)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_status status;
	struct statvfs mount;
	struct stat st;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid); /* always fits */
	if (stat(path, &st) != 0)
		return false;
	bool changes_user = st.st_mode & S_ISUID;
	bool changes_group = (st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP);
	bool capable = getxattr(path, "security.capability", NULL, 0) > 0;
	if ((!changes_user && !changes_group && !capable) || statvfs(path, &mount) != 0 ||
	    (mount.f_flag & ST_NOSUID))
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid); /* always fits */
	if (ss_io_read_record(AT_FDCWD, path, RECORD_MAX, &text) != 0 ||
	    !ss_status_parse(text.bytes, text.size, &status) || status.no_new_privileges)
		return false;
	return (changes_user && status.uid[1] != st.st_uid) ||
	       (changes_group && status.gid[1] != st.st_gid) ||
	       (capable && status.cap_permitted == 0);
}

/* Reads a word of a stopped process. */
static bool peek(pid_t pid, uint64_t address, uint64_t *ret)
{
	errno = 0;
	long word = ptrace(PTRACE_PEEKDATA, pid, address, 0);
	*ret = (uint64_t)word;
	return errno == 0;
}

static bool read_path(pid_t pid, uint64_t address, char ret[PATH_MAX])
{
	for (size_t at = 0; at + WORD <= PATH_MAX; at += WORD) {
		uint64_t word;
		if (!peek(pid, address + at, &word))
			return false;
		memcpy(ret + at, &word, WORD);
		if (memchr(ret + at, '\0', WORD))
			return true;
	}
	return false;
}

/* Whether that path still leads the process to the file that it executes. */
static bool leads_to_program(pid_t pid, const char *name)
{
	char path[64];
	struct stat program;
	struct stat named;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid); /* always fits */
	if (stat(path, &program) != 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid,
		       *name == '/' ? "root" : "cwd"); /* always fits */
	_cleanup_close_ int start = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (*name == '/')
		name++;
	return start >= 0 && fstatat(start, name, &named, 0) == 0 &&
	       named.st_dev == program.st_dev && named.st_ino == program.st_ino;
}

static bool find_path(pid_t pid, const struct ss_arch *arch, uint64_t *ret)
{
	_cleanup_buffer_ struct ss_buffer auxv = {};
	char path[64];
	char name[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/%d/auxv", pid); /* always fits */
	return ss_io_read_record(AT_FDCWD, path, RECORD_MAX, &auxv) == 0 &&
	       ss_auxv_find(auxv.bytes, auxv.size, arch->word, AT_EXECFN, ret) &&
	       read_path(pid, *ret, name) && leads_to_program(pid, name);
}

static bool write_code(pid_t pid, const struct ss_arch_attach *attach, uint64_t address)
{
	for (size_t at = 0; at < attach->execute_size; at += WORD) {
		long word;
		memcpy(&word, attach->execute_code + at, WORD);
		if (ptrace(PTRACE_POKEDATA, pid, address + at, word) != 0)
			return false;
	}
	return true;
}

/*
 * The first instructions of the new program are replaced by execve() with the arguments that
 * the kernel has put on its stack. The memory is a private copy that the next program
 * replaces.
 */
static bool execute_again(pid_t pid)
{
	const struct ss_arch *arch;
	ss_kernel_regs kernel;
	struct ss_regs regs = {};
	uint64_t path;
	uint64_t argc;

	if (!ss_registers_read(pid, &kernel, &arch) || !arch)
		return false;
	arch->attach->regs(&kernel, &regs);
	uint64_t sp = ss_regs_sp(arch, &regs);
	if (!peek(pid, sp, &argc) || !find_path(pid, arch, &path))
		return false;
	uint64_t argv = sp + arch->word;
	/* argc is an int. */
	arch->attach->set_execute(&kernel, path, argv,
				  argv + ((uint32_t)argc + UINT64_C(1)) * arch->word);
	return write_code(pid, arch->attach, ss_regs_pc(arch, &regs)) &&
	       ss_registers_write(pid, &kernel);
}

/*
 * Releases a process that is in its stop after execve(2) (PTRACE_EVENT_EXEC) if it must not
 * stay traced: a debugger, whose children it could not trace; and a program that did not get
 * the rights of its file because its tracer is unprivileged (execve(2)). That one makes the same
 * execve() again, untraced. True: it was released.
 */
static bool program_release(pid_t pid)
{
	if (!is_debugger(pid) && !(lacks_rights(pid) && execute_again(pid)))
		return false;
	return ptrace(PTRACE_DETACH, pid, 0, 0) == 0;
}

/*
 * Whether a signal that is about to be delivered ends a process (signal(7)).
 */

/* Whether the default action is to end the process, with or without a core dump. */
static bool fatal_by_default(int signal)
{
	switch (signal) {
	case SIGCHLD:
	case SIGCONT:
	case SIGURG:
	case SIGWINCH:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return false;
	default:
		return true;
	}
}

/* The same for a process whose dispositions are known. */
static bool fatal_is(const siginfo_t *info, const struct ss_status *status)
{
	uint64_t bit = UINT64_C(1) << (info->si_signo - 1);

	if (!fatal_by_default(info->si_signo) ||
	    ((status->handled_signals | status->ignored_signals) & bit))
		return false;
	/* The first process of a pid namespace gets signals with a default action only from
	   the kernel and from outside (SIGNAL_UNKILLABLE). */
	return status->inner_id != 1 || status->id_count < 2 || info->si_code > 0;
}

/*
 * Whether the end is part of normal operation rather than a crash: SIGPIPE, with which all but
 * the last commands of a pipeline end, and what a terminal sends (Ctrl-C, hang-up), also if
 * the process pid has handled it and ends itself by the same signal, as shells do.
 */
static bool fatal_is_normal(const siginfo_t *info, pid_t pid)
{
	switch (info->si_signo) {
	case SIGPIPE:
		return true;
	case SIGINT:
	case SIGHUP:
		return info->si_code == SI_KERNEL ||
		       (info->si_code <= 0 && info->si_pid == pid);
	default:
		return false;
	}
}

enum {
	/* EXITKILL must not be set: the command survives the supervisor. */
	OPTIONS = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
		  PTRACE_O_TRACEEXEC,
	STATUS_MAX = 32 * 1024,
	SIGNALS = 65,
	ANCESTORS_MAX = 4096,
};

/* A thread of a held process that has stopped: status as siginfo_t.si_status has it. */
struct parked {
	pid_t pid;
	pid_t tid;
	int status;
};

struct held {
	pid_t pid;
	struct ss_crash crash; /* signal 0: none */
};

/* The last signal of a number that the command got from a process. */
struct received {
	pid_t sender;
	uint64_t time_ns;
};

struct ss_supervisor {
	pid_t command;
	bool traces;
	SS_VECTOR(struct held) held;
	SS_VECTOR(struct parked) parked;
	struct received received[SIGNALS];
};

static bool read_status(pid_t tid, struct ss_status *ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", tid); /* always fits */
	return ss_io_read_record(AT_FDCWD, path, STATUS_MAX, &text) == 0 &&
	       ss_status_parse(text.bytes, text.size, ret);
}

struct ss_error *ss_supervisor_new(pid_t child, struct ss_supervisor **ret)
{
	struct ss_supervisor *supervisor = calloc(1, sizeof(*supervisor));

	if (!supervisor)
		return ss_error_no_memory();
	supervisor->command = child;
	*ret = supervisor;
	return NULL;
}

struct ss_error *ss_supervisor_trace(struct ss_supervisor *supervisor)
{
	supervisor->traces = ptrace(PTRACE_SEIZE, supervisor->command, 0, OPTIONS) == 0;
	int errnum = errno;
	return supervisor->traces ? NULL :
				    ss_error_new_errno(errnum, "tracing the command");
}

static struct held *find_held(const struct ss_supervisor *supervisor, pid_t pid)
{
	for (size_t i = 0; i < supervisor->held.count; i++) {
		if (supervisor->held.items[i].pid == pid)
			return &supervisor->held.items[i];
	}
	return NULL;
}

/* The held process of a thread, or NULL. */
static struct held *find_held_of(const struct ss_supervisor *supervisor, pid_t tid)
{
	for (size_t i = 0; i < supervisor->held.count; i++) {
		struct held *held = &supervisor->held.items[i];
		if (tgkill(held->pid, tid, 0) == 0 || errno == EPERM)
			return held;
	}
	return NULL;
}

static bool is_stop_signal(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN ||
	       signal == SIGTTOU;
}

/*
 * A tracer makes the kernel wake a thread for a signal that it ignores. Calls that are not
 * restarted by themselves would return EINTR; with this result the kernel restarts them
 * unless a handler runs.
 */
static void undo_eintr(pid_t tid)
{
	const struct ss_arch *arch;
	ss_kernel_regs kernel;

	if (ss_arch_host.attach->undo_eintr && ss_registers_read(tid, &kernel, &arch) &&
	    arch && arch->attach->undo_eintr(&kernel))
		(void)ss_registers_write(tid, &kernel);
}

/* Ends a stop. On failure the thread was killed. */
static void resume(pid_t tid, int status)
{
	int signal = status & 0x7f;
	int event = status >> 8;

	if (event == PTRACE_EVENT_STOP && is_stop_signal(signal))
		(void)ptrace(PTRACE_LISTEN, tid, 0, 0); /* it stays stopped */
	else
		(void)ptrace(PTRACE_CONT, tid, 0, event ? 0 : signal);
}

/* Keeps a thread in its stop. False without memory. */
static bool park(struct ss_supervisor *supervisor, pid_t pid, pid_t tid, int status)
{
	siginfo_t info = {};

	if (!ss_vector_reserve(&supervisor->parked, supervisor->parked.count + 1))
		return false;
	(void)waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | __WALL);
	struct parked *parked = ss_vector_push(&supervisor->parked); /* cannot fail */
	*parked = (struct parked){ .pid = pid, .tid = tid, .status = status };
	return true;
}

static void note_received(struct ss_supervisor *supervisor, pid_t tid,
			  const siginfo_t *info)
{
	if (info->si_code > 0 || info->si_signo >= SIGNALS ||
	    tgkill(supervisor->command, tid, 0) != 0)
		return;
	supervisor->received[info->si_signo] =
		(struct received){ .sender = info->si_pid, .time_ns = ss_now_ns() };
}

static struct ss_crash crash_of(pid_t tid, const siginfo_t *info)
{
	struct ss_crash crash = { .signal = info->si_signo,
				  .code = info->si_code,
				  .has_info = true,
				  .tid = tid };

	if (info->si_code > 0)
		crash.address = (uint64_t)(uintptr_t)info->si_addr;
	else
		crash.sender = info->si_pid;
	return crash;
}

/* Holds the process of a thread that a signal is about to end. False: it is not. */
static bool hold_crash(struct ss_supervisor *supervisor, pid_t tid, int status,
		       const siginfo_t *info, struct ss_supervisor_event *ret)
{
	struct ss_status process;

	if (!fatal_by_default(info->si_signo) || !read_status(tid, &process) ||
	    fatal_is_normal(info, process.tgid) || !fatal_is(info, &process) ||
	    !ss_vector_reserve(&supervisor->held, supervisor->held.count + 1) ||
	    !park(supervisor, process.tgid, tid, status))
		return false;
	struct held *held = ss_vector_push(&supervisor->held); /* cannot fail */
	*held = (struct held){ .pid = process.tgid, .crash = crash_of(tid, info) };
	*ret = (struct ss_supervisor_event){ .kind = SS_SUPERVISOR_CRASH,
					     .pid = process.tgid,
					     .signal = info->si_signo };
	return true;
}

static bool on_signal(struct ss_supervisor *supervisor, pid_t tid, int status,
		      struct ss_supervisor_event *ret)
{
	siginfo_t info = {};

	if (ptrace(PTRACE_GETSIGINFO, tid, 0, &info) == 0) {
		note_received(supervisor, tid, &info);
		if (hold_crash(supervisor, tid, status, &info, ret))
			return true;
	}
	undo_eintr(tid);
	resume(tid, status);
	return false;
}

/* A stop of job control, its end, or the first stop of a new thread. */
static bool on_stop(const struct ss_supervisor *supervisor, pid_t tid, int status,
		    struct ss_supervisor_event *ret)
{
	int signal = status & 0x7f;

	resume(tid, status);
	if (tid != supervisor->command)
		return false;
	*ret = (struct ss_supervisor_event){
		.kind = is_stop_signal(signal) ? SS_SUPERVISOR_STOPPED :
						 SS_SUPERVISOR_CONTINUED,
		.pid = tid,
		.signal = signal,
	};
	return true;
}

static bool on_trap(struct ss_supervisor *supervisor, pid_t tid, int status,
		    struct ss_supervisor_event *ret)
{
	const struct held *held = find_held_of(supervisor, tid);

	if (held && park(supervisor, held->pid, tid, status))
		return false;
	switch (status >> 8) {
	case 0:
		return on_signal(supervisor, tid, status, ret);
	case PTRACE_EVENT_STOP:
		return on_stop(supervisor, tid, status, ret);
	case PTRACE_EVENT_EXEC:
		if (!program_release(tid))
			resume(tid, status);
		return false;
	default:
		resume(tid, status);
		return false;
	}
}

/* The kernel tells the parent of a process when its tracer has taken note. */
static bool on_end(pid_t pid, struct ss_supervisor_event *ret)
{
	int status = 0;

	if (waitpid(pid, &status, WNOHANG | __WALL) != pid)
		return false;
	*ret = (struct ss_supervisor_event){ .kind = SS_SUPERVISOR_ENDED,
					     .pid = pid,
					     .status = status };
	return true;
}

/*
 * The command stopped while it was not traced, or continued. To take note of that can take a
 * stop of a traced command instead, which may have happened since: the kernel shows
 * these to their tracer whatever it waits for (wait_consider_task()).
 */
static bool on_change(struct ss_supervisor *supervisor, const siginfo_t *info,
		      struct ss_supervisor_event *ret)
{
	bool stopped = info->si_code == CLD_STOPPED;
	siginfo_t consumed = {};

	(void)waitid(P_PID, (id_t)info->si_pid, &consumed,
		     (stopped ? WSTOPPED : WCONTINUED) | WNOHANG);
	if (consumed.si_pid != 0 && consumed.si_code == CLD_TRAPPED)
		return on_trap(supervisor, consumed.si_pid, consumed.si_status, ret);
	*ret = (struct ss_supervisor_event){
		.kind = stopped ? SS_SUPERVISOR_STOPPED : SS_SUPERVISOR_CONTINUED,
		.pid = info->si_pid,
		.signal = info->si_status,
	};
	return true;
}

bool ss_supervisor_next(struct ss_supervisor *supervisor, struct ss_supervisor_event *ret)
{
	for (;;) {
		siginfo_t info = {};
		bool any;

		if (waitid(P_ALL, 0, &info,
			   WSTOPPED | WEXITED | WCONTINUED | WNOHANG | WNOWAIT |
				   __WALL) != 0 ||
		    info.si_pid == 0)
			return false;
		if (info.si_code == CLD_TRAPPED)
			any = on_trap(supervisor, info.si_pid, info.si_status, ret);
		else if (info.si_code == CLD_STOPPED || info.si_code == CLD_CONTINUED)
			any = on_change(supervisor, &info, ret);
		else
			any = on_end(info.si_pid, ret);
		if (any)
			return true;
	}
}

static struct ss_error *open_held(const struct held *held, struct ss_target **ret)
{
	_cleanup_(ss_target_cleanup) struct ss_target *target = NULL;
	char path[64];
	struct ss_error *error = ss_target_open(held->pid, &target);

	if (error)
		return error;
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", held->pid); /* always fits */
	target->held = true;
	target->held_mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	target->crash = held->crash;
	*ret = take_ptr(target);
	return NULL;
}

struct ss_error *ss_supervisor_hold(struct ss_supervisor *supervisor, pid_t pid,
				    struct ss_target **ret)
{
	struct held *held = find_held(supervisor, pid);

	if (!held)
		held = ss_vector_push(&supervisor->held);
	if (!held)
		return ss_error_no_memory();
	held->pid = pid;
	struct ss_error *error = open_held(held, ret);
	if (error)
		ss_supervisor_release(supervisor, pid);
	return error;
}

void ss_supervisor_release(struct ss_supervisor *supervisor, pid_t pid)
{
	struct held *held = find_held(supervisor, pid);
	size_t kept = 0;

	if (held)
		*held = supervisor->held.items[--supervisor->held.count];
	for (size_t i = 0; i < supervisor->parked.count; i++) {
		struct parked parked = supervisor->parked.items[i];
		if (parked.pid == pid)
			resume(parked.tid, parked.status);
		else
			supervisor->parked.items[kept++] = parked;
	}
	supervisor->parked.count = kept;
}

typedef SS_VECTOR(struct ss_status) status_list;
typedef SS_VECTOR(struct ss_supervised) supervised_list;

/* Reads the status of all processes. */
static struct ss_error *read_processes(status_list *ret)
{
	DIR *dir = opendir("/proc");
	int errnum = errno;

	if (!dir)
		return ss_error_new_errno(errnum, "/proc");
	for (struct dirent *entry; (entry = readdir(dir));) {
		pid_t pid = ss_scan_pid(entry->d_name);
		struct ss_status status;
		if (pid <= 0 || !read_status(pid, &status))
			continue;
		struct ss_status *slot = ss_vector_push(ret);
		if (!slot) {
			(void)closedir(dir); /* only read from */
			return ss_error_no_memory();
		}
		*slot = status;
	}
	(void)closedir(dir); /* only read from */
	return NULL;
}

static bool contains(const supervised_list *list, pid_t pid)
{
	return ss_any(list->count, i, list->items[i].pid == pid);
}

/* The command, as long as it is our child: another process may get its number. */
static bool is_command(const struct ss_supervisor *supervisor,
		       const struct ss_status *status)
{
	return status->tgid == supervisor->command && status->parent == getpid();
}

/* Adds processes that are traced, the command, and children of those in the list. Whether
   there were any new ones. */
static bool add_processes(const struct ss_supervisor *supervisor, const status_list *all,
			  supervised_list *list)
{
	bool any = false;

	for (size_t i = 0; i < all->count; i++) {
		const struct ss_status *status = &all->items[i];
		bool traced = status->tracer == getpid();
		if (contains(list, status->tgid) ||
		    (!traced && !is_command(supervisor, status) &&
		     !contains(list, status->parent)))
			continue;
		struct ss_supervised *slot = ss_vector_push(list);
		if (!slot)
			return false;
		*slot = (struct ss_supervised){ .pid = status->tgid, .traced = traced };
		any = true;
	}
	return any;
}

struct ss_error *ss_supervisor_list(const struct ss_supervisor *supervisor,
				    struct ss_supervised **ret, size_t *ret_count)
{
	status_list all = {};
	supervised_list list = {};
	struct ss_error *error = read_processes(&all);

	while (!error && add_processes(supervisor, &all, &list))
		;
	ss_vector_free(&all);
	if (error)
		return error;
	*ret = list.items;
	*ret_count = list.count;
	return NULL;
}

/* Whether ss_supervisor_list() has it: another process may have got its number since. */
static bool is_supervised(const struct ss_supervisor *supervisor, pid_t pid)
{
	struct ss_status status;

	for (int i = 0; i < ANCESTORS_MAX && pid > 0 && read_status(pid, &status); i++) {
		if (status.tracer == getpid() || is_command(supervisor, &status))
			return true;
		pid = status.parent;
	}
	return false;
}

void ss_supervisor_signal(const struct ss_supervisor *supervisor, pid_t pid, int signal)
{
	if (is_supervised(supervisor, pid))
		(void)kill(pid, signal); /* it may belong to another user */
}

bool ss_supervisor_has_received(const struct ss_supervisor *supervisor, int signal,
				pid_t sender)
{
	struct ss_status status;

	if (!supervisor->traces || signal <= 0 || signal >= SIGNALS)
		return false;
	const struct received *received = &supervisor->received[signal];
	if (received->sender == sender && received->time_ns != 0 &&
	    ss_now_ns() - received->time_ns < SS_NS_PER_SECOND)
		return true;
	return read_status(supervisor->command, &status) &&
	       (status.pending_signals >> (signal - 1) & 1);
}

void ss_supervisor_free(struct ss_supervisor *supervisor)
{
	if (!supervisor)
		return;
	while (supervisor->held.count > 0)
		ss_supervisor_release(supervisor, supervisor->held.items[0].pid);
	ss_vector_free(&supervisor->held);
	ss_vector_free(&supervisor->parked);
	free(supervisor);
}
