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

#include "base/clock.h"
#include "target/target.h"

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
static void run_child(char *const argv[], int fd)
{
	sigset_t none;

	/* The program would inherit an ignored SIGPIPE and the signal mask. */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
		(void)execvp(argv[0], argv);
	int errnum = errno;
	(void)!write(fd, &errnum, sizeof(errnum)); /* or just exit */
	for (;;)
		(void)raise(SIGKILL);
}

static struct ss_error *explain(int errnum, const char *name)
{
	return ss_error_new(SS_ERROR_INVALID, "cannot start '%s': %s", name,
			    strerrordesc_np(errnum) ? strerrordesc_np(errnum) : "?");
}

/* Waits for the stop after exec. */
static struct ss_error *wait_for_exec(pid_t pid, int fd, const char *name)
{
	int errnum = 0;
	int status = 0;
	pid_t got;

	/* EOF after execve(), or its errno. */
	ssize_t n = read(fd, &errnum, sizeof(errnum));
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	if (n == sizeof(errnum))
		return explain(errnum, name);
	if (got == pid && WIFSTOPPED(status))
		return NULL;
	return ss_error_new(SS_ERROR_NO_PROCESS, "'%s' ended before its program started",
			    name);
}

/* Otherwise it would wait forever. */
static void end_child(pid_t pid)
{
	(void)kill(pid, SIGKILL); /* our child, not reaped yet */
	(void)waitpid(pid, NULL, 0);
}

struct ss_error *ss_target_spawn(char *const argv[], struct ss_target **ret)
{
	struct ss_error *error;
	int fds[2];

	if (!argv[0])
		return ss_error_new(SS_ERROR_INVALID, "no program given");
	error = check_rights(argv[0]);
	if (error)
		return error;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return ss_error_new_errno(errno, "starting '%s'", argv[0]);
	_cleanup_close_ int reading = fds[0];
	_cleanup_close_ int writing = fds[1];
	pid_t pid = fork();
	int errnum = errno;
	if (pid < 0)
		return ss_error_new_errno(errnum, "starting '%s'", argv[0]);
	if (pid == 0)
		run_child(argv, writing);
	close_cleanup(&writing);
	writing = -1;
	error = wait_for_exec(pid, reading, argv[0]);
	if (error)
		return error;
	error = ss_target_open(pid, ret);
	if (error)
		end_child(pid);
	else
		(*ret)->spawned = (*ret)->stopped_at_exec = true;
	return error;
}

void ss_target_reap(struct ss_target *target)
{
	if (target->stopped_at_exec)
		end_child(target->pid);
	else
		(void)waitpid(target->pid, NULL, WNOHANG); /* or it continues */
}

bool ss_target_wait(struct ss_target *target, unsigned timeout_ms, int *ret)
{
	int status = 0;

	for (unsigned ms = 0; target->spawned && !target->stopped_at_exec; ms++) {
		pid_t pid = waitpid(target->pid, &status, WNOHANG);
		if (pid == target->pid && (WIFEXITED(status) || WIFSIGNALED(status))) {
			target->spawned = false; /* reaped */
			*ret = status;
			return true;
		}
		if ((pid < 0 && errno != EINTR) || ms >= timeout_ms)
			return false;
		ss_sleep_ns(SS_NS_PER_MS);
	}
	return false;
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
