/* A recording: opened, walked, turned into snapshots. The input is the file behind the
   file's header; checksums are made right, or little would ever be read. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "fuzz.h"
#include "record/bytes.h"
#include "record/format.h"

enum { SAMPLES_MAX = 20000, TICKS_MAX = 4, INPUT_MAX = 1 << 16 };

/* Puts the checksum of each chunk right, as far as sizes lead through the file. */
static void repair(uint8_t *bytes, size_t size)
{
	size_t at = SS_FILE_HEADER_SIZE;

	while (size - at >= SS_CHUNK_HEADER_SIZE) {
		size_t stored = ss_fixed_get(bytes + at + 8, 4);
		uint8_t *data = bytes + at + SS_CHUNK_HEADER_SIZE;
		if (stored > size - at - SS_CHUNK_HEADER_SIZE)
			return;
		uint64_t sum = XXH3_64bits_withSeed(
			data, stored, XXH3_64bits(bytes + at, SS_CHUNK_CHECKED));
		memcpy(bytes + at + SS_CHUNK_CHECKED, &sum, sizeof(sum));
		at += SS_CHUNK_HEADER_SIZE + stored;
	}
}

static void walk(struct ss_recording *recording)
{
	const struct ss_recording_info *info = ss_recording_info(recording);
	struct ss_sample sample;
	uint64_t sequence = info->first_sequence;

	for (unsigned i = 0; i < SAMPLES_MAX && ss_recording_next(recording, &sample);
	     i++) {
		FUZZ_REQUIRE(sample.sequence == sequence++);
		FUZZ_REQUIRE(sample.thread < ss_recording_thread_count(recording));
		FUZZ_REQUIRE(sample.stack < ss_recording_stack_count(recording));
		FUZZ_REQUIRE(sample.process < ss_recording_process_count(recording));
	}
	for (size_t i = 0; i < ss_recording_stack_count(recording); i++) {
		const struct ss_recorded_stack *stack = ss_recording_stack(recording, i);
		for (size_t f = 0; f < stack->count; f++)
			FUZZ_REQUIRE(stack->places[f] <
				     ss_recording_place_count(recording));
	}
	for (uint64_t tick = 0; tick < info->ticks && tick < TICKS_MAX; tick++) {
		struct ss_snapshot *snapshot = NULL;
		ss_error_free(ss_recording_snapshot(recording, tick, 0, &snapshot));
		ss_snapshot_free(snapshot);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t file[SS_FILE_HEADER_SIZE + INPUT_MAX] = SS_FORMAT_MAGIC
		"\1\0\0\0\4\3\2\1";
	struct ss_recording *recording = NULL;

	if (size > INPUT_MAX)
		return 0;
	memcpy(file + SS_FILE_HEADER_SIZE, data, size);
	repair(file, SS_FILE_HEADER_SIZE + size);
	int fd = memfd_create("recording", MFD_CLOEXEC);
	if (fd < 0 || write(fd, file, SS_FILE_HEADER_SIZE + size) < 0)
		return 0;
	struct ss_error *error = ss_recording_open_fd(fd, &recording);
	if (recording)
		walk(recording);
	ss_error_free(error);
	ss_recording_close(recording);
	return 0;
}
