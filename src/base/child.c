#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/scan.h"

enum {
	STATUS_SIGNAL = 128,
	NS_PER_US = 1000,
	/* A child that was killed frees its memory, which does not block it for so long. */
	END_BLOCKED_MS = 500,
	WAIT_STEP_NS = 20000, /* grows up to */
	WAIT_STEP_MAX_NS = 20000000,
	/* Looks at a child that has not ended when the step is so long. */
	END_LOOK_NS = 200000,
	STATUS_MAX = 16 << 10,
	/* What counts between two looks: this process may have been stopped, too. */
	STEP_MAX_MS = 200,
	/* The kernel allocates the lowest free descriptor: after this many free ones, no
	   more are expected. */
	GAP_MAX = 256,
};

/* The number of close_range(2); headers before Linux 5.9 lack it. */
enum { CLOSE_RANGE = 436 };

static const char *skip_line(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return newline ? newline + 1 : end;
}

/* Reads State and voluntary_ctxt_switches of proc_pid_status(5). False: it has ended. */
static bool read_status(pid_t pid, char *ret_state, uint64_t *ret_switches)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	bool found = false;
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid); /* fits */
	if (ss_io_read_path(AT_FDCWD, path, STATUS_MAX, &text) != 0)
		return false;
	const char *end = text.bytes + text.size;
	*ret_state = '?';
	for (const char *at = text.bytes; at < end; at = skip_line(at, end)) {
		struct ss_scan line = { .at = at, .end = end };
		if (ss_scan_text(&line, "State:")) {
			ss_scan_spaces(&line);
			*ret_state = line.at < end ? *line.at : '?';
		} else if (ss_scan_text(&line, "voluntary_ctxt_switches:")) {
			ss_scan_spaces(&line);
			found = ss_scan_number(&line, 10, ret_switches);
		}
	}
	return found;
}

uint64_t ss_child_blocked_ns(struct ss_child *child)
{
	uint64_t now_ns = ss_now_ns();
	uint64_t last_ns = child->looked_ns;
	uint64_t before = child->switches;
	bool was_blocked = child->was_blocked;
	char state = '?';

	child->looked_ns = now_ns;
	child->was_blocked = read_status(child->pid, &state, &child->switches) &&
			     (state == 'D' || state == 'S');
	/* Confined children have the user of the target, who may signal them. */
	if (state == 'T')
		(void)kill(child->pid, SIGCONT);
	if (!child->was_blocked || !was_blocked || child->switches != before)
		child->blocked_ns = 0;
	else
		child->blocked_ns += SS_MIN(now_ns - last_ns, STEP_MAX_MS * SS_NS_PER_MS);
	return child->blocked_ns;
}

/* The child ------------------------------------------------------------- */

static void close_from_to(unsigned first, unsigned last)
{
	unsigned free_ones = 0;

	if (first > last || syscall(CLOSE_RANGE, first, last, 0) == 0)
		return;
	for (unsigned fd = first; fd <= last && free_ones <= GAP_MAX; fd++)
		free_ones = close((int)fd) == 0 ? 0 : free_ones + 1;
}

/* The lowest of the descriptors from first on that stay open; or UINT_MAX. */
static unsigned next_kept(const struct ss_child_options *options, int channel,
			  unsigned first)
{
	unsigned lowest = channel >= (int)first ? (unsigned)channel : UINT_MAX;

	for (size_t i = 0; i < options->keep_count; i++) {
		if (options->keep[i] >= (int)first)
			lowest = SS_MIN(lowest, (unsigned)options->keep[i]);
	}
	return lowest;
}

static void close_files(const struct ss_child_options *options, int channel)
{
	unsigned first = 0;

	for (;;) {
		unsigned kept = next_kept(options, channel, first);
		if (kept > first)
			close_from_to(first, kept == UINT_MAX ? kept : kept - 1);
		if (kept == UINT_MAX)
			return;
		first = kept + 1;
	}
}

static bool replace_streams(const int streams[3], int channel)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int from = streams[fd] == SS_CHILD_CHANNEL ? channel : streams[fd];
		if (from == SS_CHILD_NOWHERE)
			from = ss_io_create_unnamed();
		if (from != 0 && dup2(from, fd) != fd)
			return false;
	}
	return true;
}

static bool prepare(const struct ss_child_options *options, int channel, pid_t parent)
{
	/* A seccomp filter may refuse it. */
	if (options->death_signal)
		(void)prctl(PR_SET_PDEATHSIG, options->death_signal);
	if (options->death_signal && getppid() != parent)
		return false;
	if (!replace_streams(options->streams, channel))
		return false;
	if (options->close_files)
		close_files(options, channel);
	if (options->mask)
		(void)sigprocmask(SIG_SETMASK, options->mask, NULL); /* cannot fail */
	return true;
}

#if defined(__SANITIZE_ADDRESS__)
enum { NOT_LIMITED = RLIMIT_DATA };
#else
enum { NOT_LIMITED = -1 };
#endif

void ss_child_limit(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit now = {};

	/* prlimit(): libcs differ in the type of its second argument. */
	if (resource == NOT_LIMITED ||
	    syscall(SYS_prlimit64, 0, resource, NULL, &now) < 0)
		return;
	now.rlim_max = SS_MIN(now.rlim_max, hard);
	now.rlim_cur = SS_MIN(SS_MIN(now.rlim_cur, soft), now.rlim_max);
	(void)syscall(SYS_prlimit64, 0, resource, &now, NULL); /* may always be lowered */
}

/* The parent ------------------------------------------------------------ */

/* ret: the ends of parent and child. */
static bool open_channel(enum ss_child_channel channel, int ret[2])
{
	int ends[2];

	switch (channel) {
	case SS_CHILD_NO_CHANNEL:
		return true;
	case SS_CHILD_STREAM:
		return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret) == 0;
	case SS_CHILD_PACKETS:
		return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) == 0;
	default:
		if (pipe2(ends, O_CLOEXEC) != 0)
			return false;
		ret[0] = ends[channel == SS_CHILD_READS];
		ret[1] = ends[channel == SS_CHILD_WRITES];
		return true;
	}
}

/* These calls cannot fail. */
static void block_signals(sigset_t *ret_before)
{
	static const int faults[] = { SIGSEGV, SIGBUS,	SIGILL,	 SIGFPE, SIGABRT,
				      SIGSYS,  SIGTRAP, SIGXCPU, SIGXFSZ };
	sigset_t mask;

	(void)sigfillset(&mask);
	for (size_t i = 0; i < SS_ARRAY_SIZE(faults); i++)
		(void)sigdelset(&mask, faults[i]);
	(void)sigprocmask(SIG_SETMASK, &mask, ret_before);
}

struct ss_error *ss_child_start(const struct ss_child_options *options,
				ss_child_function *function, void *data,
				struct ss_child *ret)
{
	int ends[2] = { -1, -1 };
	const pid_t parent = getpid();
	struct ss_cpu_pin pin = {};
	sigset_t before;

	if (!open_channel(options->channel, ends))
		return ss_error_new_errno(errno, "cannot connect a child process");
	_cleanup_close_ int ours = ends[0];
	_cleanup_close_ int theirs = ends[1];
	if (options->flush)
		(void)fflush(NULL);
	if (options->on_this_cpu)
		ss_cpu_pin_begin(&pin);
	if (options->block_signals) /* from the child's first moment on */
		block_signals(&before);
	pid_t pid = fork();
	int errnum = errno;
	ss_cpu_pin_end(&pin);
	if (pid == 0) {
		close_cleanup(&ours);
		int status = prepare(options, theirs, parent) ? function(data, theirs) :
								EXIT_FAILURE;
		if (options->flush)
			(void)fflush(NULL);
		_exit(status);
	}
	if (options->block_signals)
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return ss_error_new_errno(errnum, "cannot create a child process");
	*ret = (struct ss_child){ .pid = pid, .channel = take_fd(ours) };
	return NULL;
}

/* The descriptors of a message. */
union control {
	char bytes[CMSG_SPACE(sizeof(((struct ss_child_files *)0)->items))];
	struct cmsghdr align;
};

ssize_t ss_child_send(int channel, struct iovec *parts, size_t count,
		      const struct ss_child_files *files)
{
	const size_t size = files ? files->count * sizeof(int) : 0;
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };
	union control control = {};

	if (size) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(size);
		control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = CMSG_LEN(size) };
		memcpy(CMSG_DATA(&control.align), files->items, size);
	}
	return sendmsg(channel, &message, MSG_NOSIGNAL);
}

ssize_t ss_child_receive(int channel, void *bytes, size_t size, int flags,
			 struct ss_child_files *ret)
{
	struct iovec part = { bytes, size };
	union control control;
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(channel, &message, MSG_CMSG_CLOEXEC | flags);
	/* The kernel makes one of all descriptors, and nobody asked for anything else. */
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&message);

	ret->count = 0;
	ret->truncated = n >= 0 && (message.msg_flags & MSG_CTRUNC);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		ret->count = SS_MIN((c->cmsg_len - CMSG_LEN(0)) / sizeof(int),
				    SS_ARRAY_SIZE(ret->items));
		memcpy(ret->items, CMSG_DATA(c), ret->count * sizeof(int));
	}
	return n;
}

void ss_child_signal(const struct ss_child *child, int signal)
{
	if (child->pid)
		(void)kill(child->pid, signal); /* one that has ended keeps its status */
}

/* Returns whether the child was waited for. */
static bool reap(struct ss_child *child, int flags)
{
	struct rusage usage = {};
	int status = 0;

	if (!child->pid)
		return true;
	pid_t ended = wait4(child->pid, &status, flags, &usage);
	/* One that is traced may have stopped. */
	if (ended == 0 || (ended < 0 && errno == EINTR) ||
	    (ended > 0 && WIFSTOPPED(status)))
		return false;
	child->pid = 0;
	child->status = ended < 0 ? 0 : status;
	child->cpu_ns =
		(uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) *
			SS_NS_PER_SECOND +
		(uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
	return true;
}

static uint64_t sleep_longer(uint64_t step_ns)
{
	ss_sleep_ns(step_ns);
	return SS_MIN(step_ns * 2, (uint64_t)WAIT_STEP_MAX_NS);
}

bool ss_child_wait(struct ss_child *child, int timeout_ms)
{
	const uint64_t deadline_ns = ss_now_ns() + (uint64_t)timeout_ms * SS_NS_PER_MS;
	const int flags = timeout_ms == SS_CHILD_FOREVER ? 0 : WNOHANG;
	uint64_t step_ns = WAIT_STEP_NS;

	while (!reap(child, flags)) {
		if (flags && ss_now_ns() >= deadline_ns)
			return false;
		if (flags)
			step_ns = sleep_longer(step_ns);
	}
	return true;
}

bool ss_child_end(struct ss_child *child)
{
	uint64_t step_ns = WAIT_STEP_NS;

	ss_child_signal(child, SIGKILL);
	close_cleanup(&child->channel);
	child->channel = -1;
	child->was_blocked = false;
	while (!reap(child, WNOHANG)) {
		if (step_ns >= END_LOOK_NS &&
		    ss_child_blocked_ns(child) >= END_BLOCKED_MS * SS_NS_PER_MS) {
			child->pid = 0;
			child->status = SIGKILL; /* it will die of that one day */
			return false;
		}
		step_ns = sleep_longer(step_ns);
	}
	return true;
}

int ss_child_exit_status(const struct ss_child *child)
{
	return WIFEXITED(child->status) ? WEXITSTATUS(child->status) :
					  STATUS_SIGNAL + WTERMSIG(child->status);
}

void ss_cpu_pin_begin(struct ss_cpu_pin *pin)
{
	int cpu = sched_getcpu();
	cpu_set_t one;

	pin->pinned = cpu >= 0 && cpu < CPU_SETSIZE &&
		      sched_getaffinity(0, sizeof(pin->saved), &pin->saved) == 0;
	if (!pin->pinned)
		return;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one); /* an optimisation only */
}

void ss_cpu_pin_end(const struct ss_cpu_pin *pin)
{
	/* Fails only if the cpuset has shrunk since: then the cpuset applies. */
	if (pin->pinned)
		(void)sched_setaffinity(0, sizeof(pin->saved), &pin->saved);
}
