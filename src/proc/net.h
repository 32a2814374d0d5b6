/*
 * Parsers for /proc/PID/net/{tcp,tcp6,udp,udp6,raw,raw6,unix}, one line at a time.
 * Formats: proc_pid_net(5).
 */
#ifndef SS_PROC_NET_H
#define SS_PROC_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
