#include "cli/selection.h"

#include <string.h>

#include "cli/failure.h"
#include "cli/number.h"
#include "cli/usage.h"

static const char all_states[] = "RSDTtZXIPKW";

static struct ss_error *add_pattern(struct ss_selection *selection, const char *text)
{
	regex_t *pattern = ss_vector_push(&selection->patterns);
	char why[200] = "";

	if (!pattern)
		return ss_error_no_memory();
	int code = regcomp(pattern, text, REG_EXTENDED | REG_NOSUB);
	if (code == 0)
		return NULL;
	(void)regerror(code, pattern, why, sizeof(why)); /* may be truncated */
	selection->patterns.count--;
	return ss_error_new(SS_ERROR_INVALID,
			    "--thread: '%s' is not a regular expression: %s", text, why);
}

struct ss_error *ss_selection_add(struct ss_selection *selection, const char *text)
{
	pid_t tid = 0;

	if (!ss_number_is_digits(text))
		return add_pattern(selection, text);
	struct ss_error *error = ss_target_argument_parse_id(text, "tid", &tid);
	if (error)
		return error;
	pid_t *slot = ss_vector_push(&selection->tids);
	if (!slot)
		return ss_error_no_memory();
	*slot = tid;
	return NULL;
}

struct ss_error *ss_selection_set_states(struct ss_selection *selection,
					 const char *letters)
{
	size_t known = strspn(letters, all_states);

	if (*letters == '\0')
		return ss_error_new(SS_ERROR_INVALID,
				    "--state: expected letters such as R, S or D");
	if (letters[known])
		return ss_error_new(
			SS_ERROR_INVALID,
			"--state: unknown thread state '%c'; known states: %s",
			letters[known], all_states);
	selection->states = letters;
	return NULL;
}

void ss_selection_deinit(struct ss_selection *selection)
{
	for (size_t i = 0; i < selection->patterns.count; i++)
		regfree(&selection->patterns.items[i]);
	ss_vector_free(&selection->patterns);
	ss_vector_free(&selection->tids);
}

static bool names_threads(const struct ss_selection_run *run)
{
	return run->argument->tids.count || run->selection->tids.count ||
	       run->selection->patterns.count;
}

bool ss_selection_run_is_active(const struct ss_selection_run *run)
{
	return names_threads(run) || run->selection->states;
}

bool ss_selection_run_is_empty(const struct ss_selection_run *run)
{
	return run->seen > 0 && run->selected == 0;
}

static bool has_tid(const pid_t *tids, size_t count, pid_t tid)
{
	for (size_t i = 0; i < count; i++) {
		if (tids[i] == tid)
			return true;
	}
	return false;
}

static bool has_name(const struct ss_selection *selection, const char *name)
{
	for (size_t i = 0; i < selection->patterns.count; i++) {
		if (regexec(&selection->patterns.items[i], name, 0, NULL, 0) == 0)
			return true;
	}
	return false;
}

bool ss_selection_run_filter(void *data, pid_t tid, const char *name, char state)
{
	struct ss_selection_run *run = data;
	const struct ss_selection *selection = run->selection;
	const struct ss_target_argument *argument = run->argument;

	run->seen++;
	if (selection->states && (!state || !strchr(selection->states, state)))
		return false;
	if (names_threads(run) &&
	    !has_tid(argument->tids.items, argument->tids.count, tid) &&
	    !has_tid(selection->tids.items, selection->tids.count, tid) &&
	    !has_name(selection, name))
		return false;
	run->selected++;
	return true;
}

static bool snapshot_has(const struct ss_snapshot *snapshot, pid_t tid)
{
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		if (ss_snapshot_task(snapshot, SS_TASK_THREAD, i)->tid == tid)
			return true;
	}
	return false;
}

/* Reports only ids of PID/TID: an id of -t may belong to any of several targets. With
   --state, a thread that exists may be deselected. */
size_t ss_selection_run_report(const struct ss_selection_run *run,
			       const struct ss_snapshot *snapshot)
{
	const struct ss_target_argument *argument = run->argument;
	size_t missing = 0;

	for (size_t i = 0; i < argument->tids.count && !run->selection->states; i++) {
		if (snapshot_has(snapshot, argument->tids.items[i]))
			continue;
		missing++;
		ss_failure_warn("process %d has no thread %d", argument->pid,
				argument->tids.items[i]);
	}
	return missing;
}

enum key { KEY_THREAD = 't', KEY_STATE = 0x540 };

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "Threads:", 2 },
	{ "thread", KEY_THREAD, "TID|REGEX", 0,
	  "Select threads by id, or by a regular expression over the name; may be "
	  "repeated",
	  0 },
	{ "state", KEY_STATE, "LETTERS", 0, "Select threads by state (R, S, D...)", 0 },
	{},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ss_selection *selection = state->input;
	_cleanup_error_ struct ss_error *error = NULL;

	if (key == KEY_THREAD)
		error = ss_selection_add(selection, arg);
	else if (key == KEY_STATE)
		error = ss_selection_set_states(selection, arg);
	else
		return ARGP_ERR_UNKNOWN;
	if (error)
		ss_usage_fail(state, "%s", ss_error_message(error));
	return 0;
}

const struct argp ss_selection_argp = { .options = table, .parser = parse };
