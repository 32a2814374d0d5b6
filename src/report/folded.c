/*
 * One line for each different stack of each name of a thread, outermost frame first, with
 * the number of samples. As the format of the same name of a snapshot: in names ';'
 * becomes
 * ':', in those of processes and threads white space becomes '_'.
 */
#include <inttypes.h>

#include "report/report.h"
#include "view/escape.h"

static const struct ss_substitution in_names = { ";: \t\r\n", "::____" };
static const struct ss_substitution in_frames = { ";", ":" };

/* Texts of a profile are kept once: equal texts have equal addresses. */
struct line {
	const char *process;
	const char *thread;
	uint64_t node;
};

struct lines {
	const struct ss_profile *profile;
	struct ss_numbering numbering; /* of struct line */
	SS_VECTOR(uint64_t) counts;
	SS_VECTOR(uint32_t) path; /* of the line that is written */
};

static void lines_deinit(struct lines *lines)
{
	ss_numbering_deinit(&lines->numbering);
	ss_vector_free(&lines->counts);
	ss_vector_free(&lines->path);
}

static bool add_run(struct lines *lines, const struct ss_profile_thread *thread,
		    const struct ss_profile_run *run)
{
	const struct line line = {
		.process = lines->profile->processes.items[thread->process].name,
		.thread = thread->name,
		.node = lines->profile->node_of.items[run->call],
	};
	uint32_t number = ss_numbering_get(&lines->numbering, &line);

	if (number == SS_NUMBER_NOT ||
	    (number == lines->counts.count && !ss_vector_push(&lines->counts)))
		return false;
	lines->counts.items[number] += run->count;
	return true;
}

static bool add_runs(struct lines *lines)
{
	const struct ss_profile *profile = lines->profile;

	for (size_t t = 0; t < profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			if (!add_run(lines, thread, &thread->runs.items[r]))
				return false;
		}
	}
	return true;
}

static bool write_line(struct lines *lines, uint32_t number, FILE *out)
{
	const struct ss_profile *profile = lines->profile;
	const struct line *line = ss_numbering_key(&lines->numbering, number);

	lines->path.count = 0;
	for (uint64_t node = line->node; node != 0;
	     node = ss_profile_node_at(profile, node)->parent) {
		uint32_t *slot = ss_vector_push(&lines->path);
		if (!slot)
			return false;
		*slot = ss_profile_node_at(profile, node)->function;
	}
	ss_escape_write(line->process, &in_names, out);
	(void)fputc_unlocked(';', out); /* ferror() is asked at the end */
	ss_escape_write(line->thread, &in_names, out);
	for (size_t i = lines->path.count; i-- > 0;) {
		(void)fputc_unlocked(';', out);
		ss_escape_write(
			ss_profile_function_at(profile, lines->path.items[i])->name,
			&in_frames, out);
	}
	(void)fprintf(out, " %" PRIu64 "\n", lines->counts.items[number]);
	return true;
}

static struct ss_error *write_folded(const struct ss_profile *profile,
				     const struct ss_report_options *options, FILE *out)
{
	__attribute__((cleanup(lines_deinit))) struct lines lines = {
		.profile = profile,
		.numbering = { .key_size = sizeof(struct line) },
	};
	bool whole = add_runs(&lines);

	(void)options;
	for (size_t i = 0; whole && i < lines.counts.count; i++)
		whole = write_line(&lines, (uint32_t)i, out);
	return whole ? NULL : ss_error_no_memory();
}

const struct ss_reporter ss_reporter_folded = {
	.name = "folded",
	.summary = "process;thread;outermost;...;innermost SAMPLES, for flame graphs",
	.write = write_folded,
};
