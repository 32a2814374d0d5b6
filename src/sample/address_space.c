#include "sample/address_space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scan.h"
#include "base/search.h"
#include "capture/result.h"
#include "process/denial.h"
#include "process/files.h"
#include "data/regions.h"

enum {
	MAPS_TEXT_MAX = 1 << 30,
	EXEC_TRIES = 8,
	STATM_MAX = 128,
	UPDATE_SHARE = 100, /* updates take at most 1/100 of the time */
};

static const uint64_t kernel_half = (uint64_t)1 << 63;

void ss_address_space_init(struct ss_address_space *space, struct ss_target *target)
{
	*space = (struct ss_address_space){ .target = target,
					    .maps_fd = -1,
					    .statm_fd = -1 };
	space->memory.mem_fd = space->memory.pagemap_fd = -1;
}

static void close_files(struct ss_address_space *space)
{
	close_cleanup(&space->maps_fd);
	close_cleanup(&space->statm_fd);
	close_cleanup(&space->memory.mem_fd);
	close_cleanup(&space->memory.pagemap_fd);
	space->maps_fd = space->statm_fd = space->memory.mem_fd = -1;
	space->memory.pagemap_fd = -1;
}

void ss_address_space_deinit(struct ss_address_space *space)
{
	close_files(space);
	ss_buffer_deinit(&space->text);
	ss_buffer_deinit(&space->next);
	ss_capture_free(space->capture);
	ss_capture_free(space->before);
	space->capture = space->before = NULL;
}

static int open_file(const struct ss_address_space *space, pid_t tid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/%s", tid, name); /* always fits */
	return openat(space->target->task_fd, path, O_RDONLY | O_CLOEXEC);
}

/* These procfs files refer to the memory of the process when they were opened. */
static struct ss_error *open_files(struct ss_address_space *space, bool *ended)
{
	pid_t live = ss_target_reopen_live(space->target);

	*ended = live == 0;
	if (*ended)
		return NULL;
	close_files(space);
	space->memory.tid = live;
	space->memory.program = ss_target_program(space->target);
	space->memory.mem_fd = open_file(space, live, "mem");
	space->memory.pagemap_fd = open_file(space, live, "pagemap");
	space->statm_fd = open_file(space, live, "statm");
	space->maps_fd = open_file(space, live, "maps");
	int errnum = errno;
	if (space->maps_fd >= 0)
		return ss_target_find_arch(space->target);
	*ended = errnum == ENOENT || errnum == ESRCH;
	if (*ended)
		return NULL;
	return errnum == EACCES || errnum == EPERM ?
		       ss_denial_explain(space->target) :
		       ss_error_new_errno(errnum, "process %d", space->target->pid);
}

/* Reads the maps into next. False: the memory is gone because of an exec or the end of
   the process, perhaps while the maps were read, which happens page by page. */
static bool read_next(struct ss_address_space *space)
{
	return space->maps_fd >= 0 && lseek(space->maps_fd, 0, SEEK_SET) == 0 &&
	       ss_io_read_all(space->maps_fd, MAPS_TEXT_MAX, &space->next) == 0 &&
	       space->next.size > 0 &&
	       ss_target_has_memory(space->target, space->memory.program, space->maps_fd);
}

/* Joins the mappings from *at on that continue the same file. False: none is left. */
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

/* The loader makes parts of a module read-only after relocation, which splits
   mappings. */
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

/* A loader maps the whole file, and then its segments in place of that; the last of them can be
   written to. */
static bool is_being_loaded(const struct ss_module_impl *module)
{
	return !ss_any(module->mapping_count, i, module->mappings[i].prot & PROT_WRITE);
}

/* Whether the code of a module was in the same place before. */
static bool had_code_of(const struct ss_module_impl *earlier,
			const struct ss_module_impl *module)
{
	size_t at = 0;

	for (size_t i = 0; i < module->mapping_count; i++) {
		const struct ss_mapping *m = &module->mappings[i];
		if (!(m->prot & PROT_EXEC))
			continue;
		while (at < earlier->mapping_count &&
		       earlier->mappings[at].end <= m->start)
			at++;
		if (at == earlier->mapping_count)
			return false;
		const struct ss_mapping *before = &earlier->mappings[at];
		if (m->start < before->start || m->end > before->end ||
		    m->start - before->start != m->offset - before->offset)
			return false;
	}
	return true;
}

static bool is_same_load(const struct ss_module_impl *earlier,
			 const struct ss_module_impl *module)
{
	if (is_being_loaded(earlier))
		return had_code_of(earlier, module);
	return earlier->pub.size == module->pub.size && same_mappings(earlier, module);
}

/* The module of the previous capture that is the same as this one, or NULL. Both lists are
   sorted by address. */
static struct ss_module_impl *find_before(const struct ss_capture *before,
					  const struct ss_module_impl *module)
{
	size_t low =
		ss_lower_bound(before ? before->modules.count : 0, i,
			       before->modules.items[i]->pub.base < module->pub.base);

	if (!before || low == before->modules.count)
		return NULL;
	struct ss_module_impl *found = before->modules.items[low];
	return found->pub.base == module->pub.base && found->device == module->device &&
			       found->inode == module->inode &&
			       strcmp(found->pub.path, module->pub.path) == 0 &&
			       is_same_load(found, module) ?
		       found :
		       NULL;
}

/* What is mapped of a module by now. */
static void update_mappings(struct ss_module_impl *module, struct ss_module_impl *now)
{
	struct ss_mapping *mappings = module->mappings;

	module->mappings = now->mappings;
	module->mapping_count = now->mapping_count;
	module->pub.size = now->pub.size;
	now->mappings = mappings;
	now->mapping_count = 0;
}

/* Keeps the objects of unchanged modules; opens new ones. */
static struct ss_error *adopt(const struct ss_address_space *space,
			      struct ss_capture *capture)
{
	_cleanup_free_ bool *added = calloc(capture->modules.count + 1, sizeof(*added));

	if (!added)
		return ss_error_no_memory();
	for (size_t i = 0; i < capture->modules.count; i++) {
		struct ss_module_impl **slot = &capture->modules.items[i];
		struct ss_module_impl *before = find_before(space->capture, *slot);
		if (before) {
			update_mappings(before, *slot);
			ss_module_unref(*slot);
			*slot = ss_module_ref(before);
		}
		added[i] = !before;
	}
	ss_target_open_root(space->target);
	(void)ss_files_open_modules(capture->modules.items, added, capture->modules.count,
				    space->target, &space->memory, space->maps_fd);
	return NULL;
}

/* Keeps the capture: threads captured with it are still in use. */
static void keep_before(struct ss_address_space *space)
{
	struct ss_capture **slot = space->capture && space->capture->areas.count > 0 ?
					   &space->before :
					   &space->capture;

	ss_capture_free(*slot);
	*slot = NULL;
	if (slot == &space->before)
		space->before = take_ptr(space->capture);
}

static struct ss_error *take_next(struct ss_address_space *space)
{
	struct ss_capture *capture = ss_capture_new();

	if (!capture)
		return ss_error_no_memory();
	capture->arch = space->target->arch;
	struct ss_error *error = ss_regions_read(capture, &space->next);
	if (!error)
		error = adopt(space, capture);
	if (error) {
		ss_capture_free(capture);
		return error;
	}
	capture->process.executable = ss_result_executable(capture, space->target);
	keep_before(space);
	space->capture = capture;
	space->version++;
	struct ss_buffer text = space->text;
	space->text = space->next;
	space->next = text;
	return NULL;
}

/* The current mappings are unknown: the next update will find a change. */
static struct ss_error *forget_all(struct ss_address_space *space)
{
	keep_before(space);
	space->text.size = 0;
	space->version++;
	space->capture = ss_capture_new();
	if (!space->capture)
		return ss_error_no_memory();
	space->capture->arch = space->target->arch;
	return NULL;
}

/* After an exec, perhaps several. */
static struct ss_error *reopen(struct ss_address_space *space,
			       enum ss_address_space_change *ret)
{
	struct ss_error *error = NULL;

	for (int i = 0; i < EXEC_TRIES && !error; i++) {
		bool ended = false;
		error = open_files(space, &ended);
		*ret = ended ? SS_ADDRESS_SPACE_ENDED : SS_ADDRESS_SPACE_REPLACED;
		if (error || ended)
			return error;
		if (!read_next(space))
			continue;
		error = forget_all(space);
		return error ? error : take_next(space);
	}
	*ret = ss_target_is_exiting(space->target) ? SS_ADDRESS_SPACE_ENDED :
						     SS_ADDRESS_SPACE_REPLACED;
	return forget_all(space);
}

static struct ss_error *update(struct ss_address_space *space,
			       enum ss_address_space_change *ret)
{
	if (!read_next(space))
		return reopen(space, ret);
	if (space->text.size > 0 && space->text.size == space->next.size &&
	    memcmp(space->text.bytes, space->next.bytes, space->next.size) == 0) {
		*ret = SS_ADDRESS_SPACE_SAME;
		return NULL;
	}
	*ret = space->text.size > 0 && ss_regions_conflict(&space->text, &space->next) ?
		       SS_ADDRESS_SPACE_CHANGED :
		       SS_ADDRESS_SPACE_MORE;
	return take_next(space);
}

/* The first number of statm (proc(5)); 0: the memory is gone. */
static uint64_t read_pages(const struct ss_address_space *space)
{
	char bytes[STATM_MAX];
	ssize_t size = pread(space->statm_fd, bytes, sizeof(bytes), 0);
	struct ss_scan scan = { .at = bytes, .end = bytes + SS_MAX(size, (ssize_t)0) };
	uint64_t pages;

	return ss_scan_number(&scan, 10, &pages) ? pages : 0;
}

struct ss_error *ss_address_space_update(struct ss_address_space *space,
					 enum ss_address_space_change *ret)
{
	space->pages = read_pages(space);
	space->updated_ns = ss_now_ns();
	struct ss_error *error = update(space, ret);
	space->cost_ns = ss_now_ns() - space->updated_ns;
	return error;
}

bool ss_address_space_is_due(const struct ss_address_space *space, uint64_t pages,
			     uint64_t now_ns)
{
	uint64_t since = now_ns - space->updated_ns;

	return pages == 0 || since >= SS_NS_PER_SECOND ||
	       (pages != space->pages && since >= space->cost_ns * UPDATE_SHARE);
}

struct ss_error *ss_address_space_update_if_due(struct ss_address_space *space,
						enum ss_address_space_change *ret)
{
	*ret = SS_ADDRESS_SPACE_SAME;
	if (!space->capture || space->no_query ||
	    ss_address_space_is_due(space, read_pages(space), ss_now_ns()))
		return ss_address_space_update(space, ret);
	return NULL;
}

/* Whether an area is the mapping that the kernel describes. */
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

enum ss_mapping_check ss_address_space_query(struct ss_address_space *space,
					     uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(space->capture, address);
	struct ss_mapped mapped;

	if (space->no_query)
		return SS_MAPPING_UNKNOWN;
	switch (ss_mapped_query(space->maps_fd, address, &mapped)) {
	case 0:
		return area && is_same(space->capture, area, &mapped) ?
			       SS_MAPPING_SAME :
			       SS_MAPPING_DIFFERS;
	case ENOENT:
		if (!area)
			return SS_MAPPING_UNKNOWN;
		/* The vsyscall page is not an ordinary mapping. */
		return area->start >= kernel_half ? SS_MAPPING_SAME : SS_MAPPING_DIFFERS;
	case ESRCH:
		return SS_MAPPING_DIFFERS;
	default:
		space->no_query = true;
		return SS_MAPPING_UNKNOWN;
	}
}

enum ss_mapping_check ss_address_space_check(struct ss_address_space *space,
					     uint64_t address)
{
	enum ss_mapping_check check = ss_address_space_query(space, address);

	if (check != SS_MAPPING_UNKNOWN || space->no_query)
		return check;
	/* An unmapped address may be mapped in the next program. */
	return ss_target_has_memory(space->target, space->memory.program,
				    space->maps_fd) ?
		       SS_MAPPING_SAME :
		       SS_MAPPING_DIFFERS;
}
