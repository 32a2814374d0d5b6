/*
 * Parsers for files that describe a process or thread: text to structs. They open no file.
 */
#ifndef SS_BASE_PROC_PROCESS_H
#define SS_BASE_PROC_PROCESS_H

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
	uint64_t voluntary_switches; /* context switches: voluntary, */
	uint64_t forced_switches;    /* and involuntary */
	pid_t inner_id;	   /* in its innermost pid namespace (NSpid); 0: unknown */
	unsigned id_count; /* pid namespaces from that of /proc inwards */
};

/* Missing lines leave zeros. Returns false only without a Tgid line. */
bool ss_status_parse(const char *text, size_t size, struct ss_status *ret);

/* ss_status.dumping_core alone. */
bool ss_status_dumps_core(const char *text, size_t size);

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
 * How many bits the words of an auxiliary vector have, in this byte order: 32 or 64, which
 * is also the class of the program; 0: unknown. It is found by the entry of the page size,
 * which every kernel writes.
 */
unsigned ss_auxv_word_bits(const void *bytes, size_t size);

/* The value of an entry (AT_...) of a vector with words of 64 bits. False: there is none. */
bool ss_auxv_find(const void *bytes, size_t size, uint64_t type, uint64_t *ret);

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

#endif
