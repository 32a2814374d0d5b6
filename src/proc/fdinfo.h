/*
 * Reader of /proc/PID/fdinfo/FD, over bytes that are there already. Format:
 * proc_pid_fdinfo(5), Documentation/filesystems/proc.rst, 3.8.
 */
#ifndef SS_PROC_FDINFO_H
#define SS_PROC_FDINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ss_fdinfo {
	uint64_t position;
	unsigned flags; /* O_ of open(2) */
	bool has_count;
	uint64_t count; /* eventfd */
	bool has_mask;
	uint64_t mask; /* signalfd: bit n-1 is signal n */
	bool has_timer;
	int clock;	      /* timerfd: CLOCK_ */
	uint64_t left_ns;     /* until it expires; 0: it is not armed */
	uint64_t interval_ns; /* 0: once */
	bool has_pid;
	pid_t pid; /* pidfd, in our pid namespace; -1: it has ended; 0: not in it */
	unsigned watches; /* inotify */
};

/* Lines that are missing or do not parse leave zeros; false only without a flags line. */
bool ss_fdinfo_parse(const char *text, size_t size, struct ss_fdinfo *ret);

/* What an epoll watches. */
struct ss_fdinfo_watch {
	int fd;
	uint32_t events; /* EPOLL... */
};

/* Reads the next such line at *cursor (before end) and moves *cursor past it; other
   lines are skipped. False at the end. */
bool ss_fdinfo_next_watch(const char **cursor, const char *end,
			  struct ss_fdinfo_watch *ret);

#endif
