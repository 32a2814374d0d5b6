#include "process/socket.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "base/cleanup.h"

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
