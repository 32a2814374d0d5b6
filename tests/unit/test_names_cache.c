#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/names.h"
#include "symbolize_sample.h"

TEST_WITH(test_kept, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	struct ss_session *session = NULL;

	assert_null(ss_session_new(NULL, &session));
	assert_true(sample_run(sample, "cc sample.c -o one && cp one two"));
	struct ss_module_impl *one = sample_module(sample, "one");
	struct ss_module_impl *again = sample_module(sample, "one");
	struct ss_module_impl *two = sample_module(sample, "two");
	struct ss_names *names = ss_names_cache_find(session, one);
	assert_non_null(names);
	assert_ptr_equal(ss_names_cache_find(session, again), names);
	/* Another file, though it claims the same build-id. */
	assert_ptr_not_equal(ss_names_cache_find(session, two), names);
	ss_names_cache_trim(session);
	assert_ptr_equal(ss_names_cache_find(session, one), names);
	ss_module_unref(one);
	ss_module_unref(again);
	ss_module_unref(two);
	ss_session_free(session);
}

TEST(test_images)
{
	struct ss_session *session = NULL;

	assert_null(ss_session_new(NULL, &session));
	struct ss_module_impl *modules[3];
	for (size_t i = 0; i < 3; i++) {
		modules[i] = ss_module_new("[vdso]", 0x1000, 0x2000);
		assert_non_null(modules[i]);
		modules[i]->bytes = calloc(1, 64);
		modules[i]->size = 64;
	}
	modules[2]->bytes[63] = 1;
	assert_ptr_equal(ss_names_cache_find(session, modules[0]),
			 ss_names_cache_find(session, modules[1]));
	assert_ptr_not_equal(ss_names_cache_find(session, modules[0]),
			     ss_names_cache_find(session, modules[2]));
	for (size_t i = 0; i < 3; i++)
		ss_module_unref(modules[i]);
	ss_session_free(session);
}

TEST(test_too_many)
{
	struct ss_session *session = NULL;
	size_t named = 0;

	assert_null(ss_session_new(NULL, &session));
	for (uint32_t i = 0; i < 5000; i++) {
		struct ss_module_impl *module = ss_module_new("x", 0x1000, 0x2000);
		assert_non_null(module);
		assert_true(ss_module_set_build_id(module, &i, sizeof(i)));
		named += ss_names_cache_find(session, module) != NULL;
		ss_module_unref(module);
	}
	assert_int_equal(named, 4096);
	ss_names_cache_trim(session);
	struct ss_module_impl *module = ss_module_new("x", 0x1000, 0x2000);
	assert_non_null(ss_names_cache_find(session, module));
	ss_module_unref(module);
	ss_session_free(session);
}
