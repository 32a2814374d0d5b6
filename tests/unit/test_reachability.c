/* A made-up heap of Go: which goroutines nobody can wake. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "runtime/go/goroutines.h"

/* The arena begins at 0: its first page has the runtime's own data, and is no span. */
enum {
	BASE = 0x1000,
	SIZE = 0x9000,
	MAP = 0x1010, /* mheap_.arenas */
	ARENA = 0x1018,
	SPECIAL = 0x1f00,
	GS = 0x2000, /* one span after the other, each of a page of Go */
	SUDOGS = 0x4000,
	STACKS = 0x6000,
	CHANNELS = 0x8000,
	G_STEP = 512,
	SUDOG_STEP = 112,
	CHANNEL_STEP = 96,
	STACK_SIZE = 0x800,
	USED = 0x700, /* a stack is used from here on */
	COUNT = 4,
	REST = 0x1e00, /* memory of the runtime that refers to nothing */
	AREA = 1 << 30,
};

struct fake {
	struct ss_go_program program;
	struct ss_go_goroutines found;
	struct ss_go_goroutine goroutines[COUNT];
	uint8_t bytes[SIZE];
	size_t checks; /* until a thread has run */
	struct ss_process process;
	bool swapped;
	uint64_t area_end; /* of a second area of memory; 0: there is none */
};

static void read_ranges(void *data, struct ss_memory_range *ranges, size_t count)
{
	const struct fake *fake = data;

	for (size_t i = 0; i < count; i++) {
		const uint64_t at = ranges[i].address - BASE;
		ranges[i].done = at < SIZE ? SS_MIN(ranges[i].size, (size_t)(SIZE - at)) :
					     0;
		memcpy(ranges[i].bytes, fake->bytes + (at < SIZE ? at : 0),
		       ranges[i].done);
	}
}

static bool check(void *data, pid_t tid)
{
	struct fake *fake = data;

	assert_int_equal(tid, 1);
	return fake->checks-- > 0;
}

static void put(struct fake *fake, uint64_t at, uint64_t value)
{
	memcpy(fake->bytes + (at - BASE), &value, sizeof(value));
}

static void put_byte(struct fake *fake, uint64_t at, uint8_t value)
{
	fake->bytes[at - BASE] = value;
}

static uint64_t header_of(size_t index)
{
	return 0x1600 + index * 0xa0;
}

static void put_span(struct fake *fake, size_t index, uint64_t size, uint8_t class,
		     uint8_t state)
{
	const bool old = fake->program.minor == 19;
	const uint64_t span = header_of(index);
	const uint64_t start = GS + index * 0x2000;
	const uint64_t count = 0x2000 / size;

	put(fake, 0x1500 + (index + 1) * 8, span);
	put(fake, span + 24, start);
	put(fake, span + 32, 1);
	put(fake, span + (old ? 56 : 48), old ? count : count << 16);
	put_byte(fake, span + 98, class);
	put_byte(fake, span + 99, state);
	put(fake, span + 104, size);
	put(fake, span + 112, start + count * size);
}

static uint64_t channel(size_t index)
{
	return CHANNELS + index * CHANNEL_STEP;
}

/* What each goroutine waits for: channel, or semaphore in the object of that index. */
static void put_wait(struct fake *fake, size_t index, const char *reason, bool semaphore)
{
	const bool old = fake->program.minor == 19;
	const uint64_t g = GS + index * G_STEP;
	const uint64_t sudog = SUDOGS + index * SUDOG_STEP;
	const uint64_t low = STACKS + index * STACK_SIZE;

	fake->goroutines[index] = (struct ss_go_goroutine){
		.address = g,
		.id = index + 1,
		.status = SS_STATUS_WAITING,
		.wait_reason = reason,
		.stack_low = low,
		.stack_high = low + STACK_SIZE,
		.sp = low + USED,
		.pc = 0x401000,
	};
	put(fake, g, low);
	put(fake, sudog, g);
	put(fake, low + USED + 8, sudog);
	if (semaphore) {
		put(fake, sudog + (old ? 24 : 32), channel(index) + 8);
	} else {
		put(fake, g + (old ? 328 : 320), sudog);
		put(fake, sudog + (old ? 80 : 96), channel(index));
	}
}

static struct fake *make(unsigned minor)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	fake->program = (struct ss_go_program){ .minor = minor,
						.layout = ss_go_layout_find(minor),
						.heap = { BASE, MAP },
						.heap_count = 2 };
	fake->found.items.items = fake->goroutines;
	fake->found.items.count = COUNT;
	fake->checks = 100;
	fake->process.mode = SS_MODE_AUTO;
	fake->process.consistent = true;
	put(fake, MAP, ARENA - (UINT64_C(1) << 24));
	put(fake, ARENA, UINT64_C(0x1500) - (minor == 19 ? UINT64_C(2) << 20 : 0));
	put_span(fake, 0, G_STEP, 10, 1);
	put_span(fake, 1, SUDOG_STEP, 12, 1);
	put_span(fake, 2, STACK_SIZE, 0, 2);
	put_span(fake, 3, CHANNEL_STEP, 16, 1);
	put_wait(fake, 0, "chan receive", false);
	put_wait(fake, 1, "select", false);
	put_wait(fake, 2, "semacquire", true);
	put_wait(fake, 3, "sleep", false);
	return fake;
}

/* One digit for each goroutine: 1 if nobody can wake it. */
static void assert_found(struct fake *fake, const char *wanted)
{
	struct ss_area areas[] = { { .start = BASE,
				     .end = BASE + SIZE,
				     .prot = PROT_READ | PROT_WRITE,
				     .module = -1,
				     .name = "" },
				   { .start = AREA,
				     .end = fake->area_end,
				     .prot = PROT_READ | PROT_WRITE,
				     .module = -1,
				     .name = "" } };
	struct ss_capture_thread thread = { .tid = 1 };
	struct ss_capture capture = { .arch = &ss_arch_x86_64,
				      .process = fake->process,
				      .not_swapped = !fake->swapped };
	const struct ss_go_process process = { .capture = &capture,
					       .program = &fake->program,
					       .read_ranges = read_ranges,
					       .check = check,
					       .read_data = fake };
	char found[COUNT + 1] = {};

	ss_regs_set(&thread.regs, ss_arch_x86_64.sp, UINT64_C(1) << 40);
	ss_regs_set(&thread.regs, ss_arch_x86_64.pc, 0x401000);
	thread.syscall.args[2] = ss_load_u64(fake->bytes, REST - BASE);
	capture.areas.items = areas;
	capture.areas.count = fake->area_end ? 2 : 1;
	capture.threads.items = &thread;
	capture.threads.count = 1;
	for (size_t i = 0; i < COUNT; i++)
		fake->goroutines[i].endless = SS_ENDLESS_NO;
	ss_go_find_unwakeable(&process, &fake->found);
	for (size_t i = 0; i < COUNT; i++)
		found[i] = fake->goroutines[i].endless ? '1' : '0';
	assert_string_equal(found, wanted);
}

static const unsigned versions[] = { 19, 26 };

TEST(test_nobody)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(versions); i++) {
		_cleanup_free_ struct fake *fake = make(versions[i]);
		assert_found(fake, "1110");
	}
}

/* Goroutines that can be woken refer to what others wait for. */
TEST(test_stacks)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(versions); i++) {
		_cleanup_free_ struct fake *fake = make(versions[i]);
		/* The first one is in a circle of goroutines that nobody can wake. */
		put(fake, STACKS + USED + 0x20, channel(1));
		put(fake, STACKS + STACK_SIZE + USED + 0x20, channel(0) + 95);
		assert_found(fake, "1110");
		/* One that sleeps knows the second one's. */
		put(fake, STACKS + 3 * STACK_SIZE + USED + 0x20, channel(1) + 8);
		assert_found(fake, "0010");
		/* What is below the stack pointer has been left. */
		_cleanup_free_ struct fake *other = make(versions[i]);
		put(other, STACKS + 3 * STACK_SIZE + USED - 8, channel(1));
		assert_found(other, "1110");
	}
}

/* The stack of the last one, which sleeps, ends where the first channel begins. */
TEST(test_bounds_of_stacks)
{
	const uint64_t g = GS + 3 * G_STEP;
	const uint64_t low = STACKS + 3 * STACK_SIZE;

	for (size_t i = 0; i < SS_ARRAY_SIZE(versions); i++) {
		_cleanup_free_ struct fake *fake = make(versions[i]);
		put(fake, g + 8, channel(0));
		assert_found(fake, "1110");
		/* No bounds: the size is no power of two, or too small; or they are not its first words. */
		for (uint64_t begin = low - 8; begin <= low + 8; begin += 16) {
			put(fake, g, begin);
			assert_found(fake, "0110");
		}
		put(fake, g, low + STACK_SIZE / 2);
		assert_found(fake, "0110");
		put(fake, g, low);
		put(fake, g + 24, low);
		put(fake, g + 32, channel(0));
		assert_found(fake, "0110");
		/* They do not end where the stack does. */
		_cleanup_free_ struct fake *other = make(versions[i]);
		put(other, g + 8, channel(0) + 8);
		assert_found(other, "0110");
	}
}

/* The second one waits for a condition, as a goroutine that sleeps did before. */
TEST(test_condition)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(versions); i++) {
		const uint64_t list = channel(1) + 16;
		_cleanup_free_ struct fake *fake = make(versions[i]);
		fake->goroutines[1].wait_reason = "sync.Cond.Wait";
		assert_found(fake, "1010");
		put(fake, list + 16, SUDOGS + 3 * SUDOG_STEP);
		put(fake, list + 24, SUDOGS + SUDOG_STEP);
		put(fake, SUDOGS + 3 * SUDOG_STEP + 8, SUDOGS + SUDOG_STEP);
		put(fake, STACKS + STACK_SIZE + USED + 0x30, list);
		assert_found(fake, "1110");
		put(fake, STACKS + 3 * STACK_SIZE + USED + 0x30, channel(1));
		assert_found(fake, "1010");
	}
}

/* A thread's system call, an object with a finalizer. */
TEST(test_roots)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(versions); i++) {
		_cleanup_free_ struct fake *fake = make(versions[i]);
		put(fake, REST, channel(2) + 16);
		assert_found(fake, "1100");
		_cleanup_free_ struct fake *other = make(versions[i]);
		put(other, header_of(0) + 128, SPECIAL);
		put(other, SPECIAL + 8, 10 * G_STEP);
		put(other, GS + 10 * G_STEP + 16, channel(0));
		assert_found(other, "0110");
		/* It has a function that refers to a channel. */
		put(other, SPECIAL + 32, channel(1));
		assert_found(other, "0010");
	}
}

/* Nothing is certain. */
TEST(test_doubts)
{
	for (size_t checks = 0; checks < 2; checks++) {
		_cleanup_free_ struct fake *fake = make(19);
		fake->checks = checks;
		assert_found(fake, "0000");
	}
	for (unsigned minor = 20; minor <= 27; minor++) {
		_cleanup_free_ struct fake *fake = make(19);
		fake->program.minor = minor;
		assert_found(fake, "0000");
	}
	_cleanup_free_ struct fake *unread = make(19);
	unread->found.unread = 1;
	assert_found(unread, "0000");
	_cleanup_free_ struct fake *changed = make(19);
	changed->goroutines[1].changed = true;
	assert_found(changed, "0000");
	/* A span that does not end where its objects do */
	_cleanup_free_ struct fake *limit = make(19);
	put(limit, header_of(3) + 112, CHANNELS + 96);
	assert_found(limit, "0000");
	/* One that runs on a thread that was not captured */
	for (pid_t tid = 0; tid < 3; tid++) {
		_cleanup_free_ struct fake *running = make(19);
		running->goroutines[3].status = SS_STATUS_RUNNING;
		running->goroutines[3].thread = tid;
		assert_found(running, tid == 1 ? "1110" : "0000");
	}
	/* Threads that are not in the capture, and memory in swap */
	_cleanup_free_ struct fake *selected = make(19);
	selected->process.threads_left_out = 1;
	assert_found(selected, "0000");
	_cleanup_free_ struct fake *unseen = make(19);
	unseen->process.threads_unseen = 1;
	assert_found(unseen, "0000");
	_cleanup_free_ struct fake *swapped = make(19);
	swapped->swapped = true;
	assert_found(swapped, "0000");
	/* A waiter of another goroutine */
	_cleanup_free_ struct fake *waiter = make(19);
	put(waiter, SUDOGS, GS + G_STEP);
	assert_found(waiter, "0110");
}

/* Stacks that do not begin where their bounds say. */
TEST(test_bounds)
{
	static const uint64_t places[] = {
		0, 1, STACKS - 8, STACKS + STACK_SIZE, STACKS + STACK_SIZE + 1, UINT64_MAX
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(places); i++) {
		_cleanup_free_ struct fake *fake = make(26);
		fake->goroutines[0].sp = places[i];
		fake->goroutines[0].pc = 0;
		assert_found(fake, "1110");
	}
	for (size_t i = 1; i < 8; i++) {
		_cleanup_free_ struct fake *low = make(26);
		low->goroutines[0].stack_low += i;
		assert_found(low, "0000");
		_cleanup_free_ struct fake *high = make(26);
		high->goroutines[0].stack_high -= i;
		high->goroutines[0].sp = high->goroutines[0].stack_high + 1;
		high->goroutines[0].pc = 0;
		assert_found(high, "0000");
	}
}

/* More than is read. */
TEST(test_limits)
{
	_cleanup_free_ struct fake *fake = make(26);
	fake->area_end = AREA + (64 << 20);
	assert_found(fake, "1110");
	fake->area_end = AREA + (128 << 20);
	assert_found(fake, "0000");
	/* Places where there may be a part of the heap */
	fake->area_end = AREA + (UINT64_C(5000) << 26);
	assert_found(fake, "0000");
	/* An endless list of objects with finalizers */
	_cleanup_free_ struct fake *specials = make(26);
	put(specials, header_of(0) + 128, SPECIAL);
	put(specials, SPECIAL, SPECIAL);
	assert_found(specials, "0000");
}
