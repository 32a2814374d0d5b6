#include "core/notes.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/load.h"

/* Notes are read one by one. A list of 65,530 mapped files with long paths is 8 MiB. */
enum {
	NOTE_MAX = 64 << 20,
	THREADS_MAX = 1 << 20,
	MAPPINGS_MAX = 4 << 20,
	NOTES_MAX = 16 << 20,
	WORD = 8,
};

/* struct elf_prstatus of 64-bit processors */
enum { STATUS_SIGNAL = 12, STATUS_PID = 32, STATUS_REGS = 112 };

/* struct elf_prpsinfo of 64-bit processors */
enum { INFO_PID = 24, INFO_NAME = 40, INFO_NAME_SIZE = 16 };

/* siginfo_t */
enum { SIGINFO_CODE = 8, SIGINFO_FIELDS = 16, SIGINFO_SIZE = 24 };

/* Internal to the kernel (include/linux/errno.h): the call was interrupted. */
enum { ERESTARTSYS = 512, ERESTART_RESTARTBLOCK = 516 };

static uint64_t word_at(const uint8_t *bytes, size_t index)
{
	return ss_load_u64(bytes, index * WORD);
}

static uint32_t u32_at(const uint8_t *bytes, size_t offset)
{
	uint32_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/* The call in which the thread waited when it was killed. One that had ended has another
   result; its number stays in the registers. */
static void read_syscall(const struct ss_arch *arch, const uint8_t *words,
			 struct ss_core_thread *thread)
{
	const struct ss_core_regs *layout = &arch->core_regs;
	uint64_t value = 0;

	thread->syscall.number = -1;
	if (!layout->syscall)
		return;
	int64_t number = (int64_t)word_at(words, layout->syscall - 1U);
	int64_t result = (int64_t)word_at(words, layout->result - 1U);
	if (number < 0 || number > INT32_MAX ||
	    (result != -EINTR &&
	     (result > -ERESTARTSYS || result < -ERESTART_RESTARTBLOCK)))
		return;
	thread->syscall.number = (long)number;
	thread->syscall.id = ss_arch_syscall_id(arch, (long)number);
	for (size_t i = 0; i < SS_SYSCALL_ARGS; i++) {
		(void)ss_regs_get(&thread->regs, arch->syscall_args[i], &value);
		thread->syscall.args[i] = value;
	}
}

static bool read_thread(struct ss_core_file *core, const uint8_t *bytes, size_t size)
{
	const struct ss_core_regs *layout = &core->arch->core_regs;
	const uint8_t *words = bytes + STATUS_REGS;

	if (size < STATUS_REGS + (size_t)layout->words * WORD ||
	    core->threads.count >= THREADS_MAX)
		return true;
	struct ss_core_thread *thread = ss_vector_push(&core->threads);
	if (!thread)
		return false;
	thread->tid = (pid_t)u32_at(bytes, STATUS_PID);
	for (unsigned reg = 0; reg < core->arch->reg_count; reg++) {
		if (layout->regs[reg])
			ss_regs_set(&thread->regs, reg,
				    word_at(words, layout->regs[reg] - 1U));
	}
	if (layout->thread_pointer)
		thread->thread_pointer = word_at(words, layout->thread_pointer - 1U);
	read_syscall(core->arch, words, thread);
	/* The thread that received the signal is the first one. */
	if (core->threads.count == 1) {
		core->crash.tid = thread->tid;
		core->crash.signal = bytes[STATUS_SIGNAL];
	}
	return true;
}

static bool read_process(struct ss_core_file *core, const uint8_t *bytes, size_t size)
{
	char name[INFO_NAME_SIZE + 1] = "";

	if (size < INFO_NAME + INFO_NAME_SIZE || core->name)
		return true;
	core->pid = (pid_t)u32_at(bytes, INFO_PID);
	memcpy(name, bytes + INFO_NAME, INFO_NAME_SIZE);
	core->name = ss_intern_string(core->strings, name);
	return core->name != NULL;
}

/* siginfo_t, see sigaction(2). gcore(1) writes one for each thread. */
static void read_siginfo(struct ss_core_file *core, const uint8_t *bytes, size_t size)
{
	if (size < SIGINFO_SIZE || core->crash.has_info)
		return;
	core->crash.has_info = true;
	core->crash.code = (int32_t)u32_at(bytes, SIGINFO_CODE);
	/* Signals that a fault causes have an address there, others a process. */
	if (core->crash.code > 0)
		core->crash.address = word_at(bytes, SIGINFO_FIELDS / WORD);
	else
		core->crash.sender = (pid_t)u32_at(bytes, SIGINFO_FIELDS);
}

static void read_auxv(struct ss_core_file *core, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i + 1 < size / WORD; i += 2) {
		uint64_t value = word_at(bytes, i + 1);
		switch (word_at(bytes, i)) {
		case AT_PHDR:
			core->program_headers = value;
			break;
		case AT_SYSINFO_EHDR:
			core->vdso = value;
			break;
		default:
			break;
		}
	}
}

/* The number of mappings, the unit of their offsets, then start, end and offset of each,
   then their paths. */
static bool read_mappings(struct ss_core_file *core, const uint8_t *bytes, size_t size)
{
	struct ss_cursor ranges = { .at = bytes, .end = bytes + size };
	uint64_t count = ss_cursor_fixed(&ranges, WORD);
	uint64_t unit = ss_cursor_fixed(&ranges, WORD);

	if (ranges.failed || count > ss_cursor_left(&ranges) / (3 * WORD) ||
	    core->mappings.count > 0)
		return true;
	const char *path = (const char *)ranges.at + count * 3 * WORD;
	const char *end = (const char *)bytes + size;
	for (uint64_t i = 0; i < SS_MIN(count, (uint64_t)MAPPINGS_MAX); i++) {
		size_t length = strnlen(path, (size_t)(end - path));
		if (length == (size_t)(end - path))
			return true; /* truncated */
		struct ss_core_mapping *mapping = ss_vector_push(&core->mappings);
		if (!mapping)
			return false;
		mapping->start = ss_cursor_fixed(&ranges, WORD);
		mapping->end = ss_cursor_fixed(&ranges, WORD);
		mapping->offset = ss_cursor_fixed(&ranges, WORD) * unit;
		mapping->path = ss_intern_string(core->strings, path);
		if (!mapping->path)
			return false;
		path += length + 1;
	}
	return true;
}

static bool read_note(struct ss_core_file *core, uint32_t type, const uint8_t *bytes,
		      size_t size)
{
	switch (type) {
	case NT_PRSTATUS:
		return read_thread(core, bytes, size);
	case NT_PRPSINFO:
		return read_process(core, bytes, size);
	case NT_FILE:
		return read_mappings(core, bytes, size);
	case NT_SIGINFO:
		read_siginfo(core, bytes, size);
		return true;
	case NT_AUXV:
		read_auxv(core, bytes, size);
		return true;
	case NT_ARM_TLS:
		if (size >= WORD && core->threads.count)
			core->threads.items[core->threads.count - 1].thread_pointer =
				word_at(bytes, 0);
		return true;
	default:
		return true;
	}
}

static bool is_wanted(uint32_t type)
{
	return type == NT_PRSTATUS || type == NT_PRPSINFO || type == NT_FILE ||
	       type == NT_SIGINFO || type == NT_AUXV || type == NT_ARM_TLS;
}

/* The types below 0x400 mean something else in notes of other vendors. */
static bool is_core_note(const struct ss_core_file *core, uint64_t offset, uint32_t size)
{
	char name[sizeof("LINUX")] = "";

	return size > 0 && size <= sizeof(name) &&
	       ss_core_source_read(core->source, name, size, offset) == (ssize_t)size &&
	       name[size - 1] == '\0' &&
	       (strcmp(name, "CORE") == 0 || strcmp(name, "LINUX") == 0);
}

static uint64_t align(uint64_t size)
{
	return (size + 3) & ~(uint64_t)3;
}

bool ss_core_notes_read(struct ss_core_file *core, uint64_t offset, uint64_t size)
{
	_cleanup_buffer_ struct ss_buffer bytes = {};
	uint64_t end = size > UINT64_MAX - offset ? UINT64_MAX : offset + size;
	Elf64_Nhdr header;

	for (size_t i = 0; i < NOTES_MAX; i++) {
		if (offset >= end || end - offset < sizeof(header))
			return true;
		if (ss_core_source_read(core->source, &header, sizeof(header), offset) !=
		    (ssize_t)sizeof(header))
			return true;
		uint64_t name = offset + sizeof(header);
		uint64_t at = name + align(header.n_namesz);
		offset = at + align(header.n_descsz);
		if (!is_wanted(header.n_type) || header.n_descsz > NOTE_MAX ||
		    !is_core_note(core, name, header.n_namesz))
			continue;
		if (!ss_buffer_reserve(&bytes, header.n_descsz))
			return false;
		if (ss_core_source_read(core->source, bytes.bytes, header.n_descsz, at) !=
		    (ssize_t)header.n_descsz)
			return true;
		if (!read_note(core, header.n_type, (const uint8_t *)bytes.bytes,
			       header.n_descsz))
			return false;
	}
	return true;
}
