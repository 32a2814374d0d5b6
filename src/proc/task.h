/*
 * Readers of /proc/PID/task/TID/{stat,status,syscall,schedstat}, over bytes that are
 * there already. Formats: proc_pid_stat(5), proc_pid_status(5), proc_pid_syscall(5),
 * sched-stats.rst of the kernel's documentation.
 */
#ifndef SS_PROC_TASK_H
#define SS_PROC_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ss_stat {
	pid_t pid;
	char comm[64]; /* raw bytes, NUL-terminated */
	char state;
	bool kernel_thread;  /* PF_KTHREAD */
	bool exiting;	     /* PF_EXITING */
	bool worker;	     /* made by the kernel within a process, for its own work */
	uint64_t start_time; /* clock ticks after boot */
	int processor;	     /* CPU it last ran on */
	uint64_t program;    /* where its code and its stack begin, mixed: an exec changes
				that; nothing to somebody who may not trace it */
};

/* comm may hold anything, ')' too: fields count from the last ')'. */
bool ss_stat_parse(const char *text, size_t size, struct ss_stat *ret);

struct ss_status {
	pid_t tgid;
	pid_t tracer; /* 0: none */
	uid_t uid[3]; /* real, effective, saved */
	gid_t gid[3];
	uint64_t cap_effective;
	uint64_t cap_permitted;
	bool seccomp_filter;
	uint64_t voluntary_switches; /* context switches: it waited for something, */
	uint64_t forced_switches;    /* or was replaced by another thread */
	pid_t inner_id;	   /* in its innermost pid namespace; 0: not said (NSpid) */
	unsigned id_count; /* pid namespaces from that of /proc inwards */
};

/* Lines that are missing leave zeros; false only without a Tgid line. */
bool ss_status_parse(const char *text, size_t size, struct ss_status *ret);

enum ss_syscall_kind {
	SS_SYSCALL_RUNNING, /* on a CPU, or ready: nothing is known */
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
 * Makes the text of /proc/PID/task/TID/stack plain, in place: lines without the addresses
 * before them ("[<0>] "), no newline at the end, NUL-terminated (text has size + 1
 * bytes). The length.
 */
size_t ss_kernel_stack_clean(char *text, size_t size);

struct ss_schedstat {
	uint64_t run_ns;
	uint64_t wait_ns;   /* ready, and waiting for a CPU */
	uint64_t run_count; /* times it was put on a CPU */
};

bool ss_schedstat_parse(const char *text, size_t size, struct ss_schedstat *ret);

bool ss_syscall_parse(const char *text, size_t size, struct ss_syscall_text *ret);

#endif
