#include "runtime/python/python.h"

#include <string.h>

#include "runtime/runtime.h"
#include "base/bytes.h"

enum {
	TASK_SIZE_MAX = 1024,
	STRUCTURE_MAX = 4 << 20,
	NODE_SIZE = 16, /* struct llist_node */
	REPAIRS_MAX = 1 << 12,
};

/* The table: 64-bit words, in groups that begin with the size of a structure. */
enum word {
	TASK,
	TASK_NAME,
	TASK_AWAITED_BY,
	TASK_IS_TASK,
	TASK_AWAITED_BY_IS_SET,
	TASK_COROUTINE,
	TASK_NODE,
	INTERPRETER,
	INTERPRETER_TASKS,
	THREAD,
	THREAD_LOOP,
	THREAD_TASK,
	THREAD_TASKS,
	WORDS,
};

static const char section_name[] = ".AsyncioDebug";

/* The table ------------------------------------------------------------------ */

static bool is_within(const uint64_t *words, enum word structure, enum word member,
		      uint64_t size, uint64_t max)
{
	return words[structure] <= max && words[structure] >= size &&
	       words[member] <= words[structure] - size && words[member] % size == 0;
}

const char *ss_python_task_table_read(const struct ss_memory *memory, uint64_t address,
				      struct ss_python_task_table *ret)
{
	uint64_t words[WORDS];

	if (!ss_memory_read(memory, address, words, sizeof(words)))
		return "its table of offsets could not be read";
	/* A node has two words. */
	if (!is_within(words, TASK, TASK_NAME, 8, TASK_SIZE_MAX) ||
	    !is_within(words, TASK, TASK_IS_TASK, 1, TASK_SIZE_MAX) ||
	    !is_within(words, TASK, TASK_COROUTINE, 8, TASK_SIZE_MAX) ||
	    !is_within(words, TASK, TASK_NODE, 8, TASK_SIZE_MAX - 8) ||
	    words[TASK_NODE] + NODE_SIZE > words[TASK] ||
	    !is_within(words, INTERPRETER, INTERPRETER_TASKS, 8, STRUCTURE_MAX) ||
	    !is_within(words, THREAD, THREAD_TASKS, 8, STRUCTURE_MAX))
		return "its table of offsets is not valid";
	*ret = (struct ss_python_task_table){
		.task_size = (uint32_t)words[TASK],
		.task_name = (uint32_t)words[TASK_NAME],
		.task_is_task = (uint32_t)words[TASK_IS_TASK],
		.task_coroutine = (uint32_t)words[TASK_COROUTINE],
		.task_node = (uint32_t)words[TASK_NODE],
		.interpreter_tasks = (uint32_t)words[INTERPRETER_TASKS],
		.thread_tasks = (uint32_t)words[THREAD_TASKS],
	};
	return NULL;
}

/* Whether a module may have the table: the module itself, or what it was built into. */
static bool may_have_table(const struct ss_capture *capture, const char *path, bool built)
{
	const char *name = ss_path_base(path);

	if (!built)
		return strncmp(name, "_asyncio.", strlen("_asyncio.")) == 0;
	return strncmp(name, "libpython3", strlen("libpython3")) == 0 ||
	       strncmp(name, "python", strlen("python")) == 0 ||
	       (capture->process.executable &&
		strcmp(path, capture->process.executable) == 0);
}

const char *ss_python_task_table_find(const struct ss_runtime_process *process,
				      struct ss_python_task_table *ret)
{
	const struct ss_capture *capture = process->capture;
	struct ss_elf_symbol section;

	for (int built = 0; built < 2; built++) {
		for (size_t i = 0; i < capture->modules.count; i++) {
			const char *path = capture->modules.items[i]->pub.path;
			if (may_have_table(capture, path, built) &&
			    ss_module_section_find(process, (int32_t)i, section_name,
						   &section))
				return ss_python_task_table_read(process->memory,
								 section.address, ret);
		}
	}
	return "no module has the section .AsyncioDebug";
}

/* A list --------------------------------------------------------------------- */

struct node {
	uint64_t next;
	uint64_t previous;
};

struct walk {
	const struct ss_memory *memory;
	uint64_t head;
	struct ss_python_objects path; /* nodes, the head first */
	size_t steps_left;
	size_t repairs_left;
	bool no_memory;
};

static bool read_node(const struct ss_memory *memory, uint64_t address, struct node *ret)
{
	return address && address % 8 == 0 &&
	       ss_memory_read(memory, address, ret, sizeof(*ret)) && ret->next &&
	       ret->previous;
}

static uint64_t last_of(const struct walk *walk)
{
	return walk->path.list.items[walk->path.list.count - 1];
}

/* Reads the node that precedes the last one of the path, which has to be next to it. */
static bool read_previous(const struct walk *walk, uint64_t address, struct node *ret)
{
	return read_node(walk->memory, address, ret) && ret->next == last_of(walk);
}

/* Goes back to a node that is still linked, and finds what precedes it now. */
static bool repair(struct walk *walk, uint64_t *ret_address, struct node *ret)
{
	while (walk->repairs_left > 0) {
		struct node node;
		walk->repairs_left--;
		if (read_node(walk->memory, last_of(walk), &node) &&
		    read_previous(walk, node.previous, ret)) {
			*ret_address = node.previous;
			return true;
		}
		/* The head is always there; what precedes it changes. */
		if (walk->path.list.count > 1)
			walk->path.list.count--;
	}
	return false;
}

static bool add(struct walk *walk, struct ss_python_objects *objects, uint64_t address)
{
	uint64_t *slot = ss_vector_push(&objects->list);

	if (slot)
		*slot = address;
	walk->no_memory |= !slot;
	return slot != NULL;
}

/*
 * A task is appended to the list when it begins, and removed when it ends. So the walk goes
 * backwards: if the address of a node that was visited is that of a new task now, all that are in
 * the list for longer precede it, and are not missed. That takes reads in this order in time;
 * memory that may be older is believed only if all nodes agree.
 */
static bool follow(struct walk *walk, uint32_t offset, struct ss_python_objects *ret)
{
	uint64_t address;
	struct node node;

	walk->path.list.count = 0;
	if (!add(walk, &walk->path, walk->head))
		return false;
	/* Without a list, the thread has ended: its tasks are in that of the interpreter. */
	if (!read_node(walk->memory, walk->head, &node))
		return true;
	address = node.previous;
	while (walk->steps_left-- > 0) {
		if (!read_previous(walk, address, &node) &&
		    !repair(walk, &address, &node))
			return false;
		if (address == walk->head)
			return true;
		if (!add(walk, &walk->path, address) || !add(walk, ret, address - offset))
			return false;
		address = node.previous;
	}
	return false;
}

bool ss_python_task_list_read(const struct ss_memory *memory,
			      const struct ss_memory *fresh, uint64_t head, uint32_t node,
			      size_t max, struct ss_python_objects *ret, bool *ret_whole)
{
	struct walk walk = { .memory = memory, .head = head, .steps_left = max };

	*ret_whole = follow(&walk, node, ret);
	if (!*ret_whole && !walk.no_memory) {
		walk.memory = fresh;
		walk.steps_left = max;
		walk.repairs_left = REPAIRS_MAX;
		*ret_whole = follow(&walk, node, ret);
	}
	ss_vector_free(&walk.path.list);
	return !walk.no_memory;
}
