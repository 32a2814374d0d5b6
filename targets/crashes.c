/*
 * A process that ends in one of many ways, for core files.
 *
 * crashes HOW
 *
 *	null	calls a function at address 0: [0], fail, main
 *	assert	a failed assertion: raise and abort below fail
 *	free	frees memory twice: glibc aborts below free, fail
 *	bus	reads a mapping beyond the end of its file: read_mapping, fail
 *	sys	a system call that a seccomp filter forbids: syscall, fail
 *	altstack overflows the stack; a handler on an alternate stack raises the signal again:
 *		raise, on_overflow, a signal frame, descend many times, fail
 *	handler	a handler of SIGUSR1 reads address 16: on_signal, a signal frame, raise, fail
 *	malloc	the heap of the process is damaged, and a thread dies while another one
 *		allocates: two threads
 *	vfork	a child of vfork reads address 16: read_mapping, fail
 *	many	500 threads "waiter" wait for a mutex that main holds, and main reads address 16
 */
#include "target.h"

#include <assert.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

pthread_mutex_t stock = PTHREAD_MUTEX_INITIALIZER;
volatile int result;

TARGET_FRAME static void read_mapping(const volatile int *address)
{
	result = *address;
	TARGET_KEEP();
}

static void (*volatile nothing)(void);

TARGET_FRAME static void fail_assert(volatile int *zero)
{
	assert(*zero);
	TARGET_KEEP();
}

TARGET_FRAME static void fail_free(void)
{
	char *volatile memory = malloc(2000);
	char *volatile other = malloc(2000);

	free(memory);
	free(memory);
	free(other);
	TARGET_KEEP();
}

TARGET_FRAME static void fail_bus(void)
{
	int fd = memfd_create("short", 0);

	if (ftruncate(fd, 8192) != 0)
		abort();
	const char *bytes = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	if (ftruncate(fd, 4096) != 0)
		abort();
	read_mapping((const volatile int *)(bytes + 4096));
	TARGET_KEEP();
}

TARGET_FRAME static void fail_sys(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	(void)syscall(SYS_getppid);
	TARGET_KEEP();
}

static int (*volatile again)(int);

TARGET_FRAME static int descend(int depth)
{
	char bytes[512];

	memset(bytes, depth, sizeof(bytes));
	__asm__ volatile("" ::"r"(bytes) : "memory");
	return again(depth + 1) + bytes[0];
}

static void on_overflow(int number)
{
	(void)signal(number, SIG_DFL);
	(void)raise(number);
	TARGET_KEEP();
}

TARGET_FRAME static void fail_altstack(void)
{
	static char memory[65536];
	const stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	const struct sigaction action = { .sa_handler = on_overflow,
					  .sa_flags = SA_ONSTACK | SA_NODEFER };

	(void)sigaltstack(&stack, NULL);
	(void)sigaction(SIGSEGV, &action, NULL);
	again = descend;
	result = descend(0);
}

static void on_signal(int number)
{
	(void)number;
	read_mapping((const volatile int *)16);
	TARGET_KEEP();
}

TARGET_FRAME static void fail_handler(void)
{
	(void)signal(SIGUSR1, on_signal);
	(void)raise(SIGUSR1);
	TARGET_KEEP();
}

static volatile bool allocates;

TARGET_FRAME static void *allocator(void *arg)
{
	for (allocates = true;;)
		free(malloc(100000));
	return arg;
}

TARGET_FRAME static void fail_malloc(void)
{
	pthread_t thread;

	(void)pthread_create(&thread, NULL, allocator, NULL);
	while (!allocates)
		free(malloc(200000));
	read_mapping((const volatile int *)16);
	TARGET_KEEP();
}

TARGET_FRAME static void fail_vfork(void)
{
	pid_t child = vfork();

	if (child == 0)
		read_mapping((const volatile int *)16);
	(void)waitpid(child, NULL, 0);
	_exit(0);
}

TARGET_FRAME static void waiter(void *arg)
{
	(void)arg;
	target_arrive();
	(void)pthread_mutex_lock(&stock);
	TARGET_KEEP();
}

TARGET_FRAME static void fail_many(void)
{
	(void)pthread_mutex_lock(&stock);
	for (int i = 0; i < 500; i++)
		(void)target_start("waiter", SYS_futex, waiter, NULL);
	read_mapping((const volatile int *)16);
	TARGET_KEEP();
}

TARGET_FRAME static void fail(const char *how)
{
	volatile int zero = 0;

	if (strcmp(how, "null") == 0)
		nothing();
	if (strcmp(how, "assert") == 0)
		fail_assert(&zero);
	if (strcmp(how, "free") == 0)
		fail_free();
	if (strcmp(how, "bus") == 0)
		fail_bus();
	if (strcmp(how, "sys") == 0)
		fail_sys();
	if (strcmp(how, "altstack") == 0)
		fail_altstack();
	if (strcmp(how, "handler") == 0)
		fail_handler();
	if (strcmp(how, "malloc") == 0)
		fail_malloc();
	if (strcmp(how, "vfork") == 0)
		fail_vfork();
	if (strcmp(how, "many") == 0)
		fail_many();
	TARGET_KEEP();
}

int main(int argc, char **argv)
{
	target_init();
	fail(argc > 1 ? argv[1] : "null");
	return 1;
}
