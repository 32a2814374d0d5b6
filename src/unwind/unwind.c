#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "model/futex.h"
#include "model/session.h"
#include "unwind/walk.h"

enum {
	FRAMES_MAX = 4 << 20, /* no limit means this: a stack of 64 MiB of bare calls */
};

static void unwinder_free(void *data)
{
	struct ss_unwinder *unwinder = data;

	ss_dwarf_free(unwinder->dwarf);
	ss_rows_free(unwinder->rows);
	ss_images_free(unwinder->images);
	free(unwinder);
}

static struct ss_unwinder *get_unwinder(struct ss_session *session)
{
	if (session->unwind.data)
		return session->unwind.data;
	struct ss_unwinder *unwinder = calloc(1, sizeof(*unwinder));
	if (!unwinder)
		return NULL;
	unwinder->dwarf = ss_dwarf_new();
	unwinder->rows = ss_rows_new();
	unwinder->images = ss_images_new(session);
	if (!unwinder->dwarf || !unwinder->rows || !unwinder->images) {
		unwinder_free(unwinder);
		return NULL;
	}
	session->unwind =
		(struct ss_session_slot){ .data = unwinder, .free = unwinder_free };
	return unwinder;
}

static const char *intern_or_null(struct ss_snapshot *snapshot, const char *text)
{
	return text ? ss_intern_string(snapshot->strings, text) : NULL;
}

/* What is known of an end in memory that was not copied: it may be in another stack, as
   where a program was compiled with split stacks. NULL: nothing. */
static const char *reason_of_unreadable(const struct ss_walk *walk,
					const struct ss_capture_thread *thread)
{
	const struct ss_capture *capture = walk->view.capture;
	const struct ss_area *area = ss_capture_find_area(capture, walk->view.missing);

	if (walk->frames.count == 0 || thread->live || !area ||
	    (area->prot & (PROT_READ | PROT_WRITE)) != (PROT_READ | PROT_WRITE) ||
	    area == ss_capture_find_area(capture, ss_regs_sp(&thread->regs)))
		return NULL;
	return "it leads to other memory than the stack that was copied";
}

static bool add_thread(struct ss_walk *walk, const struct ss_capture_thread *from)
{
	struct ss_snapshot *snapshot = walk->snapshot;
	struct ss_thread *thread = ss_vector_push(&snapshot->threads);

	if (!thread)
		return false;
	*thread = (struct ss_thread){
		.tid = from->tid,
		.name = ss_intern_string(snapshot->strings, from->name),
		.state = from->state,
		.stopped_ns = from->stopped_ns,
		.reason = intern_or_null(snapshot, from->reason),
		.consistent = from->consistent,
		.thread_pointer = from->thread_pointer,
		.inner_tid = from->inner_tid,
		.wchan = intern_or_null(snapshot, from->wchan),
		.kernel_stack = intern_or_null(snapshot, from->kernel_stack),
	};
	bool ok = thread->name != NULL && ss_walk_thread(walk, from);
	thread->end = walk->end;
	thread->frame_count = walk->frames.count;
	if (thread->end == SS_END_FRAMES && !thread->reason)
		thread->reason = intern_or_null(snapshot, walk->frames_reason);
	if (thread->end == SS_END_UNREADABLE && !thread->reason)
		thread->reason =
			intern_or_null(snapshot, reason_of_unreadable(walk, from));
	return ok &&
	       ss_snapshot_add_stack(snapshot, walk->frames.items, walk->frames.count,
				     walk->end, &thread->stack_id);
}

static bool copy_process(struct ss_snapshot *snapshot, const struct ss_capture *capture)
{
	snapshot->process = capture->process;
	snapshot->facts = ss_facts_ref(capture->facts);
	snapshot->process.name = intern_or_null(snapshot, capture->process.name);
	snapshot->process.executable =
		intern_or_null(snapshot, capture->process.executable);
	snapshot->process.frozen = intern_or_null(snapshot, capture->process.frozen);
	for (size_t i = 0; i < capture->modules.count; i++) {
		struct ss_module_impl **slot = ss_vector_push(&snapshot->modules);
		if (!slot)
			return false;
		*slot = ss_module_ref(capture->modules.items[i]);
	}
	if (!capture->perf_map)
		return true;
	struct ss_perf_map_file *slot = ss_vector_push(&snapshot->perf_maps);
	if (slot)
		*slot = (struct ss_perf_map_file){
			.file = ss_module_ref(capture->perf_map), .settled = UINT64_MAX
		};
	return slot != NULL;
}

/* Notes where the lock lies that a thread waits for: symbols may name it. */
static bool add_lock_place(struct ss_walk *walk, const struct ss_capture_thread *from)
{
	struct ss_futex futex;

	if (from->lock.size == 0 || !ss_futex_parse(&from->syscall, &futex))
		return true;
	struct ss_lock_place *place = ss_vector_push(&walk->snapshot->places);
	if (!place)
		return false;
	place->address = futex.address;
	place->module_index = -1;
	struct ss_loaded *loaded = ss_view_find_data(&walk->view, futex.address);
	if (loaded) {
		place->module_index = (int32_t)(loaded - walk->view.loaded);
		place->offset = futex.address - loaded->bias;
	}
	return true;
}

static bool walk_threads(struct ss_walk *walk, const struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->threads.count; i++) {
		if (!add_thread(walk, &capture->threads.items[i]) ||
		    !add_lock_place(walk, &capture->threads.items[i]))
			return false;
	}
	ss_snapshot_sort_places(walk->snapshot);
	return true;
}

struct ss_error *ss_capture_unwind(const struct ss_capture *capture,
				   struct ss_session *session,
				   const struct ss_unwind_options *options,
				   struct ss_snapshot **ret)
{
	struct ss_unwinder *unwinder = get_unwinder(session);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = ss_snapshot_new();
	struct ss_walk walk = { .snapshot = snapshot, .max_frames = FRAMES_MAX };
	struct ss_unwind_options given = {};

	if (options)
		memcpy(&given, options, SS_MIN(options->size, sizeof(given)));
	if (!unwinder || !snapshot || !copy_process(snapshot, capture) ||
	    !ss_view_init(&walk.view, capture, unwinder->images))
		return ss_error_no_memory();
	bool ok = ss_held_init(&walk.held, capture);
	if (given.max_frames)
		walk.max_frames = SS_MIN(given.max_frames, (unsigned)FRAMES_MAX);
	walk.frames_reason = given.frames_reason;
	walk.unwinder = unwinder;
	ss_dwarf_begin(unwinder->dwarf, &walk.view);
	ok = ok && walk_threads(&walk, capture);
	ss_held_deinit(&walk.held);
	ss_vector_free(&walk.frames);
	ss_view_deinit(&walk.view);
	if (!ok)
		return ss_error_no_memory();
	*ret = take_ptr(snapshot);
	return NULL;
}
