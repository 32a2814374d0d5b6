#include "output/text_writer.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>

#include "base/cleanup.h"
#include "output/escape.h"

#define NS_PER_S UINT64_C(1000000000)

enum { SIGNAL_COUNT = 64, SIGNALS_SHOWN = 6 };

void ss_text_writer_add(const struct ss_text_writer *writer, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vfprintf(writer->out, format, args);
	va_end(args);
}

void ss_text_writer_add_string(const struct ss_text_writer *writer, const char *text)
{
	text = text ? text : "?";
	if (writer->raw)
		(void)fputs(text, writer->out);
	else
		ss_escape_write(text, NULL, writer->out);
}

void ss_text_writer_add_id(const struct ss_text_writer *writer, pid_t id,
			   const char *name)
{
	ss_text_writer_add(writer, "%d", id);
	if (!name)
		return;
	ss_text_writer_add(writer, " (");
	ss_text_writer_add_string(writer, name);
	ss_text_writer_add(writer, ")");
}

void ss_text_writer_add_duration(const struct ss_text_writer *writer, uint64_t time_ns)
{
	uint64_t minutes = time_ns / NS_PER_S / 60;

	if (time_ns < NS_PER_S)
		ss_text_writer_add(writer, "%.3g ms", (double)time_ns / 1e6);
	else if (minutes < 2)
		ss_text_writer_add(writer, "%.4g s", (double)time_ns / 1e9);
	else if (minutes < 120)
		ss_text_writer_add(writer, "%" PRIu64 " min", minutes);
	else if (minutes < UINT64_C(48) * 60)
		ss_text_writer_add(writer, "%" PRIu64 " h", minutes / 60);
	else
		ss_text_writer_add(writer, "%" PRIu64 " days", minutes / 60 / 24);
}

#define NAME(name) [SIG##name] = #name
/* Not every C library has sigabbrev_np(3). */
static const char *const signal_names[] = {
	NAME(HUP),    NAME(INT),  NAME(QUIT), NAME(ILL),  NAME(TRAP),  NAME(ABRT),
	NAME(BUS),    NAME(FPE),  NAME(KILL), NAME(USR1), NAME(SEGV),  NAME(USR2),
	NAME(PIPE),   NAME(ALRM), NAME(TERM), NAME(CHLD), NAME(CONT),  NAME(STOP),
	NAME(TSTP),   NAME(TTIN), NAME(TTOU), NAME(URG),  NAME(XCPU),  NAME(XFSZ),
	NAME(VTALRM), NAME(PROF), NAME(IO),   NAME(PWR),  NAME(WINCH), NAME(SYS),
};

static void add_signal(const struct ss_text_writer *writer, int number)
{
	if ((size_t)number < SS_ARRAY_SIZE(signal_names) && signal_names[number])
		ss_text_writer_add(writer, "%s", signal_names[number]);
	else
		ss_text_writer_add(writer, "%d", number);
}

void ss_text_writer_add_signals(const struct ss_text_writer *writer, uint64_t signals)
{
	int left = __builtin_popcountll(signals);
	int shown = 0;

	if (left == 0)
		ss_text_writer_add(writer, "none");
	for (int number = 1; number <= SIGNAL_COUNT; number++) {
		if (!(signals >> (number - 1) & 1))
			continue;
		if (shown == SIGNALS_SHOWN && left > 1) {
			ss_text_writer_add(writer, " and %d more", left);
			return;
		}
		left--;
		ss_text_writer_add(writer, "%s",
				   shown == 0 ? "" :
				   left == 0  ? " and " :
						", ");
		add_signal(writer, number);
		shown++;
	}
}
