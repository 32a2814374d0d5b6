/*
 * The ways in which processes crash.
 *
 * fatal_signals HOW: the function fail_HOW is on the stack of the main thread, above main.
 *
 *	nowhere		calls a function at address 0
 *	double_free	glibc aborts
 *	assertion	assert(3) aborts
 *	exception	std::terminate: nobody catches it
 *	mapping		SIGBUS: the file was truncated
 *	filter		SIGSYS: a seccomp filter forbids getppid(2)
 *	overflow	endless recursion; a handler on an alternate stack raises the signal again
 *	reraise		abort(3) in a handler of SIGSEGV, above the fault
 *	handler		a null pointer in the handler of SIGUSR1
 *	vfork		a null pointer in a child of vfork(2); the parent exits with 0
 *	fork		the same with fork(2)
 *	many		a null pointer while 500 threads wait
 *	malloc		a null pointer while other threads allocate all the time
 *	thread		a null pointer in another thread: fail_thread, target_thread_main
 *	recovers	1,000 faults that a handler leaves by siglongjmp(3): exits with 0
 *	ignored		SIGUSR1 is ignored and arrives: exits with 0
 */
#include "target.h"

#include <assert.h>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int result;
static sigjmp_buf before;
static void *volatile pointer;
static void *volatile null = reinterpret_cast<void *>(uintptr_t(16));

TARGET_FRAME static void read_null()
{
	result = *static_cast<volatile int *>(null);
	TARGET_KEEP();
}

static void (*volatile nothing)();

TARGET_FRAME static void fail_nowhere()
{
	nothing();
	TARGET_KEEP();
}

TARGET_FRAME static void fail_double_free()
{
	pointer = malloc(100);
	free(pointer);
	free(pointer);
	TARGET_KEEP();
}

TARGET_FRAME static void fail_assertion()
{
	assert(result == 1);
	TARGET_KEEP();
}

TARGET_FRAME static void fail_exception()
{
	throw std::runtime_error("nobody catches this");
}

TARGET_FRAME static void fail_mapping()
{
	int fd = memfd_create("truncated", 0);

	if (fd < 0 || ftruncate(fd, 4096) != 0)
		_exit(2);
	void *bytes = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED || ftruncate(fd, 0) != 0)
		_exit(2);
	result = *static_cast<volatile int *>(bytes);
	TARGET_KEEP();
}

TARGET_FRAME static void fail_filter()
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(2);
	result = int(syscall(SYS_getppid));
	TARGET_KEEP();
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {};

	action.sa_handler = handler;
	action.sa_flags = flags;
	if (sigaction(number, &action, nullptr) != 0)
		_exit(2);
}

static int (*volatile again)(int);

TARGET_FRAME static int recurse(int depth)
{
	char bytes[512];

	memset(bytes, depth, sizeof(bytes));
	__asm__ volatile("" ::"r"(bytes) : "memory");
	return again(depth + 1) + bytes[0];
}

static void raise_again(int number)
{
	(void)signal(number, SIG_DFL);
	(void)raise(number);
}

TARGET_FRAME static void fail_overflow()
{
	stack_t alternate = {};

	alternate.ss_size = 64 * 1024;
	alternate.ss_sp = malloc(alternate.ss_size);
	if (sigaltstack(&alternate, nullptr) != 0)
		_exit(2);
	handle(SIGSEGV, raise_again, SA_ONSTACK | SA_NODEFER);
	again = recurse;
	result = recurse(0);
}

static void abort_in_handler(int)
{
	abort();
}

TARGET_FRAME static void fail_reraise()
{
	handle(SIGSEGV, abort_in_handler, 0);
	read_null();
}

static void read_null_in_handler(int)
{
	read_null();
}

TARGET_FRAME static void fail_handler()
{
	handle(SIGUSR1, read_null_in_handler, 0);
	(void)raise(SIGUSR1);
	TARGET_KEEP();
}

TARGET_FRAME static void fail_vfork()
{
	int status;

	if (vfork() == 0) {
		read_null();
		_exit(0);
	}
	exit(wait(&status) > 0 && WIFSIGNALED(status) ? 0 : 1);
}

TARGET_FRAME static void fail_fork()
{
	int status;

	if (fork() == 0) {
		read_null();
		_exit(0);
	}
	exit(wait(&status) > 0 && WIFSIGNALED(status) ? 0 : 1);
}

static void wait_forever(void *)
{
	target_arrive();
	for (;;)
		(void)pause();
}

TARGET_FRAME static void fail_many()
{
	for (int i = 0; i < 500; i++)
		(void)target_start("many", SYS_pause, wait_forever, nullptr);
	read_null();
}

static void allocate(void *)
{
	target_arrive();
	for (unsigned i = 1;; i++) {
		void *volatile bytes = malloc(i % 100000);
		free(bytes);
	}
}

TARGET_FRAME static void fail_malloc()
{
	for (int i = 0; i < 3; i++)
		(void)target_start("allocate", -1, allocate, nullptr);
	read_null();
}

TARGET_FRAME static void fail_thread(void *)
{
	target_arrive();
	read_null();
}

TARGET_FRAME static void fail_in_thread()
{
	(void)target_begin("faulty", -1, fail_thread, nullptr);
	while (null)
		(void)pause();
}

static void leave(int)
{
	siglongjmp(before, 1);
}

TARGET_FRAME static void fail_recovers()
{
	volatile int count = 0;

	handle(SIGSEGV, leave, 0);
	if (sigsetjmp(before, 1) != 0)
		count = count + 1;
	if (count < 1000)
		read_null();
	exit(0);
}

TARGET_FRAME static void fail_ignored()
{
	(void)signal(SIGUSR1, SIG_IGN);
	exit(raise(SIGUSR1));
}

static const struct {
	const char *name;
	void (*fail)();
} ways[] = {
	{ "nowhere", fail_nowhere },	 { "double_free", fail_double_free },
	{ "assertion", fail_assertion }, { "exception", fail_exception },
	{ "mapping", fail_mapping },	 { "filter", fail_filter },
	{ "overflow", fail_overflow },	 { "reraise", fail_reraise },
	{ "handler", fail_handler },	 { "vfork", fail_vfork },
	{ "fork", fail_fork },		 { "many", fail_many },
	{ "malloc", fail_malloc },	 { "thread", fail_in_thread },
	{ "recovers", fail_recovers },	 { "ignored", fail_ignored },
};

int main(int argc, char **argv)
{
	target_init();
	for (const auto &way : ways) {
		if (argc > 1 && strcmp(argv[1], way.name) == 0)
			way.fail();
	}
	return 2;
}
