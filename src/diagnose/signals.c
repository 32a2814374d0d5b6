#include "diagnose/signals.h"

#include <signal.h>

enum { COUNT = 64, SHOWN = 6 };

#define NAME(name) [SIG##name] = #name
/* Not every C library has sigabbrev_np(3). */
static const char *const names[] = {
	NAME(HUP),    NAME(INT),  NAME(QUIT), NAME(ILL),  NAME(TRAP),  NAME(ABRT),
	NAME(BUS),    NAME(FPE),  NAME(KILL), NAME(USR1), NAME(SEGV),  NAME(USR2),
	NAME(PIPE),   NAME(ALRM), NAME(TERM), NAME(CHLD), NAME(CONT),  NAME(STOP),
	NAME(TSTP),   NAME(TTIN), NAME(TTOU), NAME(URG),  NAME(XCPU),  NAME(XFSZ),
	NAME(VTALRM), NAME(PROF), NAME(IO),   NAME(PWR),  NAME(WINCH), NAME(SYS),
};

static void write_signal(int number, struct ss_words *words)
{
	const char *name = (size_t)number < SS_ARRAY_SIZE(names) ? names[number] : NULL;

	if (name)
		ss_words_add(words, "%s", name);
	else
		ss_words_add(words, "signal %d", number);
}

void ss_signals_write(uint64_t mask, struct ss_words *words)
{
	int left = __builtin_popcountll(mask);
	int shown = 0;

	if (left == 0)
		ss_words_add(words, "none");
	for (int number = 1; number <= COUNT; number++) {
		if (!(mask >> (number - 1) & 1))
			continue;
		if (shown == SHOWN && left > 1) {
			ss_words_add(words, " and %d more", left);
			return;
		}
		left--;
		ss_words_add(words, "%s", shown == 0 ? "" : left == 0 ? " and " : ", ");
		write_signal(number, words);
		shown++;
	}
}
