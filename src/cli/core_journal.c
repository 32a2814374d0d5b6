#include "cli/core_journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "base/cleanup.h"

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
		(void)fputs("; it has only the thread that crashed: ", out);
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

void ss_core_journal_send(const struct ss_core_process *process, const char *path,
			  const char *problem)
{
	static const struct sockaddr_un journal = {
		.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"
	};
	static const struct sockaddr_un log = { .sun_family = AF_UNIX,
						.sun_path = "/dev/log" };

	if (!send_to(&journal, write_entry, process, path, problem))
		(void)send_to(&log, write_line, process, path,
			      problem); /* there may be none, or it is full */
}
