#include "cli/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "cli/relay.h"
#include "cli/stay.h"

enum { BUFFER_SIZE = 64 << 10, NS_PER_MS = 1000000, PROGRESS_MS = 1000 };

struct ss_sandbox_board *ss_sandbox_board_new(void)
{
	void *board = mmap(NULL, sizeof(struct ss_sandbox_board), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return board == MAP_FAILED ? NULL : board;
}

void ss_sandbox_board_free(struct ss_sandbox_board *board)
{
	if (board)
		(void)munmap(board, sizeof(*board)); /* it is mapped */
}

/* A run, from both sides. */
struct run {
	const struct ss_sandbox *sandbox;
	struct ss_sandbox_board *board; /* shared */
	int output;
	int messages;
	int alive[2]; /* a pipe whose end is reached when the child has ended */
	pid_t parent;
	pid_t child;
};

static void run_deinit(struct run *run)
{
	close_cleanup(&run->output);
	close_cleanup(&run->messages);
	close_cleanup(&run->alive[0]);
	close_cleanup(&run->alive[1]);
}

static struct ss_error *run_init(struct run *run, const struct ss_sandbox *sandbox,
				 struct ss_sandbox_board *board)
{
	*run = (struct run){ .sandbox = sandbox, .board = board, .alive = { -1, -1 } };
	run->output = memfd_create("output", MFD_CLOEXEC);
	run->messages = memfd_create("messages", MFD_CLOEXEC);
	if (run->output < 0 || run->messages < 0 || pipe2(run->alive, O_CLOEXEC) < 0)
		return ss_error_new_errno(errno, "no files for a child process");
	*board = (struct ss_sandbox_board){ .module = -1 };
	run->parent = getpid();
	return NULL;
}

/* The child ------------------------------------------------------------- */

static void note_text(const char *text, char *ret, size_t size)
{
	size_t length = text ? strnlen(text, size - 1) : 0;

	if (length)
		memcpy(ret, text, length);
	ret[length] = '\0';
}

static void note_error(const struct ss_error *error, struct ss_sandbox_board *board)
{
	board->error_code = ss_error_code(error);
	note_text(ss_error_message(error), board->error_message,
		  sizeof(board->error_message));
	note_text(ss_error_remedy(error), board->error_remedy,
		  sizeof(board->error_remedy));
}

/* The three standard streams become those of the child: it cannot reach the others. */
static bool take_streams(const struct run *run)
{
	return dup2(run->alive[1], STDIN_FILENO) == STDIN_FILENO &&
	       dup2(run->output, STDOUT_FILENO) == STDOUT_FILENO &&
	       dup2(run->messages, STDERR_FILENO) == STDERR_FILENO;
}

static bool work(const struct run *run)
{
	struct ss_sandbox_board *board = run->board;
	FILE *out = fdopen(STDOUT_FILENO, "w");

	if (!out)
		return false;
	(void)setvbuf(out, NULL, _IOFBF, BUFFER_SIZE); /* a wish */
	_cleanup_error_ struct ss_error *error =
		run->sandbox->work(run->sandbox->data, board, out);
	if (error)
		note_error(error, board);
	return ferror(out) == 0 && fflush(out) == 0 && fflush(stderr) == 0;
}

__attribute__((noreturn)) static void run_child(const struct run *run)
{
	struct ss_confinement confinement = run->sandbox->confinement;
	unsigned refused = 0;

	confinement.parent = run->parent;
	if (!take_streams(run))
		_exit(EXIT_FAILURE);
	ss_confine_files(confinement.resolves_root);
	if (!ss_confine(&confinement, &refused))
		_exit(EXIT_FAILURE);
	run->board->refused = refused;
	run->board->finished = work(run);
	_exit(EXIT_SUCCESS); /* nothing of the parent's is flushed or freed */
}

/* The parent ------------------------------------------------------------ */

static int64_t now_ms(void)
{
	struct timespec now = {};

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* always there */
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

static const char *step_of(const struct run *run)
{
	uint32_t step = run->board->step;

	return step < run->sandbox->step_count ? run->sandbox->steps[step] : "working";
}

/* Whether the child has ended (or closed the pipe, which is as good) by then. */
static bool wait_until(const struct run *run, int64_t deadline_ms)
{
	struct pollfd end = { .fd = run->alive[0] };
	int count = 0;

	do {
		int64_t left = SS_MAX(deadline_ms - now_ms(), (int64_t)0);
		count = poll(&end, 1, (int)SS_MIN(left, (int64_t)INT32_MAX));
	} while (count == 0 ? now_ms() < deadline_ms : count < 0 && errno == EINTR);
	return count > 0;
}

/* Returns its status as of waitpid(); and whether it had to be killed. */
static int wait_for(const struct run *run, bool *ret_late)
{
	int64_t begun = now_ms();
	int64_t deadline = begun + run->sandbox->timeout_ms;
	int status = 0;

	bool ended = wait_until(run, SS_MIN(begun + PROGRESS_MS, deadline));
	if (!ended && isatty(STDERR_FILENO) == 1)
		(void)dprintf(STDERR_FILENO, "stacksnap: %s...\n", step_of(run));
	ended = ended || wait_until(run, deadline);
	*ret_late = !ended;
	/* One that ended keeps its status. */
	(void)kill(run->child, SIGKILL);
	while (waitpid(run->child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static const struct {
	int number;
	const char *text;
} signals[] = {
	{ SIGSEGV, "crashed (SIGSEGV)" },
	{ SIGBUS, "crashed (SIGBUS)" },
	{ SIGABRT, "crashed (SIGABRT)" },
	{ SIGFPE, "crashed (SIGFPE)" },
	{ SIGILL, "crashed (SIGILL)" },
	{ SIGKILL, "was killed (SIGKILL)" },
	{ SIGSYS, "made a system call that it may not make (SIGSYS)" },
	{ SIGXCPU, "took more processor time than it may (SIGXCPU)" },
	{ SIGXFSZ, "wrote more than it may (SIGXFSZ)" },
};

static char *signal_text(int number)
{
	char *text = NULL;

	for (size_t i = 0; i < SS_ARRAY_SIZE(signals); i++) {
		if (signals[i].number == number)
			return strdup(signals[i].text);
	}
	return asprintf(&text, "was ended by signal %d", number) < 0 ? NULL : text;
}

/* What became of it, where it did not end well. NULL: without memory. */
static char *death_text(const struct run *run, int status, bool late)
{
	const struct ss_sandbox_board *board = run->board;
	char *text = NULL;

	if (late) {
		if (asprintf(&text, "was not done after %u ms",
			     run->sandbox->timeout_ms) < 0)
			return NULL;
	} else if (WIFSIGNALED(status)) {
		text = signal_text(WTERMSIG(status));
	} else if (board->error_code == SS_ERROR_NO_MEMORY) {
		text = strdup("had not enough memory");
	} else if (asprintf(&text, "gave up (status %d)", WEXITSTATUS(status)) < 0) {
		return NULL;
	}
	return text;
}

static bool ended_well(const struct run *run, int status, bool late)
{
	return !late && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS &&
	       run->board->finished && run->board->error_code != SS_ERROR_NO_MEMORY;
}

/* A copy, since the child may have changed its mind until it ended. */
static void copy_board(const struct run *run, struct ss_sandbox_board *ret)
{
	memcpy(ret, run->board, sizeof(*ret));
	ret->error_message[sizeof(ret->error_message) - 1] = '\0';
	ret->error_remedy[sizeof(ret->error_remedy) - 1] = '\0';
}

static struct ss_error *make_error(const struct ss_sandbox_board *board)
{
	enum ss_error_code code = SS_ERROR_SYSTEM;

	if (board->error_code == 0)
		return NULL;
	if (board->error_code <= SS_ERROR_CHANGED)
		code = (enum ss_error_code)board->error_code;
	struct ss_error *error = ss_error_new(code, "%s", board->error_message);
	return *board->error_remedy ?
		       ss_error_with_remedy(error, "%s", board->error_remedy) :
		       error;
}

/* The sanitizers' findings are to be seen, and nothing else is to be tried. */
#if defined(__SANITIZE_ADDRESS__)
static void check_sanitizers(const struct run *run, int status)
{
	enum { SANITIZER_STATUS = 99 };

	if (!WIFEXITED(status) || WEXITSTATUS(status) != SANITIZER_STATUS)
		return;
	_cleanup_error_ struct ss_error *error =
		ss_relay_write(run->messages, false, stderr);
	(void)fflush(stderr);
	_exit(SANITIZER_STATUS);
}
#else
static void check_sanitizers(const struct run *run, int status)
{
	(void)run;
	(void)status;
}
#endif

static struct ss_error *judge(struct run *run, int status, bool late,
			      struct ss_sandbox_outcome *ret)
{
	struct ss_sandbox_outcome outcome = SS_SANDBOX_NO_OUTCOME;

	check_sanitizers(run, status);
	copy_board(run, &outcome.board);
	if (ended_well(run, status, late)) {
		outcome.error = make_error(&outcome.board);
	} else {
		_cleanup_free_ char *how = death_text(run, status, late);
		if (!how ||
		    asprintf(&outcome.death, "%s while %s", how, step_of(run)) < 0)
			return ss_error_no_memory();
	}
	outcome.output = take_fd(run->output);
	outcome.messages = take_fd(run->messages);
	*ret = outcome;
	return NULL;
}

struct ss_error *ss_sandbox_run(const struct ss_sandbox *sandbox,
				struct ss_sandbox_outcome *ret)
{
	_cleanup_(ss_sandbox_board_cleanup) struct ss_sandbox_board *own =
		sandbox->board ? NULL : ss_sandbox_board_new();
	struct ss_sandbox_board *board = sandbox->board ? sandbox->board : own;
	_cleanup_(run_deinit) struct run run = { .output = -1,
						 .messages = -1,
						 .alive = { -1, -1 } };

	if (!board)
		return ss_error_no_memory();
	struct ss_error *error = run_init(&run, sandbox, board);
	bool late = false;

	if (error)
		return error;
	struct ss_stay stay;
	ss_stay_begin(&stay);
	run.child = fork();
	int errnum = errno;
	ss_stay_end(&stay);
	if (run.child == 0)
		run_child(&run);
	if (run.child < 0)
		return ss_error_new_errno(errnum, "no child process");
	close_cleanup(&run.alive[1]);
	run.alive[1] = -1;
	int status = wait_for(&run, &late);
	return judge(&run, status, late, ret);
}

void ss_sandbox_outcome_deinit(struct ss_sandbox_outcome *outcome)
{
	free(outcome->death);
	close_cleanup(&outcome->output);
	close_cleanup(&outcome->messages);
	ss_error_free(outcome->error);
}
