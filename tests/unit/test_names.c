#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "data/session.h"
#include "symbolize/names.h"
#include "symbolize_sample.h"

/* What is at mark_inner of the program whole, looked up in another form of it. */
static struct ss_names *look(const struct sample *sample, const char *form,
			     unsigned flags, struct ss_name *ret)
{
	char debug_dir[128];
	struct ss_session_options options = { .size = sizeof(options),
					      .debug_dir = debug_dir };
	struct ss_session *session = NULL;
	struct ss_names *names = ss_names_new();

	(void)snprintf(debug_dir, sizeof(debug_dir), "%s/debug", sample->dir);
	assert_null(ss_session_new(&options, &session));
	assert_non_null(names);
	struct ss_module_impl *module = sample_module(sample, form);
	ss_names_read(names, session, module, flags);
	ss_names_find(names, sample_address(sample, "whole", "mark_inner"), flags, ret);
	ss_module_unref(module);
	ss_session_free(session);
	return names;
}

static void expect_whole(const struct sample *sample, const char *form)
{
	struct ss_name name;
	struct ss_names *names = look(sample, form, 0, &name);

	assert_non_null(name.symbol);
	assert_string_equal(name.symbol, "outer");
	assert_true(name.start == sample_address(sample, "whole", "outer"));
	assert_int_equal(name.line.line, 5);
	assert_int_equal(name.inline_count, 2);
	ss_names_free(names);
}

/* Lookups of the same files are used, and those of others are not. */
TEST_WITH(test_cached, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	struct ss_lookup_sources sources = {};
	_cleanup_(ss_lookups_cleanup) struct ss_lookups *lookups = ss_lookups_new();
	_cleanup_buffer_ struct ss_buffer bytes = {};
	struct ss_name name = { .symbol = "remembered" };
	struct ss_session *session = NULL;
	struct stat st;

	assert_true(sample_run(sample, "cc -O1 -g sample.c -o whole"));
	uint64_t address = sample_address(sample, "whole", "mark_inner");
	struct ss_module_impl *module = sample_module(sample, "whole");
	assert_int_equal(fstat(module->fd, &st), 0);
	sources.build_id_size = module->build_id_size;
	memcpy(sources.build_id, module->build_id, module->build_id_size);
	sources.files[0] = (struct ss_lookup_file){
		.device = st.st_dev,
		.inode = st.st_ino,
		.size = (uint64_t)st.st_size,
		.modified_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 +
			       (uint64_t)st.st_mtim.tv_nsec,
		.changed_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000 +
			      (uint64_t)st.st_ctim.tv_nsec,
	};
	assert_null(ss_session_new(NULL, &session));
	for (int other = 0; other < 2; other++) {
		_cleanup_(ss_names_cleanup) struct ss_names *names = ss_names_new();
		sources.files[0].changed_ns += (uint64_t)other;
		ss_lookups_free(take_ptr(lookups));
		lookups = ss_lookups_new();
		name.symbol = "remembered";
		name.inline_count = 0;
		ss_lookups_add(lookups, address, 0, &name);
		ss_buffer_clear(&bytes);
		assert_true(ss_lookups_write(lookups, &sources, &bytes));
		close_cleanup(&module->cached);
		module->cached = memfd_create("cached", MFD_CLOEXEC);
		module->cache_id = 7;
		assert_int_equal(ss_io_write_all(module->cached, bytes.bytes, bytes.size),
				 0);
		ss_names_read(names, session, module, 0);
		ss_names_find(names, address, 0, &name);
		assert_string_equal(name.symbol, other ? "outer" : "remembered");
		assert_true(ss_names_found(names));
		ss_names_find(names, address, SS_NO_INLINES, &name);
		assert_string_equal(name.symbol, "outer");
		assert_int_equal(name.inline_count, 0);
		ss_names_find(names, address, 0, &name);
		assert_string_equal(name.symbol, other ? "outer" : "remembered");
		_cleanup_close_ int saved = memfd_create("saved", MFD_CLOEXEC);
		assert_true(ss_names_save(names, saved));
		struct ss_saved_item item;
		assert_int_equal(ss_io_pread(saved, &item, sizeof(item), 0),
				 sizeof(item));
		assert_int_equal(item.cache_id, 7);
	}
	ss_module_unref(module);
	ss_session_free(session);
}

TEST_WITH(test_whole, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample, "cc -O1 -g sample.c -o whole"));
	expect_whole(sample, "whole");
}

TEST_WITH(test_debug_file, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample,
			       "cc -O1 -g sample.c -o whole && "
			       "objcopy --only-keep-debug whole prog.debug && "
			       "objcopy -S --add-gnu-debuglink=prog.debug whole "
			       "prog && objcopy -g --add-gnu-debuglink=prog.debug "
			       "whole with-symbols"));
	expect_whole(sample, "prog");
	expect_whole(sample, "with-symbols");
}

/* Where the symbol table is lost, the DWARF has the name of the function, too. */
TEST_WITH(test_without_symbols, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample, "cc -O1 -g sample.c -o whole && cp whole prog && "
				       "strip -s --keep-section='.debug_*' prog"));
	expect_whole(sample, "prog");
}

TEST_WITH(test_embedded, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	struct ss_name name;

	assert_true(sample_run(sample, "cc -O1 sample.c -o whole && "
				       "objcopy -S --keep-symbol=outer whole mini && "
				       "xz -k mini && objcopy -S --add-section "
				       ".gnu_debugdata=mini.xz whole prog"));
	ss_names_free(look(sample, "prog", 0, &name));
	struct ss_names *names = look(sample, "prog", 0, &name);
	assert_non_null(name.symbol);
	assert_string_equal(name.symbol, "outer");
	assert_null(name.line.file);
	ss_names_free(names);
}

TEST_WITH(test_flags, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	struct ss_name name;

	assert_true(sample_run(sample, "cc -O1 -g sample.c -o whole"));
	ss_names_free(look(sample, "whole", SS_NO_SOURCE, &name));
	assert_int_equal(name.line.line, 0);
	assert_int_equal(name.inline_count, 2);
	ss_names_free(look(sample, "whole", SS_NO_INLINES, &name));
	assert_int_equal(name.line.line, 5);
	assert_int_equal(name.inline_count, 0);
	struct ss_names *names =
		look(sample, "whole", SS_NO_INLINES | SS_NO_SOURCE, &name);
	assert_string_equal(name.symbol, "outer");
	assert_int_equal(name.line.line, 0);
	ss_names_free(names);
}

/* Neither file nor image, and a file that is no ELF. */
TEST_WITH(test_nothing_to_read, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	struct ss_name name;

	assert_true(sample_run(sample, "cc -O1 -g sample.c -o whole"));
	ss_names_free(look(sample, "absent", 0, &name));
	assert_null(name.symbol);
	ss_names_free(look(sample, "sample.c", 0, &name));
	assert_null(name.symbol);
	assert_int_equal(name.inline_count, 0);
	ss_names_free(NULL);
}
