#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "data/regions.h"
#include "trace/stacks.h"

#define PROGRAM "401000-402000 r-xp 00001000 08:01 7 /bin/program\n"
#define GENERATED "500000-510000 rwxp 00000000 00:00 0\n"
#define HEAP "600000-700000 rw-p 00000000 00:00 0 [heap]\n"
#define MORE_HEAP "600000-900000 rw-p 00000000 00:00 0 [heap]\n"

static struct ss_capture *parse(const char *maps)
{
	struct ss_buffer text = {};
	struct ss_capture *capture = ss_capture_new();

	assert_non_null(capture);
	ss_buffer_add(&text, maps, strlen(maps));
	assert_null(ss_regions_read(capture, &text));
	ss_buffer_deinit(&text);
	return capture;
}

/* Memory that grows is the same code; other modules and generated code are not. */
TEST(test_same)
{
	struct ss_capture *capture = parse(PROGRAM GENERATED HEAP);
	struct ss_capture *grown = parse(PROGRAM GENERATED MORE_HEAP);
	struct ss_capture *other = parse(PROGRAM HEAP);
	struct ss_capture *replaced = parse(PROGRAM GENERATED HEAP);
	struct ss_code_map map = {};

	assert_true(ss_code_map_set(&map, capture));
	assert_true(ss_code_map_is_of(&map, capture));
	/* As a struct ss_address_space does. */
	ss_module_unref(grown->modules.items[0]);
	grown->modules.items[0] = ss_module_ref(capture->modules.items[0]);
	assert_true(ss_code_map_is_of(&map, grown));
	ss_module_unref(other->modules.items[0]);
	other->modules.items[0] = ss_module_ref(capture->modules.items[0]);
	assert_false(ss_code_map_is_of(&map, other));
	assert_false(ss_code_map_is_of(&map, replaced));
	/* It outlives the capture that it is of. */
	ss_capture_free(capture);
	assert_true(ss_code_map_is_of(&map, grown));
	ss_code_map_deinit(&map);
	ss_capture_free(grown);
	ss_capture_free(other);
	ss_capture_free(replaced);
}
