#include "capture/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "target/denial.h"
#include "target/files.h"
#include "target/regions.h"

enum { MAPS_TEXT_MAX = 1 << 30, EXEC_TRIES = 8 };

void ss_world_init(struct ss_world *world, struct ss_target *target)
{
	*world = (struct ss_world){ .target = target, .maps_fd = -1 };
	world->memory.mem_fd = -1;
}

static void close_files(struct ss_world *world)
{
	close_cleanup(&world->maps_fd);
	close_cleanup(&world->memory.mem_fd);
	world->maps_fd = world->memory.mem_fd = -1;
}

void ss_world_deinit(struct ss_world *world)
{
	close_files(world);
	ss_text_free(&world->text);
	ss_text_free(&world->next);
	ss_capture_free(world->capture);
	world->capture = NULL;
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
	world->memory.mem_fd = open_file(world, live, "mem");
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
	char byte;

	return world->maps_fd >= 0 && lseek(world->maps_fd, 0, SEEK_SET) == 0 &&
	       ss_io_read_all(world->maps_fd, MAPS_TEXT_MAX, &world->next) == 0 &&
	       world->next.size > 0 && lseek(world->maps_fd, 0, SEEK_SET) == 0 &&
	       read(world->maps_fd, &byte, sizeof(byte)) == sizeof(byte);
}

static bool same_mappings(const struct ss_module_impl *a, const struct ss_module_impl *b)
{
	if (a->mapping_count != b->mapping_count)
		return false;
	for (size_t i = 0; i < a->mapping_count; i++) {
		const struct ss_mapping *x = &a->mappings[i];
		const struct ss_mapping *y = &b->mappings[i];
		if (x->start != y->start || x->end != y->end || x->offset != y->offset)
			return false;
	}
	return true;
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
		ss_files_open_module(*slot, world->target, &world->memory);
	}
}

static struct ss_error *take_next(struct ss_world *world)
{
	struct ss_capture *capture = ss_capture_new();
	struct ss_error *error = capture ? ss_regions_read(capture, &world->next) :
					   ss_error_no_memory();

	if (error) {
		ss_capture_free(capture);
		return error;
	}
	adopt(world, capture);
	ss_capture_free(world->capture);
	world->capture = capture;
	struct ss_text text = world->text;
	world->text = world->next;
	world->next = text;
	return NULL;
}

/* What is mapped is not known at this moment: the next look will see another text. */
static struct ss_error *know_nothing(struct ss_world *world)
{
	ss_capture_free(world->capture);
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

struct ss_error *ss_world_look(struct ss_world *world, enum ss_world_change *ret)
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

static bool add_area(struct ss_capture *capture, const struct ss_area *area)
{
	struct ss_area *copy = ss_vector_push(&capture->areas);

	if (!copy)
		return false;
	*copy = *area;
	copy->name = ss_intern_string(capture->strings, area->name);
	return copy->name != NULL;
}

struct ss_error *ss_world_fill(const struct ss_world *world, struct ss_capture *capture)
{
	for (size_t i = 0; i < world->capture->areas.count; i++) {
		if (!add_area(capture, &world->capture->areas.items[i]))
			return ss_error_no_memory();
	}
	for (size_t i = 0; i < world->capture->modules.count; i++) {
		struct ss_module_impl **slot = ss_vector_push(&capture->modules);
		if (!slot)
			return ss_error_no_memory();
		*slot = ss_module_ref(world->capture->modules.items[i]);
	}
	return NULL;
}
