/*
 * A process whose dump the kernel is writing.
 */
#ifndef SS_CRASH_DUMP_H
#define SS_CRASH_DUMP_H

#include "stacksnap.h"

/*
 * Reads the headers and notes, and no more, of the dump that the kernel writes to a pipe
 * (core(5)), into a file in memory. Until the pipe is closed the process stays as it was.
 * Errors: INVALID, UNSUPPORTED, SYSTEM.
 */
struct ss_error *ss_dump_read_head(int pipe, int *ret);

enum { SS_DUMP_NAME_MAX = 64, SS_DUMP_PATH_MAX = 4096 };

/* Returns a pidfd (pidfd_open(2)) of the process that is dumped: passed, if it is one, as the kernel
   passes it (%F in core_pattern, Linux 6.16); or a new one, which the caller closes; or -1. */
int ss_dump_find_process(pid_t pid, int passed);

/* Whether its memory can be read: not where Yama forbids it to everybody (kernel.yama.ptrace_scope
   3), or another security module to this program. */
bool ss_dump_is_readable(pid_t pid);

/* Whether the process with that number is the one that is dumped. SIGKILL ends a dump, and then
   the number may be given to another process. */
enum ss_dump_identity {
	SS_DUMP_UNKNOWN, /* without a pidfd, and it did not start before the caller */
	SS_DUMP_GONE,
	SS_DUMP_SAME, /* and what was opened before is of this process */
};

enum ss_dump_identity ss_dump_identify(pid_t pid, int pidfd);

/* Smaller uids are of the system. */
enum { SS_DUMP_SYSTEM_UIDS = 1000 };

/* What is known about a process besides its dump. */
struct ss_dump_process {
	char name[SS_DUMP_NAME_MAX];	   /* comm; or empty, as the next one */
	char executable[SS_DUMP_PATH_MAX]; /* path as the caller sees it */
	/* Its effective ones; those of root if its memory is protected from its user. */
	uid_t uid;
	gid_t gid;
	int root; /* its root directory (O_PATH); the caller closes it. -1: that of the caller */
	/* Who answers for it: its real user; the creator of its user namespace; or nobody, for a
	   user of the system with another root directory. */
	uid_t account;
};

/* Reads it while the process is there. What cannot be read is empty, or of root. */
void ss_dump_describe(pid_t pid, struct ss_dump_process *ret);

struct ss_dump_options {
	size_t size;	  /* sizeof(struct ss_dump_options) */
	size_t max_stack; /* bytes to copy from one stack; 0: 16 MiB */
	size_t max_total; /* bytes to copy; 0: 64 MiB */
};

/* A dump and its process, to make a small core file of them. */
struct ss_dump;

/* head: of ss_dump_read_head(); it must stay open. pid 0: nothing is known but the head. options:
   NULL for defaults. Errors: INVALID, UNSUPPORTED, DENIED, SYSTEM, NO_MEMORY. */
struct ss_error *ss_dump_open(int head, pid_t pid, const struct ss_dump_options *options,
			      struct ss_dump **ret);
void ss_dump_close(struct ss_dump *dump);

/*
 * Reads memory of the process, for example for frames of runtimes (struct ss_unwind_options).
 * From then on, core files have what was read. Never waits for a file system or a
 * userfaultfd(2). Returns the length of the prefix that was read: 0 beyond 128 MiB in all.
 */
size_t ss_dump_read(struct ss_dump *dump, uint64_t address, void *bytes, size_t size);

/*
 * Makes a small core file, in memory: the headers and notes, the stacks, locks and other
 * arguments of system calls, the headers of modules, and what ss_dump_read() has read. The caller
 * closes *ret. Errors: INVALID, SYSTEM, NO_MEMORY.
 */
struct ss_error *ss_dump_shrink(struct ss_dump *dump, int *ret);

/*
 * The same without the process, from the rest of its dump: that is read until its end, or until
 * deadline_ns (CLOCK_MONOTONIC). The file also has what the process has written elsewhere,
 * up to 128 MiB or half of the limit of files. Once, for a dump that was opened with pid 0. Errors:
 * as ss_dump_shrink().
 */
struct ss_error *ss_dump_receive(struct ss_dump *dump, int pipe, uint64_t deadline_ns,
				 int *ret);

/*
 * Captures as minidumps.
 */

struct ss_capture;

enum {
	/* With the environment and the command line, which may contain secrets. */
	SS_MINIDUMP_ENVIRONMENT = 1,
};

/*
 * Writes a capture as a minidump to fd: threads with their registers and stacks, modules with
 * build-ids, and the signal that ended the process. The environment and the command line,
 * which are at the beginning of the main thread's stack, are left out unless flags has
 * SS_MINIDUMP_ENVIRONMENT. Registers of threads that were not stopped are mostly unknown, and
 * written as 0. Errors: INVALID (larger than 4 GiB), UNSUPPORTED (its processor), NO_MEMORY,
 * SYSTEM.
 */
struct ss_error *ss_capture_write_minidump(const struct ss_capture *capture,
					   unsigned flags, int fd);

#endif
