/*
 * stacksnap-json(5) documents each member that the tables of fields show, and no others.
 */
#include "report/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

static const char page_path[] = CORPUS_DIRECTORY "/../../../man/stacksnap-json.5";

/* What a section documents, and the members that the writer derives from several fields. */
static const struct section {
	const char *name;
	const struct ss_schema *schema;
	uint64_t cases;
	const char *derived;
} sections[] = {
	{ "process", &ss_process_schema, SS_SHOW_PROCESS, "" },
	{ "capture", &ss_process_schema, SS_SHOW_TIME | SS_SHOW_CAPTURE | SS_SHOW_SINGLE,
	  " crash " },
	{ "capture", &ss_crash_schema, 0, NULL },
	{ "modules", &ss_module_schema, 0, "" },
	{ "threads", &ss_task_schema,
	  SS_SHOW_THREAD | SS_SHOW_CAPTURED | SS_SHOW_END | SS_SHOW_STACK,
	  " waits_in frames " },
	{ "wait", &ss_wait_schema, 0,
	  " text owner_reason object futexes range range_relative beyond chain " },
	{ "descriptor", &ss_descriptor_schema, 0, " text peers_complete " },
	{ "frames", &ss_frame_schema, SS_SHOW_NUMBERED, "" },
	{ "deadlocks", &ss_deadlock_schema, 0, "" },
	{ "blockers", &ss_blocker_schema, 0, "" },
	{ "application_locks", &ss_application_lock_schema, 0, "" },
	{ "goroutines", &ss_task_schema, SS_SHOW_DOING | SS_SHOW_END | SS_SHOW_STACK,
	  " count ids waiting_ns tid frames " },
	{ "tasks", &ss_task_schema,
	  SS_SHOW_OBJECT | SS_SHOW_AWAITED | SS_SHOW_DOING | SS_SHOW_END | SS_SHOW_STACK,
	  " waiting_ns tid awaits_all frames " },
};

static const char *public_name(const struct ss_field *field)
{
	return field->name ? field->name : field->member;
}

/* Tasks and processes are shown in part. Other fields depend on the values of a struct. */
static bool is_shown(const struct section *section, const struct ss_field *field)
{
	bool parts = section->schema == &ss_task_schema ||
		     section->schema == &ss_process_schema;

	return !(field->flags & SS_HIDDEN) &&
	       (!parts || !field->only || field->only & section->cases);
}

static bool has_word(const char *text, const char *word)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
	size_t size = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += size) {
		if ((at == text || !strchr(letters, at[-1])) &&
		    (!at[size] || !strchr(letters, at[size])))
			return true;
	}
	return false;
}

static char *read_page(void)
{
	FILE *file = fopen(page_path, "re");
	char *text = calloc(1, 1 << 20);

	assert_non_null(file);
	assert_non_null(text);
	assert_in_range(fread(text, 1, (1 << 20) - 1, file), 1000, (1 << 20) - 2);
	assert_int_equal(fclose(file), 0);
	return text;
}

static char *new_section(const char *page, const char *name)
{
	char heading[64];

	assert_true(snprintf(heading, sizeof(heading), "\n.SS %s\n", name) > 0);
	const char *start = strstr(page, heading);
	assert_non_null(start);
	start += strlen(heading);
	const char *end = strstr(start, "\n.S");
	return end ? strndup(start, (size_t)(end - start)) : strdup(start);
}

static void test_fields_are_documented(void **state)
{
	_cleanup_free_ char *page = read_page();

	(void)state;
	for (size_t i = 0; i < SS_ARRAY_SIZE(sections); i++) {
		const struct section *section = &sections[i];
		_cleanup_free_ char *text = new_section(page, section->name);
		for (size_t f = 0; f < section->schema->count; f++) {
			const struct ss_field *field = &section->schema->fields[f];
			if (is_shown(section, field) &&
			    !has_word(text, public_name(field)))
				fail_msg("%s: %s is not documented", section->name,
					 public_name(field));
		}
	}
}

static bool exists(const struct section *section, const char *name)
{
	if (has_word(section->derived, name))
		return true;
	for (size_t f = 0; f < section->schema->count; f++) {
		const struct ss_field *field = &section->schema->fields[f];
		if (is_shown(section, field) && strcmp(public_name(field), name) == 0)
			return true;
	}
	return false;
}

/* The headings of tagged paragraphs are names of members, those of values begin with a quote. */
static void check_headings(const struct section *section, char *text)
{
	bool tagged = false;

	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		bool heading = tagged && strncmp(line, ".B", 2) == 0 &&
			       !strstr(line, "\\(dq");
		tagged = strcmp(line, ".TP") == 0;
		(void)strsep(&line, " ");
		for (char *name; heading && (name = strsep(&line, " \","));) {
			if (*name && strcmp(name, "and") != 0 && !exists(section, name))
				fail_msg("%s: there is no %s", section->name, name);
		}
	}
}

static void test_documented_members_exist(void **state)
{
	_cleanup_free_ char *page = read_page();

	(void)state;
	for (size_t i = 0; i < SS_ARRAY_SIZE(sections); i++) {
		_cleanup_free_ char *text = new_section(page, sections[i].name);
		if (sections[i].derived)
			check_headings(&sections[i], text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_are_documented),
		cmocka_unit_test(test_documented_members_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
