#include "unwind/dwarf.h"

#include <string.h>

#include "arch/unwind_table.h"

/* A step reads some hundred words: a search of a table, an FDE, a CIE, a few saved
   registers. */
enum { READS_MAX = 1 << 20 };

/* Where libunwind is told that the table of one entry lies: nothing else is there. */
static const uint64_t entry_address = UINT64_C(0xdead000000000000);

/* An entry of .eh_frame_hdr's table: offsets from a base. */
struct table_entry {
	int32_t start;
	int32_t fde;
};

struct ss_dwarf {
	unw_addr_space_t space;
	struct ss_view *view;
	struct ss_regs start;
	struct table_entry entry;
	bool in_lookup; /* an FDE is being read, no register restored */
	bool no_info;	/* during a step: what failed */
	bool missing_memory;
	bool missing_register;
	unsigned reads; /* of memory, in this step */
};

/* The FDE that libunwind is to use, as a table of one entry: offsets from the FDE. */
static bool find_entry(struct ss_dwarf *dwarf, uint64_t ip, uint64_t *fde_address)
{
	const struct ss_loaded *loaded = ss_view_find_module(dwarf->view, ip);
	uint64_t start;
	uint64_t fde;

	if (!loaded || !loaded->image ||
	    !ss_cfi_table_search(loaded->image, &loaded->table, ip - loaded->bias, &start,
				 &fde))
		return false;
	dwarf->entry.start = (int32_t)(uint32_t)(start - fde);
	dwarf->entry.fde = 0;
	*fde_address = fde + loaded->bias;
	/* Code and table of a module are less than 2 GiB apart, or not for us. */
	return start - fde == (uint64_t)(int64_t)dwarf->entry.start;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info,
			  int need_info, void *data)
{
	struct ss_dwarf *dwarf = data;
	uint64_t fde;

	if (!find_entry(dwarf, ip, &fde)) {
		dwarf->no_info = true;
		return -UNW_ENOINFO;
	}
	unw_dyn_info_t table = {
		.start_ip = 0,
		.end_ip = UINT64_MAX,
		.format = UNW_INFO_FORMAT_REMOTE_TABLE,
		.u.rti = { .segbase = fde, .table_len = 1, .table_data = entry_address },
	};
	dwarf->in_lookup = true;
	int ret = ss_unwind_table_search(space, ip, &table, info, need_info, data);
	dwarf->in_lookup = false;
	if (ret == -UNW_ENOINFO)
		dwarf->no_info = true;
	return ret;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *data)
{
	(void)space;
	(void)info; /* libunwind's own pool; nothing of ours is in it */
	(void)data;
}

static int get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t *ret, void *data)
{
	(void)space;
	(void)ret;
	(void)data;
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value,
		      int write, void *data)
{
	struct ss_dwarf *dwarf = data;

	(void)space;
	/* DWARF expressions can jump back, and libunwind does not count their steps:
	   but it reads each byte of them here. */
	if (++dwarf->reads > READS_MAX)
		return -UNW_EINVAL;
	if (!write && dwarf->in_lookup && address == entry_address) {
		memcpy(value, &dwarf->entry, sizeof(*value));
		return 0;
	}
	if (!write && ss_view_read_word(dwarf->view, address, value))
		return 0;
	/* The personality routine is found through a word that ld.so has written: it was
	   not copied, and nobody asks for it here. */
	if (!write && dwarf->in_lookup && ss_view_find_module(dwarf->view, address)) {
		*value = 0;
		return 0;
	}
	dwarf->missing_memory = true;
	return -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value,
		      int write, void *data)
{
	struct ss_dwarf *dwarf = data;

	(void)space;
	/* libunwind's numbers of x86-64 are DWARF's up to the return address. */
	if (!write && reg >= 0 && ss_regs_get(&dwarf->start, (unsigned)reg, value))
		return 0;
	dwarf->missing_register = true;
	return -UNW_EBADREG;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value,
			int write, void *data)
{
	(void)space;
	(void)reg;
	(void)value;
	(void)write;
	(void)data;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *data)
{
	(void)space;
	(void)cursor;
	(void)data;
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t space, unw_word_t address, char *name,
			 size_t size, unw_word_t *offset, void *data)
{
	(void)space;
	(void)address;
	(void)name;
	(void)size;
	(void)offset;
	(void)data;
	return -UNW_ENOINFO;
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

struct ss_dwarf *ss_dwarf_new(void)
{
	struct ss_dwarf *dwarf = calloc(1, sizeof(*dwarf));

	if (!dwarf)
		return NULL;
	/* libunwind copies the table and does not write to it. */
	dwarf->space = unw_create_addr_space((unw_accessors_t *)&accessors, 0);
	if (!dwarf->space) {
		free(dwarf);
		return NULL;
	}
	/* Steps here are rare and far between: its cache would only take locks. */
	(void)unw_set_caching_policy(dwarf->space, UNW_CACHE_NONE);
	return dwarf;
}

void ss_dwarf_free(struct ss_dwarf *dwarf)
{
	if (!dwarf)
		return;
	unw_destroy_addr_space(dwarf->space);
	free(dwarf);
}

void ss_dwarf_begin(struct ss_dwarf *dwarf, struct ss_view *view)
{
	dwarf->view = view;
}

static enum ss_step result_of(const struct ss_dwarf *dwarf, int step)
{
	/* Without CFI libunwind would guess by itself; we do that, and say so. */
	if (dwarf->no_info)
		return SS_STEP_NO_INFO;
	if (step > 0)
		return SS_STEP_OK;
	if (step == 0)
		return SS_STEP_ROOT;
	if (dwarf->missing_register)
		return SS_STEP_REGISTER;
	return dwarf->missing_memory ? SS_STEP_MISSING : SS_STEP_BAD;
}

/* Reads the registers of the frame that the cursor is at. */
static void take_registers(unw_cursor_t *cursor, struct ss_regs *ret)
{
	ret->valid = 0;
	for (unsigned reg = 0; reg < ss_arch.reg_count; reg++) {
		unw_word_t value;
		if (unw_get_reg(cursor, (unw_regnum_t)reg, &value) == 0)
			ss_regs_set(ret, reg, value);
	}
}

enum ss_step ss_dwarf_step(struct ss_dwarf *dwarf, struct ss_regs *regs, bool call,
			   bool signal)
{
	unw_cursor_t cursor;
	struct ss_regs next;
	uint64_t pc;
	uint64_t sp;

	dwarf->start = *regs;
	/* The row for the call itself is the row for the instruction before. */
	if (call)
		dwarf->start.value[ss_arch.pc]--;
	dwarf->reads = 0;
	dwarf->no_info = dwarf->missing_memory = dwarf->missing_register = false;
	if (unw_init_remote(&cursor, dwarf->space, dwarf) != 0)
		return SS_STEP_REGISTER;
	enum ss_step result = result_of(dwarf, unw_step(&cursor));
	/* To libunwind a pc of zero is the root; behind a signal frame it is a call
	   through a null pointer. */
	if (result != SS_STEP_OK && !(result == SS_STEP_ROOT && signal))
		return result;
	take_registers(&cursor, &next);
	if (!ss_regs_get(&next, ss_arch.pc, &pc) || !ss_regs_get(&next, ss_arch.sp, &sp))
		return SS_STEP_MISSING;
	if (pc == 0 && !signal)
		return SS_STEP_ROOT;
	*regs = next;
	return SS_STEP_OK;
}
