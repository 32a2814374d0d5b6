/*
 * Tasks of asyncio in memory that is made up: a table of offsets of CPython 3.13, and modules,
 * sets, tasks and coroutines as its process has them.
 */
#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "runtime/python/python.h"

enum {
	BASE = 0x10000,
	SIZE = 1 << 20,
	/* Offsets in structures */
	CODE_BYTES = 208,
	TASK_SIZE = 144,
	/* Addresses - BASE */
	INTERPRETER = 0x400,
	SET = 0x800,
	MODULE = 0x900,
	CODE = 0xa00,
	TASK = 0x1000,
	COROUTINE = 0x1100,
	NUMBER = 0x1200,
	WAITER = 0x1280,
	LIST = 0x1300,
	TYPES = 0x2000,
	STRINGS = 0x6000,
	DICTS = 0x8000,
	TABLE = 0x9000,
	CHILDREN = 0x40000,
	MORE = 0x80000,
};

static uint8_t bytes[SIZE];
static size_t types;
static size_t strings;
static size_t dicts;

static size_t read_bytes(const struct ss_memory *memory, uint64_t address, void *ret,
			 size_t size)
{
	(void)memory;
	return unit_copy(ret, size, bytes, SIZE, address - BASE);
}

static const struct ss_memory memory = { .read = read_bytes };

static void put(size_t at, uint64_t value)
{
	memcpy(bytes + at, &value, sizeof(value));
}

/* An object of a type with this name, and the size of its objects. */
static uint64_t put_object(size_t at, const char *type, uint64_t size)
{
	const size_t made = TYPES + 0x200 * types++;

	put(made + 24, BASE + made + 0x180);
	put(made + 32, size);
	memcpy(bytes + made + 0x180, type, strlen(type) + 1);
	put(at, 1);
	put(at + 8, BASE + made);
	return BASE + at;
}

static uint64_t put_string(const char *text)
{
	const size_t at = STRINGS + 0x80 * strings++;

	(void)put_object(at, "str", 40);
	put(at + 16, strlen(text));
	put(at + 32, 1u << 2 | 1u << 5 | 1u << 6);
	memcpy(bytes + at + 40, text, strlen(text));
	return BASE + at;
}

/* A dictionary with one entry. */
static uint64_t put_dict(const char *key, uint64_t value)
{
	const size_t at = DICTS + 0x100 * dicts++;

	(void)put_object(at, "dict", 48);
	put(at + 32, BASE + at + 0x80);
	bytes[at + 0x80 + 9] = 3;
	put(at + 0x80 + 24, 1);
	put(at + 0x80 + 32 + 8 + 8, put_string(key));
	put(at + 0x80 + 32 + 8 + 16, value);
	return BASE + at;
}

static void put_code(void)
{
	(void)put_object(CODE, "code", CODE_BYTES);
	put(CODE + 68, 10);
	put(CODE + 112, put_string("a.py"));
	put(CODE + 120, put_string("f"));
	put(CODE + 128, put_string("C.f"));
	put(CODE + 136, put_object(CODE + 0x180, "bytes", 33));
	put(CODE + 0x180 + 16, 2);
	memcpy(bytes + CODE + 0x180 + 32, "\x80\x00", 2);
}

/* A coroutine that has not begun. */
static void put_coroutine(void)
{
	(void)put_object(COROUTINE, "coroutine", 160);
	bytes[COROUTINE + 67] = (uint8_t)-3;
	put(COROUTINE + 72, BASE + CODE);
	put(COROUTINE + 72 + 56, BASE + CODE + CODE_BYTES);
}

static void put_task(size_t at)
{
	put(at + 120, BASE + COROUTINE);
	put(at + 128, BASE + NUMBER);
}

static void put_element(size_t index, uint64_t object)
{
	put(TABLE + 16 * index, object);
	put(TABLE + 16 * index + 8, index);
}

/* The table of CPython 3.13, with one pending task. */
static void make_process(struct ss_python_layout *layout, uint64_t frame_size,
			 uint64_t frame_code, uint64_t frame_instruction)
{
	static const uint64_t words[81] = {
		[1] = 0x030d05f0,
		[3] = 4096,
		0,
		632,
		/* interpreter: next, threads, modules, GIL */
		[6] = 4096,
		0,
		8,
		16,
		0,
		24,
		0,
		0,
		32,
		/* thread */
		[19] = 256,
		0,
		8,
		16,
		72,
		152,
		160,
		/* code */
		[34] = CODE_BYTES,
		112,
		120,
		128,
		136,
		68,
		0,
		0,
		0,
		CODE_BYTES,
		[64] = 40,
		16,
		32,
		[67] = 64,
		32,
		16,
		40,
	};
	const uint64_t frame[] = { frame_size, 8, frame_code, frame_instruction, 0, 70 };
	const char *why = NULL;

	types = strings = dicts = 0;
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, words, sizeof(words));
	memcpy(bytes, "xdebugpy", 8);
	memcpy(bytes + 28 * sizeof(words[0]), frame, sizeof(frame));
	if (!ss_python_layout_find(0x030d05f0, "x86_64", &memory, BASE, layout, &why))
		fail_msg("%s", why);
	(void)put_object(SET, "set", 200);
	put(SET + 40, BASE + TABLE);
	(void)put_object(MODULE, "module", 56);
	put(MODULE + 16, put_dict("_scheduled_tasks", BASE + SET));
	put(INTERPRETER + 24, put_dict("asyncio.tasks", BASE + MODULE));
	put_code();
	put_coroutine();
	(void)put_object(NUMBER, "int", 28);
	put(NUMBER + 16, 1 << 3);
	put(NUMBER + 24, 7);
	(void)put_object(TASK, "_asyncio.Task", TASK_SIZE);
	put_task(TASK);
	put(SET + 24, 1);
	put_element(0, BASE + TASK);
}

static bool limited; /* reading memory */

/* What was found. */
struct found {
	bool ok;
	size_t tasks;
	size_t awaited;
	size_t changed;
	size_t unread;
	const char *name; /* of the first one */
	const char *function;
};

/* A task that changes each time that memory is read anew, some times: its name. */
enum { CHANGED_NAME = 0x1240 };
static size_t changes;
static size_t changes_max;
static bool ends; /* it does then */

static size_t read_changed(const struct ss_memory *self, uint64_t address, void *ret,
			   size_t size)
{
	uint64_t name;

	memcpy(&name, bytes + TASK + 128, sizeof(name));
	if (changes % 2)
		put(TASK + 128, BASE + CHANGED_NAME);
	size = read_bytes(self, address, ret, size);
	put(TASK + 128, name);
	return size;
}

static const struct ss_memory changed_memory = { .read = read_changed };

static void forget(const struct ss_memory *after)
{
	assert_ptr_equal(after, &changed_memory);
	if (changes < changes_max)
		changes++;
	else if (ends)
		bytes[TASK + 96] = 2;
}

static struct found read_limited(const struct ss_python_layout *layout,
				 struct ss_intern *interned, uint64_t reads_left)
{
	const struct ss_runtime_process process = {
		.strings = interned,
		.memory = &memory,
		.fresh = &memory,
		.after = changes_max ? &changed_memory : &memory,
		.forget = changes_max ? forget : NULL,
		.limited = &limited,
	};
	struct ss_python_codes codes = {
		.layout = layout, .memory = &memory, .fresh = &memory, .strings = interned
	};
	const struct ss_python_tasks_source source = { .process = &process,
						       .layout = layout,
						       .codes = &codes,
						       .interpreter = BASE + INTERPRETER,
						       .reads_left = &reads_left };
	struct ss_runtime_tasks tasks = {};
	struct found found = { .ok = ss_python_tasks_read(&source, &tasks) };

	found.tasks = tasks.items.count;
	found.awaited = tasks.awaited.count;
	found.changed = tasks.changed;
	found.unread = tasks.unread;
	if (tasks.items.count > 0) {
		found.name = tasks.items.items[0].name;
		found.function =
			tasks.calls.items[tasks.items.items[0].first_call].function;
	}
	ss_vector_free(&tasks.items);
	ss_vector_free(&tasks.calls);
	ss_vector_free(&tasks.awaited);
	ss_python_codes_deinit(&codes);
	print_message("%zu tasks, %zu awaited, %zu changed, %zu unread\n", found.tasks,
		      found.awaited, found.changed, found.unread);
	return found;
}

static struct found read_tasks(const struct ss_python_layout *layout,
			       struct ss_intern *interned)
{
	return read_limited(layout, interned, SS_PYTHON_TASK_READS);
}

TEST(test_task)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *interned = ss_intern_new();
	struct ss_python_layout layout;

	make_process(&layout, 88, 0, 56);
	struct found found = read_tasks(&layout, interned);
	assert_true(found.ok);
	assert_int_equal(found.tasks, 1);
	assert_int_equal(found.changed + found.unread, 0);
	assert_string_equal(found.name, "Task-7");
	assert_string_equal(found.function, "C.f");
}

/* A task that is read again until two readings agree. */
TEST(test_changes)
{
	static const struct {
		size_t changes;
		bool ends;
		size_t tasks;
		size_t changed;
	} cases[] = {
		{ 3, false, 1, 0 },
		{ 9, false, 1, 0 },
		{ 1000, false, 0, 1 },
		{ 3, true, 0, 0 },
	};
	struct ss_python_layout layout;

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		_cleanup_(ss_intern_cleanup) struct ss_intern *interned = ss_intern_new();
		make_process(&layout, 88, 0, 56);
		(void)put_object(CHANGED_NAME, "int", 28);
		put(CHANGED_NAME + 16, 1 << 3);
		put(CHANGED_NAME + 24, 8);
		changes = 0; /* the set is read first */
		changes_max = cases[i].changes;
		ends = cases[i].ends;
		struct found found = read_tasks(&layout, interned);
		changes_max = 0;
		ends = false;
		assert_true(found.ok);
		assert_int_equal(found.tasks, cases[i].tasks);
		assert_int_equal(found.changed, cases[i].changed);
		assert_int_equal(found.unread, 0);
	}
}

/* A frame with members beyond what is read of that of a coroutine. */
TEST(test_large_frame)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *interned = ss_intern_new();
	struct ss_python_layout layout;

	make_process(&layout, 1016, 1000, 1008);
	struct found found = read_tasks(&layout, interned);
	assert_true(found.ok);
	assert_int_equal(found.tasks + found.changed + found.unread, 0);
	make_process(&layout, 1016, 0, 1008);
	found = read_tasks(&layout, interned);
	assert_int_equal(found.tasks + found.changed + found.unread, 0);
}

/* One task, in all slots of the set. */
TEST(test_repeated)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *interned = ss_intern_new();
	struct ss_python_objects objects = {};
	struct ss_python_layout layout;

	make_process(&layout, 88, 0, 56);
	put(SET + 32, 15);
	for (size_t i = 1; i < 16; i++)
		put_element(i, BASE + TASK);
	struct found found = read_tasks(&layout, interned);
	assert_int_equal(found.tasks, 1);
	assert_int_equal(found.changed + found.unread, 0);

	assert_true(ss_python_elements(&memory, BASE + SET, 3, &objects));
	assert_true(ss_python_elements(&memory, BASE + SET, 2, &objects));
	assert_int_equal(objects.list.count, 5);
	ss_vector_free(&objects.list);
}

/* Waits for a future that has many times the same task as children. */
static void put_children(size_t count)
{
	(void)put_object(LIST, "list", 40);
	put(LIST + 16, count);
	put(LIST + 24, BASE + CHILDREN);
	for (size_t i = 0; i < count; i++)
		put(CHILDREN + 8 * i, BASE + TASK);
	(void)put_object(WAITER, "_GatheringFuture", 0x40);
	uint64_t type;
	memcpy(&type, bytes + WAITER + 8, sizeof(type));
	put(type - BASE + 288, 0x20); /* where its dictionary is */
	put(WAITER + 0x20, put_dict("_children", BASE + LIST));
}

/* What all tasks wait for is limited. */
TEST(test_many_awaited)
{
	enum { TASKS = 80, CHILDREN_COUNT = 1 << 14 };
	_cleanup_(ss_intern_cleanup) struct ss_intern *interned = ss_intern_new();
	struct ss_python_layout layout;

	make_process(&layout, 88, 0, 56);
	put_children(CHILDREN_COUNT);
	put(SET + 24, TASKS);
	put(SET + 32, 127);
	for (size_t i = 1; i < TASKS; i++) {
		const size_t at = MORE + i * 0x100;
		memcpy(bytes + at, bytes + TASK, 16); /* its type */
		put_task(at);
		put(at + 112, BASE + WAITER);
		put_element(i, BASE + at);
	}
	struct found found = read_tasks(&layout, interned);
	assert_true(found.ok);
	assert_true(found.tasks >= 60 && found.tasks < 66);
	assert_true(found.awaited <= 1 << 20);
	assert_int_equal(found.changed, 0);
	assert_int_equal(found.tasks + found.unread, TASKS);
}

TEST(test_reads)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *interned = ss_intern_new();
	struct ss_python_layout layout;

	make_process(&layout, 88, 0, 56);
	for (uint64_t reads = 0; reads < 400; reads += 7) {
		struct found found = read_limited(&layout, interned, reads);
		assert_true(found.ok);
		assert_true(found.tasks + found.changed + found.unread <= 1);
		if (reads == 399)
			assert_int_equal(found.tasks, 1);
	}
}

/* Of a type that is not known, as Cython's; or its coroutine has a name that is too long. Neither
   changes. */
TEST(test_unread)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *interned = ss_intern_new();
	struct ss_python_layout layout;

	make_process(&layout, 88, 0, 56);
	(void)put_object(COROUTINE, "_cython_3_0_11.coroutine", 160);
	struct found found = read_tasks(&layout, interned);
	assert_int_equal(found.tasks + found.changed, 0);
	assert_int_equal(found.unread, 1);
	make_process(&layout, 88, 0, 56);
	uint64_t name;
	memcpy(&name, bytes + CODE + 112, sizeof(name));
	put(name - BASE + 16, 1 << 20);
	found = read_tasks(&layout, interned);
	assert_int_equal(found.tasks + found.changed, 0);
	assert_int_equal(found.unread, 1);
}

/* A task that cannot be read since memory has a limit has not changed. */
TEST(test_limit)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *interned = ss_intern_new();
	struct ss_python_layout layout;

	make_process(&layout, 88, 0, 56);
	(void)put_object(TASK, "int", TASK_SIZE);
	struct found found = read_tasks(&layout, interned);
	assert_int_equal(found.tasks + found.unread, 0);
	assert_int_equal(found.changed, 1);
	limited = true;
	found = read_tasks(&layout, interned);
	limited = false;
	assert_int_equal(found.tasks + found.changed, 0);
	assert_int_equal(found.unread, 1);
}
