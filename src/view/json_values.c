#include "view/json_values.h"

#include <string.h>

#include "base/cleanup.h"
#include "view/escape.h"

/* ASCII only: no terminal takes a byte of it for a control character. */
enum { FLAGS = JSON_ENSURE_ASCII | JSON_COMPACT };

json_t *ss_json_text(const char *text)
{
	if (!text)
		return json_null();
	if (ss_escape_is_valid(text))
		return json_string_nocheck(text);
	_cleanup_free_ char *valid = ss_escape_invalid(text);
	return valid ? json_string_nocheck(valid) : NULL;
}

static int write_bytes(const char *bytes, size_t size, void *out)
{
	/* Jansson writes DEL, a control character too, as it is. What cannot be written
	   shows in ferror(), which is asked at the end. */
	for (const char *del; (del = memchr(bytes, 0x7f, size)) != NULL;) {
		size_t before = (size_t)(del - bytes);
		(void)fwrite_unlocked(bytes, 1, before, out);
		(void)fputs_unlocked("\\u007f", out);
		bytes = del + 1;
		size -= before + 1;
	}
	(void)fwrite_unlocked(bytes, 1, size, out);
	return 0;
}

void ss_json_write(json_t *value, size_t flags, FILE *out)
{
	if (!value || json_dump_callback(value, write_bytes, out, FLAGS | flags) != 0)
		(void)fputs_unlocked("out-of-memory", out);
	json_decref(value);
}

static json_t *deadlock_value(const struct ss_snapshot *snapshot,
			      const struct ss_deadlock *deadlock)
{
	json_t *tids = json_array();

	for (size_t i = 0; i < deadlock->count; i++) {
		size_t thread = deadlock->threads[i];
		(void)json_array_append_new(
			tids, json_integer(ss_snapshot_thread(snapshot, thread)->tid));
	}
	return json_pack("{s:o,s:I,s:b}", "tids", tids, "behind",
			 (json_int_t)deadlock->behind, "timed", deadlock->timed);
}

json_t *ss_json_deadlocks(const struct ss_snapshot *snapshot)
{
	json_t *values = json_array();

	for (size_t i = 0; i < ss_snapshot_deadlock_count(snapshot); i++)
		(void)json_array_append_new(
			values,
			deadlock_value(snapshot, ss_snapshot_deadlock(snapshot, i)));
	return values;
}

static json_t *member_value(const struct ss_circle_member *member)
{
	const struct ss_process *process = ss_snapshot_process(member->snapshot);

	/* clang-format off */
	return json_pack("{s:i,s:o,s:i,s:o,s:o}",
		"pid", (int)process->pid,
		"process", ss_json_text(process->name),
		"tid", (int)member->thread->tid,
		"name", ss_json_text(member->thread->name),
		"wait", ss_json_text(member->thread->wait->text));
	/* clang-format on */
}

json_t *ss_json_circles(const struct ss_snapshot *snapshot)
{
	json_t *values = json_array();

	for (size_t i = 0; i < ss_snapshot_circle_count(snapshot); i++) {
		const struct ss_circle *circle = ss_snapshot_circle(snapshot, i);
		json_t *members = json_array();
		for (size_t j = 0; j < circle->count; j++)
			(void)json_array_append_new(members,
						    member_value(&circle->members[j]));
		(void)json_array_append_new(values,
					    json_pack("{s:o}", "members", members));
	}
	return values;
}

json_t *ss_json_blockers(const struct ss_snapshot *snapshot)
{
	json_t *values = json_array();

	for (size_t i = 0; i < ss_snapshot_blocker_count(snapshot); i++) {
		const struct ss_blocker *blocker = ss_snapshot_blocker(snapshot, i);
		(void)json_array_append_new(
			values,
			json_pack("{s:i,s:I,s:I}", "tid",
				  ss_snapshot_thread(snapshot, blocker->thread)->tid,
				  "waiting", (json_int_t)blocker->waiting, "locks",
				  (json_int_t)blocker->locks));
	}
	return values;
}
