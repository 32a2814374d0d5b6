#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/procfs.h"

#define TAIL                                                                             \
	" S 1 2 3 34816 4 4194368 5 6 7 8 9 10 11 12 20 -5 3 0 987654321 1 2 "           \
	"18446744073709551615 1 2 3 4 5 0 0 0 0 0 0 0 17 6 0 0\n"

static struct ss_stat stat;
static struct ss_status status;
static struct ss_syscall_text call;

static bool parse_stat(const char *text)
{
	return ss_stat_parse(text, strlen(text), &stat);
}

static bool parse_status(const char *text)
{
	return ss_status_parse(text, strlen(text), &status);
}

static bool parse_call(const char *text)
{
	return ss_syscall_parse(text, strlen(text), &call);
}

TEST(test_stat)
{
	assert_true(parse_stat("42 (a) (b c)) R 1)" TAIL));
	assert_string_equal(stat.comm, "a) (b c)) R 1");
	assert_int_equal(stat.pid, 42);
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.start_time, 987654321);
	assert_int_equal(stat.system_ticks, 10);
	assert_int_equal(stat.processor, 6);
	assert_false(stat.kernel_thread);
	assert_false(stat.exiting);
	assert_true(stat.forked);
	assert_true(
		parse_stat("1 (init) S 0 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 3 0"));
	assert_false(stat.forked);
	assert_true(parse_stat("42 ()" TAIL));
	assert_string_equal(stat.comm, "");
	assert_true(parse_stat("42 (\xff\x1b\n)" TAIL));
	assert_string_equal(stat.comm, "\xff\x1b\n");
	assert_true(parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 "
			       "0 3 0"));
	assert_true(stat.kernel_thread);
	assert_int_equal(stat.start_time, 3);
}

TEST(test_stat_long_comm)
{
	char text[512];

	memset(text, ')', sizeof(text));
	memcpy(text, "7 (", 3);
	memcpy(text + 200, TAIL, sizeof(TAIL));
	assert_true(parse_stat(text));
	assert_int_equal(strlen(stat.comm), sizeof(stat.comm) - 1);
	assert_int_equal(stat.state, 'S');
}

TEST(test_invalid_stat)
{
	const char *const bad[] = {
		"",
		"42",
		"42 (a",
		"42 a)",
		")(",
		"42 (a)",
		"42 (a) S",
		"42 (a) S 1",
		"(a)" TAIL,
		"99999999999 (a)" TAIL,
		"42 (a) S 1 2 3 x",
		"42 (a) S 1 2 3 4 5 99999999999999999999999 5 6 7 8 9 10",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse_stat(bad[i]));
}

TEST(test_status)
{
	assert_true(
		parse_status("Name:\tTgid:\\n1\nUmask:\t0022\nTgid:\t77\nTracerPid:\t8\n"
			     "Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n"
			     "SigCgt:\t0000000100004002\n"
			     "CapPrm:\t000001ffffffffff\nCapEff:\t0000000000080000\n"
			     "CoreDumping:\t1\nVmSwap:\t       0 kB\n"
			     "Seccomp:\t2\nSeccomp_filters:\t9\n"));
	assert_true(status.dumping_core);
	assert_true(status.not_swapped);
	assert_int_equal(status.tgid, 77);
	assert_int_equal(status.tracer, 8);
	assert_int_equal(status.uid[2], 3);
	assert_int_equal(status.gid[0], 5);
	assert_int_equal(status.cap_effective, 0x80000);
	assert_int_equal(status.handled_signals, 0x100004002);
	assert_int_equal(status.cap_permitted, 0x1ffffffffff);
	assert_true(status.seccomp_filter);
	assert_true(parse_status("Tgid: 1\nVmSwap:\t4 kB\n"));
	assert_false(status.not_swapped);
	assert_true(parse_status("Tgid: 1"));
	assert_false(status.dumping_core);
	assert_false(status.not_swapped);
	assert_int_equal(status.tracer, 0);
	assert_false(status.seccomp_filter);
	assert_false(parse_status(""));
	assert_false(parse_status("Tgid:\n"));
	assert_false(parse_status("Tgid:\t9999999999\n"));
	assert_false(parse_status("xTgid:\t1\n"));
	assert_int_equal(status.inner_id, 0);
	assert_true(parse_status("Tgid:\t9\nNSpid:\t9\t4\t1\nNSpgid:\t8\t3\t2\n"));
	assert_int_equal(status.inner_id, 1);
	assert_int_equal(status.id_count, 3);
	assert_true(parse_status("Tgid:\t9\nNSpid:\t9"));
	assert_int_equal(status.inner_id, 9);
	assert_int_equal(status.id_count, 1);
	assert_true(parse_status("Tgid:\t9\nNSpid:\t\n"));
	assert_int_equal(status.inner_id, 0);
	assert_true(parse_status("Tgid:\t1\nUid:\t1\t2\n"));
	assert_int_equal(status.uid[0], 0);
}

TEST(test_syscall)
{
	assert_true(parse_call("running\n"));
	assert_int_equal(call.kind, SS_SYSCALL_RUNNING);
	assert_true(parse_call("-1 0x7ffd1000 0x401000\n"));
	assert_int_equal(call.kind, SS_SYSCALL_NONE);
	assert_int_equal(call.number, -1);
	assert_int_equal(call.sp, 0x7ffd1000);
	assert_true(parse_call(
		"0 0x0 0x1 0x2 0x3 0x4 0xffffffffffffffff 0x7ffd1000 0x401000"));
	assert_int_equal(call.kind, SS_SYSCALL_BLOCKED);
	assert_int_equal(call.number, 0);
	assert_true(call.args[5] == UINT64_MAX);
	assert_int_equal(call.pc, 0x401000);
	assert_false(parse_call(""));
	assert_false(parse_call("0 0x0 0x1 0x2 0x3 0x4 0x5 0x7ffd1000"));
	assert_false(parse_call("0 0 1 2 3 4 5 6 7"));
	assert_false(parse_call("99999999999 0x0 0x1 0x2 0x3 0x4 0x5 0x6 0x7"));
	assert_false(parse_call("-1 0x1ffffffffffffffff 0x1"));
	assert_false(parse_call("-1"));
}

TEST(test_schedstat)
{
	struct ss_schedstat sched;
	static const char text[] = "6949183 13482 18446744073709551615\n";
	static const char *const wrong[] = {
		"", "1", "1 2", "1 2 x", "-1 2 3", "1 2 18446744073709551616"
	};

	assert_true(ss_schedstat_parse(text, strlen(text), &sched));
	assert_int_equal(sched.run_ns, 6949183);
	assert_int_equal(sched.wait_ns, 13482);
	assert_true(sched.run_count == UINT64_MAX);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(ss_schedstat_parse(wrong[i], strlen(wrong[i]), &sched));
}

TEST(test_kernel_stack)
{
	static const char *const texts[][2] = {
		{ "[<0>] kernel_clone+0x1af/0x3e0\n[<0>] do_syscall_64+0x71/0x280\n",
		  "kernel_clone+0x1af/0x3e0\ndo_syscall_64+0x71/0x280" },
		{ "[<ffffffff8106f2d9>] a+0x1/0x2 [ext4]\n", "a+0x1/0x2 [ext4]" },
		{ "futex_wait_queue", "futex_wait_queue" },
		{ "", "" },
		{ "\n\n", "" },
		{ "[", "[" },
		{ "[<0>] ", "" },
		{ "[<0>] \n[<0>] b", "b" },
		{ "[<0>]\na b", "[<0>]\na b" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		size_t size = strlen(texts[i][0]);
		char *text = strdup(texts[i][0]);
		assert_int_equal(ss_kernel_stack_clean(text, size), strlen(texts[i][1]));
		assert_string_equal(text, texts[i][1]);
		free(text);
	}
}
