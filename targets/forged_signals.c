/*
 * Signals whose si_code looks like that of a ptrace stop. A process may send itself any
 * code (rt_sigqueueinfo(2)).
 *
 * Thread "sender":	sends itself SIGTRAP and SIGUSR1 with the codes SIGTRAP | 0x8000 and
 *			0x8005, all the time; each is delivered before the call returns
 * Thread "sleeper":	poll, target_block, sleep_routine, target_thread_main, start_thread,
 *			clone3
 * At the end of stdin it prints "sent NUMBER" and "received NUMBER", which are equal.
 */
#include "target.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EVENT_STOP = 0x8000 };

static atomic_bool finished;
static atomic_bool ended;
static unsigned long sent;
static volatile unsigned long received;

static void on_signal(int number)
{
	(void)number;
	received++;
}

static void send_one(int number, int code)
{
	siginfo_t info = { .si_signo = number, .si_code = code };

	info.si_pid = getpid();
	if (syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), number, &info) < 0)
		target_die("rt_tgsigqueueinfo");
	sent++;
}

TARGET_FRAME static void send_routine(void *arg)
{
	(void)arg;
	target_arrive();
	while (!atomic_load(&finished)) {
		send_one(SIGTRAP, SIGTRAP | EVENT_STOP);
		send_one(SIGUSR1, EVENT_STOP | 5);
	}
	atomic_store(&ended, true);
	TARGET_KEEP();
}

TARGET_FRAME static void sleep_routine(void *arg)
{
	(void)arg;
	target_block();
	TARGET_KEEP();
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	target_init();
	if (sigaction(SIGTRAP, &action, NULL) < 0 ||
	    sigaction(SIGUSR1, &action, NULL) < 0)
		target_die("sigaction");
	target_start("sleeper", SYS_poll, sleep_routine, NULL);
	target_start("sender", -1, send_routine, NULL);
	target_wait();
	atomic_store(&finished, true);
	while (!atomic_load(&ended))
		;
	printf("sent %lu\nreceived %lu\n", sent, received);
	return 0;
}
