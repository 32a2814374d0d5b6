#include "arch/arch.h"

#include <string.h>

#include "base/bytes.h"
#include "base/search.h"

static const struct ss_arch *const processors[] = { &ss_arch_x86_64, &ss_arch_i386,
						    &ss_arch_aarch64 };

enum { PROCESSORS = sizeof(processors) / sizeof(processors[0]) };

const struct ss_arch *ss_arch_find(uint16_t elf_machine, uint8_t elf_class)
{
	for (size_t i = 0; i < PROCESSORS; i++) {
		if (processors[i]->elf_machine == elf_machine &&
		    processors[i]->elf_class == elf_class)
			return processors[i];
	}
	return NULL;
}

const struct ss_arch *ss_arch_find_name(const char *name)
{
	for (size_t i = 0; i < PROCESSORS; i++) {
		if (strcmp(processors[i]->name, name) == 0)
			return processors[i];
	}
	return NULL;
}

void ss_arch_regs_blocked(const struct ss_arch *arch, uint64_t pc, uint64_t sp,
			  const struct ss_syscall *call, struct ss_regs *ret)
{
	ret->valid = 0;
	ss_regs_set(ret, arch->pc, pc);
	ss_regs_set(ret, arch->sp, sp);
	for (size_t i = 0; i < SS_SYSCALL_ARGS && call && call->number >= 0; i++)
		ss_regs_set(ret, arch->syscall_args[i], call->args[i]);
}

long ss_arch_syscall_number(const struct ss_arch *arch, enum ss_syscall_id id)
{
	for (size_t i = 0; i < arch->syscall_count && id != SS_SYS_UNKNOWN; i++) {
		if (arch->syscalls[i] == id)
			return (long)i;
	}
	return -1;
}

long ss_arch_recorded_number(const struct ss_arch *arch, const struct ss_syscall *call)
{
	return arch == &ss_arch_host ? call->number :
				       ss_arch_syscall_number(&ss_arch_host, call->id);
}

enum ss_syscall_id ss_arch_restarted_call(const struct ss_arch *arch, const uint8_t *code,
					  size_t size)
{
	enum ss_syscall_id id =
		ss_arch_syscall_id(arch, arch->entered_syscall(code, size));

	/* The users of ERESTART_RESTARTBLOCK in the kernel. */
	switch (id) {
	case SS_SYS_POLL:
	case SS_SYS_NANOSLEEP:
	case SS_SYS_CLOCK_NANOSLEEP:
	case SS_SYS_FUTEX:
		return id;
	default:
		return SS_SYS_UNKNOWN;
	}
}

/* struct stack_t of a signal frame: ss_sp, ss_flags (with padding, which the kernel leaves as it
   was), ss_size. */
struct alternate_stack {
	uint64_t start;
	uint32_t flags;
	uint64_t size;
};

enum { ALTERNATE_MIN = 2048, ALTERNATE_MAX = 64 << 20 };

/* SS_ONSTACK, SS_DISABLE, SS_AUTODISARM */
static const uint32_t stack_flags = 1u | 2u | 1u << 31;

static bool is_alternate(const struct alternate_stack *stack, uint64_t here)
{
	return stack->size >= ALTERNATE_MIN && stack->size <= ALTERNATE_MAX &&
	       here - stack->start < stack->size && !(stack->flags & ~stack_flags);
}

/* Whether the bytes at an address describe an alternate stack, in a signal frame. *ret: the stack
   pointer of the interrupted stack. */
static bool describes_alternate(const uint8_t *bytes, size_t word, size_t sp_offset,
				uint64_t here, uint64_t *ret)
{
	struct alternate_stack stack = { .start = ss_load_word(bytes, 0, word) };

	if (stack.start == 0 || stack.start > here || here - stack.start >= ALTERNATE_MAX)
		return false;
	memcpy(&stack.flags, bytes + word, sizeof(stack.flags));
	stack.size = ss_load_word(bytes, 2 * word, word);
	if (!is_alternate(&stack, here))
		return false;
	const uint64_t sp = ss_load_word(bytes, sp_offset, word);
	/* If the interrupted stack is the same one, it is copied already. */
	if (sp == 0 || sp - stack.start < stack.size)
		return false;
	*ret = sp;
	return true;
}

bool ss_arch_find_alternate(const struct ss_arch *arch, const uint8_t *bytes, size_t size,
			    uint64_t address, uint64_t *ret)
{
	size_t sp_offset = arch->sigframe.regs[arch->sp] - arch->sigframe.stack;
	const size_t word = arch->word;
	size_t needed = sp_offset + word;
	size_t first = (word - address % word) % word;

	for (size_t at = first; at < size && size - at >= needed;) {
		uint64_t here = address + at;
		bool whole = word == sizeof(uint64_t) &&
			     size - at >= needed + SS_WORDS_SIZE;
		size_t end = at + (whole ? SS_WORDS_SIZE : word);
		/* Most words fail here. */
		if (whole && !ss_words_any(bytes + at, here - ALTERNATE_MAX,
					   ALTERNATE_MAX + SS_WORDS_SIZE))
			at = end;
		for (; at < end; at += word) {
			if (describes_alternate(bytes + at, word, sp_offset, address + at,
						ret))
				return true;
		}
	}
	return false;
}
