#include "diagnose/call.h"

#include <inttypes.h>
#include <seccomp.h>

#include "diagnose/futex.h"

static const char *call_name(struct ss_diagnosis *d, long number)
{
	_cleanup_free_ char *name =
		seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);

	return ss_diagnosis_keep(d, name);
}

void ss_call_describe(struct ss_diagnosis *d)
{
	long number = d->facts->call.number;

	d->wait->syscall = call_name(d, number);
	if (ss_futex_describe(d))
		return;
	if (d->wait->syscall)
		ss_words_add(&d->text, "the system call %s", d->wait->syscall);
	else
		ss_words_add(&d->text, "system call number %ld", number);
}
