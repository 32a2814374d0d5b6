/* What a thread waits for, as a recording has it: the result refers to valid memory only, and what is
   written of it is read as the same. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "data/recording.h"
#include "stacksnap/record.h"

static struct ss_recording *recording_new(void)
{
	struct ss_recording *recording = calloc(1, sizeof(*recording));

	if (!recording)
		return NULL;
	recording->fd = -1;
	recording->strings = ss_intern_new();
	if (!recording->strings) {
		free(recording);
		return NULL;
	}
	return recording;
}

static void touch_text(const char *text)
{
	if (text)
		(void)fuzz_touch(text, strlen(text));
}

static void touch_processes(const struct ss_related_process *processes, size_t count)
{
	FUZZ_REQUIRE(count <= SS_WAIT_RECORD_LIST_MAX);
	for (size_t i = 0; i < count; i++)
		touch_text(processes[i].name);
}

static void touch_descriptor(const struct ss_descriptor *descriptor, unsigned depth);

static void touch_watched(const struct ss_watched_fd *fds, size_t count, unsigned depth)
{
	FUZZ_REQUIRE(count <= SS_WAIT_RECORD_LIST_MAX && depth < 3);
	for (size_t i = 0; i < count; i++)
		touch_descriptor(fds[i].what, depth);
}

static void touch_descriptor(const struct ss_descriptor *descriptor, unsigned depth)
{
	if (!descriptor)
		return;
	touch_text(descriptor->name);
	touch_text(descriptor->protocol);
	touch_text(descriptor->path);
	touch_text(descriptor->peer_path);
	touch_processes(descriptor->peers, descriptor->peer_count);
	touch_watched(descriptor->watches, descriptor->watch_count, depth + 1);
	FUZZ_REQUIRE(descriptor->local.size <= sizeof(descriptor->local.bytes));
	FUZZ_REQUIRE(descriptor->remote.size <= sizeof(descriptor->remote.bytes));
}

static void touch(const struct ss_wait *wait)
{
	touch_text(wait->syscall);
	touch_text(wait->function);
	touch_text(wait->symbol);
	touch_text(wait->owner_name);
	touch_text(wait->owner_process);
	touch_text(wait->path);
	touch_text(wait->purpose_function);
	touch_text(wait->purpose_words);
	touch_descriptor(wait->descriptor, 0);
	touch_watched(wait->fds, wait->fd_count, 0);
	touch_processes(wait->children, wait->child_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_recording *recording = recording_new();
	struct ss_cursor cursor = { .at = data, .end = data + size };
	_cleanup_buffer_ struct ss_buffer once = {};
	_cleanup_buffer_ struct ss_buffer again = {};
	struct ss_wait wait;

	if (recording && ss_wait_record_read(recording, &cursor, &wait)) {
		touch(&wait);
		ss_wait_record_write(&once, &wait);
		cursor = ss_buffer_cursor(&once);
		FUZZ_REQUIRE(ss_wait_record_read(recording, &cursor, &wait) ||
			     recording->waits_full);
		ss_wait_record_write(&again, &wait);
		FUZZ_REQUIRE(recording->waits_full ||
			     (once.size == again.size &&
			      (once.size == 0 ||
			       memcmp(once.bytes, again.bytes, once.size) == 0)));
	}
	if (recording)
		FUZZ_REQUIRE(recording->wait_bytes <= SS_WAIT_RECORD_BYTES_MAX);
	ss_recording_close(recording);
	return 0;
}
