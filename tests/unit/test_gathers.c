/*
 * What is copied for runtimes at a tick, over memory of this process: what is on a stack that was
 * copied is taken from there, and turns that share a moment share their pages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "sampling/gathers.h"

enum { PAGE = 4096, THREADS = 3, NODES = 4 };

/* A list: its first node is a root. Two of the four are on a stack. */
struct node {
	uint64_t next;
	uint64_t value;
};

static struct ss_process_memory memory;
static uint8_t *pages; /* two: the first one is a stack */
static uint8_t copy[PAGE];

static struct node *node_at(size_t offset)
{
	return (struct node *)(void *)(pages + offset);
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
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	assert_true(pages != MAP_FAILED);
	const size_t offsets[NODES] = { PAGE + 64, 128, PAGE + 256, 512 };
	for (size_t i = 0; i < NODES; i++) {
		*node_at(offsets[i]) = (struct node){ .value = i + 1 };
		if (i + 1 < NODES)
			node_at(offsets[i])->next = (uintptr_t)node_at(offsets[i + 1]);
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	munmap(pages, 2 * PAGE);
	return close(memory.pagemap_fd);
}

static void begin(struct ss_gathers *gathers)
{
	const struct ss_gather_plan plan = {
		.size = sizeof(plan),
		.step_count = 1,
		.max_nodes = 64,
		.max_bytes = 4096,
		.max_reads = 64,
		.steps[0] = { .base = SS_GATHER_ADDRESS,
			      .address = (uintptr_t)node_at(PAGE + 64),
			      .size = sizeof(struct node),
			      .max_nodes = NODES + 1,
			      .mask = UINT64_MAX },
	};

	*gathers = (struct ss_gathers){};
	assert_null(ss_gathers_set(gathers, &plan));
	ss_gathers_begin(gathers);
}

static bool is_first(const struct ss_task *task)
{
	return task->tid == 1;
}

static bool is_second(const struct ss_task *task)
{
	return task->tid == 2;
}

/* The sum of the values of the nodes of the last turn. */
static uint64_t run(struct ss_gathers *gathers, ss_task_predicate *wanted)
{
	struct ss_task items[THREADS] = {
		{ .tid = 1,
		  .stacks[0] = { .address = (uintptr_t)pages,
				 .size = PAGE,
				 .bytes = copy } },
		{ .tid = 2 },
		{ .tid = 3 },
	};
	struct ss_task_list tasks = { .items = { .items = items, .count = THREADS } };
	uint64_t sum = 0;

	ss_gathers_run(gathers, &memory, &tasks, wanted);
	assert_true(gathers->used > 0);
	const size_t first = gathers->first[gathers->used - 1];
	assert_int_equal(gathers->gather->node_count - first, NODES);
	for (size_t i = first; i < gathers->gather->node_count; i++) {
		const struct ss_gather_node *found = &gathers->gather->nodes[i];
		struct node node;
		assert_int_equal(found->size, sizeof(node));
		memcpy(&node, found->bytes, sizeof(node));
		sum += node.value;
	}
	return sum;
}

/* The stack has changed since it was copied; the copy counts for its thread only. */
static void test_stacks(void **state)
{
	struct ss_gathers gathers;

	(void)state;
	begin(&gathers);
	memcpy(copy, pages, PAGE);
	node_at(128)->value += 100;
	assert_int_equal(run(&gathers, is_first), 10);
	assert_int_equal(run(&gathers, is_second), 110);
	node_at(128)->value -= 100;
	ss_gathers_deinit(&gathers);
}

static void test_turns(void **state)
{
	struct ss_gathers gathers;

	(void)state;
	begin(&gathers);
	ss_gathers_begin_turns(&gathers);
	assert_int_equal(run(&gathers, is_second), 10);
	node_at(128)->value += 100;
	assert_int_equal(run(&gathers, is_second), 10);
	ss_gathers_end_turns(&gathers);
	assert_int_equal(run(&gathers, is_second), 110);
	node_at(128)->value -= 100;
	/* What was read before is of another moment. */
	ss_gathers_begin_turns(&gathers);
	assert_int_equal(run(&gathers, is_second), 10);
	ss_gathers_deinit(&gathers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
