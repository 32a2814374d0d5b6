#include "crash/cli/core.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "cli/output.h"
#include "core/core_capture.h"
#include "crash/dump.h"
#include "data/gather.h"
#include "data/pipeline.h"
#include "interpret/interpret.h"
#include "sandbox/sandbox.h"

enum {
	/* The process is released after this, even if it has not been read completely. */
	HOLD_MS = 5000,
	RECEIVE_MS = 20000, /* or after so much more, if its whole dump is read instead */
	PROBE_MS = 3000,    /* of that, to find the frames of runtimes, */
	SLOW_COPY_MS = 500, /* unless copying the stacks took so long */
	/* If another handler does not read, or does not end, for so long. */
	STALL_MS = 30000,
	HEAD_S = 30, /* until the kernel has written headers and notes */
	/* The report is written, or given up, by then. */
	REPORT_S = 120,
	INTERPRET_MS = 45000, /* once more with less must fit into that */
	PRIORITY = 10,	      /* nice(2) */
	DUMPED_BY_ROOT = 2,   /* fs.suid_dumpable: its owner may not see its memory */
	FIRST_FD = STDERR_FILENO + 1,
	SMALL = 4096,
	SIGNAL_MAX = 64,
	NOBODY = 65534,
	FILE_MAX = 64 << 20,
};

#define COPY_MAX ((uint64_t)32 << 20) /* default of --max-total */

/* A crash, and what is known about its process. */
struct crash {
	const struct ss_core_handler *handler;
	pid_t pid;
	struct ss_core_process process;
	struct ss_core_reports reports;
	enum ss_dump_identity identity;
	int pidfd; /* -1: not known */
	int head;  /* headers and notes */
	/* Memory of the process cannot be read: what is needed is copied from its dump. */
	bool whole_dump;
	int rest; /* of the dump, for the child; and where the other end of that is fed, or -1 */
	int feed;
	struct ss_dump *dump;
	int core;		 /* with stacks */
	char sysroot[40];	 /* or empty */
	char name[NAME_MAX + 1]; /* of the report */
	bool only_crashed;	 /* no other thread is to be in it */
	pid_t first;		 /* the thread that crashed, in its pid namespace */
};

/* The process ------------------------------------------------------------------ */

static bool parse_number(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno == 0 && end != text && *end == '\0';
}

static bool parse_arguments(struct crash *crash)
{
	const struct ss_core_handler *handler = crash->handler;
	uint64_t values[SS_CORE_HANDLER_ARGUMENTS - 1] = {};

	/* The last one is empty before Linux 6.16. */
	for (unsigned i = 0; i < SS_CORE_HANDLER_ARGUMENTS - 1; i++) {
		if (!parse_number(handler->arguments[i], &values[i]))
			return false;
	}
	if (values[0] == 0 || values[0] > INT32_MAX || values[2] > SIGNAL_MAX)
		return false;
	crash->pid = crash->process.pid = (pid_t)values[0];
	crash->process.tid = (pid_t)values[1];
	crash->process.signal = (int)values[2];
	crash->process.time_s = values[3];
	crash->process.protected = values[4] == DUMPED_BY_ROOT;
	return true;
}

/* The kernel passes a descriptor of the process from Linux 6.16 on. */
static void open_pidfd(struct crash *crash)
{
	const struct ss_core_handler *handler = crash->handler;
	uint64_t fd;
	bool passed =
		handler->argument_count == SS_CORE_HANDLER_ARGUMENTS &&
		parse_number(handler->arguments[SS_CORE_HANDLER_ARGUMENTS - 1], &fd) &&
		fd > STDERR_FILENO && fd <= INT_MAX;

	crash->pidfd = ss_dump_find_process(crash->pid, passed ? (int)fd : -1);
}

static void describe(struct crash *crash)
{
	crash->identity = ss_dump_identify(crash->pid, crash->pidfd);
	if (crash->identity == SS_DUMP_SAME)
		ss_dump_describe(crash->pid, &crash->process.about);
	else
		crash->process.about =
			(struct ss_dump_process){ .root = -1, .account = NOBODY };
}

/* Its files are looked up below its root directory, also after it is gone. */
static void use_root(struct crash *crash)
{
	if (crash->process.about.root < 0 || crash->handler->settings->symbols.sysroot)
		return;
	(void)snprintf(crash->sysroot, sizeof(crash->sysroot), "/proc/self/fd/%d",
		       crash->process.about.root); /* always fits */
	crash->handler->settings->symbols.sysroot = crash->sysroot;
}

/* The journal ------------------------------------------------------------------- */

/* A value, or a part of one, which must not contain a newline: it would begin another field. */
static void write_value(FILE *out, const char *value)
{
	for (; *value; value++)
		(void)fputc(*value == '\n' ? ' ' : *value, out);
}

/* The protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): NAME=VALUE, a line each. */
static void write_field(FILE *out, const char *name, const char *value)
{
	(void)fprintf(out, "%s=", name);
	write_value(out, value);
	(void)fputc('\n', out);
}

static void write_number(FILE *out, const char *name, uint64_t value)
{
	(void)fprintf(out, "%s=%" PRIu64 "\n", name, value);
}

static void write_message(FILE *out, const struct ss_core_process *process,
			  const char *path, const char *problem)
{
	const char *name = sigabbrev_np(process->signal);

	(void)fprintf(out, "Process %d (", process->pid);
	write_value(out, process->about.name);
	(void)fprintf(out, ") of user %u was killed by SIG%s%s", process->about.uid,
		      name ? name : "?", path ? ": " : "; there is no report: ");
	write_value(out, path ? path : problem ? problem : "unknown");
	if (path && problem) {
		(void)fputs("; the report has only the thread that crashed: ", out);
		write_value(out, problem);
	}
}

static void write_entry(FILE *out, const struct ss_core_process *process,
			const char *path, const char *problem)
{
	const char *name = sigabbrev_np(process->signal);

	(void)fputs("MESSAGE=", out);
	write_message(out, process, path, problem);
	(void)fputs("\nPRIORITY=2\nSYSLOG_IDENTIFIER=stacksnap\n"
		    "MESSAGE_ID=fc2e22bc6ee647b6b90729ab34a250b1\n", /* a core dump */
		    out);
	write_number(out, "COREDUMP_PID", (uint64_t)process->pid);
	write_number(out, "COREDUMP_TID", (uint64_t)process->tid);
	write_number(out, "COREDUMP_UID", process->about.uid);
	write_number(out, "COREDUMP_GID", process->about.gid);
	write_number(out, "COREDUMP_SIGNAL", (uint64_t)process->signal);
	if (name)
		(void)fprintf(out, "COREDUMP_SIGNAL_NAME=SIG%s\n", name);
	write_number(out, "COREDUMP_TIMESTAMP", process->time_s * 1000000);
	write_field(out, "COREDUMP_COMM", process->about.name);
	if (process->about.executable[0])
		write_field(out, "COREDUMP_EXE", process->about.executable);
	if (path)
		write_field(out, "STACKSNAP_REPORT", path);
}

/* syslog(3), which may block, writes such a line. */
static void write_line(FILE *out, const struct ss_core_process *process, const char *path,
		       const char *problem)
{
	(void)fprintf(out, "<%d>stacksnap: ", LOG_DAEMON | LOG_CRIT);
	write_message(out, process, path, problem);
}

typedef void writer(FILE *out, const struct ss_core_process *process, const char *path,
		    const char *problem);

/* False: nobody reads it. */
static bool send_to(const struct sockaddr_un *address, writer *write,
		    const struct ss_core_process *process, const char *path,
		    const char *problem)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	_cleanup_close_ int fd =
		socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return false;
	write(out, process, path, problem);
	return fclose(out) == 0 && fd >= 0 &&
	       sendto(fd, text, size, MSG_NOSIGNAL, (const struct sockaddr *)address,
		      sizeof(*address)) >= 0;
}

/* The log of the kernel takes lines of the same form. */
static void send_to_kernel(const struct ss_core_process *process, const char *path,
			   const char *problem)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	_cleanup_close_ int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *out = fd < 0 ? NULL : open_memstream(&text, &size);

	if (!out)
		return;
	write_line(out, process, path, problem);
	if (fclose(out) == 0)
		(void)!write(fd, text, size); /* nobody is left to tell */
}

/* Sends an entry about a crash to the journal of systemd (systemd-journald(8)), with the fields of its
   own handler (systemd.journal-fields(7)), so that "coredumpctl list" and others find it; or a line to
   the log if there is no journal, or to that of the kernel if there is neither. path: of the report, or
   NULL; problem: why there is none, or what is missing in it, or NULL. Never blocks. */
static void send_entry(const struct ss_core_process *process, const char *path,
		       const char *problem)
{
	static const struct sockaddr_un journal = {
		.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"
	};
	static const struct sockaddr_un log = { .sun_family = AF_UNIX,
						.sun_path = "/dev/log" };

	if (!send_to(&journal, write_entry, process, path, problem) &&
	    !send_to(&log, write_line, process, path, problem))
		send_to_kernel(process, path, problem);
}

/* The report, in a child --------------------------------------------------------- */

bool ss_core_handler_plan_goroutines(void *data, const struct ss_capture *capture,
				     struct ss_gather_plan *ret)
{
	return ss_capture_plan_goroutines(capture, data, ret);
}

/* A ss_thread_filter. The first one of a dump has crashed. */
static bool is_first(void *data, pid_t tid, const char *name, char state)
{
	struct crash *crash = data;

	(void)name;
	(void)state;
	if (!crash->first)
		crash->first = tid;
	return crash->first == tid;
}

static struct ss_error *load(void *data, const struct ss_sandbox_attempt *attempt,
			     struct ss_capture **ret)
{
	struct crash *crash = data;
	const struct ss_options *options = crash->handler->settings;
	const struct ss_core_options core = {
		.size = sizeof(core),
		.max_stack = options->common.max_stack,
		.max_total = options->max_total,
		.no_waits = options->no_waits,
		.filter = crash->only_crashed ? is_first : NULL,
		.filter_data = crash,
		.planner = options->goroutines && !crash->only_crashed ?
				   ss_core_handler_plan_goroutines :
				   NULL,
		.planner_data = attempt->session,
		/* The process is still there. */
		.read = crash->dump ? ss_sandbox_read : NULL,
		.read_data = ss_drop_const(attempt),
	};
	int fd = fcntl(crash->core, F_DUPFD_CLOEXEC, FIRST_FD);
	int errnum = errno;

	return fd < 0 ? ss_error_new_errno(errnum, "reading the dump") :
			ss_capture_read_core(fd, attempt->session, &core, ret);
}

/* Of a container: the user to which its user namespace maps the owner. Its root without a
   namespace of users must not read files of this machine's root. */
static void set_owner(const struct crash *crash, struct ss_interpret_options *options)
{
	options->owner_known = true;
	options->owner_reads_sysroot = crash->sysroot[0];
	options->uid = crash->process.about.uid;
	options->gid = crash->process.about.gid;
	if (crash->identity != SS_DUMP_SAME ||
	    (options->uid == 0 && crash->process.about.root >= 0))
		options->uid = options->gid = NOBODY;
}

static size_t read_memory(void *data, size_t index, uint64_t address, void *bytes,
			  size_t size)
{
	const struct crash *crash = data;

	(void)index; /* there is one */
	return ss_dump_read(crash->dump, address, bytes, size);
}

/* Threads of a process whose dump is being written do not run. */
static bool check_thread(void *data, size_t index, pid_t tid)
{
	(void)data;
	(void)index;
	(void)tid;
	return true;
}

/* output: NULL to read only what the frames of runtimes need, into the dump. */
static struct ss_error *interpret(struct crash *crash, struct ss_output *output)
{
	static const struct ss_target_argument any;
	const struct ss_options *settings = crash->handler->settings;
	const struct ss_selection_run selection = { .selection = &settings->selection,
						    .argument = &any };
	__attribute__((cleanup(ss_reading_deinit))) struct ss_reading reading = {
		.options = settings,
		.run = &selection,
		.output = output,
		.max_output = output ? ss_core_reports_size_max(crash->handler->quota) :
				       0,
	};
	struct ss_source source = { .data = crash, .count = 1, .load = load };
	_cleanup_(ss_interpretation_cleanup) struct ss_interpretation *result = NULL;
	struct ss_interpret_options options;
	bool missing = false;

	ss_reading_configure(&reading, &options);
	set_owner(crash, &options);
	options.last_level = output ? SS_SANDBOX_RAW : SS_SANDBOX_NAMES;
	if (output)
		return ss_reading_show(&reading, &source, &options, &missing);
	options.only_stacks = true;
	options.write = NULL;
	source.read = read_memory;
	source.check = check_thread;
	return ss_reading_interpret(&reading, &source, &options, &result);
}

/* Reads the memory that describes goroutines, and the functions of interpreters and of JIT
   code. Without it the report has native frames. */
static void probe(struct crash *crash)
{
	struct ss_options *options = crash->handler->settings;
	unsigned interpret_ms = options->interpret_ms;

	options->interpret_ms = PROBE_MS;
	ss_error_free(interpret(crash, NULL));
	options->interpret_ms = interpret_ms;
}

/* Only root reads what a process with more rights than its user has left. */
static void allow_owner(const struct crash *crash, const struct ss_output *output)
{
	int fd = -1;
	_cleanup_error_ struct ss_error *error = ss_output_duplicate(output, &fd);

	if (!error && crash->identity == SS_DUMP_SAME && !crash->process.protected &&
	    crash->process.about.uid != 0)
		ss_core_reports_allow(fd, crash->process.about.uid);
	close_cleanup(&fd);
}

static struct ss_error *write_report(struct crash *crash)
{
	_cleanup_(ss_output_cleanup) struct ss_output *output = NULL;
	struct ss_error *error =
		ss_output_open_at(crash->reports.directory, crash->name, &output);

	if (!error)
		error = interpret(crash, output);
	if (!error)
		allow_owner(crash, output);
	return error;
}

/* If that fails, or the process is killed meanwhile, the first copy stays. */
static void add_runtimes(struct crash *crash)
{
	int core = -1;

	probe(crash);
	_cleanup_error_ struct ss_error *error = ss_dump_shrink(crash->dump, &core);
	if (error || ss_dump_identify(crash->pid, crash->pidfd) != SS_DUMP_SAME) {
		close_cleanup(&core);
		return;
	}
	close_cleanup(&crash->core);
	crash->core = core;
}

static struct ss_error *gone(const struct crash *crash)
{
	return ss_error_new(SS_ERROR_NO_PROCESS,
			    "process %d was killed before it was copied", crash->pid);
}

/* Copies what is needed of the process; then the kernel may let it go. */
static struct ss_error *copy_process(struct crash *crash)
{
	const struct ss_options *options = crash->handler->settings;
	const struct ss_dump_options dump = { .size = sizeof(dump),
					      .max_stack = options->common.max_stack,
					      .max_total = options->max_total };
	uint64_t begin_ns = ss_now_ns();
	const bool readable = !crash->whole_dump;

	struct ss_error *error =
		ss_dump_open(crash->head, readable ? crash->pid : 0, &dump, &crash->dump);
	if (!error)
		error = readable ? ss_dump_shrink(crash->dump, &crash->core) :
				   ss_dump_receive(crash->dump, crash->rest,
						   begin_ns + RECEIVE_MS * SS_NS_PER_MS,
						   &crash->core);
	if (!error && readable &&
	    ss_dump_identify(crash->pid, crash->pidfd) != SS_DUMP_SAME)
		error = gone(crash);
	/* The search and another copy must fit into HOLD_MS. */
	if (!error && readable && ss_now_ns() - begin_ns < SLOW_COPY_MS * SS_NS_PER_MS)
		add_runtimes(crash);
	ss_dump_close(crash->dump);
	crash->dump = NULL;
	return error;
}

static struct ss_core_limits limits(void)
{
	return ss_core_reports_limits((uint64_t)sysconf(_SC_PHYS_PAGES) *
				      (uint64_t)sysconf(_SC_PAGESIZE));
}

/* What this process and its child allocate, each; and the size of each file, in memory or not. */
static void limit_memory(void)
{
	const uint64_t size = limits().process_memory;

	ss_child_limit(RLIMIT_DATA, size, size);
	ss_child_limit(RLIMIT_FSIZE, size / 2, size / 2);
	(void)signal(SIGXFSZ, SIG_IGN); /* EFBIG */
}

/* *ret_problem: why there is only the thread that crashed. */
static struct ss_error *report_copy(struct crash *crash, struct ss_error **ret_problem)
{
	struct ss_error *error = ss_core_reports_name(
		&crash->process, crash->handler->settings->common.format->name,
		crash->name);

	if (error)
		return error;
	(void)setpriority(PRIO_PROCESS, 0, PRIORITY); /* the process is gone */
	/* Of what is between; max_output limits the report. */
	ss_child_limit(RLIMIT_FSIZE, FILE_MAX, FILE_MAX);
	error = write_report(crash);
	if (!error)
		return NULL;
	*ret_problem = error;
	crash->only_crashed = true;
	return write_report(crash);
}

/* In the child. The kernel keeps the process until the pipe with its dump, standard input, is
   closed everywhere. */
static int copy_and_report(void *data, int copied)
{
	struct crash *crash = data;
	struct ss_error *problem = NULL;
	char path[PATH_MAX];

	(void)alarm(REPORT_S);
	limit_memory();
	close_cleanup(&crash->feed); /* that is the parent's end */
	struct ss_error *error = copy_process(crash);
	close_cleanup(&crash->rest);
	(void)close(copied);
	if (!error)
		error = report_copy(crash, &problem);
	ss_failure_print(error);
	(void)snprintf(path, sizeof(path), "%s/%s", crash->handler->directory,
		       crash->name); /* as long as paths can be */
	problem = error ? error : problem;
	send_entry(&crash->process, error ? NULL : path,
		   problem ? ss_error_message(problem) : NULL);
	ss_core_reports_expire(&crash->reports, crash->handler->quota);
	return error ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The child reads the pipe of the kernel, unless another handler gets the dump, too. */
static struct ss_error *open_rest(struct crash *crash)
{
	int ends[2];
	bool feeds = crash->handler->forward;

	if (!feeds)
		crash->rest = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, FIRST_FD);
	if (feeds ? pipe2(ends, O_CLOEXEC) != 0 : crash->rest < 0)
		return ss_error_new_errno(errno, "reading the dump");
	if (feeds) {
		crash->rest = ends[0];
		crash->feed = ends[1];
		(void)fcntl(crash->feed, F_SETFL, O_NONBLOCK); /* cannot fail */
	}
	return NULL;
}

/* Waits until the process is copied, or the time is over. Then the child goes on alone. */
static struct ss_error *report(struct crash *crash)
{
	const struct ss_child_options options = { .channel = SS_CHILD_WRITES,
						  .streams = { SS_CHILD_NOWHERE } };
	struct ss_child child = SS_NO_CHILD;
	struct ss_error *error = crash->whole_dump ? open_rest(crash) : NULL;

	if (!error)
		error = ss_child_start(&options, copy_and_report, crash, &child);
	close_cleanup(&crash->rest);
	if (error)
		return error;
	_cleanup_close_ int copied = child.channel;
	struct pollfd poll_fd = { .fd = copied, .events = POLLIN };
	const int hold_ms = HOLD_MS + (crash->whole_dump ? RECEIVE_MS : 0);
	if (crash->feed >= 0 || poll(&poll_fd, 1, hold_ms) != 0)
		return NULL;
	/* Once the process has gone, its number may be that of another one. */
	ss_child_signal(&child, SIGKILL);
	return ss_error_new(SS_ERROR_SYSTEM, "the process was not copied in %d s",
			    hold_ms / 1000);
}

/* Another handler ----------------------------------------------------------------- */

/* fd does not block. False: nobody reads it. */
static bool send_all(int fd, const char *bytes, size_t size)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

	while (size > 0) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno == EAGAIN && poll(&poll_fd, 1, STALL_MS) > 0)
			continue;
		if (n < 0 && errno != EINTR)
			return false;
		bytes += SS_MAX(n, 0);
		size -= (size_t)SS_MAX(n, 0);
	}
	return true;
}

/* Writes what was read already, and the rest; and the rest to the child that needs it. Ends early if
   nobody reads it all. False: the handler does not even close the pipe. */
static bool copy_dump(struct crash *crash, int to)
{
	char bytes[SMALL * 16];
	uint64_t at = 0;
	ssize_t n;
	bool reads = true;
	bool stalls = false;

	while (reads && (n = ss_io_pread(crash->head, bytes, sizeof(bytes), at)) > 0) {
		reads = send_all(to, bytes, (size_t)n);
		stalls = !reads && errno == EAGAIN;
		at += (uint64_t)n;
	}
	while ((reads || crash->feed >= 0) &&
	       ((n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0 ||
		(n < 0 && errno == EINTR))) {
		const size_t size = (size_t)SS_MAX(n, 0);
		if (crash->feed >= 0 && !send_all(crash->feed, bytes, size))
			close_cleanup(&crash->feed);
		if (!reads || send_all(to, bytes, size))
			continue;
		reads = false;
		stalls = errno == EAGAIN;
	}
	return !stalls;
}

/* $0 and the arguments after it: those that the kernel has passed. A command that is one word,
   as in core_pattern, gets them itself. */
static int run_other(void *data, int channel)
{
	const struct ss_core_handler *handler = data;
	char shell[] = "sh";
	char option[] = "-c";
	char *argv[3 + 1 + SS_CORE_HANDLER_ARGUMENTS + 1] = { shell, option };
	size_t count = 2;

	(void)channel; /* it is standard input, too */
	char *command = NULL;
	bool single = !strpbrk(handler->forward, " \t\n");
	if (asprintf(&command, "%s%s", handler->forward, single ? " \"$@\"" : "") < 0)
		return EXIT_FAILURE;
	argv[count++] = command;
	argv[count++] = shell;
	for (unsigned i = 0; i < handler->argument_count; i++)
		argv[count++] = strdup(handler->arguments[i]);
	argv[count] = NULL;
	(void)execv("/bin/sh", argv);
	return EXIT_FAILURE;
}

static struct ss_error *forward(struct crash *crash)
{
	const struct ss_child_options options = { .channel = SS_CHILD_READS,
						  .streams = { SS_CHILD_CHANNEL } };
	struct ss_child child = SS_NO_CHILD;
	struct ss_error *error = ss_child_start(&options, run_other,
						ss_drop_const(crash->handler), &child);

	if (error)
		return error;
	(void)signal(SIGPIPE, SIG_IGN);			 /* cannot fail: a valid signal */
	(void)fcntl(child.channel, F_SETFL, O_NONBLOCK); /* cannot fail */
	bool read_all = copy_dump(crash, child.channel);
	close_cleanup(&crash->feed);
	(void)close(child.channel);
	if (read_all && ss_child_wait(&child, STALL_MS))
		return NULL;
	return ss_error_new(SS_ERROR_SYSTEM,
			    "'%s' made no progress for %d s; the process was released",
			    crash->handler->forward, STALL_MS / 1000);
}

/* Takes a slot, and reads headers and notes. */
static struct ss_error *begin(struct crash *crash)
{
	const struct ss_core_handler *handler = crash->handler;
	struct ss_error *error =
		ss_core_reports_open(handler->directory, &crash->reports);

	if (!error)
		error = ss_core_reports_begin(&crash->reports,
					      crash->process.about.account, handler->rate,
					      limits().handlers);
	if (error && !handler->forward)
		return error;
	struct ss_error *failure = ss_dump_read_head(STDIN_FILENO, &crash->head);
	if (!failure && crash->identity == SS_DUMP_GONE)
		failure = gone(crash);
	if (!error)
		return failure;
	ss_error_free(failure); /* there is no report in any case */
	return error;
}

int ss_core_handler_run(const struct ss_core_handler *handler)
{
	struct crash crash = { .handler = handler,
			       .reports = SS_CORE_REPORTS_NONE,
			       .head = -1,
			       .rest = -1,
			       .feed = -1,
			       .core = -1 };

	if (handler->argument_count < SS_CORE_HANDLER_ARGUMENTS - 1 ||
	    !parse_arguments(&crash)) {
		ss_failure_warn(
			"--handler is for the kernel, with the arguments %%P %%I %%s "
			"%%t %%d %%F; see stacksnap core --install");
		return SS_STATUS_NOTHING;
	}
	if (!handler->settings->interpret_ms)
		handler->settings->interpret_ms = INTERPRET_MS;
	if (!handler->settings->max_total)
		handler->settings->max_total = COPY_MAX;
	(void)umask(0077);
	(void)alarm(HEAD_S);
	open_pidfd(&crash);
	describe(&crash);
	crash.whole_dump = crash.identity != SS_DUMP_SAME ||
			   !ss_dump_is_readable(crash.pid);
	use_root(&crash);
	_cleanup_error_ struct ss_error *error = begin(&crash);
	(void)alarm(0);
	if (!error)
		error = report(&crash);
	if (error) {
		ss_failure_print(error);
		send_entry(&crash.process, NULL, ss_error_message(error));
	}
	ss_core_reports_close(&crash.reports);
	_cleanup_error_ struct ss_error *failure =
		handler->forward && crash.head >= 0 ? forward(&crash) : NULL;
	if (failure)
		ss_failure_print(failure);
	return error || failure ? SS_STATUS_NOTHING : SS_STATUS_WHOLE;
}
