#include "target/taskstats.h"

#include <linux/genetlink.h>
#include <linux/rtnetlink.h>
#include <linux/taskstats.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

enum { MESSAGE_MAX = 4096 };

/* A generic netlink message with one attribute, or a reply. */
struct message {
	struct nlmsghdr header;
	struct genlmsghdr command;
	char attributes[MESSAGE_MAX];
};

static struct rtattr *find(struct rtattr *at, size_t left, unsigned type)
{
	for (; RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		if ((at->rta_type & NLA_TYPE_MASK) == type)
			return at;
	}
	return NULL;
}

/* Sends a command; the reply is available when send() returns. Returns the first
   attribute of that type in the reply, or NULL. */
static struct rtattr *query(int fd, uint16_t family, uint8_t command, uint16_t type,
			    const void *data, size_t size, unsigned answer_type,
			    struct message *message)
{
	struct rtattr attribute = { .rta_len = (uint16_t)RTA_LENGTH(size),
				    .rta_type = type };

	memset(message, 0, NLMSG_LENGTH(GENL_HDRLEN));
	memcpy(message->attributes, &attribute, sizeof(attribute));
	memcpy(RTA_DATA(message->attributes), data, size);
	message->command = (struct genlmsghdr){ .cmd = command, .version = 1 };
	message->header = (struct nlmsghdr){
		.nlmsg_len = (uint32_t)(NLMSG_LENGTH(GENL_HDRLEN) + RTA_SPACE(size)),
		.nlmsg_type = family,
		.nlmsg_flags = NLM_F_REQUEST,
	};
	if (send(fd, message, message->header.nlmsg_len, 0) < 0)
		return NULL;
	ssize_t n = recv(fd, message, sizeof(*message), MSG_DONTWAIT);
	if (n < 0 || !NLMSG_OK(&message->header, (size_t)n) ||
	    message->header.nlmsg_type != family ||
	    message->header.nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
		return NULL;
	return find((struct rtattr *)message->attributes,
		    message->header.nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), answer_type);
}

static bool find_family(struct ss_taskstats *stats)
{
	static const char name[] = TASKSTATS_GENL_NAME;
	struct message message;
	struct rtattr *id = query(stats->fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
				  CTRL_ATTR_FAMILY_NAME, name, sizeof(name),
				  CTRL_ATTR_FAMILY_ID, &message);

	if (!id || RTA_PAYLOAD(id) < sizeof(stats->family))
		return false;
	memcpy(&stats->family, RTA_DATA(id), sizeof(stats->family));
	return true;
}

bool ss_taskstats_open(struct ss_taskstats *stats)
{
	stats->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (stats->fd >= 0 && !find_family(stats))
		ss_taskstats_close(stats);
	return stats->fd >= 0;
}

void ss_taskstats_close(struct ss_taskstats *stats)
{
	close_cleanup(&stats->fd);
	stats->fd = -1;
}

bool ss_taskstats_count_runs(const struct ss_taskstats *stats, pid_t pid, uint64_t *ret)
{
	const uint32_t id = (uint32_t)pid;
	struct message message;

	if (stats->fd < 0)
		return false;
	struct rtattr *both = query(stats->fd, stats->family, TASKSTATS_CMD_GET,
				    TASKSTATS_CMD_ATTR_TGID, &id, sizeof(id),
				    TASKSTATS_TYPE_AGGR_TGID, &message);
	struct rtattr *found =
		both ? find(RTA_DATA(both), RTA_PAYLOAD(both), TASKSTATS_TYPE_STATS) :
		       NULL;
	if (!found ||
	    RTA_PAYLOAD(found) < offsetof(struct taskstats, cpu_count) + sizeof(*ret))
		return false;
	memcpy(ret, (const char *)RTA_DATA(found) + offsetof(struct taskstats, cpu_count),
	       sizeof(*ret));
	return true;
}
