/*
 * UNIX sockets of this process: found one by one, and in a list of all.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <linux/netlink.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/objects.h"

enum { PAIRS = 6 };

static int open_diag(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

static uint64_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void add(struct ss_facts *facts, int fd)
{
	struct ss_fd_fact *fact = ss_vector_push(&facts->fds);

	assert_non_null(fact);
	fact->fd = fd;
	fact->kind = SS_FD_SOCKET;
	fact->inode = inode_of(fd);
	fact->socket.protocol = "UNIX";
}

/* Binds to an abstract name that no other test has. */
static void bind_abstract(int fd, const char *name, struct sockaddr_un *address,
			  socklen_t *size)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
			      "test-unix-diag-%s-%d", name, getpid());
	*size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	assert_int_equal(bind(fd, (const struct sockaddr *)address, *size), 0);
}

struct sockets {
	int pairs[PAIRS][2];
	int listener;
	int client;
	int accepted;
	int receiver; /* datagrams */
	int senders[2];
};

static void open_sockets(struct sockets *s)
{
	struct sockaddr_un address;
	socklen_t size;

	for (int i = 0; i < PAIRS; i++)
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s->pairs[i]), 0);
	s->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	bind_abstract(s->listener, "listener", &address, &size);
	assert_int_equal(listen(s->listener, 1), 0);
	s->client = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(s->client, (const struct sockaddr *)&address, size), 0);
	s->accepted = accept(s->listener, NULL, NULL);
	assert_true(s->accepted >= 0);
	s->receiver = socket(AF_UNIX, SOCK_DGRAM, 0);
	bind_abstract(s->receiver, "receiver", &address, &size);
	for (int i = 0; i < 2; i++) {
		struct sockaddr_un own;
		socklen_t own_size;
		s->senders[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
		bind_abstract(s->senders[i], i ? "second" : "first", &own, &own_size);
		assert_int_equal(
			connect(s->senders[i], (const struct sockaddr *)&address, size),
			0);
	}
}

static void close_sockets(const struct sockets *s)
{
	for (int i = 0; i < PAIRS; i++) {
		(void)close(s->pairs[i][0]);
		(void)close(s->pairs[i][1]);
	}
	(void)close(s->listener);
	(void)close(s->client);
	(void)close(s->accepted);
	(void)close(s->receiver);
	(void)close(s->senders[0]);
	(void)close(s->senders[1]);
}

static const struct ss_socket_fact *find(const struct ss_facts *facts, int fd)
{
	const struct ss_fd_fact *fact = ss_facts_find_fd(facts, fd);

	assert_non_null(fact);
	return &fact->socket;
}

static void expect_name(const char *name, const char *part)
{
	if (!name || name[0] != '@' || !strstr(name, part))
		fail_msg("the name is \"%s\", without \"%s\"", name ? name : "(none)",
			 part);
}

static void check(const struct ss_facts *facts, const struct sockets *s)
{
	for (int i = 0; i < PAIRS; i++) {
		const struct ss_socket_fact *pair = find(facts, s->pairs[i][0]);
		assert_true(pair->found && !pair->listens && !pair->path &&
			    !pair->peer_path);
		assert_int_equal(pair->peer_inode, inode_of(s->pairs[i][1]));
	}
	assert_true(find(facts, s->listener)->listens);
	expect_name(find(facts, s->listener)->path, "listener");
	assert_int_equal(find(facts, s->listener)->peer_inode, 0);
	assert_int_equal(find(facts, s->client)->peer_inode, inode_of(s->accepted));
	expect_name(find(facts, s->client)->peer_path, "listener");
	assert_null(find(facts, s->client)->path);
	/* Two sockets with names have it as their peer, but it has none. */
	expect_name(find(facts, s->receiver)->path, "receiver");
	assert_int_equal(find(facts, s->receiver)->peer_inode, 0);
	assert_null(find(facts, s->receiver)->peer_path);
	/* The other one has no peer: it is not the other end of a connection. */
	expect_name(find(facts, s->senders[1])->peer_path, "receiver");
	assert_int_equal(find(facts, s->senders[1])->peer_inode, inode_of(s->receiver));
}

static void read_all(const struct sockets *s, bool list)
{
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts = ss_facts_new();
	_cleanup_close_ int diag_fd = open_diag();
	_cleanup_close_ int list_fd = list ? open_diag() : -1;

	assert_non_null(facts);
	for (int i = 0; i < PAIRS; i++)
		add(facts, s->pairs[i][0]);
	add(facts, s->listener);
	add(facts, s->client);
	add(facts, s->receiver);
	add(facts, s->senders[1]);
	assert_true(ss_unix_diag_prefers_list(facts));
	ss_unix_diag_read(facts, diag_fd, list_fd);
	check(facts, s);
}

TEST(test_same)
{
	struct sockets s;
	_cleanup_close_ int diag_fd = open_diag();

	if (diag_fd < 0)
		skip();
	open_sockets(&s);
	read_all(&s, false);
	read_all(&s, true);
	close_sockets(&s);
}

/* The name of a file may begin like an abstract one is shown. */
TEST(test_file_name)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "@file" };
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts = ss_facts_new();
	_cleanup_close_ int diag_fd = open_diag();
	_cleanup_close_ int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char directory[] = "/tmp/test-unix-diag-XXXXXX";

	if (diag_fd < 0)
		skip();
	assert_non_null(facts);
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chdir(directory), 0);
	int bound = bind(fd, (const struct sockaddr *)&address, sizeof(address));
	(void)unlink(address.sun_path);
	assert_int_equal(fchdir(before), 0);
	assert_int_equal(rmdir(directory), 0);
	assert_int_equal(bound, 0);
	add(facts, fd);
	ss_unix_diag_read(facts, diag_fd, -1);
	assert_true(find(facts, fd)->found);
	assert_string_equal(find(facts, fd)->path, "@file");
}

/* Two descriptors of one socket, and a socket that has ended. */
TEST(test_duplicates)
{
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts = ss_facts_new();
	_cleanup_close_ int diag_fd = open_diag();
	_cleanup_close_ int list_fd = open_diag();
	struct sockets s;

	if (diag_fd < 0 || list_fd < 0)
		skip();
	assert_non_null(facts);
	open_sockets(&s);
	add(facts, s.pairs[0][0]);
	add(facts, s.pairs[0][1]);
	struct ss_fd_fact *again = ss_vector_push(&facts->fds);
	assert_non_null(again);
	*again = facts->fds.items[0];
	again->fd = 10000;
	struct ss_fd_fact *gone = ss_vector_push(&facts->fds);
	assert_non_null(gone);
	*gone = facts->fds.items[0];
	gone->fd = 10001;
	gone->inode = UINT32_MAX;
	assert_false(ss_unix_diag_prefers_list(facts));
	ss_unix_diag_read(facts, diag_fd, list_fd);
	assert_int_equal(find(facts, s.pairs[0][0])->peer_inode, inode_of(s.pairs[0][1]));
	assert_int_equal(find(facts, s.pairs[0][1])->peer_inode, inode_of(s.pairs[0][0]));
	assert_int_equal(find(facts, 10000)->peer_inode, inode_of(s.pairs[0][1]));
	assert_false(find(facts, 10001)->found);
	close_sockets(&s);
}
