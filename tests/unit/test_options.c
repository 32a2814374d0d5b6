/* The rows of options of all commands. */
#include "unit.h"

#include <argp.h>
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

enum { OPTIONS_MAX = 256 };

static const struct ss_option *options[OPTIONS_MAX]; /* of one command */
static size_t count;

static void collect(const struct ss_option_group *group)
{
	for (const struct ss_option *o = group->options; o && !ss_option_is_end(o); o++) {
		assert_true(count < OPTIONS_MAX);
		options[count++] = o;
	}
	for (const struct ss_option_child *c = group->children; c && c->group; c++)
		collect(c->group);
}

static void check_number(const struct ss_option *o)
{
	const uint64_t unit = o->unit ? o->unit : 1;
	const uint64_t most = o->size == sizeof(uint64_t) ? UINT64_MAX : UINT_MAX;

	assert_true(o->size == sizeof(unsigned) || o->size == sizeof(uint64_t));
	assert_true(o->min <= o->max);
	assert_true(o->max <= most / unit);
}

/* A row says how its value is read, and what the help says. */
static void check_option(const struct ss_option *o)
{
	if (o->flags & OPTION_HIDDEN) { /* digits, which are refused */
		assert_non_null(o->take);
		return;
	}
	assert_non_null(o->doc);
	if (!o->name && !o->letter) { /* a heading */
		assert_int_equal(o->doc[strlen(o->doc) - 1], ':');
		return;
	}
	assert_non_null(o->name); /* a letter alone says nothing */
	assert_true(strlen(o->doc) > 0 && o->doc[strlen(o->doc) - 1] != '.');
	assert_true(!o->letter || isalpha((unsigned char)o->letter));
	assert_true((o->type == SS_OPTION_TAKEN) == (o->take != NULL));
	assert_true(o->type == SS_OPTION_TAKEN ||
		    (o->type == SS_OPTION_FLAG) == (o->arg == NULL));
	if (o->type == SS_OPTION_NUMBER)
		check_number(o);
	else
		assert_true(o->min == 0 && o->max == 0 && o->unit == 0);
}

static void check_unique(void)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < i; j++) {
			const struct ss_option *a = options[i];
			const struct ss_option *b = options[j];
			assert_false(a->letter && a->letter == b->letter);
			assert_false(a->name && b->name && strcmp(a->name, b->name) == 0);
		}
	}
}

TEST(test_commands)
{
	const struct ss_command *command;

	for (size_t i = 0; (command = ss_command_at(i)); i++) {
		assert_ptr_equal(ss_command_find(command->name), command);
		assert_true(strlen(command->summary) > 0);
		count = 0;
		collect(&ss_usage_group);
		collect(command->options);
		check_unique();
		for (size_t j = 0; j < count; j++)
			check_option(options[j]);
	}
}
