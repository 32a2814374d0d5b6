#include "report/wait_text.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/print.h"

#define NS_PER_S UINT64_C(1000000000)

enum { SIGNAL_COUNT = 64, SIGNALS_SHOWN = 6 };

void ss_text_writer_add(const struct ss_text_writer *writer, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vfprintf(writer->out, format, args);
	va_end(args);
}

void ss_text_writer_add_string(const struct ss_text_writer *writer, const char *text)
{
	text = text ? text : "?";
	if (writer->raw)
		(void)fputs(text, writer->out);
	else
		ss_escape_write(text, NULL, writer->out);
}

void ss_text_writer_add_id(const struct ss_text_writer *writer, pid_t id,
			   const char *name)
{
	ss_text_writer_add(writer, "%d", id);
	if (!name || !*name)
		return;
	ss_text_writer_add(writer, " (");
	ss_text_writer_add_string(writer, name);
	ss_text_writer_add(writer, ")");
}

void ss_text_writer_add_duration(const struct ss_text_writer *writer, uint64_t time_ns)
{
	uint64_t minutes = time_ns / NS_PER_S / 60;
	uint64_t us = time_ns / 1000;

	if (time_ns < NS_PER_S) /* 999.7 is no 1e+03 */
		ss_text_writer_add(writer, "%.*g ms", time_ns < NS_PER_S / 10 ? 3 : 4,
				   (double)us / 1e3);
	else if (minutes < 2)
		ss_text_writer_add(writer, "%.4g s", (double)time_ns / 1e9);
	else if (minutes < 120)
		ss_text_writer_add(writer, "%" PRIu64 " min", minutes);
	else if (minutes < UINT64_C(48) * 60)
		ss_text_writer_add(writer, "%" PRIu64 " h", minutes / 60);
	else
		ss_text_writer_add(writer, "%" PRIu64 " days", minutes / 60 / 24);
}

#define NAME(name) [SIG##name] = #name
/* Not every C library has sigabbrev_np(3). */
static const char *const signal_names[] = {
	NAME(HUP),    NAME(INT),  NAME(QUIT), NAME(ILL),  NAME(TRAP),  NAME(ABRT),
	NAME(BUS),    NAME(FPE),  NAME(KILL), NAME(USR1), NAME(SEGV),  NAME(USR2),
	NAME(PIPE),   NAME(ALRM), NAME(TERM), NAME(CHLD), NAME(CONT),  NAME(STOP),
	NAME(TSTP),   NAME(TTIN), NAME(TTOU), NAME(URG),  NAME(XCPU),  NAME(XFSZ),
	NAME(VTALRM), NAME(PROF), NAME(IO),   NAME(PWR),  NAME(WINCH), NAME(SYS),
};

static void add_signal(const struct ss_text_writer *writer, int number)
{
	if ((size_t)number < SS_ARRAY_SIZE(signal_names) && signal_names[number])
		ss_text_writer_add(writer, "%s", signal_names[number]);
	else
		ss_text_writer_add(writer, "%d", number);
}

void ss_text_writer_add_signals(const struct ss_text_writer *writer, uint64_t signals)
{
	int left = __builtin_popcountll(signals);
	int shown = 0;

	if (left == 0)
		ss_text_writer_add(writer, "none");
	for (int number = 1; number <= SIGNAL_COUNT; number++) {
		if (!(signals >> (number - 1) & 1))
			continue;
		if (shown == SIGNALS_SHOWN && left > 1) {
			ss_text_writer_add(writer, " and %d more", left);
			return;
		}
		left--;
		ss_text_writer_add(writer, "%s",
				   shown == 0 ? "" :
				   left == 0  ? " and " :
						", ");
		add_signal(writer, number);
		shown++;
	}
}

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

/* "10.0.0.1:5432" or "[::1]:5432". False if it is no such address. */
static bool write_endpoint(const struct ss_socket_address *address,
			   char text[static ENDPOINT_SIZE])
{
	const uint8_t *ipv4 = ipv4_of(address);
	char host[INET6_ADDRSTRLEN];

	if ((!ipv4 && address->size != 16) ||
	    !inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? ipv4 : address->bytes, host,
		       sizeof(host)))
		return false;
	(void)snprintf(text, ENDPOINT_SIZE, ipv4 ? "%s:%u" : "[%s]:%u", host,
		       address->port); /* it fits */
	return true;
}

/* Writes "127.0.0.1:80", "[::1]:80", "*:80". */
static void descriptor_text_write_address(const struct ss_text_writer *w,
					  const struct ss_socket_address *address)
{
	static const uint8_t zeros[16];
	const uint8_t *ipv4 = ipv4_of(address);
	char text[ENDPOINT_SIZE];

	if (memcmp(ipv4 ? ipv4 : address->bytes, zeros, ipv4 ? 4 : 16) == 0)
		ss_text_writer_add(w, "*:%u", address->port);
	else if (write_endpoint(address, text))
		ss_text_writer_add(w, "%s", text);
}

static const char *tcp_state(unsigned state)
{
	static const char *const names[] = {
		[TCP_ESTABLISHED] = "established",
		[TCP_SYN_SENT] = "connecting",
		[TCP_SYN_RECV] = "being connected",
		[TCP_FIN_WAIT1] = "closing",
		[TCP_FIN_WAIT2] = "closed at this end",
		[TCP_TIME_WAIT] = "closed",
		[TCP_CLOSE] = "not connected",
		[TCP_CLOSE_WAIT] = "closed by the peer",
		[TCP_LAST_ACK] = "closing",
		[TCP_LISTEN] = "listening",
		[TCP_CLOSING] = "closing",
	};

	return state < SS_ARRAY_SIZE(names) && names[state] ? names[state] :
							      "unknown state";
}

static void write_peers(const struct ss_text_writer *w, const struct ss_descriptor *d,
			const char *before)
{
	for (size_t i = 0; i < d->peer_count; i++) {
		ss_text_writer_add(w, "%s", i ? ", " : before);
		if (d->peers[i].same)
			ss_text_writer_add(w, "the same process");
		else
			ss_text_writer_add_id(w, d->peers[i].pid, d->peers[i].name);
	}
	if (d->peers_incomplete && d->peer_count)
		ss_text_writer_add(w, ", perhaps others");
}

static void write_inet(const struct ss_text_writer *w, const struct ss_descriptor *d)
{
	bool connected = d->remote.port != 0;

	ss_text_writer_add(w, "%s ", d->protocol);
	if (d->listening) {
		ss_text_writer_add(w, "socket listening on ");
		descriptor_text_write_address(w, &d->local);
		return;
	}
	ss_text_writer_add(w, connected ? "connection " : "socket ");
	descriptor_text_write_address(w, &d->local);
	if (connected) {
		ss_text_writer_add(w, " to ");
		descriptor_text_write_address(w, &d->remote);
	}
	write_peers(w, d, " of ");
	if (d->tcp_state)
		ss_text_writer_add(w, " (%s)", tcp_state(d->tcp_state));
}

static void write_unix(const struct ss_text_writer *w, const struct ss_descriptor *d)
{
	const char *name = d->path ? d->path : d->peer_path;

	ss_text_writer_add(w, d->listening ? "UNIX socket listening on " : "UNIX socket");
	if (d->listening)
		ss_text_writer_add_string(w, name ? name : "no name");
	else if (name) {
		ss_text_writer_add(w, " ");
		ss_text_writer_add_string(w, name);
	}
	if (!d->listening)
		write_peers(w, d, ", connected to ");
}

static void write_socket(const struct ss_text_writer *w, const struct ss_descriptor *d)
{
	if (!d->protocol)
		ss_text_writer_add(w, "socket");
	else if (strncmp(d->protocol, "UNIX", strlen("UNIX")) == 0)
		write_unix(w, d);
	else if (d->local.size)
		write_inet(w, d);
	else
		ss_text_writer_add(w, "%s socket", d->protocol);
}

static void write_pipe(const struct ss_text_writer *w, const struct ss_descriptor *d)
{
	int access = d->flags & O_ACCMODE;

	ss_text_writer_add(w, "pipe");
	if (d->name && d->name[0] == '/') {
		ss_text_writer_add(w, " ");
		ss_text_writer_add_string(w, d->name);
	}
	if (d->peer_count == 0 && d->peers_searched && !d->peers_incomplete)
		ss_text_writer_add(w, ", other end not open in any process");
	write_peers(w, d,
		    access == O_RDONLY ? ", written by " :
		    access == O_WRONLY ? ", read by " :
					 ", also open in ");
}

static void write_timer(const struct ss_text_writer *w, const struct ss_descriptor *d)
{
	ss_text_writer_add(w, "timerfd");
	if (!d->timer_known)
		return;
	if (d->timer_left_ns == 0 && d->timer_interval_ns == 0) {
		ss_text_writer_add(w, ", not armed");
		return;
	}
	ss_text_writer_add(w, ", ");
	ss_text_writer_add_duration(w, d->timer_left_ns);
	ss_text_writer_add(w, " left");
	if (d->timer_interval_ns == 0)
		return;
	ss_text_writer_add(w, ", then every ");
	ss_text_writer_add_duration(w, d->timer_interval_ns);
}

void ss_descriptor_text_write(const struct ss_text_writer *w,
			      const struct ss_descriptor *d)
{
	switch (d->kind) {
	case SS_FD_PIPE:
		write_pipe(w, d);
		break;
	case SS_FD_SOCKET:
		write_socket(w, d);
		break;
	case SS_FD_TIMERFD:
		write_timer(w, d);
		break;
	case SS_FD_PIDFD:
		ss_text_writer_add(w, "pidfd");
		if (d->process_ended)
			ss_text_writer_add(w, " of a process that has ended");
		write_peers(w, d, " of ");
		break;
	case SS_FD_MEMFD:
		ss_text_writer_add(w, "memfd ");
		ss_text_writer_add_string(w, d->name);
		break;
	case SS_FD_EVENTFD:
		ss_text_writer_add(w, "eventfd");
		break;
	case SS_FD_SIGNALFD:
		ss_text_writer_add(w, "signalfd for ");
		ss_text_writer_add_signals(w, d->signals);
		break;
	case SS_FD_INOTIFY:
		ss_text_writer_add(w, "inotify with %u watch%s", d->inotify_watches,
				   d->inotify_watches == 1 ? "" : "es");
		break;
	case SS_FD_EPOLL:
		ss_text_writer_add(w, "epoll of %s%zu fd%s",
				   d->watches_incomplete ? "at least " : "",
				   d->watch_count, d->watch_count == 1 ? "" : "s");
		break;
	case SS_FD_IO_URING:
		ss_text_writer_add(w, "io_uring");
		break;
	case SS_FD_TTY:
		ss_text_writer_add(w, "terminal ");
		ss_text_writer_add_string(w, d->name);
		break;
	default:
		ss_text_writer_add_string(w, d->name);
	}
}

static bool is_loopback(const struct ss_socket_address *address)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	const uint8_t *ipv4 = ipv4_of(address);

	return ipv4 ? ipv4[0] == 127 :
		      address->size == 16 &&
			       memcmp(address->bytes, loopback, sizeof(loopback)) == 0;
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
	    d->local.port == 0 || d->remote.port == 0 ||
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
