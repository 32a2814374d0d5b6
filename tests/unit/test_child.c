/* Jobs in a confined child: what they hand back, how their failures are reported, and
   what they cannot do. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "sandbox/worker.h"
#include "sandbox/sandbox.h"

/* With sanitizers faults are theirs, and memory is not limited. */
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { GENEROUS_MS = 60000, MEMORY = 64 << 20, OUTPUT = 1 << 20 };

static struct ss_job_outcome run_as(ss_job_work *work, void *data,
				    const struct ss_confinement *confinement,
				    unsigned timeout_ms, unsigned blocked_ms)
{
	_cleanup_(ss_worker_page_cleanup) struct ss_worker_page *page =
		ss_worker_page_new();
	struct ss_job_outcome outcome = SS_JOB_NO_OUTCOME;
	const struct ss_job job = {
		.work = work,
		.data = data,
		.page = page,
		.timeout_ms = timeout_ms,
		.blocked_ms = blocked_ms,
		.confinement = *confinement,
	};

	assert_non_null(page);
	assert_null(ss_job_run(&job, &outcome));
	return outcome;
}

static struct ss_job_outcome run(ss_job_work *work, void *data)
{
	const struct ss_confinement confinement = { .memory = MEMORY,
						    .output = OUTPUT,
						    .cpu_s = GENEROUS_MS / 1000 };

	return run_as(work, data, &confinement, GENEROUS_MS, GENEROUS_MS);
}

static void assert_file(int fd, const char *expected)
{
	char text[256] = "";

	assert_true(ss_io_pread(fd, text, sizeof(text) - 1, 0) >= 0);
	assert_string_equal(text, expected);
}

static void assert_failed(const struct ss_job_outcome *outcome,
			  enum ss_sandbox_cause cause, int code)
{
	assert_true(outcome->failed);
	assert_int_equal(outcome->failure.cause, cause);
	assert_int_equal(outcome->failure.code, code);
}

static void fails(ss_job_work *work, enum ss_sandbox_cause cause, int code)
{
	struct ss_job_outcome outcome = run(work, NULL);

	assert_failed(&outcome, cause, code);
	ss_job_outcome_deinit(&outcome);
}

/* The job ends, and what it tried was refused. */
static void is_harmless(ss_job_work *work, void *data)
{
	struct ss_job_outcome outcome = run(work, data);

	assert_false(outcome.failed);
	assert_null(outcome.error);
	assert_int_equal(outcome.page.value, 1);
	ss_job_outcome_deinit(&outcome);
}

static struct ss_error *write_both(void *data, struct ss_worker_page *page, int out)
{
	(void)dprintf(out, "stacks of %s\n", (const char *)data);
	(void)fputs("a remark\n", stderr);
	page->value = 7;
	return NULL;
}

TEST(hands_back_what_was_written)
{
	char name[] = "something inherited";
	struct ss_job_outcome outcome = run(write_both, name);

	assert_false(outcome.failed);
	assert_null(outcome.error);
	assert_file(outcome.output, "stacks of something inherited\n");
	assert_file(outcome.messages, "a remark\n");
	assert_int_equal(outcome.page.value, 7);
	assert_int_equal(outcome.page.module, -1);
	ss_job_outcome_deinit(&outcome);
}

static struct ss_error *refuse(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)page;
	(void)out;
	return ss_error_with_remedy(ss_error_new(SS_ERROR_NO_PROCESS, "it is gone"),
				    "look elsewhere");
}

TEST(hands_back_an_error)
{
	struct ss_job_outcome outcome = run(refuse, NULL);

	assert_false(outcome.failed);
	assert_int_equal(ss_error_code(outcome.error), SS_ERROR_NO_PROCESS);
	assert_string_equal(ss_error_message(outcome.error), "it is gone");
	assert_string_equal(ss_error_remedy(outcome.error), "look elsewhere");
	ss_job_outcome_deinit(&outcome);
}

static int *volatile no_memory; /* NULL, which the compiler is not to know */

static struct ss_error *fault(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)out;
	page->step = 1;
	page->module = 3;
	(void)signal(SIGSEGV, SIG_DFL); /* cmocka catches it */
	*no_memory = 1;
	return NULL;
}

TEST(reports_a_fault)
{
	struct ss_job_outcome outcome;

	if (SANITIZED)
		skip();
	outcome = run(fault, NULL);
	assert_failed(&outcome, SS_SANDBOX_SIGNAL, SIGSEGV);
	assert_int_equal(outcome.page.step, 1);
	assert_int_equal(outcome.page.module, 3);
	ss_job_outcome_deinit(&outcome);
}

static struct ss_error *give_up(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)page;
	(void)out;
	_exit(3);
}

static struct ss_error *abort_it(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)page;
	(void)out;
	abort();
}

static struct ss_error *lie(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)out;
	page->step = 12345;
	memset(page->error_message, 'x', sizeof(page->error_message));
	memset(page->error_remedy, 'y', sizeof(page->error_remedy));
	page->error_code = 0xffffffff;
	return NULL;
}

TEST(reports_other_failures)
{
	struct ss_job_outcome outcome = run(lie, NULL);

	fails(give_up, SS_SANDBOX_EXIT, 3);
	if (!SANITIZED)
		fails(abort_it, SS_SANDBOX_SIGNAL, SIGABRT);
	assert_false(outcome.failed);
	assert_int_equal(ss_error_code(outcome.error), SS_ERROR_SYSTEM);
	assert_true(strlen(ss_error_message(outcome.error)) <
		    sizeof(outcome.page.error_message));
	ss_job_outcome_deinit(&outcome);
}

static struct ss_error *loop_forever(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)out;
	for (;;)
		page->step = 1;
	return NULL;
}

TEST(kills_what_takes_too_long)
{
	const struct ss_confinement a_second = { .output = OUTPUT, .cpu_s = 1 };
	const struct ss_confinement an_hour = { .output = OUTPUT, .cpu_s = 3600 };
	struct ss_job_outcome outcome =
		run_as(loop_forever, NULL, &an_hour, 50, GENEROUS_MS);

	assert_failed(&outcome, SS_SANDBOX_TIMEOUT, 0);
	ss_job_outcome_deinit(&outcome);
	outcome = run_as(loop_forever, NULL, &a_second, GENEROUS_MS, GENEROUS_MS);
	assert_failed(&outcome, SS_SANDBOX_SIGNAL, SIGXCPU);
	ss_job_outcome_deinit(&outcome);
}

/* Takes what it can get; each piece is touched. */
static struct ss_error *allocate(void *data, struct ss_worker_page *page, int out)
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
	page->value = count;
	return ss_error_no_memory();
}

TEST(limits_memory)
{
	struct ss_job_outcome outcome;

	if (SANITIZED)
		skip();
	outcome = run(allocate, NULL);
	assert_failed(&outcome, SS_SANDBOX_MEMORY, 0);
	assert_true(outcome.page.value > 0);
	assert_true(outcome.page.value <= MEMORY >> 20);
	ss_job_outcome_deinit(&outcome);
}

static struct ss_error *flood(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)page;
	for (;;)
		(void)dprintf(out, "more and more\n");
	return NULL;
}

TEST(limits_output)
{
	fails(flood, SS_SANDBOX_SIGNAL, SIGXFSZ);
}

static struct ss_error *start_program(void *data, struct ss_worker_page *page, int out)
{
	char *const argv[] = { (char *)"true", NULL };

	(void)data;
	(void)page;
	(void)out;
	(void)execve("/bin/true", argv, NULL);
	return NULL;
}

static struct ss_error *open_socket(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)out;
	page->value = socket(AF_INET, SOCK_STREAM, 0) < 0;
	return NULL;
}

static struct ss_error *trace_parent(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)out;
	page->value = ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) < 0;
	return NULL;
}

static struct ss_error *kill_parent(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)out;
	page->value = kill(getppid(), 0) < 0;
	return NULL;
}

TEST(kills_after_forbidden_calls)
{
	fails(start_program, SS_SANDBOX_SIGNAL, SIGSYS);
	fails(open_socket, SS_SANDBOX_SIGNAL, SIGSYS);
	fails(trace_parent, SS_SANDBOX_SIGNAL, SIGSYS);
	fails(kill_parent, SS_SANDBOX_SIGNAL, SIGSYS);
}

static struct ss_error *make_process(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)out;
	page->value = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) < 0;
	if (!page->value)
		_exit(1);
	return NULL;
}

static struct ss_error *make_code(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)out;
	page->value = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0) == MAP_FAILED;
	return NULL;
}

static bool can_map(int flags, int fd)
{
	return mmap(NULL, 4096, PROT_READ, flags, fd, 0) != MAP_FAILED;
}

/* What the limit of memory does not count. */
static struct ss_error *map_uncounted(void *data, struct ss_worker_page *page, int out)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)data;
	(void)out;
	page->value = !can_map(MAP_SHARED | MAP_ANONYMOUS, -1) &&
		      !can_map(MAP_SHARED, zero) &&
		      !can_map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1) &&
		      !can_map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1) &&
		      can_map(MAP_PRIVATE, zero) &&
		      syscall(SYS_memfd_create, "memory", 0) < 0 &&
		      syscall(SYS_shmget, 0, 4096, 0600) < 0;
	return NULL;
}

TEST(cannot_map_uncounted_memory)
{
	is_harmless(map_uncounted, NULL);
}

/* Counts the children in memory that all of them share. */
struct killed {
	int survives; /* the first one that is not killed */
	volatile int *count;
};

static struct ss_error *be_killed(void *data, struct ss_worker_page *page, int out)
{
	const struct killed *killed = data;

	page->module = 5;
	(void)dprintf(out, "%d", ++*killed->count);
	if (*killed->count < killed->survives)
		(void)syscall(SYS_tgkill, getpid(), gettid(), SIGKILL);
	return NULL;
}

TEST(replaces_killed_children)
{
	struct killed killed = {
		.survives = 3,
		.count = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0),
	};

	assert_true(killed.count != MAP_FAILED);
	struct ss_job_outcome outcome = run(be_killed, &killed);
	assert_false(outcome.failed);
	assert_file(outcome.output, "3");
	ss_job_outcome_deinit(&outcome);
	*killed.count = 0;
	killed.survives = 100;
	outcome = run(be_killed, &killed);
	assert_failed(&outcome, SS_SANDBOX_SIGNAL, SIGKILL);
	assert_int_equal(outcome.failure.module, -1);
	assert_int_equal(*killed.count, 3);
	ss_job_outcome_deinit(&outcome);
	(void)munmap((void *)(uintptr_t)killed.count, sizeof(int));
}

/* In every way that there is; a file that exists, too. */
static struct ss_error *write_file(void *data, struct ss_worker_page *page, int out)
{
	const char *path = data;
	const uint64_t how[3] = { O_WRONLY | O_CREAT, 0600, 0 }; /* struct open_how */
	char other[64];

	(void)out;
	(void)snprintf(other, sizeof(other), "%s.other", path); /* it fits */
	page->value =
		open(path, O_WRONLY) < 0 && open(path, O_RDWR | O_APPEND) < 0 &&
		open(path, O_RDONLY | O_TRUNC) < 0 && open(other, O_CREAT, 0600) < 0 &&
		syscall(SYS_openat2, AT_FDCWD, path, how, sizeof(how)) < 0 &&
		truncate(path, 0) < 0 && unlink(path) < 0 && rename(path, other) < 0 &&
		mkdir(other, 0700) < 0 && chmod(path, 0777) < 0 &&
		symlink(path, other) < 0 && link(path, other) < 0;
	return NULL;
}

TEST(cannot_write_files)
{
	char path[] = "/tmp/test_sandbox.XXXXXX";
	int fd = mkstemp(path);
	struct stat status;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "whole", 5), 5);
	is_harmless(write_file, path);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 5);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
}

TEST(cannot_make_processes_and_code)
{
	is_harmless(make_process, NULL);
	is_harmless(make_code, NULL);
}

/* What stays: regular files that are open for reading and close-on-exec. */
struct files {
	int regular;
	int inherited; /* without close-on-exec, as from the program that started us */
	int writable;
	int socket;
	int directory;
	int memory; /* of a process, which the child has to ask for */
};

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static struct ss_error *check_files(void *data, struct ss_worker_page *page, int out)
{
	const struct files *files = data;
	char byte;

	(void)out;
	page->value = is_open(files->regular) && !is_open(files->inherited) &&
		      !is_open(files->writable) && !is_open(files->socket) &&
		      !is_open(files->directory) && !is_open(files->memory) &&
		      recv(STDIN_FILENO, &byte, 1, MSG_DONTWAIT) < 0 &&
		      read(files->regular, &byte, 1) == 1;
	return NULL;
}

TEST(keeps_only_files_to_read)
{
	struct files files = {
		.regular = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
		.inherited = open("/proc/self/exe", O_RDONLY),
		.writable = memfd_create("writable", MFD_CLOEXEC),
		.socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
		.directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC),
	};

	assert_true(files.regular >= 0 && files.inherited >= 0 && files.writable >= 0 &&
		    files.socket >= 0 && files.directory >= 0 && files.memory >= 0);
	is_harmless(check_files, &files);
	assert_true(is_open(files.socket));
	(void)close(files.regular);
	(void)close(files.inherited);
	(void)close(files.writable);
	(void)close(files.socket);
	(void)close(files.directory);
	(void)close(files.memory);
}

/* Files of ours that lie behind many that were inherited. */
TEST(keeps_files_behind_many_others)
{
	enum { COUNT = 900 };
	struct rlimit limit;
	struct files files = { .inherited = -1,
			       .writable = -1,
			       .socket = -1,
			       .directory = -1,
			       .memory = -1 };
	int fds[COUNT];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < COUNT + 100)
		skip();
	for (size_t i = 0; i < COUNT; i++) {
		fds[i] = open("/dev/null", O_RDONLY);
		assert_true(fds[i] >= 0);
	}
	files.regular = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	files.inherited = fds[0];
	is_harmless(check_files, &files);
	(void)close(files.regular);
	for (size_t i = 0; i < COUNT; i++)
		(void)close(fds[i]);
}

/* All five sets, as the kernel shows them. */
static struct ss_error *read_status(void *data, struct ss_worker_page *page, int out)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text));

	(void)data;
	page->value = size > 0 && write(out, text, (size_t)size) == size;
	return NULL;
}

TEST(has_no_rights)
{
	static const char *const lines[] = {
		"CapInh:\t0000000000000000\n",
		"CapPrm:\t0000000000000000\n",
		"CapEff:\t0000000000000000\n",
		"CapAmb:\t0000000000000000\n",
		"NoNewPrivs:\t1\n",
		"Seccomp:\t2\n",
	};
	const struct ss_confinement nobody = {
		.change_ids = true, .uid = 65534, .gid = 65534, .output = OUTPUT
	};
	struct ss_job_outcome outcome =
		run_as(read_status, NULL, &nobody, GENEROUS_MS, GENEROUS_MS);
	char text[4096] = "";

	assert_int_equal(outcome.page.value, 1);
	assert_true(ss_io_pread(outcome.output, text, sizeof(text) - 1, 0) > 0);
	for (size_t i = 0; i < SS_ARRAY_SIZE(lines); i++)
		assert_non_null(strstr(text, lines[i]));
	/* Lowering the bounding set takes a capability. */
	if (prctl(PR_CAPBSET_READ, 8, 0, 0, 0) == 1 && geteuid() == 0)
		assert_non_null(strstr(text, "CapBnd:\t0000000000000000\n"));
	ss_job_outcome_deinit(&outcome);
}

/* The user is one that no other process has: not even that of another child. */
static struct ss_error *check_ids(void *data, struct ss_worker_page *page, int out)
{
	const struct ss_confinement *wanted = data;

	(void)out;
	if (getuid() == geteuid() && getuid() != 0 && getuid() != wanted->uid &&
	    getgid() == wanted->gid && open("/etc/shadow", O_RDONLY) < 0)
		page->value = getuid();
	return NULL;
}

TEST(changes_ids)
{
	struct ss_confinement nobody = { .change_ids = true,
					 .uid = 65534,
					 .gid = 65534,
					 .output = OUTPUT,
					 .cpu_s = 60 };

	if (geteuid() != 0)
		skip();
	struct ss_job_outcome outcome =
		run_as(check_ids, &nobody, &nobody, GENEROUS_MS, GENEROUS_MS);
	assert_false(outcome.failed);
	uint64_t user = outcome.page.value;
	assert_true(user != 0);
	ss_job_outcome_deinit(&outcome);
	outcome = run_as(check_ids, &nobody, &nobody, GENEROUS_MS, GENEROUS_MS);
	assert_true(outcome.page.value != 0 && outcome.page.value != user);
	ss_job_outcome_deinit(&outcome);
}

/* Root without capabilities: others' files are closed to it. */
static struct ss_error *check_rights(void *data, struct ss_worker_page *page, int out)
{
	(void)out;
	page->value = open(data, O_RDONLY) < 0 && errno == EACCES;
	return NULL;
}

TEST(has_no_capabilities)
{
	char path[] = "/tmp/test_sandbox.XXXXXX";

	if (geteuid() != 0)
		skip();
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, 65534, 65534), 0);
	is_harmless(check_rights, path);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
}

/* Nothing is left of those that had to be killed. */
/* As a read of a file whose server does not respond. */
static struct ss_error *block(void *data, struct ss_worker_page *page, int out)
{
	(void)data;
	(void)out;
	page->module = 3;
	(void)syscall(SYS_futex, &page->value, 0 /* FUTEX_WAIT */, 0, NULL);
	return NULL;
}

TEST(kills_what_is_blocked)
{
	const struct ss_confinement confinement = { .output = OUTPUT };
	struct ss_job_outcome outcome =
		run_as(block, NULL, &confinement, UINT32_MAX, 200);

	assert_failed(&outcome, SS_SANDBOX_TIMEOUT, 0);
	assert_int_equal(outcome.page.module, 3);
	ss_job_outcome_deinit(&outcome);
}

/* More than a socket's buffer has room for. */
static size_t read_more(void *data, uint64_t address, void *bytes, size_t size)
{
	enum { FILES = 1024 };
	const int smallest = 1; /* the kernel makes it the least that is allowed */

	(void)data;
	(void)address;
	for (int fd = 3; fd < FILES; fd++) {
		int type = 0;
		socklen_t length = sizeof(type);
		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 &&
		    type == SOCK_STREAM)
			(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &smallest,
					 sizeof(smallest));
	}
	memset(bytes, 1, size);
	return size;
}

static struct ss_error *read_both(void *data, struct ss_worker_page *page, int out)
{
	static uint8_t bytes[SS_WORKER_READ_MAX];

	(void)data;
	(void)out;
	page->value = ss_worker_read(1, bytes, sizeof(bytes)) == sizeof(bytes) &&
		      bytes[sizeof(bytes) - 1] == 1 && ss_worker_read(1, bytes, 16) == 16;
	return NULL;
}

TEST(answers_in_pieces)
{
	_cleanup_(ss_worker_page_cleanup) struct ss_worker_page *page =
		ss_worker_page_new();
	struct ss_job_outcome outcome = SS_JOB_NO_OUTCOME;
	const struct ss_job job = {
		.work = read_both,
		.memory.read = read_more,
		.page = page,
		.timeout_ms = GENEROUS_MS,
		.blocked_ms = 1000,
		.confinement.output = OUTPUT,
	};

	assert_non_null(page);
	assert_null(ss_job_run(&job, &outcome));
	assert_false(outcome.failed);
	assert_int_equal(outcome.page.value, 1);
	ss_job_outcome_deinit(&outcome);
}

TEST(leaves_no_child)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}
