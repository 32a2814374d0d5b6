/*
 * A capture as a minidump: threads with registers and stacks, modules with build-ids, the
 * signal. For debuggers and crash collectors. The numbers are those of minidumpapiset.h
 * (Microsoft) and minidump_format.h (Breakpad).
 *
 * The main thread's stack begins with the environment and the command line, which often contain
 * secrets: unless they are wanted, they are written as zeros.
 */
#include <elf.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/io.h"
#include "base/utf8.h"
#include "base/vector.h"
#include "data/capture.h"
#include "crash/dump.h"

enum {
	SIGNATURE = 0x504d444d, /* MDMP */
	VERSION = 0xa793,
	BUILD_ID_RECORD = 0x4270454c, /* LEpB: the build-id follows */
	PLATFORM_LINUX = 0x8201,
	MISC_PROCESS_ID = 1,
	MISC_SIZE = 24,
	PARAMETERS = 15,
	NS_PER_S = 1000000000,
};

enum stream {
	THREAD_LIST = 3,
	MODULE_LIST = 4,
	MEMORY_LIST = 5,
	EXCEPTION = 6,
	SYSTEM_INFO = 7,
	MISC_INFO = 15,
	THREAD_NAMES = 24,
	LINUX_PROC_STATUS = 0x47670004,
	LINUX_CMD_LINE = 0x47670006,
	LINUX_ENVIRON = 0x47670007,
	LINUX_MAPS = 0x47670009,
	STREAMS = 11,
};

/* All are little-endian and packed. */
struct header {
	uint32_t signature;
	uint32_t version;
	uint32_t stream_count;
	uint32_t directory;
	uint32_t checksum;
	uint32_t time;
	uint64_t flags;
} __attribute__((packed));

struct location {
	uint32_t size;
	uint32_t at; /* offset in the file */
} __attribute__((packed));

struct directory {
	uint32_t type;
	struct location location;
} __attribute__((packed));

struct memory {
	uint64_t address;
	struct location location;
} __attribute__((packed));

struct thread {
	uint32_t tid;
	uint32_t suspend_count;
	uint32_t priority_class;
	uint32_t priority;
	uint64_t thread_pointer;
	struct memory stack;
	struct location context;
} __attribute__((packed));

struct module {
	uint64_t base;
	uint32_t size;
	uint32_t checksum;
	uint32_t time;
	uint32_t name;
	uint32_t version[13];
	struct location build_id;
	struct location misc;
	uint64_t reserved[2];
} __attribute__((packed));

struct exception {
	uint32_t tid;
	uint32_t alignment;
	uint32_t code;
	uint32_t flags;
	uint64_t next;
	uint64_t address;
	uint32_t parameter_count;
	uint32_t alignment_too;
	uint64_t parameters[PARAMETERS];
	struct location context;
} __attribute__((packed));

struct system_info {
	uint16_t processor;
	uint16_t level;
	uint16_t revision;
	uint8_t processor_count;
	uint8_t product_type;
	uint32_t version[3];
	uint32_t platform;
	uint32_t service_pack; /* offset of a string */
	uint16_t suite;
	uint16_t reserved;
	uint8_t cpu[24];
} __attribute__((packed));

struct thread_name {
	uint32_t tid;
	uint64_t name;
} __attribute__((packed));

_Static_assert(sizeof(struct header) == 32, "minidumpapiset.h");
_Static_assert(sizeof(struct thread) == 48, "minidumpapiset.h");
_Static_assert(sizeof(struct module) == 108, "minidumpapiset.h");
_Static_assert(sizeof(struct exception) == 168, "minidumpapiset.h");
_Static_assert(sizeof(struct system_info) == 56, "minidumpapiset.h");

/* Command line and environment of a program, up to the end of its main stack. */
struct strings {
	uint64_t start;
	uint64_t end;
	const struct ss_stack_copy *stack; /* that has the start */
};

/* Everything but the stacks, which follow. */
struct builder {
	const struct ss_capture *capture;
	bool environment;
	struct ss_buffer head;
	struct directory streams[STREAMS];
	size_t stream_count;
	uint64_t stacks; /* their size so far */
	/* By thread, in head: */
	size_t threads;	 /* of struct thread */
	size_t memories; /* of struct memory */
	uint32_t memory_count;
	struct location crashed; /* the context of the thread that crashed */
	SS_VECTOR(struct strings) strings;
};

static uint32_t here(const struct builder *b)
{
	return (uint32_t)b->head.size;
}

static void add_u32(struct builder *b, uint32_t value)
{
	ss_buffer_add(&b->head, &value, sizeof(value));
}

static void begin_stream(struct builder *b, enum stream type)
{
	while (b->head.size % sizeof(uint64_t))
		ss_buffer_add_byte(&b->head, 0);
	b->streams[b->stream_count++] =
		(struct directory){ .type = type, .location.at = here(b) };
}

static void end_stream(struct builder *b)
{
	struct location *location = &b->streams[b->stream_count - 1].location;

	location->size = here(b) - location->at;
}

/* UTF-16 with its size in bytes before, and a NUL. Returns where it is. */
static uint32_t add_string(struct builder *b, const char *text)
{
	while (b->head.size % sizeof(uint32_t))
		ss_buffer_add_byte(&b->head, 0);
	uint32_t at = here(b);
	add_u32(b, 0);
	while (*text) {
		uint32_t code = 0xfffd; /* for an invalid byte */
		size_t size = ss_utf8_decode(text, &code);
		text += SS_MAX(size, (size_t)1);
		uint16_t units[2] = { (uint16_t)code };
		if (code >= 0x10000) {
			units[0] = (uint16_t)(0xd7c0 + (code >> 10));
			units[1] = (uint16_t)(0xdc00 + (code & 0x3ff));
		}
		ss_buffer_add(&b->head, units, code >= 0x10000 ? 4 : 2);
	}
	uint32_t length = here(b) - at - (uint32_t)sizeof(length);
	if (!b->head.failed)
		memcpy(b->head.bytes + at, &length, sizeof(length));
	ss_buffer_add(&b->head, "\0", 2);
	return at;
}

static struct location add_context(struct builder *b, const struct ss_regs *regs)
{
	const struct ss_minidump_context *layout = &b->capture->arch->minidump;
	struct location location = { .at = here(b), .size = layout->size };
	uint64_t value;

	for (unsigned i = 0; i < layout->size; i++)
		ss_buffer_add_byte(&b->head, 0);
	if (b->head.failed)
		return location;
	char *context = b->head.bytes + location.at;
	memcpy(context + layout->flags_at, &layout->flags, sizeof(layout->flags));
	for (unsigned reg = 0; reg < b->capture->arch->reg_count; reg++) {
		if (layout->regs[reg] && ss_regs_get(regs, reg, &value))
			memcpy(context + layout->regs[reg], &value, sizeof(value));
	}
	return location;
}

/* Threads and memory ------------------------------------------------------- */

static struct memory plan_stack(struct builder *b, const struct ss_stack_copy *stack)
{
	struct memory memory = {
		.address = stack->address,
		.location = { .size = (uint32_t)stack->size, .at = (uint32_t)b->stacks },
	};

	b->stacks += stack->size;
	return memory;
}

static void write_threads(struct builder *b)
{
	const struct ss_capture *capture = b->capture;

	begin_stream(b, THREAD_LIST);
	add_u32(b, (uint32_t)capture->threads.count);
	b->threads = b->head.size;
	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *from = &capture->threads.items[i];
		const struct thread thread = {
			.tid = (uint32_t)from->tid,
			.thread_pointer = from->thread_pointer,
			.stack = plan_stack(b, &from->stacks[0]),
		};
		ss_buffer_add(&b->head, &thread, sizeof(thread));
	}
	end_stream(b);
}

static void write_contexts(struct builder *b)
{
	const struct ss_capture *capture = b->capture;

	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		struct location location = add_context(b, &thread->regs);
		if (b->head.failed)
			return;
		memcpy(b->head.bytes + b->threads + i * sizeof(struct thread) +
			       offsetof(struct thread, context),
		       &location, sizeof(location));
		if (thread->tid == capture->process.crash.tid)
			b->crashed = location;
	}
}

/* All stacks: those of the threads, then those that handlers interrupted. */
static void write_memory(struct builder *b)
{
	const struct ss_capture *capture = b->capture;
	uint64_t at = 0;

	begin_stream(b, MEMORY_LIST);
	size_t count = b->head.size;
	add_u32(b, 0);
	b->memories = b->head.size;
	for (size_t copy = 0; copy < SS_STACK_COPIES; copy++) {
		b->stacks = at;
		for (size_t i = 0; i < capture->threads.count; i++) {
			const struct ss_stack_copy *stack =
				&capture->threads.items[i].stacks[copy];
			if (stack->size == 0)
				continue;
			struct memory memory = plan_stack(b, stack);
			ss_buffer_add(&b->head, &memory, sizeof(memory));
			b->memory_count++;
		}
		at = b->stacks;
	}
	if (!b->head.failed)
		memcpy(b->head.bytes + count, &b->memory_count, sizeof(b->memory_count));
	end_stream(b);
}

/* Stacks follow the head, whose size is known now. */
static void place_stacks(struct builder *b)
{
	uint32_t head = here(b);
	uint32_t at;

	for (size_t i = 0; i < b->capture->threads.count + b->memory_count; i++) {
		size_t thread = b->threads + i * sizeof(struct thread) +
				offsetof(struct thread, stack);
		size_t memory = i < b->capture->threads.count ?
					thread :
					b->memories + (i - b->capture->threads.count) *
							      sizeof(struct memory);
		char *field = b->head.bytes + memory + offsetof(struct memory, location) +
			      offsetof(struct location, at);
		memcpy(&at, field, sizeof(at));
		at += head;
		memcpy(field, &at, sizeof(at));
	}
}

static void write_thread_names(struct builder *b)
{
	const struct ss_capture *capture = b->capture;
	uint32_t count = (uint32_t)capture->threads.count;

	begin_stream(b, THREAD_NAMES);
	add_u32(b, count);
	size_t names = b->head.size;
	for (size_t i = 0; i < count; i++) {
		const struct thread_name name = {
			.tid = (uint32_t)capture->threads.items[i].tid
		};
		ss_buffer_add(&b->head, &name, sizeof(name));
	}
	end_stream(b);
	for (size_t i = 0; i < count; i++) {
		uint64_t at = add_string(b, capture->threads.items[i].name);
		if (b->head.failed)
			return;
		memcpy(b->head.bytes + names + i * sizeof(struct thread_name) +
			       offsetof(struct thread_name, name),
		       &at, sizeof(at));
	}
}

/* Modules and the rest ----------------------------------------------------- */

static struct location add_build_id(struct builder *b,
				    const struct ss_module_impl *module)
{
	struct location location = { .at = here(b) };

	add_u32(b, BUILD_ID_RECORD);
	ss_buffer_add(&b->head, module->build_id, module->build_id_size);
	location.size = here(b) - location.at;
	return location;
}

static void write_modules(struct builder *b)
{
	const struct ss_capture *capture = b->capture;

	begin_stream(b, MODULE_LIST);
	add_u32(b, (uint32_t)capture->modules.count);
	size_t modules = b->head.size;
	for (size_t i = 0; i < capture->modules.count; i++) {
		const struct ss_module_impl *from = capture->modules.items[i];
		const struct module module = {
			.base = from->pub.base,
			.size = (uint32_t)SS_MIN(from->pub.size, (uint64_t)UINT32_MAX),
		};
		ss_buffer_add(&b->head, &module, sizeof(module));
	}
	end_stream(b);
	for (size_t i = 0; i < capture->modules.count; i++) {
		const struct ss_module_impl *from = capture->modules.items[i];
		struct location id = {};
		if (from->build_id_size)
			id = add_build_id(b, from);
		uint32_t name = add_string(b, from->pub.path);
		if (b->head.failed)
			return;
		char *module = b->head.bytes + modules + i * sizeof(struct module);
		memcpy(module + offsetof(struct module, name), &name, sizeof(name));
		memcpy(module + offsetof(struct module, build_id), &id, sizeof(id));
	}
}

static void write_exception(struct builder *b)
{
	const struct ss_crash *crash = &b->capture->process.crash;
	const struct exception exception = {
		.tid = (uint32_t)crash->tid,
		.code = (uint32_t)crash->signal,
		.flags = crash->has_info ? (uint32_t)crash->code : 0,
		.address = crash->has_info && crash->code > 0 ? crash->address : 0,
		.context = b->crashed,
	};

	if (crash->signal == 0 || b->crashed.size == 0)
		return;
	begin_stream(b, EXCEPTION);
	ss_buffer_add(&b->head, &exception, sizeof(exception));
	end_stream(b);
}

static void write_system(struct builder *b)
{
	struct system_info info = { .processor = b->capture->arch->minidump.processor,
				    .platform = PLATFORM_LINUX };

	info.service_pack = add_string(b, "");
	begin_stream(b, SYSTEM_INFO);
	ss_buffer_add(&b->head, &info, sizeof(info));
	end_stream(b);
	begin_stream(b, MISC_INFO);
	const uint32_t misc[MISC_SIZE / sizeof(uint32_t)] = {
		MISC_SIZE, MISC_PROCESS_ID, (uint32_t)b->capture->process.pid
	};
	ss_buffer_add(&b->head, misc, sizeof(misc));
	end_stream(b);
}

/* As procfs has them. */
static void write_linux(struct builder *b)
{
	const struct ss_capture *capture = b->capture;

	begin_stream(b, LINUX_PROC_STATUS);
	ss_buffer_printf(&b->head, "Name:\t%s\nTgid:\t%d\nPid:\t%d\n",
			 capture->process.name, capture->process.pid,
			 capture->process.pid);
	end_stream(b);
	begin_stream(b, LINUX_MAPS);
	for (size_t i = 0; i < capture->areas.count; i++) {
		const struct ss_area *area = &capture->areas.items[i];
		ss_buffer_printf(
			&b->head,
			"%" PRIx64 "-%" PRIx64 " %c%c%c%c 00000000 00:00 0 %s\n",
			area->start, area->end, area->prot & PROT_READ ? 'r' : '-',
			area->prot & PROT_WRITE ? 'w' : '-',
			area->prot & PROT_EXEC ? 'x' : '-', area->shared ? 's' : 'p',
			strcmp(area->name, "//anon") == 0 ? "" : area->name);
	}
	end_stream(b);
}

/* Strings of command line and environment ---------------------------------- */

/*
 * Where the last auxiliary vector of a stack is: behind that of a main stack are the strings.
 * It has AT_PAGESZ and AT_CLKTCK in a row, then AT_PHDR and AT_PHENT (create_elf_tables() in
 * fs/binfmt_elf.c); one of these pairs is found also if a copy begins or ends within it. 0:
 * there is none.
 */
static uint64_t find_vector(const struct ss_stack_copy *stack)
{
	enum { PHDR = 3, PHENT = 4, PAGESZ = 6, CLKTCK = 17, HZ = 100, WORD = 8 };
	uint64_t words[4];
	size_t skew = (size_t)(-stack->address % WORD);

	if (stack->size < skew + sizeof(words))
		return 0;
	size_t count = (stack->size - skew - sizeof(words)) / WORD + 1;
	for (size_t i = count; i-- > 0;) {
		memcpy(words, stack->bytes + skew + i * WORD, sizeof(words));
		if ((words[0] == PAGESZ && words[2] == CLKTCK && words[3] == HZ) ||
		    (words[0] == PHDR && words[2] == PHENT &&
		     words[3] == sizeof(Elf64_Phdr)))
			return stack->address + skew + i * WORD;
	}
	return 0;
}

/* Of each area, the last vector counts. False without memory. */
static bool add_strings(struct builder *b, const struct ss_stack_copy *stack)
{
	uint64_t start = find_vector(stack);
	const struct ss_area *area = ss_capture_find_area(b->capture, start);
	uint64_t end = area ? area->end : stack->address + stack->size;

	if (start == 0)
		return true;
	for (size_t i = 0; i < b->strings.count; i++) {
		struct strings *strings = &b->strings.items[i];
		if (strings->end != end)
			continue;
		if (strings->start < start) {
			strings->start = start;
			strings->stack = stack;
		}
		return true;
	}
	struct strings *strings = ss_vector_push(&b->strings);
	if (strings)
		*strings = (struct strings){ .start = start, .end = end, .stack = stack };
	return strings != NULL;
}

/* A stack may be in several copies, of which one has the vector. */
static bool find_strings(struct builder *b)
{
	for (size_t copy = 0; copy < SS_STACK_COPIES; copy++) {
		for (size_t i = 0; i < b->capture->threads.count; i++) {
			const struct ss_stack_copy *stack =
				&b->capture->threads.items[i].stacks[copy];
			if (stack->size && !add_strings(b, stack))
				return false;
		}
	}
	return true;
}

/* Bytes of the stack; NULL if they are not all in the copy. */
static const uint8_t *find_bytes(const struct strings *strings, uint64_t address,
				 uint64_t size)
{
	const struct ss_stack_copy *stack = strings->stack;

	if (address < stack->address || address - stack->address > stack->size ||
	    stack->size - (address - stack->address) < size)
		return NULL;
	return stack->bytes + (address - stack->address);
}

static bool read_word(const struct strings *strings, uint64_t address, uint64_t *ret)
{
	const uint8_t *bytes = find_bytes(strings, address, sizeof(*ret));

	if (bytes)
		memcpy(ret, bytes, sizeof(*ret));
	return bytes != NULL;
}

/*
 * Goes down an array of pointers to strings, whose end (a NULL) is at *at, to its first one. *at
 * becomes the address of the word below. False: it is not in a copy.
 */
static bool find_first(const struct strings *strings, uint64_t *at, uint64_t *ret)
{
	uint64_t word;

	*ret = 0;
	for (;;) {
		*at -= sizeof(word);
		if (!read_word(strings, *at, &word))
			return false;
		if (word <= strings->start || word >= strings->end)
			return true;
		*ret = word;
	}
}

static void write_bytes(struct builder *b, enum stream type,
			const struct strings *strings, uint64_t start, uint64_t end)
{
	const uint8_t *bytes =
		start && start < end ? find_bytes(strings, start, end - start) : NULL;

	if (!bytes)
		return;
	begin_stream(b, type);
	ss_buffer_add(&b->head, bytes, end - start);
	end_stream(b);
}

/* The initial stack, downwards: the name of the program, the environment, the command line, the
   auxiliary vector, the pointers to the environment, to the command line, and their number. */
static bool write_environment(struct builder *b, const struct strings *strings)
{
	enum { EXECFN = 31, WORD = 8 };
	uint64_t at = strings->start;
	uint64_t end = 0;
	uint64_t key = 1;
	uint64_t word = 1;
	uint64_t variable;
	uint64_t argument;

	for (uint64_t v = at; key != 0 && read_word(strings, v, &key); v += 2 * WORD) {
		if (key == EXECFN && !read_word(strings, v + WORD, &end))
			return false;
	}
	/* The values before the first entry that is known are not 0. */
	while (word != 0) {
		at -= WORD;
		if (!read_word(strings, at, &word))
			return false;
	}
	if (!find_first(strings, &at, &variable) || !find_first(strings, &at, &argument))
		return false;
	write_bytes(b, LINUX_CMD_LINE, strings, argument, variable ? variable : end);
	write_bytes(b, LINUX_ENVIRON, strings, variable, end);
	return argument != 0;
}

/* The whole ---------------------------------------------------------------- */

static void write_head(struct builder *b)
{
	struct header header = {
		.signature = SIGNATURE,
		.version = VERSION,
		.directory = sizeof(header),
		.time = (uint32_t)(b->capture->process.time_ns / NS_PER_S),
	};

	ss_buffer_add(&b->head, &header, sizeof(header));
	ss_buffer_add(&b->head, b->streams, sizeof(b->streams));
	write_threads(b);
	write_contexts(b);
	write_memory(b);
	write_modules(b);
	write_exception(b);
	write_system(b);
	write_thread_names(b);
	write_linux(b);
	for (size_t i = 0; b->environment && i < b->strings.count; i++) {
		if (write_environment(b, &b->strings.items[i]))
			break;
	}
	if (b->head.failed)
		return;
	header.stream_count = (uint32_t)b->stream_count;
	memcpy(b->head.bytes, &header, sizeof(header));
	memcpy(b->head.bytes + sizeof(header), b->streams, sizeof(b->streams));
	place_stacks(b);
}

/* How many bytes of a copy are before the strings. */
static size_t size_before_strings(const struct builder *b,
				  const struct ss_stack_copy *stack)
{
	size_t size = stack->size;

	if (b->environment)
		return size;
	for (size_t i = 0; i < b->strings.count; i++) {
		const struct strings *strings = &b->strings.items[i];
		uint64_t from = SS_MAX(strings->start, stack->address);
		if (from < strings->end && from - stack->address < size)
			size = (size_t)(from - stack->address);
	}
	return size;
}

static int write_stack(const struct builder *b, const struct ss_stack_copy *stack, int fd)
{
	static const uint8_t zeros[4096];
	size_t strings = size_before_strings(b, stack);
	int result = ss_io_write_all(fd, stack->bytes, strings);

	for (size_t at = strings; result == 0 && at < stack->size; at += sizeof(zeros))
		result = ss_io_write_all(fd, zeros,
					 SS_MIN(sizeof(zeros), stack->size - at));
	return result;
}

static int write_all(const struct builder *b, int fd)
{
	int result = ss_io_write_all(fd, b->head.bytes, b->head.size);

	for (size_t copy = 0; copy < SS_STACK_COPIES; copy++) {
		for (size_t i = 0; result == 0 && i < b->capture->threads.count; i++) {
			const struct ss_stack_copy *stack =
				&b->capture->threads.items[i].stacks[copy];
			if (stack->size)
				result = write_stack(b, stack, fd);
		}
	}
	return result;
}

struct ss_error *ss_capture_write_minidump(const struct ss_capture *capture,
					   unsigned flags, int fd)
{
	struct builder b = { .capture = capture,
			     .environment = flags & SS_MINIDUMP_ENVIRONMENT };

	if (capture->arch->minidump.size == 0)
		return ss_error_new(SS_ERROR_UNSUPPORTED,
				    "minidumps of %s processes are not supported",
				    capture->arch->name);
	bool ok = find_strings(&b);
	if (ok)
		write_head(&b);
	struct ss_error *error = NULL;
	if (!ok || b.head.failed)
		error = ss_error_no_memory();
	else if (b.head.size + b.stacks > UINT32_MAX)
		error = ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "the stacks do not fit into a minidump of 4 GiB"),
			"limit them with --max-total");
	int result = error ? 0 : write_all(&b, fd);
	ss_buffer_deinit(&b.head);
	ss_vector_free(&b.strings);
	return result < 0 ? ss_error_new_errno(-result, "writing the minidump") : error;
}
