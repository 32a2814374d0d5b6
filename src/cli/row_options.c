#include "cli/row_options.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "cli/usage.h"
#include "process/process_list.h"

enum { BOOT_ID_MAX = 63 };

enum key { KEY_BATCH = 0x680, KEY_LABEL, KEY_ENV };

static const struct argp_option table[] = {
	{ "batch", KEY_BATCH, "NAME", 0,
	  "rows: the name of what belongs together, on all hosts (default: the time)",
	  1 },
	{ "label", KEY_LABEL, "KEY=VALUE", 0,
	  "Add a label to the output, for -f rows and recording; may be repeated", 1 },
	{},
};

static const struct argp_option label_table[] = {
	{ "label", KEY_LABEL, "KEY=VALUE", 0,
	  "Add a label to the recording; may be repeated", 1 },
	{},
};

static const struct argp_option env_table[] = {
	{ "env", KEY_ENV, "NAME", 0,
	  "Add a variable of the environment of the process as a label; may be repeated",
	  1 },
	{},
};

static bool is_name(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr("_.-/", text[i]))
			return false;
	}
	return size > 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ss_row_arguments *arguments = state->input;
	const char **slot = NULL;

	switch (key) {
	case KEY_BATCH:
		arguments->batch = arg;
		return 0;
	case KEY_LABEL:
		if (!strchr(arg, '=') || !is_name(arg, strcspn(arg, "=")))
			ss_usage_fail(state, "--label: '%s' is not KEY=VALUE", arg);
		slot = ss_vector_push(&arguments->labels);
		break;
	case KEY_ENV:
		if (!is_name(arg, strlen(arg)))
			ss_usage_fail(state, "--env: '%s' is not the name of a variable",
				      arg);
		slot = ss_vector_push(&arguments->variables);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	if (!slot)
		ss_usage_fail(state, "out of memory");
	else
		*slot = arg;
	return 0;
}

const struct argp ss_row_argp = { .options = table, .parser = parse };
const struct argp ss_label_argp = { .options = label_table, .parser = parse };
const struct argp ss_row_env_argp = { .options = env_table, .parser = parse };

void ss_row_arguments_deinit(struct ss_row_arguments *arguments)
{
	ss_vector_free(&arguments->labels);
	ss_vector_free(&arguments->variables);
}

void ss_row_arguments_begin(struct ss_row_arguments *arguments, uint64_t at_ns)
{
	uint64_t ns = at_ns ? at_ns : ss_clock_ns(CLOCK_REALTIME);
	time_t seconds = (time_t)(ns / SS_NS_PER_SECOND);
	struct tm tm;

	if (arguments->batch || !gmtime_r(&seconds, &tm))
		return;
	(void)strftime(arguments->time, sizeof(arguments->time), "%Y-%m-%dT%H:%M:%SZ",
		       &tm); /* it fits */
	arguments->batch = arguments->time;
}

static void read_boot_id(struct ss_row_source *source)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	if (ss_io_read_path(AT_FDCWD, "/proc/sys/kernel/random/boot_id", BOOT_ID_MAX,
			    &text) == 0)
		(void)snprintf(source->boot_id, sizeof(source->boot_id), "%.*s",
			       (int)strcspn(text.bytes, "\n"), text.bytes);
}

static void update(struct ss_row_source *source)
{
	source->options = (struct ss_row_options){
		.batch = source->batch,
		.boot_id = source->boot_id,
		.labels = (const char *const *)source->labels.items,
		.label_count = source->labels.count,
	};
}

static void add(struct ss_row_source *source, char *label)
{
	char **slot = label ? ss_vector_push(&source->labels) : NULL;

	if (slot)
		*slot = label;
	else
		free(label);
}

void ss_row_source_init(struct ss_row_source *source,
			const struct ss_row_arguments *arguments)
{
	*source = (struct ss_row_source){};
	source->batch = strdup(arguments->batch ? arguments->batch : "");
	read_boot_id(source);
	for (size_t i = 0; i < arguments->labels.count; i++)
		add(source, strdup(arguments->labels.items[i]));
	update(source);
}

void ss_row_source_add(struct ss_row_source *source,
		       const struct ss_row_arguments *arguments,
		       const struct ss_target *target)
{
	for (size_t i = 0; i < arguments->variables.count; i++) {
		const char *name = arguments->variables.items[i];
		_cleanup_free_ char *value = ss_target_read_variable(target, name);
		char *label = NULL;
		if (value && asprintf(&label, "%s=%s", name, value) >= 0)
			add(source, label);
	}
	update(source);
}

void ss_row_source_deinit(struct ss_row_source *source)
{
	for (size_t i = 0; i < source->labels.count; i++)
		free(source->labels.items[i]);
	ss_vector_free(&source->labels);
	free(source->batch);
}
