#include "runtime/python/python.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/search.h"

enum {
	WORD = 8,
	WORDS_MAX = 4096, /* of a coroutine */
	OBJECT_SIZE = 32,
	/* PyMethodObject, futureiterobject, dictionaries and other objects with a size */
	METHOD_FUNCTION = 16,
	METHOD_SELF = 24,
	ITERATOR_FUTURE = 16,
	SIZE = 16,
	BOOLEAN_VALUE = 24,
	/* PyFunctionObject */
	FUNCTION_NAME_9 = 64, /* to 3.9 */
	FUNCTION_NAME = 32,
	ROUNDS_MAX = 100, /* of a search that nearly always takes two or three */
	NO_HOLDER = -1,
	SEVERAL_HOLDERS = -2,
};

/* An object for which tasks wait. */
struct object {
	uint64_t address;
	uint64_t count;	    /* references to it; 0: not known */
	uint64_t accounted; /* of these, by tasks that may wait for ever */
	long holder; /* the index of the task that is in its "async with", or NO_HOLDER */
	bool locked; /* it is a Lock, which is locked */
};

/* A reference from the stack of a task. */
struct reference {
	size_t task;
	size_t object;
};

struct search {
	const struct ss_python_layout *layout;
	const struct ss_memory *memory;
	struct ss_python_waiter *waiters;
	size_t count;
	struct object *objects; /* ascending by address */
	size_t object_count;
	SS_VECTOR(struct reference) references;
	/* Types, once they were seen */
	uint64_t method;
	uint64_t iterator;
	bool no_memory;
};

static bool type_is(const struct ss_memory *memory, uint64_t object, const char *name)
{
	return ss_python_has_type(memory, object, name);
}

uint64_t ss_python_awaited_object(const struct ss_memory *memory,
				  const struct ss_python_links *links, uint64_t future)
{
	uint64_t outermost = 0;
	uint64_t innermost = 0;

	for (size_t i = 0; i < links->list.count; i++) {
		const struct ss_python_link *link = &links->list.items[i];
		if (link->self) {
			outermost = outermost ? outermost : link->self;
			innermost = link->self;
		}
	}
	/* A condition takes its lock again. */
	if (innermost && type_is(memory, innermost, "Lock"))
		return innermost;
	if (outermost)
		return outermost;
	return type_is(memory, future, "_asyncio.Future") ? future : 0;
}

bool ss_python_is_usual(const struct ss_memory *memory, uint64_t object)
{
	return type_is(memory, object, "Event") ||
	       type_is(memory, object, "_asyncio.Future");
}

/* References of tasks -------------------------------------------------------- */

static struct object *find_object(const struct search *search, uint64_t address)
{
	return ss_search(search->objects, search->object_count, address, address);
}

static bool has_name(const struct search *search, uint64_t function, const char *name)
{
	const uint64_t at = search->layout->minor <= 9 ? FUNCTION_NAME_9 : FUNCTION_NAME;
	char text[4 * SS_PYTHON_NAME_MAX + 1];
	uint64_t address;

	return type_is(search->memory, function, "function") &&
	       ss_memory_read_u64(search->memory, function + at, &address) &&
	       ss_python_string(search->layout, search->memory, address, text) &&
	       strcmp(text, name) == 0;
}

/* Whether a context manager may end what is in it after some time, by its type. */
static bool may_limit_time(const struct search *search, uint64_t manager)
{
	static const char *const parts[] = { "Timeout", "timeout", "CancelScope",
					     "GeneratorContextManager" };
	char name[SS_PYTHON_TYPE_NAME_MAX];
	uint64_t type;

	if (!ss_python_type_of(search->memory, manager, &type) ||
	    !ss_python_type_name(search->memory, type, name))
		return true;
	return ss_any(SS_ARRAY_SIZE(parts), i, strstr(name, parts[i]));
}

static void add_reference(struct search *search, size_t task, struct object *object)
{
	struct reference *slot = ss_vector_push(&search->references);

	search->no_memory |= !slot;
	if (slot)
		*slot = (struct reference){ task, (size_t)(object - search->objects) };
}

/* The lock that a context manager takes. */
static uint64_t lock_of(const struct search *search, uint64_t manager)
{
	uint64_t lock;

	return type_is(search->memory, manager, "Condition") &&
			       ss_python_attribute(search->layout, search->memory,
						   manager, "_lock", &lock) ?
		       lock :
		       manager;
}

/* A bound method on the stack of a coroutine. While a block of "with" is executed, that is what will
   be called at its end. entering: the object of the innermost one, if it has not been entered. */
static void add_method(struct search *search, size_t task, uint64_t *entering,
		       uint64_t function, uint64_t self)
{
	struct ss_python_waiter *waiter = &search->waiters[task];
	const bool asynchronous = has_name(search, function, "__aexit__");

	if (!asynchronous && !has_name(search, function, "__exit__"))
		return;
	if (!waiter->timed && may_limit_time(search, self))
		waiter->timed = true;
	if (asynchronous && self == *entering) {
		*entering = 0;
		return;
	}
	struct object *object = find_object(search, lock_of(search, self));
	if (!asynchronous || !object || !object->locked)
		return;
	object->holder = object->holder == NO_HOLDER || object->holder == (long)task ?
				 (long)task :
				 SEVERAL_HOLDERS;
}

/* What a word on the stack of a coroutine refers to. */
static void add_word(struct search *search, size_t task, uint64_t *entering,
		     uint64_t word)
{
	struct object *object = find_object(search, word);
	uint8_t bytes[OBJECT_SIZE];

	if (object) {
		add_reference(search, task, object);
		return;
	}
	if (!word || word % WORD ||
	    !ss_memory_read(search->memory, word, bytes, sizeof(bytes)))
		return;
	const uint64_t type = ss_load_u64(bytes, WORD);
	const uint64_t first = ss_load_u64(bytes, METHOD_FUNCTION);
	const uint64_t second = ss_load_u64(bytes, METHOD_SELF);
	const bool alone = (uint32_t)ss_load_u64(bytes, 0) == 1;
	if (type && !search->method && type_is(search->memory, word, "method"))
		search->method = type;
	if (type && type == search->method) {
		object = alone ? find_object(search, second) : NULL;
		if (object)
			add_reference(search, task, object);
		add_method(search, task, entering, first, second);
		return;
	}
	object = alone ? find_object(search, first) : NULL;
	if (object && !search->iterator &&
	    type_is(search->memory, word, "_asyncio.FutureIter"))
		search->iterator = type;
	if (object && type == search->iterator)
		add_reference(search, task, object);
}

static void add_frames(struct search *search, size_t task)
{
	const struct ss_python_links *links = search->waiters[task].links;

	for (size_t i = 0; i < links->list.count; i++) {
		const struct ss_python_link *link = &links->list.items[i];
		uint64_t words[WORDS_MAX];
		const size_t count = SS_MIN(link->word_count, (uint32_t)WORDS_MAX);
		const struct ss_python_link *next = i + 1 < links->list.count ? link + 1 :
										NULL;
		uint64_t entering = next && next->enters ? next->self : 0;
		if (!ss_memory_read(search->memory, link->words, words, count * WORD))
			continue;
		for (size_t k = count; k > 0; k--)
			add_word(search, task, &entering, words[k - 1]);
	}
}

/* Objects --------------------------------------------------------------------- */

SS_DEFINE_COMPARE(compare_objects, struct object, address)

static bool is_true(const struct search *search, uint64_t object, const char *name)
{
	uint64_t value;
	uint32_t digit;

	return ss_python_attribute(search->layout, search->memory, object, name,
				   &value) &&
	       type_is(search->memory, value, "bool") &&
	       ss_memory_read_u32(search->memory, value + BOOLEAN_VALUE, &digit) &&
	       digit == 1;
}

/* From 3.12 on, the other half of the word has flags. */
static uint64_t read_count(const struct search *search, uint64_t object)
{
	uint64_t count;

	if (!ss_memory_read_u64(search->memory, object, &count))
		return 0;
	return search->layout->minor >= 12 ? (uint32_t)count : count;
}

/* The objects for which tasks wait, each once. False without memory. */
static bool list_objects(struct search *search)
{
	size_t kept = 0;

	search->objects = calloc(search->count + 1, sizeof(*search->objects));
	if (!search->objects)
		return false;
	for (size_t i = 0; i < search->count; i++) {
		if (search->waiters[i].object)
			search->objects[search->object_count++].address =
				search->waiters[i].object;
	}
	if (search->object_count > 1)
		qsort(search->objects, search->object_count, sizeof(*search->objects),
		      compare_objects);
	for (size_t i = 0; i < search->object_count; i++) {
		struct object object = search->objects[i];
		if (kept > 0 && search->objects[kept - 1].address == object.address)
			continue;
		object.holder = NO_HOLDER;
		object.count = read_count(search, object.address);
		object.locked = type_is(search->memory, object.address, "Lock") &&
				is_true(search, object.address, "_locked");
		search->objects[kept++] = object;
	}
	search->object_count = kept;
	return true;
}

/* The task with that address, or NULL. */
static const struct ss_python_waiter *find_waiter(const struct search *search,
						  uint64_t address)
{
	return ss_search(search->waiters, search->count, address, address);
}

static void set_owners(struct search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		struct ss_python_waiter *waiter = &search->waiters[i];
		const struct object *object =
			waiter->object ? find_object(search, waiter->object) : NULL;
		if (object && object->holder >= 0)
			waiter->owner = &search->waiters[object->holder];
	}
}

/* Endless waits ---------------------------------------------------------------- */

/* Counts the references by tasks that may wait for ever. */
static void account(struct search *search)
{
	for (size_t i = 0; i < search->object_count; i++)
		search->objects[i].accounted = 0;
	for (size_t i = 0; i < search->references.count; i++) {
		const struct reference *reference = &search->references.items[i];
		if (search->waiters[reference->task].endless)
			search->objects[reference->object].accounted++;
	}
	/* A task refers to the future that it waits for. */
	for (size_t i = 0; i < search->count; i++) {
		const struct ss_python_waiter *waiter = &search->waiters[i];
		if (waiter->endless && waiter->object == waiter->future)
			find_object(search, waiter->object)->accounted++;
	}
}

static bool may_end(const struct search *search, const struct ss_python_waiter *waiter)
{
	if (waiter->object) {
		const struct object *object = find_object(search, waiter->object);
		return object->count == 0 || object->accounted != object->count;
	}
	for (size_t i = 0; i < waiter->awaited_count; i++) {
		const struct ss_python_waiter *awaited =
			find_waiter(search, waiter->awaited[i]);
		if (!awaited || !awaited->endless)
			return true;
	}
	return waiter->awaited_count == 0;
}

/* At first all tasks that wait for an object or tasks count. Then those do not whose object others refer
   to, or whose tasks may end; nor do those then that wait for what these refer to, and so on. */
static void find_endless(struct search *search)
{
	bool changed = true;
	size_t rounds = 0;

	for (size_t i = 0; i < search->count; i++)
		search->waiters[i].endless = search->waiters[i].future &&
					     !search->waiters[i].timed;
	for (; changed && rounds < ROUNDS_MAX; rounds++) {
		changed = false;
		account(search);
		for (size_t i = 0; i < search->count; i++) {
			struct ss_python_waiter *waiter = &search->waiters[i];
			if (waiter->endless && may_end(search, waiter)) {
				waiter->endless = false;
				changed = true;
			}
		}
	}
	for (size_t i = 0; changed && i < search->count; i++)
		search->waiters[i].endless = false;
}

bool ss_python_owners_find(const struct ss_python_layout *layout,
			   const struct ss_memory *memory,
			   struct ss_python_waiter *waiters, size_t count)
{
	struct search search = {
		.layout = layout, .memory = memory, .waiters = waiters, .count = count
	};

	/* From 3.14 on, a stack has references that do not count. */
	if (layout->minor >= 14)
		return true;
	bool ok = list_objects(&search);
	for (size_t i = 0; ok && search.object_count > 0 && i < count; i++)
		add_frames(&search, i);
	ok = ok && !search.no_memory;
	if (ok && search.object_count > 0) {
		set_owners(&search);
		find_endless(&search);
	}
	free(search.objects);
	ss_vector_free(&search.references);
	return ok;
}

/* Event loops ------------------------------------------------------------------ */

static bool has_size(const struct ss_memory *memory, uint64_t object, const char *type,
		     uint64_t size)
{
	uint64_t found;

	return type_is(memory, object, type) &&
	       ss_memory_read_u64(memory, object + SIZE, &found) && found == size;
}

bool ss_python_loop_is_empty(const struct ss_python_layout *layout,
			     const struct ss_memory *memory, uint64_t loop)
{
	static const struct {
		const char *name;
		const char *type;
	} members[] = {
		{ "_ready", "collections.deque" },
		{ "_scheduled", "list" },
		{ "_signal_handlers", "dict" },
	};
	uint64_t value;
	uint64_t internal;

	if (!type_is(memory, loop, "_UnixSelectorEventLoop"))
		return false;
	for (size_t i = 0; i < SS_ARRAY_SIZE(members); i++) {
		if (!ss_python_attribute(layout, memory, loop, members[i].name, &value) ||
		    !has_size(memory, value, members[i].type, 0))
			return false;
	}
	/* The pipe by which other threads wake it */
	return ss_python_attribute(layout, memory, loop, "_internal_fds", &value) &&
	       ss_python_integer(layout, memory, value, &internal) && internal == 1 &&
	       ss_python_attribute(layout, memory, loop, "_selector", &value) &&
	       ss_python_attribute(layout, memory, value, "_fd_to_key", &value) &&
	       has_size(memory, value, "dict", 1);
}
