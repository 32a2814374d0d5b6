#include "target/socket.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "base/cleanup.h"

/* The same numbers on all architectures; older headers lack them. */
enum { PIDFD_OPEN = 434, PIDFD_GETFD = 438 };

static const char prefix[] = "socket:";

bool ss_target_socket_has_timeout(const struct ss_target *target, int fd)
{
	struct timeval limit = {};
	socklen_t size = sizeof(limit);
	char path[32];
	char link[sizeof(prefix) - 1];

	(void)snprintf(path, sizeof(path), "fd/%d", fd); /* it fits */
	if (readlinkat(target->proc_fd, path, link, sizeof(link)) !=
	    (ssize_t)sizeof(link))
		return true;
	/* Closing a duplicate has no effect on a socket, but may affect other files. */
	if (memcmp(link, prefix, sizeof(link)) != 0)
		return false;
	_cleanup_close_ int pidfd = (int)syscall(PIDFD_OPEN, target->pid, 0);
	_cleanup_close_ int copy = pidfd < 0 ? -1 :
					       (int)syscall(PIDFD_GETFD, pidfd, fd, 0);
	return copy < 0 ||
	       getsockopt(copy, SOL_SOCKET, SO_RCVTIMEO, &limit, &size) != 0 ||
	       limit.tv_sec != 0 || limit.tv_usec != 0;
}
