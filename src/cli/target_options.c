#include "cli/target_options.h"

#include <ctype.h>
#include <string.h>

#include "cli/common_options.h"
#include "cli/failure.h"
#include "cli/usage.h"
#include "profile/label.h"

enum { KEY_PID = 'p', KEY_NAME = 0x5c0 };

/* comm has at most 15 bytes (TASK_COMM_LEN). */
enum { COMM_MAX = 15 };

/* Of a list of matches. */
enum { LINES_MAX = 50, LINE_SIZE = 200 };

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "Process:", -3 },
	{ "pid", KEY_PID, "PID", 0, "Same as the argument PID", 0 },
	{ "name", KEY_NAME, "REGEX", 0,
	  "Select the process whose name matches a regular expression", 0 },
	{},
};

static void check_single(const struct argp_state *state,
			 const struct ss_target_options *options, const char *text)
{
	if (options->single && ss_target_options_count(options) > 1)
		ss_usage_fail(state, "expected one process; unexpected argument '%s'",
			      text);
}

static void add_pid(const struct argp_state *state, struct ss_target_options *options,
		    const char *text)
{
	struct ss_target_argument argument = {};

	if (options->single)
		ss_options_check(state,
				 ss_target_argument_parse_id(text, "pid", &argument.pid));
	else
		ss_options_check(state, ss_target_argument_parse(text, &argument));
	struct ss_target_argument *slot = ss_vector_push(&options->targets);
	if (!slot)
		ss_usage_fail(state, "out of memory");
	else
		*slot = argument;
	check_single(state, options, text);
}

static struct ss_target_name *add_name(const struct argp_state *state,
				       struct ss_target_options *options,
				       const char *text)
{
	struct ss_target_name *name = ss_vector_push(&options->names);

	if (!name)
		ss_usage_fail(state, "out of memory");
	else
		name->text = text;
	check_single(state, options, text);
	return name;
}

static void add_pattern(const struct argp_state *state, struct ss_target_options *options,
			const char *text)
{
	struct ss_target_name *name = add_name(state, options, text);
	char why[200] = "";
	int code = regcomp(&name->pattern, text, REG_EXTENDED | REG_NOSUB);

	if (code == 0) {
		name->is_pattern = true;
		return;
	}
	(void)regerror(code, &name->pattern, why, sizeof(why)); /* may be truncated */
	ss_usage_fail(state, "--name: '%s' is not a regular expression: %s", text, why);
}

void ss_target_options_add(const struct argp_state *state,
			   struct ss_target_options *options, const char *text)
{
	if (isalpha((unsigned char)*text) || *text == '_')
		(void)add_name(state, options, text);
	else
		add_pid(state, options, text);
}

size_t ss_target_options_count(const struct ss_target_options *options)
{
	return options->targets.count + options->names.count;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ss_target_options *options = state->input;

	switch (key) {
	case KEY_PID:
		add_pid(state, options, arg);
		return 0;
	case KEY_NAME:
		add_pattern(state, options, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp ss_target_argp = { .options = table, .parser = parse };

static bool matches_text(const struct ss_target_name *name, const char *text)
{
	return name->is_pattern ? regexec(&name->pattern, text, 0, NULL, 0) == 0 :
				  strcmp(name->text, text) == 0;
}

/* Whether comm is the name, cut by the kernel. */
static bool matches_cut(const struct ss_target_name *name, const char *comm)
{
	return !name->is_pattern && strlen(comm) == COMM_MAX &&
	       strlen(name->text) > COMM_MAX && strncmp(name->text, comm, COMM_MAX) == 0;
}

static bool matches(void *data, pid_t pid, const char *comm, const char *executable)
{
	const struct ss_target_name *name = data;

	(void)pid;
	return matches_text(name, comm) ||
	       (executable ? matches_text(name, ss_label_base(executable)) :
			     matches_cut(name, comm));
}

static void print_process(const struct ss_listed_process *process)
{
	char line[LINE_SIZE];

	if (process->command_line)
		(void)snprintf(line, sizeof(line), "%7d %s", process->pid,
			       process->command_line);
	else
		(void)snprintf(line, sizeof(line), "%7d [%s]", process->pid,
			       process->name);
	ss_failure_list(line);
}

static void list_matches(const struct ss_target_name *name, struct ss_process_list *list)
{
	size_t count = ss_process_list_count(list);

	ss_process_list_read_commands(list);
	ss_failure_warn("%zu processes %s '%s':", count,
			name->is_pattern ? "match" : "are named", name->text);
	for (size_t i = 0; i < SS_MIN(count, (size_t)LINES_MAX); i++)
		print_process(ss_process_list_at(list, i));
	if (count > LINES_MAX)
		ss_failure_list("    ...");
	ss_failure_hint("choose one by its pid");
}

static void report_none(const struct ss_target_name *name)
{
	if (name->is_pattern) {
		ss_failure_warn("no process has a name that matches '%s'", name->text);
		ss_failure_hint("ps -e lists the names of processes");
	} else {
		ss_failure_warn("'%s' is neither a command nor the name of a process",
				name->text);
		ss_failure_hint("stacksnap --help lists the commands, ps -e the names of "
				"processes");
	}
}

/* Adds the process of that name. Returns false, after a message, if there is not one. */
static bool resolve(struct ss_target_options *options, struct ss_target_name *name)
{
	struct ss_process_list *list = NULL;
	_cleanup_error_ struct ss_error *error =
		ss_process_list_new(matches, name, &list);
	size_t count = error ? 0 : ss_process_list_count(list);
	struct ss_target_argument *target = NULL;

	if (count == 1)
		target = ss_vector_push(&options->targets);
	if (target)
		target->pid = ss_process_list_at(list, 0)->pid;
	else if (count > 1)
		list_matches(name, list);
	else if (count == 0 && !error)
		report_none(name);
	else if (!error)
		error = ss_error_no_memory();
	if (error)
		ss_failure_print(error);
	ss_process_list_free(list);
	return target != NULL;
}

bool ss_target_options_resolve(struct ss_target_options *options)
{
	bool found = true;

	for (size_t i = 0; i < options->names.count && found; i++)
		found = resolve(options, &options->names.items[i]);
	return found;
}

pid_t ss_target_options_pid(const struct ss_target_options *options)
{
	return options->targets.count ? options->targets.items[0].pid : 0;
}

void ss_target_options_deinit(struct ss_target_options *options)
{
	for (size_t i = 0; i < options->targets.count; i++)
		ss_target_argument_deinit(&options->targets.items[i]);
	ss_vector_free(&options->targets);
	for (size_t i = 0; i < options->names.count; i++) {
		if (options->names.items[i].is_pattern)
			regfree(&options->names.items[i].pattern);
	}
	ss_vector_free(&options->names);
}
