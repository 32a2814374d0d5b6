/*
 * JSON shows the members of a struct as its table of fields says; stacksnap-json(5) documents
 * each of them, and no others.
 */
#include "unit.h"

#include "report/json.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

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
	{ "runtimes", &ss_runtime_info_schema, 0, "" },
	{ "threads", &ss_task_schema,
	  SS_SHOW_THREAD | SS_SHOW_CAPTURED | SS_SHOW_END | SS_SHOW_STACK,
	  " incomplete waits_in frames " },
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

TEST(test_fields_are_documented)
{
	_cleanup_free_ char *page = read_page();

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

TEST(test_documented_members_exist)
{
	_cleanup_free_ char *page = read_page();

	for (size_t i = 0; i < SS_ARRAY_SIZE(sections); i++) {
		_cleanup_free_ char *text = new_section(page, sections[i].name);
		if (sections[i].derived)
			check_headings(&sections[i], text);
	}
}

static json_t *new_wait(const struct ss_wait *wait)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	struct ss_json json = { .out = open_memstream(&text, &size) };

	assert_non_null(json.out);
	ss_json_wait(&json, NULL, wait);
	assert_int_equal(fclose(json.out), 0);
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	return root;
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static bool is_null(const json_t *object, const char *key)
{
	return json_is_null(json_object_get(object, key));
}

TEST(test_members_of_a_lock)
{
	const struct ss_wait wait = {
		.kind = SS_WAIT_MUTEX,
		.lock = SS_LOCK_MUTEX,
		.address = 0x7f10,
		.timeout_ns = -1,
		.left_ns = 12,
		.owner_tid = 7,
		.owner_access = SS_ACCESS_EXCLUSIVE,
		.owner_frames = { { .frame = 3 } },
		.owner_frame_count = 1,
		.fd = -1,
		.command = -1,
	};
	json_t *root = new_wait(&wait);
	json_t *frames = json_object_get(root, "owner_frames");

	assert_string_equal(text_of(root, "kind"), "mutex");
	assert_string_equal(text_of(root, "address"), "0x7f10");
	assert_string_equal(text_of(root, "owner_access"), "exclusive");
	assert_true(is_null(root, "timeout_ns"));
	assert_int_equal(json_integer_value(json_object_get(root, "left_ns")), 12);
	assert_true(json_is_false(json_object_get(root, "self_owned")));
	assert_true(is_null(root, "owner_unknown"));
	assert_true(is_null(root, "symbol_offset"));
	assert_true(is_null(root, "fd"));
	assert_null(json_object_get(root, "readers"));
	assert_null(json_object_get(root, "command"));
	assert_null(json_object_get(root, "fds"));
	assert_int_equal(json_array_size(frames), 1);
	assert_true(is_null(json_array_get(frames, 0), "line"));
	json_decref(root);
}

/* A descriptor in a set does not show what it watches itself. */
TEST(test_members_of_descriptors)
{
	const struct ss_descriptor socket = {
		.kind = SS_FD_SOCKET,
		.local = { .bytes = { 127, 0, 0, 1 }, .size = 4, .port = 80 },
		.remote = { .bytes = { 127, 0, 0, 1 }, .size = 4 },
	};
	struct ss_descriptor set = { .kind = SS_FD_EPOLL, .watches_incomplete = true };
	const struct ss_watched_fd watched[] = {
		{ .fd = 4, .input = true, .what = &socket }, { .fd = 5, .what = &set }
	};
	const struct ss_wait wait = { .kind = SS_WAIT_EPOLL,
				      .fd = 3,
				      .descriptor = &set };

	set.watches = watched;
	set.watch_count = 2;
	json_t *root = new_wait(&wait);
	json_t *shown = json_object_get(root, "descriptor");
	json_t *watches = json_object_get(shown, "watches");
	json_t *first = json_object_get(json_array_get(watches, 0), "descriptor");
	json_t *second = json_object_get(json_array_get(watches, 1), "descriptor");
	assert_int_equal(json_array_size(watches), 2);
	assert_true(json_is_false(json_object_get(shown, "watches_complete")));
	assert_string_equal(text_of(json_object_get(first, "local"), "address"),
			    "127.0.0.1");
	assert_true(is_null(first, "remote"));
	assert_true(is_null(first, "tcp_state"));
	assert_string_equal(text_of(second, "kind"), "epoll");
	assert_null(json_object_get(second, "watches"));
	assert_null(json_object_get(second, "watches_complete"));
	json_decref(root);
}
