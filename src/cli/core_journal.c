#include "cli/core_journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
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

static void write_entry(FILE *out, const struct ss_core_process *process,
			const char *path, const char *problem)
{
	const char *name = sigabbrev_np(process->signal);

	(void)fprintf(out, "MESSAGE=Process %d (", process->pid);
	write_value(out, process->about.name);
	(void)fprintf(out, ") of user %u was killed by SIG%s%s", process->about.uid,
		      name ? name : "?", path ? ": " : "; there is no report: ");
	write_value(out, path ? path : problem ? problem : "unknown");
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

void ss_core_journal_send(const struct ss_core_process *process, const char *path,
			  const char *problem)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX,
					     .sun_path = "/run/systemd/journal/socket" };
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	_cleanup_close_ int fd =
		socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	write_entry(out, process, path, problem);
	if (fclose(out) != 0 || fd < 0)
		return;
	(void)sendto(fd, text, size, MSG_NOSIGNAL, (const struct sockaddr *)&address,
		     sizeof(address)); /* there may be none, or it is full */
}
