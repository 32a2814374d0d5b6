#include "objects/connections.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>

#include "model/call.h"

/* The descriptors for which threads wait that have not run. */
struct waited {
	SS_VECTOR(int) fds;
};

static void add(struct waited *waited, int fd)
{
	int *slot = ss_vector_push(&waited->fds);

	if (slot)
		*slot = fd;
}

static void add_poll(struct waited *waited, const struct ss_memory_fact *memory)
{
	size_t count = memory->size / sizeof(struct pollfd);

	for (size_t i = 0; i < count; i++) {
		struct pollfd item;
		memcpy(&item, memory->bytes + i * sizeof(item), sizeof(item));
		add(waited, item.fd);
	}
}

static void add_thread(struct waited *waited, const struct ss_thread_facts *thread)
{
	const struct ss_call *call = ss_call_find(thread->call.id);

	if (!call)
		return;
	if (call->kind == SS_WAIT_POLL)
		add_poll(waited, &thread->memory[0]);
	else if (call->fd)
		add(waited, (int)(uint32_t)thread->call.args[call->fd - 1]);
}

static int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a;
	int y = *(const int *)b;

	return (x > y) - (x < y);
}

static bool is_waited_for(const struct waited *waited, int fd)
{
	return waited->fds.count && bsearch(&fd, waited->fds.items, waited->fds.count,
					    sizeof(int), compare_ints);
}

/* Whether it stays as it is until a thread that waits for it wakes up. Another kind of socket
   can be connected to something else at any time. */
static bool is_lasting(const struct ss_socket_fact *socket)
{
	const char *protocol = socket->protocol ? socket->protocol : "";

	if (!socket->found)
		return false;
	if (strcmp(protocol, "UNIX-STREAM") == 0)
		return socket->listens || socket->peer_inode != 0;
	return strncmp(protocol, "TCP", 3) == 0 &&
	       (socket->inet.state == TCP_ESTABLISHED ||
		socket->inet.state == TCP_LISTEN);
}

static const char *keep_string(struct ss_facts *facts, const char *string)
{
	return string ? ss_intern_string(facts->strings, string) : NULL;
}

/* Whether both are of the same socket. */
static bool is_same(const struct ss_fd_fact *now, const struct ss_fd_fact *then)
{
	return then && now->kind == SS_FD_SOCKET && then->kind == SS_FD_SOCKET &&
	       now->inode != 0 && now->inode == then->inode && now->socket.protocol &&
	       then->socket.protocol &&
	       strcmp(now->socket.protocol, then->socket.protocol) == 0;
}

void ss_connections_keep(struct ss_facts *facts, const struct ss_capture *capture,
			 const struct ss_facts *previous)
{
	struct waited waited = {};

	for (size_t i = 0; i < facts->threads.count; i++)
		if (capture->threads.items[i].not_run)
			add_thread(&waited, &facts->threads.items[i]);
	if (waited.fds.count > 1)
		qsort(waited.fds.items, waited.fds.count, sizeof(int), compare_ints);
	for (size_t i = 0; i < facts->fds.count; i++) {
		struct ss_fd_fact *fact = &facts->fds.items[i];
		const struct ss_fd_fact *then = ss_facts_find_fd(previous, fact->fd);
		if (!is_waited_for(&waited, fact->fd) || !is_same(fact, then) ||
		    !is_lasting(&then->socket))
			continue;
		const char *protocol = fact->socket.protocol;
		fact->socket = then->socket;
		fact->socket.protocol = protocol;
		fact->socket.path = keep_string(facts, then->socket.path);
		fact->socket.peer_path = keep_string(facts, then->socket.peer_path);
	}
	ss_vector_free(&waited.fds);
}
