#include "process/registers.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "base/cleanup.h"

static struct iovec place_of(const struct ss_register_set *set, ss_kernel_regs *regs)
{
	return (struct iovec){ (char *)regs + set->at, set->size };
}

/* What cannot be read is 0. */
static void read_code(pid_t tid, const struct ss_arch_attach *attach, ss_kernel_regs *ret)
{
	struct ss_regs regs = {};

	attach->regs(ret, &regs);
	errno = 0;
	const long word = ptrace(PTRACE_PEEKTEXT, tid,
				 ss_regs_pc(&ss_arch_host, &regs) - attach->code_before,
				 0);
	if (errno == 0)
		memcpy(place_of(&attach->code, ret).iov_base, &word, sizeof(word));
}

/* The set that every thread has. */
static bool read_first(pid_t tid, const struct ss_arch_attach *attach,
		       ss_kernel_regs *ret, const struct ss_arch **ret_arch)
{
	const struct ss_register_set *set = &attach->sets[0];
	struct iovec iov = place_of(set, ret);

	if (attach->get_regs) {
		if (ptrace((enum __ptrace_request)attach->get_regs, tid, 0,
			   iov.iov_base) != 0)
			return false;
		*ret_arch = attach->executes(ret);
		return true;
	}
	if (ptrace(PTRACE_GETREGSET, tid, set->type, &iov) != 0)
		return false;
	*ret_arch = iov.iov_len == set->size ? &ss_arch_host : NULL;
	return true;
}

bool ss_registers_read(pid_t tid, ss_kernel_regs *ret, const struct ss_arch **ret_arch)
{
	const struct ss_arch_attach *attach = ss_arch_host.attach;
	const struct ss_register_set *sets = attach->sets;
	struct iovec iov;

	if (!read_first(tid, attach, ret, ret_arch))
		return false;
	for (size_t i = 1; i < SS_REGISTER_SETS && sets[i].size; i++) {
		iov = place_of(&sets[i], ret);
		if (ptrace(PTRACE_GETREGSET, tid, sets[i].type, &iov) != 0)
			memset((char *)ret + sets[i].at, 0, sets[i].size);
	}
	if (attach->code.size) {
		memset((char *)ret + attach->code.at, 0, attach->code.size);
		read_code(tid, attach, ret);
	}
	return true;
}

bool ss_registers_write(pid_t tid, const ss_kernel_regs *regs)
{
	const struct ss_arch_attach *attach = ss_arch_host.attach;
	const struct ss_register_set *set = &attach->sets[0];
	struct iovec iov = { ss_drop_const((const char *)regs + set->at), set->size };

	if (attach->set_regs)
		return ptrace((enum __ptrace_request)attach->set_regs, tid, 0,
			      iov.iov_base) == 0;
	return ptrace(PTRACE_SETREGSET, tid, set->type, &iov) == 0;
}
