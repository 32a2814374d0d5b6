/*
 * Parsers for /proc/PID/task/TID/{stat,status,syscall,schedstat}. Formats:
 * proc_pid_stat(5), proc_pid_status(5), proc_pid_syscall(5),
 * Documentation/scheduler/sched-stats.rst.
 */
#ifndef SS_PROC_TASK_H
#define SS_PROC_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

#endif
