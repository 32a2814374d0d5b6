#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "process/process_memory.h"

enum { PAGE = 4096, PIECES = 3000 };

/* Three pages, of which the middle one cannot be read. */
static uint8_t *pages;

static int make_pages(void **state)
{
	(void)state;
	pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	assert_true(pages != MAP_FAILED);
	memset(pages, 0x11, 3 * PAGE);
	assert_int_equal(munmap(pages + PAGE, PAGE), 0);
	return 0;
}

static struct ss_piece piece(const void *from, void *to, size_t size)
{
	return (struct ss_piece){ .address = (uintptr_t)from, .bytes = to, .size = size };
}

/* With readv, and without it by the file: the same. */
static void check_holes(const struct ss_process_memory *memory)
{
	static uint8_t bytes[4][2 * PAGE];
	struct ss_piece pieces[] = {
		piece(pages + 100, bytes[0], 200),
		piece(pages + PAGE - 24, bytes[1], 100), /* into the hole */
		piece(pages + PAGE, bytes[2], 10),	 /* in it */
		piece(pages + 2 * PAGE, bytes[3], PAGE),
		piece((void *)~(uintptr_t)15, bytes[2], 64), /* beyond all addresses */
	};

	memset(bytes, 0, sizeof(bytes));
	ss_process_memory_read(memory, pieces, SS_ARRAY_SIZE(pieces));
	assert_int_equal(pieces[0].done, 200);
	assert_int_equal(pieces[1].done, 24);
	assert_int_equal(pieces[2].done, 0);
	assert_int_equal(pieces[3].done, PAGE);
	assert_int_equal(pieces[4].done, 0);
	assert_int_equal(bytes[1][23], 0x11);
	assert_int_equal(bytes[1][24], 0);
	assert_int_equal(bytes[3][PAGE - 1], 0x11);
}

TEST(test_holes)
{
	check_holes(&(struct ss_process_memory){
		.tid = getpid(), .mem_fd = -1, .pagemap_fd = -1 });
}

TEST(test_holes_by_file)
{
	_cleanup_close_ int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	check_holes(&(struct ss_process_memory){
		.tid = INT32_MAX, .mem_fd = fd, .pagemap_fd = -1 });
}

/* More than one call takes, some of them empty, every third in the hole. */
TEST(test_many_pieces)
{
	static uint8_t bytes[PIECES][8];
	static struct ss_piece pieces[PIECES];
	const struct ss_process_memory memory = { .tid = getpid(),
						  .mem_fd = -1,
						  .pagemap_fd = -1 };

	for (size_t i = 0; i < PIECES; i++)
		pieces[i] = piece(pages + (i % 3 == 2 ? PAGE : 0) + i % PAGE, bytes[i],
				  i % 5 == 0 ? 0 : 8);
	for (size_t i = 0; i < PIECES; i++) /* none across the edge of the hole */
		pieces[i].address = (uintptr_t)pages + (i % 3 == 2 ? PAGE : 0) + i % 4000;
	ss_process_memory_read(&memory, pieces, PIECES);
	for (size_t i = 0; i < PIECES; i++)
		assert_int_equal(pieces[i].done, i % 3 == 2 ? 0 : pieces[i].size);
}

/* A page that nobody has touched is not read: it is noted, or it ends the piece. */
TEST(test_present)
{
	_cleanup_close_ int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const struct ss_process_memory memory = { .tid = getpid(),
						  .mem_fd = -1,
						  .pagemap_fd = fd };
	static uint8_t bytes[2][3 * PAGE];
	unsigned char in_memory[3];
	uint8_t *three = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0)
		skip();
	assert_ptr_not_equal(three, MAP_FAILED);
	assert_int_equal(madvise(three, 3 * PAGE, MADV_NOHUGEPAGE), 0);
	memset(three, 0x22, PAGE);
	memset(three + 2 * PAGE, 0x33, PAGE);
	memset(bytes, 0x44, sizeof(bytes));
	struct ss_piece pieces[] = { piece(three, bytes[0], 3 * PAGE),
				     piece(three + 10, bytes[1], 2 * PAGE),
				     piece(three + 2 * PAGE + 1, bytes[1], 7) };
	uint8_t absent = 0;
	pieces[0].absent = &absent;
	ss_process_memory_read_present(&memory, pieces, 3);
	assert_int_equal(pieces[0].done, 3 * PAGE);
	assert_int_equal(pieces[0].end, SS_PIECE_COMPLETE);
	assert_true(pieces[0].has_absent);
	assert_int_equal(absent, 1 << 1);
	assert_int_equal(bytes[0][PAGE - 1], 0x22);
	assert_int_equal(bytes[0][PAGE], 0);
	assert_int_equal(bytes[0][2 * PAGE - 1], 0);
	assert_int_equal(bytes[0][2 * PAGE], 0x33);
	assert_int_equal(pieces[1].done, PAGE - 10);
	assert_int_equal(pieces[1].end, SS_PIECE_ABSENT);
	assert_int_equal(pieces[2].done, 7);
	assert_int_equal(pieces[2].end, SS_PIECE_COMPLETE);
	assert_false(pieces[2].has_absent);
	/* Pieces in one page, as locks often are; what was known of it holds for no other. */
	struct ss_piece near[] = { piece(three + 1, bytes[0], 8),
				   piece(three + PAGE - 8, bytes[1], 8),
				   piece(three + PAGE, bytes[0], 8),
				   piece(three + 9, bytes[0], 8),
				   piece(three + PAGE - 4, bytes[1], 8) };
	for (size_t i = 0; i < SS_ARRAY_SIZE(near); i++)
		near[i].end = SS_PIECE_LATE;
	ss_process_memory_read_present(&memory, near, SS_ARRAY_SIZE(near));
	static const size_t done[] = { 8, 8, 0, 8, 4 };
	for (size_t i = 0; i < SS_ARRAY_SIZE(near); i++) {
		assert_int_equal(near[i].done, done[i]);
		assert_int_equal(near[i].end,
				 done[i] < 8 ? SS_PIECE_ABSENT : SS_PIECE_COMPLETE);
	}
	assert_int_equal(mincore(three, 3 * PAGE, in_memory), 0);
	assert_int_equal(in_memory[1] & 1, 0);
	assert_int_equal(munmap(three, 3 * PAGE), 0);
}

/* Many pages, of which every second one is absent, in more parts than one call takes. */
TEST(test_many_absent)
{
	enum { PAGES = 3000 };
	_cleanup_close_ int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const struct ss_process_memory memory = { .tid = getpid(),
						  .mem_fd = -1,
						  .pagemap_fd = fd };
	static uint8_t bytes[PAGES * PAGE];
	static uint8_t absent[PAGES / 8 + 1];
	uint8_t *many = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0)
		skip();
	assert_ptr_not_equal(many, MAP_FAILED);
	assert_int_equal(madvise(many, PAGES * PAGE, MADV_NOHUGEPAGE), 0);
	for (size_t i = 0; i < PAGES; i += 2)
		memset(many + i * PAGE, (int)(i % 251 + 1), PAGE);
	memset(bytes, 0x44, sizeof(bytes));
	struct ss_piece one = piece(many + 1, bytes, PAGES * PAGE - 2);
	one.absent = absent;
	ss_process_memory_read_present(&memory, &one, 1);
	assert_int_equal(one.done, PAGES * PAGE - 2);
	for (size_t i = 0; i < PAGES; i++) {
		assert_int_equal(absent[i / 8] >> i % 8 & 1, i % 2);
		assert_int_equal(bytes[i * PAGE], i % 2 ? 0 : i % 251 + 1);
		assert_int_equal(bytes[i * PAGE + PAGE - 3], i % 2 ? 0 : i % 251 + 1);
	}
	/* An unreadable page ends it, whatever follows. */
	assert_int_equal(mprotect(many + 2 * PAGE, PAGE, PROT_NONE), 0);
	memset(absent, 0, sizeof(absent));
	ss_process_memory_read_present(&memory, &one, 1);
	assert_int_equal(one.done, 2 * PAGE - 1);
	assert_int_equal(one.end, SS_PIECE_UNREADABLE);
	assert_int_equal(munmap(many, PAGES * PAGE), 0);
}

TEST(test_end_of_addresses)
{
	_cleanup_close_ int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const struct ss_process_memory memory = { .tid = getpid(),
						  .mem_fd = -1,
						  .pagemap_fd = fd };
	uint8_t bytes[100];
	struct ss_piece one = { .address = UINT64_MAX - 50, .bytes = bytes, .size = 100 };

	ss_process_memory_read_present(&memory, &one, 1);
	assert_int_equal(one.done, 0);
}

TEST(test_deadline)
{
	_cleanup_close_ int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const struct ss_process_memory memory = {
		.tid = getpid(), .mem_fd = -1, .pagemap_fd = fd, .deadline_ns = 1
	};
	uint8_t bytes[100];
	struct ss_piece one = piece(pages, bytes, 100);

	if (fd < 0)
		skip();
	ss_process_memory_read_present(&memory, &one, 1);
	assert_int_equal(one.done, 0);
	assert_int_equal(one.end, SS_PIECE_LATE);
}

TEST(test_unreadable)
{
	uint8_t byte;
	struct ss_piece one = piece(pages, &byte, 1);

	ss_process_memory_read(&(struct ss_process_memory){ .tid = INT32_MAX,
							    .mem_fd = -1,
							    .pagemap_fd = -1 },
			       &one, 1);
	assert_int_equal(one.done, 0);
}

/* Of a stopped child, up to the hole, a last word that is not whole. */
TEST(test_peek)
{
	uint8_t bytes[100] = {};
	pid_t child = fork();

	if (child == 0)
		for (;;)
			(void)pause();
	assert_int_equal(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, child, 0, 0), 0);
	assert_int_equal(waitpid(child, NULL, __WALL), child);
	struct ss_piece one = piece(pages + 3, bytes, 13);
	ss_process_memory_peek(child, &one);
	assert_int_equal(one.done, 13);
	assert_int_equal(bytes[12], 0x11);
	assert_int_equal(bytes[13], 0);
	one = piece(pages + PAGE - 24, bytes, 100);
	ss_process_memory_peek(child, &one);
	assert_int_equal(one.done, 24);
	one = piece(pages + PAGE, bytes, 100);
	ss_process_memory_peek(child, &one);
	assert_int_equal(one.done, 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, __WALL), child);
}

/* The readers that all this stands on. */
TEST(test_texts)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	char name[] = "/tmp/stacksnap-unit-XXXXXX";
	_cleanup_close_ int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(ss_io_read_all(fd, 10, &text), 0);
	assert_string_equal(text.bytes, "");
	_cleanup_free_ char *large = malloc(100000);
	memset(large, 'x', 100000);
	assert_int_equal(ss_io_write_all(fd, large, 100000), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(ss_io_read_all(fd, 100000, &text), 0);
	assert_int_equal(text.size, 100000);
	assert_int_equal(strlen(text.bytes), 100000);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(ss_io_read_all(fd, 99999, &text), -EFBIG);
	assert_int_equal(ss_io_pread(fd, large, 100000, 99990), 10);
	assert_int_equal(ss_io_pread(fd, large, 10, 100000), 0);
	assert_int_equal(ss_io_pread(-1, large, 10, 0), -EBADF);
	assert_int_equal(ss_io_read_path(AT_FDCWD, "/nowhere/at/all", 10, &text),
			 -ENOENT);
	assert_int_equal(ss_io_read_record(AT_FDCWD, "/proc/self/stat", 5, &text), 0);
	assert_int_equal(text.size, 5);
	assert_int_equal(text.bytes[5], '\0');
}

TEST_GROUP(make_pages, NULL)
