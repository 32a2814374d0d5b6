/*
 * Interpreters and virtual machines whose functions are not supported. They are recognised only so
 * that the output can say that the program's functions are missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "runtime/runtime.h"

/* A language, and the files that execute its programs: "ruby3.1", "php-fpm8.2". */
struct language {
	const char *name;
	const char *programs[4];
	const char *library; /* of programs that have another name; or NULL */
	const char *code; /* the library that has the code of these programs; or NULL */
	unsigned end;	  /* versions from this one on are supported; 0: none is */
};

/* Of version 3.7, say */
#define VERSION(major, minor) ((major) << 8 | (minor))

static const struct language languages[] = {
	{ .name = "CPython",
	  .programs = { "python" },
	  .library = "libpython",
	  .end = VERSION(3, 7) },
	{ .name = "Ruby", .programs = { "ruby" }, .code = "libruby-" },
	{ .name = "PHP",
	  .programs = { "php", "php-fpm", "php-cgi" },
	  .library = "libphp" },
	{ .name = "Perl", .programs = { "perl" }, .code = "libperl.so." },
	{ .name = "Lua", .programs = { "lua", "luajit", "luajit-" }, .code = "liblua" },
	{ .name = "R", .programs = { "R", "Rscript" }, .code = "libR.so" },
	{ .name = "Erlang", .programs = { "beam.smp", "beam.debug.smp" } },
	{ .name = "PyPy",
	  .programs = { "pypy", "pypy3", "pypy-c" },
	  .library = "libpypy" },
	{ .name = "Deno", .programs = { "deno" } },
	{ .name = "Bun", .programs = { "bun" } },
	{ .name = ".NET", .programs = { "dotnet" }, .library = "libcoreclr.so" },
};

struct unsupported {
	const char *problem;
	/* Whose code executes functions of the language; the program, or NULL */
	const struct ss_module *modules[2];
};

/* Whether a file has a name of a language; *version: what follows. */
static bool has_name(const char *file, const char *name, const char **version)
{
	const size_t size = strlen(name);

	*version = file + size;
	return strncmp(file, name, size) == 0;
}

static const struct ss_module *find_module(const struct ss_capture *capture,
					   const char *name, const char **version)
{
	for (size_t i = 0; name && i < capture->modules.count; i++) {
		const struct ss_module *module = &capture->modules.items[i]->pub;
		if (has_name(ss_path_base(module->path), name, version))
			return module;
	}
	return NULL;
}

static const struct ss_module *find_program(const struct ss_capture *capture)
{
	const char *executable = capture->process.executable;

	for (size_t i = 0; executable && i < capture->modules.count; i++) {
		const struct ss_module *module = &capture->modules.items[i]->pub;
		if (strcmp(module->path, executable) == 0)
			return module;
	}
	return NULL;
}

/* Whether the process executes programs of a language. *version: what its file has after the name. */
static bool executes(const struct ss_capture *capture, const struct language *language,
		     struct unsupported *ret, const char **version)
{
	const char *executable = capture->process.executable;
	const char *ignored;

	for (size_t i = 0; executable && i < SS_ARRAY_SIZE(language->programs); i++) {
		const char *name = language->programs[i];
		if (!name || !has_name(ss_path_base(executable), name, version) ||
		    (*version)[strspn(*version, "0123456789.")] != '\0')
			continue;
		const char *code = language->code ? language->code : language->library;
		ret->modules[0] = find_program(capture);
		ret->modules[1] = find_module(capture, code, &ignored);
		return true;
	}
	ret->modules[0] = find_module(capture, language->library, version);
	return ret->modules[0] != NULL;
}

/* "3.6" of "3.6m.so.1.0". The text is empty if there is none. */
static unsigned read_version(const char *text, char *ret, size_t size)
{
	unsigned major = 0;
	unsigned minor = 0;

	*ret = '\0';
	if (sscanf(text, "%2u.%2u", &major, &minor) == 2)
		(void)snprintf(ret, size, " %u.%u", major, minor); /* it fits */
	return VERSION(major, minor);
}

static bool describe(const struct ss_runtime_process *process,
		     const struct language *language, const char *version,
		     struct ss_runtime_info *info)
{
	char name[32];
	char text[96];

	(void)snprintf(name, sizeof(name), "%s%s", language->name,
		       version); /* they fit */
	(void)snprintf(text, sizeof(text),
		       "%s is not supported: only those of the interpreter are shown",
		       name);
	info->version = ss_intern_string(process->strings, name);
	info->problem = ss_intern_string(process->strings, text);
	return info->version && info->problem;
}

static bool open_unsupported(const struct ss_runtime_process *process,
			     struct ss_runtime_info *info, void **ret)
{
	struct unsupported found = {};
	const char *file;
	char version[8];

	if (process->capture->perf_map) /* it says what its code is called */
		return true;
	for (size_t i = 0; i < SS_ARRAY_SIZE(languages); i++) {
		const struct language *language = &languages[i];
		if (!executes(process->capture, language, &found, &file))
			continue;
		const unsigned number = read_version(file, version, sizeof(version));
		if (language->end && (number == 0 || number >= language->end))
			continue;
		struct unsupported *state = malloc(sizeof(*state));
		if (!state || !describe(process, language, version, info)) {
			free(state);
			return false;
		}
		*state = found;
		state->problem = info->problem;
		*ret = state;
		return true;
	}
	return true;
}

static bool is_in(const struct ss_module *module, uint64_t pc)
{
	return module && pc - module->base < module->size;
}

/* Threads that have only code of other libraries execute no functions of the language. */
static bool walk_unsupported(void *state, struct ss_runtime_thread *thread)
{
	const struct unsupported *unsupported = state;

	for (size_t i = 0; i < thread->count; i++) {
		if (is_in(unsupported->modules[0], thread->frames[i].pc) ||
		    is_in(unsupported->modules[1], thread->frames[i].pc))
			thread->problem = unsupported->problem;
	}
	return true;
}

const struct ss_runtime ss_runtime_unsupported = {
	.kind = SS_FRAME_NATIVE,
	.open = open_unsupported,
	.close = free,
	.walk = walk_unsupported,
};
