/*
 * Objects of CPython: the first 8 bytes choose version, encoding and offset; the rest is memory,
 * with the runtime at its start and objects at every word.
 */
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "fuzz_memory.h"
#include "runtime/python/python.h"

enum { BASE = 0x10000, WORDS_MAX = 64 };

static void find_codes(const struct ss_python_layout *layout,
		       const struct fuzz_memory *memory)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *strings = ss_intern_new();
	struct ss_python_codes codes = { .layout = layout,
					 .memory = &memory->memory,
					 .fresh = &memory->memory,
					 .strings = strings };
	static char text[4 * SS_PYTHON_NAME_MAX + 1];

	for (size_t i = 0; strings && i < SS_MIN(memory->size / 8, (size_t)WORDS_MAX);
	     i++) {
		const struct ss_python_code *code = NULL;
		if (!ss_python_codes_find(&codes, BASE + i * 8, &code))
			break;
		if (code)
			FUZZ_REQUIRE(code->name && code->file && code->table);
		if (ss_python_string(layout, &memory->memory, BASE + i * 8, text))
			fuzz_touch(text, strlen(text));
	}
	ss_python_codes_deinit(&codes);
}

/* The interpreter is at the start. All memory is of the module of greenlets, and the stack of a thread. */
static void read_tasks(const struct ss_python_layout *layout,
		       const struct fuzz_memory *memory)
{
	struct ss_module_impl module = { .pub = { .path = "/usr/lib/_greenlet.so" } };
	struct ss_module_impl *modules[] = { &module };
	struct ss_area area = { .start = BASE, .end = BASE + memory->size + 1 };
	struct ss_capture_thread thread = {};
	struct ss_capture capture = { .arch = ss_arch_find_name("x86_64") };

	capture.modules.items = modules;
	capture.modules.count = 1;
	capture.areas.items = &area;
	capture.areas.count = 1;
	capture.threads.items = &thread;
	capture.threads.count = 1;
	ss_regs_set(&thread.regs, capture.arch->sp, BASE);
	_cleanup_(ss_intern_cleanup) struct ss_intern *strings = ss_intern_new();
	const struct ss_runtime_process process = { .capture = &capture,
						    .strings = strings,
						    .memory = &memory->memory,
						    .fresh = &memory->memory,
						    .after = &memory->memory };
	struct ss_python_codes codes = { .layout = layout,
					 .memory = &memory->memory,
					 .fresh = &memory->memory,
					 .strings = strings };
	uint64_t reads_left = SS_PYTHON_TASK_READS;
	struct ss_python_greenlets_left left = {
		.objects = SS_PYTHON_OBJECTS,
		.greenlets = SS_PYTHON_GREENLETS,
		.calls = SS_PYTHON_GREENLET_CALLS,
		.calls_again = SS_PYTHON_GREENLET_CALLS,
	};
	const struct ss_python_tasks_source source = { .process = &process,
						       .layout = layout,
						       .codes = &codes,
						       .interpreter = BASE,
						       .reads_left = &reads_left,
						       .left = &left };
	struct ss_runtime_tasks tasks = {};

	if (strings && ss_python_tasks_read(&source, &tasks) &&
	    ss_python_greenlets_read(&source, &tasks)) {
		for (size_t i = 0; i < tasks.items.count; i++) {
			const struct ss_runtime_task *task = &tasks.items.items[i];
			FUZZ_REQUIRE(task->name);
			FUZZ_REQUIRE(task->first_call + task->call_count <=
				     tasks.calls.count);
			FUZZ_REQUIRE(task->first_awaited + task->awaited_count <=
				     tasks.awaited.count);
		}
	}
	ss_vector_free(&tasks.items);
	ss_vector_free(&tasks.calls);
	ss_vector_free(&tasks.awaited);
	ss_python_codes_deinit(&codes);
}

/* Locks at each word, and the state of a thread at the start. */
static void search_locks(const struct ss_python_layout *layout,
			 const struct fuzz_memory *memory)
{
	static const struct ss_capture_thread thread;
	struct ss_python_lock locks[WORDS_MAX] = {};

	for (size_t i = 0; i < WORDS_MAX; i++)
		locks[i].address = BASE + i * 8;
	uint64_t work_left = SS_PYTHON_LOCKS_WORK;
	ss_python_locks_search(&memory->memory, layout, BASE, &thread, locks, WORDS_MAX,
			       &work_left);
	for (size_t i = 0; i < WORDS_MAX; i++) {
		FUZZ_REQUIRE(!locks[i].owner || locks[i].owner == &thread);
		FUZZ_REQUIRE(!locks[i].several);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_python_layout layout;
	const char *why = NULL;
	uint32_t line = 0;

	if (size < 8)
		return 0;
	const struct fuzz_memory memory = fuzz_memory(BASE, data + 8, size - 8);
	uint32_t version = 3u << 24 | (8u + data[0] % 7) << 16;
	if (data[0] % 7 == 5 && memory.size >= 16) /* its table names the whole version */
		memcpy(&version, memory.data + 8, sizeof(version));
	(void)ss_python_line((enum ss_python_lines)(data[1] % 3), memory.data,
			     memory.size, data[2], (int8_t)data[3] * 2, &line);
	FUZZ_REQUIRE(line <= INT32_MAX);
	if (!ss_python_layout_find(version, "x86_64", &memory.memory, BASE, &layout,
				   &why)) {
		FUZZ_REQUIRE(why);
		return 0;
	}
	find_codes(&layout, &memory);
	read_tasks(&layout, &memory);
	search_locks(&layout, &memory);
	return 0;
}
