#include "unwind/cfi.h"

#include <dwarf.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/vector.h"
#include "elf/cfi_table.h"
#include "elf/go_table.h"

enum { SAVED_ROWS_MAX = 8, OPERAND_MASK = 0x3f };

enum rule {
	RULE_SAME = 0,	/* not changed */
	RULE_SAVED,	/* at CFA + offset */
	RULE_SAVED_FP,	/* at frame pointer + offset */
	RULE_UNDEFINED, /* lost; of the return address: the outermost frame */
};

/* A row while its program runs. */
struct state {
	uint8_t cfa_register;
	int32_t cfa_offset;
	bool cfa_saved;
	bool return_signed;
	uint8_t rules[SS_REG_MAX];
	int32_t offsets[SS_REG_MAX];
};

struct machine {
	const struct ss_arch *arch;
	const struct ss_cfi_entry *entry;
	uint64_t address; /* to find the row of */
	uint64_t location;
	struct state row;
	struct state initial;
	struct state saved[SAVED_ROWS_MAX];
	size_t saved_count;
	bool done; /* location has passed address */
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

static void set_rule(struct machine *m, uint64_t reg, enum rule rule, int64_t offset)
{
	if (reg >= m->arch->reg_count)
		return; /* floating-point and vector registers are not tracked */
	m->row.rules[reg] = (uint8_t)rule;
	m->row.offsets[reg] = to_offset(m, offset);
}

static void restore_rule(struct machine *m, uint64_t reg)
{
	if (reg >= m->arch->reg_count)
		return;
	m->row.rules[reg] = m->initial.rules[reg];
	m->row.offsets[reg] = m->initial.offsets[reg];
}

static void set_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	m->failed |= reg >= m->arch->reg_count;
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
	m->done = m->location > m->address;
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

/* Reads a DWARF expression of the form register plus offset and, if saved is set, the
   word at that address. All others fail. */
static uint64_t read_place(struct machine *m, struct ss_cursor *b, bool saved,
			   int64_t *offset)
{
	uint64_t size = ss_cursor_uleb128(b);
	const uint8_t *end = b->at + SS_MIN(size, (uint64_t)(b->end - b->at));
	uint64_t op = ss_cursor_byte(b);

	*offset = ss_cursor_sleb128(b);
	if (saved && ss_cursor_byte(b) != DW_OP_deref)
		m->failed = true;
	if (op < DW_OP_breg0 || op > DW_OP_breg31 || b->at != end)
		m->failed = true;
	return op - DW_OP_breg0;
}

/*
 * The expression that linkers write for procedure linkage tables, of which each entry has 16 bytes and
 * pushes a word on the way: sp + offset + ((pc & 15) >= some byte) * word.
 */
static bool set_cfa_of_stub(struct machine *m, struct ss_cursor *b)
{
	struct ss_cursor c = *b;
	const uint64_t size = ss_cursor_uleb128(&c);
	const uint8_t *end = c.at + SS_MIN(size, (uint64_t)(c.end - c.at));
	const uint64_t sp = ss_cursor_byte(&c) - DW_OP_breg0;
	const int64_t offset = ss_cursor_sleb128(&c);
	const uint64_t pc = ss_cursor_byte(&c) - DW_OP_breg0;
	const uint64_t none = ss_cursor_byte(&c);
	const uint64_t mask = ss_cursor_byte(&c);
	const uint64_t and = ss_cursor_byte(&c);
	const uint64_t pushed = ss_cursor_byte(&c) - DW_OP_lit0;
	const uint64_t ge = ss_cursor_byte(&c);
	const uint64_t shift = ss_cursor_byte(&c) - DW_OP_lit0;

	if (sp != m->arch->sp || pc != m->arch->pc || none != 0 || mask != DW_OP_lit15 ||
	    and != DW_OP_and || pushed > 15 || ge != DW_OP_ge || shift > 3 ||
	    ss_cursor_byte(&c) != DW_OP_shl || ss_cursor_byte(&c) != DW_OP_plus ||
	    c.failed || c.at != end)
		return false;
	*b = c;
	/* Unsigned: the offset of a hostile file may be any. */
	const uint64_t more = (uint64_t)((m->address & 15) >= pushed) << shift;
	set_cfa(m, sp, (int64_t)((uint64_t)offset + more));
	return true;
}

static void set_cfa_saved(struct machine *m, struct ss_cursor *b)
{
	int64_t offset;

	if (set_cfa_of_stub(m, b))
		return;
	uint64_t reg = read_place(m, b, true, &offset);

	set_cfa(m, reg, offset);
	m->row.cfa_saved = true;
}

static void set_saved_fp(struct machine *m, uint64_t reg, struct ss_cursor *b)
{
	int64_t offset;

	if (read_place(m, b, false, &offset) != m->arch->fp)
		m->failed = true;
	set_rule(m, reg, RULE_SAVED_FP, offset);
}

static void run_cfa(struct machine *m, uint8_t op, struct ss_cursor *b)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = ss_cursor_uleb128(b);
		set_cfa(m, reg, (int64_t)ss_cursor_uleb128(b));
		break;
	case DW_CFA_def_cfa_sf:
		reg = ss_cursor_uleb128(b);
		set_cfa(m, reg, factored(m, ss_cursor_sleb128(b)));
		break;
	case DW_CFA_def_cfa_register:
		set_cfa(m, ss_cursor_uleb128(b), m->row.cfa_offset);
		break;
	case DW_CFA_def_cfa_offset:
		set_cfa(m, m->row.cfa_register, (int64_t)ss_cursor_uleb128(b));
		break;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa(m, m->row.cfa_register, factored(m, ss_cursor_sleb128(b)));
		break;
	case DW_CFA_def_cfa_expression:
		set_cfa_saved(m, b);
		break;
	default:
		m->failed = true;
	}
}

static void run_rule(struct machine *m, uint8_t op, struct ss_cursor *b)
{
	uint64_t reg = ss_cursor_uleb128(b);

	switch (op) {
	case DW_CFA_offset_extended:
		set_rule(m, reg, RULE_SAVED, factored(m, (int64_t)ss_cursor_uleb128(b)));
		break;
	case DW_CFA_offset_extended_sf:
		set_rule(m, reg, RULE_SAVED, factored(m, ss_cursor_sleb128(b)));
		break;
	case DW_CFA_restore_extended:
		restore_rule(m, reg);
		break;
	case DW_CFA_undefined:
		set_rule(m, reg, RULE_UNDEFINED, 0);
		break;
	case DW_CFA_expression:
		set_saved_fp(m, reg, b);
		break;
	default: /* DW_CFA_same_value */
		set_rule(m, reg, RULE_SAME, 0);
	}
}

static void run_extended(struct machine *m, uint8_t op, struct ss_cursor *b)
{
	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_advance_loc1:
		advance(m, ss_cursor_byte(b));
		break;
	case DW_CFA_advance_loc2:
		advance(m, ss_cursor_fixed(b, 2));
		break;
	case DW_CFA_advance_loc4:
		advance(m, ss_cursor_fixed(b, 4));
		break;
	case DW_CFA_remember_state:
		remember(m);
		break;
	case DW_CFA_restore_state:
		recall(m);
		break;
	case DW_CFA_AARCH64_negate_ra_state: /* SPARC's window_save has the same number */
		m->row.return_signed = !m->row.return_signed;
		m->failed |= m->arch->pac_mask == 0;
		break;
	case DW_CFA_GNU_args_size:
		(void)ss_cursor_uleb128(b); /* for exception handling only */
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
	struct ss_cursor b = { .at = program->bytes,
			       .end = program->bytes + program->size };

	while (b.at < b.end && !m->failed && !m->done) {
		uint8_t op = ss_cursor_byte(&b);
		uint8_t operand = op & OPERAND_MASK;
		switch (op & ~OPERAND_MASK) {
		case DW_CFA_advance_loc:
			advance(m, operand);
			break;
		case DW_CFA_offset:
			set_rule(m, operand, RULE_SAVED,
				 factored(m, (int64_t)ss_cursor_uleb128(&b)));
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

static bool set_return(const struct machine *m, struct ss_cfi_row *ret)
{
	unsigned column = m->arch->return_column;

	ret->return_signed = m->row.return_signed;
	ret->return_offset = m->row.offsets[column];
	switch (m->row.rules[column]) {
	case RULE_SAVED:
		ret->return_rule = SS_RETURN_SAVED;
		return true;
	case RULE_UNDEFINED:
		ret->return_rule = SS_RETURN_UNDEFINED;
		return true;
	case RULE_SAME:
		ret->return_rule = SS_RETURN_LINK;
		return m->arch->link == column;
	default:
		return false;
	}
}

/* False: too many registers are saved. */
static bool set_registers(const struct machine *m, struct ss_cfi_row *ret)
{
	for (unsigned reg = 0; reg < m->arch->reg_count; reg++) {
		enum rule rule = m->row.rules[reg];
		if (rule == RULE_SAME || reg == m->arch->return_column)
			continue;
		if (rule == RULE_UNDEFINED) {
			ret->undefined |= UINT64_C(1) << reg;
			continue;
		}
		if (ret->saved_count == SS_ROW_SAVED_MAX)
			return false;
		ret->saved[ret->saved_count++] =
			(struct ss_row_saved){ .offset = m->row.offsets[reg],
					       .reg = (uint8_t)reg,
					       .from_fp = rule == RULE_SAVED_FP };
	}
	return true;
}

bool ss_cfi_row_make(const struct ss_arch *arch, const struct ss_cfi_entry *entry,
		     uint64_t address, struct ss_cfi_row *ret)
{
	struct machine m = {
		.arch = arch, .entry = entry, .address = address, .location = entry->start
	};

	if (entry->signal || entry->return_register != arch->return_column)
		return false;
	run(&m, &entry->initial);
	if (m.done) /* a CIE does not advance */
		return false;
	m.initial = m.row;
	run(&m, &entry->program);
	/* The stack pointer of the caller is the CFA; rules that say otherwise are not
	   usual. */
	if (m.failed || m.row.rules[arch->sp] != RULE_SAME)
		return false;
	*ret = (struct ss_cfi_row){ .cfa_register = m.row.cfa_register,
				    .cfa_offset = m.row.cfa_offset,
				    .cfa_saved = m.row.cfa_saved };
	return set_return(&m, ret) && set_registers(&m, ret);
}

/* 150 bytes each; a process has a few thousand return addresses. */
enum { CACHED_MAX = 1 << 15 };

struct ss_cached_row {
	const struct ss_image *image;
	uint64_t address; /* ELF virtual */
	uint64_t start;	  /* of the function; 0: not known */
	enum ss_cfi_found found;
	struct ss_cfi_row row; /* FOUND */
};

struct query {
	const struct ss_cfi_rows *rows;
	const struct ss_image *image;
	uint64_t address;
};

static bool is_same(const void *context, uint32_t index)
{
	const struct query *query = context;
	const struct ss_cached_row *cached = &query->rows->cached.items[index];

	return cached->address == query->address && cached->image == query->image;
}

/* Adds an entry to the cache. At the limit all others are dropped. NULL: no memory. */
static struct ss_cached_row *add_row(struct ss_cfi_rows *rows, uint64_t hash)
{
	if (rows->cached.count >= CACHED_MAX) {
		ss_hash_deinit(&rows->table);
		rows->cached.count = 0;
	}
	struct ss_cached_row *cached =
		ss_hash_reserve(&rows->table) ? ss_vector_push(&rows->cached) : NULL;
	if (cached)
		ss_hash_insert(&rows->table, hash, (uint32_t)rows->cached.count - 1);
	return cached;
}

static void make_row(struct ss_cached_row *cached, struct ss_image *image,
		     const struct ss_cfi_table *table, uint64_t address)
{
	struct ss_cfi_entry entry;

	cached->image = image;
	cached->address = address;
	cached->found = ss_cfi_entry_find(image, table, address, &entry);
	cached->start = cached->found == SS_CFI_FOUND ? entry.start : 0;
	/* Go's CFI is in .debug_frame, and says that the outermost functions have callers. */
	if ((cached->found == SS_CFI_NONE || image->debug_index) &&
	    ss_go_is_root(image, address)) {
		cached->found = SS_CFI_FOUND;
		cached->row = (struct ss_cfi_row){ .return_rule = SS_RETURN_UNDEFINED };
	} else if (cached->found == SS_CFI_FOUND &&
		   !ss_cfi_row_make(image->arch, &entry, address, &cached->row)) {
		cached->found = SS_CFI_COMPLEX;
	}
}

/* The row for a pc in a module, valid until the next call. */
static const struct ss_cached_row *find_row(struct ss_unwind_context *ctx,
					    const struct ss_loaded_module *loaded,
					    uint64_t pc)
{
	static const struct ss_cached_row no_memory = { .found = SS_CFI_NONE };
	struct ss_cfi_rows *rows = &ctx->images->rows;
	const struct query query = { rows, loaded->image, pc - loaded->bias };
	uint64_t hash = query.address ^ (uintptr_t)loaded->image;

	if (rows->last < rows->cached.count && is_same(&query, rows->last))
		return &rows->cached.items[rows->last];
	uint32_t index = ss_hash_find(&rows->table, hash, is_same, &query);
	if (index != SS_HASH_NONE) {
		rows->last = index;
		return &rows->cached.items[index];
	}
	struct ss_cached_row *added = add_row(rows, hash);
	if (!added)
		return &no_memory;
	make_row(added, loaded->image, &loaded->table, query.address);
	return added;
}

static enum ss_step find_return_address(const struct ss_cfi_row *row,
					struct ss_unwind_context *ctx,
					const struct ss_unwind_frame *frame, uint64_t cfa,
					uint64_t *ret)
{
	uint64_t at = cfa + (uint64_t)(int64_t)row->return_offset;

	if (row->return_rule == SS_RETURN_SAVED) {
		if (!ss_context_read_word(ctx, at, ret))
			return SS_STEP_MISSING;
	} else if (!ss_regs_get(&frame->regs, ctx->arch->link, ret)) {
		/* A function that has made a call must have saved the return address
		   before. */
		return frame->call && !frame->signal ? SS_STEP_BAD : SS_STEP_REGISTER;
	}
	if (row->return_signed)
		*ret &= ~ctx->arch->pac_mask;
	return *ret ? SS_STEP_OK : SS_STEP_ROOT;
}

static void restore_registers(const struct ss_cfi_row *row, struct ss_unwind_context *ctx,
			      uint64_t cfa, struct ss_regs *regs)
{
	uint64_t fp = 0;
	bool fp_known = ss_regs_get(regs, ctx->arch->fp, &fp);

	regs->valid &= ~row->undefined;
	for (size_t i = 0; i < row->saved_count; i++) {
		const struct ss_row_saved *saved = &row->saved[i];
		uint64_t base = saved->from_fp ? fp : cfa;
		uint64_t value;
		if ((saved->from_fp && !fp_known) ||
		    !ss_context_read_word(ctx, base + (uint64_t)(int64_t)saved->offset,
					  &value))
			ss_regs_forget(regs, saved->reg);
		else
			ss_regs_set(regs, saved->reg, value);
	}
}

enum ss_step ss_cfi_row_apply(const struct ss_cfi_row *row, struct ss_unwind_context *ctx,
			      struct ss_unwind_frame *frame)
{
	const struct ss_arch *arch = ctx->arch;
	uint64_t cfa;
	uint64_t pc;

	if (row->return_rule == SS_RETURN_UNDEFINED)
		return SS_STEP_ROOT;
	/* If a frame pointer led to this frame, it may lead further. */
	if (!ss_regs_get(&frame->regs, row->cfa_register, &cfa))
		return row->cfa_register == arch->sp ? SS_STEP_NO_INFO : SS_STEP_REGISTER;
	cfa += (uint64_t)(int64_t)row->cfa_offset;
	if (row->cfa_saved && !ss_context_read_word(ctx, cfa, &cfa))
		return SS_STEP_MISSING;
	enum ss_step result = find_return_address(row, ctx, frame, cfa, &pc);
	if (result != SS_STEP_OK)
		return result;
	restore_registers(row, ctx, cfa, &frame->regs);
	if (arch->link != SS_REG_NONE) /* the call has overwritten it */
		ss_regs_forget(&frame->regs, arch->link);
	ss_regs_set(&frame->regs, arch->pc, pc);
	ss_regs_set(&frame->regs, arch->sp, cfa);
	return SS_STEP_OK;
}

/* The module at pc if it has CFI that may be read, or NULL. */
static const struct ss_loaded_module *find_module(struct ss_unwind_context *ctx,
						  uint64_t pc)
{
	const struct ss_loaded_module *loaded = ss_context_find_module(ctx, pc);

	return loaded && loaded->image && !loaded->skipped ? loaded : NULL;
}

bool ss_cfi_find_row(struct ss_unwind_context *ctx, const struct ss_unwind_frame *frame,
		     struct ss_cfi_row *ret)
{
	uint64_t pc = ss_unwind_lookup_pc(ctx, frame);
	const struct ss_loaded_module *loaded = find_module(ctx, pc);
	const struct ss_cached_row *cached = loaded ? find_row(ctx, loaded, pc) : NULL;

	if (!cached || cached->found != SS_CFI_FOUND)
		return false;
	*ret = cached->row;
	return true;
}

uint64_t ss_cfi_find_function(struct ss_unwind_context *ctx,
			      const struct ss_unwind_frame *frame)
{
	uint64_t pc = ss_unwind_lookup_pc(ctx, frame);
	const struct ss_loaded_module *loaded = find_module(ctx, pc);
	uint64_t start = loaded ? find_row(ctx, loaded, pc)->start : 0;

	return start ? start + loaded->bias : 0;
}

static enum ss_step step(void *state, struct ss_unwind_context *ctx,
			 struct ss_unwind_frame *frame)
{
	uint64_t pc = ss_unwind_lookup_pc(ctx, frame);
	const struct ss_loaded_module *loaded = find_module(ctx, pc);

	(void)state;
	if (!loaded)
		return SS_STEP_NO_INFO;
	const struct ss_cached_row *cached = find_row(ctx, loaded, pc);
	switch (cached->found) {
	case SS_CFI_FOUND:
		return ss_cfi_row_apply(&cached->row, ctx, frame);
	case SS_CFI_NONE:
		return SS_STEP_NO_INFO;
	default:
		return SS_STEP_COMPLEX;
	}
}

const struct ss_unwinder ss_unwinder_cfi = {
	.name = "CFI",
	.source = SS_FROM_CFI,
	.step = step,
};

bool ss_cfi_starts_at(struct ss_unwind_context *ctx, uint64_t pc)
{
	const struct ss_loaded_module *loaded = find_module(ctx, pc);

	return loaded && find_row(ctx, loaded, pc - 1)->found == SS_CFI_NONE &&
	       find_row(ctx, loaded, pc)->found != SS_CFI_NONE;
}

/* Unwinding by the tables that JIT compilers have registered. */

static enum ss_step step_registered(void *state, struct ss_unwind_context *ctx,
				    struct ss_unwind_frame *frame)
{
	uint64_t pc = ss_unwind_lookup_pc(ctx, frame);
	struct ss_cfi_entry entry;
	struct ss_cfi_row row;

	(void)state;
	if (ss_context_find_module(ctx, pc) ||
	    !ss_registered_open(&ctx->registered, ctx->capture, ctx->images->session))
		return SS_STEP_SKIP;
	for (size_t i = 0; i < ctx->registered.sections.count; i++) {
		enum ss_cfi_found found = ss_cfi_entry_find_in_memory(
			&ctx->stacks.memory, ctx->arch->word,
			ctx->registered.sections.items[i], pc, &entry);
		if (found == SS_CFI_FOUND && ss_cfi_row_make(ctx->arch, &entry, pc, &row))
			return ss_cfi_row_apply(&row, ctx, frame);
	}
	for (size_t i = 0; i < ctx->registered.images.count; i++) {
		const struct ss_jit_image *image = &ctx->registered.images.items[i];
		if (image->frames && pc >= image->start && pc < image->end &&
		    ss_cfi_entry_find_in_index(image->frames, pc, &entry) ==
			    SS_CFI_FOUND &&
		    ss_cfi_row_make(ctx->arch, &entry, pc, &row))
			return ss_cfi_row_apply(&row, ctx, frame);
	}
	return SS_STEP_SKIP;
}

const struct ss_unwinder ss_unwinder_registered = {
	.name = "registered CFI",
	.source = SS_FROM_CFI,
	.step = step_registered,
};
