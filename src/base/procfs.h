/*
 * Parsers for files of procfs and of cgroups: text to structs. They open no file.
 */
#ifndef SS_BASE_PROCFS_H
#define SS_BASE_PROCFS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Parsers for /proc/PID/task/TID/{stat,status,syscall,schedstat}. Formats:
 * proc_pid_stat(5), proc_pid_status(5), proc_pid_syscall(5),
 * Documentation/scheduler/sched-stats.rst.
 */

struct ss_stat {
	pid_t pid;
	pid_t parent;  /* 0: none in our pid namespace */
	char comm[64]; /* raw bytes, NUL-terminated */
	char state;
	bool kernel_thread;    /* PF_KTHREAD */
	bool exiting;	       /* PF_EXITING */
	bool worker;	       /* a kernel worker within a process */
	bool forked;	       /* has not executed a program since (PF_FORKNOEXEC) */
	uint64_t start_time;   /* clock ticks after boot */
	uint64_t user_ticks;   /* clock ticks in user space */
	uint64_t system_ticks; /* and in the kernel */
	int processor;	       /* CPU it last ran on */
	uint64_t
		program; /* hash of the addresses of code and stack, which execve() changes; 0 without permission to trace */
};

/* comm may contain anything, even ')': fields follow the last ')'. */
bool ss_stat_parse(const char *text, size_t size, struct ss_stat *ret);

struct ss_status {
	pid_t tgid;
	pid_t tracer; /* 0: none */
	pid_t parent; /* 0: none, or in another pid namespace */
	uid_t uid[3]; /* real, effective, saved */
	gid_t gid[3];
	uint64_t cap_effective;
	uint64_t cap_permitted;
	uint64_t handled_signals; /* bit n-1 is signal n, also below */
	uint64_t ignored_signals;
	uint64_t pending_signals; /* of the process */
	bool no_new_privileges;
	bool seccomp_filter;	     /* a filter or strict mode */
	bool dumping_core;	     /* the process (CoreDumping) */
	bool not_swapped;	     /* no private page of the process (VmSwap) */
	uint64_t voluntary_switches; /* context switches: voluntary, */
	uint64_t forced_switches;    /* and involuntary */
	pid_t inner_id;	   /* in its innermost pid namespace (NSpid); 0: unknown */
	unsigned id_count; /* pid namespaces from that of /proc inwards */
};

/* Missing lines leave zeros. Returns false only without a Tgid line. */
bool ss_status_parse(const char *text, size_t size, struct ss_status *ret);

/* ss_status.dumping_core alone. */
bool ss_status_dumps_core(const char *text, size_t size);

/* Whether the process does without transparent huge pages (prctl(2); Linux 5.0). */
bool ss_status_refuses_huge_pages(const char *text, size_t size);

enum ss_syscall_kind {
	SS_SYSCALL_RUNNING, /* running or runnable: nothing is known */
	SS_SYSCALL_NONE,    /* blocked outside a system call (a page fault): sp, pc */
	SS_SYSCALL_BLOCKED, /* number, args, sp, pc */
};

struct ss_syscall_text {
	enum ss_syscall_kind kind;
	long number;
	uint64_t args[6];
	uint64_t sp;
	uint64_t pc;
};

/*
 * Cleans the text of /proc/PID/task/TID/stack in place: removes the addresses ("[<0>] ")
 * and the last newline, and terminates it with NUL (text has size + 1 bytes). Returns the
 * length.
 */
size_t ss_kernel_stack_clean(char *text, size_t size);

struct ss_schedstat {
	uint64_t run_ns;
	uint64_t wait_ns;   /* runnable, waiting for a CPU */
	uint64_t run_count; /* number of times it was scheduled */
};

bool ss_schedstat_parse(const char *text, size_t size, struct ss_schedstat *ret);

bool ss_syscall_parse(const char *text, size_t size, struct ss_syscall_text *ret);

/*
 * /proc/PID/auxv (proc_pid_auxv(5)): what the kernel told the program when it started it.
 */

/*
 * How many bytes the words of an auxiliary vector have, in this byte order: 4 or 8, which
 * is also the class of the program; 0: unknown. It is found by the entry of the page size,
 * which every kernel writes.
 */
unsigned ss_auxv_word(const void *bytes, size_t size);

/* The value of an entry (AT_...) of a vector with such words. False: there is none. */
bool ss_auxv_find(const void *bytes, size_t size, size_t word, uint64_t type,
		  uint64_t *ret);

/*
 * Parser for /proc/PID/maps, one line at a time. Format: proc_pid_maps(5),
 * fs/proc/task_mmu.c show_map_vma().
 */

struct ss_maps_entry {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t device;  /* major << 32 | minor */
	uint64_t inode;	  /* 0: no file */
	unsigned prot;	  /* PROT_READ | PROT_WRITE | PROT_EXEC */
	bool shared;	  /* MAP_SHARED: writes are visible to other processes */
	bool deleted;	  /* " (deleted)" was removed from the name */
	const char *name; /* points into the text, not terminated, newlines as \012 */
	size_t name_size; /* 0: anonymous */
};

/* Parses the line at *cursor and advances *cursor. Skips invalid lines. Returns false at
   the end. */
bool ss_maps_next(const char **cursor, const char *end, struct ss_maps_entry *ret);

/* Copies a name to ret (capacity bytes, NUL-terminated, truncated if necessary) and
   converts \012 to newlines. Returns its length. */
size_t ss_maps_unescape(const char *name, size_t size, char *ret, size_t capacity);

/*
 * Parsers for cgroups, mostly of version 2: /proc/PID/cgroup (cgroups(7)) and the files of a cgroup
 * (cgroup-v2.rst).
 */

/* The path in the line "0::" of text. Returns false if there is no such line, or if the
   cgroup is outside of our cgroup namespace (its path contains ".."). */
bool ss_cgroup_find_path(const char *text, size_t size, const char **ret,
			 size_t *ret_size);

/* Whether a line of text, for any hierarchy, has the cgroup path or one below it. "/" is above
   all. */
bool ss_cgroup_is_below(const char *text, size_t size, const char *path);

/* Whether the cgroup is frozen, according to cgroup.events. */
bool ss_cgroup_is_frozen(const char *text, size_t size);

/* Whether cgroup.threads lists tid. */
bool ss_cgroup_has_thread(const char *text, size_t size, pid_t tid);

/*
 * Parser for /proc/PID/fdinfo/FD. Format: proc_pid_fdinfo(5),
 * Documentation/filesystems/proc.rst, 3.8.
 */

struct ss_fdinfo {
	uint64_t position;
	unsigned flags; /* O_ of open(2) */
	bool has_count;
	uint64_t count; /* eventfd */
	bool has_mask;
	uint64_t mask; /* signalfd: bit n-1 is signal n */
	bool has_timer;
	int clock;	      /* timerfd: CLOCK_ */
	uint64_t left_ns;     /* until it expires; 0: disarmed */
	uint64_t interval_ns; /* 0: once */
	bool has_pid;
	pid_t pid; /* pidfd: the id in our pid namespace; -1: it has ended; 0: not visible */
	unsigned watches; /* inotify */
	bool has_connection;
	uint64_t
		connection; /* /dev/fuse: the number of its device, as the kernel has it */
};

/* Missing or invalid lines leave zeros. Returns false only without a flags line. */
bool ss_fdinfo_parse(const char *text, size_t size, struct ss_fdinfo *ret);

/* A descriptor in an epoll set. */
struct ss_fdinfo_watch {
	int fd;
	uint32_t events; /* EPOLL... */
};

/* Parses the next such line from *cursor on and advances *cursor; skips other lines.
   Returns false at the end. */
bool ss_fdinfo_next_watch(const char **cursor, const char *end,
			  struct ss_fdinfo_watch *ret);

/* Parser for /proc/PID/mountinfo, one line at a time. Format: proc_pid_mountinfo(5). */
struct ss_mount {
	uint64_t device; /* major << 32 | minor */
	bool is_fuse;
	char path[PATH_MAX]; /* below the root of the process; not escaped */
};

/* Parses the line at *cursor and advances *cursor. Skips invalid lines. Returns false at the end. */
bool ss_mounts_next(const char **cursor, const char *end, struct ss_mount *ret);

/*
 * Parsers for /proc/PID/net/{tcp,tcp6,udp,udp6,raw,raw6,unix}, one line at a time.
 * Formats: proc_pid_net(5).
 */

/* An address in network byte order. */
struct ss_net_address {
	uint8_t bytes[16];
	unsigned size; /* 4 or 16 */
	unsigned port; /* native byte order */
};

struct ss_net_inet {
	struct ss_net_address local;
	struct ss_net_address remote;
	unsigned state; /* TCP_... of netinet/tcp.h; UDP uses ESTABLISHED and CLOSE */
	uint64_t inode;
	uint32_t unread; /* bytes that were received; from sock_diag(7) only */
	bool full; /* LISTEN: so many wait to be accepted that the kernel takes no more; the same */
};

/* Parses the line at *cursor and advances *cursor. Skips invalid lines, such as the
   heading. Returns false at the end. */
bool ss_net_next_inet(const char **cursor, const char *end, struct ss_net_inet *ret);

struct ss_net_unix {
	bool listens;
	unsigned type;	/* SOCK_... */
	unsigned state; /* SS_... of linux/net.h: 1 unconnected, 3 connected */
	uint64_t inode;
	const char
		*path; /* points into the text, not terminated; begins with @ for a NUL */
	size_t path_size; /* 0: it has none */
};

bool ss_net_next_unix(const char **cursor, const char *end, struct ss_net_unix *ret);

/*
 * Parser for /proc/locks, one line at a time. Format: proc_locks(5), fs/locks.c
 * lock_get_status().
 */

enum ss_file_lock_type { SS_FILE_LOCK_POSIX, SS_FILE_LOCK_OFD, SS_FILE_LOCK_FLOCK };

struct ss_file_lock {
	uint64_t id; /* shared by the lines of a lock and its waiters */
	bool waits;  /* "->": a waiter */
	enum ss_file_lock_type type;
	bool write; /* exclusive */
	/* in our pid namespace; -1: owned by an open file (OFD); 0: not visible */
	pid_t pid;
	uint64_t inode;
	uint64_t device; /* major << 32 | minor */
	uint64_t first;
	uint64_t last; /* UINT64_MAX: to the end of the file */
};

/* Parses the line at *cursor and advances *cursor. Skips invalid lines and other kinds,
   such as leases. Returns false at the end. */
bool ss_locks_next(const char **cursor, const char *end, struct ss_file_lock *ret);

/* A lock that a thread requests and waits for. */
struct ss_lock_request {
	pid_t pid;
	enum ss_file_lock_type type;
	bool write;
	uint64_t inode;
	uint64_t device;
	bool ranged; /* the range is known, from the start of the file */
	uint64_t first;
	uint64_t last; /* as above */
};

/*
 * Finds the blocking lock: the one under which the kernel lists the waiter. If the waiter
 * is not listed (it was stopped and has not resumed its wait), the only conflicting lock.
 * Returns false if there is none or more than one, or if the lock may be the waiter's
 * own.
 */
bool ss_locks_find(const char *text, size_t size, const struct ss_lock_request *request,
		   struct ss_file_lock *ret);

#endif
