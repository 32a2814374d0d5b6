#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/process_memory.h"

enum { PAGE = 4096, PAGES = 1200, PIECES = 1000, SMALL = 24 };

static struct ss_process_memory memory;
static uint8_t *pages; /* one more than PAGES, which was never touched */

static uint8_t byte_at(size_t offset)
{
	return (uint8_t)(offset * 7 + offset / PAGE);
}

static int set_up(void **state)
{
	(void)state;
	memory = (struct ss_process_memory){
		.tid = getpid(),
		.mem_fd = -1,
		.pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
	};
	assert_true(memory.pagemap_fd >= 0);
	pages = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(pages != MAP_FAILED);
	assert_int_equal(madvise(pages, (PAGES + 1) * PAGE, MADV_NOHUGEPAGE), 0);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		pages[i] = byte_at(i);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	munmap(pages, (PAGES + 1) * PAGE);
	return close(memory.pagemap_fd);
}

static struct ss_piece piece_at(size_t offset, void *bytes, size_t size)
{
	return (struct ss_piece){ .address = (uintptr_t)pages + offset,
				  .bytes = bytes,
				  .size = size };
}

static void check(const struct ss_piece *piece, size_t offset)
{
	const uint8_t *bytes = piece->bytes;

	assert_int_equal(piece->done, piece->size);
	for (size_t i = 0; i < piece->size; i++)
		assert_int_equal(bytes[i], byte_at(offset + i));
}

/* More pages than it holds, in one call and again; pieces in two pages. */
TEST(test_many)
{
	static uint8_t bytes[PIECES][SMALL];
	static struct ss_piece pieces[PIECES];
	static size_t offsets[PIECES];
	struct ss_page_cache *cache = ss_page_cache_new();
	unsigned random = 1;

	assert_non_null(cache);
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < PIECES; i++) {
			random = random * 1103515245 + 12345;
			offsets[i] = (random >> 8) % (PAGES * PAGE - SMALL);
			if (i % 4 == 0) /* crosses the end of a page */
				offsets[i] = offsets[i] / PAGE * PAGE + PAGE - 8;
			offsets[i] = SS_MIN(offsets[i], (size_t)PAGES * PAGE - SMALL);
			memset(bytes[i], 0, SMALL);
			pieces[i] = piece_at(offsets[i], bytes[i], SMALL);
		}
		ss_page_cache_read(cache, &memory, pieces, PIECES);
		for (size_t i = 0; i < PIECES; i++)
			check(&pieces[i], offsets[i]);
		if (round % 3 == 0)
			ss_page_cache_clear(cache);
	}
	ss_page_cache_free(cache);
}

/* A page is read once, until it is forgotten. */
TEST(test_once)
{
	uint8_t bytes[2][SMALL];
	struct ss_page_cache *cache = ss_page_cache_new();
	struct ss_piece first = piece_at(100, bytes[0], SMALL);
	struct ss_piece second = piece_at(200, bytes[1], SMALL);

	assert_non_null(cache);
	ss_page_cache_read(cache, &memory, &first, 1);
	check(&first, 100);
	pages[200]++;
	ss_page_cache_read(cache, &memory, &second, 1);
	check(&second, 200);
	ss_page_cache_clear(cache);
	ss_page_cache_read(cache, &memory, &second, 1);
	assert_int_equal(bytes[1][0], (uint8_t)(byte_at(200) + 1));
	pages[200]--;
	ss_page_cache_free(cache);
}

/* Pages that are not there, pieces larger than a page, and addresses at the end. */
TEST(test_ends)
{
	static uint8_t bytes[6][3 * PAGE];
	struct ss_page_cache *cache = ss_page_cache_new();
	struct ss_piece pieces[] = {
		piece_at(PAGES * PAGE - 16, bytes[0],
			 40), /* into the page never touched */
		piece_at(PAGES * PAGE + 16, bytes[1], 40),
		piece_at(500, bytes[2], 3 * PAGE),
		{ .address = UINT64_MAX - 8, .bytes = bytes[3], .size = 64 },
		{ .address = UINT64_MAX - 64, .bytes = bytes[4], .size = 64 },
		piece_at(PAGES * PAGE - 40, bytes[5], 40),
	};

	assert_non_null(cache);
	ss_page_cache_read(cache, &memory, pieces, SS_ARRAY_SIZE(pieces));
	assert_int_equal(pieces[0].done, 16);
	assert_int_equal(pieces[1].done, 0);
	check(&pieces[2], 500);
	assert_int_equal(pieces[3].done, 0);
	assert_int_equal(pieces[4].done, 0);
	check(&pieces[5], PAGES * PAGE - 40);
	ss_page_cache_free(cache);
}

TEST_GROUP(set_up, tear_down)
