/*
 * Starts a program so that it can be captured from its first instruction on: the kernel
 * stops it once it is loaded (PTRACE_TRACEME, ptrace(2)).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/child.h"
#include "process/target.h"
#include "process/spawn.h"

enum { STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

/* The file that execvp() executes. False: there is none. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *directory = getenv("PATH");
	int n;

	if (strchr(name, '/') || !directory) {
		n = snprintf(path, PATH_MAX, "%s", name);
		return n < PATH_MAX;
	}
	for (;; directory++) {
		size_t length = strcspn(directory, ":");
		n = snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, directory,
			     length ? "/" : "", name);
		if (n < PATH_MAX && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0)
			return true;
		directory += length;
		if (!*directory)
			return false;
	}
}

/* Whether a program gets rights from its file: another user or group, or capabilities. */
static bool gains_rights(const char *path)
{
	struct statvfs mount;
	struct stat st;

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || statvfs(path, &mount) != 0 ||
	    (mount.f_flag & ST_NOSUID))
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != geteuid())
		return true;
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid())
		return true;
	return getxattr(path, "security.capability", NULL, 0) > 0;
}

/* Traced by a user without privileges, such a program would run without its rights
   (execve(2)), and fail in ways that are hard to understand. */
static struct ss_error *check_rights(const char *name)
{
	char path[PATH_MAX];

	if (geteuid() == 0 || !find_program(name, path) || !gains_rights(path))
		return NULL;
	return ss_error_with_remedy(
		ss_error_new(
			SS_ERROR_DENIED,
			"'%s' is set-user-ID, set-group-ID or has capabilities, which "
			"it would lose if an unprivileged user traced it",
			name),
		"start it, then: sudo stacksnap record PID");
}

/* Runs in the child, so it calls only async-signal-safe functions. Reports errors
   through fd. */
static int execute(void *data, int fd)
{
	char *const *argv = data;

	if (ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
		(void)execvp(argv[0], argv);
	int errnum = errno;
	(void)!write(fd, &errnum, sizeof(errnum)); /* or just exit */
	return EXIT_FAILURE;
}

static struct ss_error *explain(int errnum, const char *name)
{
	return ss_error_new(SS_ERROR_INVALID, "cannot start '%s': %s", name,
			    strerrordesc_np(errnum) ? strerrordesc_np(errnum) : "?");
}

/* Waits for the stop after exec. */
static struct ss_error *wait_for_exec(const struct ss_child *child, const char *name,
				      int *exit_status)
{
	int errnum = 0;
	int status = 0;
	pid_t got;

	/* EOF after execve(), or its errno. */
	ssize_t n = read(child->channel, &errnum, sizeof(errnum));
	do
		got = waitpid(child->pid, &status, 0);
	while (got < 0 && errno == EINTR);
	if (n == sizeof(errnum)) {
		*exit_status = ss_spawn_status(errnum);
		return explain(errnum, name);
	}
	if (got == child->pid && WIFSTOPPED(status))
		return NULL;
	return ss_error_new(SS_ERROR_NO_PROCESS, "'%s' ended before its program started",
			    name);
}

int ss_spawn_status(int errnum)
{
	return errnum == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

struct ss_error *ss_target_spawn(char *const argv[], struct ss_target **ret,
				 int *exit_status)
{
	struct ss_child_options options = { .channel = SS_CHILD_WRITES };
	struct ss_child child = SS_NO_CHILD;
	struct ss_error *error;
	sigset_t none;

	if (!argv[0])
		return ss_error_new(SS_ERROR_INVALID, "no program given");
	error = check_rights(argv[0]);
	if (error)
		return error;
	/* The program would inherit the signal mask. */
	(void)sigemptyset(&none); /* cannot fail */
	options.mask = &none;
	error = ss_child_start(&options, execute, ss_drop_const(argv), &child);
	if (error)
		return error;
	error = wait_for_exec(&child, argv[0], exit_status);
	close_cleanup(&child.channel);
	if (error)
		return error;
	error = ss_target_open(child.pid, ret);
	child.channel = -1;
	if (error)
		(void)ss_child_end(&child); /* it would wait forever */
	else
		(*ret)->spawned = (*ret)->stopped_at_exec = true;
	return error;
}

bool ss_target_wait(struct ss_target *target, unsigned timeout_ms, int *ret)
{
	struct ss_child child = { .pid = target->pid, .channel = -1 };

	if (!target->spawned || target->stopped_at_exec ||
	    !ss_child_wait(&child, (int)SS_MIN(timeout_ms, (unsigned)INT_MAX)))
		return false;
	target->spawned = false; /* reaped */
	*ret = child.status;
	return true;
}

struct ss_error *ss_target_resume(struct ss_target *target)
{
	if (ptrace(PTRACE_DETACH, target->pid, 0, 0) == 0) {
		target->stopped_at_exec = false;
		return NULL;
	}
	return ss_error_new_errno(errno, "resuming process %d", target->pid);
}

pid_t ss_target_pid(const struct ss_target *target)
{
	return target->pid;
}
