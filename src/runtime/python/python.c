/*
 * CPython 3.8 to 3.14: finds _PyRuntime, and the frames of each thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/bytes.h"
#include "runtime/python/python.h"
#include "runtime/runtime.h"
#include "runtime/runtimes.h"
#include "base/graph.h"
#include "base/search.h"
#include "data/futex.h"
#include "data/gather.h"

enum {
	INTERPRETERS_MAX = 256,
	THREADS_MAX = 1 << 14,
	FRAMES_MAX = 1 << 17,
	LISTS_MAX = 4,
	/* Whose pages are read together: */
	VISITED_STATES = 128,
	VISITED_FRAMES = 64, /* of each */
	VISITED_NAME = 128,  /* characters of a name or path */
	LIST_AGAIN = 256,    /* states */
	LIST_AGAIN_RECORDED = 32,
	GILS_MAX = 512,
	PROGRAM_LOCKS_MAX = 256,
	SEMAPHORE_SIZE = 32,  /* sem_t */
	TRAMPOLINE_SIZE = 16, /* with endbr64 */
	/* In the freeze: */
	PLAN_THREADS = 6,    /* with more, fewer frames of each */
	PLAN_FRAMES = 12000, /* a deep recursion */
	PLAN_FRAMES_ALL = 2048,
	PLAN_NODES = 1 << 15,
	PLAN_BYTES = 8 << 20,
	PLAN_READS = 1 << 14, /* each frame is one, but of a page that is read once */
	/* struct _gil_runtime_state; x86-64 */
	GIL_HOLDER = 8,
	GIL_LOCKED = 16,
	GIL_CONDITION = 32, /* on which waiters wait */
	GIL_MUTEX = 80,
	GIL_SIZE = 24,
	/* From 3.12 on: enum _frameowner */
	OWNER_SHIM = 3,
	OWNER_C_STACK = 4, /* from 3.14 on */
};

/* A PyThreadState. */
struct state {
	uint64_t address;
	uint64_t interpreter;
	uint64_t id;
	uint64_t native;
	/* The thread on whose native stack its frames were found; or NULL */
	const struct ss_capture_thread *thread;
};

struct range {
	uint64_t start;
	uint64_t end;
};

struct python {
	const struct ss_runtime_process *process;
	struct ss_python_layout layout;
	uint64_t runtime;     /* address of _PyRuntime */
	uint64_t interpreter; /* the first one */
	int32_t own_module;   /* that is nothing but CPython; -1: none */
	struct range loop;    /* code of the evaluation loop; empty: not known */
	int32_t module;	      /* of both, and of the callers of trampolines */
	uint64_t trampoline;  /* address of their template; 0: none, or not known */
	bool trampoline_known;
	SS_VECTOR(struct state) states;
	struct ss_python_codes codes;
	const char *problem; /* of all threads; or NULL */
};

static bool is_pointer(uint64_t address)
{
	return address != 0 && address % 8 == 0;
}

/* Finding it --------------------------------------------------------------- */

enum symbol {
	SYMBOL_RUNTIME,
	SYMBOL_VERSION,
	SYMBOL_LOOP,
	SYMBOL_TRAMPOLINE,
	SYMBOLS,
};

static const char *const symbol_names[] = {
	[SYMBOL_RUNTIME] = "_PyRuntime",
	[SYMBOL_VERSION] = "Py_Version", /* from 3.11 on */
	[SYMBOL_LOOP] = "_PyEval_EvalFrameDefault",
	[SYMBOL_TRAMPOLINE] = "_Py_trampoline_func_start", /* from 3.12 on */
};

/* A module that may be the runtime. */
struct found {
	const struct ss_module_impl *module;
	int32_t index; /* of the module */
	uint64_t bias;
	struct ss_elf_symbol symbols[SYMBOLS];
};

static bool find_in_module(const struct ss_runtime_process *process, int32_t index,
			   struct found *ret)
{
	*ret = (struct found){ .module = process->capture->modules.items[index],
			       .index = index };
	/* A program into which libpython.a was linked need not export it. */
	return ss_module_symbols_find(process, index, symbol_names, SYMBOLS, ".PyRuntime",
				      ret->symbols, &ret->bias);
}

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Whether a module is CPython and nothing else: a library, or a program that only executes scripts. A
   program of another name has functions of its own. */
static bool is_only_python(const char *path)
{
	static const char program[] = "python";
	const char *name = ss_path_base(path);

	if (has_prefix(name, "libpython3"))
		return true;
	if (!has_prefix(name, program))
		return false;
	name += strlen(program);
	return name[strspn(name, "0123456789.")] == '\0';
}

/* If there is a library, the program only uses it. */
static bool find_module(const struct ss_runtime_process *process, struct found *ret)
{
	const struct ss_capture *capture = process->capture;

	for (size_t i = 0; i < capture->modules.count; i++) {
		const char *path = capture->modules.items[i]->pub.path;
		if (has_prefix(ss_path_base(path), "libpython3") &&
		    find_in_module(process, (int32_t)i, ret))
			return true;
	}
	for (size_t i = 0; i < capture->modules.count; i++) {
		const char *path = capture->modules.items[i]->pub.path;
		bool program = capture->process.executable &&
			       strcmp(path, capture->process.executable) == 0;
		if ((program || has_prefix(ss_path_base(path), "python")) &&
		    find_in_module(process, (int32_t)i, ret))
			return true;
	}
	return false;
}

/* The version in a file name: "python3.9", "libpython3.9.so.1.0". 0: none. */
static uint32_t version_of_path(const char *path)
{
	const char *name = ss_path_base(path);
	unsigned minor = 0;

	if (has_prefix(name, "lib"))
		name += strlen("lib");
	if (sscanf(name, "python3.%2u", &minor) != 1)
		return 0;
	return 3u << 24 | minor << 16;
}

static uint32_t find_version(const struct ss_runtime_process *process,
			     const struct found *found)
{
	const struct ss_elf_symbol *symbol = &found->symbols[SYMBOL_VERSION];
	uint32_t version = 0;

	if (symbol->address)
		return ss_memory_read_u32(process->memory, symbol->address + found->bias,
					  &version) ?
			       version :
			       0;
	version = ss_python_layout_version(
		process->memory, found->symbols[SYMBOL_RUNTIME].address + found->bias);
	return version ? version : version_of_path(found->module->pub.path);
}

static const char *describe_version(const struct ss_runtime_process *process,
				    uint32_t version)
{
	char text[48] = "CPython";
	unsigned micro = version >> 8 & 0xff;

	/* They fit. */
	if (version && (version & 0xffff))
		(void)snprintf(text, sizeof(text), "CPython %u.%u.%u", version >> 24,
			       version >> 16 & 0xff, micro);
	else if (version)
		(void)snprintf(text, sizeof(text), "CPython %u.%u", version >> 24,
			       version >> 16 & 0xff);
	return ss_intern_string(process->strings, text);
}

/* Thread states ------------------------------------------------------------ */

/* Reads a thread state; false unless it belongs to the interpreter. */
static bool read_state(const struct python *python, const struct ss_memory *memory,
		       uint64_t address, struct state *ret, uint64_t *ret_next,
		       uint64_t *ret_frame)
{
	const struct ss_python_layout *layout = &python->layout;
	uint8_t bytes[SS_PYTHON_HEADER_MAX];

	if (!is_pointer(address) ||
	    !ss_memory_read(memory, address, bytes, layout->thread_size))
		return false;
	*ret = (struct state){
		.address = address,
		.interpreter = ss_load_u64(bytes, layout->thread_interp),
		.id = ss_load_u64(bytes, layout->thread_id),
		.native = layout->thread_native ?
				  ss_load_u64(bytes, layout->thread_native) :
				  0,
	};
	*ret_next = ss_load_u64(bytes, layout->thread_next);
	*ret_frame = ss_load_u64(bytes, layout->thread_frame);
	return true;
}

/* Before 3.11: the kernel's id of a thread, as glibc keeps it at its thread pointer (struct pthread of
   x86-64: tcb, self, tid). 0: not known. */
static uint64_t read_glibc_tid(const struct ss_memory *memory, uint64_t pointer)
{
	enum { TCB = 0, SELF = 16, TID = 720 };
	uint64_t tcb = 0;
	uint64_t self = 0;
	uint32_t tid = 0;

	if (!is_pointer(pointer) || !ss_memory_read_u64(memory, pointer + TCB, &tcb) ||
	    !ss_memory_read_u64(memory, pointer + SELF, &self) || tcb != pointer ||
	    self != pointer || !ss_memory_read_u32(memory, pointer + TID, &tid))
		return 0;
	return tid <= INT32_MAX ? tid : 0;
}

/* Adds the thread states of an interpreter; *ret_whole: to the end of their list. The limit ends a
   cycle. False without memory. */
static bool list_threads(struct python *python, const struct ss_memory *memory,
			 uint64_t interpreter, bool *ret_whole)
{
	uint64_t address = 0;
	uint64_t frame;

	*ret_whole = ss_memory_read_u64(
		memory, interpreter + python->layout.interp_threads, &address);
	while (address && python->states.count < THREADS_MAX) {
		struct state state;
		*ret_whole =
			read_state(python, memory, address, &state, &address, &frame) &&
			state.interpreter == interpreter;
		if (!*ret_whole)
			return true;
		if (!python->layout.thread_native)
			state.native = read_glibc_tid(memory, state.id);
		struct state *slot = ss_vector_push(&python->states);
		if (!slot)
			return false;
		*slot = state;
	}
	return true;
}

/* A thread that ends while the list is read ends the list: then it is read again. The main thread is the
   last one. */
static bool add_states(struct python *python, uint64_t interpreter)
{
	const size_t first = python->states.count;
	/* To read each state of a long list anew takes longer than threads live, and a recorder is asked
	   for each. */
	const size_t max = python->process->recording ? LIST_AGAIN_RECORDED : LIST_AGAIN;
	bool whole = false;

	if (!list_threads(python, python->process->memory, interpreter, &whole))
		return false;
	for (int i = 1; i < LISTS_MAX && !whole && python->states.count - first <= max;
	     i++) {
		const size_t again = python->states.count;
		if (!list_threads(python, python->process->fresh, interpreter, &whole))
			return false;
		const size_t count = python->states.count - again;
		if (count == 0)
			return true;
		if (count >= again - first) {
			memmove(&python->states.items[first],
				&python->states.items[again],
				count * sizeof(*python->states.items));
			python->states.count = first + count;
		} else {
			python->states.count = again;
		}
	}
	return true;
}

static bool find_states(struct python *python)
{
	const struct ss_memory *memory = python->process->memory;
	uint64_t interpreter = 0;

	if (!ss_memory_read_u64(memory, python->runtime + python->layout.interpreters,
				&interpreter))
		return true;
	python->interpreter = interpreter;
	for (int i = 0; is_pointer(interpreter) && i < INTERPRETERS_MAX; i++) {
		if (!add_states(python, interpreter))
			return false;
		if (!ss_memory_read_u64(memory, interpreter + python->layout.interp_next,
					&interpreter))
			return true;
	}
	return true;
}

/* The frames of some thread states, to have their pages read together */
struct frames_visit {
	const struct python *python;
	size_t begin;
	size_t end;
};

static void visit_code(const struct python *python, uint64_t address)
{
	const struct ss_memory *memory = python->process->memory;
	char text[4 * VISITED_NAME + 1];
	struct ss_python_identity identity;
	uint64_t word;

	if (!ss_python_identity_read(&python->layout, memory, address, &identity))
		return;
	const uint64_t names[] = { identity.name, identity.filename, identity.qualname };
	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++)
		(void)ss_python_string_start(&python->layout, memory, names[i],
					     VISITED_NAME, text);
	(void)ss_memory_read_u64(memory, identity.lines, &word);
}

static void visit_state(const struct python *python, const struct state *state)
{
	const struct ss_python_layout *layout = &python->layout;
	const struct ss_memory *memory = python->process->memory;
	uint8_t bytes[SS_PYTHON_HEADER_MAX];
	struct state found;
	uint64_t visited = 0;
	uint64_t frame;
	uint64_t next;

	if (!read_state(python, memory, state->address, &found, &next, &frame) ||
	    (layout->frames == SS_PYTHON_CFRAME &&
	     !ss_memory_read_u64(memory, frame + layout->cframe_frame, &frame)))
		return;
	for (size_t i = 0; i < VISITED_FRAMES && is_pointer(frame); i++) {
		if (!ss_memory_read(memory, frame, bytes, layout->frame_size))
			return;
		const uint64_t code = ss_python_frame_code(layout, bytes);
		if (code != visited)
			visit_code(python, code);
		visited = code;
		frame = ss_load_u64(bytes, layout->frame_previous);
	}
}

static void visit_states(void *data)
{
	const struct frames_visit *visit = data;

	for (size_t i = visit->begin; i < visit->end; i++)
		visit_state(visit->python, &visit->python->states.items[i]);
}

/* Visits the names of all modules, among which some are searched for later. */
static void visit_modules(void *data)
{
	const struct python *python = data;
	const struct ss_memory *memory = python->process->memory;
	uint64_t modules;
	uint64_t module;

	if (ss_memory_read_u64(memory,
			       python->interpreter + python->layout.interp_modules,
			       &modules))
		(void)ss_python_dict_find(&python->layout, memory, modules, "threading",
					  &module);
}

/* Most of what the walks of all threads need. A few threads of many are walked without. */
static void read_together(struct python *python)
{
	const size_t count = python->states.count;

	python->process->read_together(python->process->memory, visit_modules, python);
	if (python->process->capture->threads.count < count / 2)
		return;
	for (size_t i = 0; i < count; i += VISITED_STATES) {
		struct frames_visit visit = { python, i,
					      SS_MIN(i + VISITED_STATES, count) };
		python->process->read_together(python->process->memory, visit_states,
					       &visit);
	}
}

static void close_python(void *state)
{
	struct python *python = state;

	ss_python_codes_deinit(&python->codes);
	ss_vector_free(&python->states);
	free(python);
}

static bool open_python(const struct ss_runtime_process *process,
			struct ss_runtime_info *info, void **ret)
{
	const char *why = "its version is not known";
	struct found found;

	if (!find_module(process, &found))
		return true;
	uint32_t version = find_version(process, &found);
	struct python *python = calloc(1, sizeof(*python));
	info->version = describe_version(process, version);
	if (!python || !info->version) {
		free(python);
		return false;
	}
	*ret = python;
	const struct ss_elf_symbol *loop = &found.symbols[SYMBOL_LOOP];
	python->process = process;
	python->own_module = is_only_python(found.module->pub.path) ? found.index : -1;
	python->runtime = found.symbols[SYMBOL_RUNTIME].address + found.bias;
	python->module = found.index;
	if (found.symbols[SYMBOL_TRAMPOLINE].address)
		python->trampoline =
			found.symbols[SYMBOL_TRAMPOLINE].address + found.bias;
	python->codes = (struct ss_python_codes){ .layout = &python->layout,
						  .memory = process->memory,
						  .fresh = process->fresh,
						  .strings = process->strings };
	if (loop->address && loop->size)
		python->loop = (struct range){
			.start = loop->address + found.bias,
			.end = loop->address + found.bias + loop->size,
		};
	if (version == 0 ||
	    !ss_python_layout_find(version, process->capture->arch->name, process->memory,
				   python->runtime, &python->layout, &why)) {
		python->problem =
			ss_runtime_describe_problem(process, info->version, why);
		if (!python->problem)
			return false;
	}
	info->problem = python->problem;
	/* In a stripped program, any of its code may be the loop; in a version that is not known, the loop
	   may be of several functions. */
	if (python->problem && (python->loop.end == 0 || python->own_module >= 0))
		python->loop = (struct range){
			.start = found.module->pub.base,
			.end = found.module->pub.base + found.module->pub.size,
		};
	if (!python->problem && process->read_ranges)
		python->codes.kept = ss_python_kept_begin(process, &python->layout);
	if (python->problem)
		return true;
	if (!find_states(python))
		return false;
	read_together(python);
	return true;
}

/* The frames of a thread --------------------------------------------------- */

/* How sure it is that a thread state is that of a thread. */
enum match {
	MATCH_NONE,
	MATCH_POSSIBLE, /* its frames must prove it */
	MATCH_CERTAIN,
};

/* One walk. */
struct walk {
	struct python *python;
	struct ss_runtime_thread *thread;
	size_t left;	/* frames */
	size_t native;	/* loops must be further out than this one */
	size_t pending; /* the first call whose loop is not known yet */
	enum match match;
	bool no_memory;
};

/* Whether code is of the extension module of greenlets. */
static bool is_greenlet(const struct python *python, uint64_t pc)
{
	const struct ss_capture *capture = python->process->capture;
	const struct ss_area *area = ss_capture_find_area(capture, pc);

	return area && area->module >= 0 &&
	       ss_python_is_greenlet(capture->modules.items[area->module]->pub.path);
}

/*
 * Greenlets take turns on one native stack: greenlet copies to the heap what is in the way, so
 * what is further out than its functions that began the current one is left over from others.
 * The frames of a greenlet are a chain of their own: there are no calls further out. While it
 * switches, stack and thread state may be those of two greenlets. In 3.11 and 3.12 that is seen:
 * the chain leads through the native stack.
 */
static void end_at_greenlet(const struct python *python, struct ss_runtime_thread *thread)
{
	const size_t inner = thread->calls.items[0].native;
	size_t native = thread->calls.items[thread->calls.count - 1].native + 1;

	for (size_t i = 0; i < inner && !python->layout.has_cframe; i++) {
		if (is_greenlet(python, thread->frames[i].pc)) {
			thread->problem = "a greenlet is being switched to";
			return;
		}
	}
	while (native < thread->count && !is_greenlet(python, thread->frames[native].pc))
		native++;
	while (native < thread->count && is_greenlet(python, thread->frames[native].pc))
		native++;
	thread->end = native < thread->count ? native : 0;
}

/* Ends the walk. missing: memory is not there. */
static bool fail(struct walk *walk, const char *problem, bool missing)
{
	walk->thread->problem = problem;
	walk->thread->missing = missing;
	return false;
}

static bool fail_read(struct walk *walk)
{
	return fail(walk, "their memory could not be read", true);
}

/* The native frame whose locals contain an address. */
static bool find_native(const struct walk *walk, uint64_t address, size_t *ret)
{
	const struct ss_runtime_thread *thread = walk->thread;

	for (size_t i = walk->native; i + 1 < thread->count; i++) {
		if (address >= thread->frames[i].sp &&
		    address < thread->frames[i + 1].sp) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* The frame has the code object at the moment of the stack, and it still is that one. */
static bool find_code(struct walk *walk, uint64_t address,
		      const struct ss_python_code **ret)
{
	struct ss_python_identity identity;

	if (!ss_python_identity_read(&walk->python->layout, walk->thread->memory, address,
				     &identity))
		return fail_read(walk);
	if (!ss_python_codes_find(&walk->python->codes, address, ret)) {
		walk->no_memory = true;
		return false;
	}
	if (!*ret)
		return fail(walk, "a frame does not lead to a code object", false);
	if (!ss_python_identity_equal(&identity, &(*ret)->identity))
		return fail(walk, "a code object was replaced while it was read", true);
	return true;
}

/* Appends the call of a frame. */
static bool add_call(struct walk *walk, const uint8_t *frame)
{
	const struct ss_python_layout *layout = &walk->python->layout;
	uint64_t address = ss_python_frame_code(layout, frame);
	const struct ss_python_code *code = NULL;
	uint32_t line = 0;
	int64_t offset;

	if (!find_code(walk, address, &code))
		return false;
	if (!ss_python_offset(layout, frame, address, &offset) ||
	    !ss_python_line(layout->lines, code->table, code->table_size,
			    code->identity.first_line, offset, &line))
		return fail(walk, "an instruction is not in its line table", false);
	struct ss_runtime_call *call = ss_vector_push(&walk->thread->calls);
	if (!call) {
		walk->no_memory = true;
		return false;
	}
	*call = (struct ss_runtime_call){ .function = code->name,
					  .file = code->file,
					  .line = line };
	return true;
}

/* The calls since the last time are executed by the native frame at an index. */
static void place_calls(struct walk *walk, size_t native)
{
	struct ss_runtime_thread *thread = walk->thread;

	for (; walk->pending < thread->calls.count; walk->pending++)
		thread->calls.items[walk->pending].native = (uint32_t)native;
	walk->native = native + 1;
}

static bool read_frame(struct walk *walk, uint64_t address, uint8_t *ret)
{
	if (walk->left-- == 0)
		return fail(walk, "there are too many, or they form a cycle", false);
	if (!is_pointer(address))
		return fail(walk, "a pointer to a frame is not valid", false);
	return ss_memory_read(walk->thread->memory, address, ret,
			      walk->python->layout.frame_size) ||
	       fail_read(walk);
}

/* 3.11: the frames of one evaluation loop, from the innermost one. The outermost one has the
   mark, and is followed by *ret_outer. */
static bool walk_loop(struct walk *walk, uint64_t frame, uint64_t *ret_outer)
{
	const struct ss_python_layout *layout = &walk->python->layout;
	uint8_t bytes[SS_PYTHON_HEADER_MAX];

	do {
		if (!read_frame(walk, frame, bytes))
			return false;
		if (bytes[layout->frame_entry] > 1)
			return fail(walk, "a frame is not valid", false);
		if (!add_call(walk, bytes))
			return false;
		frame = ss_load_u64(bytes, layout->frame_previous);
	} while (!bytes[layout->frame_entry]);
	*ret_outer = frame;
	return true;
}

/* 3.11: each evaluation loop has a struct _PyCFrame among its locals. The outermost one is in
   the thread state, and has no frames. */
static bool walk_cframes(struct walk *walk, const struct state *state, uint64_t cframe)
{
	const struct ss_python_layout *layout = &walk->python->layout;
	const uint64_t root = state->address;
	bool first = true;
	uint64_t expected = 0;

	for (;;) {
		uint64_t frame;
		uint64_t previous;
		size_t native;
		if (!is_pointer(cframe) ||
		    !ss_memory_read_u64(walk->thread->memory,
					cframe + layout->cframe_frame, &frame) ||
		    !ss_memory_read_u64(walk->thread->memory,
					cframe + layout->cframe_previous, &previous))
			return fail_read(walk);
		if (!first && frame != expected)
			return fail(walk, "their chains do not agree", true);
		if (previous == 0)
			return frame == 0 && cframe - root < SS_PYTHON_HEADER_MAX ?
				       true :
				       fail(walk, "their chain does not end", false);
		if (!find_native(walk, cframe, &native))
			return fail(walk, "an evaluation loop is not on its native stack",
				    false);
		/* That of a greenlet, in the function that began it */
		if (!first && frame == 0 &&
		    is_greenlet(walk->python, walk->thread->frames[native].pc)) {
			walk->native = native + 1; /* the next one is further out */
			cframe = previous;
			continue;
		}
		if (!walk_loop(walk, frame, &expected))
			return false;
		place_calls(walk, native);
		cframe = previous;
		first = false;
	}
}

/* From 3.12 on: the outermost frame of each evaluation loop is followed by a frame without
   code among the locals of the loop. */
static bool walk_shims(struct walk *walk, uint64_t frame)
{
	const struct ss_python_layout *layout = &walk->python->layout;
	uint8_t bytes[SS_PYTHON_HEADER_MAX];
	size_t native;

	for (; frame; frame = ss_load_u64(bytes, layout->frame_previous)) {
		if (!read_frame(walk, frame, bytes))
			return false;
		uint8_t owner = bytes[layout->frame_entry];
		if (owner > (layout->minor >= 14 ? OWNER_C_STACK : OWNER_SHIM))
			return fail(walk, "a frame is not valid", false);
		if (owner < OWNER_SHIM) {
			if (!add_call(walk, bytes))
				return false;
			continue;
		}
		/* From 3.14 on the thread state has one more, below all others. */
		if (walk->pending == walk->thread->calls.count &&
		    ss_load_u64(bytes, layout->frame_previous) == 0)
			break;
		if (!find_native(walk, frame, &native))
			return fail(walk, "an evaluation loop is not on its native stack",
				    false);
		place_calls(walk, native);
	}
	return walk->pending == walk->thread->calls.count ||
	       fail(walk, "their chain does not end", true);
}

/* Whether the native stack up to the caller of a frame has a word: functions keep what they
   work with in registers, which others save there. */
static bool is_on_stack(const struct walk *walk, size_t native, uint64_t word)
{
	const struct ss_runtime_thread *thread = walk->thread;
	const size_t last = SS_MIN(native + 1, thread->count - 1);
	uint64_t found;

	for (uint64_t at = thread->frames[0].sp; at < thread->frames[last].sp; at += 8) {
		if (!ss_memory_read_u64(thread->memory, at, &found))
			return false;
		if (found == word)
			return true;
	}
	return false;
}

static bool is_in_loop(const struct walk *walk, const struct ss_native_frame *frame)
{
	const struct range *loop = &walk->python->loop;

	return frame->pc - loop->start < loop->end - loop->start;
}

/* To 3.10: one evaluation loop for each frame, found by its code. A loop may have no frame
   yet, or no longer: the innermost one. */
static bool walk_counted(struct walk *walk, uint64_t frame)
{
	const struct ss_python_layout *layout = &walk->python->layout;
	struct ss_runtime_thread *thread = walk->thread;
	const uint64_t first = frame;
	uint8_t bytes[SS_PYTHON_HEADER_MAX];
	size_t native = 0;
	size_t loops = 0;
	size_t end = 0;

	if (frame && walk->pending > 0)
		return fail(walk, "it has several thread states", false);
	for (; frame; frame = ss_load_u64(bytes, layout->frame_previous)) {
		if (!read_frame(walk, frame, bytes))
			return false;
		if (!ss_python_has_type(walk->python->process->memory, frame, "frame"))
			return fail(walk, "a frame is not valid", false);
		if (!add_call(walk, bytes))
			return false;
	}
	if (!first)
		return true;
	/* A greenlet has no loops further out than the function that began it. */
	while (end < thread->count &&
	       (loops < thread->calls.count ||
		!is_greenlet(walk->python, thread->frames[end].pc)))
		loops += is_in_loop(walk, &thread->frames[end++]);
	if (end == thread->count && !thread->complete)
		return fail(walk, "its native stack is not complete", false);
	if (loops != thread->calls.count && loops != thread->calls.count + 1)
		return fail(walk,
			    "there are not as many evaluation loops on its native stack",
			    false);
	for (size_t i = 0, skip = loops - thread->calls.count; i < end; i++) {
		if (!is_in_loop(walk, &thread->frames[i]))
			continue;
		if (skip > 0) {
			skip--;
			continue;
		}
		native = walk->pending == 0 ? i : native;
		thread->calls.items[walk->pending++].native = (uint32_t)i;
		walk->native = i + 1;
	}
	return walk->match == MATCH_CERTAIN || is_on_stack(walk, native, first) ||
	       fail(walk, "its frame is not on its native stack", false);
}

static bool is_in_same_area(const struct ss_capture *capture,
			    const struct ss_capture_thread *thread, uint64_t address)
{
	const struct ss_area *area =
		ss_capture_find_area(capture, ss_regs_sp(capture->arch, &thread->regs));

	return area && address >= area->start && address < area->end;
}

static pid_t inner_tid(const struct ss_capture_thread *thread)
{
	return thread->inner_tid ? thread->inner_tid : thread->tid;
}

/* Whether a thread state is provably that of another captured thread. */
static bool is_of_other(const struct python *python, const struct state *state,
			const struct ss_capture_thread *thread)
{
	const struct ss_capture *capture = python->process->capture;

	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *other = &capture->threads.items[i];
		if (other == thread)
			continue;
		if (state->native && state->native == (uint64_t)inner_tid(other))
			return true;
		if (other->thread_pointer ?
			    ss_arch_is_pthread(capture->arch, other->thread_pointer,
					       state->id) :
			    !state->native && is_in_same_area(capture, other, state->id))
			return true;
	}
	return false;
}

/*
 * Whether a thread state is that of a thread. The C library's id of a thread is its thread
 * pointer, which is at the end of its stack, unless it is the main thread. (From glibc 2.42 on the
 * stacks of several threads may be one area, so that is used only without the kernel's id.) The
 * kernel's id in the main thread's state is that of the parent after fork().
 */
static enum match match_state(const struct python *python, const struct state *state,
			      const struct ss_capture_thread *thread)
{
	const struct ss_capture *capture = python->process->capture;
	bool main = thread->tid == capture->process.pid;

	if (thread->thread_pointer)
		return ss_arch_is_pthread(capture->arch, thread->thread_pointer,
					  state->id) ?
			       MATCH_CERTAIN :
			       MATCH_NONE;
	if (state->native && state->native == (uint64_t)inner_tid(thread))
		return MATCH_CERTAIN;
	if (!main && !state->native && is_in_same_area(capture, thread, state->id))
		return MATCH_CERTAIN;
	return main && !is_of_other(python, state, thread) ? MATCH_POSSIBLE : MATCH_NONE;
}

static bool walk_state(struct walk *walk, const struct state *known)
{
	const struct ss_python_layout *layout = &walk->python->layout;
	struct state state;
	uint64_t next;
	uint64_t frame;

	if (!read_state(walk->python, walk->thread->memory, known->address, &state, &next,
			&frame))
		return fail_read(walk);
	if (state.interpreter != known->interpreter || state.id != known->id)
		return fail(walk, "its thread state has changed", true);
	if (layout->frames == SS_PYTHON_CFRAME)
		return walk_cframes(walk, &state, frame);
	if (layout->frames == SS_PYTHON_COUNT)
		return walk_counted(walk, frame);
	if (layout->has_cframe &&
	    !ss_memory_read_u64(walk->thread->memory, frame + layout->cframe_frame,
				&frame))
		return fail_read(walk);
	return walk_shims(walk, frame);
}

static bool executes_loop(const struct python *python,
			  const struct ss_runtime_thread *thread)
{
	return ss_any(thread->count, i,
		      thread->frames[i].pc - python->loop.start <
			      python->loop.end - python->loop.start);
}

/* Walks a thread state. One that only may be the thread's and does not fit is another thread's. A
   thread may have states of several interpreters, whose calls are between each other's. False: the
   walk ends. */
static bool try_state(struct walk *walk, const struct state *state, enum match match)
{
	struct ss_runtime_thread *thread = walk->thread;
	const size_t count = thread->calls.count;

	if (walk_state(walk, state)) {
		walk->no_memory = !ss_runtime_calls_merge(thread->calls.items, count,
							  thread->calls.count);
		return !walk->no_memory;
	}
	if (match == MATCH_CERTAIN || thread->missing || walk->no_memory)
		return false;
	thread->calls.count = count;
	thread->problem = NULL;
	return true;
}

static bool walk_thread(void *data, struct ss_runtime_thread *thread)
{
	struct python *python = data;

	if (python->problem) {
		if (executes_loop(python, thread))
			thread->problem = python->problem;
		return true;
	}
	const char *whole_problem = python->process->capture->whole_problem;
	for (size_t i = 0; i < python->states.count; i++) {
		struct state *state = &python->states.items[i];
		const size_t calls = thread->calls.count;
		enum match match = match_state(python, state, thread->thread);
		struct walk walk = { .python = python,
				     .thread = thread,
				     .left = FRAMES_MAX,
				     .pending = thread->calls.count,
				     .match = match };
		if (match != MATCH_NONE && !try_state(&walk, state, match))
			return !walk.no_memory;
		if (thread->calls.count > calls)
			state->thread = thread->thread;
	}
	if (thread->calls.count == 0 && executes_loop(python, thread))
		thread->problem = whole_problem ? whole_problem : "they were not found";
	if (thread->calls.count > 0)
		end_at_greenlet(python, thread);
	return true;
}

static bool is_in_module(const struct python *python, uint64_t pc, int32_t module)
{
	const struct ss_area *area = ss_capture_find_area(python->process->capture, pc);

	return area && area->module == module && (area->prot & PROT_EXEC);
}

static bool is_own_code(void *data, uint64_t pc)
{
	const struct python *python = data;

	return python->own_module >= 0 && is_in_module(python, pc, python->own_module);
}

/*
 * With -X perf each function is called through a trampoline of its own, a copy of a template in
 * anonymous memory, which has no CFI (Python/asm_trampoline.S of CPython 3.12 and 3.13). One of
 * another shape may have a frame pointer, as those of aarch64 do.
 */
static bool knows_trampoline(struct python *python)
{
	/* sub $8, %rsp; call *%rcx; add $8, %rsp; ret */
	static const uint8_t known[] = { 0x48, 0x83, 0xec, 0x08, 0xff, 0xd1,
					 0x48, 0x83, 0xc4, 0x08, 0xc3 };
	uint8_t code[TRAMPOLINE_SIZE];

	if (python->trampoline && !python->trampoline_known) {
		python->trampoline_known =
			ss_memory_read(python->process->memory, python->trampoline, code,
				       sizeof(code)) &&
			memmem(code, sizeof(code), known, sizeof(known));
		if (!python->trampoline_known)
			python->trampoline = 0;
	}
	return python->trampoline_known;
}

static enum ss_runtime_step step_trampoline(void *data, struct ss_runtime_frame *frame)
{
	struct python *python = data;
	const struct ss_capture *capture = python->process->capture;
	const struct ss_arch *arch = capture->arch;
	const struct ss_area *area =
		ss_capture_find_area(capture, ss_regs_pc(arch, frame->regs));
	uint64_t pc;
	uint64_t at = ss_regs_sp(arch, frame->regs) + sizeof(pc);

	if (!frame->call || !area || area->module >= 0 || !knows_trampoline(python) ||
	    !ss_memory_read_u64(frame->stack, at, &pc) ||
	    !is_in_module(python, pc, python->module))
		return SS_RUNTIME_STEP_NONE;
	ss_regs_set(frame->regs, arch->sp, at + sizeof(pc));
	ss_regs_set(frame->regs, arch->pc, pc);
	return SS_RUNTIME_STEP_OK;
}

/* Of which thread a state is that only may be the thread's is found by a walk. */
static bool skip_thread(void *data, const struct ss_capture_thread *thread)
{
	struct python *python = data;

	for (size_t i = 0; i < python->states.count; i++) {
		struct state *state = &python->states.items[i];
		const enum match match = match_state(python, state, thread);
		if (match == MATCH_POSSIBLE)
			return false;
		if (match == MATCH_CERTAIN)
			state->thread = thread;
	}
	return true;
}

/* The GIL ------------------------------------------------------------------ */

static const struct ss_capture_thread *find_thread(const struct python *python,
						   uint64_t address)
{
	const struct ss_capture *capture = python->process->capture;
	const struct state *state = NULL;

	for (size_t i = 0; i < python->states.count && !state; i++) {
		if (python->states.items[i].address == address)
			state = &python->states.items[i];
	}
	if (state && state->thread)
		return state->thread;
	for (size_t i = 0; state && i < capture->threads.count; i++) {
		if (match_state(python, state, &capture->threads.items[i]) ==
		    MATCH_CERTAIN)
			return &capture->threads.items[i];
	}
	return NULL;
}

static bool read_gil(const struct python *python, const struct ss_memory *memory,
		     uint64_t interpreter, uint64_t *ret, uint8_t bytes[GIL_SIZE])
{
	uint64_t gil = python->runtime + python->layout.gil;

	if (python->layout.gil_in_interpreter &&
	    !ss_memory_read_u64(memory, interpreter + python->layout.gil, &gil))
		return false;
	*ret = gil;
	return is_pointer(gil) && ss_memory_read(memory, gil, bytes, GIL_SIZE);
}

/* The holder stays named after it has released the lock. */
static bool find_gil(const struct python *python, const struct ss_memory *copied,
		     uint64_t interpreter, struct ss_runtime_found_lock *ret)
{
	uint8_t bytes[GIL_SIZE];
	uint64_t gil = 0;
	int32_t locked;

	*ret = (struct ss_runtime_found_lock){ .type = SS_LOCK_PYTHON_GIL };
	if (!read_gil(python, copied, interpreter, &gil, bytes)) {
		ret->late = true;
		if (!read_gil(python, python->process->fresh, interpreter, &gil, bytes))
			return false;
	}
	memcpy(&locked, bytes + GIL_LOCKED, sizeof(locked));
	ret->address = gil;
	ret->start = gil + GIL_CONDITION;
	ret->end = gil + GIL_MUTEX;
	if (locked == 1)
		ret->owner = find_thread(python, ss_load_u64(bytes, GIL_HOLDER));
	return true;
}

static size_t find_gils(const struct python *python, const struct ss_memory *copied,
			struct ss_runtime_found_lock *ret)
{
	uint64_t interpreter = python->interpreter;
	size_t count = 0;

	while (is_pointer(interpreter) && count < GILS_MAX &&
	       find_gil(python, copied, interpreter, &ret[count])) {
		count++;
		/* Up to 3.11 there is one for all. */
		if (!python->layout.gil_in_interpreter ||
		    !ss_memory_read_u64(python->process->memory,
					interpreter + python->layout.interp_next,
					&interpreter))
			break;
	}
	return count;
}

/* Locks of the program -------------------------------------------------------- */

/* A thread whose id in its thread state is the same. */
static const struct ss_capture_thread *find_thread_of_id(const struct python *python,
							 uint64_t id)
{
	for (size_t i = 0; id && i < python->states.count; i++) {
		if (python->states.items[i].id == id)
			return find_thread(python, python->states.items[i].address);
	}
	return NULL;
}

/* The lock that a thread waits for, and whether with a time limit. */
static size_t find_awaited(const struct ss_runtime_found_lock *locks, size_t count,
			   const struct ss_capture_thread *thread, bool *timed)
{
	struct ss_futex futex;

	if (!thread || !ss_futex_parse(&thread->syscall, &futex))
		return SS_GRAPH_NONE;
	for (size_t i = 0; i < count; i++) {
		if (futex.address - locks[i].start >= locks[i].end - locks[i].start)
			continue;
		*timed |= futex.timed;
		return i;
	}
	return SS_GRAPH_NONE;
}

/* A cycle of locks whose owners try to get the next one with a time limit: they run at times, but if
   the owners are the same when they are read again, they were in the capture. */
static void mark_cycles(const struct python *python, const struct ss_python_lock *locks,
			struct ss_runtime_found_lock *found, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool timed = false;
		size_t length = 0;
		size_t at = i;
		do {
			const struct ss_python_lock *lock = &locks[at];
			at = lock->recursive && found[at].owner &&
					     ss_python_lock_has_same_owner(
						     python->process->fresh, lock) ?
				     find_awaited(found, count, found[at].owner, &timed) :
				     SS_GRAPH_NONE;
		} while (at != SS_GRAPH_NONE && at != i && ++length < count);
		found[i].cyclic = at == i && timed;
	}
}

static size_t find_program_locks(const struct python *python,
				 const struct ss_memory *copied,
				 struct ss_runtime_found_lock *ret)
{
	struct ss_python_lock locks[PROGRAM_LOCKS_MAX];
	const struct ss_memory *memory = python->process->memory;
	size_t count = ss_python_locks_find(python->process, &python->layout, copied,
					    locks, PROGRAM_LOCKS_MAX);
	uint64_t work_left = SS_PYTHON_LOCKS_WORK;
	bool search = false;

	for (size_t i = 0; i < count; i++)
		search |= !locks[i].recursive;
	for (size_t i = 0; search && i < python->states.count; i++) {
		const struct state *state = &python->states.items[i];
		if (state->thread)
			ss_python_joins_find(memory, &python->layout, state->address,
					     state->thread, locks, count);
	}
	for (size_t i = 0; search && i < python->states.count; i++) {
		const struct state *state = &python->states.items[i];
		if (state->thread)
			ss_python_locks_search(memory, &python->layout, state->address,
					       state->thread, locks, count, &work_left);
	}
	for (size_t i = 0; i < count; i++) {
		const struct ss_python_lock *lock = &locks[i];
		ret[i] = (struct ss_runtime_found_lock){
			.type = lock->recursive ? SS_LOCK_PYTHON_RLOCK :
						  SS_LOCK_PYTHON_LOCK,
			/* As where the owner is not known, for instance in a recording */
			.address = lock->shown,
			.start = lock->semaphore,
			.end = lock->semaphore + SEMAPHORE_SIZE,
			.owner = lock->recursive ?
					 find_thread_of_id(python, lock->owner_id) :
				 lock->several ? NULL :
						 lock->owner,
			.late = true,
			.only_owned = !lock->recursive && !lock->certain,
		};
		if (!lock->joined && !lock->joined_id)
			continue;
		ret[i].type = SS_LOCK_THREAD;
		ret[i].owner = lock->joined ? lock->joined :
					      find_thread_of_id(python, lock->joined_id);
		ret[i].waiter = lock->waiter;
		ret[i].lasting = true;
	}
	mark_cycles(python, locks, ret, count);
	return count;
}

static size_t find_locks(void *data, const struct ss_memory *copied,
			 struct ss_runtime_found_lock *ret)
{
	const struct python *python = data;

	if (python->problem)
		return 0;
	size_t count = find_gils(python, copied, ret);
	if (!python->process->recording)
		count += find_program_locks(python, copied, ret + count);
	return count;
}

/* Tasks of asyncio --------------------------------------------------------- */

/* The thread states of an interpreter: count of them in ret. */
static size_t list_states(const struct python *python, uint64_t interpreter,
			  uint64_t *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < python->states.count; i++) {
		if (python->states.items[i].interpreter == interpreter)
			ret[count++] = python->states.items[i].address;
	}
	return count;
}

/* Whether the process has loaded the extension module of greenlets. */
static bool has_greenlets(const struct python *python)
{
	const struct ss_capture *capture = python->process->capture;

	return ss_any(capture->modules.count, i,
		      ss_python_is_greenlet(capture->modules.items[i]->pub.path));
}

static bool find_tasks(void *data, struct ss_runtime_tasks *ret)
{
	struct python *python = data;
	const bool greenlets = !python->process->recording && has_greenlets(python);
	uint64_t reads_left = SS_PYTHON_TASK_READS;
	struct ss_python_greenlets_left left = {
		.objects = SS_PYTHON_OBJECTS,
		.greenlets = SS_PYTHON_GREENLETS,
		.calls = SS_PYTHON_GREENLET_CALLS,
		.calls_again = SS_PYTHON_GREENLET_CALLS,
	};
	_cleanup_free_ uint64_t *threads =
		calloc(python->states.count + 1, sizeof(*threads));
	struct ss_python_tasks_source source = {
		.process = python->process,
		.layout = &python->layout,
		.codes = &python->codes,
		.interpreter = python->interpreter,
		.threads = threads,
		.reads_left = &reads_left,
		.left = &left,
	};

	if (!threads)
		return false;
	for (int i = 0;
	     !python->problem && is_pointer(source.interpreter) && i < INTERPRETERS_MAX;
	     i++) {
		source.thread_count = list_states(python, source.interpreter, threads);
		if (!ss_python_tasks_read(&source, ret) ||
		    (greenlets && !ss_python_greenlets_read(&source, ret)))
			return false;
		if (!ss_memory_read_u64(python->process->memory,
					source.interpreter + python->layout.interp_next,
					&source.interpreter))
			break;
	}
	for (size_t i = 0; i < ret->items.count; i++) {
		struct ss_runtime_task *task = &ret->items.items[i];
		const struct ss_runtime_task *last = i ? task - 1 : NULL;
		if (task->greenlet)
			continue;
		task->thread = last && last->loop_thread == task->loop_thread ?
				       last->thread :
				       find_thread_of_id(python, task->loop_thread);
	}
	return true;
}

/* Names of threads ----------------------------------------------------------- */

/* The thread of a state. The kernel's id of a main thread may be that of its parent: see
   match_state(). */
static bool add_name(const struct python *python, const struct state *state,
		     const struct ss_python_names *names, struct ss_runtime_names *ret)
{
	const struct ss_capture_thread *thread =
		state->thread ? state->thread : find_thread(python, state->address);

	if (!thread)
		return true;
	const bool main = thread->tid == python->process->capture->process.pid;
	const struct ss_python_name *name = ss_python_names_find(
		names, state->id, main ? 0 : (uint64_t)inner_tid(thread));
	struct ss_runtime_name *slot = ss_vector_push(&ret->items);
	if (!slot)
		return false;
	*slot = (struct ss_runtime_name){ .thread = thread,
					  .name = name ? name->name : NULL,
					  .id = state->id };
	return true;
}

static bool find_names(void *data, struct ss_runtime_names *ret)
{
	struct python *python = data;
	uint64_t interpreter = python->interpreter;
	bool ok = true;

	for (int i = 0;
	     ok && !python->problem && is_pointer(interpreter) && i < INTERPRETERS_MAX;
	     i++) {
		struct ss_python_names names = {};
		ok = ss_python_names_read(python->process, &python->layout, interpreter,
					  &names);
		for (size_t k = 0; ok && k < python->states.count; k++) {
			if (python->states.items[k].interpreter == interpreter)
				ok = add_name(python, &python->states.items[k], &names,
					      ret);
		}
		ss_vector_free(&names.list);
		if (!ss_memory_read_u64(python->process->memory,
					interpreter + python->layout.interp_next,
					&interpreter))
			break;
	}
	return ok;
}

/* The plan ----------------------------------------------------------------- */

/* Appends a step; returns its number. */
static uint32_t add_step(struct ss_gather_plan *plan, struct ss_gather_step step)
{
	if (step.mask == 0)
		step.mask = UINT64_MAX;
	if (step.max_nodes == 0)
		step.max_nodes = 1;
	plan->steps[plan->step_count] = step;
	return plan->step_count++;
}

/* The frames of the thread states that are the nodes of a step, or to which a field of them
   points, and their code objects. Three steps, or four. */
static void add_frames(const struct ss_python_layout *layout, struct ss_gather_plan *plan,
		       uint32_t parent, uint32_t max_frames)
{
	uint32_t field = layout->thread_frame;

	if (layout->has_cframe) {
		parent = add_step(plan, (struct ss_gather_step){
						.base = SS_GATHER_POINTER,
						.parent = parent,
						.field = field,
						.size = layout->cframe_frame +
							layout->cframe_previous + 8,
					});
		field = layout->cframe_frame;
	}
	parent = add_step(plan, (struct ss_gather_step){ .base = SS_GATHER_POINTER,
							 .parent = parent,
							 .field = field,
							 .size = layout->frame_size,
							 .next = layout->frame_previous,
							 .max_nodes = max_frames });
	(void)add_step(plan, (struct ss_gather_step){ .base = SS_GATHER_POINTER,
						      .parent = parent,
						      .field = layout->frame_code,
						      .mask = layout->frame_code_mask,
						      .size = layout->code_size });
}

/* The thread that holds the GIL: the one that runs Python code, whichever that is then. */
static void add_holder(const struct python *python, struct ss_gather_plan *plan)
{
	const struct ss_python_layout *layout = &python->layout;
	struct ss_gather_step gil = { .base = SS_GATHER_ADDRESS,
				      .address = python->runtime + layout->gil,
				      .size = GIL_SIZE };
	uint32_t step;

	if (layout->gil_in_interpreter) {
		step = add_step(plan,
				(struct ss_gather_step){
					.base = SS_GATHER_ADDRESS,
					.address = python->interpreter + layout->gil,
					.size = 8,
				});
		gil = (struct ss_gather_step){ .base = SS_GATHER_POINTER,
					       .parent = step,
					       .size = GIL_SIZE };
	}
	step = add_step(plan, gil);
	step = add_step(plan, (struct ss_gather_step){ .base = SS_GATHER_POINTER,
						       .parent = step,
						       .field = GIL_HOLDER,
						       .size = layout->thread_size });
	add_frames(layout, plan, step, PLAN_FRAMES);
}

/* The thread of a state: that of a captured thread, or what the state says: the id in its pid namespace. For
   a recording, which knows them, all are such ids. */
static pid_t find_tid(const struct state *state, const struct python *python,
		      const struct ss_runtime_wanted *wanted, bool *ret_wanted)
{
	*ret_wanted = false;
	for (size_t i = 0; i < wanted->count && !*ret_wanted; i++) {
		*ret_wanted = match_state(python, state, wanted->threads[i]) !=
			      MATCH_NONE;
		if (*ret_wanted)
			return wanted->others ? wanted->threads[i]->tid :
						inner_tid(wanted->threads[i]);
	}
	return state->native <= INT32_MAX ? (pid_t)state->native : 0;
}

/* The states of the threads, or of all. Their addresses are known, so one read gets all of
   them. Returns how many. */
static uint32_t add_states_to_plan(const struct python *python,
				   const struct ss_runtime_wanted *wanted, bool all,
				   struct ss_gather_plan *plan)
{
	for (size_t i = 0;
	     i < python->states.count && plan->root_count < SS_GATHER_ROOTS_MAX; i++) {
		const struct state *state = &python->states.items[i];
		bool is_wanted;
		pid_t tid = find_tid(state, python, wanted, &is_wanted);
		if (!is_wanted && !all)
			continue;
		plan->roots[plan->root_count++] = (struct ss_gather_root){
			.address = state->address, .thread_pointer = state->id, .tid = tid
		};
	}
	return plan->root_count;
}

static bool plan_threads(void *data, const struct ss_runtime_wanted *wanted,
			 struct ss_gather_plan *ret)
{
	const struct python *python = data;

	if (python->problem || !python->interpreter)
		return false;
	ret->max_nodes = PLAN_NODES;
	ret->max_bytes = PLAN_BYTES;
	ret->max_reads = PLAN_READS;
	/* A recording finds the states of new threads in the next tick. */
	if (wanted->others)
		add_holder(python, ret);
	/* In mode stop, sleeping threads do not run either until the copy is made. */
	const bool all = wanted->all ||
			 python->process->capture->process.mode == SS_MODE_STOP;
	const uint32_t count = add_states_to_plan(python, wanted, all, ret);
	if (count == 0)
		return ret->step_count > 0;
	uint32_t step = add_step(
		ret, (struct ss_gather_step){ .base = SS_GATHER_ROOT,
					      .size = python->layout.thread_size });
	add_frames(&python->layout, ret, step,
		   count > PLAN_THREADS ? PLAN_FRAMES_ALL : PLAN_FRAMES);
	return true;
}

const struct ss_runtime ss_runtime_python = {
	.kind = SS_FRAME_PYTHON,
	.open = open_python,
	.close = close_python,
	.step = step_trampoline,
	.walk = walk_thread,
	.is_own_code = is_own_code,
	.skip = skip_thread,
	.locks = find_locks,
	.tasks = find_tasks,
	.names = find_names,
	.plan = plan_threads,
};
