/*
 * Parsers for what processes have open: descriptors, sockets, locks. They open no file.
 */
#ifndef SS_BASE_PROC_FILES_H
#define SS_BASE_PROC_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
