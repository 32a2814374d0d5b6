#include "runtime/glibc/chunks.h"

#include <string.h>

#include "base/cleanup.h"
#include "runtime/glibc/malloc.h"

enum {
	PAGE = 4096,
	CHUNK_MIN = 32,
	CHUNK_FIRST = SS_GLIBC_HEADER / SS_GLIBC_WORD, /* word of the program's data */
	CHUNK_WORDS = CHUNK_FIRST + 1,
	/* What is searched after an inconsistent chunk, and how many chunks have to agree. */
	SEARCH_MAX = 1 << 20,
	AGREE = 16,
	READ_AGAIN = 3,
};

static const char changed[] = "it changed while it was read";
static const char absent[] = "it is not in memory, or must not be read";

/* A sequence is read in large pieces; elsewhere only one page. */
static bool fill(struct ss_glibc_window *window, uint64_t address, size_t size)
{
	bool next = address >= window->start &&
		    address - window->start < window->size + PAGE;
	uint64_t end = address + (next ? (uint64_t)SS_GLIBC_WINDOW : size + PAGE - 1);

	end &= ~(uint64_t)(PAGE - 1);
	if (end < address + size) /* on two pages */
		end = address + size;
	window->start = address;
	window->size = window->memory->read(window->memory, address, window->bytes,
					    (size_t)(end - address));
	return window->size >= size;
}

bool ss_glibc_window_read(struct ss_glibc_window *window, uint64_t address,
			  uint64_t *words, size_t count)
{
	size_t size = count * SS_GLIBC_WORD;

	if (address > UINT64_MAX - 2 * (uint64_t)SS_GLIBC_WINDOW)
		return false;
	if ((address < window->start || address - window->start > window->size ||
	     size > window->size - (size_t)(address - window->start)) &&
	    !fill(window, address, size))
		return false;
	memcpy(words, window->bytes + (address - window->start), size);
	return true;
}

/* A chunk that begins at an address, from its header. */
struct header {
	uint64_t previous_size; /* valid if the previous chunk is free */
	uint64_t size;
	uint64_t flags;
	uint64_t first;
};

static bool read_header(const struct ss_glibc_walk *walk, uint64_t address,
			struct header *ret)
{
	uint64_t words[CHUNK_WORDS] = {};
	/* At the end there is no more than the header. */
	size_t count = walk->end - address > SS_GLIBC_HEADER ? (size_t)CHUNK_WORDS :
							       (size_t)CHUNK_FIRST;

	if (!ss_glibc_window_read(walk->window, address, words, count))
		return false;
	*ret = (struct header){ .previous_size = words[0],
				.size = words[1] & ~(uint64_t)SS_GLIBC_FLAGS,
				.flags = words[1] & SS_GLIBC_FLAGS,
				.first = words[CHUNK_FIRST] };
	return true;
}

/* An open heap ends with a chunk of a header only, or of size 0. */
static bool is_mark(const struct ss_glibc_walk *walk, const struct header *header)
{
	return walk->open && header->size <= SS_GLIBC_HEADER;
}

static bool is_chunk(const struct ss_glibc_walk *walk, uint64_t address,
		     const struct header *header)
{
	return header->size >= CHUNK_MIN && header->size % SS_GLIBC_ALIGNMENT == 0 &&
	       header->size <= walk->end - address &&
	       !(header->flags & SS_GLIBC_IS_MAPPED);
}

/* Reads the chunk behind one, and whether that is consistent. */
static bool read_next(const struct ss_glibc_walk *walk, uint64_t address,
		      const struct header *header, struct header *next)
{
	uint64_t at = address + header->size;

	if (!is_chunk(walk, address, header) || !read_header(walk, at, next))
		return false;
	if (!(next->flags & SS_GLIBC_PREVIOUS_IN_USE) &&
	    next->previous_size != header->size)
		return false;
	return at == walk->end || is_mark(walk, next) || is_chunk(walk, at, next);
}

static bool agrees(const struct ss_glibc_walk *walk, uint64_t address)
{
	struct header header;
	struct header next;

	if (!read_header(walk, address, &header))
		return false;
	for (int i = 0; i < AGREE && address != walk->end; i++) {
		if (!read_next(walk, address, &header, &next))
			return false;
		address += header.size;
		header = next;
		if (is_mark(walk, &header))
			return true;
	}
	return true;
}

/* The next address at which chunks are consistent again, or the end. */
static uint64_t find_next(const struct ss_glibc_walk *walk, uint64_t address)
{
	uint64_t limit = address + SS_MIN(walk->end - address, (uint64_t)SEARCH_MAX);

	for (address += SS_GLIBC_ALIGNMENT; address < limit;
	     address += SS_GLIBC_ALIGNMENT) {
		if (agrees(walk, address))
			return address;
	}
	return walk->end;
}

/* Reads a chunk and the header behind it, again if they disagree. */
static bool read_chunk(const struct ss_glibc_walk *walk, uint64_t address,
		       struct header *header, struct header *next)
{
	for (int i = 0; i < READ_AGAIN; i++) {
		if (read_next(walk, address, header, next))
			return true;
		walk->window->size = 0;
		if (!read_header(walk, address, header))
			return false;
	}
	return false;
}

void ss_glibc_walk(struct ss_glibc_walk *walk)
{
	uint64_t address = walk->start;
	struct header header;
	struct header next;

	walk->unread = 0;
	walk->problem = NULL;
	while (address < walk->end) {
		bool found = read_header(walk, address, &header);
		while (found && address < walk->end && !is_mark(walk, &header) &&
		       read_chunk(walk, address, &header, &next)) {
			const struct ss_glibc_chunk chunk = {
				.address = address,
				.size = header.size,
				.free = !(next.flags & SS_GLIBC_PREVIOUS_IN_USE),
				.first = header.first,
			};
			walk->tell(walk->data, &chunk);
			address += header.size;
			header = next;
		}
		if (address >= walk->end || (found && is_mark(walk, &header)))
			return;
		uint64_t from = address;
		address = found ? find_next(walk, address) : walk->end;
		walk->unread += address - from;
		walk->problem = found ? changed : absent;
	}
}
