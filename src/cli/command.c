#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/format.h"

static const struct ss_command *const commands[] = {
	&ss_command_snap,    &ss_command_record, &ss_command_hang,
	&ss_command_diff,    &ss_command_report,
#if SS_CRASH
	&ss_command_run,     &ss_command_core,
#endif
#if SS_HEAP
	&ss_command_heap,
#endif
	&ss_command_modules,
#if SS_TRACE
	&ss_command_trace,
#endif
	&ss_command_top,     &ss_command_names,
};

const struct ss_command *ss_command_at(size_t index)
{
	return index < SS_ARRAY_SIZE(commands) ? commands[index] : NULL;
}

const struct ss_command *ss_command_find(const char *name)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

char *ss_command_filter_help(int key, const char *text, void (*write)(FILE *out))
{
	char *help = NULL;
	size_t size = 0;
	FILE *out = key == ARGP_KEY_HELP_POST_DOC ? open_memstream(&help, &size) : NULL;

	if (!out)
		return text ? strdup(text) : NULL;
	write(out);
	if (fclose(out) == 0)
		return help;
	free(help);
	return NULL;
}

static void write_lists(FILE *out)
{
	ss_format_write_help(SS_FORMAT_SNAPSHOT, out);
	(void)fputs("Formats of merged snapshots (--interval, --count): ", out);
	ss_format_write_names(SS_FORMAT_SERIES, ", ", out);
	(void)fputs(
		"\n"
		"\nExit status: 0 complete, 1 something is missing, 2 no stack could be "
		"shown, 64 wrong usage.\n",
		out);
}

char *ss_command_help(int key, const char *text, void *input)
{
	(void)input;
	return ss_command_filter_help(key, text, write_lists);
}
