/*
 * deny_syscalls NUMBER[,NUMBER...] COMMAND...
 *
 * Executes COMMAND with a seccomp filter, as containers have, under which these system
 * calls fail with EPERM.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { CALLS_MAX = 32 };

int main(int argc, char **argv)
{
	struct sock_filter code[CALLS_MAX * 2 + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	unsigned short used = 1;

	if (argc < 3)
		return 99;
	for (char *at = argv[1]; *at && used + 2 < CALLS_MAX * 2;) {
		unsigned number = (unsigned)strtoul(at, &at, 10);
		code[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							    number, 0, 1);
		code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							    SECCOMP_RET_ERRNO | EPERM);
		at += *at == ',';
	}
	code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = used, .filter = code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		perror("seccomp");
		return 77;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 99;
}
