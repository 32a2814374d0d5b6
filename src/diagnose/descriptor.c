#include "diagnose/descriptor.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <string.h>

#include "diagnose/duration.h"
#include "diagnose/signals.h"

void ss_descriptor_write_process(const struct ss_facts *facts,
				 const struct ss_process_fact *process,
				 struct ss_words *words)
{
	if (process->pid == facts->pid)
		ss_words_add(words, facts->of_another ? "itself" : "this process");
	else if (process->name)
		ss_words_add(words, "%d (%s)", process->pid, process->name);
	else
		ss_words_add(words, "%d", process->pid);
}

void ss_descriptor_write_address(const struct ss_net_address *address,
				 struct ss_words *words)
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
	ss_words_add(words, v6 && text[0] != '*' ? "[%s]:%u" : "%s:%u", text,
		     address->port);
}

static const char *tcp_state(unsigned state)
{
	static const char *const names[] = {
		[TCP_ESTABLISHED] = "established",
		[TCP_SYN_SENT] = "connecting",
		[TCP_SYN_RECV] = "being connected",
		[TCP_FIN_WAIT1] = "closing",
		[TCP_FIN_WAIT2] = "closed by us",
		[TCP_TIME_WAIT] = "closed",
		[TCP_CLOSE] = "not connected",
		[TCP_CLOSE_WAIT] = "closed by the peer",
		[TCP_LAST_ACK] = "closing",
		[TCP_LISTEN] = "listening",
		[TCP_CLOSING] = "closing",
	};

	return state < SS_ARRAY_SIZE(names) && names[state] ? names[state] :
							      "in a state not known";
}

static void write_inet(const struct ss_socket_fact *socket, struct ss_words *words)
{
	const struct ss_net_inet *inet = &socket->inet;
	bool tcp = strncmp(socket->protocol, "TCP", 3) == 0 ||
		   strcmp(socket->protocol, "MPTCP") == 0;
	static const struct ss_net_address none;
	bool connected = inet->remote.port != none.port;

	ss_words_add(words, "%s ", socket->protocol);
	if (tcp && inet->state == TCP_LISTEN) {
		ss_words_add(words, "socket that listens on ");
		ss_descriptor_write_address(&inet->local, words);
		return;
	}
	ss_words_add(words, connected ? "connection " : "socket ");
	ss_descriptor_write_address(&inet->local, words);
	if (connected) {
		ss_words_add(words, " to ");
		ss_descriptor_write_address(&inet->remote, words);
	}
	if (tcp)
		ss_words_add(words, " (%s)", tcp_state(inet->state));
}

static void write_holders(const struct ss_facts *facts, const struct ss_fd_fact *fd,
			  struct ss_words *words)
{
	for (size_t i = 0; i < fd->holder_count; i++) {
		ss_words_add(words, "%s", i ? ", " : "");
		ss_descriptor_write_process(facts, &fd->holders[i], words);
	}
	if (fd->holders_cut && fd->holder_count)
		ss_words_add(words, ", perhaps others");
}

static void write_unix(const struct ss_facts *facts, const struct ss_fd_fact *fd,
		       struct ss_words *words)
{
	const struct ss_socket_fact *socket = &fd->socket;
	const char *name = socket->path ? socket->path : socket->peer_path;

	if (socket->listens) {
		ss_words_add(words, "UNIX socket that listens on %s",
			     name ? name : "no name");
		return;
	}
	ss_words_add(words, "UNIX socket");
	if (name)
		ss_words_add(words, " %s", name);
	if (fd->holder_count)
		ss_words_add(words, ", connected to ");
	write_holders(facts, fd, words);
}

static void write_socket(const struct ss_facts *facts, const struct ss_fd_fact *fd,
			 struct ss_words *words)
{
	const struct ss_socket_fact *socket = &fd->socket;

	if (!socket->protocol)
		ss_words_add(words, "socket");
	else if (strncmp(socket->protocol, "UNIX", 4) == 0)
		write_unix(facts, fd, words);
	else if (socket->found)
		write_inet(socket, words);
	else
		ss_words_add(words, "%s socket", socket->protocol);
}

static void write_pipe(const struct ss_facts *facts, const struct ss_fd_fact *fd,
		       struct ss_words *words)
{
	enum { ACCESS = 3, READ = 0, WRITE = 1 }; /* of open(2) */
	unsigned access = fd->info.flags & ACCESS;

	ss_words_add(words, "pipe");
	if (fd->name && fd->name[0] == '/')
		ss_words_add(words, " %s", fd->name);
	if (fd->holder_count == 0) {
		if (fd->followed && !fd->holders_cut)
			ss_words_add(words, ", whose other end nobody has open");
		return;
	}
	ss_words_add(words, access == READ  ? ", written by " :
			    access == WRITE ? ", read by " :
					      ", also of ");
	write_holders(facts, fd, words);
}

static void write_timer(const struct ss_fdinfo *info, struct ss_words *words)
{
	ss_words_add(words, "timerfd");
	if (!info->has_timer)
		return;
	if (info->left_ns == 0 && info->interval_ns == 0) {
		ss_words_add(words, " that is not armed");
		return;
	}
	ss_words_add(words, ", ");
	ss_duration_write(info->left_ns, words);
	ss_words_add(words, " left");
	if (info->interval_ns == 0)
		return;
	ss_words_add(words, ", then every ");
	ss_duration_write(info->interval_ns, words);
}

static void write_pidfd(const struct ss_facts *facts, const struct ss_fd_fact *fd,
			struct ss_words *words)
{
	ss_words_add(words, "pidfd");
	if (!fd->info.has_pid)
		return;
	if (fd->info.pid < 0)
		ss_words_add(words, " of a process that has ended");
	else if (fd->holder_count)
		ss_words_add(words, " of ");
	write_holders(facts, fd, words);
}

/* "/memfd:NAME (deleted)" */
static void write_memfd(const struct ss_fd_fact *fd, struct ss_words *words)
{
	static const char prefix[] = "/memfd:";
	static const char suffix[] = " (deleted)";
	const char *name = fd->name + strlen(prefix);
	size_t size = strlen(name);

	if (size >= strlen(suffix) && strcmp(name + size - strlen(suffix), suffix) == 0)
		size -= strlen(suffix);
	ss_words_add(words, "memfd %.*s", (int)size, name);
}

static void write_kernel(const struct ss_fd_fact *fd, struct ss_words *words)
{
	const struct ss_fdinfo *info = &fd->info;

	switch (fd->kind) {
	case SS_FD_EVENTFD:
		ss_words_add(words, "eventfd");
		break;
	case SS_FD_SIGNALFD:
		ss_words_add(words, "signalfd for ");
		ss_signals_write(info->mask, words);
		break;
	case SS_FD_INOTIFY:
		ss_words_add(words, "inotify with %u watch%s", info->watches,
			     info->watches == 1 ? "" : "es");
		break;
	case SS_FD_EPOLL:
		ss_words_add(words, "epoll of %zu%s", fd->watch_count,
			     fd->watches_cut ? " or more" : "");
		break;
	case SS_FD_IO_URING:
		ss_words_add(words, "io_uring");
		break;
	case SS_FD_TTY:
		ss_words_add(words, "terminal %s", fd->name);
		break;
	default:
		ss_words_add(words, "%s", fd->name);
	}
}

void ss_descriptor_write(const struct ss_facts *facts, const struct ss_fd_fact *fd,
			 struct ss_words *words)
{
	if (fd->kind == SS_FD_UNKNOWN || !fd->name)
		return;
	switch (fd->kind) {
	case SS_FD_PIPE:
		write_pipe(facts, fd, words);
		return;
	case SS_FD_SOCKET:
		write_socket(facts, fd, words);
		return;
	case SS_FD_TIMERFD:
		write_timer(&fd->info, words);
		return;
	case SS_FD_PIDFD:
		write_pidfd(facts, fd, words);
		return;
	case SS_FD_MEMFD:
		write_memfd(fd, words);
		return;
	default:
		write_kernel(fd, words);
	}
}

void ss_descriptor_describe(struct ss_diagnosis *d, int fd)
{
	_cleanup_words_ struct ss_words words = {};
	const struct ss_fd_fact *fact = ss_facts_find_fd(d->snapshot->facts, fd);

	d->wait->fd = fd;
	ss_words_add(&d->text, "fd %d", fd);
	if (!fact || !d->facts->stayed)
		return;
	ss_descriptor_write(d->snapshot->facts, fact, &words);
	if (words.size == 0)
		return;
	ss_words_add(&d->text, ", %s", words.bytes);
	d->wait->object = ss_diagnosis_keep(d, words.bytes);
}
