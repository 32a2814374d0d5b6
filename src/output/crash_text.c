#include "output/crash_text.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "output/escape.h"
#include "output/signature.h"

/* Codes of the kernel, see sigaction(2). The address follows the text. */
static const struct {
	int signal;
	int code;
	const char *text;
} codes[] = {
	{ SIGSEGV, SEGV_MAPERR, "no memory is mapped at" },
	{ SIGSEGV, SEGV_ACCERR, "the access is not permitted at" },
	{ SIGSEGV, SI_KERNEL,
	  "the address is not canonical, or the access is privileged" },
	{ SIGBUS, BUS_ADRALN, "the address is not aligned:" },
	{ SIGBUS, BUS_ADRERR, "beyond the end of the mapped file, at" },
	{ SIGBUS, BUS_OBJERR, "hardware error at" },
	{ SIGFPE, FPE_INTDIV, "integer division by zero at" },
	{ SIGFPE, FPE_INTOVF, "integer overflow at" },
	{ SIGFPE, FPE_FLTDIV, "floating-point division by zero at" },
	{ SIGILL, ILL_ILLOPC, "illegal instruction at" },
	{ SIGILL, ILL_ILLOPN, "illegal operand at" },
	{ SIGILL, ILL_PRVOPC, "privileged instruction at" },
	{ SIGTRAP, TRAP_BRKPT, "breakpoint at" },
	{ SIGSYS, 1, "a seccomp filter forbids the system call at" },
};

void ss_crash_name(int signal, char *text, size_t size)
{
	const char *name = sigabbrev_np(signal);

	if (name)
		(void)snprintf(text, size, "SIG%s", name);
	else
		(void)snprintf(text, size, "signal %d", signal);
}

static void write_cause(const struct ss_process *process, FILE *out)
{
	const struct ss_crash *crash = &process->crash;

	if (crash->stack_overflow) {
		(void)fprintf(out, ": stack overflow at 0x%" PRIx64, crash->address);
		return;
	}
	for (size_t i = 0; i < SS_ARRAY_SIZE(codes); i++) {
		if (codes[i].signal != crash->signal || codes[i].code != crash->code)
			continue;
		(void)fprintf(out, ": %s", codes[i].text);
		if (crash->code != SI_KERNEL)
			(void)fprintf(out, " 0x%" PRIx64, crash->address);
		return;
	}
	if (crash->code <= 0 && crash->sender == process->pid)
		(void)fputs_unlocked(", sent by the process itself", out);
	else if (crash->code <= 0 && crash->sender > 0)
		(void)fprintf(out, ", sent by process %d", crash->sender);
}

static void write_signature(const struct ss_snapshot *snapshot,
			    const struct ss_thread *thread, FILE *out)
{
	_cleanup_free_ char *text = NULL;
	char exact[SS_SIGNATURE_SIZE];
	size_t size = 0;
	FILE *names = open_memstream(&text, &size);
	_cleanup_error_ struct ss_error *error =
		ss_snapshot_signature(snapshot, thread, exact);

	if (!names)
		return;
	ss_signature_write(snapshot, thread, names);
	if (fclose(names) != 0 || error)
		return;
	(void)fputs_unlocked("signature: ", out);
	ss_escape_write(text, NULL, out);
	(void)fprintf(out, "%s[%s]\n", *text ? " " : "", exact);
}

void ss_crash_write(const struct ss_snapshot *snapshot, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	const struct ss_crash *crash = &process->crash;
	const struct ss_thread *thread = ss_signature_thread(snapshot);
	char name[32];

	if (crash->signal == 0)
		return;
	ss_crash_name(crash->signal, name, sizeof(name));
	(void)fprintf(out, "killed by %s in thread %d", name, crash->tid);
	if (crash->has_info)
		write_cause(process, out);
	(void)fputc_unlocked('\n', out);
	if (thread)
		write_signature(snapshot, thread, out);
}

void ss_crash_write_registers(const struct ss_snapshot *snapshot, FILE *out)
{
	enum { PER_LINE = 4 };
	struct ss_register reg;
	size_t count = 0;

	for (; ss_snapshot_crash_register(snapshot, count, &reg); count++)
		(void)fprintf(out, "%s%-3s %016" PRIx64,
			      count == 0	    ? "" :
			      count % PER_LINE == 0 ? "\n" :
						      "  ",
			      reg.name, reg.value);
	if (count)
		(void)fputc_unlocked('\n', out);
}
