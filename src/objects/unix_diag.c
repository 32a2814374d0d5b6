#include "objects/unix_diag.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>

enum { TCP_STATE_LISTEN = 10, ANSWER_MAX = 4096 };

static bool send_request(int fd, uint64_t inode)
{
	const struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} message = {
		.header = { .nlmsg_len = sizeof(message),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		.request = { .sdiag_family = AF_UNIX,
			     .udiag_states = UINT32_MAX,
			     .udiag_ino = (uint32_t)inode,
			     .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER,
			     .udiag_cookie = { UINT32_MAX, UINT32_MAX } },
	};

	return send(fd, &message, sizeof(message), 0) == (ssize_t)sizeof(message);
}

/* An abstract name begins with NUL, shown as @ like in /proc. */
static const char *take_name(struct ss_facts *facts, char *bytes, size_t size)
{
	if (size > 0 && bytes[0] == '\0')
		bytes[0] = '@';
	for (size_t i = 1; i < size; i++) {
		if (bytes[i] == '\0' && bytes[0] == '@')
			bytes[i] = '@';
	}
	return size ? ss_intern_bytes(facts->strings, bytes, strnlen(bytes, size)) : NULL;
}

struct answer {
	bool listens;
	const char *name;
	uint64_t peer;
};

static void take_attributes(struct ss_facts *facts, struct rtattr *at, size_t left,
			    struct answer *ret)
{
	for (; RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		if (at->rta_type == UNIX_DIAG_NAME) {
			ret->name = take_name(facts, RTA_DATA(at), RTA_PAYLOAD(at));
		} else if (at->rta_type == UNIX_DIAG_PEER &&
			   RTA_PAYLOAD(at) >= sizeof(uint32_t)) {
			uint32_t peer;
			memcpy(&peer, RTA_DATA(at), sizeof(peer));
			ret->peer = peer;
		}
	}
}

/* The reply is available when send() returns. Returns false if there is no such
   socket. */
static bool query(int fd, struct ss_facts *facts, uint64_t inode, struct answer *ret)
{
	_Alignas(struct nlmsghdr) char bytes[ANSWER_MAX];
	const struct nlmsghdr *header = (const void *)bytes;
	struct unix_diag_msg *message = NLMSG_DATA(bytes);

	*ret = (struct answer){};
	if (!send_request(fd, inode))
		return false;
	ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (size < 0 || !NLMSG_OK(header, (size_t)size) ||
	    header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    header->nlmsg_len < NLMSG_LENGTH(sizeof(*message)) ||
	    message->udiag_ino != (uint32_t)inode)
		return false;
	ret->listens = message->udiag_state == TCP_STATE_LISTEN;
	take_attributes(facts, (struct rtattr *)(message + 1),
			header->nlmsg_len - NLMSG_LENGTH(sizeof(*message)), ret);
	return true;
}

static void read_socket(int fd, struct ss_facts *facts, struct ss_fd_fact *fact)
{
	struct ss_socket_fact *socket = &fact->socket;
	struct answer own;
	struct answer other;

	if (!query(fd, facts, fact->inode, &own))
		return;
	socket->found = true;
	socket->listens = own.listens;
	socket->path = own.name;
	socket->peer_inode = own.peer;
	if (own.peer && query(fd, facts, own.peer, &other))
		socket->peer_path = other.name;
}

static bool is_unix(const struct ss_fd_fact *fact)
{
	return fact->kind == SS_FD_SOCKET && fact->socket.protocol &&
	       strncmp(fact->socket.protocol, "UNIX", 4) == 0;
}

void ss_unix_diag_read(struct ss_facts *facts, int diag_fd)
{
	for (size_t i = 0; i < facts->fds.count; i++) {
		struct ss_fd_fact *fact = &facts->fds.items[i];
		if (is_unix(fact) && !fact->socket.found)
			read_socket(diag_fd, facts, fact);
	}
}
