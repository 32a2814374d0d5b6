#include "output/crash_groups.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "output/escape.h"
#include "output/json.h"

enum { NAMES_MAX = 5, ID_DIGITS = 12, NS_PER_S = 1000000000 };

/* Crashes with the same hash: neighbours after sorting. */
struct group {
	struct ss_crash_report *reports;
	size_t count;
	uint64_t first_ns;
	uint64_t last_ns;
};

typedef SS_VECTOR(struct group) group_list;

static int compare_hashes(const void *a, const void *b)
{
	const struct ss_crash_report *x = a;
	const struct ss_crash_report *y = b;
	int order = strcmp(x->hash, y->hash);

	return order ? order : (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int compare_hosts(const void *a, const void *b)
{
	const struct ss_crash_report *x = a;
	const struct ss_crash_report *y = b;

	return strcmp(x->host, y->host);
}

static int compare_builds(const void *a, const void *b)
{
	const struct ss_crash_report *x = a;
	const struct ss_crash_report *y = b;
	int order = strcmp(x->program, y->program);

	return order ? order : strcmp(x->build_id, y->build_id);
}

/* The largest first, then what was seen last. */
static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a;
	const struct group *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	if (x->last_ns != y->last_ns)
		return x->last_ns < y->last_ns ? 1 : -1;
	return strcmp(x->reports->hash, y->reports->hash);
}

static struct ss_error *make_groups(struct ss_crash_reports *reports, group_list *ret)
{
	struct ss_crash_report *items = reports->items.items;
	size_t count = reports->items.count;

	if (count > 1)
		qsort(items, count, sizeof(*items), compare_hashes);
	for (size_t i = 0; i < count; i++) {
		struct group *group = ret->count ? &ret->items[ret->count - 1] : NULL;
		if (!group || strcmp(group->reports->hash, items[i].hash) != 0) {
			group = ss_vector_push(ret);
			if (!group)
				return ss_error_no_memory();
			group->reports = &items[i];
			group->first_ns = items[i].time_ns;
		}
		group->count++;
		group->last_ns = items[i].time_ns;
	}
	if (ret->count > 1)
		qsort(ret->items, ret->count, sizeof(*ret->items), compare_groups);
	return NULL;
}

/* How many reports from `at` on are equal, after sorting by compare. */
static size_t run_length(const struct group *group, size_t at,
			 int (*compare)(const void *, const void *))
{
	size_t end = at + 1;

	while (end < group->count &&
	       compare(&group->reports[at], &group->reports[end]) == 0)
		end++;
	return end - at;
}

/* Text --------------------------------------------------------------------- */

static void write_time(uint64_t time_ns, FILE *out)
{
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	struct tm tm = {};
	char text[32] = "?";

	if (gmtime_r(&seconds, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	(void)fputs_unlocked(text, out);
}

static void write_hosts(struct group *group, FILE *out)
{
	size_t names = 0;

	qsort(group->reports, group->count, sizeof(*group->reports), compare_hosts);
	for (size_t i = 0; i < group->count;) {
		size_t count = run_length(group, i, compare_hosts);
		const char *host = group->reports[i].host;
		if (*host && names++ < NAMES_MAX) {
			(void)fputs_unlocked(names == 1 ? "    hosts: " : ", ", out);
			ss_escape_write(host, NULL, out);
			(void)fprintf(out, " (%zu)", count);
		}
		i += count;
	}
	if (names > NAMES_MAX)
		(void)fprintf(out, " and %zu more", names - NAMES_MAX);
	if (names)
		(void)fputc_unlocked('\n', out);
}

static void write_builds(struct group *group, FILE *out)
{
	qsort(group->reports, group->count, sizeof(*group->reports), compare_builds);
	for (size_t i = 0; i < group->count;) {
		size_t count = run_length(group, i, compare_builds);
		const struct ss_crash_report *report = &group->reports[i];
		(void)fputs_unlocked("    ", out);
		ss_escape_write(report->program, NULL, out);
		if (*report->build_id) {
			(void)fputs_unlocked(", build-id ", out);
			ss_escape_write_owned(strndup(report->build_id, ID_DIGITS), NULL,
					      out);
		}
		(void)fprintf(out, " (%zu)\n", count);
		i += count;
	}
}

struct ss_error *ss_crash_groups_write_text(struct ss_crash_reports *reports,
					    unsigned rows, FILE *out)
{
	group_list groups = {};
	struct ss_error *error = make_groups(reports, &groups);

	(void)fprintf(out, "%zu crash%s, %zu different\n", reports->items.count,
		      reports->items.count == 1 ? "" : "es", groups.count);
	for (size_t i = 0; !error && i < groups.count && (!rows || i < rows); i++) {
		struct group *group = &groups.items[i];
		const struct ss_crash_report *first = group->reports;
		(void)fprintf(out, "\n%6zu  ", group->count);
		ss_escape_write(*first->signature ? first->signature : "(no names)", NULL,
				out);
		(void)fputs_unlocked("  ", out);
		ss_escape_write(first->signal, NULL, out);
		(void)fputs_unlocked(" [", out);
		ss_escape_write(first->hash, NULL, out);
		(void)fputs_unlocked("]\n    from ", out);
		write_time(group->first_ns, out);
		(void)fputs_unlocked(" to ", out);
		write_time(group->last_ns, out);
		(void)fputc_unlocked('\n', out);
		write_hosts(group, out);
		write_builds(group, out);
	}
	if (rows && groups.count > rows)
		(void)fprintf(out, "\n%zu more; --rows=0 shows all\n",
			      groups.count - rows);
	if (reports->skipped)
		(void)fprintf(out,
			      reports->skipped == 1 ?
				      "\n%zu file is not a crash report\n" :
				      "\n%zu files are not crash reports\n",
			      reports->skipped);
	if (reports->foreign)
		(void)fprintf(out, "\n%zu file%s not written by the handler skipped\n",
			      reports->foreign, reports->foreign == 1 ? "" : "s");
	if (reports->refused)
		(void)fprintf(out,
			      "\n%" PRIu64 " crash%s without a report: too many of one "
			      "user in a minute (--rate) or at once\n",
			      reports->refused, reports->refused == 1 ? "" : "es");
	ss_vector_free(&groups);
	return error;
}

/* JSON --------------------------------------------------------------------- */

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

static void write_group(struct group *group, struct ss_json *json)
{
	const struct ss_crash_report *first = group->reports;

	ss_json_new_line(json);
	ss_json_open(json, NULL, '{');
	ss_json_text(json, "stack_hash", first->hash);
	ss_json_text(json, "signature", or_null(first->signature));
	ss_json_text(json, "signal", or_null(first->signal));
	ss_json_unsigned(json, "count", group->count);
	ss_json_unsigned(json, "first_ns", group->first_ns);
	ss_json_unsigned(json, "last_ns", group->last_ns);
	ss_json_open(json, "hosts", '[');
	qsort(group->reports, group->count, sizeof(*group->reports), compare_hosts);
	for (size_t i = 0; i < group->count;) {
		size_t count = run_length(group, i, compare_hosts);
		ss_json_open(json, NULL, '{');
		ss_json_text(json, "name", or_null(group->reports[i].host));
		ss_json_unsigned(json, "count", count);
		ss_json_close(json, '}');
		i += count;
	}
	ss_json_close(json, ']');
	ss_json_open(json, "builds", '[');
	qsort(group->reports, group->count, sizeof(*group->reports), compare_builds);
	for (size_t i = 0; i < group->count;) {
		size_t count = run_length(group, i, compare_builds);
		ss_json_open(json, NULL, '{');
		ss_json_text(json, "program", or_null(group->reports[i].program));
		ss_json_text(json, "build_id", or_null(group->reports[i].build_id));
		ss_json_unsigned(json, "count", count);
		ss_json_close(json, '}');
		i += count;
	}
	ss_json_close(json, ']');
	ss_json_close(json, '}');
}

struct ss_error *ss_crash_groups_write_json(struct ss_crash_reports *reports, FILE *out)
{
	struct ss_json json = { .out = out };
	group_list groups = {};
	struct ss_error *error = make_groups(reports, &groups);

	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-crashes/1");
	ss_json_unsigned(&json, "crashes", reports->items.count);
	ss_json_unsigned(&json, "skipped", reports->skipped);
	ss_json_unsigned(&json, "foreign", reports->foreign);
	ss_json_unsigned(&json, "refused", reports->refused);
	ss_json_open(&json, "groups", '[');
	for (size_t i = 0; !error && i < groups.count; i++)
		write_group(&groups.items[i], &json);
	ss_json_close(&json, ']');
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	ss_vector_free(&groups);
	return error;
}
