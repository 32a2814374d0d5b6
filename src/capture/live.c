#include "capture/live.h"

#include <elf.h>
#include <libunwind-ptrace.h>
#include <string.h>

#include "arch/unwind_table.h"

/* The unwind table of the vDSO, for which libunwind-ptrace finds no file. */
struct vdso {
	uint64_t start;
	uint64_t end;
	unw_dyn_info_t table; /* start_ip 0: none */
};

struct ss_live {
	unw_addr_space_t space;	 /* with the accessors below */
	unw_addr_space_t ptrace; /* with libunwind-ptrace's */
	struct vdso vdso;
};

/* What the accessors are given. */
struct walker {
	const struct ss_live *live;
	void *upt; /* libunwind-ptrace's hold on the thread */
};

/* A stack that goes on for so long is a loop that the checks did not see. */
enum { FRAMES_MAX = 1 << 20, VDSO_HEADERS_MAX = 16 };

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info,
			  int need_info, void *data)
{
	const struct walker *walker = data;
	const struct vdso *vdso = &walker->live->vdso;

	if (ip >= vdso->start && ip < vdso->end && vdso->table.start_ip) {
		unw_dyn_info_t table = vdso->table;
		return ss_unwind_table_search(space, ip, &table, info, need_info, data);
	}
	/* It hands its own argument on to the accessors: they have to be its own. */
	return _UPT_find_proc_info(walker->live->ptrace, ip, info, need_info,
				   walker->upt);
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
	const struct walker *walker = data;

	return write ? -UNW_EINVAL :
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
	(void)space; /* nothing here ever changes the thread */
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

static bool read_target(const struct ss_memory *memory, uint64_t address, void *bytes,
			size_t size)
{
	struct ss_piece piece = { .address = address, .bytes = bytes, .size = size };

	ss_memory_read(memory, &piece, 1);
	return piece.done == size;
}

/* The start of .eh_frame_hdr as the kernel's build writes it; LSB core 10.6.2. */
struct frame_header {
	uint8_t version;
	uint8_t encodings[3]; /* pcrel sdata4, udata4, datarel sdata4 */
	int32_t frame;
	uint32_t count;
};

static void read_vdso_table(struct vdso *vdso, const struct ss_memory *memory,
			    const Elf64_Phdr *header)
{
	struct frame_header frame;
	uint64_t at = vdso->start + header->p_vaddr;

	if (!read_target(memory, at, &frame, sizeof(frame)) || frame.version != 1 ||
	    frame.encodings[0] != 0x1b || frame.encodings[1] != 0x03 ||
	    frame.encodings[2] != 0x3b)
		return;
	vdso->table = (unw_dyn_info_t){
		.start_ip = vdso->start,
		.end_ip = vdso->end,
		.format = UNW_INFO_FORMAT_REMOTE_TABLE,
		.u.rti = { .segbase = at,
			   .table_len = frame.count,
			   .table_data = at + sizeof(frame) },
	};
}

static void find_vdso(struct vdso *vdso, const struct ss_capture *capture,
		      const struct ss_memory *memory)
{
	Elf64_Ehdr elf;
	Elf64_Phdr headers[VDSO_HEADERS_MAX];

	for (size_t i = 0; i < capture->areas.count; i++) {
		const struct ss_area *area = &capture->areas.items[i];
		if (strcmp(area->name, "[vdso]") == 0) {
			vdso->start = area->start;
			vdso->end = area->end;
		}
	}
	if (!vdso->start || !read_target(memory, vdso->start, &elf, sizeof(elf)))
		return;
	size_t count = SS_MIN((size_t)elf.e_phnum, (size_t)VDSO_HEADERS_MAX);
	if (!read_target(memory, vdso->start + elf.e_phoff, headers,
			 count * sizeof(*headers)))
		return;
	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type == PT_GNU_EH_FRAME)
			read_vdso_table(vdso, memory, &headers[i]);
	}
}

struct ss_live *ss_live_new(const struct ss_capture *capture,
			    const struct ss_memory *memory)
{
	_cleanup_(ss_live_cleanup) struct ss_live *live = calloc(1, sizeof(*live));

	if (!live)
		return NULL;
	/* libunwind copies the table and does not write to it. */
	live->space = unw_create_addr_space((unw_accessors_t *)&accessors, 0);
	live->ptrace = unw_create_addr_space(&_UPT_accessors, 0);
	if (!live->space || !live->ptrace)
		return NULL;
	(void)unw_set_caching_policy(live->space, UNW_CACHE_GLOBAL); /* or slower */
	find_vdso(&live->vdso, capture, memory);
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
	free(live);
}

struct frames {
	SS_VECTOR(struct ss_live_frame) list;
	uint64_t last_sp;
};

static enum ss_end end_of_step(int step)
{
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

/* Adds the frame the cursor is at. False: the stack ends here, with *end. */
static bool add_frame(struct frames *frames, unw_cursor_t *cursor, enum ss_end *end)
{
	unw_word_t pc = 0;
	unw_word_t sp = 0;
	bool signal = unw_is_signal_frame(cursor) > 0;

	*end = SS_END_UNREADABLE;
	if (unw_get_reg(cursor, UNW_REG_IP, &pc) < 0 ||
	    unw_get_reg(cursor, UNW_REG_SP, &sp) < 0)
		return false;
	*end = SS_END_ROOT;
	if (pc == 0)
		return false;
	size_t count = frames->list.count;
	*end = SS_END_LOOP;
	if (count && sp <= frames->last_sp && !frames->list.items[count - 1].signal_frame)
		return false;
	struct ss_live_frame *frame = ss_vector_push(&frames->list);
	*end = SS_END_LIMIT;
	if (!frame)
		return false;
	*frame = (struct ss_live_frame){ .pc = pc, .signal_frame = signal };
	frames->last_sp = sp;
	return true;
}

static enum ss_end walk(struct frames *frames, unw_cursor_t *cursor, size_t max)
{
	enum ss_end end;

	while (add_frame(frames, cursor, &end)) {
		int step = unw_step(cursor);
		if (step <= 0)
			return end_of_step(step);
		if (frames->list.count >= max)
			return SS_END_FRAMES;
	}
	return end;
}

void ss_live_unwind(struct ss_live *live, struct ss_task *task, unsigned max_frames)
{
	struct frames frames = {};
	unw_cursor_t cursor;
	struct walker walker = { .live = live, .upt = _UPT_create(task->tid) };

	task->live_end = SS_END_UNREADABLE;
	if (!walker.upt)
		return;
	if (unw_init_remote(&cursor, live->space, &walker) == 0)
		task->live_end = walk(&frames, &cursor,
				      max_frames ? max_frames : (size_t)FRAMES_MAX);
	_UPT_destroy(walker.upt);
	task->live = frames.list.items;
	task->live_count = frames.list.count;
}
