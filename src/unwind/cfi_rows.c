#include "unwind/cfi_rows.h"

#include "base/hash.h"
#include "base/vector.h"
#include "unwind/go.h"

/* 150 bytes each; a process has a few thousand return addresses. */
enum { CACHED_MAX = 1 << 15 };

struct cached_row {
	const struct ss_image *image;
	uint64_t address; /* ELF virtual */
	uint64_t start;	  /* of the function; 0: not known */
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

static const struct cached_row *make_row(struct cached_row *cached,
					 struct ss_image *image,
					 const struct ss_cfi_table *table,
					 uint64_t address)
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
		   !ss_cfi_row_make(image->arch, &entry, address, &cached->row))
		cached->found = SS_CFI_COMPLEX;
	return cached;
}

static const struct cached_row *find_cached(struct ss_cfi_rows *rows,
					    struct ss_image *image,
					    const struct ss_cfi_table *table,
					    uint64_t address)
{
	const struct query query = { rows, image, address };
	uint64_t hash = address ^ (uintptr_t)image;

	if (rows->last < rows->cached.count && is_same(&query, rows->last))
		return &rows->cached.items[rows->last];
	uint32_t index = ss_hash_find(&rows->table, hash, is_same, &query);
	if (index == SS_HASH_NONE)
		return make_row(add_row(rows, hash), image, table, address);
	rows->last = index;
	return &rows->cached.items[index];
}

enum ss_cfi_found ss_cfi_rows_find(struct ss_cfi_rows *rows, struct ss_image *image,
				   const struct ss_cfi_table *table, uint64_t address,
				   const struct ss_cfi_row **ret)
{
	const struct cached_row *cached = find_cached(rows, image, table, address);

	*ret = &cached->row;
	return cached->found;
}

uint64_t ss_cfi_rows_find_function(struct ss_cfi_rows *rows, struct ss_image *image,
				   const struct ss_cfi_table *table, uint64_t address)
{
	return find_cached(rows, image, table, address)->start;
}
