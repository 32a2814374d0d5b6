#include "capture/attempt.h"

#include <elf.h>
#include <libunwind.h>
#include <string.h>

#include "arch/unwind_table.h"
#include "base/clock.h"
#include "base/search.h"

enum {
	/* A deeper stack is a loop that the checks missed. */
	FRAMES_MAX = 1 << 20,
	HEADERS_MAX = 64,
	PAGE = 4096,
	PAGES = 64,
	/* One thread gets this part of the time that is left. */
	SHARE = 4,
	TOUCHED = 1024, /* pages */
};

/* The unwind table of a module, in target memory. */
struct table {
	uint64_t start;
	uint64_t end;
	unw_dyn_info_t info; /* start_ip 0: none */
};

/* A page of the target. */
struct page {
	uint64_t address; /* 0: none */
	uint8_t bytes[PAGE];
};

struct ss_live {
	unw_addr_space_t space; /* uses the accessors below */
	unw_accessors_t accessors;
	const struct ss_process_memory *memory;
	struct table *tables; /* one for each module of the capture, ascending */
	size_t table_count;
	struct page pages[PAGES]; /* of the thread that is unwound */
};

/* The argument of the accessors. */
struct walker {
	struct ss_live *live;
	struct ss_regs regs;
	uint64_t deadline_ns;
	bool no_info; /* no CFI was found in this step */
	bool late;    /* the deadline has passed */
	bool absent;  /* a page was not in memory */
};

/* Reads memory of a target that is not stopped. */
static bool read_running(const struct ss_process_memory *memory, uint64_t address,
			 void *bytes, size_t size)
{
	struct ss_piece piece = { .address = address, .bytes = bytes, .size = size };

	ss_process_memory_read(memory, &piece, 1);
	return piece.done == size;
}

/* The page at an address that is a multiple of PAGE. NULL: it is not readable. */
static const uint8_t *find_page(struct walker *walker, uint64_t address)
{
	struct page *page = &walker->live->pages[address / PAGE % PAGES];
	struct ss_piece piece = { .address = address,
				  .bytes = page->bytes,
				  .size = PAGE };

	if (page->address == address && address != 0)
		return page->bytes;
	page->address = 0;
	ss_process_memory_read_present(walker->live->memory, &piece, 1);
	walker->absent |= piece.end == SS_PIECE_ABSENT;
	walker->late |= piece.end == SS_PIECE_LATE;
	if (piece.done < PAGE)
		return NULL;
	page->address = address;
	return page->bytes;
}

/* An expression of hostile CFI may be endless; each of its bytes is read here. */
static bool read_target(struct walker *walker, uint64_t address, void *bytes, size_t size)
{
	walker->late = walker->late || ss_now_ns() >= walker->deadline_ns;
	for (size_t done = 0; done < size;) {
		size_t at = (address + done) % PAGE;
		size_t n = SS_MIN(size - done, (size_t)PAGE - at);
		const uint8_t *page =
			walker->late ? NULL : find_page(walker, address + done - at);
		if (!page)
			return false;
		memcpy((uint8_t *)bytes + done, page + at, n);
		done += n;
	}
	return true;
}

/* The start of .eh_frame_hdr as all linkers write it (LSB core, 10.6.2). */
struct frame_header {
	uint8_t version;
	uint8_t encodings[3]; /* pcrel sdata4, udata4, datarel sdata4 */
	int32_t frame;
	uint32_t count;
};

static bool read_frame_header(struct table *table, const struct ss_process_memory *memory,
			      uint64_t address)
{
	struct frame_header frame;

	if (!read_running(memory, address, &frame, sizeof(frame)) || frame.version != 1 ||
	    frame.encodings[0] != 0x1b || frame.encodings[1] != 0x03 ||
	    frame.encodings[2] != 0x3b)
		return false;
	table->info = (unw_dyn_info_t){
		.start_ip = table->start,
		.end_ip = table->end,
		.format = UNW_INFO_FORMAT_REMOTE_TABLE,
		.u.rti = { .segbase = address,
			   .table_len = frame.count,
			   .table_data = address + sizeof(frame) },
	};
	return true;
}

/*
 * Reads a byte of each page from an address to the end of its area, so that the pages are
 * in the memory of the process: those of unwind tables usually are not, and a freeze
 * reads no others.
 */
static void touch(const struct ss_process_memory *memory,
		  const struct ss_capture *capture, uint64_t address)
{
	struct ss_piece pieces[TOUCHED];
	uint8_t bytes[TOUCHED];
	const struct ss_area *area = ss_capture_find_area(capture, address);

	for (address &= ~(uint64_t)(PAGE - 1); area && address < area->end;) {
		size_t count = 0;
		for (; count < TOUCHED && address < area->end; count++, address += PAGE)
			pieces[count] = (struct ss_piece){ .address = address,
							   .bytes = &bytes[count],
							   .size = 1 };
		ss_process_memory_read(memory, pieces, count);
	}
}

/* Finds the table through the ELF header that is mapped at the module's start. .eh_frame
   follows .eh_frame_hdr (as all linkers place it). */
static void read_table(struct table *table, const struct ss_process_memory *memory,
		       const struct ss_capture *capture)
{
	Elf64_Ehdr elf;
	Elf64_Phdr headers[HEADERS_MAX];
	uint64_t first = UINT64_MAX;

	if (!read_running(memory, table->start, &elf, sizeof(elf)) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	size_t count = SS_MIN((size_t)elf.e_phnum, (size_t)HEADERS_MAX);
	if (!read_running(memory, table->start + elf.e_phoff, headers,
			  count * sizeof(*headers)))
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t address = table->start + headers[i].p_vaddr - first;
		if (headers[i].p_type == PT_LOAD)
			first = SS_MIN(first, headers[i].p_vaddr - headers[i].p_offset);
		else if (headers[i].p_type == PT_GNU_EH_FRAME && first != UINT64_MAX &&
			 read_frame_header(table, memory, address))
			touch(memory, capture, address);
	}
}

static struct table *find_table(const struct ss_live *live, uint64_t ip)
{
	size_t low = ss_lower_bound(live->table_count, i, live->tables[i].end <= ip);

	if (low == live->table_count || live->tables[low].start > ip)
		return NULL;
	return &live->tables[low];
}

/* Memory holds the table of the running code, even if the file is deleted, replaced, in
   another mount namespace, or never existed (the vDSO). Files are not opened here. */
static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info,
			  int need_info, void *data)
{
	struct walker *walker = data;
	const struct table *table = find_table(walker->live, ip);
	int ret = -UNW_ENOINFO;

	if (table && table->info.start_ip) {
		unw_dyn_info_t copy = table->info;
		ret = ss_unwind_table_search(space, ip, &copy, info, need_info, data);
	}
	walker->no_info |= ret == -UNW_ENOINFO;
	return ret;
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value,
		      int write, void *data)
{
	(void)space;
	return !write && read_target(data, address, value, sizeof(*value)) ? 0 :
									     -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value,
		      int write, void *data)
{
	const struct walker *walker = data;

	(void)space;
	/* libunwind's register numbers are DWARF's, as far as we track them. */
	return !write && reg >= 0 && ss_regs_get(&walker->regs, (unsigned)reg, value) ?
		       0 :
		       -UNW_EBADREG;
}

static const unw_accessors_t accessors = {
	.find_proc_info = find_proc_info,
	.access_mem = access_mem,
	.access_reg = access_reg,
	SS_UNWIND_NO_ACCESS,
};

static bool make_tables(struct ss_live *live, const struct ss_capture *capture)
{
	live->table_count = capture->modules.count;
	live->tables = calloc(live->table_count + 1, sizeof(*live->tables));
	for (size_t i = 0; live->tables && i < live->table_count; i++) {
		const struct ss_module *module = &capture->modules.items[i]->pub;
		live->tables[i].start = module->base;
		live->tables[i].end = module->base + module->size;
		read_table(&live->tables[i], live->memory, capture);
	}
	return live->tables != NULL;
}

struct ss_live *ss_live_new(const struct ss_capture *capture,
			    const struct ss_process_memory *memory)
{
	_cleanup_(ss_live_cleanup) struct ss_live *live = calloc(1, sizeof(*live));

	if (!live)
		return NULL;
	live->memory = memory;
	live->accessors = accessors; /* libunwind takes a pointer that is not const */
	live->space = unw_create_addr_space(&live->accessors, 0);
	if (!live->space || !make_tables(live, capture))
		return NULL;
	(void)unw_set_caching_policy(live->space, UNW_CACHE_GLOBAL); /* or slower */
	return take_ptr(live);
}

void ss_live_free(struct ss_live *live)
{
	if (!live)
		return;
	if (live->space)
		unw_destroy_addr_space(live->space);
	free(live->tables);
	free(live);
}

struct frames {
	SS_VECTOR(struct ss_live_frame) list;
	uint64_t last_sp;
};

/* Without CFI, libunwind guesses, often wrongly. */
static enum ss_end end_of_step(const struct walker *walker, int step)
{
	if (walker->late || walker->absent)
		return SS_END_UNREADABLE;
	if (walker->no_info)
		return SS_END_NO_UNWIND_INFO;
	switch (step) {
	case 0:
		return SS_END_ROOT;
	case -UNW_ENOINFO:
		return SS_END_NO_UNWIND_INFO;
	case -UNW_EBADFRAME:
		return SS_END_LOOP;
	case -UNW_EINVAL:
	case -UNW_EBADVERSION:
		return SS_END_BAD_UNWIND_INFO;
	default:
		return SS_END_UNREADABLE;
	}
}

/* Adds the frame at the cursor. Returns false at the end of the stack, and sets *end. */
static bool add_frame(struct frames *frames, struct walker *walker, unw_cursor_t *cursor,
		      enum ss_end *end)
{
	uint8_t code[SS_SIGRETURN_SIZE];
	unw_word_t pc = 0;
	unw_word_t sp = 0;

	*end = SS_END_UNREADABLE;
	if (unw_get_reg(cursor, UNW_REG_IP, &pc) < 0 ||
	    unw_get_reg(cursor, UNW_REG_SP, &sp) < 0)
		return false;
	size_t count = frames->list.count;
	bool signal_before = count && frames->list.items[count - 1].signal_frame;
	/* After a signal frame this is a call through a null pointer; otherwise it is
	   the root. */
	*end = signal_before ? SS_END_NO_UNWIND_INFO : SS_END_ROOT;
	if (pc == 0)
		return false;
	*end = SS_END_LOOP;
	if (count && sp <= frames->last_sp && !signal_before)
		return false;
	struct ss_live_frame *frame = ss_vector_push(&frames->list);
	*end = SS_END_LIMIT;
	if (!frame)
		return false;
	bool signal = read_target(walker, pc, code, sizeof(code)) &&
		      ss_arch_host.find_sigframe(code, sizeof(code));
	*frame = (struct ss_live_frame){ .pc = pc, .signal_frame = signal };
	frames->last_sp = sp;
	return true;
}

static enum ss_end walk(struct frames *frames, struct walker *walker,
			unw_cursor_t *cursor, size_t max)
{
	enum ss_end end;

	while (add_frame(frames, walker, cursor, &end)) {
		walker->no_info = walker->absent = false;
		int step = unw_step(cursor);
		if (step <= 0 || walker->no_info)
			return end_of_step(walker, step);
		if (frames->list.count >= max)
			return SS_END_FRAMES;
	}
	return end;
}

static const char *reason_of(const struct walker *walker, enum ss_end end)
{
	if (walker->late)
		return "the time limit (--timeout) was reached while it was unwound";
	return end == SS_END_UNREADABLE && walker->absent ? SS_ABSENT_REASON : NULL;
}

void ss_live_unwind(struct ss_live *live, struct ss_tracee *task, unsigned max_frames,
		    uint64_t deadline_ns)
{
	size_t max = max_frames ? max_frames : (size_t)FRAMES_MAX;
	uint64_t now = ss_now_ns();
	struct frames frames = {};
	unw_cursor_t cursor;
	struct walker walker = { .live = live, .deadline_ns = now };

	if (now < deadline_ns)
		walker.deadline_ns = now + (deadline_ns - now) / SHARE;
	for (size_t i = 0; i < PAGES; i++)
		live->pages[i].address = 0;
	ss_arch_host.attach->regs(&task->kernel, &walker.regs);
	task->live_end = SS_END_UNREADABLE;
	if (unw_init_remote(&cursor, live->space, &walker) == 0)
		task->live_end = walk(&frames, &walker, &cursor, max);
	if (reason_of(&walker, task->live_end))
		task->reason = reason_of(&walker, task->live_end);
	task->live = frames.list.items;
	task->live_count = frames.list.count;
}
