/*
 * Threads with names that are hard to parse and to print; see the table below. Prints
 * "TID HEX" for each before "ready"; HEX are the bytes of the name.
 *
 * Each thread: poll, target_block, thread_routine, target_thread_main, start_thread,
 * clone3.
 */
#include "target.h"

#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const char *const names[] = {
	"plain",
	"",
	" ",
	"two words",
	"a) R 1 2 3 (b",
	")",
	"((((",
	"new\nline",
	"\n\n",
	"tab\there",
	"\033[31mred\033[0m",
	"\r\b\a\177",
	"\001\002\037",
	"\377\376\200",
	"caf\303\251",
	"cut\303",
	"\302\233c1",
	"\"quo'te\\d\\n",
	"semi;colon",
	"<&>{}[]",
	"%s%n%p",
	"1234567890abcde",
};

TARGET_FRAME static void thread_routine(void *arg)
{
	(void)prctl(PR_SET_NAME, arg);
	target_block();
	TARGET_KEEP();
}

int main(void)
{
	target_init();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct target_thread *thread =
			target_start("", SYS_poll, thread_routine, (void *)names[i]);

		printf("%d ", (int)target_tid(thread));
		for (const char *byte = names[i]; *byte; byte++)
			printf("%02x", (unsigned char)*byte);
		puts("");
	}
	target_wait();
	return 0;
}
