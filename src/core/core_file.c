#include "core/core_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/search.h"
#include "data/recording_format.h"
#include "elf/records.h"

/*
 * The notes of a core file: threads, the signal, the mapped files.
 */

/* Notes are read one by one. A list of 65,530 mapped files with long paths is 8 MiB. */
enum {
	NOTE_MAX = 64 << 20,
	THREADS_MAX = 1 << 20,
	MAPPINGS_MAX = 4 << 20,
	NOTES_MAX = 16 << 20,
};

enum { STATUS_SIGNAL = 12, INFO_NAME_SIZE = 16, SIGINFO_CODE = 8 };

/* Offsets in struct elf_prstatus, struct elf_prpsinfo and siginfo_t */
struct layout {
	size_t status_pid;
	size_t status_regs;
	size_t info_pid;
	size_t info_name;
	size_t siginfo_fields;
};

static const struct layout *layout_of(const struct ss_core_file *core)
{
	static const struct layout wide = { 32, 112, 24, 40, 16 };
	static const struct layout narrow = { 24, 72, 12, 28, 12 };

	return core->arch->word == sizeof(uint64_t) ? &wide : &narrow;
}

/* Internal to the kernel (include/linux/errno.h): the call was interrupted. */
enum { ERESTARTSYS = 512, ERESTART_RESTARTBLOCK = 516 };

static uint64_t word_at(const struct ss_arch *arch, const uint8_t *bytes, size_t index)
{
	return ss_load_word(bytes, index * arch->word, arch->word);
}

static uint32_t u32_at(const uint8_t *bytes, size_t offset)
{
	uint32_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static int64_t signed_at(const struct ss_arch *arch, const uint8_t *bytes, size_t index)
{
	const unsigned unused = 64U - 8U * arch->word;

	return (int64_t)(word_at(arch, bytes, index) << unused) >> unused;
}

/* The call in which the thread waited when it was killed. One that had ended has another
   result; its number stays in the registers. */
static void read_syscall(const struct ss_arch *arch, const uint8_t *words,
			 struct ss_capture_thread *thread)
{
	const struct ss_core_regs *layout = &arch->core_regs;
	uint64_t value = 0;

	thread->syscall.number = -1;
	if (!layout->syscall)
		return;
	int64_t number = signed_at(arch, words, layout->syscall - 1U);
	int64_t result = signed_at(arch, words, layout->result - 1U);
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
	const struct layout *at = layout_of(core);
	const uint8_t *words = bytes + at->status_regs;

	if (size < at->status_regs + (size_t)layout->words * core->arch->word ||
	    core->threads.count >= THREADS_MAX)
		return true;
	struct ss_capture_thread *thread = ss_vector_push(&core->threads);
	if (!thread)
		return false;
	*thread = (struct ss_capture_thread){
		.tid = (pid_t)u32_at(bytes, at->status_pid),
		.inner_tid = (pid_t)u32_at(bytes, at->status_pid),
		.consistent = true,
		.end = SS_END_ROOT,
	};
	for (unsigned reg = 0; reg < core->arch->reg_count; reg++) {
		if (layout->regs[reg])
			ss_regs_set(&thread->regs, reg,
				    word_at(core->arch, words, layout->regs[reg] - 1U));
	}
	if (layout->thread_pointer)
		thread->thread_pointer =
			word_at(core->arch, words, layout->thread_pointer - 1U);
	if (layout->thread_pointer_selector)
		core->selector = (uint32_t)word_at(core->arch, words,
						   layout->thread_pointer_selector - 1U);
	read_syscall(core->arch, words, thread);
	thread->state = thread->syscall.number >= 0 ? 'S' : 'R';
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

	const struct layout *at = layout_of(core);

	if (size < at->info_name + INFO_NAME_SIZE || core->name)
		return true;
	core->pid = (pid_t)u32_at(bytes, at->info_pid);
	memcpy(name, bytes + at->info_name, INFO_NAME_SIZE);
	core->name = ss_intern_string(core->strings, name);
	return core->name != NULL;
}

/* siginfo_t, see sigaction(2). gcore(1) writes one for each thread. */
static void read_siginfo(struct ss_core_file *core, const uint8_t *bytes, size_t size)
{
	const size_t fields = layout_of(core)->siginfo_fields;

	if (size < fields + core->arch->word || core->crash.has_info)
		return;
	core->crash.has_info = true;
	core->crash.code = (int32_t)u32_at(bytes, SIGINFO_CODE);
	/* Signals that a fault causes have an address there, others a process. */
	if (core->crash.code > 0)
		core->crash.address = word_at(core->arch, bytes + fields, 0);
	else
		core->crash.sender = (pid_t)u32_at(bytes, fields);
}

static void read_auxv(struct ss_core_file *core, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i + 1 < size / core->arch->word; i += 2) {
		uint64_t value = word_at(core->arch, bytes, i + 1);
		switch (word_at(core->arch, bytes, i)) {
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
	const unsigned word = core->arch->word;
	struct ss_cursor ranges = { .at = bytes, .end = bytes + size };
	uint64_t count = ss_cursor_fixed(&ranges, word);
	uint64_t unit = ss_cursor_fixed(&ranges, word);

	if (ranges.failed || count > ss_cursor_left(&ranges) / (3 * word) ||
	    core->mappings.count > 0)
		return true;
	const char *path = (const char *)ranges.at + count * 3 * word;
	const char *end = (const char *)bytes + size;
	for (uint64_t i = 0; i < SS_MIN(count, (uint64_t)MAPPINGS_MAX); i++) {
		size_t length = strnlen(path, (size_t)(end - path));
		if (length == (size_t)(end - path))
			return true; /* truncated */
		struct ss_core_mapping *mapping = ss_vector_push(&core->mappings);
		if (!mapping)
			return false;
		mapping->start = ss_cursor_fixed(&ranges, word);
		mapping->end = ss_cursor_fixed(&ranges, word);
		mapping->offset = ss_cursor_fixed(&ranges, word) * unit;
		mapping->path = ss_intern_string(core->strings, path);
		if (!mapping->path)
			return false;
		path += length + 1;
	}
	return true;
}

/* struct user_desc of i386: the index of a descriptor, and its base, limit and flags. The thread
   pointer is the base of the one that the selector in gs chooses. */
static void read_descriptors(struct ss_core_file *core, const uint8_t *bytes, size_t size)
{
	enum { DESCRIPTOR = 16, BASE = 4, INDEX_SHIFT = 3 };

	for (size_t at = 0; core->threads.count && size - at >= DESCRIPTOR;
	     at += DESCRIPTOR) {
		if (core->selector &&
		    u32_at(bytes, at) == (core->selector & 0xffff) >> INDEX_SHIFT)
			core->threads.items[core->threads.count - 1].thread_pointer =
				u32_at(bytes, at + BASE);
	}
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
		if (size >= core->arch->word && core->threads.count)
			core->threads.items[core->threads.count - 1].thread_pointer =
				word_at(core->arch, bytes, 0);
		return true;
	case NT_386_TLS:
		read_descriptors(core, bytes, size);
		return true;
	default:
		return true;
	}
}

static bool is_wanted(uint32_t type)
{
	return type == NT_PRSTATUS || type == NT_PRPSINFO || type == NT_FILE ||
	       type == NT_SIGINFO || type == NT_AUXV || type == NT_ARM_TLS ||
	       type == NT_386_TLS;
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

/* Reads the notes in size bytes at an offset of the file, as far as they are there. False
   without memory. */
static bool core_notes_read(struct ss_core_file *core, uint64_t offset, uint64_t size)
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

/* vm.max_map_count is 65,530 by default. */
enum { SEGMENTS_MAX = 4 << 20, BATCH = 256 };

void ss_core_file_free(struct ss_core_file *core)
{
	if (!core)
		return;
	ss_core_source_free(core->source);
	ss_intern_free(core->strings);
	ss_vector_free(&core->segments);
	ss_vector_free(&core->mappings);
	ss_vector_free(&core->threads);
	free(core);
}

static struct ss_error *no_core(const char *what)
{
	return ss_error_new(SS_ERROR_INVALID, "not a core file: %s", what);
}

static struct ss_error *check_header(struct ss_core_file *core, Elf64_Ehdr *header,
				     ssize_t size)
{
	if (size == 0 && ss_core_source_is_compressed(core->source))
		return no_core("it cannot be decompressed: it is truncated or damaged");
	if (size > SELFMAG && memcmp(header->e_ident, "MDMP", SELFMAG) == 0)
		return no_core("it is a minidump, which lldb, WinDbg and "
			       "minidump-stackwalk read");
	if (size > SELFMAG && memcmp(header->e_ident, SS_FORMAT_MAGIC, SELFMAG) == 0)
		return no_core("it is a recording, which stacksnap report reads");
	if (size < EI_NIDENT || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return no_core(size == 0 ? "it is empty" : "it is not an ELF file");
	if (header->e_ident[EI_DATA] != ELFDATA2LSB)
		return ss_error_new(SS_ERROR_UNSUPPORTED,
				    "the core file is from a big-endian process, which "
				    "is not supported");
	if (size < (ssize_t)sizeof(*header))
		return no_core("it ends within its header");
	ss_elf_widen(header->e_ident[EI_CLASS], SS_ELF_HEADER, header, 1);
	if (header->e_type != ET_CORE)
		return no_core("it is a program, a library or an object file");
	core->arch = ss_arch_find(header->e_machine, header->e_ident[EI_CLASS]);
	if (!core->arch || core->arch->core_regs.words == 0)
		return ss_error_new(
			SS_ERROR_UNSUPPORTED,
			"the core file is for an unsupported processor (ELF machine %u)",
			header->e_machine);
	return NULL;
}

/* More than 65,534 segments are counted in the first section header. */
static uint64_t count_segments(const struct ss_core_file *core, const Elf64_Ehdr *header)
{
	const size_t size = ss_elf_record_size(core->arch->elf_class, SS_ELF_SECTION);
	Elf64_Shdr section;

	if (header->e_phnum != PN_XNUM)
		return header->e_phnum;
	if (ss_core_source_read(core->source, &section, size, header->e_shoff) !=
	    (ssize_t)size)
		return PN_XNUM;
	ss_elf_widen(core->arch->elf_class, SS_ELF_SECTION, &section, 1);
	return section.sh_info;
}

static unsigned prot_of(uint32_t flags)
{
	return (flags & PF_R ? (unsigned)PROT_READ : 0) |
	       (flags & PF_W ? (unsigned)PROT_WRITE : 0) |
	       (flags & PF_X ? (unsigned)PROT_EXEC : 0);
}

static bool add_segment(struct ss_core_file *core, const Elf64_Phdr *header)
{
	uint64_t size = SS_MIN(header->p_filesz, header->p_memsz);

	if (header->p_memsz == 0 || header->p_vaddr + header->p_memsz < header->p_vaddr)
		return true;
	struct ss_core_segment *segment = ss_vector_push(&core->segments);
	if (!segment)
		return false;
	uint64_t left = header->p_offset < core->size ? core->size - header->p_offset : 0;
	core->truncated |= left < size;
	*segment = (struct ss_core_segment){ .start = header->p_vaddr,
					     .end = header->p_vaddr + header->p_memsz,
					     .offset = header->p_offset,
					     .present = SS_MIN(size, left),
					     .prot = prot_of(header->p_flags) };
	return true;
}

/* Segments of notes that overlap would let a small file have a million threads. */
static bool read_notes(struct ss_core_file *core, const Elf64_Phdr *segment)
{
	uint64_t end;

	if (segment->p_offset < core->notes_end)
		return true;
	if (__builtin_add_overflow(segment->p_offset, segment->p_filesz, &end))
		end = UINT64_MAX;
	core->notes_end = end;
	return core_notes_read(core, segment->p_offset, segment->p_filesz);
}

static struct ss_error *read_segments(struct ss_core_file *core, const Elf64_Ehdr *header)
{
	uint64_t count = SS_MIN(count_segments(core, header), (uint64_t)SEGMENTS_MAX);
	Elf64_Phdr headers[BATCH];

	const size_t each = ss_elf_record_size(core->arch->elf_class, SS_ELF_SEGMENT);

	if (header->e_phentsize != each)
		return no_core("its segment headers have an unexpected size");
	for (uint64_t i = 0; i < count; i += BATCH) {
		size_t wanted = SS_MIN(count - i, (uint64_t)BATCH);
		ssize_t size = ss_core_source_read(core->source, headers, wanted * each,
						   header->e_phoff + i * each);
		size_t found = size < 0 ? 0 : (size_t)size / each;
		ss_elf_widen(core->arch->elf_class, SS_ELF_SEGMENT, headers, found);
		for (size_t h = 0; h < found; h++) {
			const Elf64_Phdr *segment = &headers[h];
			bool ok = true;
			if (segment->p_type == PT_LOAD)
				ok = add_segment(core, segment);
			else if (segment->p_type == PT_NOTE)
				ok = read_notes(core, segment);
			if (!ok)
				return ss_error_no_memory();
		}
		core->truncated |= found < wanted;
		if (found < wanted)
			break;
	}
	return NULL;
}

SS_DEFINE_COMPARE(compare_segments, struct ss_core_segment, start)

SS_DEFINE_COMPARE(compare_mappings, struct ss_core_mapping, start)

/* Sorts ranges by address (with core_sort_vma=1 the kernel sorts them by size), and drops
   those that overlap an earlier one, or are empty. */
#define tidy(v, compare)                                                                 \
	do {                                                                             \
		size_t kept = 0;                                                         \
		if ((v)->count > 1)                                                      \
			qsort((v)->items, (v)->count, sizeof(*(v)->items), compare);     \
		for (size_t i = 0; i < (v)->count; i++) {                                \
			if ((v)->items[i].end <= (v)->items[i].start ||                  \
			    (kept && (v)->items[i].start < (v)->items[kept - 1].end))    \
				continue;                                                \
			(v)->items[kept++] = (v)->items[i];                              \
		}                                                                        \
		(v)->count = kept;                                                       \
	} while (0)

static struct ss_error *read_file(struct ss_core_file *core)
{
	Elf64_Ehdr header = {};

	core->size = ss_core_source_size(core->source);
	struct ss_error *error = check_header(
		core, &header,
		ss_core_source_read(core->source, &header, sizeof(header), 0));
	if (!error)
		error = read_segments(core, &header);
	if (error)
		return error;
	tidy(&core->segments, compare_segments);
	tidy(&core->mappings, compare_mappings);
	if (core->threads.count == 0)
		return no_core(core->truncated ?
				       "it is truncated before its first thread" :
				       "it has no threads");
	return NULL;
}

struct ss_error *ss_core_file_open(int fd, struct ss_core_file **ret)
{
	_cleanup_(ss_core_file_cleanup) struct ss_core_file *core =
		calloc(1, sizeof(*core));

	if (!core)
		close_cleanup(&fd);
	if (!core || !(core->strings = ss_intern_new()))
		return ss_error_no_memory();
	struct ss_error *error = ss_core_source_new(fd, &core->source);
	if (!error)
		error = read_file(core);
	if (!error)
		*ret = take_ptr(core);
	return error;
}

const struct ss_core_segment *ss_core_file_find(const struct ss_core_file *core,
						uint64_t address)
{
	size_t at = ss_lower_bound(core->segments.count, i,
				   core->segments.items[i].end <= address);

	return at < core->segments.count && core->segments.items[at].start <= address ?
		       &core->segments.items[at] :
		       NULL;
}

static size_t read_segment(const struct ss_core_file *core, uint64_t address, void *bytes,
			   size_t size)
{
	const struct ss_core_segment *segment = ss_core_file_find(core, address);

	if (!segment || address - segment->start >= segment->present)
		return 0;
	uint64_t at = address - segment->start;
	ssize_t n =
		ss_core_source_read(core->source, bytes,
				    (size_t)SS_MIN((uint64_t)size, segment->present - at),
				    segment->offset + at);
	return n < 0 ? 0 : (size_t)n;
}

size_t ss_core_file_read(const struct ss_core_file *core, uint64_t address, void *bytes,
			 size_t size)
{
	size_t done = 0;
	size_t n;

	while (done < size && (n = read_segment(core, address + done,
						(char *)bytes + done, size - done)) > 0)
		done += n;
	return done;
}

bool ss_core_file_want(const struct ss_core_file *core, uint64_t address, uint64_t size)
{
	const struct ss_core_segment *segment = ss_core_file_find(core, address);

	if (!segment || address - segment->start >= segment->present)
		return true;
	uint64_t at = address - segment->start;
	return ss_core_source_want(core->source, segment->offset + at,
				   SS_MIN(size, segment->present - at));
}

/* What has become known by the pass: where the file ends. */
static void set_size(struct ss_core_file *core, uint64_t size)
{
	core->size = size;
	for (size_t i = 0; i < core->segments.count; i++) {
		struct ss_core_segment *segment = &core->segments.items[i];
		uint64_t left = segment->offset < size ? size - segment->offset : 0;
		core->truncated |= left < segment->present;
		segment->present = SS_MIN(segment->present, left);
	}
}

bool ss_core_file_fetch(struct ss_core_file *core, uint64_t max)
{
	uint64_t end = 0;

	if (core->size == UINT64_MAX) {
		for (size_t i = 0; i < core->segments.count; i++) {
			const struct ss_core_segment *segment = &core->segments.items[i];
			if (segment->present)
				end = SS_MAX(end, segment->offset + segment->present);
		}
		if (end && !ss_core_source_want(core->source, end - 1, 1))
			return false;
	}
	if (!ss_core_source_fetch(core->source, max))
		return false;
	uint64_t size = ss_core_source_size(core->source);
	if (size != UINT64_MAX && size != core->size)
		set_size(core, size);
	return true;
}
