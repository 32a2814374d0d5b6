#include "cli/file_requests.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"

/* The first character of a key. */
enum kind { KIND_PATH = 'P', KIND_MODULE = 'M', KIND_DEBUG = 'D' };

/* More than a session keeps modules, with two files each. The limit of open files is
   usually lower. */
enum { REQUESTS_MAX = 1 << 14, FIRST_FD = STDERR_FILENO + 1 };

static char *make_key(enum kind kind, const char *name)
{
	char *key = NULL;

	return asprintf(&key, "%c%s", kind, name) < 0 ? NULL : key;
}

static bool is_pending(const struct ss_file_requests *requests, enum kind kind,
		       const char *name)
{
	for (size_t i = 0; i < requests->pending.count; i++) {
		const char *key = requests->pending.items[i];
		if (key[0] == (char)kind && strcmp(key + 1, name) == 0)
			return true;
	}
	return false;
}

static void add_pending(struct ss_file_requests *requests, char *key)
{
	_cleanup_free_ char *owned = key;
	char **slot = requests->pending.count < REQUESTS_MAX ?
			      ss_vector_push(&requests->pending) :
			      NULL;
	if (slot)
		*slot = take_ptr(owned);
}

/* Returns a duplicate, since the library closes it. */
static int get(struct ss_file_requests *requests, enum kind kind, const char *name)
{
	_cleanup_free_ char *key = make_key(kind, name);

	if (!key)
		return -1;
	for (size_t i = 0; i < requests->answered.count; i++) {
		const struct ss_file_request *request = &requests->answered.items[i];
		if (strcmp(request->key, key) != 0)
			continue;
		return request->fd < 0 ? -1 :
					 fcntl(request->fd, F_DUPFD_CLOEXEC, FIRST_FD);
	}
	/* The module itself is not needed if its debug file is found. */
	if (!is_pending(requests, kind, name) &&
	    !(kind == KIND_MODULE && is_pending(requests, KIND_DEBUG, name)))
		add_pending(requests, take_ptr(key));
	return -1;
}

int ss_file_requests_find(void *data, const char *build_id, bool debug)
{
	return get(data, debug ? KIND_DEBUG : KIND_MODULE, build_id);
}

int ss_file_requests_open(void *data, const char *path)
{
	return get(data, KIND_PATH, path);
}

struct ss_error *ss_file_requests_send(const struct ss_file_requests *requests,
				       const struct ss_sandbox_attempt *attempt,
				       bool *ret)
{
	struct ss_error *error = NULL;

	*ret = attempt->may_request && requests->pending.count > 0;
	for (size_t i = 0; *ret && i < requests->pending.count && !error; i++) {
		const char *key = requests->pending.items[i];
		error = ss_sandbox_request(attempt, key, strlen(key) + 1);
	}
	return error;
}

/* The target may control the child: hand over ELF files only. */
static bool is_elf(int fd)
{
	static const char magic[] = { 0x7f, 'E', 'L', 'F' };
	char bytes[sizeof(magic)];
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       ss_io_pread(fd, bytes, sizeof(bytes), 0) == sizeof(bytes) &&
	       memcmp(bytes, magic, sizeof(magic)) == 0;
}

/* The child chose the path. */
static int open_path(const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -1 : ss_io_reopen(fd);
}

static int open_key(const struct ss_file_requests *requests, const char *key)
{
	const char *name = key + 1;
	bool server = requests->debuginfod && name[strspn(name, "0123456789abcdef")] == 0;
	_cleanup_close_ int fd = -1;

	switch (key[0]) {
	case KIND_PATH:
		fd = open_path(name);
		break;
	case KIND_MODULE:
	case KIND_DEBUG:
		if (server)
			fd = ss_debuginfod_find(requests->debuginfod, name,
						key[0] == KIND_DEBUG);
		break;
	default:
		break;
	}
	return fd >= 0 && is_elf(fd) ? take_fd(fd) : -1;
}

static void answer(struct ss_file_requests *requests, const char *key)
{
	struct ss_file_request *slot = requests->answered.count < REQUESTS_MAX ?
					       ss_vector_push(&requests->answered) :
					       NULL;

	if (!slot)
		return;
	*slot = (struct ss_file_request){ .key = strdup(key), .fd = -1 };
	if (slot->key)
		slot->fd = open_key(requests, key);
	else
		requests->answered.count--;
}

void ss_file_requests_answer(struct ss_file_requests *requests, const void *bytes,
			     size_t size)
{
	const char *at = bytes;
	const char *end = at + size;

	while (at < end) {
		size_t length = strnlen(at, (size_t)(end - at));
		if (at + length == end)
			break; /* not terminated */
		answer(requests, at);
		at += length + 1;
	}
}

void ss_file_requests_deinit(struct ss_file_requests *requests)
{
	for (size_t i = 0; i < requests->answered.count; i++) {
		free(requests->answered.items[i].key);
		close_cleanup(&requests->answered.items[i].fd);
	}
	for (size_t i = 0; i < requests->pending.count; i++)
		free(requests->pending.items[i]);
	ss_vector_free(&requests->answered);
	ss_vector_free(&requests->pending);
}
