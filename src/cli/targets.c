#include "cli/targets.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/search.h"
#include "cli/failure.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "process/process_list.h"
#include "report/profile.h"

/* Parses a thread or process id. what is its name in messages: "pid" or "tid".
   Errors: INVALID. */
static struct ss_error *parse_id(const char *text, const char *what, pid_t *ret)
{
	uint64_t value = 0;

	switch (ss_number_parse(text, 1, INT_MAX, &value)) {
	case SS_NUMBER_OK:
		*ret = (pid_t)value;
		return NULL;
	case SS_NUMBER_NEGATIVE:
		return ss_error_new(SS_ERROR_INVALID,
				    "'%s' is not a valid %s: it is negative", text, what);
	case SS_NUMBER_RANGE:
		return ss_error_new(SS_ERROR_INVALID,
				    "'%s' is not a valid %s: it must be from 1 to %d",
				    text, what, INT_MAX);
	default:
		return ss_error_new(SS_ERROR_INVALID,
				    "'%s' is not a valid %s: it is not a number", text,
				    what);
	}
}

static struct ss_error *parse_tids(char *list, struct ss_target_argument *argument)
{
	for (char *item = strsep(&list, ","); item; item = strsep(&list, ",")) {
		pid_t tid = 0;
		struct ss_error *error = parse_id(item, "tid", &tid);
		if (error)
			return error;
		pid_t *slot = ss_vector_push(&argument->tids);
		if (!slot)
			return ss_error_no_memory();
		*slot = tid;
	}
	return NULL;
}

struct ss_error *ss_target_argument_parse(const char *text,
					  struct ss_target_argument *ret)
{
	_cleanup_free_ char *copy = strdup(text);
	struct ss_target_argument argument = {};

	if (!copy)
		return ss_error_no_memory();
	char *list = copy;
	char *pid = strsep(&list, "/");
	struct ss_error *error = parse_id(pid, "pid", &argument.pid);
	if (!error && list)
		error = parse_tids(list, &argument);
	if (error) {
		ss_target_argument_deinit(&argument);
		return error;
	}
	*ret = argument;
	return NULL;
}

void ss_target_argument_deinit(struct ss_target_argument *argument)
{
	ss_vector_free(&argument->tids);
}

/* Processes --------------------------------------------------------------------------- */

/* More processes in one run are a mistake. */
enum { TARGETS_MAX = 10000 };

enum { PID_FILE_MAX = 4096 };

/* comm has at most 15 bytes (TASK_COMM_LEN). */
enum { COMM_MAX = 15 };

/* Of a list of matches. */
enum { LINES_MAX = 50, LINE_SIZE = 200 };

static void check_single(const struct ss_target_options *options, const char *text)
{
	if (options->single && ss_target_options_count(options) > 1)
		ss_usage_fail("expected one process; unexpected argument '%s'", text);
}

static void add_pid(struct ss_target_options *options, const char *text)
{
	struct ss_target_argument argument = {};

	if (options->single || options->no_threads)
		ss_usage_check(parse_id(text, "pid", &argument.pid));
	else
		ss_usage_check(ss_target_argument_parse(text, &argument));
	struct ss_target_argument *slot = ss_vector_push(&options->targets);
	if (!slot)
		ss_usage_fail("out of memory");
	else
		*slot = argument;
	check_single(options, text);
}

static struct ss_target_name *add_name(struct ss_target_options *options,
				       const char *text)
{
	struct ss_target_name *name = ss_vector_push(&options->names);

	if (!name)
		ss_usage_fail("out of memory");
	else
		name->text = text;
	check_single(options, text);
	return name;
}

static void add_pattern(struct ss_target_options *options, const char *text)
{
	struct ss_target_name *name = add_name(options, text);
	char why[SS_REGEX_WHY_MAX];

	name->is_pattern = ss_regex_compile(text, &name->pattern, why);
	if (!name->is_pattern)
		ss_usage_fail("--name: '%s' is not a regular expression: %s", text, why);
}

void ss_target_options_add(struct ss_target_options *options, const char *text)
{
	if (isalpha((unsigned char)*text) || *text == '_')
		(void)add_name(options, text);
	else
		add_pid(options, text);
}

size_t ss_target_options_count(const struct ss_target_options *options)
{
	return options->targets.count + options->names.count + options->cgroups.count +
	       options->pid_files.count;
}

void ss_target_options_require(const struct ss_target_options *options)
{
	if (ss_target_options_count(options) == 0)
		ss_usage_fail("expected a pid or the name of a process");
}

/* "@1764000000.25", or a time as in a recording. */
static uint64_t parse_at(const char *text)
{
	uint64_t now_ns = ss_clock_ns(CLOCK_REALTIME);
	struct ss_time_argument argument = {};
	uint64_t at_ns = 0;

	if (*text == '@' && isdigit((unsigned char)text[1])) {
		char *end = NULL;
		double seconds = strtod(text + 1, &end);
		if (*end == '\0' && seconds < 1e10)
			at_ns = (uint64_t)(seconds * 1e6) * 1000;
	} else if (ss_time_argument_parse(text, &argument)) {
		at_ns = ss_time_argument_resolve(&argument, now_ns);
	}
	if (at_ns == 0)
		ss_usage_fail(
			"--at: '%s' is not a time such as 11:45:06 or @1764000000.5",
			text);
	if (at_ns < now_ns)
		ss_usage_fail("--at: '%s' has passed", text);
	return at_ns;
}

static void take_cgroup(void *input, const char *arg)
{
	struct ss_target_options *options = input;

	if (*arg != '/')
		ss_usage_fail("--cgroup: '%s' does not begin with '/'", arg);
	ss_argument_add(ss_vector_push(&options->cgroups), arg);
}

static void take_pid_file(void *input, const char *arg)
{
	struct ss_target_options *options = input;

	ss_argument_add(ss_vector_push(&options->pid_files), arg);
}

static void take_at(void *at_ns, const char *arg)
{
	*(uint64_t *)at_ns = parse_at(arg);
}

static const struct ss_option several_table[] = {
	{ "tree", 0, NULL, "Also select the descendants of these processes", -3,
	  SS_SETS_FLAG(struct ss_target_options, tree) },
	{ "cgroup", 0, "PATH",
	  "Select the processes of a cgroup, such as /system.slice/cron.service", -3,
	  .take = take_cgroup },
	{ "pid-file", 0, "FILE", "Select the process whose pid is in FILE", -3,
	  .take = take_pid_file },
	{ "at", 0, "TIME",
	  "Begin at TIME: 11:45:06, @SECONDS since 1970 (default: at once)", -3,
	  .take = take_at, .offset = offsetof(struct ss_target_options, at_ns) },
	{},
};

const struct ss_option_group ss_targets_group = { .options = several_table };

static void take_pid(void *input, const char *arg)
{
	add_pid(input, arg);
}

static void take_pattern(void *input, const char *arg)
{
	add_pattern(input, arg);
}

static bool take_target(void *input, char **argv, bool quoted)
{
	(void)quoted;
	ss_target_options_add(input, *argv);
	return false;
}

static const struct ss_option table[] = {
	{ .doc = "Process:", .group = -3 },
	{ "pid", 'p', "PID", "Same as the argument PID", 0, .take = take_pid },
	{ "name", 0, "REGEX",
	  "Select the processes whose name matches a regular expression", 0,
	  .take = take_pattern },
	{},
};

const struct ss_option_group ss_target_group = { .options = table,
						 .argument = take_target };

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

static bool matches(void *data, const struct ss_listed_process *process)
{
	const struct ss_target_name *name = data;
	const char *executable = process->executable;

	return matches_text(name, process->name) ||
	       (executable ? matches_text(name, ss_path_base(executable)) :
			     matches_cut(name, process->name));
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

static void list_matches(const struct ss_target_name *name, bool single,
			 struct ss_process_list *list)
{
	size_t count = ss_process_list_count(list);

	ss_process_list_read_commands(list);
	ss_failure_warn("%zu processes %s '%s':", count,
			name->is_pattern ? "match" : "are named", name->text);
	for (size_t i = 0; i < SS_MIN(count, (size_t)LINES_MAX); i++)
		print_process(ss_process_list_at(list, i));
	if (count > LINES_MAX)
		ss_failure_list("    ...");
	if (single)
		ss_failure_hint("choose one by its pid");
	else
		ss_failure_hint("choose one by its pid, or take all of them with "
				"--name='^%s$'",
				name->text);
}

static void report_none(const struct ss_target_name *name)
{
	if (name->is_pattern) {
		ss_failure_warn("no process has a name that matches '%s'", name->text);
		ss_failure_hint("ps -e lists the names of processes");
	} else {
		struct ss_suggestion suggestion = { .given = name->text };
		ss_command_suggest(&suggestion);
		ss_failure_warn("'%s' is neither a command nor the name of a process",
				name->text);
		if (suggestion.best)
			ss_failure_hint("%s",
					ss_suggestion_hint(&suggestion, "stacksnap "));
		ss_failure_hint("stacksnap --help lists the commands, ps -e the names of "
				"processes");
	}
}

/* False without memory. */
static bool add_targets(struct ss_target_options *options,
			const struct ss_process_list *list)
{
	for (size_t i = 0; i < ss_process_list_count(list); i++) {
		struct ss_target_argument *target = ss_vector_push(&options->targets);
		if (!target)
			return false;
		target->pid = ss_process_list_at(list, i)->pid;
	}
	return true;
}

/* Whether all but one were started by another one in the list: a server and its workers. */
static bool is_one_job(const struct ss_process_list *list)
{
	size_t count = ss_process_list_count(list);
	size_t first = 0;

	for (size_t i = 0; i < count; i++) {
		bool started = false;
		for (size_t j = 0; j < count && !started; j++)
			started = ss_process_list_at(list, j)->pid ==
				  ss_process_list_at(list, i)->parent;
		first += !started;
	}
	return first == 1;
}

/* Adds the process of that name; all of them if it is a pattern or if they are one job, unless the
   command works on one. Returns false, after a message, if there are none or too many. */
static bool resolve_name(struct ss_target_options *options, struct ss_target_name *name)
{
	struct ss_process_list *list = NULL;
	_cleanup_error_ struct ss_error *error =
		ss_process_list_new(matches, name, &list);
	size_t count = error ? 0 : ss_process_list_count(list);
	bool all = count > 1 && !options->single &&
		   (name->is_pattern || is_one_job(list));
	bool done = count == 1 || all;

	if (done && !add_targets(options, list))
		error = ss_error_no_memory();
	else if (count > 1 && !done)
		list_matches(name, options->single, list);
	else if (count == 0 && !error)
		report_none(name);
	ss_failure_print(error);
	ss_process_list_free(list);
	return done && !error;
}

static bool is_in_cgroup(void *data, const struct ss_listed_process *process)
{
	return ss_process_is_in_cgroup(process->pid, data);
}

/* Paths of the file system are accepted, too: those of version 2. */
static const char *cgroup_of(const char *text)
{
	static const char mount[] = "/sys/fs/cgroup/";

	return strncmp(text, mount, sizeof(mount) - 1) == 0 ? text + sizeof(mount) - 2 :
							      text;
}

static bool resolve_cgroup(struct ss_target_options *options, const char *text)
{
	struct ss_process_list *list = NULL;
	_cleanup_error_ struct ss_error *error =
		ss_process_list_new(is_in_cgroup, ss_drop_const(cgroup_of(text)), &list);

	if (!error && ss_process_list_count(list) == 0)
		error = ss_error_with_remedy(
			ss_error_new(SS_ERROR_NO_PROCESS,
				     "no process is in the cgroup %s", text),
			"cat /proc/PID/cgroup shows the cgroup of a process");
	if (!error && !add_targets(options, list))
		error = ss_error_no_memory();
	ss_failure_print(error);
	ss_process_list_free(list);
	return !error;
}

struct ss_error *ss_target_options_read_pid(const char *path, pid_t *ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	int error = ss_io_read_path(AT_FDCWD, path, PID_FILE_MAX, &text);

	if (error == -ENOENT)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_NO_PROCESS, "there is no file %s", path),
			"the program does not run, or writes its pid elsewhere");
	if (!error && text.size == 0)
		return ss_error_new(SS_ERROR_NO_PROCESS, "there is no pid in %s", path);
	if (error)
		return ss_error_new_errno(-error, "reading %s", path);
	text.bytes[strcspn(text.bytes, "\r\n\t ")] = '\0';
	return parse_id(text.bytes, "pid", ret);
}

static bool resolve_pid_file(struct ss_target_options *options, const char *path)
{
	pid_t pid = 0;
	_cleanup_error_ struct ss_error *error = ss_target_options_read_pid(path, &pid);
	struct ss_target_argument *target = error ? NULL :
						    ss_vector_push(&options->targets);

	if (!error && !target)
		error = ss_error_no_memory();
	if (error)
		ss_failure_print(error);
	else
		target->pid = pid;
	return !error;
}

static bool has_target(const struct ss_target_options *options, size_t count, pid_t pid)
{
	return ss_any(count, i, options->targets.items[i].pid == pid);
}

static bool is_any(void *data, const struct ss_listed_process *process)
{
	(void)data;
	(void)process;
	return true;
}

/* Adds the descendants of the targets: the children of each, those that are added here, too. */
static bool add_descendants(struct ss_target_options *options)
{
	struct ss_process_list *list = NULL;
	_cleanup_error_ struct ss_error *error = ss_process_list_new(is_any, NULL, &list);

	for (size_t i = 0; !error && i < options->targets.count; i++) {
		pid_t parent = options->targets.items[i].pid;
		for (size_t j = 0; !error && j < ss_process_list_count(list); j++) {
			const struct ss_listed_process *process =
				ss_process_list_at(list, j);
			if (process->parent != parent ||
			    has_target(options, options->targets.count, process->pid))
				continue;
			struct ss_target_argument *target =
				ss_vector_push(&options->targets);
			if (target)
				target->pid = process->pid;
			else
				error = ss_error_no_memory();
		}
	}
	ss_failure_print(error);
	ss_process_list_free(list);
	return !error;
}

/* Keeps the first of several arguments for one process, unless one of them selects threads. */
static void drop_repeated(struct ss_target_options *options)
{
	size_t kept = 0;

	for (size_t i = 0; i < options->targets.count; i++) {
		struct ss_target_argument *target = &options->targets.items[i];
		if (target->tids.count == 0 && has_target(options, kept, target->pid))
			continue;
		options->targets.items[kept++] = *target;
	}
	options->targets.count = kept;
}

bool ss_target_options_resolve(struct ss_target_options *options)
{
	bool found = true;

	for (size_t i = 0; i < options->names.count && found; i++) {
		struct ss_target_name *name = &options->names.items[i];
		bool resolved = resolve_name(options, name);
		options->unresolved += !resolved;
		found = resolved || name->is_pattern;
	}
	for (size_t i = 0; i < options->cgroups.count; i++)
		options->unresolved +=
			!resolve_cgroup(options, options->cgroups.items[i]);
	for (size_t i = 0; i < options->pid_files.count; i++)
		options->unresolved +=
			!resolve_pid_file(options, options->pid_files.items[i]);
	found = found && options->targets.count > 0 &&
		(!options->single || options->unresolved == 0);
	if (found && options->tree)
		found = add_descendants(options);
	drop_repeated(options);
	if (found && options->targets.count > TARGETS_MAX) {
		ss_failure_warn("%zu processes are selected; the limit is %d",
				options->targets.count, TARGETS_MAX);
		found = false;
	}
	return found;
}

void ss_target_options_wait(const struct ss_target_options *options)
{
	const struct timespec time = {
		.tv_sec = (time_t)(options->at_ns / SS_NS_PER_SECOND),
		.tv_nsec = (long)(options->at_ns % SS_NS_PER_SECOND),
	};

	if (options->at_ns)
		(void)clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, NULL);
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
	ss_vector_free(&options->cgroups);
	ss_vector_free(&options->pid_files);
}

/* Threads ------------------------------------------------------------------------------- */

static const char all_states[] = "RSDTtZXIPKW";

static struct ss_error *add_thread_pattern(struct ss_selection *selection,
					   const char *text)
{
	regex_t *pattern = ss_vector_push(&selection->patterns);
	char why[SS_REGEX_WHY_MAX];

	if (!pattern)
		return ss_error_no_memory();
	if (ss_regex_compile(text, pattern, why))
		return NULL;
	selection->patterns.count--;
	return ss_error_new(SS_ERROR_INVALID,
			    "--thread: '%s' is not a regular expression: %s", text, why);
}

/* Adds a thread id, or a POSIX extended regular expression over the name.
   Errors: INVALID, NO_MEMORY. */
static struct ss_error *add_selected(struct ss_selection *selection, const char *text)
{
	pid_t tid = 0;

	if (!ss_number_is_digits(text))
		return add_thread_pattern(selection, text);
	struct ss_error *error = parse_id(text, "tid", &tid);
	if (error)
		return error;
	pid_t *slot = ss_vector_push(&selection->tids);
	if (!slot)
		return ss_error_no_memory();
	*slot = tid;
	return NULL;
}

/* Errors: INVALID (unknown letter). */
static struct ss_error *set_states(struct ss_selection *selection, const char *letters)
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

bool ss_selection_run_has_names(const struct ss_selection_run *run)
{
	return run->selection->patterns.count;
}

bool ss_selection_run_may_be_empty(const struct ss_selection_run *run)
{
	return run->selection->states;
}

bool ss_selection_run_is_empty(const struct ss_selection_run *run)
{
	return run->seen > 0 && run->named == 0;
}

static bool has_tid(const pid_t *tids, size_t count, pid_t tid)
{
	return ss_any(count, i, tids[i] == tid);
}

static bool has_name(const struct ss_selection *selection, const char *name)
{
	return ss_any(selection->patterns.count, i,
		      regexec(&selection->patterns.items[i], name, 0, NULL, 0) == 0);
}

bool ss_selection_run_filter(void *data, pid_t tid, const char *name, char state)
{
	struct ss_selection_run *run = data;
	const struct ss_selection *selection = run->selection;
	const struct ss_target_argument *argument = run->argument;

	run->seen++;
	if (names_threads(run) &&
	    !has_tid(argument->tids.items, argument->tids.count, tid) &&
	    !has_tid(selection->tids.items, selection->tids.count, tid) &&
	    !has_name(selection, name))
		return false;
	run->named++;
	return !selection->states || (state && strchr(selection->states, state));
}

static bool snapshot_has(const struct ss_snapshot *snapshot, pid_t tid)
{
	return ss_any(ss_snapshot_task_count(snapshot, SS_TASK_THREAD), i,
		      ss_snapshot_task(snapshot, SS_TASK_THREAD, i)->tid == tid);
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

static void take_thread(void *input, const char *arg)
{
	ss_usage_check(add_selected(input, arg));
}

static void take_states(void *input, const char *arg)
{
	ss_usage_check(set_states(input, arg));
}

static const struct ss_option thread_table[] = {
	{ .doc = "Threads:", .group = 2 },
	{ "thread", 't', "TID|REGEX",
	  "Select threads by id, or by a regular expression over the name; may be "
	  "repeated",
	  0, .take = take_thread },
	{ "state", 0, "LETTERS", "Select threads by state (R, S, D...)", 0,
	  .take = take_states },
	{},
};

const struct ss_option_group ss_selection_group = { .options = thread_table };
