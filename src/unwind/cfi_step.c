#include "unwind/cfi_step.h"

#include <string.h>

#include "unwind/cfi_row.h"
#include "unwind/go_row.h"

enum {
	SLOTS_FIRST = 1024,
	/* 100 bytes each; a process has some thousand return addresses. */
	SLOTS_MAX = 1 << 16,
};

struct slot {
	const struct ss_image *image; /* NULL: free */
	uint64_t address;	      /* ELF virtual */
	enum ss_cfi_found found;
	struct ss_cfi_row row; /* FOUND */
};

struct ss_rows {
	struct slot *slots;
	size_t slot_count; /* a power of two */
	size_t used;
};

struct ss_rows *ss_rows_new(void)
{
	struct ss_rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return NULL;
	rows->slots = calloc(SLOTS_FIRST, sizeof(*rows->slots));
	rows->slot_count = SLOTS_FIRST;
	if (!rows->slots) {
		free(rows);
		return NULL;
	}
	return rows;
}

void ss_rows_free(struct ss_rows *rows)
{
	if (!rows)
		return;
	free(rows->slots);
	free(rows);
}

static struct slot *find_slot(struct slot *slots, size_t slot_count,
			      const struct ss_image *image, uint64_t address)
{
	/* Fibonacci hashing: the upper half of the product is well mixed. */
	uint64_t hash = (address ^ (uintptr_t)image) * UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = hash >> 32;; i++) {
		struct slot *slot = &slots[i & (slot_count - 1)];
		if (!slot->image || (slot->image == image && slot->address == address))
			return slot;
	}
}

/* Makes room: twice as many slots, or at the limit all of them free again. */
static void make_room(struct ss_rows *rows)
{
	size_t count = rows->slot_count * 2;
	struct slot *slots = count <= SLOTS_MAX ? calloc(count, sizeof(*slots)) : NULL;

	if (!slots) {
		memset(rows->slots, 0, rows->slot_count * sizeof(*rows->slots));
		rows->used = 0;
		return;
	}
	for (size_t i = 0; i < rows->slot_count; i++) {
		const struct slot *old = &rows->slots[i];
		if (old->image)
			*find_slot(slots, count, old->image, old->address) = *old;
	}
	free(rows->slots);
	rows->slots = slots;
	rows->slot_count = count;
}

static void fill_slot(struct slot *slot, const struct ss_loaded *loaded, uint64_t address)
{
	struct ss_cfi_entry entry;

	slot->image = loaded->image;
	slot->address = address;
	slot->found = ss_cfi_entry_find(loaded->image, &loaded->table, address, &entry);
	if (slot->found == SS_CFI_FOUND && !ss_cfi_row_make(&entry, address, &slot->row))
		slot->found = SS_CFI_COMPLEX;
}

static const struct slot *get_slot(struct ss_rows *rows, const struct ss_loaded *loaded,
				   uint64_t address)
{
	struct slot *slot =
		find_slot(rows->slots, rows->slot_count, loaded->image, address);

	if (slot->image)
		return slot;
	if (rows->used * 2 >= rows->slot_count) {
		make_room(rows);
		slot = find_slot(rows->slots, rows->slot_count, loaded->image, address);
	}
	rows->used++;
	fill_slot(slot, loaded, address);
	return slot;
}

static bool read_saved(struct ss_view *view, const struct ss_cfi_row *row, unsigned reg,
		       uint64_t cfa, const struct ss_regs *regs, uint64_t *ret)
{
	uint64_t base = cfa;

	if (row->rules[reg] == SS_RULE_SAVED_FP && !ss_regs_get(regs, ss_arch.fp, &base))
		return false;
	return (row->rules[reg] == SS_RULE_SAVED ||
		row->rules[reg] == SS_RULE_SAVED_FP) &&
	       ss_view_read_word(view, base + (uint64_t)(int64_t)row->offsets[reg], ret);
}

/* What the caller had in its registers; a saved one that cannot be read is lost. */
static void restore_registers(struct ss_view *view, const struct ss_cfi_row *row,
			      uint64_t cfa, struct ss_regs *regs)
{
	const struct ss_regs before = *regs;

	for (unsigned reg = 0; reg < SS_ROW_REGS; reg++) {
		uint64_t value;
		if (row->rules[reg] == SS_RULE_SAME)
			continue;
		regs->valid &= ~(UINT64_C(1) << reg);
		if (read_saved(view, row, reg, cfa, &before, &value))
			ss_regs_set(regs, reg, value);
	}
}

static enum ss_step apply_row(struct ss_view *view, const struct ss_cfi_row *row,
			      struct ss_regs *regs)
{
	uint64_t cfa;
	uint64_t pc;

	if (row->rules[ss_arch.pc] == SS_RULE_UNDEFINED)
		return SS_STEP_ROOT;
	if (row->rules[ss_arch.pc] != SS_RULE_SAVED)
		return SS_STEP_COMPLEX;
	if (!ss_regs_get(regs, row->cfa_register, &cfa))
		return SS_STEP_REGISTER;
	cfa += (uint64_t)(int64_t)row->cfa_offset;
	if (row->cfa_saved && !ss_view_read_word(view, cfa, &cfa))
		return SS_STEP_MISSING;
	if (!ss_view_read_word(view, cfa + (uint64_t)(int64_t)row->offsets[ss_arch.pc],
			       &pc))
		return SS_STEP_MISSING;
	if (pc == 0)
		return SS_STEP_ROOT;
	restore_registers(view, row, cfa, regs);
	ss_regs_set(regs, ss_arch.pc, pc);
	ss_regs_set(regs, ss_arch.sp, cfa);
	return SS_STEP_OK;
}

/*
 * The innermost frame may be one that its frame pointer knows nothing of. What leads to
 * no code is no return address: the function has changed to another stack.
 */
static enum ss_step step_go(struct ss_view *view, const struct ss_loaded *loaded,
			    struct ss_regs *regs)
{
	struct ss_regs before = *regs;
	struct ss_cfi_row row;

	if (!ss_go_row_make(loaded->image, ss_regs_pc(regs) - loaded->bias, &row) ||
	    apply_row(view, &row, regs) != SS_STEP_OK)
		return SS_STEP_NO_INFO;
	if (ss_view_is_code(view, ss_regs_pc(regs)))
		return SS_STEP_OK;
	*regs = before;
	return SS_STEP_NO_INFO;
}

enum ss_step ss_rows_step(struct ss_rows *rows, struct ss_view *view,
			  struct ss_regs *regs, bool call)
{
	uint64_t pc = ss_regs_pc(regs) - call;
	const struct ss_loaded *loaded = ss_view_find_module(view, pc);

	if (!loaded || !loaded->image || loaded->left_out)
		return SS_STEP_NO_INFO;
	const struct slot *slot = get_slot(rows, loaded, pc - loaded->bias);
	switch (slot->found) {
	case SS_CFI_FOUND:
		return apply_row(view, &slot->row, regs);
	case SS_CFI_NONE:
		return call ? SS_STEP_NO_INFO : step_go(view, loaded, regs);
	default:
		return SS_STEP_COMPLEX;
	}
}

bool ss_rows_begins_at(struct ss_rows *rows, struct ss_view *view, uint64_t pc)
{
	const struct ss_loaded *loaded = ss_view_find_module(view, pc);

	return loaded && loaded->image && !loaded->left_out &&
	       get_slot(rows, loaded, pc - 1 - loaded->bias)->found == SS_CFI_NONE &&
	       get_slot(rows, loaded, pc - loaded->bias)->found != SS_CFI_NONE;
}
