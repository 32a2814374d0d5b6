/*
 * Makes a seed for fuzz_runtimes.c from a real process, and leaves out what does not change the
 * result:
 *
 *	seed_runtimes PID FLAGS SEED
 *
 * FLAGS: of enum fuzz_process_flags. Shows what is decoded from the seed. Fails if that is not what
 * is decoded from the process.
 */
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "elf/image.h"
#include "elf/tables.h"
#include "fuzz_process.h"

enum { THREADS_MAX = 12, SYMBOLS = 600, STACK_REST = 2048 };

struct symbol {
	const struct ss_module_impl *module;
	const char *name;
	uint64_t offset; /* from the start of the module */
	uint64_t size;
};

struct thread {
	const struct ss_capture_thread *from;
	struct ss_native_frame *frames;
	size_t count;
	size_t calls;
	bool complete;
	struct ss_buffer expected;
};

struct seed {
	pid_t pid;
	struct fuzz_process *memory; /* pages only */
	const struct ss_capture *capture;
	struct symbol symbols[SYMBOLS];
	size_t symbol_count;
	struct thread threads[THREADS_MAX];
	size_t thread_count;
	bool collecting;
	uint8_t flags;
	struct ss_buffer expected;
	uint64_t reads;	    /* of the last decoding */
	uint64_t max_reads; /* of the first one */
};

static struct seed seed;

/* What is asked ------------------------------------------------------------ */

static void read_page(uint64_t address)
{
	uint8_t bytes[FUZZ_PAGE];
	struct iovec local = { bytes, FUZZ_PAGE };
	struct iovec remote = { (void *)(uintptr_t)address, FUZZ_PAGE };

	if (!fuzz_page_find(seed.memory, address) &&
	    process_vm_readv(seed.pid, &local, 1, &remote, 1, 0) == FUZZ_PAGE)
		fuzz_memory_add(seed.memory, address, bytes, FUZZ_PAGE);
}

static size_t read_process(void *data, uint64_t address, void *bytes, size_t size)
{
	(void)data;
	/* What is read ahead is not needed. */
	size = SS_MIN(size, (size_t)(FUZZ_PAGE - address % FUZZ_PAGE));
	read_page(address & ~(uint64_t)(FUZZ_PAGE - 1));
	return fuzz_process_read(seed.memory, address, bytes, size);
}

static bool check_thread(void *data, pid_t tid)
{
	(void)data;
	(void)tid;
	return true;
}

static void add_symbol(struct ss_module_impl *module, const char *name,
		       const struct ss_elf_symbol *found)
{
	_cleanup_(ss_image_cleanup) struct ss_image *image = ss_image_new(module);

	if (image && seed.symbol_count < SYMBOLS)
		seed.symbols[seed.symbol_count++] =
			(struct symbol){ .module = module,
					 .name = name,
					 .offset = found->address +
						   ss_image_bias(image, module) -
						   module->pub.base,
					 .size = found->size };
}

bool __real_ss_elf_find_section_address(const struct ss_module_impl *module,
					const char *name, struct ss_elf_symbol *ret);
bool __wrap_ss_elf_find_section_address(const struct ss_module_impl *module,
					const char *name, struct ss_elf_symbol *ret);

bool __wrap_ss_elf_find_section_address(const struct ss_module_impl *module,
					const char *name, struct ss_elf_symbol *ret)
{
	const bool found = __real_ss_elf_find_section_address(module, name, ret);

	if (found)
		add_symbol(ss_drop_const(module), name, ret);
	return found;
}

bool __real_ss_elf_find_symbols(struct ss_module_impl *module, const char *const *names,
				size_t count, struct ss_elf_symbol *ret);
bool __wrap_ss_elf_find_symbols(struct ss_module_impl *module, const char *const *names,
				size_t count, struct ss_elf_symbol *ret);

bool __wrap_ss_elf_find_symbols(struct ss_module_impl *module, const char *const *names,
				size_t count, struct ss_elf_symbol *ret)
{
	const bool found = __real_ss_elf_find_symbols(module, names, count, ret);

	for (size_t i = 0; found && ret[0].address && i < count; i++) {
		if (ret[i].address)
			add_symbol(module, names[i], &ret[i]);
	}
	return found;
}

bool __real_ss_runtimes_apply(struct ss_runtimes *runtimes,
			      const struct ss_capture_thread *thread,
			      const struct ss_runtimes_stack *stack,
			      struct ss_runtimes_frames *ret);
bool __wrap_ss_runtimes_apply(struct ss_runtimes *runtimes,
			      const struct ss_capture_thread *thread,
			      const struct ss_runtimes_stack *stack,
			      struct ss_runtimes_frames *ret);

/* Keeps those with the most calls. */
static void add_thread(const struct ss_capture_thread *thread,
		       const struct ss_runtimes_stack *stack, size_t calls,
		       const struct ss_frame *frames, size_t count)
{
	struct thread *to = &seed.threads[seed.thread_count];

	if (seed.thread_count < THREADS_MAX) {
		seed.thread_count++;
	} else {
		to = seed.threads;
		for (size_t i = 1; i < THREADS_MAX; i++)
			to = seed.threads[i].calls < to->calls ? &seed.threads[i] : to;
		if (to->calls >= calls)
			return;
		free(to->frames);
		ss_buffer_deinit(&to->expected);
	}
	*to = (struct thread){ .from = thread,
			       .frames = calloc(stack->count, sizeof(*to->frames)),
			       .count = stack->count,
			       .calls = calls,
			       .complete = stack->complete };
	memcpy(to->frames, stack->natives, stack->count * sizeof(*to->frames));
	fuzz_frames_check(frames, count, &to->expected);
}

bool __wrap_ss_runtimes_apply(struct ss_runtimes *runtimes,
			      const struct ss_capture_thread *thread,
			      const struct ss_runtimes_stack *stack,
			      struct ss_runtimes_frames *ret)
{
	const bool ok = __real_ss_runtimes_apply(runtimes, thread, stack, ret);

	size_t calls = 0;
	for (size_t i = 0; ret->items && i < ret->count; i++)
		calls += ret->items[i].kind != SS_FRAME_NATIVE;
	if (seed.collecting && calls > 0 && stack->count <= FUZZ_FRAMES_MAX)
		add_thread(thread, stack, calls, ret->items, ret->count);
	return ok;
}

/* Writing it --------------------------------------------------------------- */

static void put(struct ss_buffer *out, uint64_t value, size_t size)
{
	ss_buffer_add(out, &value, size);
}

static void put_text(struct ss_buffer *out, const char *text)
{
	put(out, strlen(text), 1);
	ss_buffer_add(out, text, strlen(text));
}

static bool is_wanted(const struct ss_module_impl *module)
{
	for (size_t i = 0; i < seed.symbol_count; i++) {
		if (seed.symbols[i].module == module)
			return true;
	}
	return false;
}

static void put_modules(struct ss_buffer *out, int *numbers)
{
	const struct ss_capture *capture = seed.capture;
	int count = 0;

	for (size_t i = 0; i < capture->modules.count; i++)
		numbers[i] = is_wanted(capture->modules.items[i]) ? count++ : -1;
	put(out, (uint64_t)count, 1);
	for (size_t i = 0; i < capture->modules.count; i++) {
		const struct ss_module_impl *module = capture->modules.items[i];
		const char *slash = strrchr(module->pub.path, '/');
		uint64_t symbols = 0;
		if (numbers[i] < 0)
			continue;
		put(out, module->pub.base, 8);
		put(out, module->pub.base + module->pub.size, 8);
		put_text(out, slash ? slash : module->pub.path);
		for (size_t k = 0; k < seed.symbol_count; k++)
			symbols += seed.symbols[k].module == module;
		put(out, symbols, 2);
		for (size_t k = 0; k < seed.symbol_count; k++) {
			const struct symbol *symbol = &seed.symbols[k];
			if (symbol->module != module)
				continue;
			put_text(out, symbol->name);
			put(out, symbol->offset, 8);
			put(out, symbol->size, 8);
		}
	}
}

/* Those of stacks, of code, and of objects that were read. */
static bool is_area(const struct ss_area *area)
{
	for (size_t i = 0; area->module < 0 && i < seed.memory->pages.count; i++) {
		const uint64_t address = seed.memory->pages.items[i].address;
		if (address >= area->start && address < area->end)
			return true;
	}
	for (size_t i = 0; i < seed.thread_count; i++) {
		for (size_t k = 0; k < seed.threads[i].count; k++) {
			const struct ss_native_frame *frame = &seed.threads[i].frames[k];
			if ((frame->pc >= area->start && frame->pc < area->end) ||
			    (frame->sp >= area->start && frame->sp < area->end))
				return true;
		}
	}
	return false;
}

static void put_areas(struct ss_buffer *out, const int *numbers)
{
	uint64_t count = 0;

	for (size_t i = 0; i < seed.capture->areas.count; i++)
		count += is_area(&seed.capture->areas.items[i]);
	put(out, count, 2);
	for (size_t i = 0; i < seed.capture->areas.count; i++) {
		const struct ss_area *area = &seed.capture->areas.items[i];
		if (!is_area(area))
			continue;
		put(out, area->start, 8);
		put(out, area->end, 8);
		put(out, area->prot, 1);
		put(out, (uint64_t)(area->module < 0 ? 0 : numbers[area->module] + 1), 1);
	}
}

static void put_thread(struct ss_buffer *out, const struct thread *thread)
{
	const struct ss_capture_thread *from = thread->from;
	const uint64_t sp = thread->frames[0].sp;
	const uint64_t end = thread->frames[thread->count - 1].sp + STACK_REST;

	put(out, (uint64_t)from->tid, 4);
	put(out, from->thread_pointer, 8);
	put(out, (uint64_t)from->syscall.number, 8);
	for (size_t i = 0; i < SS_SYSCALL_ARGS; i++)
		put(out, from->syscall.args[i], 8);
	put(out, from->regs.valid, 8);
	for (size_t i = 0; i < SS_REG_MAX; i++) {
		if (from->regs.valid >> i & 1)
			put(out, from->regs.value[i], 8);
	}
	put(out, sp, 8);
	put(out, end - sp, 8);
	put(out, thread->count, 2);
	for (size_t i = 0; i < thread->count; i++) {
		const struct ss_native_frame *frame = &thread->frames[i];
		put(out,
		    (frame->call ? FUZZ_FRAME_CALL : 0) |
			    (frame->guess ? FUZZ_FRAME_GUESS : 0) |
			    (thread->complete ? FUZZ_FRAME_LAST : 0),
		    1);
		put(out, frame->pc, 8);
		put(out, frame->sp, 8);
		put(out, frame->fp, 8);
	}
}

enum { GAP = 16 };

/* Calls add for each piece with bytes that are not 0, or counts them. */
static uint64_t put_pieces(struct ss_buffer *out)
{
	uint64_t count = 0;

	for (size_t i = 0; i < seed.memory->pages.count; i++) {
		const struct fuzz_page *page = &seed.memory->pages.items[i];
		const uint64_t before = count;
		for (size_t at = 0; at < FUZZ_PAGE;) {
			size_t end = at;
			if (!page->bytes[at]) {
				at++;
				continue;
			}
			for (size_t k = at; k < FUZZ_PAGE && k < end + GAP; k++)
				end = page->bytes[k] ? k + 1 : end;
			count++;
			if (out) {
				put(out, page->address + at, 8);
				put(out, end - at, 2);
				ss_buffer_add(out, page->bytes + at, end - at);
			}
			at = end;
		}
		if (count > before)
			continue;
		/* It is there. */
		count++;
		if (out) {
			put(out, page->address, 8);
			put(out, 1, 2);
			put(out, 0, 1);
		}
	}
	return count;
}

static void write_seed(struct ss_buffer *out, bool memory)
{
	int *numbers = calloc(seed.capture->modules.count + 1, sizeof(*numbers));

	ss_buffer_clear(out);
	put(out, seed.flags, 1);
	put_modules(out, numbers);
	put_areas(out, numbers);
	put(out, seed.thread_count, 1);
	for (size_t i = 0; i < seed.thread_count; i++)
		put_thread(out, &seed.threads[i]);
	put(out, 0, 1); /* changes */
	put(out, memory ? put_pieces(NULL) : 0, 2);
	if (memory)
		(void)put_pieces(out);
	free(numbers);
}

/* Making it smaller -------------------------------------------------------- */

/* Without writing and reading the memory each time. */
static void decode(struct ss_buffer *ret)
{
	static struct ss_buffer head;

	if (!head.size)
		write_seed(&head, false);
	head.bytes[0] = (char)seed.flags;
	struct fuzz_process *process =
		fuzz_process_new((const uint8_t *)head.bytes, head.size);
	memcpy(&process->pages, &seed.memory->pages, sizeof(process->pages));
	ss_buffer_clear(ret);
	fuzz_process_decode(process, ret);
	seed.reads = process->reads;
	memset(&process->pages, 0, sizeof(process->pages));
	fuzz_process_free(process);
}

static bool is_same(const struct ss_buffer *wanted)
{
	struct ss_buffer now = {};

	decode(&now);
	/* Not more work, as by offsets that are 0 */
	bool same = seed.reads <= seed.max_reads && now.size == wanted->size &&
		    memcmp(now.bytes, wanted->bytes, now.size) == 0;
	ss_buffer_deinit(&now);
	return same;
}

/* Drops pages, many at once first. */
static void drop_pages(const struct ss_buffer *wanted)
{
	struct fuzz_page *pages = seed.memory->pages.items;

	for (size_t many = 256; many > 0; many /= 4) {
		for (size_t end = seed.memory->pages.count; end > 0;) {
			const size_t begin = end > many ? end - many : 0;
			const size_t count = end - begin;
			const size_t after = seed.memory->pages.count - end;
			struct fuzz_page dropped[256];
			memcpy(dropped, pages + begin, count * sizeof(*pages));
			memmove(pages + begin, pages + end, after * sizeof(*pages));
			seed.memory->pages.count -= count;
			if (!is_same(wanted)) {
				memmove(pages + end, pages + begin,
					after * sizeof(*pages));
				memcpy(pages + begin, dropped, count * sizeof(*pages));
				seed.memory->pages.count += count;
			}
			end = begin;
		}
	}
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

/* Sets parts of a page to 0, large ones first. */
static void clear_parts(uint8_t *bytes, size_t size, const struct ss_buffer *wanted)
{
	uint8_t saved[FUZZ_PAGE];

	if (is_zero(bytes, size))
		return;
	memcpy(saved, bytes, size);
	memset(bytes, 0, size);
	if (is_same(wanted))
		return;
	memcpy(bytes, saved, size);
	if (size <= 8)
		return;
	clear_parts(bytes, size / 2, wanted);
	clear_parts(bytes + size / 2, size / 2, wanted);
}

/* The tables of HotSpot: entries that are not needed are removed, since one that is 0 ends
   them. */
static void shorten_table(const char *name, size_t entry, const struct ss_buffer *wanted)
{
	uint64_t table = 0;

	for (size_t i = 0; i < seed.symbol_count; i++) {
		if (strcmp(seed.symbols[i].name, name) == 0)
			table = seed.symbols[i].module->pub.base + seed.symbols[i].offset;
	}
	if (!table || fuzz_process_read(seed.memory, table, &table, 8) != 8)
		return;
	size_t count = 0;
	for (uint64_t first = 1; first && count < 16384; count++) {
		if (fuzz_process_read(seed.memory, table + count * entry, &first, 8) != 8)
			break;
	}
	const size_t size = count * entry;
	uint8_t *bytes = calloc(2, size);
	uint8_t *shorter = bytes + size;
	if (fuzz_process_read(seed.memory, table, bytes, size) != size)
		return;
	for (size_t many = 256; many > 0; many /= 4) {
		for (size_t at = 0; at + many < count;) {
			memcpy(shorter, bytes, size);
			memmove(shorter + at * entry, bytes + (at + many) * entry,
				(count - at - many) * entry);
			memset(shorter + (count - many) * entry, 0, many * entry);
			fuzz_memory_add(seed.memory, table, shorter, size);
			if (is_same(wanted)) {
				memcpy(bytes, shorter, size);
				count -= many;
				continue;
			}
			fuzz_memory_add(seed.memory, table, bytes, size);
			at += many;
		}
	}
	fprintf(stderr, "%s: %zu entries are needed\n", name, count);
	free(bytes);
}

static void shorten(void)
{
	struct ss_buffer wanted = {};

	decode(&wanted);
	seed.max_reads = seed.reads;
	(void)fwrite(wanted.bytes, 1, wanted.size, stdout);
	drop_pages(&wanted);
	shorten_table("gHotSpotVMStructs", 48, &wanted);
	shorten_table("gHotSpotVMTypes", 40, &wanted);
	shorten_table("gHotSpotVMIntConstants", 16, &wanted);
	shorten_table("gHotSpotVMLongConstants", 16, &wanted);
	drop_pages(&wanted);
	for (size_t i = 0; i < seed.memory->pages.count; i++)
		clear_parts(seed.memory->pages.items[i].bytes, FUZZ_PAGE, &wanted);
	ss_buffer_deinit(&wanted);
}

/* -------------------------------------------------------------------------- */

static void check(struct ss_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "%s\n", ss_error_message(error));
	exit(1);
}

static struct ss_capture *take(struct ss_target *target)
{
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = SS_MODE_STOP };
	struct ss_capture *capture = NULL;

	check(ss_capture_take(target, &options, &capture));
	return capture;
}

/* Every line of expected is in what the seed gives. */
static bool has_expected(const struct ss_buffer *found)
{
	char *line = seed.expected.bytes;

	ss_buffer_add(&seed.expected, "", 1);
	for (char *next = line; line && *line; line = next) {
		next = strchr(line, '\n') + 1;
		if (!memmem(found->bytes, found->size, line, (size_t)(next - line))) {
			fprintf(stderr, "missing: %.*s", (int)(next - line), line);
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	struct ss_target *target = NULL;
	struct ss_session *session = NULL;
	struct ss_snapshot *snapshot = NULL;
	struct ss_buffer bytes = {};

	if (argc < 4)
		return 64;
	seed.pid = atoi(argv[1]);
	seed.memory = calloc(1, sizeof(*seed.memory));
	check(ss_target_open(seed.pid, &target));
	check(ss_session_new(NULL, &session));
	struct ss_capture *capture = take(target);
	seed.capture = capture;
	const struct ss_unwind_options options = { .size = sizeof(options),
						   .read = read_process,
						   .check = check_thread,
						   .tasks = true };
	seed.collecting = true;
	check(ss_capture_unwind(capture, session, &options, &snapshot));
	seed.collecting = false;
	for (size_t i = 0; i < seed.thread_count; i++)
		ss_buffer_add(&seed.expected, seed.threads[i].expected.bytes,
			      seed.threads[i].expected.size);
	fuzz_locks_check(snapshot, &seed.expected);
	fuzz_tasks_check(snapshot, &seed.expected);
	for (size_t i = 0; i < seed.thread_count; i++) {
		const struct thread *thread = &seed.threads[i];
		if (thread->from->lock.size)
			read_page(thread->from->lock.address &
				  ~(uint64_t)(FUZZ_PAGE - 1));
		for (uint64_t at = thread->frames[0].sp & ~(uint64_t)(FUZZ_PAGE - 1);
		     at < thread->frames[thread->count - 1].sp + STACK_REST;
		     at += FUZZ_PAGE)
			read_page(at);
	}
	decode(&bytes);
	if (!has_expected(&bytes)) {
		(void)fwrite(bytes.bytes, 1, bytes.size, stderr);
		return 1;
	}
	seed.flags = (uint8_t)atoi(argv[2]) | FUZZ_SEED;
	shorten();
	write_seed(&bytes, true);
	FILE *file = fopen(argv[3], "w");
	if (!file || fwrite(bytes.bytes, 1, bytes.size, file) != bytes.size ||
	    fclose(file) != 0)
		return 1;
	fprintf(stderr, "%s: %zu bytes\n", argv[3], bytes.size);
	return 0;
}
