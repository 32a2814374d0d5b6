/*
 * Functions that run in the sandbox: what they hand back, how their deaths are told, and
 * that they can do none of the things which they are not to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "cli/sandbox.h"

/* With sanitizers faults are theirs, and memory is not limited. */
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { GENEROUS_MS = 60000, MEMORY = 64 << 20, OUTPUT = 1 << 20 };

static const char *const steps[] = { "starting", "counting" };

static struct ss_sandbox_outcome run_as(ss_sandbox_work *work, void *data,
					const struct ss_confinement *confinement,
					unsigned timeout_ms)
{
	_cleanup_(ss_sandbox_board_cleanup) struct ss_sandbox_board *board =
		ss_sandbox_board_new();
	struct ss_sandbox_outcome outcome = SS_SANDBOX_NO_OUTCOME;
	const struct ss_sandbox sandbox = {
		.work = work,
		.data = data,
		.board = board,
		.steps = steps,
		.step_count = SS_ARRAY_SIZE(steps),
		.timeout_ms = timeout_ms,
		.confinement = *confinement,
	};

	assert_non_null(board);
	assert_null(ss_sandbox_run(&sandbox, &outcome));
	return outcome;
}

static struct ss_sandbox_outcome run(ss_sandbox_work *work, void *data)
{
	const struct ss_confinement confinement = { .memory = MEMORY,
						    .output = OUTPUT,
						    .cpu_s = GENEROUS_MS / 1000 };

	return run_as(work, data, &confinement, GENEROUS_MS);
}

static void assert_file(int fd, const char *expected)
{
	char text[256] = "";

	assert_true(ss_io_pread(fd, text, sizeof(text) - 1, 0) >= 0);
	assert_string_equal(text, expected);
}

static void dies(ss_sandbox_work *work, const char *expected)
{
	struct ss_sandbox_outcome outcome = run(work, NULL);

	assert_non_null(outcome.death);
	assert_string_equal(outcome.death, expected);
	ss_sandbox_outcome_deinit(&outcome);
}

/* Ends well; what it tried was refused. */
static void is_harmless(ss_sandbox_work *work, void *data)
{
	struct ss_sandbox_outcome outcome = run(work, data);

	assert_null(outcome.death);
	assert_null(outcome.error);
	assert_int_equal(outcome.board.result[0], 1);
	ss_sandbox_outcome_deinit(&outcome);
}

static struct ss_error *write_both(void *data, struct ss_sandbox_board *board, FILE *out)
{
	(void)fprintf(out, "stacks of %s\n", (const char *)data);
	(void)fputs("a remark\n", stderr);
	board->result[1] = 7;
	return NULL;
}

static void hands_back_what_was_written(void **state)
{
	char name[] = "something inherited";
	struct ss_sandbox_outcome outcome = run(write_both, name);

	(void)state;
	assert_null(outcome.death);
	assert_null(outcome.error);
	assert_file(outcome.output, "stacks of something inherited\n");
	assert_file(outcome.messages, "a remark\n");
	assert_int_equal(outcome.board.result[1], 7);
	assert_int_equal(outcome.board.module, -1);
	ss_sandbox_outcome_deinit(&outcome);
}

static struct ss_error *refuse(void *data, struct ss_sandbox_board *board, FILE *out)
{
	(void)data;
	(void)board;
	(void)out;
	return ss_error_with_remedy(ss_error_new(SS_ERROR_NO_PROCESS, "it is gone"),
				    "look elsewhere");
}

static void hands_back_an_error(void **state)
{
	struct ss_sandbox_outcome outcome = run(refuse, NULL);

	(void)state;
	assert_null(outcome.death);
	assert_int_equal(ss_error_code(outcome.error), SS_ERROR_NO_PROCESS);
	assert_string_equal(ss_error_message(outcome.error), "it is gone");
	assert_string_equal(ss_error_remedy(outcome.error), "look elsewhere");
	ss_sandbox_outcome_deinit(&outcome);
}

static int *volatile no_memory; /* NULL, which the compiler is not to know */

static struct ss_error *fault(void *data, struct ss_sandbox_board *board, FILE *out)
{
	(void)data;
	(void)out;
	board->step = 1;
	board->module = 3;
	(void)signal(SIGSEGV, SIG_DFL); /* cmocka catches it */
	*no_memory = 1;
	return NULL;
}

static void tells_a_fault(void **state)
{
	struct ss_sandbox_outcome outcome;

	(void)state;
	if (SANITIZED)
		skip();
	outcome = run(fault, NULL);
	assert_string_equal(outcome.death, "crashed (SIGSEGV) while counting");
	assert_int_equal(outcome.board.module, 3);
	ss_sandbox_outcome_deinit(&outcome);
}

static struct ss_error *give_up(void *data, struct ss_sandbox_board *board, FILE *out)
{
	(void)data;
	(void)board;
	(void)out;
	_exit(3);
}

static struct ss_error *abort_it(void *data, struct ss_sandbox_board *board, FILE *out)
{
	(void)data;
	(void)board;
	(void)out;
	abort();
}

static struct ss_error *lie(void *data, struct ss_sandbox_board *board, FILE *out)
{
	(void)data;
	(void)out;
	board->step = 12345;
	memset(board->error_message, 'x', sizeof(board->error_message));
	memset(board->error_remedy, 'y', sizeof(board->error_remedy));
	board->error_code = 0xffffffff;
	return NULL;
}

static void tells_other_ends(void **state)
{
	struct ss_sandbox_outcome outcome = run(lie, NULL);

	(void)state;
	dies(give_up, "gave up (status 3) while starting");
	if (!SANITIZED)
		dies(abort_it, "crashed (SIGABRT) while starting");
	assert_null(outcome.death);
	assert_int_equal(ss_error_code(outcome.error), SS_ERROR_SYSTEM);
	assert_true(strlen(ss_error_message(outcome.error)) <
		    sizeof(outcome.board.error_message));
	ss_sandbox_outcome_deinit(&outcome);
}

static struct ss_error *go_round(void *data, struct ss_sandbox_board *board, FILE *out)
{
	(void)data;
	(void)out;
	for (;;)
		board->step = 1;
	return NULL;
}

static void ends_what_takes_too_long(void **state)
{
	const struct ss_confinement a_second = { .output = OUTPUT, .cpu_s = 1 };
	const struct ss_confinement an_hour = { .output = OUTPUT, .cpu_s = 3600 };
	struct ss_sandbox_outcome outcome = run_as(go_round, NULL, &an_hour, 50);

	(void)state;
	assert_string_equal(outcome.death, "was not done after 50 ms while counting");
	ss_sandbox_outcome_deinit(&outcome);
	outcome = run_as(go_round, NULL, &a_second, GENEROUS_MS);
	assert_string_equal(
		outcome.death,
		"took more processor time than it may (SIGXCPU) while counting");
	ss_sandbox_outcome_deinit(&outcome);
}

/* Takes what it can get; each piece is touched. */
static struct ss_error *eat(void *data, struct ss_sandbox_board *board, FILE *out)
{
	enum { PIECE = 1 << 20, PIECES = 1024 };
	size_t count = 0;

	(void)data;
	(void)out;
	while (count < PIECES) {
		char *piece = malloc(PIECE);
		if (!piece)
			break;
		memset(piece, 1, PIECE);
		count++;
	}
	board->result[0] = count;
	return ss_error_no_memory();
}

static void ends_what_eats_memory(void **state)
{
	struct ss_sandbox_outcome outcome;

	(void)state;
	if (SANITIZED)
		skip();
	outcome = run(eat, NULL);
	assert_string_equal(outcome.death, "had not enough memory while starting");
	assert_true(outcome.board.result[0] > 0);
	assert_true(outcome.board.result[0] <= MEMORY >> 20);
	ss_sandbox_outcome_deinit(&outcome);
}

static struct ss_error *flood(void *data, struct ss_sandbox_board *board, FILE *out)
{
	(void)data;
	(void)board;
	for (;;)
		(void)fputs("more and more\n", out);
	return NULL;
}

static void ends_what_writes_too_much(void **state)
{
	(void)state;
	dies(flood, "wrote more than it may (SIGXFSZ) while starting");
}

static struct ss_error *start_program(void *data, struct ss_sandbox_board *board,
				      FILE *out)
{
	char *const argv[] = { (char *)"true", NULL };

	(void)data;
	(void)board;
	(void)out;
	(void)execve("/bin/true", argv, NULL);
	return NULL;
}

static struct ss_error *open_socket(void *data, struct ss_sandbox_board *board, FILE *out)
{
	(void)data;
	(void)out;
	board->result[0] = socket(AF_INET, SOCK_STREAM, 0) < 0;
	return NULL;
}

static struct ss_error *trace_parent(void *data, struct ss_sandbox_board *board,
				     FILE *out)
{
	(void)data;
	(void)out;
	board->result[0] = ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) < 0;
	return NULL;
}

static struct ss_error *kill_parent(void *data, struct ss_sandbox_board *board, FILE *out)
{
	(void)data;
	(void)out;
	board->result[0] = kill(getppid(), 0) < 0;
	return NULL;
}

static void dies_of_what_nobody_needs(void **state)
{
	static const char expected[] = "made a system call that it may not make (SIGSYS) "
				       "while starting";

	(void)state;
	dies(start_program, expected);
	dies(open_socket, expected);
	dies(trace_parent, expected);
	dies(kill_parent, expected);
}

static struct ss_error *make_process(void *data, struct ss_sandbox_board *board,
				     FILE *out)
{
	(void)data;
	(void)out;
	board->result[0] = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) < 0;
	if (!board->result[0])
		_exit(1);
	return NULL;
}

static struct ss_error *make_code(void *data, struct ss_sandbox_board *board, FILE *out)
{
	(void)data;
	(void)out;
	board->result[0] = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
	return NULL;
}

/* In every way that there is; a file that exists, too. */
static struct ss_error *write_file(void *data, struct ss_sandbox_board *board, FILE *out)
{
	const char *path = data;
	const uint64_t how[3] = { O_WRONLY | O_CREAT, 0600, 0 }; /* struct open_how */
	char other[64];

	(void)out;
	(void)snprintf(other, sizeof(other), "%s.other", path); /* it fits */
	board->result[0] =
		open(path, O_WRONLY) < 0 && open(path, O_RDWR | O_APPEND) < 0 &&
		open(path, O_RDONLY | O_TRUNC) < 0 && open(other, O_CREAT, 0600) < 0 &&
		syscall(SYS_openat2, AT_FDCWD, path, how, sizeof(how)) < 0 &&
		truncate(path, 0) < 0 && unlink(path) < 0 && rename(path, other) < 0 &&
		mkdir(other, 0700) < 0 && chmod(path, 0777) < 0 &&
		symlink(path, other) < 0 && link(path, other) < 0;
	return NULL;
}

static void cannot_write_files(void **state)
{
	char path[] = "/tmp/test_sandbox.XXXXXX";
	int fd = mkstemp(path);
	struct stat status;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "whole", 5), 5);
	is_harmless(write_file, path);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 5);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
}

static void cannot_make_processes_and_code(void **state)
{
	(void)state;
	is_harmless(make_process, NULL);
	is_harmless(make_code, NULL);
}

/* Regular files that are open for reading stay, whatever else is open does not. */
struct files {
	int regular;
	int writable;
	int socket;
	int directory;
};

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static struct ss_error *look_at_files(void *data, struct ss_sandbox_board *board,
				      FILE *out)
{
	const struct files *files = data;
	char byte;

	(void)out;
	board->result[0] = is_open(files->regular) && !is_open(files->writable) &&
			   !is_open(files->socket) && !is_open(files->directory) &&
			   read(STDIN_FILENO, &byte, 1) < 0 &&
			   read(files->regular, &byte, 1) == 1;
	return NULL;
}

static void keeps_only_files_to_read(void **state)
{
	struct files files = {
		.regular = open("/proc/self/exe", O_RDONLY),
		.writable = memfd_create("writable", 0),
		.socket = socket(AF_UNIX, SOCK_STREAM, 0),
		.directory = open("/", O_RDONLY | O_DIRECTORY),
	};

	(void)state;
	assert_true(files.regular >= 0 && files.writable >= 0 && files.socket >= 0 &&
		    files.directory >= 0);
	is_harmless(look_at_files, &files);
	assert_true(is_open(files.socket));
	(void)close(files.regular);
	(void)close(files.writable);
	(void)close(files.socket);
	(void)close(files.directory);
}

static struct ss_error *look_at_ids(void *data, struct ss_sandbox_board *board, FILE *out)
{
	const struct ss_confinement *wanted = data;

	(void)out;
	board->result[0] = getuid() == wanted->uid && geteuid() == wanted->uid &&
			   getgid() == wanted->gid && open("/etc/shadow", O_RDONLY) < 0;
	return NULL;
}

static void changes_ids(void **state)
{
	struct ss_confinement nobody = { .change_ids = true,
					 .uid = 65534,
					 .gid = 65534,
					 .output = OUTPUT,
					 .cpu_s = 60 };

	(void)state;
	if (geteuid() != 0)
		skip();
	struct ss_sandbox_outcome outcome =
		run_as(look_at_ids, &nobody, &nobody, GENEROUS_MS);
	assert_null(outcome.death);
	assert_int_equal(outcome.board.result[0], 1);
	ss_sandbox_outcome_deinit(&outcome);
}

/* Root without capabilities: others' files are closed to it. */
static struct ss_error *look_at_rights(void *data, struct ss_sandbox_board *board,
				       FILE *out)
{
	(void)out;
	board->result[0] = open(data, O_RDONLY) < 0 && errno == EACCES;
	return NULL;
}

static void has_no_capabilities(void **state)
{
	char path[] = "/tmp/test_sandbox.XXXXXX";

	(void)state;
	if (geteuid() != 0)
		skip();
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, 65534, 65534), 0);
	is_harmless(look_at_rights, path);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
}

/* Nothing is left of those that had to be killed. */
static void leaves_no_child(void **state)
{
	(void)state;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hands_back_what_was_written),
		cmocka_unit_test(hands_back_an_error),
		cmocka_unit_test(tells_a_fault),
		cmocka_unit_test(tells_other_ends),
		cmocka_unit_test(ends_what_takes_too_long),
		cmocka_unit_test(ends_what_eats_memory),
		cmocka_unit_test(ends_what_writes_too_much),
		cmocka_unit_test(dies_of_what_nobody_needs),
		cmocka_unit_test(cannot_make_processes_and_code),
		cmocka_unit_test(cannot_write_files),
		cmocka_unit_test(keeps_only_files_to_read),
		cmocka_unit_test(changes_ids),
		cmocka_unit_test(has_no_capabilities),
		cmocka_unit_test(leaves_no_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
