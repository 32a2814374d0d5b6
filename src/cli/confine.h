/*
 * What a process gives up, for good, before it reads what nobody vouches for: rights,
 * open files, the way to other processes and to the network, memory and time without
 * limit. It can still read files, compute, and write to what it holds.
 */
#ifndef SS_CLI_CONFINE_H
#define SS_CLI_CONFINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ss_confinement {
	bool change_ids; /* to uid and gid, where that is allowed */
	uid_t uid;
	gid_t gid;
	uint64_t memory;    /* bytes that may be allocated; 0: no limit */
	uint64_t output;    /* bytes that may be written to a file */
	uint64_t cpu_s;	    /* processor time, then it is killed */
	bool resolves_root; /* it opens files below a root with openat2() */
	pid_t parent;	    /* to end with; set by the sandbox */
};

/* What the kernel refused. */
enum ss_confine_refused {
	SS_REFUSED_FILTER = 1 << 0, /* seccomp */
	SS_REFUSED_CAPABILITIES = 1 << 1,
};

/* Closes every file above standard error but the regular files that can only be read,
   which are those of the modules, and, if told, directories that were opened as places
   only (O_PATH). */
void ss_confine_files(bool keep_places);

/* Confines the calling process, which has one thread. *ret is what was refused; the
   rest is done then all the same. False: its parent has ended. */
bool ss_confine(const struct ss_confinement *confinement, unsigned *ret);

#endif
