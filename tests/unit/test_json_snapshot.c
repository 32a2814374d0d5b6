#include "view_sample.h"

#include <signal.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/cleanup.h"

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("%s at %d: %s", error.text, error.position, text);
	return root;
}

static json_t *frame_of(json_t *root, size_t thread, size_t frame)
{
	json_t *threads = json_object_get(root, "threads");

	return json_array_get(json_object_get(json_array_get(threads, thread), "frames"),
			      frame);
}

static const char *text_of(json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* With a limit: the frames of equal stacks once, and always the thread that crashed. */
TEST(test_limit)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_frame stack[] = { sample_frame(snapshot, SAMPLE_LIBC, 0x10, "poll") };
	struct ss_format_options options = { .size = sizeof(options), .max_size = 4000 };

	for (pid_t tid = 100; tid < 150; tid++)
		sample_add_thread(snapshot, tid, "shop", stack, 1, SS_END_ROOT);
	snapshot->process.crash = (struct ss_crash){ .signal = SIGSEGV, .tid = 149 };
	_cleanup_free_ char *text = sample_render(&ss_format_json, snapshot, &options);
	json_t *root = parse(text);
	json_t *threads = json_object_get(root, "threads");
	size_t count = json_array_size(threads);
	assert_in_range(count, 3, 30);
	assert_true(json_is_array(json_object_get(json_array_get(threads, 0), "frames")));
	assert_true(json_is_null(json_object_get(json_array_get(threads, 1), "frames")));
	assert_true(json_is_array(
		json_object_get(json_array_get(threads, count - 1), "frames")));
	assert_int_equal(json_integer_value(json_object_get(root, "left_out")),
			 50 - count);
	json_decref(root);
}

TEST(test_one_document_on_one_line)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_frame stack[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x10, "poll"),
		sample_frame(snapshot, SAMPLE_NOWHERE, 0x7f10, NULL),
	};

	stack[0].file = "poll.c";
	stack[0].line = 29;
	stack[1].area = "[heap]";
	sample_add_thread(snapshot, 100, "shop", stack, 2, SS_END_ROOT);
	sample_add_thread(snapshot, 101, "shop", stack, 2, SS_END_ROOT)->inner_tid = 7;
	sample_add_thread(snapshot, 102, "shop", NULL, 0, SS_END_GONE)->state = '?';
	_cleanup_free_ char *text = sample_render(&ss_format_json, snapshot, NULL);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	json_t *root = parse(text);
	assert_string_equal(text_of(root, "schema"), "stacksnap-snapshot/1");
	json_t *poll = frame_of(root, 1, 0);
	assert_string_equal(text_of(poll, "pc"), "0x7f0000000010");
	assert_int_equal(json_integer_value(json_object_get(poll, "module")), 1);
	assert_string_equal(text_of(poll, "offset"), "0x10");
	assert_string_equal(text_of(poll, "lookup_offset"), "0xf");
	assert_string_equal(text_of(poll, "symbol"), "poll");
	assert_int_equal(json_integer_value(json_object_get(poll, "line")), 29);
	assert_true(json_is_null(json_object_get(poll, "column")));
	assert_true(json_is_false(json_object_get(poll, "inlined")));
	json_t *nowhere = frame_of(root, 0, 1);
	assert_true(json_is_null(json_object_get(nowhere, "module")));
	assert_true(json_is_null(json_object_get(nowhere, "offset")));
	assert_true(json_is_null(json_object_get(nowhere, "symbol_offset")));
	assert_string_equal(text_of(nowhere, "area"), "[heap]");
	json_t *second = json_array_get(json_object_get(root, "threads"), 1);
	assert_int_equal(json_integer_value(json_object_get(second, "inner_tid")), 7);
	assert_true(json_is_null(
		json_object_get(json_object_get(root, "process"), "inner_pid")));
	assert_true(json_is_null(
		json_object_get(json_object_get(root, "process"), "frozen")));
	json_t *gone = json_array_get(json_object_get(root, "threads"), 2);
	assert_string_equal(text_of(gone, "end"), "gone");
	assert_true(json_is_null(json_object_get(gone, "state")));
	assert_true(json_is_null(json_object_get(gone, "wait")));
	assert_int_equal(json_array_size(json_object_get(gone, "frames")), 0);
	assert_true(json_is_array(json_object_get(root, "deadlocks")));
	assert_true(json_is_null(json_object_get(root, "problem")));
	json_decref(root);
}

TEST(test_any_bytes_in_names)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	snapshot->process.name = "\xff\"\\\n\033\xc3\xb6";
	sample_add_thread(snapshot, 100, "shop", NULL, 0, SS_END_ROOT);
	_cleanup_free_ char *text = sample_render(&ss_format_json, snapshot, NULL);
	for (const char *at = text; *at; at++)
		assert_true((*at >= 0x20 && *at < 0x7f) || *at == '\n');
	json_t *root = parse(text);
	assert_string_equal(text_of(json_object_get(root, "process"), "name"),
			    "\\xff\"\\\n\033\xc3\xb6");
	json_decref(root);
}
