/* The summary of record: what is missing, and the remedy for it. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/failure.h"
#include "stacksnap/record.h"

/* What the summary says on standard error. */
static void summarize(const struct ss_recorder_summary *summary, bool on_cpu, char *ret,
		      size_t size)
{
	struct ss_record_report report = { .on_cpu = on_cpu };
	FILE *file = tmpfile();
	assert_non_null(file);
	const int before = dup(STDERR_FILENO);

	assert_true(before >= 0);
	(void)fflush(stderr);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	ss_record_report_end(summary, "name", &report);
	(void)fflush(stderr);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	(void)close(before);
	rewind(file);
	const size_t length = fread(ret, 1, size - 1, file);
	ret[length] = '\0';
	(void)fclose(file);
}

/* Checks that one text is said, and another one is not. */
static void check(const struct ss_recorder_summary *summary, bool on_cpu,
		  const char *present, const char *absent)
{
	char text[4096];

	summarize(summary, on_cpu, text, sizeof(text));
	if (present && !strstr(text, present))
		fail_msg("\"%s\" is not in: %s", present, text);
	if (absent && strstr(text, absent))
		fail_msg("\"%s\" is in: %s", absent, text);
}

TEST(test_nothing_is_missing)
{
	struct ss_recorder_summary summary = { .sampled_cpus = true };

	check(&summary, false, "the kernel sampled running threads", "not available");
	check(&summary, true, "the CPUs were sampled", "not available");
	check(&summary, true, "no thread was stopped", "threads were stopped");
	check(&summary, false, "no thread was stopped", "have no stack");
}

/* Times are of stops that are counted, and of each, not parts of the time of one thread. */
TEST(test_stops)
{
	struct ss_recorder_summary summary = { .perf_errno = EACCES,
					       .duration_ns = 1000 * 1000 * 1000,
					       .thread_stops = 1000,
					       .stopped_ns = 1430 * 1000 * 1000ull,
					       .stopped_max_ns = 4 * 1000 * 1000,
					       .not_stopped = 20 };

	check(&summary, false,
	      "threads were stopped 1,000 times, for 1.43 s in total, 1.43 ms each on "
	      "average, "
	      "4.00 ms at most",
	      "of the time)");
	check(&summary, false, "20 samples of running threads have no stack", NULL);
}

TEST(test_no_programs)
{
	static const struct {
		int errnum;
		const char *remedy;
	} cases[] = {
		{ EPERM, "it needs CAP_BPF and CAP_PERFMON, which root has" },
		{ EACCES, "it needs CAP_BPF and CAP_PERFMON, which root has" },
		{ EMFILE, "it needs a larger limit of open files (ulimit -Hn)" },
		{ ENOMEM, "it needs 512 KiB of memory for each CPU" },
		{ EINVAL, "it needs Linux 5.11 or later" },
		{ ENOSYS, "it needs Linux 5.11 or later" },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		struct ss_recorder_summary summary = { .sampled_cpus = true,
						       .copy_errno = cases[i].errnum };
		check(&summary, false, cases[i].remedy, NULL);
		check(&summary, false, "threads were stopped to read their functions",
		      NULL);
		check(&summary, true, cases[i].remedy, "stopped to read their functions");
		check(&summary, true, "samples have no Python or JavaScript functions",
		      NULL);
		check(&summary, true, strerror(cases[i].errnum), NULL);
	}
}

TEST(test_no_samples)
{
	static const struct {
		int errnum;
		const char *remedy;
	} cases[] = {
		{ EACCES, "with CAP_PERFMON, which root has outside of containers, or "
			  "with kernel.perf_event_paranoid=0" },
		{ EPERM, "with CAP_PERFMON, which root has outside of containers, or "
			 "with kernel.perf_event_paranoid=0" },
		{ EMFILE, "with a larger limit of open files (ulimit -Hn)" },
		{ ENOMEM, "with more memory" },
		{ ENOSYS, "with a kernel that has perf events" },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		struct ss_recorder_summary summary = { .perf_errno = cases[i].errnum,
						       .copy_errno = ENOENT };
		/* Programs of samples that are not taken are no remedy. */
		check(&summary, false, cases[i].remedy, "bpf");
		check(&summary, false, strerror(cases[i].errnum), "sampled running");
		check(&summary, true, cases[i].remedy, "bpf");
		check(&summary, true, "short bursts of work are missing", NULL);
		check(&summary, true, "no thread was stopped", NULL);
	}
}

TEST(test_losses)
{
	struct ss_recorder_summary summary = { .sampled_cpus = true };

	check(&summary, false, NULL, "lost");
	check(&summary, false, NULL, "children");
	summary.lost = 3;
	summary.loss = "unwinding died";
	summary.left_out = true;
	summary.undropped = ENOSPC;
	check(&summary, false, "unwinding died; 3 ticks lost", NULL);
	check(&summary, false, "some children were not recorded: too many open files",
	      NULL);
	check(&summary, false, "cannot be dropped, so the file grows", NULL);
}
