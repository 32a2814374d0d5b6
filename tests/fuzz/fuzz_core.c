/* Core files: headers, segments, notes, and the capture that is made of them. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/core_file.h"
#include "fuzz.h"
#include "data/capture.h"
#include "core/core_capture.h"

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("core", MFD_CLOEXEC);

	FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	return fd;
}

static void read_file(const uint8_t *data, size_t size)
{
	_cleanup_(ss_core_file_cleanup) struct ss_core_file *core = NULL;
	uint8_t bytes[64];

	ss_error_free(ss_core_file_open(file_of(data, size), &core));
	if (!core)
		return;
	for (size_t i = 0; i < core->segments.count; i++) {
		const struct ss_core_segment *segment = &core->segments.items[i];
		FUZZ_REQUIRE(segment->start < segment->end);
		FUZZ_REQUIRE(i == 0 || segment[-1].end <= segment->start);
		FUZZ_REQUIRE(ss_core_file_find(core, segment->start) == segment);
		bool adjacent = i + 1 < core->segments.count &&
				segment[1].start == segment->end;
		FUZZ_REQUIRE(ss_core_file_read(core, segment->end - 1, bytes,
					       sizeof(bytes)) <= (adjacent ? 64 : 1));
	}
	for (size_t i = 0; i < core->mappings.count; i++)
		fuzz_touch(core->mappings.items[i].path,
			   strlen(core->mappings.items[i].path));
}

static void read_capture(const uint8_t *data, size_t size)
{
	const struct ss_core_options options = { .size = sizeof(options),
						 .max_total = 1 << 20 };
	const struct ss_session_options nothing = { .size = sizeof(nothing),
						    .debug_dir = "/nonexistent" };
	_cleanup_(ss_capture_cleanup) struct ss_capture *capture = NULL;
	struct ss_session *session = NULL;
	struct ss_snapshot *snapshot = NULL;

	FUZZ_REQUIRE(!ss_session_new(&nothing, &session));
	ss_error_free(
		ss_capture_read_core(file_of(data, size), session, &options, &capture));
	if (capture && capture->threads.count < 64)
		ss_error_free(ss_capture_unwind(capture, session, NULL, &snapshot));
	if (snapshot)
		ss_error_free(ss_snapshot_diagnose(snapshot, 0));
	ss_snapshot_free(snapshot);
	ss_session_free(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_file(data, size);
	read_capture(data, size);
	return 0;
}
