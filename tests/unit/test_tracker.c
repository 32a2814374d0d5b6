/*
 * The module tracker: a module whose pages change their protection is the same one, and so is one
 * that is being loaded; other bytes in its place are another one.
 */
#include "capture_child.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "stacksnap.h"
#include "stacksnap/record.h"

enum { PAGE = 4096, PAGES = 3 };

/* Whole pages of a file's read-only data. */
static const char pages[PAGES * PAGE] __attribute__((aligned(PAGE))) = "pages";

static int commands[2];
static int answers[2];

static bool is_told(char wanted)
{
	char byte = 0;

	return read(commands[0], &byte, 1) == 1 && byte == wanted;
}

/* Makes the middle page a separate mapping, and then a mapping of other bytes. */
static void changes(int ready)
{
	void *middle = (void *)((uintptr_t)pages + PAGE);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	say_ready(ready);
	if (!is_told('1') || mprotect(middle, PAGE, PROT_NONE) != 0)
		_exit(1);
	say_ready(answers[1]);
	if (!is_told('2') ||
	    mmap(middle, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) != middle)
		_exit(1);
	say_ready(answers[1]);
	(void)is_told('3');
}

static void tell(char what)
{
	char byte;

	assert_int_equal(write(commands[1], &what, 1), 1);
	assert_int_equal(read(answers[0], &byte, 1), 1);
}

struct seen {
	int loaded;
	int unloaded;
};

static void note(void *data, const struct ss_module_event *event)
{
	struct seen *seen = data;

	if (event->loaded)
		seen->loaded++;
	else
		seen->unloaded++;
}

static struct ss_tracker *track(void (*child)(int ready), struct ss_target **target,
				pid_t *pid, struct seen *seen)
{
	struct ss_tracker *tracker = NULL;

	*seen = (struct seen){};
	assert_true(pipe(commands) == 0 && pipe(answers) == 0);
	*pid = start(child);
	assert_null(ss_target_open(*pid, target));
	assert_null(ss_tracker_new(*target, note, seen, &tracker));
	assert_null(ss_tracker_poll(tracker));
	assert_true(seen->loaded > 1 && seen->unloaded == 0);
	*seen = (struct seen){};
	return tracker;
}

TEST(test_parts)
{
	struct seen seen;
	struct ss_target *target = NULL;
	pid_t child;
	struct ss_tracker *tracker = track(changes, &target, &child, &seen);

	tell('1');
	assert_null(ss_tracker_poll(tracker));
	assert_true(seen.loaded == 0 && seen.unloaded == 0);
	tell('2');
	assert_null(ss_tracker_poll(tracker));
	assert_true(seen.loaded > 0 && seen.unloaded == 1);
	ss_tracker_free(tracker);
	ss_target_close(target);
	stop(child);
}

/* As the dynamic linker loads a library: the whole file, then its segments in place of that. */
static void loads(int ready)
{
	char path[] = "/tmp/stacksnap-loaded-XXXXXX";
	int fd = mkstemp(path);
	char *base;

	if (fd < 0 || unlink(path) != 0 || ftruncate(fd, 4 * PAGE) != 0)
		_exit(1);
	say_ready(ready);
	if (!is_told('1'))
		_exit(1);
	base = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	if (base == MAP_FAILED || mmap(base + PAGE, PAGE, PROT_READ | PROT_EXEC,
				       MAP_PRIVATE | MAP_FIXED, fd, PAGE) == MAP_FAILED)
		_exit(1);
	say_ready(answers[1]);
	if (!is_told('2') || mmap(base + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_FIXED, fd, 2 * PAGE) == MAP_FAILED)
		_exit(1);
	say_ready(answers[1]);
	if (!is_told('3') || mmap(base + PAGE, PAGE, PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_FIXED, fd, 2 * PAGE) == MAP_FAILED)
		_exit(1);
	say_ready(answers[1]);
	(void)is_told('4');
}

/* It is seen once, although more of it is mapped later. */
TEST(test_being_loaded)
{
	struct seen seen;
	struct ss_target *target = NULL;
	pid_t child;
	struct ss_tracker *tracker = track(loads, &target, &child, &seen);

	tell('1');
	assert_null(ss_tracker_poll(tracker));
	assert_true(seen.loaded == 1 && seen.unloaded == 0);
	tell('2');
	assert_null(ss_tracker_poll(tracker));
	assert_true(seen.loaded == 1 && seen.unloaded == 0);
	tell('3'); /* other code */
	assert_null(ss_tracker_poll(tracker));
	assert_true(seen.loaded == 2 && seen.unloaded == 1);
	ss_tracker_free(tracker);
	ss_target_close(target);
	stop(child);
}
