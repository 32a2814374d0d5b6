#include "capture/live.h"

#include <elf.h>
#include <libunwind-ptrace.h>
#include <string.h>

#include "arch/unwind_table.h"
#include "base/clock.h"
#include "base/search.h"

/* The unwind table of a module, in target memory. */
struct table {
	uint64_t start;
	uint64_t end;
	unw_dyn_info_t info; /* start_ip 0: none */
	bool read;
};

struct ss_live {
	unw_addr_space_t space;	 /* uses the accessors below */
	unw_addr_space_t ptrace; /* uses those of libunwind-ptrace */
	unw_accessors_t accessors;
	const struct ss_process_memory *memory;
	uint64_t deadline_ns;
	struct table *tables; /* one for each module of the capture, ascending */
	size_t table_count;
};

/* The argument of the accessors. */
struct walker {
	struct ss_live *live;
	void *upt;    /* state of libunwind-ptrace for the thread */
	bool no_info; /* no CFI was found in this step */
	bool late;    /* the deadline has passed */
};

enum {
	/* A deeper stack is a loop that the checks missed. */
	FRAMES_MAX = 1 << 20,
	HEADERS_MAX = 64,
};

static bool read_target(const struct ss_process_memory *memory, uint64_t address,
			void *bytes, size_t size)
{
	struct ss_piece piece = { .address = address, .bytes = bytes, .size = size };

	ss_process_memory_read(memory, &piece, 1);
	return piece.done == size;
}

/* The start of .eh_frame_hdr as all linkers write it (LSB core, 10.6.2). */
struct frame_header {
	uint8_t version;
	uint8_t encodings[3]; /* pcrel sdata4, udata4, datarel sdata4 */
	int32_t frame;
	uint32_t count;
};

static void read_frame_header(struct table *table, const struct ss_process_memory *memory,
			      uint64_t address)
{
	struct frame_header frame;

	if (!read_target(memory, address, &frame, sizeof(frame)) || frame.version != 1 ||
	    frame.encodings[0] != 0x1b || frame.encodings[1] != 0x03 ||
	    frame.encodings[2] != 0x3b)
		return;
	table->info = (unw_dyn_info_t){
		.start_ip = table->start,
		.end_ip = table->end,
		.format = UNW_INFO_FORMAT_REMOTE_TABLE,
		.u.rti = { .segbase = address,
			   .table_len = frame.count,
			   .table_data = address + sizeof(frame) },
	};
}

/* Finds the table through the ELF header that is mapped at the module's start. */
static void read_table(struct table *table, const struct ss_process_memory *memory)
{
	Elf64_Ehdr elf;
	Elf64_Phdr headers[HEADERS_MAX];
	uint64_t first = UINT64_MAX;

	table->read = true;
	if (!read_target(memory, table->start, &elf, sizeof(elf)) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	size_t count = SS_MIN((size_t)elf.e_phnum, (size_t)HEADERS_MAX);
	if (!read_target(memory, table->start + elf.e_phoff, headers,
			 count * sizeof(*headers)))
		return;
	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type == PT_LOAD)
			first = SS_MIN(first, headers[i].p_vaddr - headers[i].p_offset);
		else if (headers[i].p_type == PT_GNU_EH_FRAME && first != UINT64_MAX)
			read_frame_header(table, memory,
					  table->start + headers[i].p_vaddr - first);
	}
}

static struct table *find_table(const struct ss_live *live, uint64_t ip)
{
	size_t low = ss_lower_bound(live->table_count, i, live->tables[i].end <= ip);

	if (low == live->table_count || live->tables[low].start > ip)
		return NULL;
	return &live->tables[low];
}

/*
 * Memory holds the table of the running code, even if the file is deleted, replaced, in
 * another mount namespace, or never existed (the vDSO). Without a table in memory,
 * libunwind-ptrace reads the file at the module's path.
 */
static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info,
			  int need_info, void *data)
{
	struct walker *walker = data;
	struct table *table = find_table(walker->live, ip);
	int ret;

	if (table && !table->read)
		read_table(table, walker->live->memory);
	if (table && table->info.start_ip) {
		unw_dyn_info_t copy = table->info;
		ret = ss_unwind_table_search(space, ip, &copy, info, need_info, data);
	} else {
		/* libunwind-ptrace passes its argument to the accessors, so they must
		   be its own. */
		ret = _UPT_find_proc_info(walker->live->ptrace, ip, info, need_info,
					  walker->upt);
	}
	walker->no_info |= ret == -UNW_ENOINFO;
	return ret;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *data)
{
	const struct walker *walker = data;

	_UPT_put_unwind_info(space, info, walker->upt);
}

static int get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t *ret, void *data)
{
	const struct walker *walker = data;

	return _UPT_get_dyn_info_list_addr(space, ret, walker->upt);
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value,
		      int write, void *data)
{
	struct walker *walker = data;

	/* An expression of hostile CFI may be endless; each of its bytes is read here. */
	walker->late = walker->late || ss_now_ns() >= walker->live->deadline_ns;
	return write || walker->late ?
		       -UNW_EINVAL :
		       _UPT_access_mem(space, address, value, 0, walker->upt);
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value,
		      int write, void *data)
{
	const struct walker *walker = data;

	return write ? -UNW_EBADREG : _UPT_access_reg(space, reg, value, 0, walker->upt);
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value,
			int write, void *data)
{
	const struct walker *walker = data;

	return write ? -UNW_EBADREG :
		       _UPT_access_fpreg(space, reg, value, 0, walker->upt);
}

static int get_proc_name(unw_addr_space_t space, unw_word_t address, char *name,
			 size_t size, unw_word_t *offset, void *data)
{
	const struct walker *walker = data;

	return _UPT_get_proc_name(space, address, name, size, offset, walker->upt);
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *data)
{
	(void)space; /* the thread is never modified */
	(void)cursor;
	(void)data;
	return -UNW_EINVAL;
}

static const unw_accessors_t accessors = {
	.find_proc_info = find_proc_info,
	.put_unwind_info = put_unwind_info,
	.get_dyn_info_list_addr = get_dyn_info_list_addr,
	.access_mem = access_mem,
	.access_reg = access_reg,
	.access_fpreg = access_fpreg,
	.resume = resume,
	.get_proc_name = get_proc_name,
};

static bool make_tables(struct ss_live *live, const struct ss_capture *capture)
{
	live->table_count = capture->modules.count;
	live->tables = calloc(live->table_count + 1, sizeof(*live->tables));
	for (size_t i = 0; live->tables && i < live->table_count; i++) {
		const struct ss_module *module = &capture->modules.items[i]->pub;
		live->tables[i].start = module->base;
		live->tables[i].end = module->base + module->size;
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
	live->ptrace = unw_create_addr_space(&_UPT_accessors, 0);
	if (!live->space || !live->ptrace || !make_tables(live, capture))
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
	if (live->ptrace)
		unw_destroy_addr_space(live->ptrace);
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
	if (walker->late)
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
static bool add_frame(struct frames *frames, const struct walker *walker,
		      unw_cursor_t *cursor, enum ss_end *end)
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
	bool signal = read_target(walker->live->memory, pc, code, sizeof(code)) &&
		      ss_arch_host.is_sigreturn(code, sizeof(code));
	*frame = (struct ss_live_frame){ .pc = pc, .signal_frame = signal };
	frames->last_sp = sp;
	return true;
}

static enum ss_end walk(struct frames *frames, struct walker *walker,
			unw_cursor_t *cursor, size_t max)
{
	enum ss_end end;

	while (add_frame(frames, walker, cursor, &end)) {
		walker->no_info = false;
		int step = unw_step(cursor);
		if (step <= 0 || walker->no_info)
			return end_of_step(walker, step);
		if (frames->list.count >= max)
			return SS_END_FRAMES;
	}
	return end;
}

void ss_live_unwind(struct ss_live *live, struct ss_task *task, unsigned max_frames,
		    uint64_t deadline_ns)
{
	size_t max = max_frames ? max_frames : (size_t)FRAMES_MAX;
	struct frames frames = {};
	unw_cursor_t cursor;
	struct walker walker = { .live = live, .upt = _UPT_create(task->tid) };

	live->deadline_ns = deadline_ns;
	task->live_end = SS_END_UNREADABLE;
	if (!walker.upt)
		return;
	if (unw_init_remote(&cursor, live->space, &walker) == 0)
		task->live_end = walk(&frames, &walker, &cursor, max);
	if (walker.late)
		task->reason = "the time limit (--timeout) ended its unwinding";
	_UPT_destroy(walker.upt);
	task->live = frames.list.items;
	task->live_count = frames.list.count;
}
