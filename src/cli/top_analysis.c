#include "cli/top_analysis.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/escaped_copy.h"
#include "report/profile_load.h"
#include "data/recording.h"
#include "sandbox/sandbox.h"
#include "stacksnap/record.h"

enum {
	FIRST_FD = STDERR_FILENO + 1,
	TIMEOUT_MS = 10000,
	OUTPUT_MAX = 4 << 20,
	FILES_MAX = 512
};

/* Enough for a thousand threads; a recording of some seconds is small. */
#define MORE_MEMORY ((uint64_t)256 << 20)

struct screen {
	struct ss_top_analysis *analysis;
	const struct ss_sandbox_attempt *attempt;
	struct ss_recording *recordings[SS_TOP_FILES];
	size_t count;
	struct ss_profile *profile;
};

static void screen_deinit(struct screen *screen)
{
	for (size_t i = 0; i < screen->count; i++)
		ss_recording_close(screen->recordings[i]);
	ss_profile_free(screen->profile);
}

/* One that is empty, or has just been emptied, is left out. The older one comes first. */
static void open_recordings(struct screen *screen)
{
	for (size_t i = 0; i < SS_TOP_FILES; i++) {
		int fd = fcntl(screen->analysis->files[i], F_DUPFD_CLOEXEC, FIRST_FD);
		struct ss_recording *recording = NULL;
		if (fd >= 0)
			ss_error_free(ss_recording_open_fd(fd, &recording));
		if (!recording)
			continue;
		if (!ss_recording_info(recording)->samples)
			ss_recording_close(recording);
		else
			screen->recordings[screen->count++] = recording;
	}
	if (screen->count == SS_TOP_FILES &&
	    ss_recording_info(screen->recordings[0])->begin_ns >
		    ss_recording_info(screen->recordings[1])->begin_ns) {
		struct ss_recording *newer = screen->recordings[0];
		screen->recordings[0] = screen->recordings[1];
		screen->recordings[1] = newer;
	}
}

static struct ss_error *symbolize(struct screen *screen)
{
	struct ss_error *error = NULL;

	ss_sandbox_enter(screen->attempt, SS_SANDBOX_SYMBOLIZE);
	for (size_t i = 0; i < screen->count && !error; i++)
		error = ss_recording_symbolize(screen->recordings[i],
					       screen->attempt->session,
					       SS_NO_SOURCE | SS_NO_INLINES);
	return error;
}

static struct ss_error *load(struct screen *screen, bool raw)
{
	uint64_t begin_ns = ss_recording_info(screen->recordings[0])->begin_ns;
	uint64_t end_ns =
		ss_recording_info(screen->recordings[screen->count - 1])->end_ns;
	struct ss_load_options options = { .size = sizeof(options), .raw = raw };
	struct ss_error *error = NULL;

	screen->profile = ss_profile_new();
	if (!screen->profile)
		return ss_error_no_memory();
	options.from_ns = end_ns > screen->analysis->window_ns ?
				  end_ns - screen->analysis->window_ns :
				  0;
	screen->profile->start_ns = SS_MAX(begin_ns, options.from_ns);
	for (size_t i = 0; i < screen->count && !error; i++)
		error = ss_load_recording(screen->profile, screen->recordings[i], "",
					  &options);
	return error;
}

static struct ss_error *write_screen(struct screen *screen)
{
	FILE *out = NULL;
	struct ss_error *error = ss_analysis_open(screen->attempt, &out);

	if (error)
		return error;
	error = ss_top_write(screen->profile, &screen->analysis->view, out);
	return ss_analysis_close(out, error);
}

static struct ss_error *work(void *data, const struct ss_sandbox_attempt *attempt)
{
	struct ss_top_analysis *analysis = data;
	__attribute__((cleanup(screen_deinit))) struct screen screen = {
		.analysis = analysis,
		.attempt = attempt,
	};
	bool raw = attempt->level != SS_SANDBOX_NAMES;
	bool requested = false;
	struct ss_error *error = NULL;

	open_recordings(&screen);
	if (screen.count == 0)
		return NULL;
	if (!raw)
		error = symbolize(&screen);
	if (!error)
		error = ss_file_requests_send(&analysis->requests, attempt, &requested);
	if (error || requested)
		return error;
	ss_sandbox_enter(attempt, SS_SANDBOX_OUTPUT);
	ss_sandbox_set_value(
		attempt, ss_recording_thread_count(screen.recordings[screen.count - 1]));
	error = load(&screen, raw);
	return error ? error : write_screen(&screen);
}

static void answer(void *data, const void *bytes, size_t size)
{
	struct ss_top_analysis *analysis = data;

	ss_file_requests_answer(&analysis->requests, bytes, size);
}

static struct ss_error *copy_text(const struct ss_sandbox_result *result, bool color,
				  char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return ss_error_no_memory();
	struct ss_error *error = ss_escaped_copy(result->output, color, out);
	if (fclose(out) != 0 && !error)
		error = ss_error_no_memory();
	if (!error)
		*ret = size ? take_ptr(text) : NULL;
	return error;
}

struct ss_error *ss_top_analysis_run(struct ss_top_analysis *analysis, char **ret)
{
	struct ss_session_options session = { .size = sizeof(session) };
	const struct ss_analysis sandboxed = {
		.options = {
			.session = &session,
			.change_ids = analysis->owner.known,
			.uid = analysis->owner.uid,
			.gid = analysis->owner.gid,
			.timeout_ms = TIMEOUT_MS,
			.more_memory = MORE_MEMORY,
			.max_output = OUTPUT_MAX,
			.last_level = SS_SANDBOX_RAW,
			.keep_modules = true, /* their indexes are those of one recording */
			.max_requests = SS_FILE_REQUEST_ROUNDS,
			.answer = answer,
		},
		.work = work,
		.data = analysis,
		.color = analysis->view.color,
	};
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;

	/* Modules come and go; their files must not use up the descriptors. */
	if (analysis->requests.answered.count > FILES_MAX)
		ss_file_requests_deinit(&analysis->requests);
	ss_file_requests_attach(&analysis->requests, &session);
	struct ss_error *error = ss_analysis_run(&sandboxed, &result);
	if (error)
		return error;
	if (result->value) /* or there are no samples yet */
		analysis->threads = result->value;
	return copy_text(result, analysis->view.color, ret);
}

void ss_top_analysis_deinit(struct ss_top_analysis *analysis)
{
	ss_file_requests_deinit(&analysis->requests);
}
