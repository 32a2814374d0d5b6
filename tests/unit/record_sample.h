/*
 * A recording in a temporary file, for tests of the writer and the reader.
 */
#ifndef SS_TESTS_RECORD_SAMPLE_H
#define SS_TESTS_RECORD_SAMPLE_H

#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/recording_format.h"
#include "data/recording_writer.h"

enum { SAMPLE_MODULES = 3, SAMPLE_PERIOD_NS = 10000000 };

struct sample_recording {
	int fd; /* the file; 0: creates one in memory */
	struct ss_writer *writer;
	uint32_t process;
	uint32_t modules[SAMPLE_MODULES];
};

static inline struct ss_module sample_module(unsigned index)
{
	static const char *const ids[] = { "00112233", "44556677", NULL };
	static const char *const paths[] = { "/bin/a", "/lib/b.so", "/lib/c.so" };

	return (struct ss_module){ .path = paths[index],
				   .build_id = ids[index],
				   .base = 0x10000 * (index + 1),
				   .size = 0x8000 };
}

static inline void sample_open(struct sample_recording *s,
			       const struct ss_writer_options *options)
{
	int fd = s->fd ? s->fd : memfd_create("recording", MFD_CLOEXEC);

	assert_true(fd >= 0);
	s->fd = dup(fd);
	assert_null(ss_writer_new(fd, options, &s->writer));
	s->process = ss_writer_add_process(s->writer, 42, 7, "name", "/bin/a", 1);
	for (unsigned i = 0; i < SAMPLE_MODULES; i++) {
		struct ss_module module = sample_module(i);
		s->modules[i] = ss_writer_add_module(s->writer, s->process, &module,
						     module.base, 2);
	}
}

/* A stack of frames at these offsets in module 0, innermost first. */
static inline uint32_t sample_stack(struct sample_recording *s, const uint64_t *offsets,
				    size_t count)
{
	struct ss_frame_record *frames = calloc(count + 1, sizeof(*frames));

	for (size_t i = 0; i < count; i++)
		frames[i] = (struct ss_frame_record){
			.module = s->modules[0],
			.value = offsets[i],
			.flags = i ? SS_FRAME_CALL : 0,
		};
	uint32_t id = ss_writer_stack(s->writer, frames, count, SS_END_ROOT, NULL);
	free(frames);
	return id;
}

static inline void sample_close(struct sample_recording *s)
{
	ss_writer_free(s->writer);
	if (s->fd >= 0)
		(void)close(s->fd);
}

/* A copy of the first size bytes of a file. */
static inline int copy_of(int fd, size_t size)
{
	int copy = memfd_create("copy", MFD_CLOEXEC);
	char *bytes = malloc(size + 1);

	assert_int_equal(pread(fd, bytes, size, 0), size);
	assert_int_equal(write(copy, bytes, size), size);
	free(bytes);
	return copy;
}

static inline size_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (size_t)st.st_size;
}

#endif
