#include "unwind/cfi_row.h"

#include <dwarf.h>
#include <string.h>

#include "arch/arch.h"

enum { SAVED_ROWS_MAX = 8, OPERAND_MASK = 0x3f };

struct machine {
	const struct ss_cfi_entry *entry;
	uint64_t wanted; /* the row in force here is looked for */
	uint64_t location;
	struct ss_cfi_row row;
	struct ss_cfi_row initial;
	struct ss_cfi_row saved[SAVED_ROWS_MAX];
	size_t saved_count;
	bool done; /* location has passed wanted */
	bool failed;
};

static int32_t to_offset(struct machine *m, int64_t value)
{
	if (value < INT32_MIN || value > INT32_MAX)
		m->failed = true;
	return (int32_t)value;
}

static int64_t factored(struct machine *m, int64_t value)
{
	int64_t product;

	if (__builtin_mul_overflow(value, m->entry->data_align, &product))
		m->failed = true;
	return product;
}

static void set_rule(struct machine *m, uint64_t reg, enum ss_row_rule rule,
		     int64_t offset)
{
	if (reg >= SS_ROW_REGS)
		return; /* floating point and the like: nobody asks for them */
	m->row.rules[reg] = (uint8_t)rule;
	m->row.offsets[reg] = to_offset(m, offset);
}

static void restore_rule(struct machine *m, uint64_t reg)
{
	if (reg >= SS_ROW_REGS)
		return;
	m->row.rules[reg] = m->initial.rules[reg];
	m->row.offsets[reg] = m->initial.offsets[reg];
}

static void set_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	m->failed |= reg >= SS_ROW_REGS;
	m->row.cfa_register = (uint8_t)reg;
	m->row.cfa_offset = to_offset(m, offset);
	m->row.cfa_saved = false;
}

static void advance(struct machine *m, uint64_t delta)
{
	uint64_t step;

	if (__builtin_mul_overflow(delta, m->entry->code_align, &step) ||
	    __builtin_add_overflow(m->location, step, &m->location))
		m->failed = true;
	m->done = m->location > m->wanted;
}

static void remember(struct machine *m)
{
	if (m->saved_count == SAVED_ROWS_MAX)
		m->failed = true;
	else
		m->saved[m->saved_count++] = m->row;
}

static void recall(struct machine *m)
{
	if (m->saved_count == 0)
		m->failed = true;
	else
		m->row = m->saved[--m->saved_count];
}

/* A DWARF expression that is a register plus an offset, and, if saved is set, the word at
   that address. What is more than that fails. */
static uint64_t read_place(struct machine *m, struct ss_cfi_bytes *b, bool saved,
			   int64_t *offset)
{
	uint64_t size = ss_cfi_read_uleb(b);
	const uint8_t *end = b->at + SS_MIN(size, (uint64_t)(b->end - b->at));
	uint64_t op = ss_cfi_read_fixed(b, 1);

	*offset = ss_cfi_read_sleb(b);
	if (saved && ss_cfi_read_fixed(b, 1) != DW_OP_deref)
		m->failed = true;
	if (op < DW_OP_breg0 || op > DW_OP_breg31 || b->at != end)
		m->failed = true;
	return op - DW_OP_breg0;
}

static void set_cfa_saved(struct machine *m, struct ss_cfi_bytes *b)
{
	int64_t offset;
	uint64_t reg = read_place(m, b, true, &offset);

	set_cfa(m, reg, offset);
	m->row.cfa_saved = true;
}

static void set_saved_fp(struct machine *m, uint64_t reg, struct ss_cfi_bytes *b)
{
	int64_t offset;

	if (read_place(m, b, false, &offset) != ss_arch.fp)
		m->failed = true;
	set_rule(m, reg, SS_RULE_SAVED_FP, offset);
}

static void run_cfa(struct machine *m, uint8_t op, struct ss_cfi_bytes *b)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = ss_cfi_read_uleb(b);
		set_cfa(m, reg, (int64_t)ss_cfi_read_uleb(b));
		break;
	case DW_CFA_def_cfa_sf:
		reg = ss_cfi_read_uleb(b);
		set_cfa(m, reg, factored(m, ss_cfi_read_sleb(b)));
		break;
	case DW_CFA_def_cfa_register:
		set_cfa(m, ss_cfi_read_uleb(b), m->row.cfa_offset);
		break;
	case DW_CFA_def_cfa_offset:
		set_cfa(m, m->row.cfa_register, (int64_t)ss_cfi_read_uleb(b));
		break;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa(m, m->row.cfa_register, factored(m, ss_cfi_read_sleb(b)));
		break;
	case DW_CFA_def_cfa_expression:
		set_cfa_saved(m, b);
		break;
	default: /* what is unknown */
		m->failed = true;
	}
}

static void run_rule(struct machine *m, uint8_t op, struct ss_cfi_bytes *b)
{
	uint64_t reg = ss_cfi_read_uleb(b);

	switch (op) {
	case DW_CFA_offset_extended:
		set_rule(m, reg, SS_RULE_SAVED,
			 factored(m, (int64_t)ss_cfi_read_uleb(b)));
		break;
	case DW_CFA_offset_extended_sf:
		set_rule(m, reg, SS_RULE_SAVED, factored(m, ss_cfi_read_sleb(b)));
		break;
	case DW_CFA_restore_extended:
		restore_rule(m, reg);
		break;
	case DW_CFA_undefined:
		set_rule(m, reg, SS_RULE_UNDEFINED, 0);
		break;
	case DW_CFA_expression:
		set_saved_fp(m, reg, b);
		break;
	default: /* DW_CFA_same_value */
		set_rule(m, reg, SS_RULE_SAME, 0);
	}
}

static void run_extended(struct machine *m, uint8_t op, struct ss_cfi_bytes *b)
{
	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_advance_loc1:
		advance(m, ss_cfi_read_fixed(b, 1));
		break;
	case DW_CFA_advance_loc2:
		advance(m, ss_cfi_read_fixed(b, 2));
		break;
	case DW_CFA_advance_loc4:
		advance(m, ss_cfi_read_fixed(b, 4));
		break;
	case DW_CFA_remember_state:
		remember(m);
		break;
	case DW_CFA_restore_state:
		recall(m);
		break;
	case DW_CFA_GNU_args_size:
		(void)ss_cfi_read_uleb(b); /* for exception handling only */
		break;
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_expression:
		run_rule(m, op, b);
		break;
	default:
		run_cfa(m, op, b);
	}
}

static void run(struct machine *m, const struct ss_cfi_program *program)
{
	struct ss_cfi_bytes b = { .at = program->bytes,
				  .end = program->bytes + program->size };

	while (b.at < b.end && !m->failed && !m->done) {
		uint8_t op = (uint8_t)ss_cfi_read_fixed(&b, 1);
		uint8_t operand = op & OPERAND_MASK;
		switch (op & ~OPERAND_MASK) {
		case DW_CFA_advance_loc:
			advance(m, operand);
			break;
		case DW_CFA_offset:
			set_rule(m, operand, SS_RULE_SAVED,
				 factored(m, (int64_t)ss_cfi_read_uleb(&b)));
			break;
		case DW_CFA_restore:
			restore_rule(m, operand);
			break;
		default:
			run_extended(m, op, &b);
		}
		m->failed |= b.failed;
	}
}

bool ss_cfi_row_make(const struct ss_cfi_entry *entry, uint64_t address,
		     struct ss_cfi_row *ret)
{
	struct machine m = { .entry = entry,
			     .wanted = address,
			     .location = entry->start };

	if (entry->signal || entry->return_register != ss_arch.pc)
		return false;
	run(&m, &entry->initial);
	if (m.done) /* a CIE does not advance */
		return false;
	m.initial = m.row;
	run(&m, &entry->program);
	/* The stack pointer of the caller is the CFA; a rule of its own is not usual. */
	if (m.failed || m.row.rules[ss_arch.sp] != SS_RULE_SAME)
		return false;
	*ret = m.row;
	return true;
}
