#include "diagnose/descriptor.h"

#include <string.h>

struct ss_related_process ss_related_process(const struct ss_facts *facts,
					     const struct ss_process_fact *process)
{
	return (struct ss_related_process){ .pid = process->pid,
					    .name = process->name,
					    .state = process->state ? process->state :
								      '?',
					    .same = process->pid == facts->pid };
}

static struct ss_socket_address address_of(const struct ss_net_address *from)
{
	struct ss_socket_address address = { .size = from->size, .port = from->port };

	memcpy(address.bytes, from->bytes, sizeof(address.bytes));
	return address;
}

static void set_socket(const struct ss_socket_fact *socket, struct ss_descriptor *ret)
{
	enum { TCP_LISTEN_STATE = 10 }; /* TCP_LISTEN of netinet/tcp.h */

	ret->protocol = socket->protocol;
	ret->path = socket->path;
	ret->peer_path = socket->peer_path;
	ret->listening = socket->listens;
	if (!socket->found || !socket->protocol ||
	    strncmp(socket->protocol, "UNIX", strlen("UNIX")) == 0)
		return;
	ret->local = address_of(&socket->inet.local);
	ret->remote = address_of(&socket->inet.remote);
	if (strncmp(socket->protocol, "TCP", strlen("TCP")) != 0 &&
	    strcmp(socket->protocol, "MPTCP") != 0)
		return;
	ret->tcp_state = socket->inet.state;
	ret->listening = ret->tcp_state == TCP_LISTEN_STATE;
}

static bool set_peers(struct ss_snapshot *snapshot, const struct ss_fd_fact *fact,
		      struct ss_descriptor *ret)
{
	ret->peers_searched = fact->resolve_peers;
	ret->peers_incomplete = fact->holders_truncated;
	if (fact->holder_count == 0)
		return true;
	struct ss_related_process *peers =
		ss_snapshot_alloc(snapshot, fact->holder_count, sizeof(*peers));
	for (size_t i = 0; peers && i < fact->holder_count; i++)
		peers[i] = ss_related_process(snapshot->facts, &fact->holders[i]);
	ret->peers = peers;
	ret->peer_count = peers ? fact->holder_count : 0;
	return peers != NULL;
}

static bool set_watches(struct ss_snapshot *snapshot, const struct ss_fd_fact *fact,
			struct ss_descriptor *ret)
{
	ret->watches_incomplete = fact->watches_truncated;
	if (fact->watch_count == 0)
		return true;
	struct ss_watched_fd *watches =
		ss_snapshot_alloc(snapshot, fact->watch_count, sizeof(*watches));
	for (size_t i = 0; watches && i < fact->watch_count; i++) {
		int fd = fact->watches[i].fd;
		watches[i] = (struct ss_watched_fd){
			.fd = fd, .what = ss_descriptor_find(snapshot, fd)
		};
	}
	ret->watches = watches;
	ret->watch_count = watches ? fact->watch_count : 0;
	return watches != NULL;
}

/* "/memfd:NAME (deleted)" */
static const char *memfd_name(struct ss_snapshot *snapshot, const char *name)
{
	static const char prefix[] = "/memfd:";
	static const char suffix[] = " (deleted)";
	size_t size = strlen(name);

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return name;
	name += strlen(prefix);
	size -= strlen(prefix);
	if (size >= strlen(suffix) && strcmp(name + size - strlen(suffix), suffix) == 0)
		size -= strlen(suffix);
	return ss_intern_bytes(snapshot->strings, name, size);
}

static struct ss_descriptor simple_part(struct ss_snapshot *snapshot,
					const struct ss_fd_fact *fact)
{
	const struct ss_fdinfo *info = &fact->info;
	bool memfd = fact->kind == SS_FD_MEMFD && fact->name;

	return (struct ss_descriptor){
		.fd = fact->fd,
		.kind = fact->name ? fact->kind : SS_FD_UNKNOWN,
		.name = memfd ? memfd_name(snapshot, fact->name) : fact->name,
		.flags = (int)info->flags,
		.process_ended = info->has_pid && info->pid < 0,
		.timer_known = info->has_timer,
		.timer_left_ns = info->left_ns,
		.timer_interval_ns = info->interval_ns,
		.signals = info->mask,
		.inotify_watches = info->watches,
	};
}

bool ss_descriptors_init(struct ss_snapshot *snapshot)
{
	const struct ss_facts *facts = snapshot->facts;
	size_t count = facts ? facts->fds.count : 0;
	bool ok = true;

	snapshot->descriptors = calloc(count + 1, sizeof(*snapshot->descriptors));
	if (!snapshot->descriptors)
		return false;
	for (size_t i = 0; i < count; i++)
		snapshot->descriptors[i] = simple_part(snapshot, &facts->fds.items[i]);
	snapshot->descriptor_count = count;
	for (size_t i = 0; ok && i < count; i++) {
		const struct ss_fd_fact *fact = &facts->fds.items[i];
		struct ss_descriptor *descriptor = &snapshot->descriptors[i];
		if (fact->kind == SS_FD_SOCKET)
			set_socket(&fact->socket, descriptor);
		ok = set_peers(snapshot, fact, descriptor) &&
		     set_watches(snapshot, fact, descriptor);
	}
	return ok;
}

const struct ss_descriptor *ss_descriptor_find(const struct ss_snapshot *snapshot, int fd)
{
	const struct ss_fd_fact *fact = ss_facts_find_fd(snapshot->facts, fd);

	return fact ? &snapshot->descriptors[fact - snapshot->facts->fds.items] : NULL;
}

void ss_descriptor_fill(struct ss_diagnosis *d, int fd)
{
	const struct ss_descriptor *descriptor = ss_descriptor_find(d->snapshot, fd);

	d->wait->fd = fd;
	if (d->facts->still_in_call && descriptor && descriptor->kind != SS_FD_UNKNOWN)
		d->wait->descriptor = descriptor;
}
