#include "objects/unix_diag.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/search.h"

enum {
	TCP_STATE_LISTEN = 10,
	ANSWER_MAX = 32 * 1024,
	/* To find one socket, the kernel searches all its buckets. In that time it lists
	   more than twenty sockets, so a list is faster, unless there are very many. */
	FEW = 4,
	LISTED_PER_SOCKET = 64,
};

/* inode 0: all sockets */
static bool send_request(int fd, uint64_t inode)
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
			     .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER,
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

static int compare_lookups(const void *a, const void *b)
{
	const struct lookup *x = a;
	const struct lookup *y = b;

	return (x->inode > y->inode) - (x->inode < y->inode);
}

/* One by one -------------------------------------------------------------- */

/* The reply is available when send() returns. Returns false if there is no such
   socket. bytes: ANSWER_MAX, of the reply. */
static bool query(int fd, uint64_t inode, char *bytes, struct answer *ret)
{
	struct nlmsghdr *header = (void *)bytes;

	if (!send_request(fd, inode))
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

bool ss_unix_diag_is_unix(const struct ss_fd_fact *fact)
{
	return fact->socket.protocol && strncmp(fact->socket.protocol, "UNIX", 4) == 0;
}

/* One whose protocol is not known may be a UNIX socket. */
static bool is_wanted(const struct ss_fd_fact *fact)
{
	return fact->kind == SS_FD_SOCKET && fact->inode && !fact->socket.found &&
	       (!fact->socket.protocol || ss_unix_diag_is_unix(fact));
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
	if (list_fd >= 0 && send_request(list_fd, 0)) {
		while (take_part(&search, list_fd, &left))
			;
	}
	query_rest(&search, diag_fd);
}
