#include "unwind/cfi.h"

#include "base/hash.h"
#include "base/vector.h"
#include "unwind/go.h"

/* 150 bytes each; a process has a few thousand return addresses. */
enum { CACHED_MAX = 1 << 15 };

struct cached_row {
	const struct ss_image *image;
	uint64_t address; /* ELF virtual */
	enum ss_cfi_found found;
	struct ss_cfi_row row; /* FOUND */
};

struct ss_cfi_rows {
	struct ss_hash table; /* of cached */
	SS_VECTOR(struct cached_row) cached;
	uint32_t last; /* index of the last row found, which is usually needed again */
	struct cached_row uncached; /* where a row goes if there is no memory */
};

struct query {
	const struct ss_cfi_rows *rows;
	const struct ss_image *image;
	uint64_t address;
};

struct ss_cfi_rows *ss_cfi_rows_new(void)
{
	return calloc(1, sizeof(struct ss_cfi_rows));
}

void ss_cfi_rows_free(struct ss_cfi_rows *rows)
{
	if (!rows)
		return;
	ss_hash_deinit(&rows->table);
	ss_vector_free(&rows->cached);
	free(rows);
}

static bool is_same(const void *context, uint32_t index)
{
	const struct query *query = context;
	const struct cached_row *cached = &query->rows->cached.items[index];

	return cached->address == query->address && cached->image == query->image;
}

/* Adds an entry to the cache. At the limit all others are dropped. */
static struct cached_row *add_row(struct ss_cfi_rows *rows, uint64_t hash)
{
	if (rows->cached.count >= CACHED_MAX) {
		ss_hash_deinit(&rows->table);
		rows->cached.count = 0;
	}
	struct cached_row *cached =
		ss_hash_reserve(&rows->table) ? ss_vector_push(&rows->cached) : NULL;
	if (!cached)
		return &rows->uncached;
	ss_hash_insert(&rows->table, hash, (uint32_t)rows->cached.count - 1);
	return cached;
}

/* Valid until the next call. */
static const struct cached_row *
get_row(struct ss_cfi_rows *rows, const struct ss_loaded_module *loaded, uint64_t address)
{
	const struct query query = { rows, loaded->image, address };
	uint64_t hash = address ^ (uintptr_t)loaded->image;
	struct ss_cfi_entry entry;

	if (rows->last < rows->cached.count && is_same(&query, rows->last))
		return &rows->cached.items[rows->last];
	uint32_t index = ss_hash_find(&rows->table, hash, is_same, &query);
	if (index != SS_HASH_NONE) {
		rows->last = index;
		return &rows->cached.items[index];
	}
	struct cached_row *cached = add_row(rows, hash);
	cached->image = loaded->image;
	cached->address = address;
	cached->found = ss_cfi_entry_find(loaded->image, &loaded->table, address, &entry);
	/* Go's CFI is in .debug_frame, and says that the outermost functions have callers. */
	if ((cached->found == SS_CFI_NONE || loaded->image->debug_index) &&
	    ss_go_is_root(loaded->image, address)) {
		cached->found = SS_CFI_FOUND;
		cached->row = (struct ss_cfi_row){ .return_rule = SS_RETURN_UNDEFINED };
	} else if (cached->found == SS_CFI_FOUND &&
		   !ss_cfi_row_make(loaded->image->arch, &entry, address, &cached->row))
		cached->found = SS_CFI_COMPLEX;
	return cached;
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

static enum ss_step step(void *state, struct ss_unwind_context *ctx,
			 struct ss_unwind_frame *frame)
{
	uint64_t pc = ss_unwind_lookup_pc(ctx, frame);
	const struct ss_loaded_module *loaded = find_module(ctx, pc);

	(void)state;
	if (!loaded)
		return SS_STEP_NO_INFO;
	const struct cached_row *cached =
		get_row(ctx->images->rows, loaded, pc - loaded->bias);
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

	if (!loaded)
		return false;
	struct ss_cfi_rows *rows = ctx->images->rows;
	return get_row(rows, loaded, pc - 1 - loaded->bias)->found == SS_CFI_NONE &&
	       get_row(rows, loaded, pc - loaded->bias)->found != SS_CFI_NONE;
}
