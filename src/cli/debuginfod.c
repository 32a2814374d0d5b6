#include "cli/debuginfod.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/failure.h"

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

static struct ss_error *load(struct ss_debuginfod *debuginfod)
{
	static const char name[] = "libdebuginfod.so.1";
	begin_function *begin;
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

struct ss_error *ss_debuginfod_new(struct ss_debuginfod **ret)
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

int ss_debuginfod_find(void *data, const char *build_id, bool debug)
{
	struct ss_debuginfod *debuginfod = data;
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
		ss_failure_warn("the debuginfod servers do not answer in time; no more "
				"requests are sent");
	}
	/* The descriptor of a download is open for writing. */
	return fd < 0 || !path ? -1 : open(path, O_RDONLY | O_CLOEXEC);
}
