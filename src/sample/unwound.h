/*
 * The stacks of a capture, as the unwinding child answers with them: tables of plain structs,
 * which refer to each other by index. The recorder checks every index and length before it uses
 * them (unwinder.c).
 */
#ifndef SS_SAMPLE_UNWOUND_H
#define SS_SAMPLE_UNWOUND_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/vector.h"
#include "data/gather_plan.h"
#include "data/module.h"

/* Of a module that the request has. Texts are offsets in texts; 0: none. */
struct ss_unwound_module {
	uint32_t id;
	uint32_t build_id_size;
	uint64_t bias; /* address minus offset */
	uint8_t build_id[SS_BUILD_ID_MAX];
	uint64_t file_size; /* struct ss_file_identity, if has_hash */
	uint64_t modified_ns;
	uint64_t file_inode;
	uint8_t hash[SS_FILE_HASH_SIZE];
	uint32_t has_hash;
	uint32_t problem;
};

struct ss_unwound_stack {
	uint32_t first; /* of its frames */
	uint32_t count;
	uint32_t end; /* enum ss_end */
};

struct ss_unwound_frame {
	uint64_t pc;	/* of the call of a runtime: its index in calls */
	int32_t module; /* index into the capture's modules, or -1 */
	uint32_t flags; /* SS_FRAME_... of data/recording_format.h */
};

struct ss_unwound_thread {
	uint32_t stack;
	uint32_t reason;   /* why it ended there, or has native frames instead of calls */
	uint32_t function; /* that waits on a futex */
	uint32_t lacks_calls; /* 1: what runtimes need was not copied with its stack */
};

/* The call of a runtime. */
struct ss_unwound_call {
	uint32_t kind; /* enum ss_frame_kind */
	uint32_t line;
	uint32_t function; /* not empty */
	uint32_t file;
};

struct ss_unwound {
	SS_VECTOR(struct ss_unwound_module) modules;
	SS_VECTOR(struct ss_unwound_stack) stacks;
	SS_VECTOR(struct ss_unwound_frame) frames;
	SS_VECTOR(struct ss_unwound_thread) threads; /* in the order of the capture */
	SS_VECTOR(struct ss_unwound_call) calls;
	SS_VECTOR(char) texts; /* each with a NUL */
	/* One for the next captures of the process, or none; as it came: not checked */
	SS_VECTOR(struct ss_gather_plan) plans;
	bool no_memory; /* something is missing */
};

void ss_unwound_clear(struct ss_unwound *unwound);
void ss_unwound_deinit(struct ss_unwound *unwound);

/* Appends all tables. */
void ss_unwound_encode(struct ss_unwound *unwound, struct ss_buffer *out);

/* False: invalid, or no memory. */
bool ss_unwound_decode(struct ss_unwound *unwound, struct ss_cursor *cursor);

/* Appends a text, of at most max bytes. NULL: 0. Without memory sets no_memory. */
uint32_t ss_unwound_add_text(struct ss_unwound *unwound, const char *text, size_t max);

/* The text of an offset that was checked; or NULL. */
static inline const char *ss_unwound_text(const struct ss_unwound *unwound,
					  uint32_t offset)
{
	return offset ? unwound->texts.items + offset : NULL;
}

static inline const struct ss_unwound_frame *
ss_unwound_frames(const struct ss_unwound *unwound, const struct ss_unwound_stack *stack)
{
	return unwound->frames.items + stack->first;
}

#endif
