#include "cli/command.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text_stream.h"
#include "cli/arguments.h"
#include "cli/failure.h"
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

void ss_command_suggest(struct ss_suggestion *suggestion)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(commands); i++)
		ss_suggestion_offer(suggestion, commands[i]->name);
}

void ss_command_write_help(FILE *out)
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

enum { NAME_SIZE = 64 };

/* The command whose arguments are parsed, and how far. */
static const struct ss_command *current;
static struct argp_state *parsing;

int ss_usage_next(void)
{
	return parsing->next;
}

static void print_help(void *input, const char *arg)
{
	char name[NAME_SIZE];

	(void)input;
	(void)arg;
	(void)snprintf(name, sizeof(name), "stacksnap %s", current->name); /* it fits */
	parsing->name = name;
	argp_state_help(parsing, stdout, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK);
	exit(EXIT_SUCCESS);
}

static const struct ss_option usage_options[] = {
	{ "help", 'h', NULL, "Print this help", -1, .take = print_help },
	{},
};

const struct ss_option_group ss_usage_group = { .options = usage_options };

enum {
	GROUPS_MAX = 24, /* of a command */
	OPTIONS_MAX = 128,
	FIRST_KEY = 0x100, /* of options without a letter */
};

/* A group of options of the current command. */
struct bound {
	const struct ss_option_group *group;
	void *input;
	int first_key;
	struct argp argp;
	struct bound *children[GROUPS_MAX];
	struct argp_child argp_children[GROUPS_MAX];
};

static struct bound bounds[GROUPS_MAX];
static size_t bound_count;
static struct argp_option rows[OPTIONS_MAX];
static size_t row_count;

static const struct ss_option *find_option(const struct bound *bound, int key)
{
	const struct ss_option *o = bound->group->options;

	for (int number = bound->first_key; o && !ss_option_is_end(o); o++, number++) {
		if (key == (o->letter ? o->letter : number) && (o->name || o->letter))
			return o;
	}
	return NULL;
}

static void set_number(void *member, size_t size, uint64_t value)
{
	if (size == sizeof(uint64_t))
		*(uint64_t *)member = value;
	else
		*(unsigned *)member = (unsigned)value;
}

static void set_option(const struct ss_option *o, void *input, const char *arg)
{
	void *member = (char *)input + o->offset;

	switch (o->type) {
	case SS_OPTION_TAKEN:
		o->take(member, arg);
		break;
	case SS_OPTION_FLAG:
		*(bool *)member = true;
		break;
	case SS_OPTION_TEXT:
		*(const char **)member = arg;
		break;
	case SS_OPTION_NUMBER:
		set_number(member, o->size,
			   ss_argument_number(o->name, arg, o->min, o->max) *
				   (o->unit ? o->unit : 1));
		break;
	case SS_OPTION_DURATION:
		*(uint64_t *)member = ss_argument_duration(o->name, arg);
		break;
	}
}

/* Takes an argument that is no option. */
static error_t take_argument(const struct bound *bound, struct argp_state *state)
{
	int at = state->next - 1;

	if (!bound->group->argument)
		return ARGP_ERR_UNKNOWN;
	if (bound->group->argument(bound->input, &state->argv[at],
				   state->quoted && at >= state->quoted))
		state->next = state->argc;
	return 0;
}

static error_t call(void (*function)(void *input), void *input)
{
	if (function)
		function(input);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const struct bound *bound = state->input;
	const struct ss_option_group *group = bound->group;

	parsing = state;
	switch (key) {
	case ARGP_KEY_INIT:
		for (size_t i = 0; bound->children[i]; i++)
			state->child_inputs[i] = bound->children[i];
		/* argp then prints no hint of its own; getopt prints to stderr. */
		state->err_stream = NULL;
		return call(group->begin, bound->input);
	case ARGP_KEY_ARG:
		return take_argument(bound, state);
	case ARGP_KEY_NO_ARGS:
		return call(group->none, bound->input);
	case ARGP_KEY_END:
		return call(group->end, bound->input);
	default:
		break;
	}
	const struct ss_option *option = find_option(bound, key);
	if (!option)
		return ARGP_ERR_UNKNOWN;
	set_option(option, bound->input, arg);
	return 0;
}

/* What write writes. NULL without memory. */
static char *written(void (*write)(FILE *out))
{
	struct ss_text_stream text;

	if (!ss_text_stream_open(&text))
		return NULL;
	write(text.out);
	return ss_text_stream_close(&text);
}

/* An argp help filter. */
static char *describe(int key, const char *text, void *input)
{
	const struct bound *bound = input;
	const struct ss_option *option = bound ? find_option(bound, key) : NULL;

	if (bound && bound->group->write_help && key == ARGP_KEY_HELP_POST_DOC)
		return written(bound->group->write_help);
	if (option && bound->group->describe)
		return bound->group->describe(option, bound->input);
	return text ? strdup(text) : NULL;
}

/* Makes the tables of argp for a group and its children. */
static struct bound *bind(const struct ss_option_group *group, void *input)
{
	assert(bound_count < GROUPS_MAX);
	struct bound *bound = &bounds[bound_count++];
	const struct argp_option *first = &rows[row_count];

	*bound = (struct bound){ .group = group,
				 .input = input,
				 .first_key = FIRST_KEY + (int)row_count };
	for (const struct ss_option *o = group->options; o && !ss_option_is_end(o); o++) {
		int key = FIRST_KEY + (int)row_count;
		assert(row_count + 1 < OPTIONS_MAX);
		rows[row_count++] = (struct argp_option){
			.name = o->name,
			.key = o->letter ? o->letter :
			       o->name	 ? key :
					   0,
			.arg = o->arg,
			.flags = o->flags,
			.doc = o->doc,
			.group = o->group,
		};
	}
	rows[row_count++] = (struct argp_option){};
	size_t count = 0;
	for (const struct ss_option_child *c = group->children; c && c->group; c++) {
		bound->children[count] = bind(c->group, (char *)input + c->offset);
		bound->argp_children[count].argp = &bound->children[count]->argp;
		count++;
	}
	/* glibc's argp does not release a table without options. */
	bound->argp = (struct argp){ .options = group->options ? first : NULL,
				     .parser = parse,
				     .args_doc = group->args_doc,
				     .doc = group->doc,
				     .children = bound->argp_children,
				     .help_filter = describe };
	return bound;
}

bool ss_usage_parse(const struct ss_command *command, int argc, char **argv,
		    unsigned flags, void *input)
{
	const struct ss_option_child children[] = { { command->options, 0 }, {} };
	const struct ss_option_group all = { .options = usage_options,
					     .children = children };

	current = command;
	ss_usage_begin(command, argc, argv);
	bound_count = row_count = 0;
	struct bound *bound = bind(&all, input);
	error_t errnum =
		argp_parse(&bound->argp, argc, argv, flags | ARGP_NO_HELP, NULL, bound);
	ss_usage_end();
	if (errnum == EINVAL)
		ss_usage_fail_option(argc, argv);
	if (errnum)
		ss_failure_warn("%s", strerror(errnum));
	return errnum == 0;
}
