#include "process/objects.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "base/procfs.h"
#include "base/search.h"
#include "process/own_thread.h"

/*
 * TCP sockets from sock_diag(7), which is twenty times as fast as /proc/net/tcp and has
 * the same contents.
 */

typedef void ss_inet_diag_visitor(void *data, const struct ss_net_inet *socket);

enum { ANSWER_MAX = 32 * 1024, ANSWERS_MAX = 1024 };

static bool send_inet_request(int fd, int family)
{
	const struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} message = {
		.header = { .nlmsg_len = sizeof(message),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.request = { .sdiag_family = (uint8_t)family,
			     .sdiag_protocol = IPPROTO_TCP,
			     .idiag_states = UINT32_MAX },
	};

	return send(fd, &message, sizeof(message), 0) == (ssize_t)sizeof(message);
}

static void take_address(const uint32_t words[4], uint16_t port, unsigned size,
			 struct ss_net_address *ret)
{
	ret->size = size;
	ret->port = ntohs(port);
	memcpy(ret->bytes, words, size);
}

static void visit_message(const struct nlmsghdr *header, ss_inet_diag_visitor *visit,
			  void *data)
{
	/* NLMSG_DATA() would drop the const. */
	const struct inet_diag_msg *message =
		(const void *)((const char *)header + NLMSG_HDRLEN);
	struct ss_net_inet socket = {};

	if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    header->nlmsg_len < NLMSG_LENGTH(sizeof(*message)))
		return;
	unsigned size = message->idiag_family == AF_INET6 ? 16 : 4;
	take_address(message->id.idiag_src, message->id.idiag_sport, size, &socket.local);
	take_address(message->id.idiag_dst, message->id.idiag_dport, size,
		     &socket.remote);
	socket.state = message->idiag_state;
	socket.inode = message->idiag_inode;
	if (socket.state == TCP_LISTEN)
		socket.full = message->idiag_rqueue > message->idiag_wqueue;
	else
		socket.unread = message->idiag_rqueue;
	visit(data, &socket);
}

/* Handles a reply of several messages. Sets *done after the last one. Returns false on
   errors. */
static bool take_answer(int fd, ss_inet_diag_visitor *visit, void *data, bool *done)
{
	_Alignas(struct nlmsghdr) char bytes[ANSWER_MAX];
	struct nlmsghdr *header = (void *)bytes;
	ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (size <= 0)
		return false;
	for (size_t left = (size_t)size; NLMSG_OK(header, left);
	     header = NLMSG_NEXT(header, left)) {
		if (header->nlmsg_type == NLMSG_ERROR)
			return false;
		*done = header->nlmsg_type == NLMSG_DONE;
		if (*done)
			return true;
		visit_message(header, visit, data);
	}
	return true;
}

/* Visits each TCP socket of a family (AF_INET, AF_INET6) in the network namespace of
   diag_fd, a sock_diag(7) socket. Returns false if the list is incomplete. */
static bool inet_diag_list(int diag_fd, int family, ss_inet_diag_visitor *visit,
			   void *data)
{
	bool done = false;

	if (!send_inet_request(diag_fd, family))
		return false;
	for (int i = 0; i < ANSWERS_MAX && !done; i++) {
		if (!take_answer(diag_fd, visit, data, &done))
			return false;
	}
	return done;
}

enum {
	TCP_STATE_LISTEN = 10,
	/* To find one socket, the kernel searches all its buckets. In that time it lists
	   more than twenty sockets, so a list is faster, unless there are very many. */
	FEW = 4,
	LISTED_PER_SOCKET = 64,
};

/* inode 0: all sockets */
static bool send_unix_request(int fd, uint64_t inode)
{
	const struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} message = {
		.header = { .nlmsg_len = sizeof(message),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | (inode ? 0 : NLM_F_DUMP) },
		.request = { .sdiag_family = AF_UNIX,
			     .udiag_states = UINT32_MAX,
			     .udiag_ino = (uint32_t)inode,
			     .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER |
					   UDIAG_SHOW_RQLEN,
			     .udiag_cookie = { UINT32_MAX, UINT32_MAX } },
	};

	return send(fd, &message, sizeof(message), 0) == (ssize_t)sizeof(message);
}

/* What the kernel says of a socket; the name is in the buffer of the message. */
struct answer {
	uint64_t inode;
	bool stream;
	bool listens;
	char *name;
	size_t name_size;
	uint64_t peer;
	uint32_t unread;
};

static void take_attributes(struct rtattr *at, size_t left, struct answer *ret)
{
	for (; RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		if (at->rta_type == UNIX_DIAG_NAME) {
			ret->name = RTA_DATA(at);
			ret->name_size = RTA_PAYLOAD(at);
		} else if (at->rta_type == UNIX_DIAG_PEER &&
			   RTA_PAYLOAD(at) >= sizeof(uint32_t)) {
			uint32_t peer;
			memcpy(&peer, RTA_DATA(at), sizeof(peer));
			ret->peer = peer;
		} else if (at->rta_type == UNIX_DIAG_RQLEN &&
			   RTA_PAYLOAD(at) >= sizeof(struct unix_diag_rqlen)) {
			struct unix_diag_rqlen queue;
			memcpy(&queue, RTA_DATA(at), sizeof(queue));
			ret->unread = queue.udiag_rqueue;
		}
	}
}

static bool parse(struct nlmsghdr *header, struct answer *ret)
{
	const size_t head = NLMSG_LENGTH(sizeof(struct unix_diag_msg));
	struct unix_diag_msg *message = NLMSG_DATA(header);

	if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY || header->nlmsg_len < head)
		return false;
	*ret = (struct answer){ .inode = message->udiag_ino,
				.stream = message->udiag_type == SOCK_STREAM,
				.listens = message->udiag_state == TCP_STATE_LISTEN };
	take_attributes((struct rtattr *)(message + 1), header->nlmsg_len - head, ret);
	return true;
}

/* An abstract name begins with NUL and may have more of them, shown as @ like in /proc. That of a file
   ends at the first one. */
static const char *keep_name(struct ss_facts *facts, const struct answer *answer)
{
	char *bytes = answer->name;
	size_t size = answer->name_size;
	const bool abstract = size > 0 && bytes[0] == '\0';

	for (size_t i = 0; abstract && i < size; i++) {
		if (bytes[i] == '\0')
			bytes[i] = '@';
	}
	return size ? ss_intern_bytes(facts->strings, bytes, strnlen(bytes, size)) : NULL;
}

static void set_own(struct ss_facts *facts, struct ss_socket_fact *socket,
		    const struct answer *answer)
{
	if (!socket->protocol) /* as the kernel names them */
		socket->protocol = ss_intern_string(
			facts->strings, answer->stream ? "UNIX-STREAM" : "UNIX");
	socket->found = true;
	socket->listens = answer->listens;
	socket->unread = answer->listens ? 0 : answer->unread;
	socket->path = keep_name(facts, answer);
	socket->peer_inode = answer->peer;
}

/* A socket to find. */
struct lookup {
	uint64_t inode;
	struct ss_socket_fact *socket;
	uint64_t peer; /* whose name is in the socket; 0: none */
};

struct search {
	struct ss_facts *facts;
	struct lookup *lookups; /* ascending by inode; several descriptors may have one */
	size_t count;
};

SS_DEFINE_COMPARE(compare_lookups, struct lookup, inode)

/* One by one -------------------------------------------------------------- */

/* The reply is available when send() returns. Returns false if there is no such
   socket. bytes: ANSWER_MAX, of the reply. */
static bool query(int fd, uint64_t inode, char *bytes, struct answer *ret)
{
	struct nlmsghdr *header = (void *)bytes;

	if (!send_unix_request(fd, inode))
		return false;
	ssize_t size = recv(fd, bytes, ANSWER_MAX, MSG_DONTWAIT);
	return size >= 0 && NLMSG_OK(header, (size_t)size) && parse(header, ret) &&
	       ret->inode == (uint32_t)inode;
}

static void query_rest(struct search *search, int fd)
{
	_Alignas(struct nlmsghdr) char bytes[ANSWER_MAX];

	for (size_t i = 0; i < search->count; i++) {
		struct lookup *lookup = &search->lookups[i];
		struct ss_socket_fact *socket = lookup->socket;
		struct answer answer;

		if (!socket->found && socket->protocol &&
		    query(fd, lookup->inode, bytes, &answer))
			set_own(search->facts, socket, &answer);
		if (!socket->found ||
		    (socket->peer_inode && socket->peer_inode == lookup->peer))
			continue;
		/* Not the name of one that only sends to it */
		socket->peer_path = socket->peer_inode && query(fd, socket->peer_inode,
								bytes, &answer) ?
					    keep_name(search->facts, &answer) :
					    NULL;
	}
}

/* All at once --------------------------------------------------------------- */

/* The other end of a connection has this one as its peer. So has a datagram socket that
   only sends to it. */
static void take_peer(struct search *search, const struct answer *answer)
{
	size_t i = ss_lower_bound(search->count, at,
				  search->lookups[at].inode < answer->peer);

	for (; answer->peer && i < search->count &&
	       search->lookups[i].inode == answer->peer;
	     i++) {
		struct lookup *lookup = &search->lookups[i];
		if (lookup->socket->found && lookup->peer == lookup->socket->peer_inode)
			continue;
		lookup->peer = answer->inode;
		lookup->socket->peer_path = keep_name(search->facts, answer);
	}
}

static void take_own(struct search *search, const struct answer *answer)
{
	size_t i = ss_lower_bound(search->count, at,
				  search->lookups[at].inode < answer->inode);

	for (; i < search->count && search->lookups[i].inode == answer->inode; i++)
		set_own(search->facts, search->lookups[i].socket, answer);
}

/* Takes one part of the list. False: it was the last one, or they cannot be read. */
static bool take_part(struct search *search, int fd, size_t *left)
{
	_Alignas(struct nlmsghdr) char bytes[ANSWER_MAX];
	struct nlmsghdr *header = (void *)bytes;
	ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	struct answer answer;

	if (size <= 0)
		return false;
	for (size_t rest = (size_t)size; NLMSG_OK(header, rest);
	     header = NLMSG_NEXT(header, rest)) {
		if (*left == 0 || !parse(header, &answer))
			return false; /* NLMSG_DONE, NLMSG_ERROR */
		(*left)--;
		take_own(search, &answer);
		take_peer(search, &answer);
	}
	return true;
}

/* Whether its protocol says that it is a UNIX socket. */
static bool unix_diag_is_unix(const struct ss_fd_fact *fact)
{
	return fact->socket.protocol && strncmp(fact->socket.protocol, "UNIX", 4) == 0;
}

/* One whose protocol is not known may be a UNIX socket. */
static bool is_wanted(const struct ss_fd_fact *fact)
{
	return fact->kind == SS_FD_SOCKET && fact->inode && !fact->socket.found &&
	       (!fact->socket.protocol || unix_diag_is_unix(fact));
}

bool ss_unix_diag_prefers_list(const struct ss_facts *facts)
{
	size_t count = 0;

	for (size_t i = 0; i < facts->fds.count; i++)
		count += is_wanted(&facts->fds.items[i]);
	return count > FEW;
}

void ss_unix_diag_read(struct ss_facts *facts, int diag_fd, int list_fd)
{
	_cleanup_free_ struct lookup *lookups =
		calloc(facts->fds.count + 1, sizeof(*lookups));
	struct search search = { .facts = facts, .lookups = lookups };

	for (size_t i = 0; lookups && i < facts->fds.count; i++) {
		struct ss_fd_fact *fact = &facts->fds.items[i];
		if (is_wanted(fact))
			lookups[search.count++] =
				(struct lookup){ fact->inode, &fact->socket, 0 };
	}
	if (search.count > 1)
		qsort(lookups, search.count, sizeof(*lookups), compare_lookups);
	size_t left = search.count * LISTED_PER_SOCKET;
	if (list_fd >= 0 && send_unix_request(list_fd, 0)) {
		while (take_part(&search, list_fd, &left))
			;
	}
	query_rest(&search, diag_fd);
}

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

enum { CONNECTIONS_MAX = 64 };

/* A socket to find in the tables, by inode. */
struct inode_lookup {
	uint64_t inode;
	struct ss_fd_fact *fact;
};

struct tables {
	struct inode_lookup *lookups;
	size_t count;
	struct ss_facts *facts;
	const struct ss_target *target;
	struct ss_buffer text;
	int diag_fd; /* of sock_diag(7), or -1 */
	/* TCP connections on this machine that threads wait for, to find their other ends; for one in
	   SYN_SENT, how many listeners match */
	struct ss_socket_fact *connections[CONNECTIONS_MAX];
	size_t listeners[CONNECTIONS_MAX];
	size_t connection_count;
};

SS_DEFINE_COMPARE(compare_inode_lookups, struct inode_lookup, inode)

static struct ss_socket_fact *find_socket(const struct tables *t, uint64_t inode)
{
	const struct inode_lookup key = { .inode = inode };
	struct inode_lookup *found =
		bsearch(&key, t->lookups, t->count, sizeof(key), compare_inode_lookups);

	return found ? &found->fact->socket : NULL;
}

static bool is_same_address(const struct ss_net_address *a,
			    const struct ss_net_address *b)
{
	return a->size == b->size && a->port == b->port &&
	       memcmp(a->bytes, b->bytes, SS_MIN(a->size, sizeof(a->bytes))) == 0;
}

/* Whether a socket listens at an address. The kernel leaves a connection waiting if the queue of those
   to be accepted is full. */
static bool listens_at(const struct ss_net_inet *line, const struct ss_net_address *at)
{
	static const uint8_t any[sizeof(line->local.bytes)];
	const struct ss_net_address *local = &line->local;

	return line->state == TCP_LISTEN && line->full && local->port == at->port &&
	       (is_same_address(local, at) ||
		memcmp(local->bytes, any, local->size) == 0);
}

static void take_inet(void *data, const struct ss_net_inet *line)
{
	struct tables *t = data;
	struct ss_socket_fact *socket = line->inode ? find_socket(t, line->inode) : NULL;

	for (size_t i = 0; i < t->connection_count && line->inode; i++) {
		struct ss_socket_fact *own = t->connections[i];
		if (own->inet.state == TCP_SYN_SENT) {
			if (listens_at(line, &own->inet.remote) && t->listeners[i]++ == 0)
				own->peer_inode = line->inode;
			continue;
		}
		if (is_same_address(&own->inet.local, &line->remote) &&
		    is_same_address(&own->inet.remote, &line->local))
			own->peer_inode = line->inode;
	}
	if (!socket || t->connection_count)
		return;
	socket->inet = *line;
	socket->found = true;
}

static void read_inet(struct tables *t)
{
	const char *cursor = t->text.bytes;
	const char *end = cursor + t->text.size;
	struct ss_net_inet line;

	while (ss_net_next_inet(&cursor, end, &line))
		take_inet(t, &line);
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
	       inet_diag_list(t->diag_fd, v6 ? AF_INET6 : AF_INET, take_inet, t);
}

static void read_table(struct tables *t, size_t index)
{
	if (list_tcp(t, files[index].protocol))
		return;
	int error = ss_io_read_path(t->target->proc_fd, files[index].file, TABLE_MAX,
				    &t->text);
	if (error == 0 || error == -EFBIG)
		files[index].read(t);
}

/* 127.0.0.1, ::1, or an address of this machine to which it is connected itself. */
static bool is_local(const struct ss_net_inet *inet)
{
	static const uint8_t mapped[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 };
	static const uint8_t loopback[16] = { [15] = 1 };
	const uint8_t *remote = inet->remote.bytes;

	if (inet->remote.size == 4 && remote[0] == 127)
		return true;
	if (inet->remote.size == sizeof(loopback) &&
	    (memcmp(remote, loopback, sizeof(loopback)) == 0 ||
	     memcmp(remote, mapped, sizeof(mapped)) == 0))
		return true;
	return inet->remote.size == inet->local.size &&
	       memcmp(remote, inet->local.bytes, inet->local.size) == 0;
}

static void read_tables(struct tables *t)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(files); i++) {
		if (is_protocol_needed(t, files[i].protocol))
			read_table(t, i);
	}
}

/* Lists the sockets once more: the other end may have been before this one. */
static void find_connections(struct tables *t, size_t index)
{
	const char *protocol = files[index].protocol;
	bool connecting = false;

	t->connection_count = 0;
	for (size_t i = 0; i < t->count && t->connection_count < CONNECTIONS_MAX; i++) {
		struct ss_fd_fact *fact = t->lookups[i].fact;
		struct ss_socket_fact *socket = &fact->socket;
		const unsigned state = socket->inet.state;
		if (!fact->resolve_peers || !socket->found || !socket->protocol ||
		    strcmp(socket->protocol, protocol) != 0 ||
		    (state != TCP_ESTABLISHED && state != TCP_SYN_SENT) ||
		    !is_local(&socket->inet))
			continue;
		connecting |= state == TCP_SYN_SENT;
		t->listeners[t->connection_count] = 0;
		t->connections[t->connection_count++] = socket;
	}
	if (t->connection_count == 0)
		return;
	read_table(t, index);
	/* A socket of IPv6 accepts connections of IPv4, too, unless IPV6_V6ONLY is set. */
	if (connecting && strcmp(protocol, "TCP") == 0)
		(void)list_tcp(t, "TCPv6");
	for (size_t i = 0; i < t->connection_count; i++) {
		if (t->listeners[i] > 1)
			t->connections[i]->peer_inode = 0; /* any of them */
	}
}

static void read_connections(struct tables *t)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(files); i++) {
		if (strncmp(files[i].protocol, "TCP", 3) == 0)
			find_connections(t, i);
	}
	t->connection_count = 0;
}

/* The name to which a thread connects a UNIX socket, as in /proc/net/unix. 0: none. */
static size_t read_unix_name(const struct ss_thread_facts *thread,
			     char name[sizeof(struct sockaddr_un)])
{
	const struct ss_memory_fact *memory = &thread->memory[1];
	const size_t head = offsetof(struct sockaddr_un, sun_path);
	struct sockaddr_un address;

	if (thread->call.id != SS_SYS_CONNECT || memory->size <= head ||
	    memory->size > sizeof(address))
		return 0;
	memcpy(&address, memory->bytes, memory->size);
	if (address.sun_family != AF_UNIX)
		return 0;
	size_t size = memory->size - head;
	memcpy(name, address.sun_path, size);
	if (name[0] != '\0')
		return strnlen(name, size);
	for (size_t i = 0; i < size; i++)
		name[i] = name[i] ? name[i] : '@';
	return size;
}

/* The only socket that listens there, or 0. */
static uint64_t find_listener(const struct tables *t, const char *name, size_t size)
{
	const char *cursor = t->text.bytes;
	const char *end = cursor + t->text.size;
	struct ss_net_unix line;
	uint64_t found = 0;

	while (ss_net_next_unix(&cursor, end, &line)) {
		if (!line.listens || line.path_size != size ||
		    memcmp(line.path, name, size) != 0)
			continue;
		if (found)
			return 0;
		found = line.inode;
	}
	return found;
}

/* A thread waits in connect(2) only if too many others do: the socket has no other end yet. */
static void find_listeners(struct tables *t)
{
	char name[sizeof(struct sockaddr_un)];
	bool listed = false;

	for (size_t i = 0; i < t->facts->threads.count; i++) {
		const struct ss_thread_facts *thread = &t->facts->threads.items[i];
		size_t size = thread->state == 'S' ? read_unix_name(thread, name) : 0;
		const struct ss_fd_fact *fd =
			size ? ss_facts_find_fd(t->facts,
						(int)(uint32_t)thread->call.args[0]) :
			       NULL;
		if (!fd || fd->kind != SS_FD_SOCKET || fd->socket.peer_inode)
			continue;
		if (!listed && ss_io_read_path(t->target->proc_fd, "net/unix", TABLE_MAX,
					       &t->text) != 0)
			return;
		listed = true;
		struct ss_socket_fact *socket =
			&t->facts->fds.items[fd - t->facts->fds.items].socket;
		socket->peer_inode = find_listener(t, name, size);
		socket->peer_path = ss_intern_bytes(t->facts->strings, name, size);
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
		found = until_unix && unix_diag_is_unix(fact);
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
	if (!list)
		return;
	/* Of what was not in the list, if it was too long or not needed after all. */
	read_protocols(facts, target, false);
	ss_unix_diag_read(facts, diag_fd, -1);
}

void ss_sockets_read(struct ss_facts *facts, const struct ss_target *target)
{
	_cleanup_free_ struct inode_lookup *lookups =
		calloc(facts->fds.count + 1, sizeof(*lookups));
	struct tables t = { .lookups = lookups, .facts = facts, .target = target };

	if (!lookups)
		return;
	for (size_t i = 0; i < facts->fds.count; i++) {
		struct ss_fd_fact *fact = &facts->fds.items[i];
		if (fact->kind == SS_FD_SOCKET && fact->inode && !fact->socket.found)
			lookups[t.count++] = (struct inode_lookup){ fact->inode, fact };
	}
	if (t.count == 0)
		return;
	if (t.count > 1)
		qsort(lookups, t.count, sizeof(*lookups), compare_inode_lookups);
	_cleanup_close_ int diag_fd = open_diag(target);
	t.diag_fd = diag_fd;
	read_unix_sockets(facts, target, diag_fd);
	read_tables(&t);
	read_connections(&t);
	find_listeners(&t);
	ss_buffer_deinit(&t.text);
}

/* The same numbers on all architectures; older headers lack them. */
enum { PIDFD_OPEN = 434, PIDFD_GETFD = 438 };

bool ss_target_socket_waits_plainly(const struct ss_target *target, int fd)
{
	struct timeval limit = {};
	socklen_t size = sizeof(limit);
	int least = 0;
	socklen_t least_size = sizeof(least);

	/* Closing a duplicate has no effect on a socket, but may affect other files. */
	_cleanup_close_ int pidfd = (int)syscall(PIDFD_OPEN, target->pid, 0);
	_cleanup_close_ int copy = pidfd < 0 ? -1 :
					       (int)syscall(PIDFD_GETFD, pidfd, fd, 0);
	return copy >= 0 &&
	       getsockopt(copy, SOL_SOCKET, SO_RCVTIMEO, &limit, &size) == 0 &&
	       limit.tv_sec == 0 && limit.tv_usec == 0 &&
	       getsockopt(copy, SOL_SOCKET, SO_RCVLOWAT, &least, &least_size) == 0 &&
	       least <= 1;
}
