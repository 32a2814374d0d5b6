/*
 * Interpreters and virtual machines whose functions are not supported. They are recognised only so
 * that the output can say that the program's functions are missing.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/runtime.h"

/* A language, and the files that execute its programs: "ruby3.1", "php-fpm8.2". */
struct language {
	const char *name;
	const char *programs[4];
	const char *library; /* of programs that have another name; or NULL */
};

static const struct language languages[] = {
	{ .name = "Ruby", .programs = { "ruby" } },
	{ .name = "PHP",
	  .programs = { "php", "php-fpm", "php-cgi" },
	  .library = "libphp" },
	{ .name = "Perl", .programs = { "perl" } },
	{ .name = "Lua", .programs = { "lua", "luajit", "luajit-" } },
	{ .name = "R", .programs = { "R", "Rscript" } },
	{ .name = "Erlang", .programs = { "beam.smp", "beam.debug.smp" } },
	{ .name = "PyPy",
	  .programs = { "pypy", "pypy3", "pypy-c" },
	  .library = "libpypy" },
	{ .name = "Deno", .programs = { "deno" } },
	{ .name = "Bun", .programs = { "bun" } },
	{ .name = ".NET", .programs = { "dotnet" }, .library = "libcoreclr.so" },
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether a file is a program of that name, of any version. */
static bool is_program(const char *file, const char *name)
{
	const size_t size = strlen(name);

	return strncmp(file, name, size) == 0 &&
	       file[size + strspn(file + size, "0123456789.")] == '\0';
}

static bool executes(const struct ss_capture *capture, const struct language *language)
{
	const char *executable = capture->process.executable;
	const char *library = language->library;

	for (size_t i = 0; executable && i < SS_ARRAY_SIZE(language->programs); i++) {
		if (language->programs[i] &&
		    is_program(base_name(executable), language->programs[i]))
			return true;
	}
	for (size_t i = 0; library && i < capture->modules.count; i++) {
		if (strncmp(base_name(capture->modules.items[i]->pub.path), library,
			    strlen(library)) == 0)
			return true;
	}
	return false;
}

static bool open_unsupported(const struct ss_runtime_process *process,
			     struct ss_runtime_info *info, void **ret)
{
	char text[96];

	(void)ret;			/* it has no functions */
	if (process->capture->perf_map) /* it says what its code is called */
		return true;
	for (size_t i = 0; i < SS_ARRAY_SIZE(languages); i++) {
		if (!executes(process->capture, &languages[i]))
			continue;
		(void)snprintf(
			text, sizeof(text),
			"%s is not supported: only those of the interpreter are shown",
			languages[i].name); /* it fits */
		info->version = ss_intern_string(process->strings, languages[i].name);
		info->problem = ss_intern_string(process->strings, text);
		return info->version && info->problem;
	}
	return true;
}

const struct ss_runtime ss_runtime_unsupported = {
	.kind = SS_FRAME_NATIVE,
	.open = open_unsupported,
};
