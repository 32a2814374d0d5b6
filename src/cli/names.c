/*
 * stacksnap names [OPTIONS] [FRAME...]: names of frames, BUILD-ID+0xOFFSET.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/interpret.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "report/format.h"
#include "data/snapshot.h"
#include "sandbox/sandbox.h"

enum { INPUT_MAX = 256 << 20, TIMEOUT_MS = 600000 };

struct names {
	struct ss_common_options common;
	struct ss_symbol_options symbols;
	SS_VECTOR(char *) arguments; /* in argv */
	struct ss_buffer input;
	SS_VECTOR(struct ss_place) places; /* in input or arguments */
	SS_VECTOR(const char *) frames;	   /* their ids, likewise */
	struct ss_debuginfod *debuginfod;  /* or NULL */
	struct ss_file_requests requests;
	struct ss_output *output;
};

static void names_deinit(struct names *names)
{
	ss_output_close(names->output);
	ss_file_requests_deinit(&names->requests);
	ss_debuginfod_free(names->debuginfod);
	ss_vector_free(&names->places);
	for (size_t i = 0; i < names->frames.count; i++)
		free(ss_drop_const(names->frames.items[i]));
	ss_vector_free(&names->frames);
	ss_vector_free(&names->arguments);
	ss_buffer_deinit(&names->input);
	ss_row_arguments_deinit(&names->common.rows);
}

static bool take_argument(void *input, char **argv, bool quoted)
{
	struct names *names = input;
	char **slot = ss_vector_push(&names->arguments);

	(void)quoted;
	if (slot)
		*slot = *argv;
	else
		ss_usage_fail("out of memory");
	return false;
}

static const struct ss_option_child children[] = {
	{ &ss_common_group, offsetof(struct names, common) },
	{ &ss_names_group, offsetof(struct names, symbols) },
	{},
};

static const struct ss_option_group group = {
	.children = children,
	.args_doc = "[FRAME...]",
	.doc = "Look up the names of frames given as BUILD-ID+0xOFFSET, and print rows "
	       "of the table \"frames\". Without arguments, frames are read from "
	       "standard input, one per line, each optionally followed by a tab and the "
	       "path of the module.\vExit status: 0 complete, 1 some frames have no "
	       "name, 2 no frame has a name, 64 wrong usage.",
	.argument = take_argument,
};

/* "BUILD-ID+0xOFFSET", or with a tab and a path. Changes line. */
static struct ss_error *add(struct names *names, char *line)
{
	char *rest = line;
	const char *frame = strsep(&rest, "\t");
	char *id = strdup(frame);
	const char **slot = id ? ss_vector_push(&names->frames) : NULL;
	struct ss_place *place = slot ? ss_vector_push(&names->places) : NULL;

	if (!slot) {
		free(id);
		return ss_error_no_memory();
	}
	*slot = id;
	if (!place)
		return ss_error_no_memory();
	char *plus = strchr(line, '+');
	char *end = NULL;
	bool valid = plus && strncmp(plus, "+0x", 3) == 0 && plus[3];
	errno = 0;
	uint64_t offset = valid ? strtoull(plus + 3, &end, 16) : 0;
	if (!valid || *end || errno)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "'%.200s' is not a frame (BUILD-ID+0xOFFSET)", id),
			"the view \"unnamed\" of stacksnap-rows(5) lists frames");
	*plus = '\0';
	*place = (struct ss_place){ .build_id = line, .path = rest, .offset = offset };
	return NULL;
}

static struct ss_error *read_places(struct names *names)
{
	struct ss_error *error = NULL;

	for (size_t i = 0; i < names->arguments.count && !error; i++)
		error = add(names, names->arguments.items[i]);
	if (names->arguments.count || error)
		return error;
	int failed = ss_io_read_all(STDIN_FILENO, INPUT_MAX, &names->input);
	if (failed)
		return ss_error_new_errno(-failed, "reading standard input");
	ss_buffer_add(&names->input, "", 1);
	if (names->input.failed)
		return ss_error_no_memory();
	for (char *rest = names->input.bytes, *line;
	     (line = strsep(&rest, "\n")) && !error;) {
		if (*line)
			error = add(names, line);
	}
	return error;
}

static void snapshot_cleanup(struct ss_snapshot **snapshot)
{
	ss_snapshot_free(*snapshot);
}

/* In the sandbox. The value is how many frames have names. */
static struct ss_error *work(void *data, const struct ss_sandbox_attempt *attempt)
{
	const struct names *names = data;
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	bool requested = false;
	uint64_t named = 0;
	FILE *out = NULL;
	struct ss_error *error = ss_snapshot_new_places(names->places.items,
							names->places.count, &snapshot);

	if (error)
		return error;
	ss_sandbox_enter(attempt, SS_SANDBOX_SYMBOLIZE);
	error = ss_snapshot_symbolize(snapshot, attempt->session, names->symbols.flags);
	if (!error)
		error = ss_file_requests_send(&names->requests, attempt, &requested);
	if (error || requested)
		return error;
	ss_sandbox_enter(attempt, SS_SANDBOX_OUTPUT);
	error = ss_stream_open(attempt->output, &out);
	for (size_t i = 0; i < names->frames.count && !error; i++)
		named += ss_rows_write_names(snapshot, i, names->frames.items[i], out);
	if (!out)
		return error;
	ss_sandbox_set_value(attempt, named);
	return ss_stream_close(out, error);
}

static struct ss_error *look_up(struct names *names, uint64_t *ret)
{
	struct ss_interpret_options options =
		ss_work_options(&names->symbols, &names->requests, names);
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;

	options.timeout_ms = TIMEOUT_MS;
	struct ss_error *error = ss_work_run(&options, work, &result);
	if (!error)
		error = ss_work_copy(result, &names->common, false, names->output);
	if (!error)
		*ret = result->value;
	return error;
}

static int run(int argc, char **argv)
{
	_cleanup_(names_deinit) struct names names = { .common.no_pid = true };
	uint64_t named = 0;

	if (!ss_usage_parse(&ss_command_names, argc, argv, 0, &names))
		return SS_STATUS_NOTHING;
	_cleanup_error_ struct ss_error *error = read_places(&names);
	if (!error)
		error = ss_output_open(names.common.output, 0, &names.output);
	if (!error)
		error = ss_debuginfod_open(&names.symbols, &names.debuginfod);
	names.requests.debuginfod = names.debuginfod;
	if (!error)
		error = look_up(&names, &named);
	if (error)
		return ss_failure_status(error, 0);
	if (named == names.places.count)
		return SS_STATUS_WHOLE;
	ss_failure_warn("%zu of %zu frames have no name",
			names.places.count - (size_t)named, names.places.count);
	return named ? SS_STATUS_PARTIAL : SS_STATUS_NOTHING;
}

const struct ss_command ss_command_names = {
	.name = "names",
	.summary = "look up names of frames, build-id+offset",
	.options = &group,
	.run = run,
};
