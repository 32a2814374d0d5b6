/*
 * Where trace puts its probes: names, lines and USDT probes in a hostile file, from the reader of
 * the file to the list of probes. The first line of the input is what the user asks for, and the
 * rest the file; or the line is "answer", and the rest what the child that reads files has
 * answered.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "fuzz.h"
#include "data/capture.h"
#include "trace/resolve.h"

enum { SPEC_MAX = 256, SPECS = 4 };

static void check(const struct ss_resolved *resolved, size_t file_size, bool answer)
{
	FUZZ_REQUIRE(resolved->probes.count <= SS_RESOLVE_FUNCTIONS_MAX);
	for (size_t i = 0; i < resolved->probes.count; i++) {
		const struct ss_resolved_probe *probe = &resolved->probes.items[i];
		fuzz_touch(probe->name, strlen(probe->name));
		FUZZ_REQUIRE(probe->spec < SPECS);
		FUZZ_REQUIRE(probe->return_count <= SS_RESOLVE_RETURNS_MAX);
		FUZZ_REQUIRE(answer || (probe->flags & SS_RESOLVE_REFUSED) ||
			     probe->offset < file_size);
		for (size_t k = 0; k < probe->return_count && !answer; k++)
			FUZZ_REQUIRE(probe->returns[k] < file_size);
	}
	for (size_t i = 0; i < resolved->notes.count; i++)
		fuzz_touch(resolved->notes.items[i].text,
			   strlen(resolved->notes.items[i].text));
}

static int memory_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	FUZZ_REQUIRE(fd >= 0 && ss_io_write_all(fd, data, size) == 0);
	return fd;
}

static void read_answer(int file, const struct ss_capture *capture, size_t file_size,
			bool answer)
{
	struct ss_resolved resolved = {};
	_cleanup_error_ struct ss_error *error =
		ss_resolved_read(file, capture, SPECS, &resolved);

	FUZZ_REQUIRE(answer || !error);
	if (error)
		return;
	check(&resolved, file_size, answer);
	ss_resolved_deinit(&resolved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', SS_MIN(size, (size_t)SPEC_MAX));
	_cleanup_(ss_capture_cleanup) struct ss_capture *capture = ss_capture_new();
	struct ss_module_impl *module = ss_module_new("/nonexistent/fuzz.so", 0, 0);
	char spec[SPEC_MAX] = "";
	struct ss_worker_page page = {};

	FUZZ_REQUIRE(capture && module);
	struct ss_module_impl **slot = ss_vector_push(&capture->modules);
	FUZZ_REQUIRE(slot);
	*slot = module;
	if (!end)
		return 0;
	memcpy(spec, data, (size_t)(end - data));
	size_t left = size - (size_t)(end + 1 - data);
	int file = memory_file(end + 1, left);
	if (strcmp(spec, "answer") == 0) {
		_cleanup_(ss_capture_cleanup) struct ss_capture *none = ss_capture_new();
		FUZZ_REQUIRE(none);
		read_answer(file, none, 0, true); /* no index is valid */
		read_answer(file, capture, 0, true);
		(void)close(file); /* in memory */
		return 0;
	}
	const char *const specs[SPECS] = { spec, "*", "*:*", "usdt.c:16" };
	struct ss_resolve_request request = {
		.modules = capture->modules.items,
		.module_count = 1,
		.specs = specs,
		.spec_count = SPECS,
		.scopes = true,
		.debug_dir = "/nonexistent",
	};
	_cleanup_close_ int output = memory_file(NULL, 0);
	module->fd = file; /* owned by the module */
	_cleanup_error_ struct ss_error *error = ss_resolve_read(&request, &page, output);
	if (!error)
		read_answer(output, capture, left, false);
	return 0;
}
