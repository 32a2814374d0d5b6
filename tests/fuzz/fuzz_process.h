/*
 * A process that an input describes, for the decoders of runtimes: the symbols of its modules, its
 * memory, and threads with their native stacks. seed_runtimes.c writes such inputs from real
 * processes. Little-endian:
 *
 *	u8 flags, u8 modules: each u64 start, u64 end, path, u16 symbols: each name, u64 offset, u64 size
 *	u16 areas: each u64 start, u64 end, u8 prot, u8 module + 1
 *	u8 threads: each u32 tid, u64 thread pointer, u64 call, u64 arguments[6], u64 valid, registers,
 *	   u64 address and size of its stack, u16 frames: each u8 flags, u64 pc, u64 sp, u64 fp
 *	u8 changes: each u16 reads, u64 address, u8 value
 *	u16 pieces of memory: each u64 address, u16 size, bytes
 *
 * Names have a byte with their length. Bytes that pages with a piece have otherwise are 0. A change
 * is made before as many reads.
 */
#ifndef FUZZ_PROCESS_H
#define FUZZ_PROCESS_H

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "fuzz.h"
#include "data/capture.h"
#include "data/gather.h"
#include "data/session.h"
#include "runtime/runtimes.h"

enum {
	FUZZ_PAGE = 4096,
	FUZZ_PAGES_MAX = 1024,
	FUZZ_MODULES_MAX = 3,
	FUZZ_THREADS_MAX = 16,
	FUZZ_FRAMES_MAX = 512,
	FUZZ_SYMBOLS_MAX = 512,
	FUZZ_AREAS_MAX = 256,
	FUZZ_CHANGES_MAX = 64,
	FUZZ_STACK_MAX = 1 << 16,
};

enum fuzz_process_flags {
	FUZZ_RECORDING =
		1, /* two captures, of which the second one has what a plan copied */
	FUZZ_CORE = 2,
	FUZZ_NATIVE = 4,
	FUZZ_MOVES = 8, /* threads run: memory of the moment is only what was copied */
	FUZZ_STOP = 16,
	FUZZ_SEED = 32, /* made by seed_runtimes: something has to be found */
};

enum { FUZZ_RBP = 6 /* DWARF number */ };
enum { FUZZ_FRAME_CALL = 1, FUZZ_FRAME_GUESS = 2, FUZZ_FRAME_LAST = 4 };

struct fuzz_page {
	uint64_t address;
	uint8_t *bytes;
};

struct fuzz_change {
	uint16_t reads;
	uint64_t address;
	uint8_t value;
};

struct fuzz_stack {
	SS_VECTOR(struct ss_frame) frames;
	SS_VECTOR(struct ss_native_frame) natives;
	bool complete;
};

struct fuzz_process {
	struct ss_memory memory; /* first: see data/memory.h */
	uint8_t flags;
	struct ss_capture *capture;
	struct ss_session *session;
	SS_VECTOR(struct fuzz_page) pages; /* ascending */
	SS_VECTOR(struct fuzz_change) changes;
	struct fuzz_stack stacks[FUZZ_THREADS_MAX];
	uint8_t *copies[FUZZ_THREADS_MAX];
	uint64_t reads;
};

static inline uint64_t fuzz_u64(struct ss_cursor *input)
{
	return ss_cursor_fixed(input, 8);
}

static inline size_t fuzz_count(struct ss_cursor *input, size_t size, size_t max)
{
	uint64_t count = ss_cursor_fixed(input, size);

	return count < max ? (size_t)count : max;
}

/* Memory ------------------------------------------------------------------- */

static inline struct fuzz_page *fuzz_page_find(struct fuzz_process *process,
					       uint64_t address)
{
	size_t low = 0;
	size_t high = process->pages.count;

	address &= ~(uint64_t)(FUZZ_PAGE - 1);
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (process->pages.items[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < process->pages.count &&
			       process->pages.items[low].address == address ?
		       &process->pages.items[low] :
		       NULL;
}

/* Pieces are ascending, nearly always. */
static inline struct fuzz_page *fuzz_page_add(struct fuzz_process *process,
					      uint64_t address)
{
	struct fuzz_page *page = fuzz_page_find(process, address);
	size_t at = process->pages.count;

	address &= ~(uint64_t)(FUZZ_PAGE - 1);
	if (page || at == FUZZ_PAGES_MAX)
		return page;
	FUZZ_REQUIRE(ss_vector_push(&process->pages));
	for (; at > 0 && process->pages.items[at - 1].address > address; at--)
		process->pages.items[at] = process->pages.items[at - 1];
	process->pages.items[at] =
		(struct fuzz_page){ .address = address, .bytes = calloc(1, FUZZ_PAGE) };
	FUZZ_REQUIRE(process->pages.items[at].bytes);
	return &process->pages.items[at];
}

static inline void fuzz_memory_add(struct fuzz_process *process, uint64_t address,
				   const uint8_t *bytes, size_t size)
{
	while (size > 0) {
		size_t at = address % FUZZ_PAGE;
		size_t n = SS_MIN(size, FUZZ_PAGE - at);
		struct fuzz_page *page = fuzz_page_add(process, address);
		if (page)
			memcpy(page->bytes + at, bytes, n);
		address += n;
		bytes += n;
		size -= n;
	}
}

static inline size_t fuzz_process_read(void *data, uint64_t address, void *bytes,
				       size_t size)
{
	struct fuzz_process *process = data;
	size_t done = 0;

	for (size_t i = 0; i < process->changes.count; i++) {
		const struct fuzz_change *change = &process->changes.items[i];
		struct fuzz_page *page = fuzz_page_find(process, change->address);
		if (page && change->reads == process->reads)
			page->bytes[change->address % FUZZ_PAGE] = change->value;
	}
	process->reads++;
	while (done < size) {
		const struct fuzz_page *page = fuzz_page_find(process, address + done);
		size_t at = (address + done) % FUZZ_PAGE;
		size_t n = SS_MIN(size - done, FUZZ_PAGE - at);
		if (!page)
			break;
		memcpy((uint8_t *)bytes + done, page->bytes + at, n);
		done += n;
	}
	return done;
}

static inline size_t fuzz_process_memory(const struct ss_memory *memory, uint64_t address,
					 void *bytes, size_t size)
{
	return fuzz_process_read((void *)(uintptr_t)memory, address, bytes, size);
}

static inline void fuzz_process_read_ranges(void *data, struct ss_memory_range *ranges,
					    size_t count)
{
	for (size_t i = 0; i < count; i++)
		ranges[i].done = fuzz_process_read(data, ranges[i].address,
						   ranges[i].bytes, ranges[i].size);
}

static inline bool fuzz_process_check(void *data, pid_t tid)
{
	const struct fuzz_process *process = data;

	(void)tid;
	return !(process->flags & FUZZ_MOVES);
}

/* Modules ------------------------------------------------------------------ */

/* A file with a symbol table and nothing else but a section, if a name begins with a dot. Takes the
   symbols from the input. */
static inline void fuzz_module_fill(struct ss_cursor *input,
				    struct ss_module_impl *module)
{
	enum {
		HEADERS = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + 4 * sizeof(Elf64_Shdr)
	};
	_cleanup_buffer_ struct ss_buffer names = {};
	_cleanup_buffer_ struct ss_buffer symbols = {};
	_cleanup_buffer_ struct ss_buffer file = {};
	const size_t count = fuzz_count(input, 2, FUZZ_SYMBOLS_MAX);
	Elf64_Shdr section = {};
	Elf64_Sym symbol = {};

	ss_buffer_add(&names, "", 1);
	ss_buffer_add(&symbols, &symbol, sizeof(symbol));
	for (size_t i = 0; i < count; i++) {
		size_t size = ss_cursor_byte(input);
		const uint8_t *name = ss_cursor_take(input, size);
		symbol = (Elf64_Sym){ .st_name = (uint32_t)names.size,
				      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
				      .st_shndx = 1 };
		symbol.st_value = fuzz_u64(input);
		symbol.st_size = fuzz_u64(input);
		if (!name)
			break;
		if (size > 0 && name[0] == '.')
			section = (Elf64_Shdr){ .sh_name = symbol.st_name,
						.sh_type = SHT_PROGBITS,
						.sh_flags = SHF_ALLOC,
						.sh_addr = symbol.st_value,
						.sh_size = symbol.st_size };
		ss_buffer_add(&names, name, size);
		ss_buffer_add(&names, "", 1);
		ss_buffer_add(&symbols, &symbol, sizeof(symbol));
	}
	const Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
						 ELFDATA2LSB, EV_CURRENT },
				    .e_type = ET_DYN,
				    .e_machine = EM_X86_64,
				    .e_phoff = sizeof(Elf64_Ehdr),
				    .e_phentsize = sizeof(Elf64_Phdr),
				    .e_phnum = 1,
				    .e_shoff = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
				    .e_shentsize = sizeof(Elf64_Shdr),
				    .e_shnum = 4,
				    .e_shstrndx = 2 };
	const Elf64_Phdr load = { .p_type = PT_LOAD,
				  .p_flags = PF_R | PF_X,
				  .p_filesz = HEADERS,
				  .p_memsz = module->pub.size };
	const Elf64_Shdr sections[] = {
		{},
		{ .sh_type = SHT_SYMTAB,
		  .sh_offset = HEADERS,
		  .sh_size = symbols.size,
		  .sh_link = 2,
		  .sh_entsize = sizeof(Elf64_Sym) },
		{ .sh_type = SHT_STRTAB,
		  .sh_offset = HEADERS + symbols.size,
		  .sh_size = names.size },
		section,
	};
	ss_buffer_add(&file, &header, sizeof(header));
	ss_buffer_add(&file, &load, sizeof(load));
	ss_buffer_add(&file, sections, sizeof(sections));
	ss_buffer_add(&file, symbols.bytes, symbols.size);
	ss_buffer_add(&file, names.bytes, names.size);
	FUZZ_REQUIRE(!file.failed && !symbols.failed && !names.failed);
	module->size = file.size;
	module->bytes = malloc(file.size);
	FUZZ_REQUIRE(module->bytes);
	memcpy(module->bytes, file.bytes, file.size);
}

static inline const char *fuzz_text(struct ss_cursor *input, struct ss_capture *capture)
{
	size_t size = ss_cursor_byte(input);
	const uint8_t *bytes = ss_cursor_take(input, size);
	const char *text = ss_intern_bytes(
		capture->strings, bytes ? (const char *)bytes : "", bytes ? size : 0);

	FUZZ_REQUIRE(text);
	return text;
}

/* The first module is the program. */
static inline void fuzz_modules_read(struct ss_cursor *input, struct ss_capture *capture)
{
	const uint8_t count = ss_cursor_byte(input);

	for (size_t i = 0; i < SS_MIN(count, (size_t)FUZZ_MODULES_MAX); i++) {
		uint64_t start = fuzz_u64(input);
		uint64_t end = fuzz_u64(input);
		const char *path = fuzz_text(input, capture);
		struct ss_module_impl *module = ss_module_new(path, start, end);
		struct ss_module_impl **slot = ss_vector_push(&capture->modules);
		const struct ss_mapping mapping = { .start = start,
						    .end = end,
						    .prot = 5 };
		FUZZ_REQUIRE(module && slot && ss_module_add_mapping(module, &mapping));
		*slot = module;
		fuzz_module_fill(input, module);
		if (i == 0)
			capture->process.executable = path;
	}
}

/* Areas are ascending and do not overlap, as those of the kernel. */
static inline void fuzz_areas_read(struct ss_cursor *input, struct ss_capture *capture)
{
	const size_t count = fuzz_count(input, 2, FUZZ_AREAS_MAX);
	uint64_t last = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t start = fuzz_u64(input);
		uint64_t end = fuzz_u64(input);
		unsigned prot = ss_cursor_byte(input);
		int module = ss_cursor_byte(input) - 1;
		if (start < last || end <= start)
			continue;
		struct ss_area *area = ss_vector_push(&capture->areas);
		FUZZ_REQUIRE(area);
		*area = (struct ss_area){ .start = start,
					  .end = end,
					  .prot = prot & 7,
					  .module = module < (int)capture->modules.count ?
							    module :
							    -1,
					  .name = "" };
		last = end;
	}
}

/* Threads ------------------------------------------------------------------ */

static inline void fuzz_frames_read(struct ss_cursor *input, struct fuzz_stack *stack)
{
	const size_t count = fuzz_count(input, 2, FUZZ_FRAMES_MAX);
	uint8_t flags = 0;

	for (size_t i = 0; i < count; i++) {
		struct ss_frame *frame = ss_vector_push(&stack->frames);
		struct ss_native_frame *native = ss_vector_push(&stack->natives);
		FUZZ_REQUIRE(frame && native);
		flags = ss_cursor_byte(input);
		*native = (struct ss_native_frame){ .pc = fuzz_u64(input) };
		native->sp = fuzz_u64(input);
		native->fp = fuzz_u64(input);
		native->call = flags & FUZZ_FRAME_CALL;
		native->guess = flags & FUZZ_FRAME_GUESS;
		*frame = (struct ss_frame){ .pc = native->pc,
					    .module_index = -1,
					    .area = "[jit]",
					    .source = native->guess ?
							      SS_FROM_RETURN_ADDRESS :
							      SS_FROM_CFI };
	}
	stack->complete = flags & FUZZ_FRAME_LAST;
}

static inline void fuzz_threads_read(struct ss_cursor *input,
				     struct fuzz_process *process)
{
	const uint8_t count = ss_cursor_byte(input);

	for (size_t i = 0; i < SS_MIN(count, (size_t)FUZZ_THREADS_MAX); i++) {
		struct ss_capture_thread *thread =
			ss_vector_push(&process->capture->threads);
		FUZZ_REQUIRE(thread);
		*thread = (struct ss_capture_thread){
			.tid = (pid_t)(ss_cursor_fixed(input, 4) & INT32_MAX),
			.state = 'S'
		};
		thread->thread_pointer = fuzz_u64(input);
		thread->syscall.number = (long)fuzz_u64(input);
		thread->syscall.id = ss_arch_syscall_id(process->capture->arch,
							thread->syscall.number);
		for (size_t k = 0; k < SS_SYSCALL_ARGS; k++)
			thread->syscall.args[k] = fuzz_u64(input);
		thread->regs.valid = fuzz_u64(input);
		for (size_t k = 0; k < SS_REG_MAX; k++)
			thread->regs.value[k] =
				thread->regs.valid >> k & 1 ? fuzz_u64(input) : 0;
		thread->stacks[0].address = fuzz_u64(input);
		thread->stacks[0].size = fuzz_count(input, 8, FUZZ_STACK_MAX);
		fuzz_frames_read(input, &process->stacks[i]);
	}
	/* As ids are in a process. */
	if (process->capture->threads.count)
		process->capture->process.pid = process->capture->threads.items[0].tid;
}

static inline void fuzz_memory_of_input(struct ss_cursor *input,
					struct fuzz_process *process)
{
	const uint8_t changes = ss_cursor_byte(input);

	for (size_t i = 0; i < SS_MIN(changes, (size_t)FUZZ_CHANGES_MAX); i++) {
		struct fuzz_change *change = ss_vector_push(&process->changes);
		FUZZ_REQUIRE(change);
		change->reads = (uint16_t)ss_cursor_fixed(input, 2);
		change->address = fuzz_u64(input);
		change->value = ss_cursor_byte(input);
	}
	for (size_t count = ss_cursor_fixed(input, 2); count > 0; count--) {
		uint64_t address = fuzz_u64(input);
		size_t size = ss_cursor_fixed(input, 2);
		size = SS_MIN(size, ss_cursor_left(input));
		const uint8_t *bytes = ss_cursor_take(input, size);
		if (!bytes)
			break;
		fuzz_memory_add(process, address, bytes, size);
	}
}

/* What the capture copies of a stack. */
static inline void fuzz_stacks_copy(struct fuzz_process *process)
{
	for (size_t i = 0; i < process->capture->threads.count; i++) {
		struct ss_stack_copy *stack =
			&process->capture->threads.items[i].stacks[0];
		if (stack->size == 0)
			continue;
		process->copies[i] = malloc(stack->size);
		FUZZ_REQUIRE(process->copies[i]);
		stack->size = fuzz_process_read(process, stack->address,
						process->copies[i], stack->size);
		stack->bytes = process->copies[i];
	}
	process->reads = 0;
}

static inline void fuzz_process_free(struct fuzz_process *process)
{
	for (size_t i = 0; i < FUZZ_THREADS_MAX; i++) {
		ss_vector_free(&process->stacks[i].frames);
		ss_vector_free(&process->stacks[i].natives);
		free(process->copies[i]);
	}
	for (size_t i = 0; i < process->pages.count; i++)
		free(process->pages.items[i].bytes);
	ss_vector_free(&process->pages);
	ss_vector_free(&process->changes);
	if (process->capture)
		process->capture->whole = NULL;
	ss_capture_free(process->capture);
	ss_session_free(process->session);
	free(process);
}

/* Never NULL: what an input lacks is 0. */
static inline struct fuzz_process *fuzz_process_new(const uint8_t *data, size_t size)
{
	struct ss_cursor input = { .at = data, .end = data + size };
	struct fuzz_process *process = calloc(1, sizeof(*process));

	FUZZ_REQUIRE(process);
	process->memory.read = fuzz_process_memory;
	process->capture = ss_capture_new();
	FUZZ_REQUIRE(process->capture && !ss_session_new(NULL, &process->session));
	process->capture->arch = ss_arch_find_name("x86_64");
	process->flags = ss_cursor_byte(&input);
	if (process->flags & FUZZ_CORE) {
		process->capture->process.mode = SS_MODE_CORE;
		process->capture->whole = &process->memory;
	} else if (process->flags & FUZZ_STOP) {
		process->capture->process.mode = SS_MODE_STOP;
	}
	fuzz_modules_read(&input, process->capture);
	fuzz_areas_read(&input, process->capture);
	fuzz_threads_read(&input, process);
	fuzz_memory_of_input(&input, process);
	return process;
}

/* Decoding ----------------------------------------------------------------- */

/* Adds to a text, if there is one. */
#define fuzz_print(text, ...)                                                            \
	do {                                                                             \
		if (text)                                                                \
			ss_buffer_printf(text, __VA_ARGS__);                             \
	} while (0)

static inline void fuzz_frames_check(const struct ss_frame *frames, size_t count,
				     struct ss_buffer *text)
{
	for (size_t i = 0; i < count; i++) {
		const struct ss_frame *frame = &frames[i];
		FUZZ_REQUIRE(frame->kind == SS_FRAME_NATIVE || frame->symbol);
		if (frame->symbol)
			fuzz_touch(frame->symbol, strlen(frame->symbol));
		if (frame->file)
			fuzz_touch(frame->file, strlen(frame->file));
		if (frame->symbol)
			fuzz_print(text, "%d %s %s:%u %d\n", (int)frame->kind,
				   frame->symbol, frame->file ? frame->file : "-",
				   frame->line, frame->inlined);
	}
}

static inline void fuzz_thread_walk(const struct fuzz_process *process, size_t index,
				    struct ss_runtimes *runtimes, struct ss_buffer *text)
{
	const struct ss_capture_thread *thread = &process->capture->threads.items[index];
	const struct fuzz_stack *from = &process->stacks[index];
	const struct ss_runtimes_stack stack = { .frames = from->frames.items,
						 .natives = from->natives.items,
						 .count = from->frames.count,
						 .complete = from->complete };
	struct ss_capture_memory memory;
	struct ss_runtimes_frames frames = {};

	ss_capture_memory_init(&memory, process->capture, thread);
	for (size_t i = 0; i < stack.count; i++) {
		struct ss_regs regs = thread->regs;
		const struct ss_native_frame *native = &stack.natives[i];
		if (i > 0) {
			ss_arch_regs_blocked(process->capture->arch, native->pc,
					     native->sp, NULL, &regs);
			regs.value[FUZZ_RBP] = native->fp;
			regs.valid |= native->fp ? 1u << FUZZ_RBP : 0;
		}
		struct ss_runtime_frame frame = { .thread = thread,
						  .stack = &memory.memory,
						  .call = native->call,
						  .regs = &regs };
		(void)ss_runtimes_step(runtimes, &frame);
	}
	FUZZ_REQUIRE(ss_runtimes_apply(runtimes, thread, &stack, &frames));
	if (frames.items) {
		fuzz_frames_check(frames.items, frames.count, text);
		for (size_t i = 0; i < stack.count; i++)
			FUZZ_REQUIRE(frames.map[i] <= frames.count ||
				     (frames.ended && frames.map[i] == UINT32_MAX));
	}
	fuzz_print(text, "%s\n", frames.reason ? frames.reason : "-");
}

static inline void fuzz_locks_check(const struct ss_snapshot *snapshot,
				    struct ss_buffer *text)
{
	for (size_t i = 0; i < snapshot->runtime_locks.count; i++) {
		const struct ss_runtime_lock *lock = &snapshot->runtime_locks.items[i];
		fuzz_print(text, "lock %d %d\n", (int)lock->type, (int)lock->owner);
	}
}

static inline void fuzz_tasks_check(const struct ss_snapshot *snapshot,
				    struct ss_buffer *text)
{
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_ASYNCIO].count; i++) {
		const struct ss_task *task = &snapshot->tasks[SS_TASK_ASYNCIO].items[i];
		FUZZ_REQUIRE(task->stack_id < snapshot->stacks.count);
		const struct ss_stack *stack = &snapshot->stacks.items[task->stack_id];
		fuzz_touch(task->name, strlen(task->name));
		if (task->wait_reason)
			fuzz_touch(task->wait_reason, strlen(task->wait_reason));
		fuzz_print(text, "task %s %d %s %d\n", task->name, (int)task->status,
			   task->wait_reason ? task->wait_reason : "-", (int)task->tid);
		for (size_t k = 0; k < task->awaited_count; k++) {
			FUZZ_REQUIRE(task->awaited[k] <
				     snapshot->tasks[SS_TASK_ASYNCIO].count);
			fuzz_print(text, " awaits %zu\n", task->awaited[k]);
		}
		fuzz_frames_check(stack->frames, stack->count, text);
	}
}

struct fuzz_source {
	struct ss_gather_source source; /* first */
	struct fuzz_process *process;
};

static inline void fuzz_plan_read(const struct ss_gather_source *source,
				  struct ss_piece *pieces, size_t count)
{
	struct fuzz_process *process = ((const struct fuzz_source *)source)->process;

	for (size_t i = 0; i < count; i++)
		pieces[i].done = fuzz_process_read(process, pieces[i].address,
						   pieces[i].bytes, pieces[i].size);
}

static inline bool fuzz_plan_base(const struct ss_gather_source *source, size_t thread,
				  const struct ss_gather_step *step, uint64_t *ret)
{
	const struct ss_capture_thread *from =
		&((const struct fuzz_source *)source)
			 ->process->capture->threads.items[thread];

	if (step->base == SS_GATHER_THREAD_POINTER)
		*ret = from->thread_pointer;
	else if (step->parent < SS_REG_MAX)
		*ret = from->regs.value[step->parent];
	else
		return false;
	return true;
}

/* What the plan of the first capture copies for the second one. */
static inline void fuzz_plan_run(struct fuzz_process *process,
				 const struct ss_gather_plan *plan)
{
	const struct fuzz_source source = {
		.source = { .read = fuzz_plan_read,
			    .find_base = fuzz_plan_base,
			    .thread_count = process->capture->threads.count },
		.process = process,
	};
	struct ss_gather_plan smaller = *plan;
	struct ss_gather *gather = NULL;
	struct ss_gathered *turn = ss_vector_push(&process->capture->turns);

	FUZZ_REQUIRE(turn);
	*turn = (struct ss_gathered){};
	/* Reserving more would take longer than everything else. */
	smaller.max_nodes = SS_MIN(smaller.max_nodes, 1u << 12);
	smaller.max_bytes = SS_MIN(smaller.max_bytes, 1u << 18);
	FUZZ_REQUIRE(!ss_gather_new(&smaller, false, &gather));
	ss_gather_run(gather, &source.source);
	ss_error_free(ss_gather_give(gather, turn));
	ss_gather_free(gather);
	for (size_t i = 0; i < process->capture->threads.count; i++)
		process->capture->threads.items[i].turn = 1;
}

static inline void fuzz_capture_decode(struct fuzz_process *process,
				       struct ss_buffer *text,
				       struct ss_gather_plan *ret_plan)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = ss_snapshot_new();
	const bool recording = process->flags & FUZZ_RECORDING;
	const bool core = process->flags & FUZZ_CORE;
	const struct ss_runtimes_options options = {
		.read = core ? NULL : fuzz_process_read,
		.check = fuzz_process_check,
		.read_early = recording ? fuzz_process_read : NULL,
		.read_ranges = recording ? fuzz_process_read_ranges : NULL,
		.read_data = process,
		.native = process->flags & FUZZ_NATIVE,
		.many = recording,
	};

	FUZZ_REQUIRE(snapshot);
	struct ss_runtimes *runtimes =
		ss_runtimes_new(process->capture, process->session, snapshot, &options);
	FUZZ_REQUIRE(runtimes);
	for (size_t i = 0; i < snapshot->runtimes.count; i++) {
		const struct ss_runtime_info *info = &snapshot->runtimes.items[i];
		fuzz_print(text, "%s %s\n", info->version ? info->version : "-",
			   info->problem ? info->problem : "-");
	}
	for (size_t i = 0; i < process->capture->threads.count; i++)
		fuzz_thread_walk(process, i, runtimes, text);
	FUZZ_REQUIRE(ss_runtimes_add_locks(runtimes));
	fuzz_locks_check(snapshot, text);
	ss_runtimes_plan(runtimes);
	if (!recording) {
		ss_runtimes_add_tasks(runtimes);
		fuzz_tasks_check(snapshot, text);
	}
	*ret_plan = snapshot->runtime_plan;
	ss_runtimes_free(runtimes);
}

/* Adds what was found to text, if that is not NULL. */
static inline void fuzz_process_decode(struct fuzz_process *process,
				       struct ss_buffer *text)
{
	struct ss_gather_plan plan = {};
	struct ss_gather_plan next;

	fuzz_stacks_copy(process);
	for (int i = 0; i < (process->flags & FUZZ_RECORDING ? 3 : 1); i++) {
		fuzz_capture_decode(process, text, &next);
		ss_capture_clear_turns(process->capture);
		if (next.step_count > 0)
			plan = next;
		if (plan.step_count > 0)
			fuzz_plan_run(process, &plan);
	}
}

#endif
