/* A filter decides as its rules say. Its program is executed here, as the kernel does. */
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sandbox/filter_program.h"

enum {
	ARCHITECTURE = 62,
	OTHERWISE = SECCOMP_RET_ERRNO | 1,
	CALLS = 40,
	TURNS = 200,
	TRIES = 500,
};

static const uint32_t actions[] = { SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS,
				    SECCOMP_RET_TRAP };

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t value;

	assert_true(offset % sizeof(value) == 0 &&
		    offset + sizeof(value) <= sizeof(*data));
	memcpy(&value, (const uint8_t *)data + offset, sizeof(value));
	return value;
}

static bool compare(uint16_t operation, uint32_t a, uint32_t b)
{
	switch (operation) {
	case BPF_JMP | BPF_JEQ | BPF_K:
		return a == b;
	case BPF_JMP | BPF_JGE | BPF_K:
		return a >= b;
	case BPF_JMP | BPF_JSET | BPF_K:
		return a & b;
	default:
		fail_msg("instruction %x", operation);
		return false;
	}
}

static uint32_t execute(const struct ss_filter_program *program,
			const struct seccomp_data *data)
{
	uint32_t loaded = 0;

	for (size_t at = program->first; at < SS_FILTER_CODE_MAX; at++) {
		const struct sock_filter *instruction = &program->code[at];
		if (instruction->code == (BPF_RET | BPF_K))
			return instruction->k;
		if (instruction->code == (BPF_LD | BPF_W | BPF_ABS))
			loaded = load(data, instruction->k);
		else
			at += compare(instruction->code, loaded, instruction->k) ?
				      instruction->jt :
				      instruction->jf;
	}
	fail_msg("the program does not end");
	return 0;
}

static bool is_met(const struct ss_filter_rule *rule, const struct seccomp_data *data)
{
	switch (rule->condition) {
	case SS_FILTER_EQUAL:
		return data->args[rule->argument] == rule->value;
	case SS_FILTER_CLEAR:
		return !((uint32_t)data->args[rule->argument] & (uint32_t)rule->value);
	default:
		return true;
	}
}

static uint32_t decide(const struct ss_filter_rule *rules, size_t count,
		       const struct seccomp_data *data)
{
	if (data->arch != ARCHITECTURE)
		return SECCOMP_RET_KILL_PROCESS;
	for (size_t i = 0; i < count; i++) {
		if (rules[i].call == data->nr && is_met(&rules[i], data))
			return rules[i].action;
	}
	return OTHERWISE;
}

/* Values of which some are alike in one half. */
static uint64_t make_value(void)
{
	static const uint64_t values[] = { 0,	      1, 2, 3, 1ULL << 32, 1ULL << 32 | 1,
					   UINT64_MAX };

	return values[(size_t)rand() % (sizeof(values) / sizeof(values[0]))];
}

static struct ss_filter_rule make_rule(int call)
{
	return (struct ss_filter_rule){
		.call = call,
		.action = actions[rand() % 3],
		.condition = (enum ss_filter_condition)(rand() % 3),
		.argument = (unsigned)rand() % 2,
		.value = make_value(),
	};
}

/* A rule that is always met ends the alternatives. */
static size_t make_rules(struct ss_filter_rule *rules)
{
	size_t count = 0;

	for (int call = -2; call < CALLS; call++) {
		for (int i = rand() % 4; i > 0; i--)
			rules[count++] = make_rule(call);
	}
	return count;
}

static void compare_decisions(const struct ss_filter_rule *rules, size_t count)
{
	struct ss_filter_program program;

	assert_true(
		ss_filter_program_make(rules, count, ARCHITECTURE, OTHERWISE, &program));
	for (int i = 0; i < TRIES; i++) {
		const struct seccomp_data data = {
			.nr = rand() % (CALLS + 4) - 2,
			.arch = ARCHITECTURE + (uint32_t)(rand() % 20 == 0),
			.args = { make_value(), make_value() },
		};
		if (data.nr >= 0)
			assert_int_equal(execute(&program, &data),
					 decide(rules, count, &data));
	}
}

static void test_decisions(void **state)
{
	struct ss_filter_rule rules[(CALLS + 2) * 3];

	(void)state;
	srand(1);
	for (int turn = 0; turn < TURNS; turn++)
		compare_decisions(rules, make_rules(rules));
}

/* Numbers of another interface of the same processor (x32) are those of no rule. */
static void test_few_rules(void **state)
{
	const struct ss_filter_rule rules[] = { { 3, SECCOMP_RET_ALLOW, SS_FILTER_ALWAYS,
						  0, 0 } };
	const struct seccomp_data x32 = { .nr = 1 << 30 | 3, .arch = ARCHITECTURE };
	struct ss_filter_program program;

	(void)state;
	compare_decisions(rules, 1);
	compare_decisions(rules, 0);
	assert_true(ss_filter_program_make(rules, 1, ARCHITECTURE, OTHERWISE, &program));
	assert_int_equal(execute(&program, &x32), OTHERWISE);
}

static void test_too_many(void **state)
{
	static struct ss_filter_rule rules[1000];
	struct ss_filter_program program;

	(void)state;
	for (int i = 0; i < 1000; i++)
		rules[i] =
			(struct ss_filter_rule){ .call = i, .action = SECCOMP_RET_ALLOW };
	assert_false(
		ss_filter_program_make(rules, 1000, ARCHITECTURE, OTHERWISE, &program));
	/* A jump cannot reach so far. */
	assert_false(
		ss_filter_program_make(rules, 250, ARCHITECTURE, OTHERWISE, &program));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decisions),
		cmocka_unit_test(test_few_rules),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
