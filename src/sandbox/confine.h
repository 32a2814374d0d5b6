/*
 * Takes from the calling process, for good, what it does not need to interpret untrusted
 * bytes: capabilities, open files, access to other processes and to the network, and
 * unlimited memory and time. It can still open files for reading (see ss_confine()), compute,
 * and write to the files and sockets that it holds.
 */
#ifndef SS_SANDBOX_CONFINE_H
#define SS_SANDBOX_CONFINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sandbox/sandbox.h"

struct ss_confinement {
	/* If that is permitted: to a user id that no other process has, and gid. Where it does
	   not exist, in a user namespace, to uid. */
	bool change_ids;
	uid_t uid;
	gid_t gid;
	uint64_t memory;       /* bytes that may be allocated; 0: no limit */
	uint64_t output;       /* bytes that may be written to a file */
	uint64_t cpu_s;	       /* processor time, 0: no limit */
	bool keep_directories; /* keeps O_PATH directories */
	int more_output;       /* a file for output that stays open, or 0 */
	unsigned receives;     /* files that it may be sent over a socket, at most */
};

/* What the kernel refused. */
enum ss_confine_refused {
	SS_REFUSED_FILTER = 1 << 0, /* seccomp */
	SS_REFUSED_CAPABILITIES = 1 << 1,
	SS_REFUSED_ALL = 1 << 2, /* the process must end */
};

/* Closes every descriptor above standard error, except regular files that were opened
   read-only and close-on-exec, as the library opens the files of modules. What this
   program inherited is not close-on-exec. keep_directories: keeps directories that were
   opened with O_PATH and close-on-exec. */
void ss_confine_files(const struct ss_confinement *confinement);

/* Confines the calling process, which must have one thread and end with its parent
   (PR_SET_PDEATHSIG). Goes on if the kernel refuses
   a part; *ret is what was refused. Without Landlock it can open no files, unless it has a
   user id of its own. False: the parent has ended; or SS_REFUSED_ALL: there are neither
   Landlock nor seccomp nor such an id, and the process that is looked at belongs to another
   user. */
bool ss_confine(const struct ss_confinement *confinement, unsigned *ret);

/* Why a confined process has failed, by its exit status and by what the kernel refused; its step is
   the first one, and no module is the cause. */
struct ss_sandbox_failure ss_confine_failure(int status, unsigned refused);

/* Whether neither the work nor what it was reading is the cause: RLIMIT_CPU sends SIGXCPU first. It was
   root, a user that controls the process, or the kernel, because memory ran out. */
bool ss_confine_was_killed(const struct ss_sandbox_failure *failure);

#endif
