#include "cli/symbol_options.h"
#include "cli/usage.h"

#include <sys/stat.h>

#include "stacksnap.h"

enum key {
	KEY_RAW = 0x500,
	KEY_NO_INLINES,
	KEY_NO_SOURCE,
	KEY_NO_DEMANGLE,
	KEY_DEBUG_DIR,
	KEY_SYSROOT,
	KEY_DEBUGINFOD,
};

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "Symbols:", 3 },
	{ "raw", KEY_RAW, NULL, 0, "Print module, offset and build-id instead of names",
	  0 },
	{ "no-inlines", KEY_NO_INLINES, NULL, 0, "Omit frames of inlined functions", 0 },
	{ "no-source", KEY_NO_SOURCE, NULL, 0,
	  "Omit source files and lines of native code", 0 },
	{ "no-demangle", KEY_NO_DEMANGLE, NULL, 0, "Print mangled names", 0 },
	{ "debug-dir", KEY_DEBUG_DIR, "DIR", 0,
	  "Directory of separate debug files (default: /usr/lib/debug)", 0 },
	{ "sysroot", KEY_SYSROOT, "DIR", 0,
	  "Search for modules and debug files below DIR first", 0 },
	{ "debuginfod", KEY_DEBUGINFOD, NULL, 0,
	  "Download missing files from the servers in DEBUGINFOD_URLS", 0 },
	{},
};

static const char *parse_directory(const struct argp_state *state, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		ss_usage_fail(state, "'%s' is not a directory", path);
	return path;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ss_symbol_options *options = state->input;

	switch (key) {
	case KEY_RAW:
		options->raw = true;
		return 0;
	case KEY_NO_INLINES:
		options->flags |= SS_NO_INLINES;
		return 0;
	case KEY_NO_SOURCE:
		options->flags |= SS_NO_SOURCE;
		return 0;
	case KEY_NO_DEMANGLE:
		options->flags |= SS_NO_DEMANGLE;
		return 0;
	case KEY_DEBUG_DIR:
		options->debug_dir = parse_directory(state, arg);
		return 0;
	case KEY_SYSROOT:
		options->sysroot = parse_directory(state, arg);
		return 0;
	case KEY_DEBUGINFOD:
		options->debuginfod = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp ss_symbols_argp = { .options = table, .parser = parse };
