#include "runtime/go/goroutines.h"

#include <string.h>

#include "base/load.h"

enum {
	WORD = 8,
	LIST_LENGTH = 8, /* of a slice: pointer, length, capacity */
	SLICE = 24,
	STACK_MIN = 2048,
	/* Parts of a stack. Every goroutine gets the first one before any gets the next. */
	FIRST_PART = 2 << 10,
	SECOND_PART = 32 << 10,
	LAST_PART = 1 << 20,
	READ_AT_ONCE = 512, /* pointers */
	GOROUTINES_MAX = SS_GATHER_COPY_MAX / WORD,
	/* The layout is another one if more than one of so many does not validate. */
	INVALID_SHARE = 16,
};

#define STACK_MAX ((uint64_t)1 << 30) /* Go's limit */

/* Steps of the plan. */
enum { LIST, POINTERS, GOROUTINE, PART_1, THREAD, PART_2, PART_3, STEPS };

_Static_assert(SS_GO_RUNTIMES_MAX *STEPS <= SS_GATHER_STEPS_MAX, "a plan has more steps");

void ss_go_goroutines_plan(const struct ss_go_program *program, uint64_t list,
			   struct ss_gather_plan *plan)
{
	const uint32_t first = plan->step_count;
	const struct ss_gather_step part = {
		.base = SS_GATHER_POINTER,
		.parent = GOROUTINE,
		.field = SS_GO_SP,
		.size = FIRST_PART,
		.max_nodes = 1,
		.end_size = WORD,
		.end_field = SS_GO_STACK_HI,
	};
	const struct ss_gather_step steps[STEPS] = {
		[LIST] = { .base = SS_GATHER_ADDRESS,
			   .address = list,
			   .size = SLICE,
			   .max_nodes = 1 },
		[POINTERS] = { .base = SS_GATHER_POINTER,
			       .parent = LIST,
			       .size = SS_GATHER_COPY_MAX,
			       .count_size = WORD,
			       .count_field = LIST_LENGTH,
			       .element = WORD,
			       .max_nodes = 1 },
		/* From the stack to the id: with the status, and where it continues. */
		[GOROUTINE] = { .base = SS_GATHER_POINTER,
				.parent = POINTERS,
				.stride = WORD,
				.size = SS_GO_G_SIZE,
				.max_nodes = 1,
				.check_size = program->layout->id + WORD },
		[PART_1] = part,
		[THREAD] = { .base = SS_GATHER_POINTER,
			     .parent = GOROUTINE,
			     .field = SS_GO_M,
			     .size = SS_GO_M_SIZE,
			     .max_nodes = 1 },
		[PART_2] = part,
		[PART_3] = part,
	};

	plan->size = sizeof(*plan);
	plan->max_nodes = SS_GATHER_NODES_MAX;
	plan->max_bytes = SS_GATHER_BYTES_MAX;
	plan->max_reads = SS_GATHER_READS_MAX;
	for (uint32_t i = 0; i < STEPS; i++) {
		struct ss_gather_step *step = &plan->steps[plan->step_count++];
		*step = steps[i];
		step->mask = UINT64_MAX;
		if (step->base == SS_GATHER_POINTER)
			step->parent += first;
	}
	plan->steps[first + PART_2].offset = FIRST_PART;
	plan->steps[first + PART_2].size = SECOND_PART;
	plan->steps[first + PART_3].offset = FIRST_PART + SECOND_PART;
	plan->steps[first + PART_3].size = LAST_PART;
}

struct reader {
	const struct ss_go_layout *layout;
	const struct ss_memory *memory;
	const struct ss_gathered *gathered;
	struct ss_go_goroutines *ret;
	size_t invalid;
};

/* Values of g.atomicstatus, without the bit that the garbage collector sets while it
   scans the stack. */
enum { SCANNED = 0x1000, IDLE = 0, DEAD = 6, DEAD_EXTRA = 11 };

static bool find_status(uint32_t status, enum ss_goroutine_status *ret)
{
	static const struct {
		uint32_t value;
		enum ss_goroutine_status status;
	} values[] = {
		{ 1, SS_GOROUTINE_RUNNABLE },  { 2, SS_GOROUTINE_RUNNING },
		{ 3, SS_GOROUTINE_SYSCALL },   { 4, SS_GOROUTINE_WAITING },
		{ 8, SS_GOROUTINE_COPYSTACK }, { 9, SS_GOROUTINE_PREEMPTED },
		{ 10, SS_GOROUTINE_WAITING }, /* leaked: found by the garbage collector */
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(values); i++) {
		if (values[i].value == (status & ~(uint32_t)SCANNED)) {
			*ret = values[i].status;
			return true;
		}
	}
	return false;
}

static bool is_ended(const struct reader *reader, const uint8_t *bytes)
{
	uint32_t status = (uint32_t)ss_load_u64(bytes, reader->layout->status) &
			  ~(uint32_t)SCANNED;

	return status == IDLE || status == DEAD || status == DEAD_EXTRA;
}

static const char *find_reason(const struct ss_go_layout *layout, uint8_t reason)
{
	return reason > 0 && reason < layout->reason_count ? layout->reasons[reason] :
							     NULL;
}

/* The thread on which a goroutine is. */
static pid_t find_thread(const struct reader *reader, uint64_t m)
{
	uint64_t id = 0;

	if (m == 0 ||
	    !ss_memory_read_u64(reader->memory, m + reader->layout->thread_id, &id))
		return 0;
	return id <= INT32_MAX ? (pid_t)id : 0;
}

/* Where it continues: of one in a system call, where it has entered that. One that runs
   has no such place. */
static void set_place(const struct reader *reader, const uint8_t *bytes,
		      struct ss_go_goroutine *goroutine)
{
	bool syscall = goroutine->status == SS_GOROUTINE_SYSCALL;
	uint32_t at = syscall ? reader->layout->syscall_sp : SS_GO_SP;

	if (goroutine->changed || goroutine->status == SS_GOROUTINE_RUNNING ||
	    goroutine->status == SS_GOROUTINE_COPYSTACK)
		return;
	goroutine->sp = ss_load_u64(bytes, at);
	goroutine->pc = ss_load_u64(bytes, at + WORD);
	goroutine->bp = syscall ? 0 : ss_load_u64(bytes, reader->layout->bp);
}

static bool is_valid(const struct ss_go_goroutine *goroutine)
{
	uint64_t size = goroutine->stack_high - goroutine->stack_low;

	if (goroutine->id == 0 || goroutine->id > INT64_MAX ||
	    goroutine->stack_low == 0 || size < STACK_MIN || size > STACK_MAX ||
	    (size & (size - 1)) != 0)
		return false;
	return goroutine->pc == 0 || (goroutine->sp >= goroutine->stack_low &&
				      goroutine->sp < goroutine->stack_high);
}

static uint64_t find_run_mark(const struct ss_go_layout *layout, const uint8_t *bytes)
{
	const uint64_t known = UINT64_C(1) << 63;
	uint32_t at = layout->stops;
	uint64_t time = at ? ss_load_u64(bytes, (at + WORD) / WORD * WORD) : 0;

	return at ? known | time << 8 | bytes[at] : 0;
}

/* False without memory. */
static bool add(struct reader *reader, uint64_t address, const uint8_t *bytes)
{
	const struct ss_go_layout *layout = reader->layout;
	struct ss_go_goroutine goroutine = {
		.id = ss_load_u64(bytes, layout->id),
		.stack_low = ss_load_u64(bytes, SS_GO_STACK_LO),
		.stack_high = ss_load_u64(bytes, SS_GO_STACK_HI),
		.changed = ss_gathered_changed(reader->gathered, address),
	};
	uint32_t status = (uint32_t)ss_load_u64(bytes, layout->status);

	if (!find_status(status, &goroutine.status) ||
	    ss_load_u64(bytes, SS_GO_SELF) != address) {
		reader->invalid++;
		return true;
	}
	set_place(reader, bytes, &goroutine);
	if (!is_valid(&goroutine)) {
		reader->invalid++;
		return true;
	}
	bool waits = goroutine.status == SS_GOROUTINE_WAITING;
	if (waits)
		goroutine.wait_reason = find_reason(layout, bytes[layout->reason]);
	if (waits || goroutine.status == SS_GOROUTINE_SYSCALL)
		goroutine.since = ss_load_u64(bytes, layout->since);
	goroutine.run_mark = find_run_mark(layout, bytes);
	goroutine.thread = find_thread(reader, ss_load_u64(bytes, SS_GO_M));
	struct ss_go_goroutine *slot = ss_vector_push(&reader->ret->items);
	if (slot)
		*slot = goroutine;
	return slot != NULL;
}

/* False without memory. */
static bool add_pointers(struct reader *reader, const uint64_t *pointers, size_t count)
{
	uint8_t bytes[SS_GO_G_SIZE];

	for (size_t i = 0; i < count; i++) {
		if (!ss_memory_read(reader->memory, pointers[i], bytes, sizeof(bytes)))
			reader->ret->unread++;
		else if (!is_ended(reader, bytes) && !add(reader, pointers[i], bytes))
			return false;
	}
	return true;
}

static bool read_list(struct reader *reader, uint64_t list)
{
	struct ss_go_goroutines *ret = reader->ret;
	uint64_t pointers[READ_AT_ONCE];
	uint64_t slice[SLICE / WORD];

	if (!ss_memory_read(reader->memory, list, slice, sizeof(slice))) {
		ret->problem = "their list could not be read";
		return true;
	}
	if (slice[1] > slice[2] || (slice[1] > 0 && slice[0] == 0)) {
		ret->problem = "their list is not valid";
		return true;
	}
	uint64_t count = SS_MIN(slice[1], (uint64_t)GOROUTINES_MAX);
	ret->unread = (size_t)SS_MIN(slice[1] - count, (uint64_t)SIZE_MAX);
	for (uint64_t i = 0; i < count; i += READ_AT_ONCE) {
		size_t wanted = (size_t)SS_MIN(count - i, (uint64_t)READ_AT_ONCE);
		size_t size = reader->memory->read(reader->memory, slice[0] + i * WORD,
						   pointers, wanted * WORD);
		ret->unread += wanted - size / WORD;
		if (!add_pointers(reader, pointers, size / WORD))
			return false;
	}
	return true;
}

static int compare_ids(const void *a, const void *b)
{
	const struct ss_go_goroutine *x = a;
	const struct ss_go_goroutine *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* An id that several have would be no id. */
static size_t count_equal_ids(const struct ss_go_goroutines *goroutines)
{
	size_t equal = 0;

	for (size_t i = 1; i < goroutines->items.count; i++)
		equal += goroutines->items.items[i].id ==
			 goroutines->items.items[i - 1].id;
	return equal;
}

bool ss_go_goroutines_read(const struct ss_go_program *program, uint64_t list,
			   const struct ss_memory *memory,
			   const struct ss_gathered *gathered,
			   struct ss_go_goroutines *ret)
{
	struct reader reader = { .layout = program->layout,
				 .memory = memory,
				 .gathered = gathered,
				 .ret = ret };

	*ret = (struct ss_go_goroutines){};
	if (!read_list(&reader, list))
		return false;
	if (ret->items.count > 1)
		qsort(ret->items.items, ret->items.count, sizeof(*ret->items.items),
		      compare_ids);
	size_t invalid = reader.invalid + count_equal_ids(ret);
	if (!ret->problem && invalid > ret->items.count / INVALID_SHARE) {
		ret->problem = "what was read does not look like goroutines";
		ret->items.count = 0;
	}
	ret->unread += reader.invalid;
	return true;
}

void ss_go_goroutines_deinit(struct ss_go_goroutines *goroutines)
{
	ss_vector_free(&goroutines->items);
}
