#include "objects/inet_diag.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum { ANSWER_MAX = 32 * 1024, ANSWERS_MAX = 1024 };

static bool send_request(int fd, int family)
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

bool ss_inet_diag_list(int diag_fd, int family, ss_inet_diag_visitor *visit, void *data)
{
	bool done = false;

	if (!send_request(diag_fd, family))
		return false;
	for (int i = 0; i < ANSWERS_MAX && !done; i++) {
		if (!take_answer(diag_fd, visit, data, &done))
			return false;
	}
	return done;
}
