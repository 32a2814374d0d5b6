#include "interpret/interpret.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "data/pipeline.h"
#include "sandbox/sandbox.h"

/* Servers -------------------------------------------------------------------- */

/* In seconds. After a timeout no more requests are sent. */
#define ANSWER_MAX "5"	  /* for the first bytes */
#define DOWNLOAD_MAX "60" /* of one file */
enum { PATIENCE_S = 4 };

/* As in elfutils/debuginfod.h, which is in a package of its own. */
struct debuginfod_client;
typedef struct debuginfod_client *begin_function(void);
typedef void end_function(struct debuginfod_client *client);
typedef int find_function(struct debuginfod_client *client, const unsigned char *build_id,
			  int build_id_size, char **path);

struct ss_debuginfod {
	struct debuginfod_client *client;
	end_function *end;
	find_function *find_debug;
	find_function *find_executable;
	void (*warn)(const char *text);
	bool given_up;
};

void ss_debuginfod_free(struct ss_debuginfod *debuginfod)
{
	if (!debuginfod)
		return;
	if (debuginfod->client)
		debuginfod->end(debuginfod->client);
	/* The library stays loaded: its dependencies do not support unloading. */
	free(debuginfod);
}

/* NULL in the static binary (ld --wrap): there it would need the glibc of the build. */
#pragma weak dlopen

static struct ss_error *load(struct ss_debuginfod *debuginfod)
{
	static const char name[] = "libdebuginfod.so.1";
	begin_function *begin;
	if (!dlopen)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "--debuginfod: this static binary cannot load %s",
				     name),
			"use a dynamically linked stacksnap");
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!library)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "--debuginfod: %s cannot be loaded", name),
			"install it (Debian: libdebuginfod1; Fedora: "
			"elfutils-debuginfod-client)");
	begin = (begin_function *)dlsym(library, "debuginfod_begin");
	debuginfod->end = (end_function *)dlsym(library, "debuginfod_end");
	debuginfod->find_debug =
		(find_function *)dlsym(library, "debuginfod_find_debuginfo");
	debuginfod->find_executable =
		(find_function *)dlsym(library, "debuginfod_find_executable");
	if (begin && debuginfod->end && debuginfod->find_debug &&
	    debuginfod->find_executable)
		debuginfod->client = begin();
	if (!debuginfod->client)
		return ss_error_new(SS_ERROR_INVALID, "--debuginfod: %s cannot be used",
				    name);
	return NULL;
}

struct ss_error *ss_debuginfod_new(void (*warn)(const char *text),
				   struct ss_debuginfod **ret)
{
	_cleanup_(ss_debuginfod_cleanup) struct ss_debuginfod *debuginfod =
		calloc(1, sizeof(*debuginfod));
	const char *servers = getenv("DEBUGINFOD_URLS");

	if (!debuginfod)
		return ss_error_no_memory();
	if (!servers || !*servers)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "--debuginfod: DEBUGINFOD_URLS names no server"),
			"set it, for example: "
			"DEBUGINFOD_URLS=https://debuginfod.debian.net");
	/* keep values that the user has set */
	if (setenv("DEBUGINFOD_TIMEOUT", ANSWER_MAX, 0) != 0 ||
	    setenv("DEBUGINFOD_MAXTIME", DOWNLOAD_MAX, 0) != 0 ||
	    setenv("DEBUGINFOD_RETRY_LIMIT", "0", 0) != 0)
		return ss_error_no_memory();
	debuginfod->warn = warn;
	struct ss_error *error = load(debuginfod);
	if (error)
		return error;
	*ret = take_ptr(debuginfod);
	return NULL;
}

static unsigned digit(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

static int download(struct ss_debuginfod *debuginfod, const char *build_id, bool debug)
{
	find_function *find = debug ? debuginfod->find_debug :
				      debuginfod->find_executable;
	unsigned char bytes[64];
	size_t size = 0;

	for (; build_id[2 * size] && size < sizeof(bytes); size++)
		bytes[size] = (unsigned char)(digit(build_id[2 * size]) << 4 |
					      digit(build_id[2 * size + 1]));
	if (debuginfod->given_up)
		return -1;
	uint64_t begin_ns = ss_now_ns();
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = find(debuginfod->client, bytes, (int)size, &path);
	if (fd < 0 && ss_now_ns() - begin_ns >= PATIENCE_S * SS_NS_PER_SECOND) {
		debuginfod->given_up = true;
		debuginfod->warn("the debuginfod servers do not answer in time; no more "
				 "requests are sent");
	}
	/* The descriptor of a download is open for writing. */
	return fd < 0 || !path ? -1 : open(path, O_RDONLY | O_CLOEXEC);
}

/* Requests ------------------------------------------------------------------- */

/* The first character of a key. */
enum kind {
	KIND_PATH = 'P',
	KIND_SYSROOT = 'R', /* a path below it */
	KIND_MODULE = 'M',
	KIND_DEBUG = 'D',
};

enum {
	/* A file of each module that a session keeps, in a few places where it may be. The
	   limit of open files is usually lower. */
	REQUESTS_MAX = 1 << 14,
	FIRST_FD = STDERR_FILENO + 1,
	BUILD_ID_MAX = 64, /* bytes of a longer one are hardly a build-id */
	CHECK_MS = 60000,
};

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

static int find(void *data, const char *build_id, bool debug)
{
	return get(data, debug ? KIND_DEBUG : KIND_MODULE, build_id);
}

static int open_file(void *data, const char *path, bool in_sysroot, const char *proof)
{
	struct ss_file_requests *requests = data;
	_cleanup_free_ char *name = NULL;

	if (errno == EACCES && !requests->privileged)
		return -1; /* the caller may not open it either */
	if (asprintf(&name, "%s %s", proof, path) < 0)
		return -1;
	return get(requests, in_sysroot ? KIND_SYSROOT : KIND_PATH, name);
}

struct ss_session_files ss_file_requests_attach(struct ss_file_requests *requests,
						const char *sysroot)
{
	requests->opens = true;
	requests->privileged = geteuid() == 0;
	requests->sysroot = sysroot;
	return (struct ss_session_files){ .open = open_file,
					  .find = requests->debuginfod ? find : NULL,
					  .data = requests };
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

/* Programs, libraries, debug files: no core dump. */
static bool is_module(int fd)
{
	uint8_t head[EI_NIDENT + sizeof(Elf64_Half)];
	struct stat status;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    ss_io_pread(fd, head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head, ELFMAG, SELFMAG) != 0)
		return false;
	unsigned low = head[EI_NIDENT];
	unsigned high = head[EI_NIDENT + 1];
	unsigned type = head[EI_DATA] == ELFDATA2MSB ? low << 8 | high : high << 8 | low;
	return type == ET_REL || type == ET_EXEC || type == ET_DYN;
}

/* The child chose the path. */
static int open_path(const struct ss_file_requests *requests, enum kind kind,
		     const char *path)
{
	const bool below = kind == KIND_SYSROOT;
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_MAGICLINKS | (below ? RESOLVE_IN_ROOT : 0U),
	};
	_cleanup_close_ int root =
		below ? open(requests->sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	if (below && root < 0)
		return -1;
	_cleanup_close_ int fd = (int)syscall(SYS_openat2, below ? root : AT_FDCWD, path,
					      &how, sizeof(how));
	if (fd < 0 && !below && (errno == ENOSYS || errno == EPERM))
		fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -1 : ss_io_reopen(fd);
}

static int fetch(const struct ss_file_requests *requests, enum kind kind,
		 const char *build_id)
{
	if (build_id[strspn(build_id, "0123456789abcdef")] ||
	    strlen(build_id) > (size_t)2 * BUILD_ID_MAX)
		return -1;
	return download(requests->debuginfod, build_id, kind == KIND_DEBUG);
}

static const char *path_of(const char *key)
{
	const char *space = strchr(key, ' ');

	return space ? space + 1 : "";
}

/* Only what this command has enabled. */
static int open_key(const struct ss_file_requests *requests, const char *key)
{
	_cleanup_close_ int fd = -1;

	switch (key[0]) {
	case KIND_PATH:
		if (requests->opens)
			fd = open_path(requests, KIND_PATH, path_of(key));
		break;
	case KIND_SYSROOT:
		if (requests->opens && requests->sysroot)
			fd = open_path(requests, KIND_SYSROOT, path_of(key));
		break;
	case KIND_MODULE:
	case KIND_DEBUG:
		if (requests->debuginfod)
			fd = fetch(requests, (enum kind)key[0], key + 1);
		break;
	default:
		break;
	}
	return fd >= 0 && is_module(fd) ? take_fd(fd) : -1;
}

static bool needs_proof(const struct ss_file_request *request)
{
	return request->fd >= 0 &&
	       (request->key[0] == KIND_PATH || request->key[0] == KIND_SYSROOT);
}

/* Files that were opened, from first on. */
struct check {
	const struct ss_file_requests *requests;
	size_t first;
};

/* In another sandbox: one byte for each file. */
static struct ss_error *check_proofs(void *data, const struct ss_sandbox_attempt *attempt)
{
	const struct check *check = data;

	for (size_t i = check->first; i < check->requests->answered.count; i++) {
		const struct ss_file_request *request =
			&check->requests->answered.items[i];
		_cleanup_free_ char *proof = strdup(request->key + 1);
		if (!proof)
			return ss_error_no_memory();
		proof[strcspn(proof, " ")] = '\0';
		bool matches = needs_proof(request) &&
			       ss_file_matches(request->fd, proof);
		int result = ss_io_write_all(attempt->output, matches ? "y" : "n", 1);
		if (result < 0)
			return ss_error_new_errno(-result, "cannot write the result");
	}
	return NULL;
}

/* Closes the files that are not what the child has known already. */
static void reject_others(struct ss_file_requests *requests, size_t first)
{
	const struct ss_sandbox_options options = {
		.size = sizeof(options),
		.change_ids = requests->privileged,
		.uid = geteuid(),
		.gid = getegid(),
		.timeout_ms = CHECK_MS,
		.last_level = SS_SANDBOX_RAW,
	};
	struct check check = { .requests = requests, .first = first };
	const size_t count = requests->answered.count - first;
	_cleanup_free_ char *results = calloc(count + 1, 1);
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;
	size_t needed = 0;

	for (size_t i = 0; i < count; i++)
		needed += needs_proof(&requests->answered.items[first + i]);
	if (needed == 0)
		return;
	_cleanup_error_ struct ss_error *error =
		ss_sandbox_run(&options, check_proofs, &check, &result);
	if (!error && results)
		(void)ss_io_pread(result->output, results, count, 0); /* or none is */
	for (size_t i = 0; i < count; i++) {
		struct ss_file_request *request = &requests->answered.items[first + i];
		if (needs_proof(request) && (!results || results[i] != 'y')) {
			close_cleanup(&request->fd);
			request->fd = -1;
		}
	}
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
	const size_t first = requests->answered.count;
	const char *at = bytes;
	const char *end = at + size;

	while (at < end) {
		size_t length = strnlen(at, (size_t)(end - at));
		if (at + length == end)
			break; /* not terminated */
		answer(requests, at);
		at += length + 1;
	}
	reject_others(requests, first);
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
