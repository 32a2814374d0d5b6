#include "objects/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "objects/inet_diag.h"
#include "objects/unix_diag.h"
#include "target/own_thread.h"

enum { TABLE_MAX = 8 << 20, THREAD_STACK = 64 << 10 };

static int open_netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		      NETLINK_SOCK_DIAG);
}

struct door {
	int namespace_fd;
	int socket;
};

/* A socket belongs to the network namespace of the thread that created it. Only this
   short-lived thread changes its namespace. */
static void *open_inside(void *data)
{
	struct door *door = data;

	if (setns(door->namespace_fd, CLONE_NEWNET) == 0)
		door->socket = open_netlink();
	return NULL;
}

static int open_in_namespace(int namespace_fd)
{
	struct door door = { .namespace_fd = namespace_fd, .socket = -1 };
	const struct ss_own_thread thread = { .routine = open_inside,
					      .data = &door,
					      .stack_size = THREAD_STACK };

	(void)ss_own_thread_run(&thread); /* or there is no socket */
	return door.socket;
}

static int open_diag(const struct ss_target *target)
{
	struct stat ours;
	struct stat theirs;
	_cleanup_close_ int fd = openat(target->proc_fd, "ns/net", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &theirs) != 0 || stat("/proc/self/ns/net", &ours) != 0)
		return -1;
	if (ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev)
		return open_netlink();
	return open_in_namespace(fd);
}

/* A socket to find in the tables, by inode. */
struct lookup {
	uint64_t inode;
	struct ss_fd_fact *fact;
};

struct tables {
	struct lookup *lookups;
	size_t count;
	struct ss_facts *facts;
	const struct ss_target *target;
	struct ss_buffer text;
	int diag_fd; /* of sock_diag(7), or -1 */
};

static int compare_lookups(const void *a, const void *b)
{
	const struct lookup *x = a;
	const struct lookup *y = b;

	return (x->inode > y->inode) - (x->inode < y->inode);
}

static struct ss_socket_fact *find_socket(const struct tables *t, uint64_t inode)
{
	const struct lookup key = { .inode = inode };
	struct lookup *found =
		bsearch(&key, t->lookups, t->count, sizeof(key), compare_lookups);

	return found ? &found->fact->socket : NULL;
}

static void take_inet(void *data, const struct ss_net_inet *line)
{
	struct ss_socket_fact *socket = line->inode ? find_socket(data, line->inode) :
						      NULL;

	if (!socket)
		return;
	socket->inet = *line;
	socket->found = true;
}

static void read_inet(struct tables *t)
{
	const char *cursor = t->text.bytes;
	const char *end = cursor + t->text.size;
	struct ss_net_inet line;

	while (ss_net_next_inet(&cursor, end, &line)) {
		struct ss_socket_fact *socket = line.inode ? find_socket(t, line.inode) :
							     NULL;
		if (!socket)
			continue;
		socket->inet = line;
		socket->found = true;
	}
}

static void read_unix(struct tables *t)
{
	const char *cursor = t->text.bytes;
	const char *end = cursor + t->text.size;
	struct ss_net_unix line;

	while (ss_net_next_unix(&cursor, end, &line)) {
		struct ss_socket_fact *socket = line.inode ? find_socket(t, line.inode) :
							     NULL;
		if (!socket || socket->found)
			continue;
		socket->found = true;
		socket->listens = line.listens;
		if (line.path_size)
			socket->path = ss_intern_bytes(t->facts->strings, line.path,
						       line.path_size);
	}
}

static const struct {
	const char *protocol;
	const char *file; /* below /proc/PID/net */
	void (*read)(struct tables *t);
} files[] = {
	{ "TCP", "net/tcp", read_inet },	  { "TCPv6", "net/tcp6", read_inet },
	{ "MPTCP", "net/tcp", read_inet },	  { "UDP", "net/udp", read_inet },
	{ "UDPv6", "net/udp6", read_inet },	  { "RAW", "net/raw", read_inet },
	{ "RAWv6", "net/raw6", read_inet },	  { "UNIX", "net/unix", read_unix },
	{ "UNIX-STREAM", "net/unix", read_unix },
};

/* Whether a socket of this protocol is still missing. A socket of unknown protocol
   matches any. */
static bool is_protocol_needed(const struct tables *t, const char *protocol)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct ss_socket_fact *socket = &t->lookups[i].fact->socket;
		if (!socket->found &&
		    (!socket->protocol || strcmp(socket->protocol, protocol) == 0))
			return true;
	}
	return false;
}

/* Reading /proc/net/tcp takes milliseconds, even with few sockets. */
static bool list_tcp(struct tables *t, const char *protocol)
{
	bool v6 = strcmp(protocol, "TCPv6") == 0;

	if (!v6 && strcmp(protocol, "TCP") != 0)
		return false;
	return t->diag_fd >= 0 &&
	       ss_inet_diag_list(t->diag_fd, v6 ? AF_INET6 : AF_INET, take_inet, t);
}

static void read_tables(struct tables *t)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(files); i++) {
		if (!is_protocol_needed(t, files[i].protocol) ||
		    list_tcp(t, files[i].protocol))
			continue;
		int error = ss_io_read_path(t->target->proc_fd, files[i].file, TABLE_MAX,
					    &t->text);
		if (error == 0 || error == -EFBIG)
			files[i].read(t);
	}
}

static bool lacks_protocol(const struct ss_fd_fact *fact)
{
	return fact->kind == SS_FD_SOCKET && !fact->socket.protocol;
}

/* The name of the protocol, which is an extended attribute in sockfs. Reading it does
   not affect the socket. */
static void read_protocol(struct ss_facts *facts, const struct ss_target *target,
			  struct ss_fd_fact *fact)
{
	char path[48];
	char name[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", target->live, fact->fd);
	ssize_t size = getxattr(path, "system.sockprotoname", name, sizeof(name) - 1);
	if (size <= 0)
		return;
	name[size] = '\0';
	fact->socket.protocol = ss_intern_string(facts->strings, name);
}

/* until_unix: up to the first UNIX socket. A list of these will have most of the others. */
static void read_protocols(struct ss_facts *facts, const struct ss_target *target,
			   bool until_unix)
{
	bool found = false;

	for (size_t i = 0; i < facts->fds.count && !found; i++) {
		struct ss_fd_fact *fact = &facts->fds.items[i];
		if (!lacks_protocol(fact))
			continue;
		read_protocol(facts, target, fact);
		found = until_unix && ss_unix_diag_is_unix(fact);
	}
}

/* Reads protocols and, with sock_diag(7), UNIX sockets. */
static void read_unix_sockets(struct ss_facts *facts, const struct ss_target *target,
			      int diag_fd)
{
	bool list = diag_fd >= 0 && ss_unix_diag_prefers_list(facts);

	read_protocols(facts, target, list);
	_cleanup_close_ int list_fd =
		list && ss_unix_diag_prefers_list(facts) ? open_diag(target) : -1;
	if (diag_fd >= 0)
		ss_unix_diag_read(facts, diag_fd, list_fd);
	if (list_fd < 0)
		return;
	/* Of what was not in the list, if it was too long. */
	read_protocols(facts, target, false);
	ss_unix_diag_read(facts, diag_fd, -1);
}

void ss_sockets_read(struct ss_facts *facts, const struct ss_target *target)
{
	_cleanup_free_ struct lookup *lookups =
		calloc(facts->fds.count + 1, sizeof(*lookups));
	struct tables t = { .lookups = lookups, .facts = facts, .target = target };

	if (!lookups)
		return;
	for (size_t i = 0; i < facts->fds.count; i++) {
		struct ss_fd_fact *fact = &facts->fds.items[i];
		if (fact->kind == SS_FD_SOCKET && fact->inode && !fact->socket.found)
			lookups[t.count++] = (struct lookup){ fact->inode, fact };
	}
	if (t.count == 0)
		return;
	if (t.count > 1)
		qsort(lookups, t.count, sizeof(*lookups), compare_lookups);
	_cleanup_close_ int diag_fd = open_diag(target);
	t.diag_fd = diag_fd;
	read_unix_sockets(facts, target, diag_fd);
	read_tables(&t);
	ss_buffer_deinit(&t.text);
}
