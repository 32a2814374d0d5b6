#include "output/descriptor_text.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/cleanup.h"

void ss_descriptor_text_write_address(const struct ss_text_writer *w,
				      const struct ss_socket_address *address)
{
	static const uint8_t zeros[16];
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char text[INET6_ADDRSTRLEN] = "";
	const uint8_t *bytes = address->bytes;
	bool v6 = address->size == 16;

	if (v6 && memcmp(bytes, mapped, sizeof(mapped)) == 0) {
		bytes += sizeof(mapped);
		v6 = false;
	}
	if (memcmp(bytes, zeros, v6 ? 16 : 4) == 0)
		(void)strcpy(text, "*");
	else if (!inet_ntop(v6 ? AF_INET6 : AF_INET, bytes, text, sizeof(text)))
		return;
	ss_text_writer_add(w, v6 && text[0] != '*' ? "[%s]:%u" : "%s:%u", text,
			   address->port);
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

static void write_inet(const struct ss_text_writer *w, const struct ss_descriptor *d)
{
	bool connected = d->remote.port != 0;

	ss_text_writer_add(w, "%s ", d->protocol);
	if (d->listening) {
		ss_text_writer_add(w, "socket listening on ");
		ss_descriptor_text_write_address(w, &d->local);
		return;
	}
	ss_text_writer_add(w, connected ? "connection " : "socket ");
	ss_descriptor_text_write_address(w, &d->local);
	if (connected) {
		ss_text_writer_add(w, " to ");
		ss_descriptor_text_write_address(w, &d->remote);
	}
	if (d->tcp_state)
		ss_text_writer_add(w, " (%s)", tcp_state(d->tcp_state));
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
