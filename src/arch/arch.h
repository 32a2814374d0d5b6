/*
 * A processor is one constant struct. It belongs to a capture, a snapshot or an ELF
 * image, never to the build: every processor is compiled on every host, so that a
 * capture of one can be interpreted on another. Only what attaching to a live process
 * needs (struct ss_arch_attach) exists for the host's processor alone.
 *
 * To add a processor: write arch/NAME.c with a struct ss_arch, add it to the table in
 * arch.c, add a test of its recognisers and of stacks captured on it
 * (tests/unit/test_aarch64.c). To attach to its processes, add the struct
 * ss_arch_attach and ss_arch_host.
 */
#ifndef SS_ARCH_ARCH_H
#define SS_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/*
 * What a probe must know about an instruction: how long it is, and where it goes. Operands and
 * results are not decoded.
 */

enum ss_flow {
	SS_FLOW_NEXT = 0, /* the next instruction follows, also after a call */
	SS_FLOW_RETURN,	  /* returns to the caller */
	SS_FLOW_BRANCH,	  /* may continue at target instead */
	SS_FLOW_JUMP,	  /* continues at target */
	SS_FLOW_INDIRECT, /* continues at an address that is computed */
};

struct ss_instruction {
	size_t size;
	enum ss_flow flow;
	uint64_t target; /* BRANCH, JUMP */
	bool marker; /* marks the target of an indirect call (endbr64), or does nothing */
};

/* Decodes the instruction at an address, of which size bytes are known. False: it is not a
   valid one, or is cut off. */
bool ss_x86_64_decode(const uint8_t *code, size_t size, uint64_t address,
		      struct ss_instruction *ret);
bool ss_i386_decode(const uint8_t *code, size_t size, uint64_t address,
		    struct ss_instruction *ret);

/*
 * System calls by name. Numbers differ between processors: each struct ss_arch has a
 * table from its numbers to these names, and everything outside arch/ uses the names.
 */

/* The calls that stacksnap interprets. To add one, add it here and to the table of each
   processor that has it. */
enum ss_syscall_id {
	SS_SYS_UNKNOWN, /* no call, or one that is not interpreted */
	SS_SYS_ACCEPT,
	SS_SYS_ACCEPT4,
	SS_SYS_ACCESS,
	SS_SYS_CHDIR,
	SS_SYS_CLOCK_NANOSLEEP,
	SS_SYS_CLONE,
	SS_SYS_CLONE3,
	SS_SYS_CLOSE,
	SS_SYS_CONNECT,
	SS_SYS_COPY_FILE_RANGE,
	SS_SYS_CREAT,
	SS_SYS_EPOLL_PWAIT,
	SS_SYS_EPOLL_PWAIT2,
	SS_SYS_EPOLL_WAIT,
	SS_SYS_EXECVE,
	SS_SYS_FACCESSAT,
	SS_SYS_FACCESSAT2,
	SS_SYS_FALLOCATE,
	SS_SYS_FCNTL,
	SS_SYS_FDATASYNC,
	SS_SYS_FLOCK,
	SS_SYS_FORK,
	SS_SYS_FSTAT,
	SS_SYS_FSYNC,
	SS_SYS_FTRUNCATE,
	SS_SYS_FUTEX,
	SS_SYS_FUTEX_WAIT,
	SS_SYS_FUTEX_WAITV,
	SS_SYS_GETDENTS64,
	SS_SYS_GETRANDOM,
	SS_SYS_IO_GETEVENTS,
	SS_SYS_IO_PGETEVENTS,
	SS_SYS_IO_URING_ENTER,
	SS_SYS_IOCTL,
	SS_SYS_LSTAT,
	SS_SYS_MKDIR,
	SS_SYS_MKDIRAT,
	SS_SYS_MQ_TIMEDRECEIVE,
	SS_SYS_MQ_TIMEDSEND,
	SS_SYS_MSGRCV,
	SS_SYS_MSGSND,
	SS_SYS_MSYNC,
	SS_SYS_NANOSLEEP,
	SS_SYS_NEWFSTATAT,
	SS_SYS_OPEN,
	SS_SYS_OPENAT,
	SS_SYS_OPENAT2,
	SS_SYS_PAUSE,
	SS_SYS_POLL,
	SS_SYS_PPOLL,
	SS_SYS_PREAD64,
	SS_SYS_PREADV,
	SS_SYS_PREADV2,
	SS_SYS_PSELECT6,
	SS_SYS_PWRITE64,
	SS_SYS_PWRITEV,
	SS_SYS_PWRITEV2,
	SS_SYS_READ,
	SS_SYS_READLINK,
	SS_SYS_READLINKAT,
	SS_SYS_READV,
	SS_SYS_RECVFROM,
	SS_SYS_RECVMMSG,
	SS_SYS_RECVMSG,
	SS_SYS_RENAME,
	SS_SYS_RENAMEAT,
	SS_SYS_RENAMEAT2,
	SS_SYS_RESTART_SYSCALL,
	SS_SYS_RT_SIGRETURN,
	SS_SYS_RT_SIGSUSPEND,
	SS_SYS_RT_SIGTIMEDWAIT,
	SS_SYS_SELECT,
	SS_SYS_SEMOP,
	SS_SYS_SEMTIMEDOP,
	SS_SYS_SENDFILE,
	SS_SYS_SENDMMSG,
	SS_SYS_SENDMSG,
	SS_SYS_SENDTO,
	SS_SYS_SPLICE,
	SS_SYS_STAT,
	SS_SYS_STATFS,
	SS_SYS_STATX,
	SS_SYS_SYNC,
	SS_SYS_SYNC_FILE_RANGE,
	SS_SYS_SYNCFS,
	SS_SYS_TEE,
	SS_SYS_TRUNCATE,
	SS_SYS_UNLINK,
	SS_SYS_UNLINKAT,
	SS_SYS_VFORK,
	SS_SYS_VMSPLICE,
	SS_SYS_WAIT4,
	SS_SYS_WAITID,
	SS_SYS_WRITE,
	SS_SYS_WRITEV,
};

enum { SS_SYSCALL_ARGS = 6 };

/* A system call that a thread is blocked in. */
struct ss_syscall {
	long number; /* the processor's; -1: none */
	enum ss_syscall_id id;
	uint64_t args[SS_SYSCALL_ARGS];
};

#define SS_SLOT_IN_GOT (UINT64_C(1) << 63)

/* Reads all of size bytes at an address. */
typedef bool ss_arch_reader(void *data, uint64_t address, void *bytes, size_t size);

enum {
	SS_REG_MAX = 33, /* of all processors; registers above are not tracked */
	SS_REG_NONE = 0xff,
	SS_SAMPLE_WORD = 8, /* bytes of a register in a sample of the kernel */
};

/* Registers by DWARF number. */
struct ss_regs {
	uint64_t value[SS_REG_MAX];
	uint64_t valid; /* bit n: value[n] is known */
};

/* The frame that the kernel pushes for a signal handler; offsets from the stack pointer
   with which the handler returns to the signal trampoline. */
struct ss_sigframe {
	uint16_t stack;		   /* uc_stack: the alternate stack that is in use */
	uint16_t regs[SS_REG_MAX]; /* the interrupted registers; 0: not saved */
};

/* Bytes of code that the recognisers of all processors need. */
enum {
	SS_SIGRETURN_SIZE = 9, /* from the program counter on */
	SS_CALL_MAX = 8,       /* before a return address */
	SS_SYSCALL_CODE = 8, /* before the program counter of a thread in a system call */
	SS_ARGUMENT_MAX = 12,
	SS_PROLOGUE_MAX = 32,
	SS_MOVE_MAX = 7, /* bytes of an instruction that moves the stack pointer */
};

enum { SS_PROBE_ARGS = 6 };

/* What the kernel shows of a stopped thread of the host: the register set NT_PRSTATUS first. */
#if defined(__aarch64__)
struct ss_aarch64_kernel_regs {
	struct user_regs_struct user;
	uint64_t tls; /* NT_ARM_TLS */
	uint32_t code
		[2]; /* the instruction before the program counter, and the one there */
};
typedef struct ss_aarch64_kernel_regs ss_kernel_regs;
#else
typedef struct user_regs_struct ss_kernel_regs;
#endif

/* A register set of ptrace(2), and its place in ss_kernel_regs. */
struct ss_register_set {
	uint32_t type; /* NT_... */
	uint16_t at;
	uint16_t size;
};

enum { SS_REGISTER_SETS = 2 };

/* What attaching needs. */
struct ss_arch_attach {
	/* NT_PRSTATUS, and sets that may be missing. A size of 0: no set. */
	struct ss_register_set sets[SS_REGISTER_SETS];

	/* Requests of ptrace(2) that read and write the first set in the layout of the host,
	   whatever code the thread executes; 0: there is none. */
	int get_regs;
	int set_regs;

	/* The processor whose code the thread executes. NULL: the host's. */
	const struct ss_arch *(*executes)(const ss_kernel_regs *kernel);

	/* Where the code from code_before bytes before the program counter on goes.
	   A size of 0: it is not needed. */
	struct ss_register_set code;
	uint8_t code_before;

	void (*regs)(const ss_kernel_regs *kernel, struct ss_regs *ret);

	/* The system call in which the thread was stopped; number -1: it was in user
	   space. If the call is about to return, its first argument may be the result. */
	void (*syscall)(const ss_kernel_regs *kernel, struct ss_syscall *ret);

	/* Whether the stop interrupted a wait in that system call, which the kernel will
	   restart. Otherwise the call is about to return. */
	bool (*is_blocked)(const ss_kernel_regs *kernel);

	/* Whether the thread was just created, by clone(2) or the like, and has not run
	   in user space yet. */
	bool (*is_new)(const ss_kernel_regs *kernel);

	/* Whether the kernel created the thread for itself (io_uring, vhost): it has never
	   been in user space. */
	bool (*is_worker)(const ss_kernel_regs *kernel);

	/* The address of thread-local storage: the pthread_t of glibc and musl. */
	uint64_t (*thread_pointer)(const ss_kernel_regs *kernel);

	/*
	 * Some calls return EINTR after any interruption, also by ptrace. Where the
	 * thread is in such a call, with an infinite wait and -EINTR as its result, this
	 * rewrites the result to -ERESTARTNOHAND: the kernel then restarts the call, or
	 * returns EINTR if a signal handler really runs. True: the registers were changed
	 * and must be written back. Follows arch/x86/kernel/signal.c, signal(7). NULL:
	 * the kernel reads the result before the stop, so threads in such calls must not be
	 * stopped.
	 */
	bool (*undo_eintr)(ss_kernel_regs *kernel);

	/*
	 * The kernel continues waits with a time limit by restart_syscall(2), which a
	 * seccomp filter may not allow. If the thread is about to make that call, this
	 * changes the result to -ERESTARTNOHAND: the kernel makes the original call again,
	 * with its full time limit. If a signal handler runs, the call returns EINTR, as
	 * it would without a stop. True:
	 * the registers were changed and must be written back. May be NULL, as undo_eintr.
	 */
	bool (*avoid_restart_syscall)(ss_kernel_regs *kernel);

	/* The registers that a sample of perf_event_open(2) should have
	   (sample_regs_user), and their values as a register set: without the number of
	   the system call, and without what the thread pointer is taken from. */
	uint64_t sample_mask;
	void (*from_sample)(const uint64_t *values, ss_kernel_regs *ret);

	/* Whether a thread that was in the kernel with these user registers was in a
	   system call that had no result yet, rather than in a page fault or an
	   interrupt. code: the bytes before its program counter. *ret: the number of the call, or
	   -1. */
	bool (*in_syscall)(const ss_kernel_regs *kernel, const uint8_t *code, size_t size,
			   long *ret);

	/* What a uprobe fetches (Documentation/trace/uprobetracer.rst): the stack pointer, the
	   return address at the entry of a function, and its integer arguments in their
	   order. */
	const char *probe_sp;
	const char *probe_return;
	const char *probe_args[SS_PROBE_ARGS];

	/* Code that makes execve(2) with the arguments that set_execute() has put into the
	   registers, and ends the process with status 127 if that fails. Its size is a
	   multiple of a word of PTRACE_POKEDATA. */
	const uint8_t *execute_code;
	size_t execute_size;
	void (*set_execute)(ss_kernel_regs *kernel, uint64_t path, uint64_t argv,
			    uint64_t envp);

	/* How the names begin of the kernel functions one of which is outermost on the kernel
	   stack of a thread in a system call. The last one is NULL. */
	const char *const *syscall_entries;
	/* Parts of the names of system calls that lose nothing if they are interrupted while
	   the thread waits for a CPU: futex(2), sched_yield(2). The last one is NULL. */
	const char *const *safe_entries;
};

/* The register set of a thread in a core file (NT_PRSTATUS), in words of the processor. Each
   place is an index + 1; 0: it is not there. */
struct ss_core_regs {
	uint8_t words; /* 0: core files of this processor are not supported */
	uint8_t regs[SS_REG_MAX];
	uint8_t syscall; /* the number of the call that the thread was in */
	uint8_t result;	 /* of the call */
	uint8_t thread_pointer;
	uint8_t thread_pointer_selector; /* its descriptor is in NT_386_TLS */
};

/* The registers of a thread in a minidump (struct MDRawContext... of Breakpad). Offsets of
   registers are never 0: that is one that is not there. */
struct ss_minidump_context {
	uint16_t processor; /* PROCESSOR_ARCHITECTURE_... of Windows */
	uint16_t size;	    /* 0: minidumps of this processor are not supported */
	uint16_t flags_at;
	uint32_t flags; /* control and integer registers */
	uint16_t regs[SS_REG_MAX];
};

struct ss_arch {
	const char *name;     /* of the host: as uname(2) has it */
	uint16_t elf_machine; /* EM_... */
	uint32_t audit;	      /* AUDIT_ARCH_..., as libseccomp has it */
	uint8_t elf_class;    /* ELFCLASS... */
	uint8_t word;	      /* bytes of an address, and of most registers */

	const char *const *reg_names; /* reg_count; NULL: no names */

	/* DWARF register numbers */
	uint8_t reg_count;
	uint8_t pc;
	uint8_t sp;
	uint8_t fp;
	uint8_t return_column; /* of CFI rows */
	uint8_t link;	       /* holds the return address after a call; or SS_REG_NONE:
				  calls push it */
	uint8_t syscall_args[SS_SYSCALL_ARGS];

	uint16_t
		pthread_tid; /* offset of the thread's id in glibc's struct pthread; 0: not known */
	uint16_t
		pthread_below; /* The C library's description of a thread, whose address is its
				   pthread_t, begins at most so far below the thread pointer; 0:
				   there, with its own address. */
	uint64_t pac_mask; /* pointer authentication code in a signed address */
	uint16_t red_zone; /* bytes below sp that a leaf function may use */
	bool fp_gives_sp;  /* the caller's sp is right above the frame record that fp
				  points to */
	struct ss_sigframe sigframe; /* of a handler with SA_SIGINFO */
	struct ss_core_regs core_regs;
	struct ss_minidump_context minidump;
	const uint8_t *syscalls; /* enum ss_syscall_id by number */
	size_t syscall_count;

	/* Makes a call that stands for several the one that is meant. Its arguments may be in
	   memory: without read, or if they cannot be read, it stays as it is. NULL: there is no
	   such call. */
	void (*unfold)(struct ss_syscall *call, ss_arch_reader *read, void *data);

	/* What the signal trampoline with this code removes, to which a handler returns. NULL: it
	   is none. */
	const struct ss_sigframe *(*find_sigframe)(const uint8_t *code, size_t size);

	/* See struct ss_instruction. */
	bool (*decode)(const uint8_t *code, size_t size, uint64_t address,
		       struct ss_instruction *ret);

	/* Whether the bytes before a return address end in a call instruction. */
	bool (*is_call)(const uint8_t *before, size_t size);

	/*
	 * Finds, from *at on in size bytes of code at address, the next jump, also within other
	 * instructions. True: *at is the offset after it, *ret where it leads; 0: that is not a
	 * constant. May be NULL: then no call is refuted.
	 */
	bool (*next_jump)(const uint8_t *code, size_t size, uint64_t address, size_t *at,
			  uint64_t *ret);

	/* The address that the call instruction right before pc calls. False: it is no
	   call, or perhaps not one of a constant address. */
	bool (*call_target)(const uint8_t *before, size_t size, uint64_t pc,
			    uint64_t *ret);

	/* The slot, with the address of a function of another module, through which the call
	   right before pc calls; with SS_SLOT_IN_GOT: relative to the global offset table. False:
	   it is not such a call. May be NULL. */
	bool (*called_slot)(const uint8_t *before, size_t size, uint64_t pc,
			    uint64_t *ret);

	/* The slot through which the code of a procedure linkage table jumps. False: it is
	   something else. May be NULL. */
	bool (*jump_slot)(const uint8_t *code, size_t size, uint64_t address,
			  uint64_t *ret);

	/* The number of the system call that code enters with its last instruction: the C
	   libraries load it right before. -1: not known. */
	long (*entered_syscall)(const uint8_t *code, size_t size);

	/*
	 * Finds, from *at on in size bytes of code at address, the next call that has a
	 * constant address as its first argument, such as that of a global. True: *ret is
	 * that address, *at the offset of the call. The code that is recognised is at
	 * most SS_ARGUMENT_MAX bytes long. May be NULL.
	 */
	bool (*next_argument)(const uint8_t *code, size_t size, uint64_t address,
			      size_t *at, uint64_t *ret);

	/* The distance of a function's frame pointer above its stack pointer, from its
	   prologue. False: the prologue does not show it. May be NULL. */
	bool (*frame_size)(const uint8_t *code, size_t size, uint64_t *ret);

	/*
	 * Looks for instructions that move the stack pointer, other than pushes, pops and
	 * additions of constants: at each byte but the last SS_MOVE_MAX - 1, not only at
	 * the first ones of instructions. Adds to *count and *moved those that subtract a
	 * constant. False: there may be others. May be NULL.
	 */
	bool (*find_moves)(const uint8_t *code, size_t size, unsigned *count,
			   uint64_t *moved);

	const struct ss_arch_attach *attach; /* NULL: not the host's processor */
};

extern const struct ss_arch ss_arch_x86_64;
extern const struct ss_arch ss_arch_i386;
extern const struct ss_arch ss_arch_aarch64;

/* The processor that this program runs on. */
#if defined(__x86_64__)
#define ss_arch_host ss_arch_x86_64
#elif defined(__aarch64__)
#define ss_arch_host ss_arch_aarch64
extern const struct ss_arch_attach ss_aarch64_attach;
#else
#error "add ss_arch_host and a struct ss_arch_attach for this processor"
#endif

static inline bool ss_arch_is_host(const struct ss_arch *arch)
{
	return arch == &ss_arch_host;
}

/* The processor with this ELF machine and class. NULL: not supported. */
const struct ss_arch *ss_arch_find(uint16_t elf_machine, uint8_t elf_class);

/* The processor of that name. NULL: not supported. */
const struct ss_arch *ss_arch_find_name(const char *name);

/* The registers of a thread for which only pc and sp are known, and the arguments of
   the system call in which it is blocked, which the kernel preserves. call may be
   NULL. */
void ss_arch_regs_blocked(const struct ss_arch *arch, uint64_t pc, uint64_t sp,
			  const struct ss_syscall *call, struct ss_regs *ret);

/*
 * Finds a struct ss_sigframe of a handler on an alternate stack, in size bytes of a stack
 * at address. True: *ret is the interrupted stack pointer.
 */
bool ss_arch_find_alternate(const struct ss_arch *arch, const uint8_t *bytes, size_t size,
			    uint64_t address, uint64_t *ret);

/* The call that restart_syscall(2) continues; code is the bytes before the program
   counter. UNKNOWN: it cannot be determined, or is not restarted in this way. */
enum ss_syscall_id ss_arch_restarted_call(const struct ss_arch *arch, const uint8_t *code,
					  size_t size);

static inline enum ss_syscall_id ss_arch_syscall_id(const struct ss_arch *arch,
						    long number)
{
	return number >= 0 && (size_t)number < arch->syscall_count ?
		       (enum ss_syscall_id)arch->syscalls[number] :
		       SS_SYS_UNKNOWN;
}

/* Whether an id of the C library (pthread_t) is that of the thread with this thread pointer. */
static inline bool ss_arch_is_pthread(const struct ss_arch *arch, uint64_t thread_pointer,
				      uint64_t pthread)
{
	return thread_pointer - pthread <= arch->pthread_below;
}

/* -1: this processor has no such call. */
long ss_arch_syscall_number(const struct ss_arch *arch, enum ss_syscall_id id);

/* The number that the host has for a call of this processor; -1: not known, or no call. */
long ss_arch_recorded_number(const struct ss_arch *arch, const struct ss_syscall *call);

static inline bool ss_regs_has(const struct ss_regs *regs, unsigned reg)
{
	return reg < SS_REG_MAX && (regs->valid >> reg & 1);
}

static inline bool ss_regs_get(const struct ss_regs *regs, unsigned reg, uint64_t *ret)
{
	if (!ss_regs_has(regs, reg))
		return false;
	*ret = regs->value[reg];
	return true;
}

static inline void ss_regs_set(struct ss_regs *regs, unsigned reg, uint64_t value)
{
	regs->value[reg] = value;
	regs->valid |= UINT64_C(1) << reg;
}

static inline void ss_regs_forget(struct ss_regs *regs, unsigned reg)
{
	regs->valid &= ~(UINT64_C(1) << reg);
}

static inline uint64_t ss_regs_pc(const struct ss_arch *arch, const struct ss_regs *regs)
{
	return regs->value[arch->pc];
}

/* Where sp is not known, this is a lower bound. */
static inline uint64_t ss_regs_sp(const struct ss_arch *arch, const struct ss_regs *regs)
{
	return regs->value[arch->sp];
}

#endif
