/*
 * HotSpot: steps through its interpreter, its compiled methods and its stubs, and names the
 * methods. All frames are on the native stack; what describes them does not move, and is read
 * after the capture.
 *
 * Frames follow src/hotspot/cpu/x86/frame_x86.hpp and frame_x86.inline.hpp of OpenJDK.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/graph.h"
#include "base/bytes.h"
#include "base/search.h"
#include "elf/image.h"
#include "elf/tables.h"
#include "data/call.h"
#include "data/futex.h"
#include "runtime/hotspot/hotspot.h"
#include "runtime/runtime.h"

enum {
	WORD = 8,
	THREADS_MAX = 1 << 16,
	/* Slots of an interpreted frame: above its frame pointer, and below it */
	FRAME_RETURN = 8,
	FRAME_SENDER_SP = 8,
	FRAME_METHOD = 24,
	FRAME_BYTECODE = 64,	    /* in 8: a word less */
	FRAME_LOCALS_MAX = 1 << 20, /* 65,535 words, and what adapters add */
	LEAF_MAX = 4096,	    /* of a stub that has a frame pointer */
	KEPT_ID_MAX = 128,
	LOCK_STACK_MAX = 64, /* it has 8 */
	PARKER_BYTES = 192,  /* a mutex, two condition variables, and three words */
	THREAD_BYTES_MAX = 8192,
	OWNER_ANONYMOUS = 1, /* ObjectMonitor::ANONYMOUS_OWNER */
	BEFORE = 64,	     /* bytes of code before a pc that are looked at */
	AFTER = 16,
	WAITING_BYTES =
		2048, /* of a stack: the frames of the virtual machine that wait */
	REGISTER_BYTECODE =
		13, /* r13: the bytecode that the innermost frame interprets */
};

/* A JavaThread. */
struct java_thread {
	uint64_t address;
	int32_t tid; /* in the innermost pid namespace */
};

struct hotspot {
	const struct ss_runtime_process *process;
	struct ss_hotspot_layout layout;
	struct ss_hotspot_codes codes;
	struct ss_hotspot_methods methods;
	struct ss_hotspot_objects objects;
	uint64_t call_stub; /* return address of the stub by which C++ calls Java */
	SS_VECTOR(struct java_thread) threads; /* ascending by tid */
	bool has_threads;
	/* Index of the owner that was found last. Searches begin there: often many threads wait for
	   one, and each comparison reads memory. */
	size_t last_owner;
	const char *problem; /* of all threads; or NULL */
	/* The thread of which a frame could not be unwound, and why */
	const struct ss_capture_thread *failed;
	const char *failure;
	bool no_memory;
};

/* Finding it --------------------------------------------------------------- */

static bool read_symbols(const struct ss_runtime_process *process, int32_t index,
			 uint64_t ret[SS_HOTSPOT_SYMBOLS])
{
	struct ss_module_impl *module = process->capture->modules.items[index];
	_cleanup_(ss_image_cleanup) struct ss_image *image = NULL;
	struct ss_elf_symbol symbols[SS_HOTSPOT_SYMBOLS];

	ss_session_note(process->session, index);
	if (ss_elf_find_symbols(module, ss_hotspot_symbols, SS_HOTSPOT_SYMBOLS,
				symbols) &&
	    symbols[0].address)
		image = ss_image_new(module);
	for (size_t i = 0; image && i < SS_HOTSPOT_SYMBOLS; i++)
		ret[i] = symbols[i].address ?
				 symbols[i].address + ss_image_bias(image, module) :
				 0;
	ss_session_note(process->session, -1);
	return image != NULL;
}

static const struct ss_module *find_library(const struct ss_runtime_process *process,
					    uint64_t ret[SS_HOTSPOT_SYMBOLS])
{
	const struct ss_capture *capture = process->capture;

	for (size_t i = 0; i < capture->modules.count; i++) {
		const char *path = capture->modules.items[i]->pub.path;
		if (strcmp(ss_path_base(path), "libjvm.so") == 0 &&
		    !ss_session_skips(process->session, (int32_t)i) &&
		    read_symbols(process, (int32_t)i, ret))
			return &capture->modules.items[i]->pub;
	}
	return NULL;
}

/* What is kept for the next capture: reading the tables takes longer than all else. */
struct kept {
	char build_id[KEPT_ID_MAX];
	uint64_t base; /* of the library */
	pid_t pid;
	bool valid;
	struct ss_hotspot_layout layout;
};

static const struct ss_module *find_kept_module(const struct ss_runtime_process *process,
						const struct kept *kept)
{
	const struct ss_capture *capture = process->capture;

	for (size_t i = 0; i < capture->modules.count; i++) {
		const struct ss_module *module = &capture->modules.items[i]->pub;
		if (module->base == kept->base && module->build_id &&
		    strcmp(module->build_id, kept->build_id) == 0)
			return module;
	}
	return NULL;
}

/* The layout of the capture before, if the process has the same library at the same
   address. */
static bool find_kept(const struct ss_runtime_process *process,
		      struct ss_hotspot_layout *ret)
{
	const struct kept *kept = process->kept->data;

	if (!kept || !kept->valid || kept->pid != process->capture->process.pid ||
	    !find_kept_module(process, kept))
		return false;
	*ret = kept->layout;
	return true;
}

/* It is no error if it cannot be kept. */
static void keep(const struct ss_runtime_process *process, const struct ss_module *module,
		 const struct ss_hotspot_layout *layout)
{
	struct ss_session_slot *slot = process->kept;

	if (!module->build_id || strlen(module->build_id) >= KEPT_ID_MAX)
		return;
	if (!slot->data)
		*slot = (struct ss_session_slot){ .data = calloc(1, sizeof(struct kept)),
						  .free = free };
	struct kept *kept = slot->data;
	if (!kept)
		return;
	*kept = (struct kept){ .base = module->base,
			       .pid = process->capture->process.pid,
			       .valid = true,
			       .layout = *layout };
	memcpy(kept->build_id, module->build_id, strlen(module->build_id) + 1);
}

static const char *describe_version(const struct ss_runtime_process *process,
				    const struct ss_hotspot_layout *layout)
{
	char text[64] = "HotSpot";

	if (layout->major) /* it fits */
		(void)snprintf(text, sizeof(text), "HotSpot %u.%u.%u", layout->major,
			       layout->minor, layout->security);
	return ss_intern_string(process->strings, text);
}

SS_DEFINE_COMPARE(compare_threads, struct java_thread, tid)

/* False without memory. */
static bool add_thread(struct hotspot *hotspot, uint64_t address)
{
	const struct ss_memory *memory = hotspot->process->memory;
	const uint64_t *at = hotspot->layout.at;
	uint64_t os;
	uint32_t tid;

	if (!ss_memory_read_u64(memory, address + at[SS_HOTSPOT_THREAD_OS], &os) ||
	    !ss_memory_read_u32(memory, os + at[SS_HOTSPOT_OS_ID], &tid))
		return true;
	struct java_thread *slot = ss_vector_push(&hotspot->threads);
	if (!slot)
		return false;
	*slot = (struct java_thread){ .address = address, .tid = (int32_t)tid };
	return true;
}

/* Up to 11. */
static bool add_linked_threads(struct hotspot *hotspot)
{
	const struct ss_memory *memory = hotspot->process->memory;
	const uint64_t *at = hotspot->layout.at;
	uint64_t address;

	if (!ss_memory_read_u64(memory, at[SS_HOTSPOT_FIRST_THREAD_AT], &address))
		return true;
	for (uint32_t i = 0; i < THREADS_MAX && address; i++) {
		if (!add_thread(hotspot, address))
			return false;
		if (!ss_memory_read_u64(memory, address + at[SS_HOTSPOT_THREAD_NEXT],
					&address))
			break;
	}
	return true;
}

static bool add_listed_threads(struct hotspot *hotspot)
{
	const struct ss_memory *memory = hotspot->process->memory;
	const uint64_t *at = hotspot->layout.at;
	uint64_t list;
	uint64_t threads;
	uint32_t count;

	if (!ss_memory_read_u64(memory, at[SS_HOTSPOT_THREADS_AT], &list) ||
	    !ss_memory_read_u32(memory, list + at[SS_HOTSPOT_LIST_LENGTH], &count) ||
	    !ss_memory_read_u64(memory, list + at[SS_HOTSPOT_LIST_THREADS], &threads))
		return true;
	for (uint32_t i = 0; i < SS_MIN(count, (uint32_t)THREADS_MAX); i++) {
		uint64_t address;
		if (ss_memory_read_u64(memory, threads + (uint64_t)i * WORD, &address) &&
		    !add_thread(hotspot, address))
			return false;
	}
	return true;
}

/* Finds the threads, once: it takes several reads for each. False without memory. */
static bool find_threads(struct hotspot *hotspot)
{
	if (hotspot->has_threads)
		return true;
	hotspot->has_threads = true;
	if (!(hotspot->layout.thread_list ? add_linked_threads(hotspot) :
					    add_listed_threads(hotspot)))
		return false;
	if (hotspot->threads.count > 1)
		qsort(hotspot->threads.items, hotspot->threads.count,
		      sizeof(*hotspot->threads.items), compare_threads);
	return true;
}

static void close_hotspot(void *state)
{
	struct hotspot *hotspot = state;

	ss_hotspot_codes_deinit(&hotspot->codes);
	ss_hotspot_methods_deinit(&hotspot->methods);
	ss_vector_free(&hotspot->threads);
	free(hotspot);
}

static bool open_hotspot(const struct ss_runtime_process *process,
			 struct ss_runtime_info *info, void **ret)
{
	uint64_t symbols[SS_HOTSPOT_SYMBOLS];
	struct ss_hotspot_layout layout;
	uint64_t call_stub = 0;
	bool kept = find_kept(process, &layout);
	const struct ss_module *module = kept ? NULL : find_library(process, symbols);

	if (!kept && !module)
		return true;
	struct hotspot *hotspot = calloc(1, sizeof(*hotspot));
	if (!hotspot)
		return false;
	hotspot->process = process;
	if (strcmp(process->capture->arch->name, "x86_64") != 0)
		hotspot->problem = "this processor is not supported";
	else if (kept)
		hotspot->layout = layout;
	else if (ss_hotspot_layout_read(process->memory, symbols, &hotspot->layout,
					&hotspot->problem))
		keep(process, module, &hotspot->layout);
	info->version = describe_version(process, &hotspot->layout);
	hotspot->codes = (struct ss_hotspot_codes){ .layout = &hotspot->layout,
						    .memory = process->memory,
						    .strings = process->strings };
	hotspot->methods = (struct ss_hotspot_methods){ .layout = &hotspot->layout,
							.memory = process->memory,
							.after = process->after,
							.strings = process->strings };
	hotspot->objects = (struct ss_hotspot_objects){ .layout = &hotspot->layout,
							.memory = process->memory,
							.fresh = process->fresh };
	*ret = hotspot;
	if (!info->version)
		return false;
	if (hotspot->problem) {
		hotspot->problem = ss_runtime_describe_problem(process, info->version,
							       hotspot->problem);
		info->problem = hotspot->problem;
		return info->problem != NULL;
	}
	if (ss_memory_read_u64(process->memory,
			       hotspot->layout.at[SS_HOTSPOT_CALL_STUB_AT], &call_stub))
		hotspot->call_stub = call_stub;
	return ss_hotspot_codes_init(&hotspot->codes);
}

/* Code --------------------------------------------------------------------- */

/* The blob of a frame. A copy: the list may move. */
static bool find_blob(struct hotspot *hotspot, uint64_t pc, bool call,
		      struct ss_hotspot_blob *ret)
{
	const struct ss_hotspot_blob *blob = NULL;

	if (!ss_hotspot_codes_find(&hotspot->codes, pc - call, &blob))
		hotspot->no_memory = true;
	if (blob)
		*ret = *blob;
	return blob != NULL;
}

/* Bytes of code around a pc; those that cannot be read are 0. */
struct code {
	uint8_t bytes[BEFORE + AFTER];
	const uint8_t *at; /* the pc */
};

static void read_code(const struct hotspot *hotspot, const struct ss_hotspot_blob *blob,
		      uint64_t pc, struct code *ret)
{
	const struct ss_memory *memory = hotspot->process->memory;
	size_t before = SS_MIN(pc - blob->code.start, (uint64_t)BEFORE);
	size_t after = SS_MIN(blob->code.end - pc, (uint64_t)AFTER);

	memset(ret, 0, sizeof(*ret));
	ret->at = ret->bytes + BEFORE;
	(void)memory->read(memory, pc - before, ret->bytes + BEFORE - before,
			   before + after);
}

static bool is_executable(const struct hotspot *hotspot, uint64_t pc)
{
	const struct ss_area *area = ss_capture_find_area(hotspot->process->capture, pc);

	return area && (area->prot & PROT_EXEC);
}

/* Whether a call may return to pc: compiled code has debug information for each call that
   leads to other Java code or to the VM. */
static bool is_caller(struct hotspot *hotspot, uint64_t pc)
{
	struct ss_hotspot_blob blob;
	struct code code;

	if (!ss_hotspot_is_code(&hotspot->codes, pc))
		return is_executable(hotspot, pc);
	if (!find_blob(hotspot, pc, true, &blob))
		return false;
	if (blob.kind != SS_HOTSPOT_NMETHOD || pc == blob.deopt ||
	    ss_hotspot_is_exact(&hotspot->codes, &blob, pc))
		return true;
	/* The entry of virtual threads calls Java without debug information. */
	read_code(hotspot, &blob, pc, &code);
	return strcmp(blob.name, "native nmethod") == 0 && code.at[-5] == 0xe8;
}

/* Whether the instruction before pc calls into a blob: "call rel32", or "movabs $address,
   %r10; call *%r10". Callers of leaf stubs have no debug information for the call. */
static bool calls_into(struct hotspot *hotspot, uint64_t pc,
		       const struct ss_hotspot_blob *target)
{
	struct ss_hotspot_blob blob;
	struct code code;
	int32_t relative;
	uint64_t absolute;

	if (!find_blob(hotspot, pc, true, &blob))
		return false;
	read_code(hotspot, &blob, pc, &code);
	memcpy(&relative, code.at - 4, sizeof(relative));
	if (code.at[-5] == 0xe8)
		return ss_hotspot_contains(&target->code,
					   pc + (uint64_t)(int64_t)relative);
	memcpy(&absolute, code.at - 11, sizeof(absolute));
	if (code.at[-13] == 0x49 && code.at[-12] == 0xba &&
	    memcmp(code.at - 3, "\x41\xff\xd2", 3) == 0)
		return ss_hotspot_contains(&target->code, absolute);
	/* The interpreter enters adapters and its own code by jumps. */
	return blob.kind == SS_HOTSPOT_INTERPRETER && target->frame_size == 0;
}

/* Steps -------------------------------------------------------------------- */

/* One step. */
struct step {
	struct hotspot *hotspot;
	const struct ss_arch *arch;
	struct ss_runtime_frame *frame;
	struct ss_hotspot_blob blob;
	uint64_t pc;
	uint64_t sp;
};

static bool read_stack(const struct step *step, uint64_t address, uint64_t *ret)
{
	return address % WORD == 0 &&
	       ss_memory_read_u64(step->frame->stack, address, ret);
}

static enum ss_runtime_step fail(struct step *step, const char *why)
{
	step->hotspot->failed = step->frame->thread;
	step->hotspot->failure = why;
	return SS_RUNTIME_STEP_NONE;
}

/* Turns the registers into the caller's. */
static enum ss_runtime_step set_caller(struct step *step, uint64_t pc, uint64_t sp,
				       bool has_fp, uint64_t fp)
{
	struct ss_regs *regs = step->frame->regs;

	ss_arch_regs_blocked(step->arch, pc, sp, NULL, regs);
	if (has_fp)
		ss_regs_set(regs, step->arch->fp, fp);
	return SS_RUNTIME_STEP_OK;
}

/* Where the caller's registers are. */
enum saved {
	SAVED_FRAME, /* at the end of the frame: return address, below it the frame pointer */
	SAVED_POINTER, /* the frame pointer at sp, then the return address */
	SAVED_NOTHING, /* the return address at sp */
};

/* Whether the code before pc, which makes the frame, has already made room for it. */
static bool has_made_frame(const struct step *step, const struct code *code)
{
	const uint32_t size = step->blob.frame_size;

	for (const uint8_t *at = code->bytes; at + 4 <= code->at; at++) {
		uint32_t amount = 0;
		size_t length;
		if (at[0] != 0x48 || at[2] != 0xec) /* sub $amount, %rsp */
			continue;
		if (at[1] == 0x83) {
			amount = at[3];
			length = 4;
		} else if (at[1] == 0x81) {
			memcpy(&amount, at + 3, sizeof(amount));
			length = 7;
		} else {
			continue;
		}
		if (at + length <= code->at &&
		    (amount + WORD == size || amount + 2 * WORD == size))
			return true;
	}
	return false;
}

/* Up to 15, after "pop %rbp": the poll "test %eax, rel32(%rip); ret", or "mov disp(%r15), %r10;
   test %eax, (%r10); ret". */
static bool is_in_old_poll(const struct code *code)
{
	static const uint8_t test_r10[] = { 0x41, 0x85, 0x02, 0xc3 };
	const uint8_t *at = code->at;

	if (at[-1] == 0x5d && at[0] == 0x85 && at[1] == 0x05 && at[6] == 0xc3)
		return true;
	if (at[-1] == 0x5d && at[0] == 0x4d && at[1] == 0x8b && at[2] == 0x97)
		return memcmp(at + 7, test_r10, sizeof(test_r10)) == 0;
	if (at[-1] == 0x5d && at[0] == 0x4d && at[1] == 0x8b && at[2] == 0x57)
		return memcmp(at + 4, test_r10, sizeof(test_r10)) == 0;
	return memcmp(at, test_r10, sizeof(test_r10)) == 0 &&
	       ((at[-8] == 0x5d && at[-7] == 0x4d && at[-6] == 0x8b) ||
		(at[-5] == 0x5d && at[-4] == 0x4d && at[-3] == 0x8b));
}

/* How far the innermost frame is made, or undone, judged by the code around its pc. */
static enum saved find_saved(const struct step *step)
{
	static const uint8_t enter[] = { 0x55, 0x48, 0x8b, 0xec };
	static const uint8_t enter2[] = { 0x55, 0x48, 0x89, 0xe5 };
	struct code code;

	read_code(step->hotspot, &step->blob, step->pc, &code);
	if (step->pc < step->blob.frame_complete) {
		if (has_made_frame(step, &code))
			return SAVED_FRAME;
		if (code.at[-1] == 0x55 || /* push %rbp */
		    memcmp(code.at - sizeof(enter), enter, sizeof(enter)) == 0 ||
		    memcmp(code.at - sizeof(enter2), enter2, sizeof(enter2)) == 0)
			return SAVED_POINTER;
		return SAVED_NOTHING;
	}
	if (code.at[0] == 0xc3) /* ret */
		return SAVED_NOTHING;
	if (code.at[0] == 0x5d && step->blob.kind == SS_HOTSPOT_NMETHOD) /* pop %rbp */
		return SAVED_POINTER;
	if (is_in_old_poll(&code))
		return SAVED_NOTHING;
	/* After "pop %rbp": the poll "cmp disp(%r15), %rsp; ja stub; ret". */
	size_t poll = code.at[0] == 0x49 && code.at[1] == 0x3b ?
			      (code.at[2] == 0x67 ? 4 :
			       code.at[2] == 0xa7 ? 7 :
						    0) :
			      0;
	if (poll > 0 && code.at[-1] == 0x5d)
		return SAVED_NOTHING;
	if (code.at[0] == 0x0f && code.at[1] == 0x87 && code.at[6] == 0xc3 &&
	    ((code.at[-5] == 0x5d && code.at[-4] == 0x49 && code.at[-3] == 0x3b) ||
	     (code.at[-8] == 0x5d && code.at[-7] == 0x49 && code.at[-6] == 0x3b)))
		return SAVED_NOTHING;
	/* The stub of that poll: "lea rel32(%rip), %r10; mov %r10, disp(%r15); jmp". */
	if ((code.at[0] == 0x4c && code.at[1] == 0x8d && code.at[2] == 0x15 &&
	     code.at[7] == 0x4d && code.at[8] == 0x89 && code.at[9] == 0x97) ||
	    (code.at[0] == 0x4d && code.at[1] == 0x89 && code.at[2] == 0x97 &&
	     code.at[7] == 0xe9))
		return SAVED_NOTHING;
	return SAVED_FRAME;
}

/* Frames of compiled methods have a constant size. */
static enum ss_runtime_step step_compiled(struct step *step)
{
	enum saved saved = step->frame->call ? SAVED_FRAME : find_saved(step);
	uint64_t at = saved == SAVED_FRAME   ? step->sp + step->blob.frame_size - WORD :
		      saved == SAVED_POINTER ? step->sp + WORD :
					       step->sp;
	uint64_t pc;
	uint64_t fp = 0;
	bool has_fp;

	if (saved == SAVED_NOTHING)
		has_fp = ss_regs_get(step->frame->regs, step->arch->fp, &fp);
	else
		has_fp = read_stack(step, at - WORD, &fp);
	if (!read_stack(step, at, &pc))
		return fail(step, "the stack of a compiled method was not copied");
	if (!is_caller(step->hotspot, pc)) {
		/* The entry of virtual threads changes its stack pointer, but keeps a frame
		   pointer (gen_continuation_enter()). */
		if (!step->frame->call ||
		    !ss_regs_get(step->frame->regs, step->arch->fp, &fp) ||
		    fp < step->sp || fp - step->sp > LEAF_MAX ||
		    !read_stack(step, fp + FRAME_RETURN, &pc) ||
		    !is_caller(step->hotspot, pc) ||
		    !ss_hotspot_is_code(&step->hotspot->codes, pc))
			return fail(step, "the frame of a compiled method is not valid");
		at = fp + FRAME_RETURN;
		has_fp = read_stack(step, fp, &fp);
	}
	return set_caller(step, pc, at + WORD, has_fp, fp);
}

/* A stub without a frame of constant size, or code that is just making or undoing its frame:
   its caller must be proved by the instruction that calls it. */
static enum ss_runtime_step step_leaf(struct step *step)
{
	uint64_t fp = 0;
	bool has_fp = ss_regs_get(step->frame->regs, step->arch->fp, &fp);
	uint64_t pc;
	uint64_t outer;

	if (read_stack(step, step->sp, &pc) && calls_into(step->hotspot, pc, &step->blob))
		return set_caller(step, pc, step->sp + WORD, has_fp, fp);
	if (has_fp && fp >= step->sp && fp - step->sp < LEAF_MAX &&
	    read_stack(step, fp, &outer) && read_stack(step, fp + FRAME_RETURN, &pc) &&
	    calls_into(step->hotspot, pc, &step->blob))
		return set_caller(step, pc, fp + 2 * WORD, true, outer);
	/* "push %rbp" without the rest */
	if (read_stack(step, step->sp, &outer) &&
	    read_stack(step, step->sp + WORD, &pc) &&
	    calls_into(step->hotspot, pc, &step->blob))
		return set_caller(step, pc, step->sp + 2 * WORD, true, outer);
	return fail(step, "the caller of a stub is not known");
}

/* The stub by which C++ calls Java keeps a frame pointer. */
static enum ss_runtime_step step_call_stub(struct step *step)
{
	uint64_t fp;
	uint64_t outer;
	uint64_t pc;

	if (!ss_regs_get(step->frame->regs, step->arch->fp, &fp) || fp < step->sp ||
	    !read_stack(step, fp, &outer) || !read_stack(step, fp + FRAME_RETURN, &pc) ||
	    !is_executable(step->hotspot, pc))
		return fail(step, "the frame of the call stub is not valid");
	return set_caller(step, pc, fp + 2 * WORD, true, outer);
}

static const struct java_thread *find_thread(const struct hotspot *hotspot,
					     const struct ss_capture_thread *thread)
{
	int32_t tid = thread->inner_tid ? thread->inner_tid : thread->tid;

	return ss_search(hotspot->threads.items, hotspot->threads.count, tid, tid);
}

/* A thread that has left Java has noted the registers of its last Java frame. */
static bool find_anchor(const struct step *step, uint64_t *ret)
{
	struct hotspot *hotspot = step->hotspot;
	const struct ss_memory *memory = hotspot->process->memory;
	const uint64_t *at = hotspot->layout.at;
	uint64_t sp;

	if (!find_threads(hotspot))
		hotspot->no_memory = true;
	const struct java_thread *thread = find_thread(hotspot, step->frame->thread);

	if (!thread)
		return false;
	uint64_t anchor = thread->address + at[SS_HOTSPOT_THREAD_ANCHOR];
	return ss_memory_read_u64(memory, anchor + at[SS_HOTSPOT_ANCHOR_SP], &sp) &&
	       sp == step->sp &&
	       ss_memory_read_u64(memory, anchor + at[SS_HOTSPOT_ANCHOR_FP], ret);
}

/* Whether fp points to a complete interpreted frame; returns its slots. */
static bool read_interpreted(struct hotspot *hotspot, const struct ss_memory *stack,
			     uint64_t sp, uint64_t fp, bool call,
			     const struct ss_hotspot_method **ret, uint64_t *ret_sender)
{
	uint64_t method;

	if (fp % WORD != 0 || fp < sp || fp < FRAME_BYTECODE ||
	    (!call && sp > fp - FRAME_BYTECODE) ||
	    !ss_memory_read_u64(stack, fp - FRAME_METHOD, &method) ||
	    !ss_memory_read_u64(stack, fp - FRAME_SENDER_SP, ret_sender) ||
	    *ret_sender <= fp || *ret_sender - fp > FRAME_LOCALS_MAX)
		return false;
	/* The linkers of method handles remove an argument, and do not adjust it. */
	*ret_sender = SS_MAX(*ret_sender, fp + FRAME_RETURN + WORD);
	if (!ss_hotspot_methods_find(&hotspot->methods, method, ret))
		hotspot->no_memory = true;
	return *ret != NULL;
}

static enum ss_runtime_step step_interpreted(struct step *step)
{
	const struct ss_hotspot_method *method = NULL;
	bool call = step->frame->call;
	uint64_t fp = 0;
	uint64_t sender;
	uint64_t outer;
	uint64_t pc;

	if (!ss_regs_get(step->frame->regs, step->arch->fp, &fp) &&
	    !find_anchor(step, &fp))
		return fail(step,
			    "the frame pointer of an interpreted method is not known");
	if (read_interpreted(step->hotspot, step->frame->stack, step->sp, fp, call,
			     &method, &sender) &&
	    read_stack(step, fp, &outer) && read_stack(step, fp + FRAME_RETURN, &pc) &&
	    is_caller(step->hotspot, pc))
		return set_caller(step, pc, sender, true, outer);
	return call ? fail(step, "the frame of an interpreted method is not valid") :
		      step_leaf(step);
}

static enum ss_runtime_step step_hotspot(void *state, struct ss_runtime_frame *frame)
{
	struct hotspot *hotspot = state;
	const struct ss_arch *arch = hotspot->process->capture->arch;
	struct step step = { .hotspot = hotspot,
			     .arch = arch,
			     .frame = frame,
			     .pc = ss_regs_pc(arch, frame->regs),
			     .sp = ss_regs_sp(arch, frame->regs) };

	if (hotspot->problem || !ss_hotspot_is_code(&hotspot->codes, step.pc))
		return SS_RUNTIME_STEP_NONE;
	if (!find_blob(hotspot, step.pc, frame->call, &step.blob))
		return fail(&step, "a frame is in unknown code");
	if (frame->call && step.pc == hotspot->call_stub)
		return step_call_stub(&step);
	if (step.blob.frame_size > 0)
		return step_compiled(&step);
	if (step.blob.kind == SS_HOTSPOT_INTERPRETER)
		return step_interpreted(&step);
	return step_leaf(&step);
}

/* Calls -------------------------------------------------------------------- */

/* One walk. */
struct walk {
	struct hotspot *hotspot;
	struct ss_runtime_thread *thread;
	size_t index; /* of the native frame */
};

static bool give_up(struct walk *walk, const char *problem)
{
	walk->thread->problem = problem;
	return false;
}

static bool add_call(struct walk *walk, const struct ss_hotspot_method *method,
		     int32_t bci, bool inlined)
{
	struct ss_runtime_call *call = ss_vector_push(&walk->thread->calls);

	if (!call) {
		walk->hotspot->no_memory = true;
		return false;
	}
	*call = (struct ss_runtime_call){
		.function = method->name,
		.file = method->file,
		.line = ss_hotspot_line(&walk->hotspot->layout, method, bci),
		.native = (uint32_t)walk->index,
		.inlined = inlined,
	};
	return true;
}

static bool add_stub(struct walk *walk, const struct ss_hotspot_blob *blob)
{
	const struct ss_native_frame *native = &walk->thread->frames[walk->index];
	struct ss_runtime_call *call = ss_vector_push(&walk->thread->calls);

	if (!call) {
		walk->hotspot->no_memory = true;
		return false;
	}
	*call = (struct ss_runtime_call){ .function = blob->name,
					  .native = (uint32_t)walk->index,
					  .stub = true,
					  .start = blob->code.start };
	if (native->call && native->pc == walk->hotspot->call_stub)
		call->function = "call_stub";
	/* A Java frame that returns there is the outermost one that is on the stack. */
	if (native->call && walk->index > 0 &&
	    ss_hotspot_is_code(&walk->hotspot->codes, native[-1].pc) &&
	    strstr(blob->name, "continuation"))
		call->function = "(frames of a virtual thread, which are on the heap)";
	return true;
}

/* The address at which a frame continues: a frame to be deoptimised has it on the stack. */
static bool find_pc(struct walk *walk, const struct ss_hotspot_blob *blob, uint64_t *ret)
{
	const struct ss_native_frame *native = &walk->thread->frames[walk->index];

	*ret = native->pc;
	if (!native->call || native->pc != blob->deopt)
		return true;
	return ss_memory_read_u64(walk->thread->memory, native->sp + blob->original_pc,
				  ret) &&
	       ss_hotspot_contains(&blob->code, *ret);
}

static bool add_compiled(struct walk *walk, const struct ss_hotspot_blob *blob)
{
	struct hotspot *hotspot = walk->hotspot;
	struct ss_hotspot_scope scopes[SS_HOTSPOT_SCOPES_MAX];
	uint64_t pc;

	if (!find_pc(walk, blob, &pc))
		return give_up(walk, "a frame that is deoptimised is not valid");
	size_t count = ss_hotspot_scopes(&hotspot->codes, blob, pc, scopes);
	for (size_t i = 0; i < count; i++) {
		const struct ss_hotspot_method *method = NULL;
		if (!ss_hotspot_methods_find(&hotspot->methods, scopes[i].method,
					     &method)) {
			hotspot->no_memory = true;
			return false;
		}
		if (!method)
			return give_up(walk, "a compiled method is not valid");
		if (!add_call(walk, method, scopes[i].bci, i + 1 < count))
			return false;
	}
	return true;
}

/* Where the interpreter has its bytecode, below the frame pointer. */
static uint64_t bytecode_slot(const struct ss_hotspot_layout *layout)
{
	return layout->major <= 8 ? FRAME_BYTECODE - WORD : FRAME_BYTECODE;
}

/* The offset of the bytecode that an interpreted frame executes; -1: a native method has
   none. */
static int32_t find_bci(const struct walk *walk, const struct ss_hotspot_method *method,
			uint64_t fp)
{
	const struct ss_runtime_thread *thread = walk->thread;
	uint64_t at = 0;

	if (walk->index == 0 && !thread->frames[0].call &&
	    ss_regs_get(&thread->thread->regs, REGISTER_BYTECODE, &at) &&
	    at - method->code < method->code_size)
		return (int32_t)(at - method->code);
	if (!ss_memory_read_u64(thread->memory,
				fp - bytecode_slot(&walk->hotspot->layout), &at) ||
	    at - method->code >= method->code_size)
		return -1;
	return (int32_t)(at - method->code);
}

static bool add_interpreted(struct walk *walk, const struct ss_hotspot_blob *blob)
{
	struct hotspot *hotspot = walk->hotspot;
	const struct ss_native_frame *native = &walk->thread->frames[walk->index];
	const struct ss_hotspot_method *method = NULL;
	const struct ss_native_frame *next =
		walk->index + 1 < walk->thread->count ? native + 1 : NULL;
	uint64_t fp = native->fp;
	uint64_t sender;

	if (fp == 0) {
		struct ss_regs regs = {};
		struct ss_runtime_frame frame = { .thread = walk->thread->thread };
		const struct step step = { .hotspot = hotspot,
					   .frame = &frame,
					   .sp = native->sp };
		frame.regs = &regs;
		(void)find_anchor(&step, &fp);
	}
	if (read_interpreted(hotspot, walk->thread->memory, native->sp, fp, native->call,
			     &method, &sender) &&
	    (!next || next->sp == sender))
		return add_call(walk, method, find_bci(walk, method, fp), false);
	/* Code that makes or undoes its frame */
	return native->call ?
		       give_up(walk, "the frame of an interpreted method is not valid") :
		       add_stub(walk, blob);
}

static bool add_frame(struct walk *walk)
{
	const struct ss_native_frame *native = &walk->thread->frames[walk->index];
	struct ss_hotspot_blob blob;

	if (!find_blob(walk->hotspot, native->pc, native->call, &blob))
		return give_up(walk, "a frame is in unknown code");
	switch (blob.kind) {
	case SS_HOTSPOT_NMETHOD:
		return add_compiled(walk, &blob);
	case SS_HOTSPOT_INTERPRETER:
		return add_interpreted(walk, &blob);
	default:
		return add_stub(walk, &blob);
	}
}

/* Whether a thread executes code that is in no file, which the virtual machine has made. */
static bool executes_made_code(const struct hotspot *hotspot,
			       const struct ss_runtime_thread *thread)
{
	for (size_t i = 0; i < thread->count; i++) {
		const struct ss_area *area = ss_capture_find_area(
			hotspot->process->capture, thread->frames[i].pc);
		if (area && area->module < 0 && (area->prot & PROT_EXEC))
			return true;
	}
	return false;
}

static bool walk_thread(void *state, struct ss_runtime_thread *thread)
{
	struct hotspot *hotspot = state;
	struct walk walk = { .hotspot = hotspot, .thread = thread };
	bool guess = false;

	if (hotspot->problem && executes_made_code(hotspot, thread))
		thread->problem = hotspot->problem;
	if (hotspot->problem)
		return true;
	for (; walk.index < thread->count; walk.index++) {
		guess |= thread->frames[walk.index].guess;
		if (!ss_hotspot_is_code(&hotspot->codes, thread->frames[walk.index].pc))
			continue;
		if (guess) {
			thread->problem = "the way to them is not certain";
			break;
		}
		if (hotspot->failed == thread->thread) {
			thread->problem = hotspot->failure;
			break;
		}
		if (!add_frame(&walk))
			break;
	}
	return !hotspot->no_memory;
}

/* Monitors and locks ------------------------------------------------------- */

/* The thread of a JavaThread. */
static const struct ss_capture_thread *find_captured(const struct hotspot *hotspot,
						     const struct java_thread *java)
{
	const struct ss_capture *capture = hotspot->process->capture;

	for (size_t i = 0; i < capture->threads.count; i++) {
		if (find_thread(hotspot, &capture->threads.items[i]) == java)
			return &capture->threads.items[i];
	}
	return NULL;
}

/* Memory as it is now. */
static bool read_now(const struct hotspot *hotspot, uint64_t base,
		     enum ss_hotspot_value field, uint64_t *ret)
{
	return ss_memory_read_u64(hotspot->process->fresh,
				  base + hotspot->layout.at[field], ret);
}

/* Whether an address is on the stack of a thread, where lock records are. */
static bool has_on_stack(const struct hotspot *hotspot, const struct java_thread *java,
			 uint64_t address)
{
	uint64_t base;
	uint64_t size;

	return read_now(hotspot, java->address, SS_HOTSPOT_THREAD_STACK_BASE, &base) &&
	       read_now(hotspot, java->address, SS_HOTSPOT_THREAD_STACK_SIZE, &size) &&
	       address < base && base - address <= size;
}

/* From 21 on, a thread may note the objects that it has locked: the owner of a monitor that
   another thread has made for such an object is not recorded. */
static bool has_locked(struct hotspot *hotspot, const struct java_thread *java,
		       uint64_t object)
{
	const uint64_t *at = hotspot->layout.at;
	uint64_t locks = java->address + at[SS_HOTSPOT_THREAD_LOCKS];
	uint64_t base = locks + at[SS_HOTSPOT_LOCKS_BASE];
	uint32_t top;

	if (!ss_memory_read_u32(hotspot->process->fresh, locks + at[SS_HOTSPOT_LOCKS_TOP],
				&top))
		return false;
	for (size_t i = 0; i < LOCK_STACK_MAX; i++) {
		uint64_t found;
		if (base + i * WORD >= java->address + top)
			break;
		if (ss_memory_read_u64(hotspot->process->fresh, base + i * WORD,
				       &found) &&
		    ss_hotspot_is_object(&hotspot->objects, found, object))
			return true;
	}
	return false;
}

/* What a monitor records of its owner. */
struct owner {
	uint64_t value; /* up to 21: the JavaThread, or a lock record on its stack */
	/* If the value does not tell: one of these is not 0. */
	uint64_t locker;
	uint64_t object;
};

static bool read_owner(struct hotspot *hotspot, uint64_t monitor, struct owner *ret)
{
	uint64_t handle;

	*ret = (struct owner){};
	if (!read_now(hotspot, monitor, SS_HOTSPOT_MONITOR_OWNER, &ret->value) ||
	    ret->value == 0)
		return false;
	if (!hotspot->layout.lock_stacks || ret->value != OWNER_ANONYMOUS)
		return true;
	return (!hotspot->layout.stack_lockers ||
		read_now(hotspot, monitor, SS_HOTSPOT_MONITOR_STACK_LOCKER,
			 &ret->locker)) &&
	       read_now(hotspot, monitor, SS_HOTSPOT_MONITOR_OBJECT, &handle) &&
	       ss_hotspot_handle_read(&hotspot->objects, handle, &ret->object);
}

static bool is_owner(struct hotspot *hotspot, const struct java_thread *java,
		     const void *data)
{
	const struct owner *owner = data;
	uint64_t id;

	if (owner->locker)
		return has_on_stack(hotspot, java, owner->locker);
	if (owner->object)
		return has_locked(hotspot, java, owner->object);
	if (!hotspot->layout.owner_ids)
		return owner->value == java->address ||
		       has_on_stack(hotspot, java, owner->value);
	return read_now(hotspot, java->address, SS_HOTSPOT_THREAD_MONITOR_ID, &id) &&
	       id == owner->value;
}

/* Whether a thread has this Thread object. */
static bool has_object(struct hotspot *hotspot, const struct java_thread *java,
		       const void *data)
{
	uint64_t object = *(const uint64_t *)data;
	uint64_t objects[2];

	ss_hotspot_thread_objects(&hotspot->objects, java->address, objects);
	return objects[0] == object || objects[1] == object;
}

/* The first thread that matches, from the last one that was found on: many threads often wait
   for the same one. */
static const struct java_thread *
find_owner(struct hotspot *hotspot,
	   bool (*matches)(struct hotspot *hotspot, const struct java_thread *java,
			   const void *data),
	   const void *data)
{
	for (size_t k = 0; k < hotspot->threads.count; k++) {
		size_t i = (hotspot->last_owner + k) % hotspot->threads.count;
		if (matches(hotspot, &hotspot->threads.items[i], data)) {
			hotspot->last_owner = i;
			return &hotspot->threads.items[i];
		}
	}
	return NULL;
}

/* Whether another thread matches, too. */
static bool has_other(struct hotspot *hotspot, const struct java_thread *java,
		      const struct owner *owner)
{
	for (size_t i = 0; i < hotspot->threads.count; i++) {
		const struct java_thread *other = &hotspot->threads.items[i];
		if (other != java && is_owner(hotspot, other, owner))
			return true;
	}
	return false;
}

/* The monitor that a thread is about to enter. Returns its owner. */
static const struct java_thread *
find_monitor(struct hotspot *hotspot, const struct java_thread *java, uint64_t *ret)
{
	struct owner owner;
	struct owner again = {};

	if (!read_now(hotspot, java->address, SS_HOTSPOT_THREAD_PENDING_MONITOR, ret) ||
	    !*ret || !read_owner(hotspot, *ret, &owner))
		return NULL;
	const struct java_thread *found = find_owner(hotspot, is_owner, &owner);
	/* The garbage collector may have moved the object while threads were compared. */
	if (!found || !read_owner(hotspot, *ret, &again) || again.value != owner.value ||
	    again.locker != owner.locker || again.object != owner.object ||
	    !is_owner(hotspot, found, &again))
		return NULL;
	/* Another object may have the address that the one on the stack of a thread had before a
	   collection. The owner is one of them. What else says who owns it is exact. */
	bool may_be_other = hotspot->objects.zgc.used && again.object;
	return may_be_other && has_other(hotspot, found, &again) ? NULL : found;
}

/* The lock of java.util.concurrent for which a thread is parked. Returns its owner. */
static const struct java_thread *
find_synchronizer(struct hotspot *hotspot, const struct java_thread *java, uint64_t *ret)
{
	uint64_t object;
	uint64_t lock;
	uint64_t again;

	if (!ss_hotspot_parked_for(&hotspot->objects, java->address, ret, &object))
		return NULL;
	const struct java_thread *found = find_owner(hotspot, has_object, &object);
	/* As above */
	if (!found ||
	    !ss_hotspot_parked_for(&hotspot->objects, java->address, &lock, &again) ||
	    lock != *ret || again != object || !has_object(hotspot, found, &again))
		return NULL;
	return found;
}

/* The object on which a thread waits for a notification. */
static bool read_waited(struct hotspot *hotspot, const struct java_thread *java,
			uint64_t *ret_monitor, uint64_t *ret_object)
{
	uint64_t handle;

	if (!hotspot->layout.at[SS_HOTSPOT_THREAD_WAITING_MONITOR] ||
	    !read_now(hotspot, java->address, SS_HOTSPOT_THREAD_WAITING_MONITOR,
		      ret_monitor) ||
	    !*ret_monitor ||
	    !read_now(hotspot, *ret_monitor, SS_HOTSPOT_MONITOR_OBJECT, &handle))
		return false;
	*ret_object = handle;
	return (hotspot->layout.direct_objects ||
		ss_hotspot_handle_read(&hotspot->objects, handle, ret_object)) &&
	       *ret_object;
}

/* The thread whose Thread object another one waits on, as Thread.join() does: its end is notified. */
static const struct java_thread *
find_joined(struct hotspot *hotspot, const struct java_thread *java, uint64_t *ret)
{
	uint64_t object;
	uint64_t monitor;
	uint64_t again;

	if (!read_waited(hotspot, java, ret, &object))
		return NULL;
	const struct java_thread *found = find_owner(hotspot, has_object, &object);
	/* As above */
	return found && read_waited(hotspot, java, &monitor, &again) && monitor == *ret &&
			       again == object && has_object(hotspot, found, &again) ?
		       found :
		       NULL;
}

/* Whether a thread waits in its Parker, by which it waits for locks of java.util.concurrent. It is
   in the JavaThread; up to 11, there is a pointer to it, which the tables do not have. */
static bool is_in_parker(const struct hotspot *hotspot, const struct java_thread *java,
			 uint64_t futex)
{
	const uint64_t *at = hotspot->layout.at;

	uint8_t bytes[THREAD_BYTES_MAX];
	const uint64_t begin = at[SS_HOTSPOT_THREAD_BASE_BYTES];
	const uint64_t end = SS_MIN(at[SS_HOTSPOT_THREAD_BYTES], (uint64_t)sizeof(bytes));

	if (!hotspot->layout.separate_parker)
		return futex - java->address < at[SS_HOTSPOT_THREAD_BYTES];
	/* All at once: each reading is a message to the parent. */
	if (begin >= end || !ss_memory_read(hotspot->process->fresh,
					    java->address + begin, bytes, end - begin))
		return false;
	for (uint64_t i = 0; i + WORD <= end - begin; i += WORD) {
		if (futex - ss_load_u64(bytes, i) < PARKER_BYTES)
			return true;
	}
	return false;
}

/* The lock that a thread waits for. The futex is the thread's own. */
static bool find_lock(struct hotspot *hotspot, const struct ss_capture_thread *thread,
		      struct ss_runtime_found_lock *ret)
{
	enum ss_lock_type type = SS_LOCK_JAVA_MONITOR;
	struct ss_futex futex;
	uint64_t lock;

	if (!ss_futex_parse(&thread->syscall, &futex) || !find_threads(hotspot))
		return false;
	const struct java_thread *java = find_thread(hotspot, thread);
	if (!java)
		return false;
	const struct java_thread *owner = find_monitor(hotspot, java, &lock);
	if ((!owner || owner == java) && is_in_parker(hotspot, java, futex.address)) {
		owner = find_synchronizer(hotspot, java, &lock);
		type = SS_LOCK_JAVA_LOCK;
	}
	if (!owner) {
		owner = find_joined(hotspot, java, &lock);
		type = SS_LOCK_THREAD;
	}
	if (!owner || owner == java)
		return false;
	*ret = (struct ss_runtime_found_lock){
		.type = type,
		.address = lock,
		.start = futex.address,
		.end = futex.address + 1,
		.owner = find_captured(hotspot, owner),
		.waiter = thread,
		.late = true,
		.lasting = type == SS_LOCK_THREAD,
	};
	return true;
}

/* Whether the stack of a thread, as it was copied, refers to the monitor in the frames of the virtual
   machine that wait for it. */
static bool refers_to(const struct hotspot *hotspot, const struct ss_memory *copied,
		      const struct ss_capture_thread *thread, uint64_t monitor)
{
	const uint64_t sp = ss_regs_sp(hotspot->process->capture->arch, &thread->regs);
	uint64_t word = 0;

	for (size_t i = 0; i < WAITING_BYTES && word != monitor; i += WORD) {
		if (!ss_memory_read_u64(copied, sp + i, &word))
			return false;
	}
	return word == monitor;
}

static size_t next_of(const struct ss_runtime_found_lock *locks, size_t count,
		      const struct ss_runtime_found_lock *lock)
{
	size_t i = 0;

	while (i < count && locks[i].waiter != lock->owner)
		i++;
	return lock->owner && i < count ? i : SS_GRAPH_NONE;
}

/* Whether a wait is the same when it is read again, and was there in the capture. The virtual machine
   lets some threads wake at times to look whether they can enter a monitor. */
static bool is_same_again(struct hotspot *hotspot, const struct ss_memory *copied,
			  const struct ss_runtime_found_lock *lock)
{
	struct ss_runtime_found_lock again;

	return find_lock(hotspot, lock->waiter, &again) && again.type == lock->type &&
	       again.address == lock->address && again.owner == lock->owner &&
	       (lock->type != SS_LOCK_JAVA_MONITOR ||
		refers_to(hotspot, copied, lock->waiter, lock->address));
}

/* Nobody leaves a cycle of waits, unless a time limit ends one of them: such a cycle is not called a
   deadlock. So it does not matter that the members are read one after the other, if all are found a
   second time. */
static void mark_cycles(struct hotspot *hotspot, const struct ss_memory *copied,
			struct ss_runtime_found_lock *locks, size_t count)
{
	_cleanup_free_ size_t *next = calloc(count + 1, sizeof(*next));
	_cleanup_free_ size_t *members = calloc(count + 1, sizeof(*members));
	struct ss_graph graph;

	if (!next || !members)
		return; /* the waits are taken as any others */
	for (size_t i = 0; i < count; i++)
		next[i] = next_of(locks, count, &locks[i]);
	if (!ss_graph_init(&graph, next, count))
		return;
	for (size_t i = 0; i < count; i++) {
		bool same = true;
		/* once for each cycle */
		if (!graph.cyclic[i] || graph.end[i] != i)
			continue;
		size_t length = ss_graph_list_cycle(&graph, i, members, count);
		for (size_t k = 0; k < length; k++)
			same = same && is_same_again(hotspot, copied, &locks[members[k]]);
		for (size_t k = 0; k < length; k++)
			locks[members[k]].cyclic = same;
	}
	ss_graph_deinit(&graph);
}

static size_t find_locks(void *state, const struct ss_memory *copied,
			 struct ss_runtime_found_lock *ret)
{
	struct hotspot *hotspot = state;
	const struct ss_capture *capture = hotspot->process->capture;
	size_t count = 0;

	if (hotspot->problem)
		return 0;
	for (size_t i = 0; i < capture->threads.count && count < SS_RUNTIME_LOCKS_MAX;
	     i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		if (!find_lock(hotspot, thread, &ret[count]))
			continue;
		/* It looks at times whether it can enter. */
		ret[count].waited =
			ret[count].type == SS_LOCK_JAVA_MONITOR &&
			refers_to(hotspot, copied, thread, ret[count].address);
		count++;
	}
	mark_cycles(hotspot, copied, ret, count);
	return count;
}

struct named_thread {
	const struct ss_capture_thread *thread;
	uint64_t address; /* of its JavaThread */
	bool known;
	struct ss_hotspot_thread_object object;
};

/* Reads the Thread object from memory. */
static bool read_thread_object(struct hotspot *hotspot, const struct ss_memory *memory,
			       const struct named_thread *named,
			       struct ss_hotspot_thread_object *ret)
{
	struct ss_hotspot_objects *objects = &hotspot->objects;

	objects->fresh = objects->zgc.fresh = memory;
	const bool ok = ss_hotspot_thread_object_read(objects, named->address, ret);
	objects->fresh = objects->zgc.fresh = hotspot->process->fresh;
	return ok;
}

/* Whether a second reading, from memory, finds the same. */
static bool is_unchanged(struct hotspot *hotspot, const struct ss_memory *memory,
			 const struct named_thread *named)
{
	struct ss_hotspot_thread_object again;

	return read_thread_object(hotspot, memory, named, &again) &&
	       named->object.id == again.id && named->object.priority == again.priority &&
	       named->object.daemon == again.daemon &&
	       strcmp(named->object.name, again.name) == 0;
}

/* Reads the Thread objects twice: first all from memory that is kept, as each reading is a
   message to the parent, then all again. Those that the garbage collector has moved meanwhile
   are read once more. */
static void read_thread_objects(struct hotspot *hotspot, struct named_thread *named,
				size_t count)
{
	const struct ss_runtime_process *process = hotspot->process;

	for (size_t i = 0; i < count; i++)
		named[i].known = read_thread_object(hotspot, process->memory, &named[i],
						    &named[i].object);
	for (size_t i = 0; i < count; i++) {
		if (!named[i].known || !is_unchanged(hotspot, process->after, &named[i]))
			named[i].known = read_thread_object(hotspot, process->fresh,
							    &named[i],
							    &named[i].object) &&
					 is_unchanged(hotspot, process->fresh, &named[i]);
	}
}

static bool find_names(void *state, struct ss_runtime_names *ret)
{
	struct hotspot *hotspot = state;
	const struct ss_capture *capture = hotspot->process->capture;
	size_t count = 0;

	if (hotspot->problem || !find_threads(hotspot))
		return true;
	struct named_thread *named = calloc(capture->threads.count, sizeof(*named));
	if (!named)
		return false;
	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		const struct java_thread *java = find_thread(hotspot, thread);
		if (java)
			named[count++] =
				(struct named_thread){ .thread = thread,
						       .address = java->address };
	}
	read_thread_objects(hotspot, named, count);
	for (size_t i = 0; i < count; i++) {
		if (!named[i].known)
			continue;
		struct ss_runtime_name *slot = ss_vector_push(&ret->items);
		if (!slot) {
			free(named);
			return false;
		}
		*slot = (struct ss_runtime_name){
			.thread = named[i].thread,
			.name = ss_intern_string(hotspot->process->strings,
						 named[i].object.name),
			.id = named[i].object.id,
			.priority = (uint8_t)named[i].object.priority,
			.daemon = named[i].object.daemon,
		};
	}
	free(named);
	return true;
}

/* Whether each thread that does not run waits for another one, or for a process. Then the program may be
   unable to go on: otherwise it does not matter what signals can do. */
static bool only_waits(const struct ss_capture *capture)
{
	struct ss_futex futex;

	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		const struct ss_call *call = ss_call_find(thread->syscall.id);
		const bool other = call && (call->kind == SS_WAIT_CHILD ||
					    call->kind == SS_WAIT_READ ||
					    call->kind == SS_WAIT_WRITE);
		if (thread->state != 'R' && !other &&
		    !ss_futex_parse(&thread->syscall, &futex))
			return false;
	}
	return true;
}

/* At SIGTERM and others the virtual machine executes shutdown hooks. The class of their list, and that
   by which programs handle signals, are loaded when the first one is registered. */
static bool has_no_signal_code(void *state)
{
	static const char *const names[] = { "java/lang/ApplicationShutdownHooks",
					     "sun/misc/Signal" };
	struct hotspot *hotspot = state;

	return !hotspot->problem && !hotspot->layout.one_heap &&
	       only_waits(hotspot->process->capture) && find_threads(hotspot) &&
	       hotspot->threads.count > 0 &&
	       ss_hotspot_lacks_classes(&hotspot->objects,
					hotspot->threads.items[0].address, names,
					SS_ARRAY_SIZE(names));
}

const struct ss_runtime ss_runtime_hotspot = {
	.kind = SS_FRAME_JAVA,
	.ahead = true,
	.open = open_hotspot,
	.close = close_hotspot,
	.step = step_hotspot,
	.walk = walk_thread,
	.locks = find_locks,
	.names = find_names,
	.no_signal_code = has_no_signal_code,
};
