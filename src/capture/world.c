#include "capture/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "target/denial.h"
#include "target/files.h"
#include "target/mapped.h"
#include "target/regions.h"

enum {
	MAPS_TEXT_MAX = 1 << 30,
	EXEC_TRIES = 8,
	STATM_MAX = 128,
	LOOK_PART = 100, /* looking takes no more than one such part of the time */
};

static const uint64_t second_ns = 1000000000;
static const uint64_t kernel_half = (uint64_t)1 << 63;

void ss_world_init(struct ss_world *world, struct ss_target *target)
{
	*world = (struct ss_world){ .target = target, .maps_fd = -1, .statm_fd = -1 };
	world->memory.mem_fd = -1;
}

static void close_files(struct ss_world *world)
{
	close_cleanup(&world->maps_fd);
	close_cleanup(&world->statm_fd);
	close_cleanup(&world->memory.mem_fd);
	world->maps_fd = world->statm_fd = world->memory.mem_fd = -1;
}

void ss_world_deinit(struct ss_world *world)
{
	close_files(world);
	ss_text_free(&world->text);
	ss_text_free(&world->next);
	ss_capture_free(world->capture);
	ss_capture_free(world->before);
	world->capture = world->before = NULL;
}

static int open_file(const struct ss_world *world, pid_t tid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/%s", tid, name); /* always fits */
	return openat(world->target->task_fd, path, O_RDONLY | O_CLOEXEC);
}

/* Files of procfs belong to the memory that the process had when they were opened. */
static struct ss_error *open_files(struct ss_world *world, bool *ended)
{
	pid_t live = ss_target_follow_live(world->target);

	*ended = live == 0;
	if (*ended)
		return NULL;
	close_files(world);
	world->memory.tid = live;
	world->memory.program = ss_target_program(world->target);
	world->memory.mem_fd = open_file(world, live, "mem");
	world->statm_fd = open_file(world, live, "statm");
	world->maps_fd = open_file(world, live, "maps");
	int errnum = errno;
	if (world->maps_fd >= 0)
		return NULL;
	*ended = errnum == ENOENT || errnum == ESRCH;
	if (*ended)
		return NULL;
	return errnum == EACCES || errnum == EPERM ?
		       ss_denial_explain(world->target) :
		       ss_error_new_errno(errnum, "process %d", world->target->pid);
}

/* Reads maps into next. False: that memory is gone, by an exec or the end; perhaps while
   it was read, page by page. */
static bool read_next(struct ss_world *world)
{
	return world->maps_fd >= 0 && lseek(world->maps_fd, 0, SEEK_SET) == 0 &&
	       ss_io_read_all(world->maps_fd, MAPS_TEXT_MAX, &world->next) == 0 &&
	       world->next.size > 0 &&
	       ss_memory_is_mapped(&world->memory, world->target, world->maps_fd);
}

/* From mapping number *at on, as far as the file goes on without a gap. False: none is
   left. */
static bool next_run(const struct ss_module_impl *module, size_t *at,
		     struct ss_mapping *ret)
{
	if (*at == module->mapping_count)
		return false;
	*ret = module->mappings[(*at)++];
	for (; *at < module->mapping_count; (*at)++) {
		const struct ss_mapping *next = &module->mappings[*at];
		if (next->start != ret->end ||
		    next->offset != ret->offset + (ret->end - ret->start))
			break;
		ret->end = next->end;
	}
	return true;
}

/* The loader makes parts of what it has mapped read-only when it has filled them in: that
   is a mapping of its own then, of the same bytes. */
static bool same_mappings(const struct ss_module_impl *a, const struct ss_module_impl *b)
{
	struct ss_mapping x;
	struct ss_mapping y;
	size_t at_a = 0;
	size_t at_b = 0;

	for (;;) {
		bool more = next_run(a, &at_a, &x);
		if (next_run(b, &at_b, &y) != more)
			return false;
		if (!more)
			return true;
		if (x.start != y.start || x.end != y.end || x.offset != y.offset)
			return false;
	}
}

/* The module of before that this one still is, or NULL. Both lists are in the order of
   addresses. */
static struct ss_module_impl *find_before(const struct ss_capture *before,
					  const struct ss_module_impl *module)
{
	size_t low = 0;
	size_t high = before ? before->modules.count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (before->modules.items[middle]->pub.base < module->pub.base)
			low = middle + 1;
		else
			high = middle;
	}
	if (!before || low == before->modules.count)
		return NULL;
	struct ss_module_impl *found = before->modules.items[low];
	return found->pub.base == module->pub.base &&
			       found->pub.size == module->pub.size &&
			       found->device == module->device &&
			       found->inode == module->inode &&
			       strcmp(found->pub.path, module->pub.path) == 0 &&
			       same_mappings(found, module) ?
		       found :
		       NULL;
}

/* Puts the objects of before in the place of modules that are the same, and opens new
   ones. */
static void adopt(const struct ss_world *world, struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->modules.count; i++) {
		struct ss_module_impl **slot = &capture->modules.items[i];
		struct ss_module_impl *before = find_before(world->capture, *slot);
		if (before) {
			ss_module_unref(*slot);
			*slot = ss_module_ref(before);
			continue;
		}
		ss_files_open_module(*slot, world->target, &world->memory,
				     world->maps_fd);
	}
}

/* What was unwound by it is still in use. */
static void keep_before(struct ss_world *world)
{
	struct ss_capture **slot = world->capture && world->capture->areas.count > 0 ?
					   &world->before :
					   &world->capture;

	ss_capture_free(*slot);
	*slot = NULL;
	if (slot == &world->before)
		world->before = take_ptr(world->capture);
}

static struct ss_error *take_next(struct ss_world *world)
{
	struct ss_capture *capture = ss_capture_new();

	if (!capture)
		return ss_error_no_memory();
	struct ss_error *error = ss_regions_read(capture, &world->next);
	if (error) {
		ss_capture_free(capture);
		return error;
	}
	adopt(world, capture);
	keep_before(world);
	world->capture = capture;
	struct ss_text text = world->text;
	world->text = world->next;
	world->next = text;
	return NULL;
}

/* What is mapped is not known at this moment: the next look will see another text. */
static struct ss_error *know_nothing(struct ss_world *world)
{
	keep_before(world);
	world->text.size = 0;
	world->capture = ss_capture_new();
	return world->capture ? NULL : ss_error_no_memory();
}

/* Another program, perhaps the next one already: nothing of before is left. */
static struct ss_error *begin_anew(struct ss_world *world, enum ss_world_change *ret)
{
	struct ss_error *error = NULL;

	for (int i = 0; i < EXEC_TRIES && !error; i++) {
		bool ended = false;
		error = open_files(world, &ended);
		*ret = ended ? SS_WORLD_ENDED : SS_WORLD_REPLACED;
		if (error || ended)
			return error;
		if (!read_next(world))
			continue;
		error = know_nothing(world);
		return error ? error : take_next(world);
	}
	*ret = ss_target_is_exiting(world->target) ? SS_WORLD_ENDED : SS_WORLD_REPLACED;
	return know_nothing(world);
}

static struct ss_error *look(struct ss_world *world, enum ss_world_change *ret)
{
	if (!read_next(world))
		return begin_anew(world, ret);
	if (world->text.size > 0 && world->text.size == world->next.size &&
	    memcmp(world->text.bytes, world->next.bytes, world->next.size) == 0) {
		*ret = SS_WORLD_SAME;
		return NULL;
	}
	*ret = world->text.size > 0 && ss_regions_conflict(&world->text, &world->next) ?
		       SS_WORLD_CHANGED :
		       SS_WORLD_MORE;
	return take_next(world);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail: the clock exists */
	return (uint64_t)ts.tv_sec * second_ns + (uint64_t)ts.tv_nsec;
}

/* First figure of statm (proc(5)); 0: its memory is gone. */
static uint64_t read_pages(const struct ss_world *world)
{
	char bytes[STATM_MAX] = "";

	if (pread(world->statm_fd, bytes, sizeof(bytes) - 1, 0) <= 0)
		return 0;
	return strtoull(bytes, NULL, 10);
}

struct ss_error *ss_world_look(struct ss_world *world, enum ss_world_change *ret)
{
	world->pages = read_pages(world);
	world->looked_ns = now_ns();
	struct ss_error *error = look(world, ret);
	world->cost_ns = now_ns() - world->looked_ns;
	return error;
}

static bool is_due(const struct ss_world *world)
{
	uint64_t pages = read_pages(world);
	uint64_t since = now_ns() - world->looked_ns;

	return pages == 0 || since >= second_ns ||
	       (pages != world->pages && since >= world->cost_ns * LOOK_PART);
}

struct ss_error *ss_world_glance(struct ss_world *world, enum ss_world_change *ret)
{
	*ret = SS_WORLD_SAME;
	if (!world->capture || world->no_query || is_due(world))
		return ss_world_look(world, ret);
	return NULL;
}

/* Whether an area of ours is the mapping that the kernel tells of. */
static bool is_same(const struct ss_capture *capture, const struct ss_area *area,
		    const struct ss_mapped *mapped)
{
	if (area->start != mapped->start || area->end != mapped->end)
		return false;
	if (area->module < 0)
		return mapped->inode == 0;
	const struct ss_module_impl *module = capture->modules.items[area->module];
	for (size_t i = 0; i < module->mapping_count; i++) {
		const struct ss_mapping *m = &module->mappings[i];
		if (mapped->start >= m->start && mapped->start < m->end)
			return m->offset + (mapped->start - m->start) == mapped->offset &&
			       module->inode == mapped->inode &&
			       module->device == mapped->device;
	}
	return mapped->inode == 0;
}

enum ss_world_answer ss_world_holds(struct ss_world *world, uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(world->capture, address);
	struct ss_mapped mapped;

	if (world->no_query)
		return SS_WORLD_ASK_ALL;
	switch (ss_mapped_query(world->maps_fd, address, &mapped)) {
	case 0:
		return area && is_same(world->capture, area, &mapped) ? SS_WORLD_YES :
									SS_WORLD_NO;
	case ENOENT:
		/* That of the vsyscall page is not a mapping like others. What is nowhere
		   may be in the memory of the next program. */
		if (area ? area->start >= kernel_half :
			   ss_memory_is_mapped(&world->memory, world->target,
					       world->maps_fd))
			return SS_WORLD_YES;
		return SS_WORLD_NO;
	case ESRCH:
		return SS_WORLD_NO;
	default:
		world->no_query = true;
		return SS_WORLD_ASK_ALL;
	}
}
