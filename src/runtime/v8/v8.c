/*
 * V8 in programs that export it, as node does: the JavaScript functions of each thread.
 *
 * All generated code keeps the frame pointer, so the native stack is complete, and each frame of
 * a function has the function object at a fixed place (src/execution/frame-constants.h). An
 * interpreted function is executed by builtins of the program; it is recognised by its frame,
 * in which the bytecode must be that of the function. Other functions are recognised by their
 * code: it is searched before the pc, and must have been made for the function of the frame.
 * Builtins stay native frames, which have names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/bytes.h"
#include "base/search.h"
#include "runtime/runtime.h"
#include "runtime/v8/v8.h"
#include "data/gather.h"

enum {
	FUNCTION_SIZE = 64,
	/* Types that follow that of functions are those of constructors. */
	FUNCTION_TYPES = 20,
	/* In the freeze: */
	PLAN_FRAMES = 1024,
	PLAN_NODES = 1 << 14,
	PLAN_BYTES = 4 << 20,
	PLAN_READS = 4096,
	RBP = 6, /* DWARF number */
};

struct v8 {
	const struct ss_runtime_process *process;
	struct ss_v8_layout layout;
	struct ss_v8_heap heap;
	uint64_t tables_left;
	const char *problem; /* of all threads; or NULL */
};

/* Finding it --------------------------------------------------------------- */

static bool read_symbols(const struct ss_runtime_process *process, int32_t index,
			 struct ss_v8_symbol ret[SS_V8_SYMBOLS])
{
	struct ss_elf_symbol symbols[SS_V8_SYMBOLS];
	uint64_t bias = 0;

	if (!ss_module_symbols_find(process, index, ss_v8_symbols, SS_V8_SYMBOLS, NULL,
				    symbols, &bias))
		return false;
	for (size_t i = 0; i < SS_V8_SYMBOLS; i++) {
		uint64_t address = symbols[i].address;
		ret[i] = (struct ss_v8_symbol){
			.address = address ? address + bias : 0,
			.size = symbols[i].size,
		};
	}
	return true;
}

/* The program, or node's library. */
static bool find_module(const struct ss_runtime_process *process,
			struct ss_v8_symbol ret[SS_V8_SYMBOLS])
{
	const struct ss_capture *capture = process->capture;

	for (size_t i = 0; i < capture->modules.count; i++) {
		const char *path = capture->modules.items[i]->pub.path;
		bool program = capture->process.executable &&
			       strcmp(path, capture->process.executable) == 0;
		bool library = strncmp(ss_path_base(path), "libnode.so", 10) == 0;
		if ((program || library) && read_symbols(process, (int32_t)i, ret))
			return true;
	}
	return false;
}

static const char *describe(const struct ss_runtime_process *process,
			    const struct ss_v8_layout *layout)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "V8 %u.%u.%u.%u", layout->major, layout->minor,
		       layout->build, layout->patch); /* fits */
	return ss_intern_string(process->strings, text);
}

static void close_v8(void *state)
{
	struct v8 *v8 = state;

	ss_v8_heap_deinit(&v8->heap);
	free(v8);
}

static bool open_v8(const struct ss_runtime_process *process,
		    struct ss_runtime_info *info, void **ret)
{
	struct ss_v8_symbol symbols[SS_V8_SYMBOLS];

	if (!find_module(process, symbols))
		return true;
	struct v8 *v8 = calloc(1, sizeof(*v8));
	if (!v8)
		return false;
	*ret = v8;
	v8->process = process;
	v8->heap = (struct ss_v8_heap){ .layout = &v8->layout,
					.memory = process->memory,
					.after = process->after,
					.strings = process->strings,
					.tables_left = &v8->tables_left };
	v8->tables_left = SS_V8_TABLES_MAX;
	if (!ss_v8_version_read(process->memory, symbols, &v8->layout)) {
		v8->problem = "its version is not known";
	} else {
		info->version = describe(process, &v8->layout);
		if (!info->version) {
			free(v8);
			*ret = NULL;
			return false;
		}
		if (strcmp(process->capture->arch->name, "x86_64") != 0)
			v8->problem = "its layout on this processor is not known";
		else
			(void)ss_v8_layout_read(process->memory, symbols, &v8->layout,
						&v8->problem);
	}
	if (v8->problem) {
		v8->problem = ss_runtime_describe_problem(
			process, info->version ? info->version : "V8", v8->problem);
		if (!v8->problem)
			return false;
	}
	info->problem = v8->problem;
	return true;
}

/* The frames of a thread --------------------------------------------------- */

/* A frame that may be one of a function. */
struct frame {
	size_t index;
	bool call;     /* pc is a return address */
	bool in_file;  /* the pc is in code of a file, which no compiler of V8 has made */
	uint64_t area; /* where that of the pc begins */
	uint64_t pc;
	uint64_t fp;
	uint8_t bytes[SS_V8_FRAME_BYTES];
};

struct walk {
	struct v8 *v8;
	struct ss_runtime_thread *thread;
	bool has_caller; /* the first call was found by walk_caller() */
	bool no_memory;
};

static uint64_t slot(const struct frame *frame, int32_t offset)
{
	return ss_load_u64(frame->bytes + SS_V8_FRAME_BYTES + offset, 0);
}

static bool add_call(struct walk *walk, const struct frame *frame,
		     const struct ss_v8_function *function, uint32_t position)
{
	struct ss_v8_heap *heap = &walk->v8->heap;
	uint32_t line = 0;

	if (position > 0 && !ss_v8_function_line(heap, function, position - 1, &line)) {
		walk->no_memory = true;
		return false;
	}
	struct ss_runtime_call *call = ss_vector_push(&walk->thread->calls);
	if (!call) {
		walk->no_memory = true;
		return false;
	}
	*call = (struct ss_runtime_call){ .function = function->name,
					  .file = ss_v8_function_file(heap, function),
					  .line = line,
					  .native = (uint32_t)frame->index };
	return true;
}

/* Ends the walk: the calls of the thread are not known. */
static bool fail(struct walk *walk, const char *problem, bool missing)
{
	walk->thread->problem = problem;
	walk->thread->missing = missing;
	return false;
}

/* Finds a function, which must be the one that the thread had at the moment of its stack. */
static bool find_function(struct walk *walk, uint64_t address,
			  const uint8_t bytes[SS_V8_SHARED_SIZE],
			  const struct ss_v8_function **ret)
{
	struct v8 *v8 = walk->v8;

	if (!ss_v8_function_find(&v8->heap, address, ret)) {
		walk->no_memory = true;
		return false;
	}
	if (!*ret)
		return fail(walk,
			    "a function is not valid, or was moved while it was read",
			    false);
	if (bytes) {
		struct ss_v8_identity identity = ss_v8_identity_of(&v8->layout, bytes);
		if (!ss_v8_identity_equal(&identity, &(*ret)->identity))
			return fail(walk, "a function was moved while it was read", true);
	}
	return true;
}

/* The function object of a frame. */
struct shared {
	uint64_t address; /* 0: the frame is not that of a function */
	uint64_t data;
	uint8_t bytes[SS_V8_SHARED_SIZE];
};

static bool is_in(uint16_t type, uint32_t first, uint32_t last)
{
	return type >= first && type <= last;
}

/* Reads the function of a frame from memory of the moment of the stack. False: that was not
   copied. */
static bool read_shared(const struct walk *walk, const struct frame *frame,
			struct shared *ret)
{
	const struct ss_memory *memory = walk->thread->memory;
	const struct ss_v8_layout *layout = &walk->v8->layout;
	const struct ss_v8_heap *heap = &walk->v8->heap;
	uint64_t function = slot(frame, layout->frame_function);
	uint64_t map;

	ret->address = 0;
	if (!ss_v8_is_object(function))
		return true;
	if (!ss_v8_word(memory, function, 0, &map))
		return false;
	if (!is_in(ss_v8_type(heap, memory, function), layout->type_function,
		   layout->type_function + FUNCTION_TYPES))
		return true;
	uint64_t address;
	if (!ss_v8_word(memory, function, layout->function_shared, &address) ||
	    (ss_v8_is_object(address) &&
	     !ss_memory_read(memory, address - 1, ret->bytes, sizeof(ret->bytes))))
		return false;
	if (!ss_v8_is_object(address) ||
	    ss_v8_type(heap, memory, address) != layout->type_shared)
		return true;
	ret->address = address;
	ret->data = ss_load_u64(ret->bytes, layout->shared_data);
	return true;
}

/* The places of an interpreted frame have what it must have. */
static bool looks_interpreted(const struct v8 *v8, const struct frame *frame)
{
	const struct ss_v8_layout *layout = &v8->layout;
	uint64_t offset = slot(frame, layout->frame_offset);

	return ss_v8_is_object(slot(frame, layout->frame_context)) &&
	       ss_v8_is_object(slot(frame, layout->frame_function)) &&
	       ss_v8_is_object(slot(frame, layout->frame_bytecode)) &&
	       ss_v8_is_smi(offset) &&
	       ss_v8_smi(offset) >= (int32_t)layout->bytecode_data - 1;
}

/*
 * A frame of the interpreter, or that of a builtin that was entered from a function without a
 * frame of its own.
 */
static bool walk_interpreted(struct walk *walk, const struct frame *frame)
{
	const struct ss_v8_layout *layout = &walk->v8->layout;
	const struct ss_v8_function *function;
	struct shared shared;
	uint32_t position = 0;

	if (!looks_interpreted(walk->v8, frame))
		return true;
	if (!read_shared(walk, frame, &shared))
		return fail(walk, "their memory could not be read", true);
	uint64_t bytecode = slot(frame, layout->frame_bytecode);
	if (!shared.address ||
	    ss_v8_bytecode_of(&walk->v8->heap, shared.data) != bytecode)
		return true;
	if (!find_function(walk, shared.address, shared.bytes, &function))
		return false;
	/* Between two calls the interpreter has the offset in a register. */
	int64_t offset = ss_v8_smi(slot(frame, layout->frame_offset)) -
			 (int64_t)layout->bytecode_data + 1;
	if (frame->call &&
	    !ss_v8_bytecode_position(&walk->v8->heap, bytecode, offset, &position)) {
		walk->no_memory = true;
		return false;
	}
	return add_call(walk, frame, function, position);
}

static bool walk_baseline(struct walk *walk, const struct frame *frame,
			  const struct ss_v8_code *code, const struct shared *shared)
{
	const struct ss_v8_heap *heap = &walk->v8->heap;
	const struct ss_v8_function *function;
	uint64_t bytecode = ss_v8_code_subject(heap, code);
	uint32_t position = 0;
	int64_t offset;

	if (bytecode == 0 || ss_v8_bytecode_of(heap, shared->data) != bytecode)
		return true;
	if (!find_function(walk, shared->address, shared->bytes, &function))
		return false;
	if (!ss_v8_baseline_offset(heap, code, bytecode, frame->pc, frame->call,
				   &offset) ||
	    (offset >= 0 &&
	     !ss_v8_bytecode_position(heap, bytecode, offset, &position))) {
		walk->no_memory = true;
		return false;
	}
	return add_call(walk, frame, function,
			ss_v8_code_is_unchanged(heap, code) ? position : 0);
}

/* The calls that were inlined at a return address. At any other instruction the tables do not
   say which call it belongs to. */
static bool walk_optimized(struct walk *walk, const struct frame *frame,
			   const struct ss_v8_code *code, const struct shared *shared)
{
	const struct ss_v8_heap *heap = &walk->v8->heap;
	struct ss_v8_call calls[SS_V8_INLINED_MAX];
	const struct ss_v8_function *function;
	size_t count = 0;

	if (ss_v8_code_subject(heap, code) != shared->address)
		return true;
	if (frame->call && !ss_v8_code_calls(heap, code, frame->pc, calls, &count)) {
		walk->no_memory = true;
		return false;
	}
	if (count == 0 || calls[count - 1].function != shared->address ||
	    !ss_v8_code_is_unchanged(heap, code)) {
		calls[0] = (struct ss_v8_call){ .function = shared->address };
		count = 1;
	}
	for (size_t i = 0; i < count; i++) {
		if (!find_function(walk, calls[i].function,
				   i + 1 == count ? shared->bytes : NULL, &function) ||
		    !add_call(walk, frame, function, calls[i].position))
			return false;
	}
	return true;
}

/* *ret: whether the code was compiled for a function. If that is not the frame's, it has no frame yet, or
   no longer. */
static bool walk_compiled(struct walk *walk, const struct frame *frame, bool *ret)
{
	const struct v8 *v8 = walk->v8;
	struct ss_v8_code code;
	struct shared shared;

	if (!ss_v8_is_object(slot(frame, v8->layout.frame_context)) ||
	    !ss_v8_is_object(slot(frame, v8->layout.frame_function)))
		return true;
	if (!read_shared(walk, frame, &shared))
		return fail(walk, "their memory could not be read", true);
	if (!shared.address ||
	    !ss_v8_code_find(&v8->heap, frame->pc - frame->call, &code))
		return true;
	*ret = code.kind != SS_V8_OTHER;
	if (code.kind == SS_V8_BASELINE)
		return walk_baseline(walk, frame, &code, &shared);
	if (code.kind == SS_V8_MAGLEV || code.kind == SS_V8_TURBOFAN)
		return walk_optimized(walk, frame, &code, &shared);
	return true;
}

/*
 * The frame pointer of the innermost function may be that of its caller: builtins have no frame,
 * and others none yet or no longer. The caller is not among the native frames then.
 */
static bool walk_caller(struct walk *walk, const struct frame *frame)
{
	const struct ss_v8_heap *heap = &walk->v8->heap;
	const struct ss_v8_layout *layout = &walk->v8->layout;
	const struct ss_v8_function *function;
	struct frame outer = *frame;
	struct shared shared;

	/* Other frames have a number there, that of their kind. */
	uint64_t context = slot(frame, layout->frame_context);
	if (!ss_v8_is_object(context))
		return true;
	if (!read_shared(walk, frame, &shared))
		return fail(walk, "their memory could not be read", true);
	if (!shared.address || !is_in(ss_v8_type(heap, heap->memory, context),
				      layout->type_context, layout->type_context_last))
		return true;
	/* Functions that are builtins have a number in place of code. */
	if (ss_v8_bytecode_of(heap, shared.data) == 0 &&
	    ss_v8_type(heap, heap->memory, shared.data) != layout->type_code)
		return true;
	outer.index++;
	return find_function(walk, shared.address, shared.bytes, &function) &&
	       add_call(walk, &outer, function, 0);
}

/* Names generated code that does not belong to a function of JavaScript: its frame has its kind in
   place of a context. *ret: whether it does. */
static bool name_frame(struct walk *walk, const struct frame *frame, bool *ret)
{
	const struct ss_v8_layout *layout = &walk->v8->layout;
	const uint64_t kind = slot(frame, layout->frame_context);
	const char *name = NULL;

	/* StackFrame::TypeToMarker() */
	if (kind == (uint64_t)layout->frame_wasm << 1)
		name = "[wasm]";
	else if (kind == (uint64_t)layout->frame_wasm_to_js << 1)
		name = "[wasm to js]";
	*ret = name != NULL;
	if (!name)
		return true;
	struct ss_runtime_call *call = ss_vector_push(&walk->thread->calls);
	walk->no_memory |= !call;
	if (call)
		*call = (struct ss_runtime_call){ .function = name,
						  .native = (uint32_t)frame->index,
						  .stub = true,
						  .start = frame->area };
	return call != NULL;
}

static bool walk_frame(struct walk *walk, const struct frame *frame)
{
	struct ss_runtime_thread *thread = walk->thread;
	bool compiled = false;
	bool named = false;

	if (!frame->in_file && (!name_frame(walk, frame, &named) || named))
		return !walk->no_memory;
	if (!frame->in_file && !walk_compiled(walk, frame, &compiled))
		return false;
	if (!compiled && !walk_interpreted(walk, frame))
		return false;
	if (frame->index > 0 || thread->calls.count > 0)
		return true;
	if (!walk_caller(walk, frame))
		return false;
	walk->has_caller = thread->calls.count > 0;
	return true;
}

/* The caller takes the place of no other native frame than that of a function. */
static void drop_caller(struct ss_runtime_thread *thread)
{
	struct ss_runtime_call *calls = thread->calls.items;

	if (thread->calls.count > 1 && calls[1].native == 1)
		return;
	thread->calls.count--;
	memmove(calls, calls + 1, thread->calls.count * sizeof(*calls));
}

/* V8 maps its builtins a second time, for each isolate, next to the code that it generates: that code
   is between mappings of the program then. */
static bool is_in_file(const struct ss_capture *capture, const struct ss_area *area,
		       uint64_t pc)
{
	if (area->module < 0)
		return false;
	const struct ss_module_impl *module = capture->modules.items[area->module];
	return ss_any(module->mapping_count, i,
		      pc >= module->mappings[i].start && pc < module->mappings[i].end);
}

/* Reads a frame that may be one of a function. */
static bool read_frame(const struct walk *walk, size_t index, struct frame *ret)
{
	const struct ss_capture *capture = walk->v8->process->capture;
	const struct ss_runtime_thread *thread = walk->thread;
	const struct ss_native_frame *native = &thread->frames[index];
	uint64_t caller;

	*ret = (struct frame){
		.index = index, .call = index > 0, .pc = native->pc, .fp = native->fp
	};
	const struct ss_area *area = ss_capture_find_area(capture, native->pc);
	if (!area || native->fp == 0 || index + 1 >= thread->count)
		return false;
	ret->area = area->start;
	ret->in_file = is_in_file(capture, area, native->pc);
	/* It is the frame of this call, and not that of an outer one. */
	return ss_memory_read_u64(thread->memory, native->fp + 8, &caller) &&
	       caller == thread->frames[index + 1].pc &&
	       ss_memory_read(thread->memory, native->fp - SS_V8_FRAME_BYTES, ret->bytes,
			      SS_V8_FRAME_BYTES);
}

/* Whether a thread executes JavaScript, as far as its frames tell. */
static bool executes_code(struct walk *walk)
{
	struct frame frame;

	for (size_t i = 0; i < walk->thread->count; i++) {
		/* The same in all versions: context, function, bytecode, offset */
		if (read_frame(walk, i, &frame) && ss_v8_is_object(slot(&frame, -8)) &&
		    ss_v8_is_object(slot(&frame, -16)) &&
		    ss_v8_is_object(slot(&frame, -32)) && ss_v8_is_smi(slot(&frame, -40)))
			return true;
	}
	return false;
}

static bool walk_thread(void *data, struct ss_runtime_thread *thread)
{
	struct v8 *v8 = data;
	struct walk walk = { .v8 = v8, .thread = thread };
	struct frame frame;

	if (v8->problem) {
		if (executes_code(&walk))
			thread->problem = v8->problem;
		return true;
	}
	for (size_t i = 0; i < thread->count; i++) {
		if (!read_frame(&walk, i, &frame))
			continue;
		if (!walk_frame(&walk, &frame))
			break;
	}
	if (walk.has_caller)
		drop_caller(thread);
	return !walk.no_memory;
}

/* The plan ----------------------------------------------------------------- */

/* The function objects of all frames of threads that run, and what identifies them. Their frame
   pointers form a list. */
static bool plan_threads(void *data, const struct ss_runtime_wanted *wanted,
			 struct ss_gather_plan *ret)
{
	const struct v8 *v8 = data;
	const struct ss_v8_layout *layout = &v8->layout;

	(void)wanted;
	if (v8->problem)
		return false;
	ret->max_nodes = PLAN_NODES;
	ret->max_bytes = PLAN_BYTES;
	ret->max_reads = PLAN_READS;
	ret->steps[0] =
		(struct ss_gather_step){ .base = SS_GATHER_REGISTER,
					 .parent = RBP,
					 .mask = UINT64_MAX,
					 .offset = layout->frame_function,
					 .size = (uint32_t)(8 - layout->frame_function),
					 .next = (uint32_t)-layout->frame_function,
					 .max_nodes = PLAN_FRAMES };
	ret->steps[1] = (struct ss_gather_step){ .base = SS_GATHER_POINTER,
						 .parent = 0,
						 .mask = ~UINT64_C(3),
						 .size = layout->function_shared + 8,
						 .max_nodes = 1 };
	ret->steps[2] = (struct ss_gather_step){ .base = SS_GATHER_POINTER,
						 .parent = 1,
						 .field = layout->function_shared,
						 .mask = ~UINT64_C(3),
						 .size = SS_V8_SHARED_SIZE,
						 .max_nodes = 1 };
	ret->step_count = 3;
	return true;
}

const struct ss_runtime ss_runtime_v8 = {
	.kind = SS_FRAME_JAVASCRIPT,
	.open = open_v8,
	.close = close_v8,
	.walk = walk_thread,
	.plan = plan_threads,
};
