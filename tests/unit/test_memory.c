#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "base/cleanup.h"
#include "data/capture.h"

TEST(test_capture)
{
	static const uint8_t first[] = "0123456789abcdef";
	static const uint8_t second[] = "ABCDEFGHIJKLMNOP";
	static const uint8_t lock[] = "lockword";
	struct ss_capture_thread threads[2] = {
		{ .stacks[0] = { .address = 0x1000, .size = 16, .bytes = first } },
		{ .stacks[1] = { .address = 0x1010, .size = 16, .bytes = second },
		  .lock = { .address = 0x5000, .size = 8, .bytes = lock } },
	};
	const struct ss_capture capture = { .threads = { .items = threads, .count = 2 } };
	struct ss_capture_memory all;
	struct ss_capture_memory one;
	char bytes[32] = {};
	uint32_t u32 = 7;
	uint64_t u64 = 7;

	ss_capture_memory_init(&all, &capture, NULL);
	ss_capture_memory_init(&one, &capture, &threads[0]);
	/* Adjacent copies read as one range, but only where both are visible. */
	assert_int_equal(all.memory.read(&all.memory, 0x100c, bytes, 8), 8);
	assert_memory_equal(bytes, "cdefABCD", 8);
	assert_int_equal(one.memory.read(&one.memory, 0x100c, bytes, 8), 4);
	assert_int_equal(one.memory.read(&one.memory, 0x5000, bytes, 8), 0);
	assert_int_equal(all.memory.read(&all.memory, 0x101c, bytes, 8), 4);
	assert_int_equal(all.memory.read(&all.memory, 0xfff, bytes, 8), 0);
	assert_int_equal(all.memory.read(&all.memory, UINT64_MAX, bytes, 8), 0);
	assert_true(ss_memory_read(&all.memory, 0x5000, bytes, 8));
	assert_memory_equal(bytes, "lockword", 8);
	assert_true(ss_memory_read_u32(&all.memory, 0x5004, &u32));
	assert_memory_equal(&u32, "word", 4);
	assert_true(ss_memory_read_u64(&all.memory, 0x5000, &u64));
	assert_memory_equal(&u64, "lockword", 8);
	/* Failures leave the result alone. */
	u32 = 7;
	u64 = 7;
	assert_false(ss_memory_read_u32(&all.memory, 0x5005, &u32));
	assert_false(ss_memory_read_u64(&all.memory, 0x5001, &u64));
	assert_int_equal(u32, 7);
	assert_int_equal(u64, 7);
}

/* What was gathered at another moment than a thread's stack is not memory of that thread. */
TEST(test_gathered)
{
	static const uint8_t gathered[] = "gathered";
	struct ss_memory_block block = { .address = 0x1000,
					 .size = 8,
					 .bytes = gathered };
	static const uint8_t late[] = "late....";
	struct ss_memory_block late_block = { .address = 0x1000,
					      .size = 8,
					      .bytes = late };
	struct ss_gathered turn = { .blocks = { .items = &late_block, .count = 1 } };
	struct ss_capture_thread threads[3] = { {},
						{ .turn = SS_TURN_OTHER },
						{ .turn = 1 } };
	const struct ss_capture capture = {
		.threads = { .items = threads, .count = 3 },
		.turns = { .items = &turn, .count = 1 },
		.gathered.blocks = { .items = &block, .count = 1 },
	};
	struct ss_capture_memory memory;
	char bytes[8];

	ss_capture_memory_init(&memory, &capture, NULL);
	assert_true(ss_memory_read(&memory.memory, 0x1000, bytes, 8));
	ss_capture_memory_init(&memory, &capture, &threads[0]);
	assert_true(ss_memory_read(&memory.memory, 0x1000, bytes, 8));
	assert_memory_equal(bytes, "gathered", 8);
	ss_capture_memory_init(&memory, &capture, &threads[1]);
	assert_false(ss_memory_read(&memory.memory, 0x1000, bytes, 8));
	ss_capture_memory_init(&memory, &capture, &threads[2]);
	assert_true(ss_memory_read(&memory.memory, 0x1000, bytes, 8));
	assert_memory_equal(bytes, "late....", 8);
}

TEST(test_string)
{
	static const uint8_t stack[] = "hello\0world!";
	struct ss_capture_thread thread = {
		.stacks[0] = { .address = 0x1000, .size = 12, .bytes = stack },
	};
	const struct ss_capture capture = { .threads = { .items = &thread, .count = 1 } };
	struct ss_capture_memory memory;
	char text[32];

	ss_capture_memory_init(&memory, &capture, &thread);
	assert_true(ss_memory_read_string(&memory.memory, 0x1000, text, 6));
	assert_string_equal(text, "hello");
	assert_false(ss_memory_read_string(&memory.memory, 0x1000, text, 5));
	assert_string_equal(text, "");
	/* The end of readable memory does not end a string. */
	assert_false(ss_memory_read_string(&memory.memory, 0x1006, text, sizeof(text)));
	assert_string_equal(text, "");
	assert_false(ss_memory_read_string(&memory.memory, 0x2000, text, sizeof(text)));
	assert_string_equal(text, "");
}
