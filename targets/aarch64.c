/*
 * Makes a stack for unwinders on another machine. It runs without a C library, under
 * qemu-aarch64, and writes its registers and its stack, as they are in the innermost
 * function, to stdout (struct dump). It is built in several variants.
 *
 * Expected stack, innermost first: leaf, inner, with_array, outer, program, _start.
 * With an argument: leaf, on_signal, signal_return (a signal frame), interrupted, inner,
 * with_array, outer, program, _start.
 */
typedef unsigned long word;

enum { REGISTERS = 33, STACK_WORDS = 4096, SIGUSR1 = 10, SA_RESTORER = 0x04000000 };

/* include/uapi/asm-generic/unistd.h */
enum {
	NR_write = 64,
	NR_exit = 93,
	NR_kill = 129,
	NR_rt_sigaction = 134,
	NR_getpid = 172,
};

struct dump {
	word registers[REGISTERS]; /* x0 to x30, sp, pc */
	word address;		   /* of the first word of the stack */
	word count;
	word words[STACK_WORDS];
};

struct action {
	void (*handler)(int);
	word flags;
	void (*restorer)(void);
	word mask;
};

static struct dump dump;
static const word *stack_end;
static volatile int wants_signal;

#define NOINLINE __attribute__((noinline))

static inline word call(word number, word a, word b, word c, word d)
{
	register word x8 __asm__("x8") = number;
	register word x0 __asm__("x0") = a;
	register word x1 __asm__("x1") = b;
	register word x2 __asm__("x2") = c;
	register word x3 __asm__("x3") = d;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
			 : "memory");
	return x0;
}

/* A leaf function: its return address is in the link register only. */
NOINLINE int leaf(struct dump *to, const word *end)
{
#ifdef LEAF_RECORD /* otherwise the compiler may set up the frame pointer later */
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)) : "memory");
#endif
	__asm__ volatile("stp x0, x1, [%0]\n"
			 "stp x2, x3, [%0, #16]\n"
			 "stp x4, x5, [%0, #32]\n"
			 "stp x6, x7, [%0, #48]\n"
			 "stp x8, x9, [%0, #64]\n"
			 "stp x10, x11, [%0, #80]\n"
			 "stp x12, x13, [%0, #96]\n"
			 "stp x14, x15, [%0, #112]\n"
			 "stp x16, x17, [%0, #128]\n"
			 "stp x18, x19, [%0, #144]\n"
			 "stp x20, x21, [%0, #160]\n"
			 "stp x22, x23, [%0, #176]\n"
			 "stp x24, x25, [%0, #192]\n"
			 "stp x26, x27, [%0, #208]\n"
			 "stp x28, x29, [%0, #224]\n"
			 "mov x9, sp\n"
			 "stp x30, x9, [%0, #240]\n"
			 "adr x9, .\n"
			 "str x9, [%0, #256]\n"
			 :
			 : "r"(to->registers)
			 : "x9", "memory");
	const volatile word *from = (const volatile word *)to->registers[31];
	volatile word *words = to->words;
	word count = 0;

	to->address = (word)from;
	while (from < end && count < STACK_WORDS)
		words[count++] = *from++;
	to->count = count;
	return (int)count;
}

NOINLINE void on_signal(int signal)
{
	wants_signal = leaf(&dump, stack_end) + signal;
}

__attribute__((naked)) void signal_return(void)
{
	__asm__ volatile("mov x8, #139\n" /* __NR_rt_sigreturn */
			 "svc #0");
}

NOINLINE int interrupted(void)
{
	const struct action action = { .handler = on_signal,
				       .flags = SA_RESTORER,
				       .restorer = signal_return };

	call(NR_rt_sigaction, SIGUSR1, (word)&action, 0, sizeof(action.mask));
	return (int)call(NR_kill, call(NR_getpid, 0, 0, 0, 0), SIGUSR1, 0, 0) +
	       wants_signal;
}

NOINLINE int inner(int depth)
{
	volatile int keep = depth;

	return (wants_signal ? interrupted() : leaf(&dump, stack_end)) + keep;
}

/* The size of its frame is variable: CFI must use the frame pointer. */
NOINLINE int with_array(int depth)
{
	volatile char array[depth * 16 + 16];

	array[0] = 1;
	return inner(depth + array[0]) + array[depth];
}

NOINLINE int outer(int depth)
{
	return with_array(depth + 1) + depth;
}

/* arguments: as the kernel passes them on the stack, the count first. */
__attribute__((used)) void program(const word *arguments)
{
	const char *bytes = (const char *)&dump;

	stack_end = arguments + 1;
	wants_signal = arguments[0] > 1;
	int result = outer(3);
	word left = sizeof(dump) - sizeof(dump.words) + dump.count * sizeof(word);
	while (left > 0) {
		word n = call(NR_write, 1, (word)bytes, left, 0);
		if (n > left) /* an error */
			break;
		bytes += n;
		left -= n;
	}
	call(NR_exit, result == 0, 0, 0, 0);
}

#ifdef WITHOUT_CFI
#define CFI(directive)
#else
#define CFI(directive) directive "\n"
#endif

__asm__(".text\n"
	".globl _start\n"
	".type _start, %function\n"
	"_start:\n" CFI(".cfi_startproc")
		CFI(".cfi_undefined x30") "mov x29, #0\n"
					  "mov x30, #0\n"
					  "mov x0, sp\n"
					  "bl program\n"
					  "brk #0\n" CFI(".cfi_endproc") ".size _start, "
									 ". - _start\n");
