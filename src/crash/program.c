#include "crash/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/auxvec.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc_process.h"

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
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	for (size_t i = 0; i < SS_ARRAY_SIZE(debuggers); i++) {
		if (strcmp(name, debuggers[i]) == 0)
			return true;
	}
	return false;
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

static bool find_path(pid_t pid, uint64_t *ret)
{
	_cleanup_buffer_ struct ss_buffer auxv = {};
	char path[64];
	char name[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/%d/auxv", pid); /* always fits */
	return ss_io_read_record(AT_FDCWD, path, RECORD_MAX, &auxv) == 0 &&
	       ss_auxv_find(auxv.bytes, auxv.size, AT_EXECFN, ret) &&
	       read_path(pid, *ret, name) && leads_to_program(pid, name);
}

static bool write_code(pid_t pid, uint64_t address)
{
	const struct ss_arch_attach *attach = ss_arch_host.attach;

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
	const struct ss_arch_attach *attach = ss_arch_host.attach;
	ss_kernel_regs kernel;
	struct ss_regs regs = {};
	struct iovec iov = { &kernel, sizeof(kernel) };
	uint64_t path;
	uint64_t argc;

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov) != 0 ||
	    iov.iov_len != sizeof(kernel))
		return false;
	attach->regs(&kernel, &regs);
	uint64_t sp = ss_regs_sp(&ss_arch_host, &regs);
	if (!peek(pid, sp, &argc) || !find_path(pid, &path))
		return false;
	uint64_t argv = sp + WORD;
	attach->set_execute(&kernel, path, argv, argv + (argc + 1) * WORD);
	return write_code(pid, ss_regs_pc(&ss_arch_host, &regs)) &&
	       ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &iov) == 0;
}

bool ss_program_release(pid_t pid)
{
	if (!is_debugger(pid) && !(lacks_rights(pid) && execute_again(pid)))
		return false;
	return ptrace(PTRACE_DETACH, pid, 0, 0) == 0;
}
