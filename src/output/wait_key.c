#include "output/wait_key.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { ENDPOINT_SIZE = INET6_ADDRSTRLEN + 16 };

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

/* The four bytes of an IPv4 address, also of one that is mapped into IPv6; or NULL. */
static const uint8_t *ipv4_of(const struct ss_socket_address *address)
{
	if (address->size == 4)
		return address->bytes;
	if (address->size == 16 &&
	    memcmp(address->bytes, mapped_prefix, sizeof(mapped_prefix)) == 0)
		return address->bytes + sizeof(mapped_prefix);
	return NULL;
}

static bool is_loopback(const struct ss_socket_address *address)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	const uint8_t *ipv4 = ipv4_of(address);

	return ipv4 ? ipv4[0] == 127 :
		      address->size == 16 &&
			       memcmp(address->bytes, loopback, sizeof(loopback)) == 0;
}

/* "10.0.0.1:5432" or "[::1]:5432". False if the address is not known. */
static bool write_endpoint(const struct ss_socket_address *address,
			   char text[static ENDPOINT_SIZE])
{
	const uint8_t *ipv4 = ipv4_of(address);
	char host[INET6_ADDRSTRLEN];

	if ((!ipv4 && address->size != 16) || address->port == 0 ||
	    !inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? ipv4 : address->bytes, host,
		       sizeof(host)))
		return false;
	(void)snprintf(text, ENDPOINT_SIZE, ipv4 ? "%s:%u" : "[%s]:%u", host,
		       address->port); /* it fits */
	return true;
}

static char *new_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *new_format(const char *format, ...)
{
	char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	return text;
}

/* Both ends have the same two endpoints. Addresses of the loopback interface belong to a
   host. */
static char *new_connection(const struct ss_descriptor *d, const char *boot_id)
{
	bool udp = d->protocol && strncmp(d->protocol, "UDP", 3) == 0;
	bool local = is_loopback(&d->local) || is_loopback(&d->remote);
	char ends[2][ENDPOINT_SIZE];

	if (!d->protocol || (!udp && strncmp(d->protocol, "TCP", 3) != 0) ||
	    !write_endpoint(&d->local, ends[0]) || !write_endpoint(&d->remote, ends[1]))
		return NULL;
	bool swap = strcmp(ends[0], ends[1]) > 0;
	return new_format("%s:%s%s%s-%s", udp ? "udp" : "tcp", local ? boot_id : "",
			  local ? "/" : "", ends[swap], ends[!swap]);
}

char *ss_wait_key_new_descriptor(const struct ss_descriptor *descriptor,
				 const char *boot_id)
{
	if (!descriptor)
		return NULL;
	if (descriptor->kind == SS_FD_PIPE && descriptor->name &&
	    strncmp(descriptor->name, "pipe:", 5) == 0)
		return new_format("pipe:%s/%s", boot_id, descriptor->name + 5);
	if (descriptor->kind == SS_FD_PIPE && descriptor->name) /* a FIFO */
		return new_format("pipe:%s/%s", boot_id, descriptor->name);
	return descriptor->kind == SS_FD_SOCKET ? new_connection(descriptor, boot_id) :
						  NULL;
}

/* A file may be on several hosts: only what is known to be held by a process of this one is
   of this host. */
static char *new_file(const struct ss_wait *wait, const char *boot_id)
{
	const struct ss_descriptor *d = wait->descriptor;

	if (!d || !d->name)
		return NULL;
	return wait->owner_pid || wait->self_owned ?
		       new_format("file:%s%s", boot_id, d->name) :
		       new_format("file:%s", d->name);
}

static const struct ss_descriptor *only_descriptor(const struct ss_wait *wait)
{
	if (wait->fd_count == 1 && !wait->fds_incomplete)
		return wait->fds[0].what;
	if (wait->kind == SS_WAIT_EPOLL && wait->descriptor &&
	    wait->descriptor->watch_count == 1 && !wait->descriptor->watches_incomplete)
		return wait->descriptor->watches[0].what;
	return wait->descriptor;
}

char *ss_wait_key_new(const struct ss_wait *wait, pid_t pid, const char *boot_id)
{
	if (!wait)
		return NULL;
	if (wait->kind == SS_WAIT_FILE_LOCK)
		return new_file(wait, boot_id);
	if (wait->address)
		return new_format("futex:%s/%d/0x%" PRIx64, boot_id, pid, wait->address);
	return ss_wait_key_new_descriptor(only_descriptor(wait), boot_id);
}
