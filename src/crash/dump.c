/*
 * The dump that the kernel writes to a pipe when a process has crashed (core(5)). Headers and
 * notes come first. While the rest is unread the kernel waits, and memory and /proc of the
 * process stay. Where its memory cannot be read, the rest is.
 *
 * The kernel has written the headers and notes that are parsed here, with privileges; the
 * process determines the names of files in them only.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/search.h"
#include "base/vector.h"
#include "core/core_file.h"
#include "stacksnap.h"
#include "crash/dump.h"
#include "process/process_memory.h"

enum {
	NOTES_MAX = 64 << 20, /* 17,000 threads with AVX-512 */
	PART = 64 << 10,
	STACK_MAX = 16 << 20,
	TOTAL_MAX = 64 << 20,
	OVERFLOW_MAX = 1 << 20, /* the frame that overflowed a stack */
	MODULE_HEADER = 4096,	/* has the build-id, as in the kernel's dumps */
	VDSO_MAX = 64 << 10,
	ARGUMENT_BEFORE = 64, /* of what a system call refers to */
	ARGUMENT_AFTER = 512,
	READS_MAX = 128 << 20,
	SEGMENTS_MAX = PN_XNUM - 2,
	RANGES_MAX = 24000, /* each is up to two of these */
	HALVES = 2,	    /* of a file: stacks, and other memory */
	PAGE = 4096,
	HEADERS_MAX = (SEGMENTS_MAX + 2) * sizeof(Elf64_Phdr),
};

/* Memory that is wanted, within one segment. */
struct range {
	uint64_t start;
	uint64_t end;
};

struct ss_dump {
	int head; /* borrowed */
	struct ss_core_file *core;
	struct ss_dump_options options;
	struct ss_process_memory memory;
	SS_VECTOR(struct range) ranges;
	SS_VECTOR(struct range) reads;
	size_t reads_left; /* bytes */
	SS_VECTOR(Elf64_Phdr) segments;
	uint64_t left;	  /* of max_total */
	uint64_t at;	  /* in the new file */
	uint64_t end;	  /* of its memory, at most */
	int file;	  /* -1: none */
	Elf64_Phdr notes; /* of the new file */
};

void ss_dump_close(struct ss_dump *dump)
{
	if (!dump)
		return;
	ss_core_file_free(dump->core);
	close_cleanup(&dump->memory.mem_fd);
	close_cleanup(&dump->memory.pagemap_fd);
	close_cleanup(&dump->file);
	ss_vector_free(&dump->ranges);
	ss_vector_free(&dump->reads);
	ss_vector_free(&dump->segments);
	free(dump);
}

SS_DEFINE_CLEANUP(struct ss_dump, dump, ss_dump_close)

/* Head ------------------------------------------------------------------------ */

/* Copies bytes from a pipe until the file has that size. */
static struct ss_error *fill(int pipe, int file, uint64_t *have, uint64_t size)
{
	char bytes[PART];

	while (*have < size) {
		ssize_t n = read(pipe, bytes,
				 (size_t)SS_MIN(size - *have, (uint64_t)sizeof(bytes)));
		int errnum = errno;
		if (n < 0 && errnum == EINTR)
			continue;
		if (n <= 0)
			return ss_error_new(SS_ERROR_INVALID,
					    "the dump ends within its headers");
		int error = ss_io_write_all(file, bytes, (size_t)n);
		if (error)
			return ss_error_new_errno(-error, "copying the dump");
		*have += (uint64_t)n;
	}
	return NULL;
}

static struct ss_error *find_notes(int file, const Elf64_Ehdr *header, uint64_t *ret_end)
{
	*ret_end = 0;
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		if (ss_io_pread(file, &segment, sizeof(segment),
				header->e_phoff + i * sizeof(segment)) !=
		    (ssize_t)sizeof(segment))
			break;
		if (segment.p_type == PT_NOTE &&
		    segment.p_offset < UINT64_MAX - segment.p_filesz)
			*ret_end = SS_MAX(*ret_end, segment.p_offset + segment.p_filesz);
	}
	return *ret_end <= NOTES_MAX ?
		       NULL :
		       ss_error_new(SS_ERROR_INVALID,
				    "the notes of the dump are too large");
}

struct ss_error *ss_dump_read_head(int pipe, int *ret)
{
	_cleanup_close_ int file = memfd_create("dump", MFD_CLOEXEC);
	int errnum = errno;
	Elf64_Ehdr header = {};
	uint64_t have = 0;
	uint64_t notes = 0;

	if (file < 0)
		return ss_error_new_errno(errnum, "copying the dump");
	struct ss_error *error = fill(pipe, file, &have, sizeof(header));
	if (!error && (ss_io_pread(file, &header, sizeof(header), 0) < 0 ||
		       memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
		       header.e_ident[EI_CLASS] != ELFCLASS64 ||
		       header.e_type != ET_CORE || header.e_phoff != sizeof(header) ||
		       header.e_phentsize != sizeof(Elf64_Phdr)))
		error = ss_error_new(
			SS_ERROR_UNSUPPORTED,
			"standard input is not the dump of a 64-bit process");
	if (!error)
		error = fill(pipe, file, &have,
			     sizeof(header) + header.e_phnum * sizeof(Elf64_Phdr));
	if (!error)
		error = find_notes(file, &header, &notes);
	if (!error)
		error = fill(pipe, file, &have, notes);
	if (!error)
		*ret = take_fd(file);
	return error;
}

/* What is wanted -------------------------------------------------------------- */

static bool add_range(struct ss_dump *dump, const struct ss_core_segment *segment,
		      uint64_t start, uint64_t size)
{
	if (!segment || start >= segment->end || !(segment->prot & PROT_READ))
		return true;
	start = SS_MAX(start, segment->start);
	size = SS_MIN(SS_MIN(segment->end - start, size), dump->left);
	if (size == 0)
		return true;
	struct range *range = ss_vector_push(&dump->ranges);
	if (!range)
		return false;
	dump->left -= size;
	*range = (struct range){ .start = start, .end = start + size };
	return true;
}

/* The segment of a stack. One that has overflowed ends above sp. */
static const struct ss_core_segment *find_stack(const struct ss_dump *dump, uint64_t sp)
{
	const struct ss_core_segment *segment = ss_core_file_find(dump->core, sp);

	for (size_t i = 0; !segment && i < dump->core->segments.count; i++) {
		const struct ss_core_segment *next = &dump->core->segments.items[i];
		if (next->start > sp)
			return next->start - sp <= OVERFLOW_MAX &&
					       (next->prot & PROT_WRITE) ?
				       next :
				       NULL;
	}
	return segment;
}

/* A handler on an alternate stack interrupted the function whose stack pointer this is. */
static bool find_interrupted(const struct ss_dump *dump,
			     const struct ss_core_segment *stack, uint64_t sp,
			     uint64_t *ret)
{
	uint8_t bytes[PART];
	struct ss_piece piece = { .address = sp,
				  .bytes = bytes,
				  .size = (size_t)SS_MIN(stack->end - sp,
							 (uint64_t)sizeof(bytes)) };

	ss_process_memory_read(&dump->memory, &piece, 1);
	return ss_arch_find_alternate(dump->core->arch, bytes, piece.done, sp, ret);
}

static bool add_stack(struct ss_dump *dump, uint64_t sp, bool interrupted)
{
	const struct ss_core_segment *segment = find_stack(dump, sp);
	uint64_t below = SS_MIN(sp, (uint64_t)dump->core->arch->red_zone);
	uint64_t other;

	if (!segment)
		return true;
	uint64_t start = SS_MAX(sp, segment->start);
	return add_range(dump, segment, sp - below, dump->options.max_stack) &&
	       (interrupted || !find_interrupted(dump, segment, start, &other) ||
		add_stack(dump, other, true));
}

/* Locks, and other arguments of the system call that a thread was in. */
static bool add_arguments(struct ss_dump *dump, const struct ss_capture_thread *thread)
{
	for (size_t i = 0; thread->syscall.number >= 0 && i < SS_SYSCALL_ARGS; i++) {
		uint64_t address = thread->syscall.args[i];
		const struct ss_core_segment *segment =
			ss_core_file_find(dump->core, address);
		if (segment && (segment->prot & PROT_WRITE) &&
		    !add_range(dump, segment,
			       address - SS_MIN(address, (uint64_t)ARGUMENT_BEFORE),
			       ARGUMENT_BEFORE + ARGUMENT_AFTER))
			return false;
	}
	return true;
}

static bool add_ranges(struct ss_dump *dump)
{
	const struct ss_core_file *core = dump->core;

	for (size_t i = 0; i < core->mappings.count; i++) {
		const struct ss_core_mapping *mapping = &core->mappings.items[i];
		if (mapping->offset == 0 &&
		    !add_range(dump, ss_core_file_find(core, mapping->start),
			       mapping->start, MODULE_HEADER))
			return false;
	}
	if (!add_range(dump, ss_core_file_find(core, core->vdso), core->vdso, VDSO_MAX))
		return false;
	/* The thread that crashed is the first. */
	for (size_t i = 0; i < core->threads.count; i++) {
		const struct ss_capture_thread *thread = &core->threads.items[i];
		if (!add_stack(dump, ss_regs_sp(core->arch, &thread->regs), false) ||
		    !add_arguments(dump, thread))
			return false;
	}
	return true;
}

/* What was read besides. False without memory. */
static bool add_reads(struct ss_dump *dump)
{
	for (size_t i = 0; i < dump->reads.count; i++) {
		struct range *range = ss_vector_push(&dump->ranges);
		if (!range)
			return false;
		*range = dump->reads.items[i];
	}
	return true;
}

SS_DEFINE_COMPARE(compare_ranges, struct range, start)

/* Sorts the ranges and makes them disjoint. */
static void sort_ranges(struct ss_dump *dump)
{
	size_t kept = 0;

	if (dump->ranges.count > 1)
		qsort(dump->ranges.items, dump->ranges.count, sizeof(struct range),
		      compare_ranges);
	for (size_t i = 0; i < dump->ranges.count; i++) {
		struct range range = dump->ranges.items[i];
		if (kept)
			range.start =
				SS_MAX(range.start, dump->ranges.items[kept - 1].end);
		if (range.start < range.end)
			dump->ranges.items[kept++] = range;
	}
	dump->ranges.count = kept;
}

/* The new file ----------------------------------------------------------------- */

static bool add_segment(struct ss_dump *dump, const struct ss_core_segment *segment,
			uint64_t start, uint64_t end, bool copied)
{
	if (start == end || dump->segments.count >= SEGMENTS_MAX)
		return true;
	Elf64_Phdr *header = ss_vector_push(&dump->segments);
	if (!header)
		return false;
	*header = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = (segment->prot & PROT_READ ? (uint32_t)PF_R : 0) |
			   (segment->prot & PROT_WRITE ? (uint32_t)PF_W : 0) |
			   (segment->prot & PROT_EXEC ? (uint32_t)PF_X : 0),
		.p_vaddr = start,
		.p_filesz = copied ? end - start : 0,
		.p_memsz = end - start,
		.p_align = 1,
	};
	return true;
}

/* Divides the segments where ranges begin and end. */
static bool divide(struct ss_dump *dump)
{
	size_t r = 0;

	for (size_t i = 0; i < dump->core->segments.count; i++) {
		const struct ss_core_segment *segment = &dump->core->segments.items[i];
		uint64_t at = segment->start;
		for (;
		     r < dump->ranges.count && dump->ranges.items[r].start < segment->end;
		     r++) {
			const struct range *range = &dump->ranges.items[r];
			if (!add_segment(dump, segment, at, range->start, false) ||
			    !add_segment(dump, segment, range->start, range->end, true))
				return false;
			at = range->end;
		}
		if (!add_segment(dump, segment, at, segment->end, false))
			return false;
	}
	return true;
}

static struct ss_error *write_at(const struct ss_dump *dump, const void *bytes,
				 size_t size, uint64_t offset)
{
	while (size > 0) {
		ssize_t n = pwrite(dump->file, bytes, size, (off_t)offset);
		int errnum = errno;
		if (n < 0)
			return ss_error_new_errno(errnum, "copying the dump");
		bytes = (const char *)bytes + n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return NULL;
}

/* Copies memory of the process as far as it can be read. */
static struct ss_error *copy_memory(struct ss_dump *dump, Elf64_Phdr *segment)
{
	static const size_t most = 1 << 20;
	_cleanup_free_ uint8_t *bytes = malloc(most);
	uint64_t done = 0;

	if (!bytes)
		return ss_error_no_memory();
	segment->p_offset = dump->at;
	while (done < segment->p_filesz) {
		struct ss_piece piece = {
			.address = segment->p_vaddr + done,
			.bytes = bytes,
			.size = (size_t)SS_MIN(segment->p_filesz - done, (uint64_t)most),
		};
		ss_process_memory_read(&dump->memory, &piece, 1);
		struct ss_error *error = write_at(dump, bytes, piece.done, dump->at);
		if (error)
			return error;
		dump->at += piece.done;
		done += piece.done;
		if (piece.done < piece.size)
			break;
	}
	segment->p_filesz = done;
	return NULL;
}

static struct ss_error *copy_notes(struct ss_dump *dump)
{
	Elf64_Phdr *notes = &dump->notes;
	_cleanup_free_ uint8_t *bytes = malloc(notes->p_filesz + 1);

	if (!bytes)
		return ss_error_no_memory();
	ssize_t n = ss_io_pread(dump->head, bytes, notes->p_filesz, notes->p_offset);
	notes->p_offset = dump->at;
	notes->p_filesz = n < 0 ? 0 : (uint64_t)n;
	dump->at += notes->p_filesz;
	return write_at(dump, bytes, notes->p_filesz, notes->p_offset);
}

/* False: there are none, or too many (ss_dump_shrink() may get the head of another program). */
static bool read_notes(const struct ss_dump *dump, const Elf64_Ehdr *header,
		       Elf64_Phdr *ret)
{
	for (unsigned i = 0; i < header->e_phnum; i++) {
		if (ss_io_pread(dump->head, ret, sizeof(*ret),
				header->e_phoff + i * sizeof(*ret)) ==
			    (ssize_t)sizeof(*ret) &&
		    ret->p_type == PT_NOTE)
			return ret->p_filesz <= NOTES_MAX;
	}
	return false;
}

static struct ss_error *read_header(const struct ss_dump *dump, Elf64_Ehdr *ret)
{
	return ss_io_pread(dump->head, ret, sizeof(*ret), 0) == (ssize_t)sizeof(*ret) ?
		       NULL :
		       ss_error_new(SS_ERROR_INVALID, "the dump has no headers");
}

/* Memory of segments follows, at dump->at. */
static struct ss_error *begin_file(struct ss_dump *dump)
{
	Elf64_Ehdr header;
	struct ss_error *error = read_header(dump, &header);

	if (error)
		return error;
	if (!read_notes(dump, &header, &dump->notes))
		return ss_error_new(SS_ERROR_INVALID, "the dump has no notes");
	close_cleanup(&dump->file);
	dump->file = memfd_create("core", MFD_CLOEXEC);
	int errnum = errno;
	if (dump->file < 0)
		return ss_error_new_errno(errnum, "copying the dump");
	dump->at = sizeof(header);
	dump->left = dump->options.max_total;
	dump->ranges.count = dump->segments.count = 0;
	return copy_notes(dump);
}

/* Writes the headers of what is in the file. */
static struct ss_error *end_file(struct ss_dump *dump, int *ret)
{
	Elf64_Ehdr header;
	struct ss_error *error = read_header(dump, &header);

	header.e_phnum = (uint16_t)(dump->segments.count + 1);
	header.e_phoff = dump->at;
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	if (!error)
		error = write_at(dump, &header, sizeof(header), 0);
	if (!error)
		error = write_at(dump, &dump->notes, sizeof(dump->notes), dump->at);
	if (!error)
		error = write_at(dump, dump->segments.items,
				 dump->segments.count * sizeof(dump->notes),
				 dump->at + sizeof(dump->notes));
	if (error)
		return error;
	int reading = ss_io_reopen(dump->file); /* a sandbox keeps what is read-only */
	if (reading < 0)
		return ss_error_new(SS_ERROR_SYSTEM, "reopening the dump");
	*ret = reading;
	return NULL;
}

static struct ss_error *open_process(struct ss_dump *dump, pid_t pid)
{
	char path[64];

	if (pid == 0)
		return NULL;
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid); /* always fits */
	dump->memory.tid = pid;
	dump->memory.mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	int errnum = errno;
	if (dump->memory.mem_fd < 0)
		return ss_error_new_errno(errnum, "process %d", pid);
	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", pid); /* always fits */
	dump->memory.pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	return NULL;
}

struct ss_error *ss_dump_open(int head, pid_t pid, const struct ss_dump_options *options,
			      struct ss_dump **ret)
{
	_cleanup_(dump_cleanup) struct ss_dump *dump = calloc(1, sizeof(*dump));
	int copy = fcntl(head, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int errnum = errno;

	if (!dump) {
		close_cleanup(&copy);
		return ss_error_no_memory();
	}
	*dump = (struct ss_dump){ .head = head,
				  .memory = { .mem_fd = -1, .pagemap_fd = -1 },
				  .file = -1,
				  .reads_left = READS_MAX };
	if (options)
		memcpy(&dump->options, options,
		       SS_MIN(options->size, sizeof(dump->options)));
	if (!dump->options.max_stack)
		dump->options.max_stack = STACK_MAX;
	if (!dump->options.max_total)
		dump->options.max_total = TOTAL_MAX;
	if (copy < 0)
		return ss_error_new_errno(errnum, "reading the dump");
	struct ss_error *error = ss_core_file_open(copy, &dump->core);
	if (!error)
		error = open_process(dump, pid);
	if (!error)
		*ret = take_ptr(dump);
	return error;
}

size_t ss_dump_read(struct ss_dump *dump, uint64_t address, void *bytes, size_t size)
{
	struct ss_piece piece = { .address = address, .bytes = bytes, .size = size };

	if (size > dump->reads_left)
		return 0;
	dump->reads_left -= size;
	ss_process_memory_read_present(&dump->memory, &piece, 1);
	const struct ss_core_segment *segment = ss_core_file_find(dump->core, address);
	if (segment && (segment->prot & PROT_READ) && piece.done > 0) {
		struct range *range = ss_vector_push(&dump->reads);
		if (range) /* or it is not in the file */
			*range = (struct range){ .start = address,
						 .end = SS_MIN(address + piece.done,
							       segment->end) };
	}
	return piece.done;
}

struct ss_error *ss_dump_shrink(struct ss_dump *dump, int *ret)
{
	struct ss_error *error = begin_file(dump);

	if (error)
		return error;
	if (dump->memory.tid && (!add_ranges(dump) || !add_reads(dump)))
		return ss_error_no_memory();
	sort_ranges(dump);
	if (dump->ranges.count > RANGES_MAX) { /* the stacks matter more */
		dump->ranges.count = 0;
		dump->left = dump->options.max_total;
		if (!add_ranges(dump))
			return ss_error_no_memory();
		sort_ranges(dump);
	}
	if (!divide(dump))
		return ss_error_no_memory();
	for (size_t i = 0; !error && i < dump->segments.count; i++)
		error = copy_memory(dump, &dump->segments.items[i]);
	return error ? error : end_file(dump, ret);
}

/* Without the process ---------------------------------------------------------- */

/* The rest of a dump, as it arrives. */
struct stream {
	int pipe;
	uint64_t at; /* offset in the dump of what comes next */
	uint64_t deadline_ns;
	uint8_t bytes[PART];
};

static bool wait_for_bytes(const struct stream *stream)
{
	struct pollfd poll_fd = { .fd = stream->pipe, .events = POLLIN };
	int ready = 0;

	for (uint64_t now_ns = ss_now_ns(); now_ns < stream->deadline_ns && ready == 0;
	     now_ns = ss_now_ns()) {
		/* at least 1: the last part of a millisecond is waited for, too */
		ready = poll(&poll_fd, 1,
			     (int)((stream->deadline_ns - now_ns) / SS_NS_PER_MS) + 1);
		if (ready < 0 && errno == EINTR)
			ready = 0;
	}
	return ready > 0;
}

/* The next bytes, at most PART. Returns how many came until the end or the deadline. */
static size_t receive_bytes(struct stream *stream, uint64_t size)
{
	const size_t wanted = (size_t)SS_MIN(size, (uint64_t)PART);
	size_t done = 0;

	while (done < wanted && wait_for_bytes(stream)) {
		ssize_t n = read(stream->pipe, stream->bytes + done, wanted - done);
		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		done += (size_t)SS_MAX(n, 0);
	}
	stream->at += done;
	return done;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Whether ss_dump_shrink() would copy some of it. */
static bool is_in_range(const struct ss_dump *dump, uint64_t start, size_t size)
{
	const struct range *ranges = dump->ranges.items;
	size_t next = ss_lower_bound(dump->ranges.count, i, ranges[i].end <= start);

	return next < dump->ranges.count && ranges[next].start < start + size;
}

/* That; and of what the process has written, the first part. */
static bool is_wanted(struct ss_dump *dump, const struct ss_core_segment *segment,
		      uint64_t start, const uint8_t *bytes, size_t size)
{
	if (dump->at > dump->end || size > dump->end - dump->at)
		return false;
	if (is_in_range(dump, start, size))
		return true;
	if (!(segment->prot & PROT_WRITE) || dump->reads_left < size ||
	    is_zero(bytes, size))
		return false;
	dump->reads_left -= size;
	return true;
}

/* Copies the next bytes of a segment to the new file, or leaves them out. */
static struct ss_error *add_bytes(struct ss_dump *dump,
				  const struct ss_core_segment *segment, uint64_t start,
				  const uint8_t *bytes, size_t size)
{
	const uint64_t end = start + size;
	bool copied = is_wanted(dump, segment, start, bytes, size);
	const size_t count = dump->segments.count;
	Elf64_Phdr *last = count ? &dump->segments.items[count - 1] : NULL;

	if (last && last->p_vaddr + last->p_memsz == start && start > segment->start &&
	    copied == (last->p_filesz > 0)) {
		last->p_memsz += size;
		last->p_filesz += copied ? size : 0;
	} else {
		if (!add_segment(dump, segment, start, end, copied))
			return ss_error_no_memory();
		copied = copied && dump->segments.count > count;
		if (copied)
			dump->segments.items[count].p_offset = dump->at;
	}
	if (!copied)
		return NULL;
	dump->at += size;
	return write_at(dump, bytes, size, dump->at - size);
}

/* Of a part with a stack, which most of the limit is for, only its pages. */
static struct ss_error *add_part(struct ss_dump *dump,
				 const struct ss_core_segment *segment, uint64_t start,
				 const uint8_t *bytes, size_t size)
{
	const size_t step = is_in_range(dump, start, size) ? PAGE : PART;
	struct ss_error *error = NULL;

	for (size_t at = 0; !error && at < size; at += step)
		error = add_bytes(dump, segment, start + at, bytes + at,
				  SS_MIN(size - at, step));
	return error;
}

static struct ss_error *receive_segment(struct ss_dump *dump, struct stream *stream,
					const Elf64_Phdr *header)
{
	const struct ss_core_segment *segment =
		ss_core_file_find(dump->core, header->p_vaddr);
	struct ss_error *error = NULL;
	uint64_t done = 0;
	size_t n;

	if (header->p_type != PT_LOAD || !segment || segment->start != header->p_vaddr)
		return NULL;
	while (stream->at < header->p_offset &&
	       receive_bytes(stream, header->p_offset - stream->at) > 0)
		;
	while (!error && stream->at == header->p_offset + done &&
	       (n = receive_bytes(stream, header->p_filesz - done)) > 0) {
		error = add_part(dump, segment, segment->start + done, stream->bytes, n);
		done += n;
	}
	if (!error &&
	    !add_segment(dump, segment, segment->start + done, segment->end, false))
		error = ss_error_no_memory();
	return error;
}

static int compare_offsets(const void *a, const void *b)
{
	const Elf64_Phdr *x = a;
	const Elf64_Phdr *y = b;

	return (x->p_offset > y->p_offset) - (x->p_offset < y->p_offset);
}

static struct ss_error *receive(struct ss_dump *dump, struct stream *stream)
{
	Elf64_Ehdr header;
	struct ss_error *error = read_header(dump, &header);
	const size_t count = error ? 0 : header.e_phnum;
	_cleanup_free_ Elf64_Phdr *headers = calloc(count + 1, sizeof(*headers));

	if (!error && !headers)
		error = ss_error_no_memory();
	if (!error && ss_io_pread(dump->head, headers, count * sizeof(*headers),
				  header.e_phoff) != (ssize_t)(count * sizeof(*headers)))
		error = ss_error_new(SS_ERROR_INVALID, "the dump has no headers");
	if (error)
		return error;
	qsort(headers, count, sizeof(*headers), compare_offsets); /* core_sort_vma */
	for (size_t i = 0; !error && i < count; i++)
		error = receive_segment(dump, stream, &headers[i]);
	return error;
}

struct ss_error *ss_dump_receive(struct ss_dump *dump, int pipe, uint64_t deadline_ns,
				 int *ret)
{
	struct rlimit limit;
	struct stat status;

	if (fstat(dump->head, &status) != 0 || getrlimit(RLIMIT_FSIZE, &limit) != 0)
		return ss_error_new_errno(errno, "reading the dump");
	_cleanup_free_ struct stream *stream = malloc(sizeof(*stream));
	if (!stream)
		return ss_error_no_memory();
	stream->pipe = pipe;
	stream->at = (uint64_t)status.st_size;
	stream->deadline_ns = deadline_ns;
	dump->reads_left = (size_t)SS_MIN((uint64_t)READS_MAX, limit.rlim_cur / HALVES);
	dump->end = limit.rlim_cur - SS_MIN(limit.rlim_cur, (rlim_t)HEADERS_MAX);
	struct ss_error *error = begin_file(dump);
	if (!error && !add_ranges(dump))
		error = ss_error_no_memory();
	sort_ranges(dump);
	if (!error)
		error = receive(dump, stream);
	return error ? error : end_file(dump, ret);
}
