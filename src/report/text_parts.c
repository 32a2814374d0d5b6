/*
 * Short parts that the documents of the format "text" share.
 */
#include "report/advice.h"
#include "report/print.h"
#include "report/text.h"

void ss_text_write_process(const struct ss_process *process, bool color, FILE *out)
{
	ss_style_write(SS_STYLE_STRONG, color, out);
	ss_escape_write(process->name, NULL, out);
	ss_style_write(SS_STYLE_NONE, color, out);
	(void)fprintf(out, ", pid %d", process->pid);
	if (process->inner_pid && process->inner_pid != process->pid)
		(void)fprintf(out, "[%d in its pid namespace]", process->inner_pid);
	if (process->executable) {
		(void)fputs_unlocked(", ", out);
		ss_escape_write(process->executable, NULL, out);
	}
	if (process->time_ns)
		(void)fprintf(out, ", %s", ss_quantity_date(process->time_ns).text);
	(void)fputc_unlocked('\n', out);
}

void ss_text_write_frozen(const struct ss_process *process, bool color, FILE *out)
{
	if (!process->frozen)
		return;
	ss_style_write(SS_STYLE_WARN, color, out);
	(void)fputs_unlocked("frozen by the cgroup ", out);
	ss_escape_write(process->frozen, NULL, out);
	(void)fputs_unlocked(": no thread runs until it is thawed\n", out);
	ss_style_write(SS_STYLE_NONE, color, out);
}

void ss_text_write_problem(const char *problem, bool color, FILE *out)
{
	if (!problem)
		return;
	ss_style_write(SS_STYLE_WARN, color, out);
	ss_escape_write(problem, NULL, out);
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_NONE, color, out);
}

void ss_text_write_advice(const struct ss_format_options *options, FILE *out)
{
	if (!options->advice)
		return;
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_FAINT, options->color, out);
	ss_advice_write(options->advice, out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputc_unlocked('\n', out);
}

void ss_text_write_thread(pid_t tid, const char *name,
			  const struct ss_format_options *options, FILE *out)
{
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	(void)fprintf(out, "%d", tid);
	if (*name) { /* a core file has none */
		(void)fputs_unlocked(" (", out);
		ss_escape_write(name, NULL, out);
		(void)fputc_unlocked(')', out);
	}
	ss_style_write(SS_STYLE_NONE, options->color, out);
}
