#include "process/sample_reader.h"

#include "arch/arch.h"
#include "base/cleanup.h"
#include "data/gather.h"

enum {
	/* Kept in registers */
	CONTEXT = BPF_REG_6,
	THREAD = BPF_REG_7, /* struct ss_gather_thread */
	RECORD = BPF_REG_8, /* struct ss_gather_record */
	STACK = BPF_REG_10,
	/* Places on the stack */
	KEY = -8,
	IDS = -16, /* struct bpf_pidns_info */
	NUMBER = -24,
	STEPS = -32,
	STEP_SIZE = 24,
	ADDRESS = 0, /* of a step: the node */
	COPY = -8,   /* its copy */
	COUNT = -16, /* its index in the list */
	/* To the end: two of each node, of each root */
	JUMPS_MAX = 2 * SS_GATHER_PROGRAM_STEPS * SS_GATHER_PROGRAM_ROOTS,
	COPY_MAX = 4096,
};

struct maker {
	struct ss_bpf_code *code;
	const struct ss_gather_plan *plan;
	size_t full[JUMPS_MAX]; /* jumps: there is no room */
	size_t full_count;
};

static int place(uint32_t step, int what)
{
	return STEPS - (int)step * STEP_SIZE + what;
}

/* Returns 1, so that the kernel writes its sample, unless BPF_REG_0 compares like that with 0. */
static void exit_unless(struct ss_bpf_code *code, uint8_t condition)
{
	size_t go_on = ss_bpf_jump(code, condition, BPF_REG_0, 0);

	ss_bpf_set(code, BPF_REG_0, 1);
	ss_bpf_exit(code);
	ss_bpf_land(code, go_on);
}

/* ss_gather_key() of the thread, as this process knows it, at KEY; also in BPF_REG_0. Ends the program if it has
   none. */
static void find_key(struct ss_bpf_code *code, const struct ss_gather_maps *maps)
{
	if (maps->namespace_inode == 0) {
		ss_bpf_call(code, BPF_FUNC_get_current_pid_tgid);
	} else {
		ss_bpf_set(code, BPF_REG_1, maps->namespace_device);
		ss_bpf_set(code, BPF_REG_2, maps->namespace_inode);
		ss_bpf_move(code, BPF_REG_3, STACK);
		ss_bpf_add_value(code, BPF_REG_3, IDS);
		ss_bpf_set(code, BPF_REG_4, sizeof(struct bpf_pidns_info));
		ss_bpf_call(code, BPF_FUNC_get_ns_current_pid_tgid);
		exit_unless(code, BPF_JEQ);
		/* Its members are in the same order. */
		ss_bpf_read(code, BPF_REG_0, STACK, IDS, sizeof(uint64_t));
	}
	ss_bpf_write(code, STACK, KEY, BPF_REG_0, sizeof(uint64_t));
}

/* The element of a map with the key at KEY, in BPF_REG_0; or 0. */
static void look_up(struct ss_bpf_code *code, int map_fd)
{
	ss_bpf_load_map(code, BPF_REG_1, map_fd);
	ss_bpf_move(code, BPF_REG_2, STACK);
	ss_bpf_add_value(code, BPF_REG_2, KEY);
	ss_bpf_call(code, BPF_FUNC_map_lookup_elem);
}

/* Likewise, of its process. */
static void look_up_process(struct ss_bpf_code *code, const struct ss_gather_maps *maps)
{
	ss_bpf_write_value(code, STACK, KEY, 0, sizeof(uint32_t));
	look_up(code, maps->threads);
	exit_unless(code, BPF_JNE);
}

void ss_gather_program_dispatch(struct ss_bpf_code *code,
				const struct ss_gather_maps *maps)
{
	ss_bpf_move(code, CONTEXT, BPF_REG_1);
	find_key(code, maps);
	look_up_process(code, maps);
	ss_bpf_read(code, BPF_REG_3, BPF_REG_0,
		    offsetof(struct ss_gather_thread, program), sizeof(uint32_t));
	ss_bpf_move(code, BPF_REG_1, CONTEXT);
	ss_bpf_load_map(code, BPF_REG_2, maps->programs);
	ss_bpf_call(code, BPF_FUNC_tail_call); /* returns only if there is none */
	ss_bpf_set(code, BPF_REG_0, 1);
	ss_bpf_exit(code);
}

/* Finds the record to be written, and begins it. */
static void begin(struct ss_bpf_code *code, const struct ss_gather_maps *maps)
{
	find_key(code, maps);
	ss_bpf_move(code, BPF_REG_9, BPF_REG_0); /* the lower half: the thread id */
	look_up(code, maps->threads);
	size_t known = ss_bpf_jump(code, BPF_JNE, BPF_REG_0, 0);
	look_up_process(code, maps);
	ss_bpf_land(code, known);
	ss_bpf_move(code, THREAD, BPF_REG_0);
	ss_bpf_write_value(code, STACK, KEY, 0, sizeof(uint32_t));
	look_up(code, maps->counters);
	exit_unless(code, BPF_JNE);
	ss_bpf_read(code, BPF_REG_1, BPF_REG_0, 0, sizeof(uint64_t));
	ss_bpf_add_value(code, BPF_REG_1, 1);
	ss_bpf_write(code, BPF_REG_0, 0, BPF_REG_1, sizeof(uint64_t));
	ss_bpf_write(code, STACK, NUMBER, BPF_REG_1, sizeof(uint64_t));
	ss_bpf_call(code, BPF_FUNC_get_smp_processor_id);
	ss_bpf_operate(code, BPF_MUL, BPF_REG_0, maps->record_count);
	ss_bpf_read(code, BPF_REG_1, STACK, NUMBER, sizeof(uint64_t));
	ss_bpf_operate(code, BPF_AND, BPF_REG_1, maps->record_count - 1);
	ss_bpf_add(code, BPF_REG_0, BPF_REG_1);
	ss_bpf_write(code, STACK, KEY, BPF_REG_0, sizeof(uint32_t));
	look_up(code, maps->records);
	exit_unless(code, BPF_JNE);
	ss_bpf_move(code, RECORD, BPF_REG_0);
	ss_bpf_read(code, BPF_REG_1, STACK, NUMBER, sizeof(uint64_t));
	ss_bpf_write(code, RECORD, offsetof(struct ss_gather_record, begin), BPF_REG_1,
		     sizeof(uint64_t));
	ss_bpf_write(code, RECORD, offsetof(struct ss_gather_record, tid), BPF_REG_9,
		     sizeof(uint32_t));
	ss_bpf_write_value(code, RECORD, offsetof(struct ss_gather_record, cut), 0,
			   sizeof(uint32_t));
	ss_bpf_write_value(code, RECORD, offsetof(struct ss_gather_record, used),
			   sizeof(struct ss_gather_record), sizeof(uint64_t));
	ss_bpf_call(code, BPF_FUNC_ktime_get_ns);
	ss_bpf_write(code, RECORD, offsetof(struct ss_gather_record, time_ns), BPF_REG_0,
		     sizeof(uint64_t));
}

static void finish(struct maker *maker)
{
	struct ss_bpf_code *code = maker->code;
	size_t whole = ss_bpf_jump(code, BPF_JA, 0, 0);

	for (size_t i = 0; i < maker->full_count; i++)
		ss_bpf_land(code, maker->full[i]);
	ss_bpf_write_value(code, RECORD, offsetof(struct ss_gather_record, cut), 1,
			   sizeof(uint32_t));
	ss_bpf_land(code, whole);
	ss_bpf_read(code, BPF_REG_1, STACK, NUMBER, sizeof(uint64_t));
	ss_bpf_write(code, RECORD, offsetof(struct ss_gather_record, end), BPF_REG_1,
		     sizeof(uint64_t));
	ss_bpf_set(code, BPF_REG_0, 1);
	ss_bpf_exit(code);
}

/*
 * Copies the node of a step, whose address is in its place. The jump that is returned is taken if it
 * cannot be read. How much of the record is used is kept in the record: the kernel checks all ways
 * through a program, and would follow each sum of sizes by itself if it knew them.
 */
static size_t copy_node(struct maker *maker, uint32_t index)
{
	struct ss_bpf_code *code = maker->code;
	const uint32_t size = maker->plan->steps[index].size;
	const uint32_t room =
		(uint32_t)sizeof(struct ss_gather_block) + (size + 7) / 8 * 8;
	const int head = -(int)sizeof(struct ss_gather_block);

	ss_bpf_read(code, BPF_REG_9, RECORD, offsetof(struct ss_gather_record, used),
		    sizeof(uint64_t));
	maker->full[maker->full_count++] = ss_bpf_jump(
		code, BPF_JGT, BPF_REG_9, (int32_t)(SS_GATHER_RECORD_SIZE - room));
	ss_bpf_move(code, BPF_REG_1, RECORD);
	ss_bpf_add(code, BPF_REG_1, BPF_REG_9);
	ss_bpf_add_value(code, BPF_REG_9, (int32_t)room);
	ss_bpf_write(code, RECORD, offsetof(struct ss_gather_record, used), BPF_REG_9,
		     sizeof(uint64_t));
	ss_bpf_add_value(code, BPF_REG_1, -head);
	ss_bpf_read(code, BPF_REG_3, STACK, place(index, ADDRESS), sizeof(uint64_t));
	ss_bpf_write(code, BPF_REG_1,
		     head + (int)offsetof(struct ss_gather_block, address), BPF_REG_3,
		     sizeof(uint64_t));
	ss_bpf_write_value(code, BPF_REG_1,
			   head + (int)offsetof(struct ss_gather_block, size),
			   (int32_t)size, sizeof(uint64_t));
	ss_bpf_write_value(code, BPF_REG_1,
			   head + (int)offsetof(struct ss_gather_block, readable), 1,
			   sizeof(uint64_t));
	ss_bpf_write(code, STACK, place(index, COPY), BPF_REG_1, sizeof(uint64_t));
	ss_bpf_set(code, BPF_REG_2, size);
	ss_bpf_call(code, BPF_FUNC_probe_read_user);
	size_t readable = ss_bpf_jump(code, BPF_JEQ, BPF_REG_0, 0);
	ss_bpf_read(code, BPF_REG_1, STACK, place(index, COPY), sizeof(uint64_t));
	ss_bpf_write_value(code, BPF_REG_1,
			   head + (int)offsetof(struct ss_gather_block, readable), 0,
			   sizeof(uint64_t));
	size_t unreadable = ss_bpf_jump(code, BPF_JA, 0, 0);
	ss_bpf_land(code, readable);
	return unreadable;
}

static void make_node(struct maker *maker, uint32_t index);

/* The steps that follow from a node. */
static void make_children(struct maker *maker, uint32_t parent)
{
	struct ss_bpf_code *code = maker->code;

	for (uint32_t i = parent + 1; i < maker->plan->step_count; i++) {
		const struct ss_gather_step *step = &maker->plan->steps[i];
		if (step->base != SS_GATHER_POINTER || step->parent != parent)
			continue;
		ss_bpf_read(code, BPF_REG_1, STACK, place(parent, COPY),
			    sizeof(uint64_t));
		ss_bpf_read(code, BPF_REG_1, BPF_REG_1, (int)step->field,
			    sizeof(uint64_t));
		make_node(maker, i);
	}
}

/* From a value in BPF_REG_1 to the address of a node. The jump is taken if there is none. */
static size_t make_address(struct maker *maker, uint32_t index)
{
	const struct ss_gather_step *step = &maker->plan->steps[index];
	struct ss_bpf_code *code = maker->code;

	if (step->mask != UINT64_MAX) {
		ss_bpf_set(code, BPF_REG_2, step->mask);
		ss_bpf_and(code, BPF_REG_1, BPF_REG_2);
	}
	size_t none = ss_bpf_jump(code, BPF_JEQ, BPF_REG_1, 0);
	ss_bpf_add_value(code, BPF_REG_1, (int32_t)step->offset);
	ss_bpf_write(code, STACK, place(index, ADDRESS), BPF_REG_1, sizeof(uint64_t));
	return none;
}

/* A node, or a list, for a value in BPF_REG_1. */
static void make_node(struct maker *maker, uint32_t index)
{
	const struct ss_gather_step *step = &maker->plan->steps[index];
	const uint32_t count = SS_MIN(step->max_nodes, (uint32_t)SS_GATHER_PROGRAM_NODES);
	struct ss_bpf_code *code = maker->code;
	size_t none = make_address(maker, index);

	if (step->max_nodes > 1) {
		/* Older kernels know of no value that was written as a constant. */
		ss_bpf_set(code, BPF_REG_1, 1);
		ss_bpf_write(code, STACK, place(index, COUNT), BPF_REG_1,
			     sizeof(uint64_t));
	}
	const size_t first = code->items.count;
	size_t unreadable = copy_node(maker, index);
	make_children(maker, index);
	if (step->max_nodes > 1) {
		ss_bpf_read(code, BPF_REG_1, STACK, place(index, COPY), sizeof(uint64_t));
		ss_bpf_read(code, BPF_REG_1, BPF_REG_1, (int)step->next,
			    sizeof(uint64_t));
		size_t last = make_address(maker, index);
		ss_bpf_read(code, BPF_REG_1, STACK, place(index, COUNT),
			    sizeof(uint64_t));
		maker->full[maker->full_count++] =
			ss_bpf_jump(code, BPF_JGE, BPF_REG_1, (int32_t)count);
		ss_bpf_add_value(code, BPF_REG_1, 1);
		ss_bpf_write(code, STACK, place(index, COUNT), BPF_REG_1,
			     sizeof(uint64_t));
		ss_bpf_jump_back(code, first);
		ss_bpf_land(code, last);
	}
	ss_bpf_land(code, unreadable);
	ss_bpf_land(code, none);
}

/* Where struct pt_regs has a register: it begins like the registers of a core file. -1: nowhere. */
static int find_register(uint32_t number)
{
	const uint8_t *words = ss_arch_host.core_regs.regs;

	return number < SS_REG_MAX && words[number] ?
		       (words[number] - 1) * (int)SS_SAMPLE_WORD :
		       -1;
}

/* A register of the thread in user space, also if it is in the kernel now. */
static void read_register(struct maker *maker, const struct ss_gather_step *step)
{
	struct ss_bpf_code *code = maker->code;

	ss_bpf_call(code, BPF_FUNC_get_current_task_btf);
	ss_bpf_move(code, BPF_REG_1, BPF_REG_0);
	ss_bpf_call(code, BPF_FUNC_task_pt_regs);
	ss_bpf_read(code, BPF_REG_1, BPF_REG_0, find_register(step->parent),
		    sizeof(uint64_t));
}

/* The kernel checks each turn of a loop, so that of lists in lists it checks far too many. */
static bool is_in_list(const struct ss_gather_plan *plan, uint32_t index)
{
	while (plan->steps[index].base == SS_GATHER_POINTER) {
		index = plan->steps[index].parent;
		if (plan->steps[index].max_nodes > 1)
			return true;
	}
	return false;
}

static bool is_known(const struct ss_gather_plan *plan, uint32_t index)
{
	const struct ss_gather_step *step = &plan->steps[index];
	const bool has_base =
		step->base == SS_GATHER_ROOT || step->base == SS_GATHER_POINTER ||
		(step->base == SS_GATHER_REGISTER && find_register(step->parent) >= 0);

	return has_base && step->stride == 0 && step->count_size == 0 &&
	       step->end_size == 0 && step->check_size == 0 && step->size <= COPY_MAX &&
	       step->offset >= INT32_MIN && step->offset <= INT32_MAX &&
	       (step->max_nodes == 1 || !is_in_list(plan, index));
}

bool ss_gather_program_make(struct ss_bpf_code *code, const struct ss_gather_maps *maps,
			    const struct ss_gather_plan *plan, size_t roots)
{
	struct maker maker = { .code = code, .plan = plan };

	if (plan->step_count > SS_GATHER_PROGRAM_STEPS)
		return false;
	for (uint32_t i = 0; i < plan->step_count; i++) {
		if (!is_known(plan, i))
			return false;
	}
	begin(code, maps);
	for (uint32_t i = 0; i < plan->step_count; i++) {
		const struct ss_gather_step *step = &plan->steps[i];
		for (size_t r = 0; r < roots && step->base == SS_GATHER_ROOT; r++) {
			ss_bpf_read(code, BPF_REG_1, THREAD,
				    (int)(offsetof(struct ss_gather_thread, roots) +
					  r * sizeof(uint64_t)),
				    sizeof(uint64_t));
			make_node(&maker, i);
		}
		if (step->base == SS_GATHER_REGISTER) {
			read_register(&maker, step);
			make_node(&maker, i);
		}
	}
	finish(&maker);
	return !code->failed;
}
