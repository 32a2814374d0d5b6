/*
 * CFI of every kind, including expressions and signal frames: libunwind, reading from
 * the context. It supports only the processor that it was built for. No other file of
 * this room calls libunwind.
 */

#include <string.h>

#include "arch/unwind_table.h"
#include "unwind/unwinder.h"

/* A step reads a few hundred words: to search a table, an FDE, a CIE, and a few saved
   registers. */
enum { READS_MAX = 1 << 20 };

/* The address of the one-entry table that libunwind gets. Nothing is mapped there. */
static const uint64_t entry_address = UINT64_C(0xdead000000000000);

/* An entry of .eh_frame_hdr's table: offsets from a base. */
struct table_entry {
	int32_t start;
	int32_t fde;
};

struct adapter {
	unw_accessors_t accessors;
	unw_addr_space_t space;
	struct ss_unwind_context *ctx;
	struct ss_regs start;
	struct table_entry entry;
	bool in_lookup; /* an FDE is being read; registers are not yet restored */
	bool no_info;	/* what failed in this step */
	bool missing_memory;
	bool missing_register;
	unsigned reads; /* of memory, in this step */
};

/* Finds the FDE and makes a table of one entry for libunwind; offsets are from the FDE. */
static bool find_entry(struct adapter *adapter, uint64_t ip, uint64_t *fde_address)
{
	const struct ss_loaded_module *loaded = ss_context_find_module(adapter->ctx, ip);
	uint64_t start;
	uint64_t fde;

	if (!loaded || !loaded->image ||
	    !ss_cfi_table_search(loaded->image, &loaded->table, ip - loaded->bias, &start,
				 &fde))
		return false;
	adapter->entry.start = (int32_t)(uint32_t)(start - fde);
	adapter->entry.fde = 0;
	*fde_address = fde + loaded->bias;
	/* Modules whose code and table are 2 GiB apart or more are not supported. */
	return start - fde == (uint64_t)(int64_t)adapter->entry.start;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info,
			  int need_info, void *data)
{
	struct adapter *adapter = data;
	uint64_t fde;

	if (!find_entry(adapter, ip, &fde)) {
		adapter->no_info = true;
		return -UNW_ENOINFO;
	}
	unw_dyn_info_t table = {
		.start_ip = 0,
		.end_ip = UINT64_MAX,
		.format = UNW_INFO_FORMAT_REMOTE_TABLE,
		.u.rti = { .segbase = fde, .table_len = 1, .table_data = entry_address },
	};
	adapter->in_lookup = true;
	int ret = ss_unwind_table_search(space, ip, &table, info, need_info, data);
	adapter->in_lookup = false;
	if (ret == -UNW_ENOINFO)
		adapter->no_info = true;
	return ret;
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value,
		      int write, void *data)
{
	struct adapter *adapter = data;

	(void)space;
	/* A DWARF expression can loop, and libunwind does not limit its steps. But it
	   reads each byte of the expression through this function. */
	if (++adapter->reads > READS_MAX)
		return -UNW_EINVAL;
	if (!write && adapter->in_lookup && address == entry_address) {
		memcpy(value, &adapter->entry, sizeof(*value));
		return 0;
	}
	if (!write && ss_context_read_word(adapter->ctx, address, value))
		return 0;
	/* The personality routine is found through a word that ld.so has written. It was
	   not copied, and is not needed here. */
	if (!write && adapter->in_lookup &&
	    ss_context_find_module(adapter->ctx, address)) {
		*value = 0;
		return 0;
	}
	adapter->missing_memory = true;
	return -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value,
		      int write, void *data)
{
	struct adapter *adapter = data;

	(void)space;
	/* libunwind's register numbers are DWARF's, as far as we track them. */
	if (!write && reg >= 0 && ss_regs_get(&adapter->start, (unsigned)reg, value))
		return 0;
	adapter->missing_register = true;
	return -UNW_EBADREG;
}

static const unw_accessors_t accessors = {
	.find_proc_info = find_proc_info,
	.access_mem = access_mem,
	.access_reg = access_reg,
	SS_UNWIND_NO_ACCESS,
};

static void *new (void)
{
	struct adapter *adapter = calloc(1, sizeof(*adapter));

	if (!adapter)
		return NULL;
	adapter->accessors = accessors; /* libunwind takes a pointer that is not const */
	adapter->space = unw_create_addr_space(&adapter->accessors, 0);
	if (!adapter->space) {
		free(adapter);
		return NULL;
	}
	/* Few steps come here, so the cache would only cost locks. */
	(void)unw_set_caching_policy(adapter->space, UNW_CACHE_NONE);
	return adapter;
}

static void free_adapter(void *state)
{
	struct adapter *adapter = state;

	unw_destroy_addr_space(adapter->space);
	free(adapter);
}

static enum ss_step result_of(const struct adapter *adapter, int step)
{
	/* Without CFI libunwind would guess without saying so. Our other unwinders say
	   so. */
	if (adapter->no_info)
		return SS_STEP_NO_INFO;
	if (step > 0)
		return SS_STEP_OK;
	if (step == 0)
		return SS_STEP_ROOT;
	if (adapter->missing_register)
		return SS_STEP_REGISTER;
	return adapter->missing_memory ? SS_STEP_MISSING : SS_STEP_BAD;
}

/* Reads the registers of the cursor's frame. */
static void read_registers(unw_cursor_t *cursor, struct ss_regs *ret)
{
	ret->valid = 0;
	for (unsigned reg = 0; reg < ss_arch_host.reg_count; reg++) {
		unw_word_t value;
		if (unw_get_reg(cursor, (unw_regnum_t)reg, &value) == 0)
			ss_regs_set(ret, reg, value);
	}
}

static enum ss_step step(void *state, struct ss_unwind_context *ctx,
			 struct ss_unwind_frame *frame)
{
	struct adapter *adapter = state;
	unw_cursor_t cursor;
	struct ss_regs next;
	uint64_t pc;
	uint64_t sp;

	if (ctx->arch != &ss_arch_host)
		return SS_STEP_BAD;
	adapter->ctx = ctx;
	adapter->start = frame->regs;
	adapter->start.value[ctx->arch->pc] = ss_unwind_lookup_pc(ctx, frame);
	adapter->reads = 0;
	adapter->no_info = adapter->missing_memory = adapter->missing_register = false;
	if (unw_init_remote(&cursor, adapter->space, adapter) != 0)
		return SS_STEP_REGISTER;
	enum ss_step result = result_of(adapter, unw_step(&cursor));
	/* For libunwind a pc of zero is the root; after a signal frame it is a call
	   through a null pointer. */
	if (result != SS_STEP_OK && !(result == SS_STEP_ROOT && frame->signal))
		return result;
	read_registers(&cursor, &next);
	if (!ss_regs_get(&next, ctx->arch->pc, &pc) ||
	    !ss_regs_get(&next, ctx->arch->sp, &sp))
		return SS_STEP_MISSING;
	if (pc == 0 && !frame->signal)
		return SS_STEP_ROOT;
	/* On aarch64 it reports a step even if it has found nothing. */
	if (pc == adapter->start.value[ctx->arch->pc] &&
	    sp == adapter->start.value[ctx->arch->sp])
		return SS_STEP_BAD;
	frame->regs = next;
	return SS_STEP_OK;
}

const struct ss_unwinder ss_unwinder_libunwind = {
	.name = "libunwind",
	.source = SS_FROM_CFI,
	.new = new,
	.free = free_adapter,
	.step = step,
};
