/*
 * Recording processes that have very many modules, of very long paths: nothing is gone
 * through once for each of them, and what is written fits into chunks.
 */
#include "record_sample.h"

#include "base/error.h"
#include "base/vector.h"
#include "model/capture.h"
#include "model/snapshot.h"
#include "record/tracked.h"
#include "stacksnap.h"

/* As many as Linux lets a process map, and more; of each kind some minutes of work for
   who goes through all for each. */
enum { TRACKED = 1000000, RECORDED = 200000, FRAMES = 500000 };

/* Together more than a chunk may have, several times. */
enum { LONG_PATHS = 12000, PATH_SIZE = 4000 };

struct watched {
	size_t loaded;
	size_t unloaded;
};

static void watch(void *data, struct ss_tracked *tracked, bool loaded)
{
	struct watched *watched = data;

	if (loaded)
		tracked->note = (uint32_t)tracked->module->pub.base;
	*(loaded ? &watched->loaded : &watched->unloaded) += 1;
}

/* Their addresses are not in the order of their bases. */
static void test_tracked(void **state)
{
	struct ss_module_impl *modules = calloc(TRACKED, sizeof(*modules));
	struct ss_module_impl **items = calloc(TRACKED, sizeof(struct ss_module_impl *));
	struct ss_capture capture = {};
	struct ss_tracked_list list = {};
	struct watched watched = {};

	(void)state;
	for (size_t i = 0; i < TRACKED; i++) {
		items[i] = &modules[i * 7 % TRACKED];
		items[i]->pub.base = i;
		atomic_init(&items[i]->references, 1);
	}
	capture.modules.items = items;
	capture.modules.count = TRACKED - 1;
	assert_true(ss_tracked_update(&list, &capture, watch, &watched));
	assert_true(watched.loaded == TRACKED - 1 && watched.unloaded == 0);
	assert_true(ss_tracked_update(&list, &capture, watch, &watched));
	assert_true(watched.loaded == TRACKED - 1 && watched.unloaded == 0);
	/* The first one goes, and the last one comes. */
	capture.modules.items++;
	assert_true(ss_tracked_update(&list, &capture, watch, &watched));
	assert_true(watched.loaded == TRACKED && watched.unloaded == 1);
	assert_null(ss_tracked_find(&list, items[0]));
	for (size_t i = 1; i < TRACKED; i++) {
		const struct ss_tracked *found = ss_tracked_find(&list, items[i]);
		assert_true(found && found->module == items[i] && found->note == i);
	}
	assert_true(ss_tracked_update(&list, NULL, watch, &watched));
	assert_true(watched.unloaded == TRACKED && list.items.count == 0);
	ss_tracked_deinit(&list);
	free(items);
	free(modules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tracked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
