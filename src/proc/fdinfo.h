/*
 * Parser for /proc/PID/fdinfo/FD. Format: proc_pid_fdinfo(5),
 * Documentation/filesystems/proc.rst, 3.8.
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
	uint64_t left_ns;     /* until it expires; 0: disarmed */
	uint64_t interval_ns; /* 0: once */
	bool has_pid;
	pid_t pid; /* pidfd: the id in our pid namespace; -1: it has ended; 0: not visible */
	unsigned watches; /* inotify */
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

#endif
