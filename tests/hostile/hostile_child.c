/*
 * The tool, with sandboxed children that were taken over: each does what an attacker could do
 * after ss_confine(). Calls of the library are replaced by the linker (--wrap), so that the tool
 * itself has no code for this. The parent must survive it; what the children's own sanitizers
 * find does not count.
 *
 * SS_HOSTILE=random:SEED   change what is sent and written, and all memory that is shared with the
 *                          parent; send and write other things; end in all ways
 * SS_HOSTILE=request:KEY   the first child requests a file, as cli/file_requests.h does; the others
 *                          print the inodes of the files that they got: "got inode N"
 * SS_HOSTILE=open:PATH     each child opens a file, and prints "opened it" or "could not open it"
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/worker.h"
#include "stacksnap.h"
#include "data/gather.h"

enum { MAPPINGS_MAX = 64, MESSAGE_MAX = 70000, FILES = 1024 };

bool __real_ss_confine(const struct ss_confinement *confinement, unsigned *ret);
struct ss_worker_page *__real_ss_worker_page_new(void);
void *__real_mmap(void *address, size_t size, int protection, int flags, int fd,
		  off_t offset);
int __real_munmap(void *address, size_t size);
ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __real_writev(int fd, const struct iovec *parts, int count);
void __real__exit(int status) __attribute__((noreturn));

/* With sanitizers only. */
__attribute__((weak)) void __sanitizer_set_report_fd(void *fd);
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

/* What parent and child share. */
static struct {
	void *address;
	size_t size;
} mappings[MAPPINGS_MAX];

static struct ss_worker_page *page; /* the last one */
static atomic_uint *children;	    /* how many there have been, in all processes */
static bool is_taken_over;
static bool is_random;
static unsigned changes; /* one write in so many is changed */
static uint64_t state;
static int nowhere = -1; /* for the reports of its sanitizers */

__attribute__((constructor)) static void begin(void)
{
	children = __real_mmap(NULL, sizeof(*children), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static uint64_t pick(uint64_t below)
{
	state += 0x9e3779b97f4a7c15; /* splitmix64 */
	uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return below ? (z ^ z >> 31) % below : z ^ z >> 31;
}

static uint64_t pick_value(void)
{
	static const uint64_t values[] = {
		0,
		1,
		2,
		3,
		7,
		255,
		4096,
		INT32_MAX,
		1ULL << 31,
		UINT32_MAX,
		INT64_MAX,
		1ULL << 63,
		UINT64_MAX,
		UINT64_MAX - 1,
		UINT64_MAX - 7,
		0x7fff00000000,
	};

	return pick(3) ? values[pick(SS_ARRAY_SIZE(values))] : pick(0);
}

/* Changes some bits, bytes, words and double words. */
static void damage(uint8_t *bytes, size_t size)
{
	static const size_t sizes[] = { 1, 1, 2, 4, 4, 8 };

	for (uint64_t i = 1 + pick(4); i > 0 && size > 0; i--) {
		uint64_t value = pick_value();
		size_t part = sizes[pick(SS_ARRAY_SIZE(sizes))];
		part = SS_MIN(part, size);
		size_t at = pick(size - part + 1) & ~(part - 1);
		if (pick(4))
			memcpy(bytes + at, &value, part);
		else
			bytes[at] ^= (uint8_t)(1 << pick(8));
	}
}

static void damage_shared_memory(void)
{
	for (size_t i = 0; i < MAPPINGS_MAX; i++) {
		if (mappings[i].address && pick(2))
			damage(mappings[i].address, mappings[i].size);
	}
}

/* A message of one of the kinds that parents know, right or wrong. */
static size_t make_message(uint8_t *bytes)
{
	static const char kinds[] = "SSSGRTPPMD";
	static const char *const texts[] = { "", "b0123456789abcdef /etc/passwd",
					     "c00000000 /proc/self/exe", " ", "bb /" };
	size_t size = pick(4) ? pick(256) : pick(MESSAGE_MAX);

	if (pick(2)) /* the plan that is part of most */
		size = sizeof(struct ss_gather_plan) + pick(64);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(pick(3) ? 0 : pick(0));
	if (pick(8))
		bytes[0] = (uint8_t)kinds[pick(sizeof(kinds) - 1)];
	if (pick(3) == 0) {
		const char *text = texts[pick(SS_ARRAY_SIZE(texts))];
		memcpy(bytes + 1, text, strlen(text) + 1);
		size = strlen(text) + pick(3);
	}
	for (uint64_t i = pick(6); i > 0 && size > 8; i--)
		damage(bytes, size);
	return SS_MAX(size, (size_t)1);
}

/* A message to the parent (sandbox/worker.h), right or wrong. */
static void send_anything(void)
{
	static uint8_t bytes[MESSAGE_MAX * 2];
	static uint8_t answer[MESSAGE_MAX * 2];
	struct ss_worker_message message = {
		.kind = pick(8) ?
				SS_WORKER_READ + pick(SS_WORKER_REPLY - SS_WORKER_READ) :
				pick_value(),
		.value = pick_value(),
		.wanted = pick(3) ? pick(1 << 16) : pick_value(),
	};
	size_t size = 0;

	if (message.kind == SS_WORKER_ASK)
		size = make_message(bytes + sizeof(message));
	else if (message.kind == SS_WORKER_RANGES || pick(16) == 0)
		size = pick(8) * sizeof(struct ss_worker_range);
	for (size_t at = 0; message.kind == SS_WORKER_RANGES && at < size; at += 8) {
		const uint64_t value = pick(2) ? pick(1 << 12) : pick_value();
		memcpy(bytes + sizeof(message) + at, &value, sizeof(value));
	}
	const bool is_whole = pick(8);
	message.size = is_whole ? size : pick_value();
	memcpy(bytes, &message, sizeof(message));
	if (pick(16) == 0)
		size = pick(sizeof(message));
	else
		size += sizeof(message);
	ssize_t written = __real_write(STDIN_FILENO, bytes, size);
	/* The parent replies, or ends this process. */
	if (is_whole && size >= sizeof(message) && written == (ssize_t)size && pick(4))
		(void)!read(STDIN_FILENO, answer, sizeof(answer));
}

/* As if the work were done. */
static void send_end(void)
{
	const struct ss_worker_message message = { .kind = SS_WORKER_ANSWER };

	(void)__real_write(STDIN_FILENO, &message, sizeof(message));
}

/* Instead of its work. */
static void be_hostile(void)
{
	static uint8_t bytes[MESSAGE_MAX * 2];

	for (uint64_t i = pick(200); i > 0; i--)
		send_anything();
	damage_shared_memory();
	if (page) {
		page->requests = (uint32_t)pick(2);
		page->error_code = (uint32_t)(pick(2) ? 0 : pick_value());
	}
	for (uint64_t i = pick(4); i > 0; i--)
		(void)__real_write(pick(8) ? STDOUT_FILENO : STDERR_FILENO, bytes,
				   make_message(bytes));
	if (pick(2))
		send_end();
}

static void end_somehow(void)
{
	switch (pick(6)) {
	case 0:
		abort();
	case 1:
		(void)close(STDIN_FILENO);
		break;
	case 2:
		(void)syscall(SYS_tgkill, getpid(), gettid(), SIGKILL);
		break;
	default:
		break;
	}
	/* Not the status of sanitizers, with which the tool itself would end (cli/sanitizer.h). */
	__real__exit((int)(pick(3) ? 0 : pick(99)));
}

static void die_silently(void)
{
	__real__exit(EXIT_FAILURE);
}

/* Modes ------------------------------------------------------------------------ */

static void request(const char *key, unsigned number)
{
	if (number == 0 && page) {
		(void)__real_write(STDOUT_FILENO, key, strlen(key) + 1);
		page->requests = 1;
		send_end();
		__real__exit(EXIT_SUCCESS);
	}
	for (int fd = STDERR_FILENO + 1; fd < FILES; fd++) {
		struct stat status;
		if (fstat(fd, &status) == 0)
			(void)dprintf(STDERR_FILENO, "got inode %ju\n",
				      (uintmax_t)status.st_ino);
	}
}

static void open_path(const char *path)
{
	static const char *const texts[] = { "could not open it\n", "opened it\n" };
	const char *text = texts[open(path, O_RDONLY | O_CLOEXEC) >= 0];

	(void)__real_write(STDERR_FILENO, text, strlen(text));
}

static void start_random(const char *seed, unsigned number)
{
	is_random = true;
	state = strtoull(seed, NULL, 10) * 1000 + number;
	changes = (unsigned)(1 + pick(20));
	if (__sanitizer_set_report_fd)
		__sanitizer_set_report_fd((void *)(intptr_t)nowhere);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(die_silently);
	if (pick(3) == 0) {
		be_hostile();
		end_somehow();
	}
	for (uint64_t i = pick(8); i > 0; i--)
		send_anything();
}

/* What is replaced ---------------------------------------------------------------- */

bool __wrap_ss_confine(const struct ss_confinement *confinement, unsigned *ret)
{
	const char *mode = getenv("SS_HOSTILE");

	nowhere = memfd_create("nowhere", MFD_CLOEXEC);
	if (!__real_ss_confine(confinement, ret))
		return false;
	unsigned number = atomic_fetch_add(children, 1);
	is_taken_over = true;
	if (mode && strncmp(mode, "random:", 7) == 0)
		start_random(mode + 7, number);
	else if (mode && strncmp(mode, "request:", 8) == 0)
		request(mode + 8, number);
	else if (mode && strncmp(mode, "open:", 5) == 0)
		open_path(mode + 5);
	return true;
}

struct ss_worker_page *__wrap_ss_worker_page_new(void)
{
	page = __real_ss_worker_page_new();
	return page;
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd,
		  off_t offset)
{
	void *bytes = __real_mmap(address, size, protection, flags, fd, offset);

	for (size_t i = 0; i < MAPPINGS_MAX && bytes != MAP_FAILED && !is_taken_over &&
			   flags & MAP_SHARED && fd < 0 && protection & PROT_WRITE;
	     i++) {
		if (mappings[i].address)
			continue;
		mappings[i].address = bytes;
		mappings[i].size = size;
		break;
	}
	return bytes;
}

int __wrap_munmap(void *address, size_t size)
{
	for (size_t i = 0; i < MAPPINGS_MAX; i++) {
		if (mappings[i].address == address)
			mappings[i].address = NULL;
	}
	return __real_munmap(address, size);
}

static bool is_to_be_changed(void)
{
	return is_taken_over && is_random && pick(changes) == 0;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
	if (!is_to_be_changed() || size == 0)
		return __real_write(fd, bytes, size);
	uint8_t *copy = malloc(size);
	if (!copy)
		return __real_write(fd, bytes, size);
	memcpy(copy, bytes, size);
	damage(copy, size);
	if (pick(4) == 0)
		damage_shared_memory();
	if (pick(16) == 0)
		send_anything();
	if (pick(32) == 0)
		end_somehow();
	ssize_t written = __real_write(fd, copy, pick(16) ? size : pick(size + 1));
	free(copy);
	return written < 0 ? written : (ssize_t)size;
}

ssize_t __wrap_writev(int fd, const struct iovec *parts, int count)
{
	uint8_t bytes[256];
	size_t size = 0;
	ssize_t all = 0;

	if (!is_to_be_changed())
		return __real_writev(fd, parts, count);
	for (int i = 0; i < count; i++)
		all += (ssize_t)parts[i].iov_len;
	for (int i = 0; i < count && size < sizeof(bytes); i++) {
		size_t part = SS_MIN(parts[i].iov_len, sizeof(bytes) - size);
		if (part)
			memcpy(bytes + size, parts[i].iov_base, part);
		size += part;
	}
	damage(bytes, size);
	return __real_write(fd, bytes, size) < 0 ? -1 : all;
}

/* The result was written by now, through streams. */
void __wrap__exit(int status)
{
	uint8_t bytes[512];

	for (uint64_t i = pick(6); is_taken_over && is_random && i > 0; i--) {
		off_t size = lseek(STDOUT_FILENO, 0, SEEK_END);
		off_t at = size > 0 ? (off_t)pick((uint64_t)size) : 0;
		ssize_t n = size > 0 ? pread(STDOUT_FILENO, bytes, sizeof(bytes), at) : 0;
		if (n <= 0)
			break;
		damage(bytes, (size_t)n);
		if (lseek(STDOUT_FILENO, at, SEEK_SET) == at)
			(void)__real_write(STDOUT_FILENO, bytes, (size_t)n);
	}
	if (is_taken_over && is_random && pick(3) == 0)
		damage_shared_memory();
	__real__exit(status);
}
