#include "runtime/go/goroutines.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/bytes.h"
#include "base/search.h"
#include "elf/elffile.h"
#include "data/gather.h"

/* Bytes that are needed of struct g, and of struct m. */
enum { SS_GO_G_SIZE = 208, SS_GO_M_SIZE = 80 };

/* What lists of several versions begin with, and what they have in the middle or at the end. */
#define FIRST_REASONS                                                                    \
	"", "GC assist marking", "IO wait", "chan receive (nil chan)",                   \
		"chan send (nil chan)", "dumping heap", "garbage collection",            \
		"garbage collection scan", "panicwait", "select", "select (no cases)",   \
		"GC assist wait", "GC sweep wait", "GC scavenge wait", "chan receive",   \
		"chan send", "finalizer wait", "force gc (idle)"
#define LOCK_REASONS "semacquire", "sleep", "sync.Cond.Wait"
#define DURABLE_REASONS                                                                  \
	"synctest.Run", "synctest.Wait", "chan receive (durable)",                       \
		"chan send (durable)", "select (durable)",                               \
		"sync.WaitGroup.Wait (durable)", "cleanup wait"
#define LAST_REASONS                                                                     \
	"trace reader (blocked)", "wait for GC cycle", "GC worker (idle)",               \
		"GC worker (active)", "preempted", "debug call", "GC mark termination",  \
		"stopping the world", "flushing proc caches", "trace goroutine status",  \
		"trace proc status", "page trace flush", "coroutine",                    \
		"GC weak to strong wait"

static const char *const reasons_1_19[] = {
	FIRST_REASONS,
	LOCK_REASONS,
	"timer goroutine (idle)",
	"trace reader (blocked)",
	"wait for GC cycle",
	"GC worker (idle)",
	"preempted",
	"debug call",
};

/* Earlier versions have the first ones of them. */
static const char *const reasons_1_23[] = {
	FIRST_REASONS,	      LOCK_REASONS,	   "sync.Mutex.Lock",
	"sync.RWMutex.RLock", "sync.RWMutex.Lock", LAST_REASONS,
};

static const char *const reasons_1_24[] = {
	FIRST_REASONS,		LOCK_REASONS,
	"sync.Mutex.Lock",	"sync.RWMutex.RLock",
	"sync.RWMutex.Lock",	"sync.WaitGroup.Wait",
	LAST_REASONS,		"synctest.Run",
	"synctest.Wait",	"chan receive (synctest)",
	"chan send (synctest)", "select (synctest)",
};

static const char *const reasons_1_25[] = {
	FIRST_REASONS,	       "GOMAXPROCS updater (idle)",
	LOCK_REASONS,	       "sync.Mutex.Lock",
	"sync.RWMutex.RLock",  "sync.RWMutex.Lock",
	"sync.WaitGroup.Wait", LAST_REASONS,
	DURABLE_REASONS,
};

static const char *const reasons_1_26[] = {
	"",
	"GC assist marking",
	"IO wait",
	"dumping heap",
	"garbage collection",
	"garbage collection scan",
	"panicwait",
	"GC assist wait",
	"GC sweep wait",
	"GC scavenge wait",
	"finalizer wait",
	"force gc (idle)",
	"GOMAXPROCS updater (idle)",
	"semacquire",
	"sleep",
	"chan receive (nil chan)",
	"chan send (nil chan)",
	"select (no cases)",
	"select",
	"chan receive",
	"chan send",
	"sync.Cond.Wait",
	"sync.Mutex.Lock",
	"sync.RWMutex.RLock",
	"sync.RWMutex.Lock",
	"sync.WaitGroup.Wait",
	LAST_REASONS,
	DURABLE_REASONS,
};

/* clang-format off */
static const struct ss_go_layout layouts[] = {
	/*        bp syscall status  id since reason thread stops */
	{ 19, 19, 104, 112, 144, 152, 168, 176, 72, 189, reasons_1_19, SS_ARRAY_SIZE(reasons_1_19) },
	/* 1.20 was not at hand: only what the versions before and after agree on. */
	{ 20, 20, 104, 112, 144, 152, 168, 176, 72,   0, reasons_1_23, 21 },
	{ 21, 21, 104, 112, 144, 152, 168, 176, 72, 188, reasons_1_23, 32 },
	{ 22, 22, 104, 112, 144, 152, 168, 176, 72, 191, reasons_1_23, 37 },
	{ 23, 23, 104, 112, 152, 160, 176, 184, 72, 199, reasons_1_23, SS_ARRAY_SIZE(reasons_1_23) },
	{ 24, 24, 104, 112, 152, 160, 176, 184, 72, 199, reasons_1_24, SS_ARRAY_SIZE(reasons_1_24) },
	{ 25, 25,  96, 104, 144, 152, 168, 176, 64, 191, reasons_1_25, SS_ARRAY_SIZE(reasons_1_25) },
	{ 26, 27,  96, 104, 144, 152, 168, 176, 64, 191, reasons_1_26, SS_ARRAY_SIZE(reasons_1_26) },
};
/* clang-format on */

const struct ss_go_layout *ss_go_layout_find(unsigned minor)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(layouts); i++) {
		if (minor >= layouts[i].first && minor <= layouts[i].last)
			return &layouts[i];
	}
	return NULL;
}

enum {
	CODE_MAX = 2048,   /* bytes of runtime.allgadd; 350 in Go 1.19 to 1.27 */
	OPERANDS_MAX = 64, /* 25 there */
	MAIN_GOROUTINE = 1,
	WORD = 8,
	SLICE = 3 * WORD, /* pointer, length, capacity */
	BUILD_INFO_STRINGS = 32,
	BUILD_INFO_INLINE = 2, /* flag: strings follow, not pointers (Go 1.18) */
};

static const char list_user[] = "runtime.allgadd";
static const char heap_user[] = "runtime.findObject";

/* The version, see Go's src/debug/buildinfo: a magic number, flags, and strings, each
   preceded by its length. False: there is none. */
static bool read_version(const struct ss_elf *elf, struct ss_go_program *ret)
{
	static const char magic[] = "\xff Go buildinf:";
	uint8_t head[BUILD_INFO_STRINGS + 1 + sizeof(ret->version)] = {};
	Elf64_Shdr section;

	if (!ss_go_find_build_info(elf, &section))
		return false;
	size_t size = SS_MIN(sizeof(head), section.sh_size);
	if (size < BUILD_INFO_STRINGS ||
	    !ss_elf_read(elf, section.sh_offset, head, size) ||
	    memcmp(head, magic, sizeof(magic) - 1) != 0)
		return false;
	size_t length = head[BUILD_INFO_STRINGS];
	if (!(head[sizeof(magic)] & BUILD_INFO_INLINE) || length >= sizeof(ret->version))
		return true;
	memcpy(ret->version, head + BUILD_INFO_STRINGS + 1, length);
	return true;
}

/* The number in "go1.NUMBER". 0: not known, for example of a version under development. */
static unsigned minor_of(const char *version)
{
	static const char prefix[] = "go1.";
	unsigned minor = 0;

	if (strncmp(version, prefix, sizeof(prefix) - 1) != 0)
		return 0;
	for (const char *at = version + sizeof(prefix) - 1; *at >= '0' && *at <= '9';
	     at++) {
		minor = minor * 10 + (unsigned)(*at - '0');
		if (minor > 1000)
			return 0;
	}
	return minor;
}

/* The list ----------------------------------------------------------------- */

/* The address of the operand if a 64-bit mov from or to memory relative to the instruction
   pointer begins at code, which is at address. 0: it does not. */
static uint64_t find_operand(const uint8_t *code, uint64_t address)
{
	enum { REX_W = 0x48, REX_MASK = 0xf8, LOAD = 0x8b, STORE = 0x89, LENGTH = 7 };
	int32_t displacement;

	if ((code[0] & REX_MASK) != REX_W || (code[1] != LOAD && code[1] != STORE) ||
	    (code[2] & 0xc7) != 0x05)
		return 0;
	memcpy(&displacement, code + 3, sizeof(displacement));
	return address + LENGTH + (uint64_t)(int64_t)displacement;
}

static bool contains(const uint64_t *list, size_t count, uint64_t address)
{
	return ss_any(count, i, list[i] == address);
}

/* The only three words in a row that the function accesses are the slice. 0: not found. */
static uint64_t find_slice(const uint64_t *operands, size_t count)
{
	uint64_t slice = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t at = operands[i];
		if (at == slice || !contains(operands, count, at + WORD) ||
		    !contains(operands, count, at + 2 * (uint64_t)WORD))
			continue;
		if (slice || contains(operands, count, at - WORD) ||
		    contains(operands, count, at + SLICE))
			return 0;
		slice = at;
	}
	return slice;
}

/* The variables that a function accesses, of which there are max at most. Returns how many. */
static size_t find_operands(struct ss_image *image, const char *function, uint64_t *ret,
			    size_t max)
{
	enum { LENGTH = 7 };
	uint8_t code[CODE_MAX];
	uint64_t start;
	uint64_t size;
	size_t count = 0;

	if (!ss_go_find_function(image, function, &start, &size))
		return 0;
	size = ss_image_read(image, start, code, SS_MIN(size, (uint64_t)sizeof(code)));
	for (size_t i = 0; i + LENGTH <= size && count < max; i++) {
		uint64_t operand = find_operand(code + i, start + i);
		if (operand)
			ret[count++] = operand;
	}
	return count;
}

/* 0: not found. */
static uint64_t find_list(struct ss_image *image)
{
	uint64_t operands[OPERANDS_MAX];
	const size_t count = find_operands(image, list_user, operands, OPERANDS_MAX);

	return find_slice(operands, count);
}

/* Everything --------------------------------------------------------------- */

/* Some programs have their version removed, against scanners that look for old ones (esbuild). The
   section of the module came with Go 1.26; what does not validate is not shown. */
static bool is_since_1_26(const struct ss_elf *elf)
{
	return ss_elf_find_section(elf, ".go.module") &&
	       ss_elf_find_section(elf, ".gopclntab");
}

static void find(struct ss_image *image, unsigned minor, struct ss_go_program *ret)
{
	const struct ss_go_layout *layout = ss_go_layout_find(minor);

	ret->minor = minor;
	if (image->arch != &ss_arch_x86_64)
		ret->problem = "they are known on x86-64 only";
	else if (!layout)
		ret->problem = "the layout of its runtime is not known";
	else if (!ss_go_table_of(image))
		ret->problem = "its function table cannot be read";
	else if (!(ret->list = find_list(image)))
		ret->problem = "their list was not found in the runtime's code";
	else
		ret->layout = layout;
	if (ret->layout)
		ret->heap_count =
			find_operands(image, heap_user, ret->heap, SS_GO_HEAP_MAX);
}

const struct ss_go_program *ss_go_program_find(struct ss_image *image)
{
	struct ss_go_program *program = image->go_program;

	if (!program && (program = calloc(1, sizeof(*program)))) {
		_cleanup_(ss_elf_cleanup) struct ss_elf *elf =
			ss_elf_from_module(image->module);
		if (elf && read_version(elf, program)) {
			program->is_go = true;
			find(image, minor_of(program->version), program);
		} else if (elf && is_since_1_26(elf)) {
			program->is_go = true;
			find(image, 26, program);
		}
		image->go_program = program;
	}
	return program && program->is_go ? program : NULL;
}

enum {
	LIST_LENGTH = 8, /* of a slice: pointer, length, capacity */
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

static bool find_status(uint32_t status, enum ss_task_status *ret)
{
	static const struct {
		uint32_t value;
		enum ss_task_status status;
	} values[] = {
		{ 1, SS_STATUS_RUNNABLE },  { 2, SS_STATUS_RUNNING },
		{ 3, SS_STATUS_SYSCALL },   { 4, SS_STATUS_WAITING },
		{ 8, SS_STATUS_COPYSTACK }, { 9, SS_STATUS_PREEMPTED },
		{ 10, SS_STATUS_WAITING }, /* leaked: found by the garbage collector */
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

/* Sets the reason of a wait, and what follows from it. */
static void set_reason(struct ss_go_goroutine *goroutine, const char *reason)
{
	goroutine->wait_reason = reason;
	goroutine->on_purpose = goroutine->id == MAIN_GOROUTINE || !reason ||
				strcmp(reason, "select (no cases)") == 0;
	goroutine->idle = reason && (strcmp(reason, "IO wait") == 0 ||
				     strcmp(reason, "sleep") == 0);
	if (reason && (strcmp(reason, "chan receive (nil chan)") == 0 ||
		       strcmp(reason, "chan send (nil chan)") == 0))
		goroutine->endless = SS_ENDLESS_NIL_CHANNEL;
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
	bool syscall = goroutine->status == SS_STATUS_SYSCALL;
	uint32_t at = syscall ? reader->layout->syscall_sp : SS_GO_SP;

	if (goroutine->changed || goroutine->status == SS_STATUS_RUNNING ||
	    goroutine->status == SS_STATUS_COPYSTACK)
		return;
	goroutine->sp = ss_load_u64(bytes, at);
	goroutine->pc = ss_load_u64(bytes, at + WORD);
	goroutine->bp = syscall ? 0 : ss_load_u64(bytes, reader->layout->bp);
}

static bool is_valid(const struct ss_go_goroutine *goroutine)
{
	uint64_t size = goroutine->stack_high - goroutine->stack_low;

	if (goroutine->id == 0 || goroutine->id > INT64_MAX ||
	    goroutine->stack_low == 0 || goroutine->stack_low >= goroutine->stack_high ||
	    size < STACK_MIN || size > STACK_MAX || (size & (size - 1)) != 0)
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
		.address = address,
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
	bool waits = goroutine.status == SS_STATUS_WAITING;
	if (waits)
		set_reason(&goroutine, find_reason(layout, bytes[layout->reason]));
	if (waits || goroutine.status == SS_STATUS_SYSCALL)
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

SS_DEFINE_COMPARE(compare_ids, struct ss_go_goroutine, id)

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
