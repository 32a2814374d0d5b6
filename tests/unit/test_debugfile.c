#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "data/session.h"
#include "elf/debugfile.h"
#include "symbolize_sample.h"

/* prog without symbols, and its symbols in prog.debug. */
static bool split(const struct sample *sample, const char *build_id)
{
	return sample_run(sample,
			  "cc -g -O1 -Wl,--build-id=%s sample.c -o prog && "
			  "objcopy --only-keep-debug prog prog.debug && "
			  "objcopy --strip-all --add-gnu-debuglink=prog.debug prog",
			  build_id);
}

static struct ss_session *open_session(const struct sample *sample, const char *sysroot)
{
	char debug_dir[128];
	struct ss_session_options options = { .size = sizeof(options),
					      .debug_dir = debug_dir,
					      .sysroot = sysroot };
	struct ss_session *session = NULL;

	(void)snprintf(debug_dir, sizeof(debug_dir), "%s/debug", sample->dir);
	assert_null(ss_session_new(&options, &session));
	return session;
}

/* The path below the directory where the debug file of prog was found, or "". */
static const char *find(const struct sample *sample, const char *sysroot)
{
	static char path[PATH_MAX];
	struct ss_session *session = open_session(sample, sysroot);
	struct ss_module_impl *module = sample_module(sample, "prog");
	struct ss_elf *own = ss_elf_from_fd(module->fd);
	struct ss_elf *elf = ss_debugfile_find(session, module, own);

	path[0] = '\0';
	if (elf) {
		assert_non_null(ss_elf_find_section(elf, ".debug_info"));
		strcpy(path, elf->path + (sysroot ? 0 : strlen(sample->dir)));
	}
	ss_elf_free(elf);
	ss_elf_free(own);
	ss_module_unref(module);
	ss_session_free(session);
	return path;
}

TEST_WITH(test_build_id, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(split(sample, "0xabcdef0123456789"));
	assert_true(sample_run(sample, "mkdir -p debug/.build-id/ab && mv prog.debug "
				       "debug/.build-id/ab/cdef0123456789.debug"));
	assert_string_equal(find(sample, NULL),
			    "/debug/.build-id/ab/cdef0123456789.debug");
}

TEST_WITH(test_debuglink_places, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(split(sample, "0xabcdef0123456789"));
	assert_string_equal(find(sample, NULL), "/prog.debug");
	assert_true(sample_run(sample, "mkdir .debug && mv prog.debug .debug"));
	assert_string_equal(find(sample, NULL), "/.debug/prog.debug");
	assert_true(sample_run(sample, "mkdir -p debug/$PWD && mv .debug/prog.debug "
				       "debug/$PWD"));
	assert_true(strstr(find(sample, NULL), "/debug/tmp/") != NULL);
	assert_true(sample_run(sample, "rm debug/$PWD/prog.debug"));
	assert_string_equal(find(sample, NULL), "");
}

/* Rejects another build at the right path, and a file with a build-id for a module
   without one. */
TEST_WITH(test_other_build, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(split(sample, "0xabcdef0123456788") &&
		    sample_run(sample, "mv prog.debug other.debug"));
	assert_true(split(sample, "0xabcdef0123456789") &&
		    sample_run(sample, "mv other.debug prog.debug"));
	assert_string_equal(find(sample, NULL), "");
}

TEST_WITH(test_checksum, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(split(sample, "none"));
	assert_string_equal(find(sample, NULL), "/prog.debug");
	assert_true(sample_run(sample, "printf x >> prog.debug"));
	assert_string_equal(find(sample, NULL), "");
}

TEST_WITH(test_sysroot, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	char root[128];

	(void)snprintf(root, sizeof(root), "%s/root", sample->dir);
	assert_true(split(sample, "0xabcdef0123456789"));
	assert_true(sample_run(sample, "mkdir -p root/$PWD && mv prog.debug root/$PWD"));
	assert_string_equal(find(sample, NULL), "");
	assert_true(strstr(find(sample, root), "/prog.debug") != NULL);
	/* Follows a symbolic link inside of the root, and never out of it. */
	assert_true(sample_run(sample, "mv root/$PWD/prog.debug outside && "
				       "ln -s $PWD/outside root/$PWD/prog.debug"));
	assert_string_equal(find(sample, root), "");
	assert_true(sample_run(sample, "mv outside root/$PWD/outside"));
	assert_true(strstr(find(sample, root), "/prog.debug") != NULL);
}

/* Opening a FIFO would wait forever for a writer. */
TEST_WITH(test_not_a_file, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(split(sample, "0xabcdef0123456789"));
	assert_true(sample_run(sample, "rm prog.debug && mkfifo prog.debug"));
	assert_string_equal(find(sample, NULL), "");
	assert_true(sample_run(sample, "rm prog.debug && mkdir prog.debug"));
	assert_string_equal(find(sample, NULL), "");
}

TEST_WITH(test_embedded, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	struct ss_table table = {};

	assert_true(sample_run(sample, "cc sample.c -o whole && "
				       "objcopy -S --keep-symbol=outer whole mini && "
				       "xz -k mini && objcopy -S --add-section "
				       ".gnu_debugdata=mini.xz whole prog && "
				       "head -c 200 mini.xz > cut.xz && objcopy -S "
				       "--add-section .gnu_debugdata=cut.xz whole bad"));
	struct ss_module_impl *module = sample_module(sample, "prog");
	struct ss_elf *elf = ss_elf_from_fd(module->fd);
	assert_non_null(elf);
	struct ss_elf *embedded = ss_debugfile_embedded(elf);
	assert_non_null(embedded);
	assert_false(ss_table_read(elf, SHT_SYMTAB, &table));
	assert_true(ss_table_read(embedded, SHT_SYMTAB, &table));
	ss_table_free(&table);
	ss_elf_free(embedded);
	ss_elf_free(elf);
	ss_module_unref(module);

	module = sample_module(sample, "bad");
	elf = ss_elf_from_fd(module->fd);
	assert_non_null(elf);
	assert_null(ss_debugfile_embedded(elf));
	ss_elf_free(elf);
	ss_module_unref(module);
}

/* A few kilobytes that expand to more than the limit. */
TEST_WITH(test_embedded_bomb, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample, "head -c 260M /dev/zero | xz -0 > bomb.xz && "
				       "cc sample.c -o whole && objcopy --add-section "
				       ".gnu_debugdata=bomb.xz whole prog"));
	struct ss_module_impl *module = sample_module(sample, "prog");
	struct ss_elf *elf = ss_elf_from_fd(module->fd);
	assert_non_null(elf);
	assert_null(ss_debugfile_embedded(elf));
	ss_elf_free(elf);
	ss_module_unref(module);
}

TEST_WITH(test_alternate, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	struct ss_session *session = open_session(sample, NULL);

	/* As dwz writes it: a name, its zero byte, the build-id. */
	assert_true(sample_run(
		sample, "cc -g -Wl,--build-id=0x1122334455667788 sample.c -o alt && "
			"printf 'sub/alt\\000\\021\\042\\063\\104\\125\\146\\167\\210' "
			"> link && cc -g sample.c -o prog && objcopy --add-section "
			".gnu_debugaltlink=link prog && mkdir sub && cp alt sub"));
	struct ss_module_impl *module = sample_module(sample, "prog");
	struct ss_elf *elf = ss_elf_from_fd(module->fd);
	assert_non_null(elf);
	/* Without the path of the file that contains it, a relative name cannot be
	   resolved. */
	assert_null(ss_debugfile_find_alternate(session, elf));
	elf->path = strdup(module->pub.path);
	struct ss_elf *found = ss_debugfile_find_alternate(session, elf);
	assert_non_null(found);
	assert_true(strstr(found->path, "/sub/alt") != NULL);
	ss_elf_free(found);
	assert_true(sample_run(sample, "mkdir -p debug/.dwz/.build-id/11 && mv sub/alt "
				       "debug/.dwz/.build-id/11/22334455667788.debug"));
	found = ss_debugfile_find_alternate(session, elf);
	assert_non_null(found);
	ss_elf_free(found);
	/* Another build. */
	assert_true(sample_run(sample, "rm -r debug && cp prog sub/alt"));
	assert_null(ss_debugfile_find_alternate(session, elf));
	ss_elf_free(elf);
	ss_module_unref(module);
	ss_session_free(session);
}
