#include "sandbox/filter_program.h"

#include <linux/seccomp.h>

enum { ACTIONS_MAX = 8, OFFSET_MAX = UINT8_MAX };

/* A program that is made from its end to its start, because jumps lead forwards: when an instruction
   is added, its targets are known. */
struct maker {
	struct ss_filter_program *program;
	const struct ss_filter_rule *rules;
	/* Instructions that return an action */
	struct {
		uint32_t action;
		size_t at;
	} returns[ACTIONS_MAX];
	size_t return_count;
	size_t otherwise;
	bool failed; /* it is too long */
};

static size_t add(struct maker *m, struct sock_filter instruction)
{
	if (m->program->first == 0) {
		m->failed = true;
		return 0;
	}
	m->program->code[--m->program->first] = instruction;
	return m->program->first;
}

static size_t add_load(struct maker *m, size_t offset)
{
	return add(m, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						   (uint32_t)offset));
}

/* operation: of the loaded value with value. Returns where the instruction is. */
static size_t add_jump(struct maker *m, uint16_t operation, uint32_t value,
		       size_t if_true, size_t if_false)
{
	size_t next = m->program->first;

	if (if_true - next > OFFSET_MAX || if_false - next > OFFSET_MAX)
		m->failed = true;
	return add(m, (struct sock_filter)BPF_JUMP(BPF_JMP | operation | BPF_K, value,
						   (uint8_t)(if_true - next),
						   (uint8_t)(if_false - next)));
}

/* Where the instruction is that returns an action. All are added before any jump. */
static size_t find_return(struct maker *m, uint32_t action)
{
	for (size_t i = 0; i < m->return_count; i++) {
		if (m->returns[i].action == action)
			return m->returns[i].at;
	}
	if (m->return_count == ACTIONS_MAX) {
		m->failed = true;
		return 0;
	}
	size_t at = add(m, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
	m->returns[m->return_count].action = action;
	m->returns[m->return_count++].at = at;
	return at;
}

/* The offset of a half of an argument; all processors that are supported are little-endian. */
static size_t half_of(unsigned argument, unsigned half)
{
	return offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t) +
	       half * sizeof(uint32_t);
}

/* Goes to an instruction unless the condition of the rule is met. */
static size_t add_condition(struct maker *m, const struct ss_filter_rule *rule,
			    size_t if_not)
{
	size_t action = find_return(m, rule->action);

	if (rule->condition == SS_FILTER_CLEAR) {
		add_jump(m, BPF_JSET, (uint32_t)rule->value, if_not, action);
		return add_load(m, half_of(rule->argument, 0));
	}
	add_jump(m, BPF_JEQ, (uint32_t)rule->value, action, if_not);
	size_t lower = add_load(m, half_of(rule->argument, 0));
	add_jump(m, BPF_JEQ, (uint32_t)(rule->value >> 32), lower, if_not);
	return add_load(m, half_of(rule->argument, 1));
}

/* The rules from first to end - 1 are those of one call. */
static size_t add_call(struct maker *m, size_t first, size_t end)
{
	size_t target = m->otherwise;

	for (size_t i = end; i > first; i--) {
		const struct ss_filter_rule *rule = &m->rules[i - 1];
		target = rule->condition == SS_FILTER_ALWAYS ?
				 find_return(m, rule->action) :
				 add_condition(m, rule, target);
	}
	return add_jump(m, BPF_JEQ, (uint32_t)m->rules[first].call, target, m->otherwise);
}

/* The first rule from middle on that is of another call than the one before it. */
static size_t find_boundary(const struct maker *m, size_t middle, size_t end)
{
	while (middle < end && m->rules[middle].call == m->rules[middle - 1].call)
		middle++;
	return middle;
}

/* A tree of the rules from first to end - 1. */
static size_t add_tree(struct maker *m, size_t first, size_t end)
{
	if (m->rules[first].call == m->rules[end - 1].call)
		return add_call(m, first, end);
	size_t middle = find_boundary(m, first + (end - first) / 2, end);
	if (middle == end)
		middle = find_boundary(m, first + 1, end);
	size_t above = add_tree(m, middle, end);
	size_t below = add_tree(m, first, middle);
	return add_jump(m, BPF_JGE, (uint32_t)m->rules[middle].call, above, below);
}

bool ss_filter_program_make(const struct ss_filter_rule *rules, size_t count,
			    uint32_t architecture, uint32_t otherwise,
			    struct ss_filter_program *ret)
{
	struct maker m = { .program = ret, .rules = rules };

	ret->first = SS_FILTER_CODE_MAX;
	while (count > 0 && rules->call < 0) {
		m.rules = ++rules;
		count--;
	}
	size_t kill = find_return(&m, SECCOMP_RET_KILL_PROCESS);
	m.otherwise = find_return(&m, otherwise);
	for (size_t i = 0; i < count; i++)
		(void)find_return(&m, rules[i].action);
	if (count > 0)
		add_tree(&m, 0, count);
	size_t number = add_load(&m, offsetof(struct seccomp_data, nr));
	add_jump(&m, BPF_JEQ, architecture, number, kill);
	add_load(&m, offsetof(struct seccomp_data, arch));
	return !m.failed;
}
