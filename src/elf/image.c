#include "elf/image.h"

#include <string.h>

#include "arch/arch.h"
#include "data/module.h"
#include "data/session.h"

enum { HEADERS_MAX = 512 };

/* Larger offsets are not read, whatever the headers claim: they determine the size of the
   chunk table. */
static const uint64_t file_size_max = UINT64_C(1) << 36;

static bool read_exactly(const struct ss_module_impl *module, uint64_t offset,
			 void *bytes, size_t size)
{
	return ss_module_read(module, offset, bytes, size) == (ssize_t)size;
}

/* NULL: not an ELF file of a supported processor. */
static const struct ss_arch *find_arch(const Elf64_Ehdr *header)
{
	const unsigned char order =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_ident[EI_DATA] != order ||
	    header->e_phentsize !=
		    ss_elf_record_size(header->e_ident[EI_CLASS], SS_ELF_SEGMENT))
		return NULL;
	return ss_arch_find(header->e_machine, header->e_ident[EI_CLASS]);
}

static void add_segment(struct ss_image *image, const Elf64_Phdr *header)
{
	uint64_t end;

	if (image->segment_count == SS_SEGMENTS_MAX || header->p_filesz == 0 ||
	    header->p_filesz > file_size_max || header->p_offset > file_size_max ||
	    __builtin_add_overflow(header->p_vaddr, header->p_filesz, &end))
		return;
	image->segments[image->segment_count++] = (struct ss_segment){
		.address = header->p_vaddr,
		.offset = header->p_offset,
		.size = header->p_filesz,
		.flags = header->p_flags,
	};
	image->low = SS_MIN(image->low, header->p_vaddr);
	image->high = SS_MAX(image->high, end);
}

static bool read_headers(struct ss_image *image)
{
	Elf64_Ehdr header;

	if (!read_exactly(image->module, 0, &header, sizeof(header)))
		return false;
	ss_elf_widen(header.e_ident[EI_CLASS], SS_ELF_HEADER, &header, 1);
	image->arch = find_arch(&header);
	if (!image->arch)
		return false;
	size_t count = SS_MIN((size_t)header.e_phnum, (size_t)HEADERS_MAX);
	_cleanup_free_ Elf64_Phdr *headers = calloc(count + 1, sizeof(*headers));
	if (!headers || !read_exactly(image->module, header.e_phoff, headers,
				      count * header.e_phentsize))
		return false;
	ss_elf_widen(image->arch->elf_class, SS_ELF_SEGMENT, headers, count);
	image->low = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type == PT_LOAD) {
			add_segment(image, &headers[i]);
		} else if (headers[i].p_type == PT_GNU_EH_FRAME) {
			image->frame_header = headers[i].p_vaddr;
			image->frame_header_size = headers[i].p_memsz;
		} else if (headers[i].p_type == PT_DYNAMIC) {
			image->dynamic_offset = headers[i].p_offset;
			image->dynamic_size = headers[i].p_filesz;
		}
	}
	return image->segment_count > 0;
}

static size_t count_groups(const struct ss_image *image)
{
	return image->chunk_count / SS_IMAGE_GROUP + 1;
}

static bool make_groups(struct ss_image *image)
{
	uint64_t end = 0;

	for (size_t i = 0; i < image->segment_count; i++)
		end = SS_MAX(end, image->segments[i].offset + image->segments[i].size);
	image->chunk_count = end / SS_IMAGE_CHUNK + 1;
	/* calloc() reserves address space; pages are allocated when they are used. */
	image->groups = calloc(count_groups(image), sizeof(struct ss_image_group *));
	return image->groups != NULL;
}

struct ss_image *ss_image_new(struct ss_module_impl *module)
{
	_cleanup_(ss_image_cleanup) struct ss_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->module = ss_module_ref(module);
	return read_headers(image) && make_groups(image) ? take_ptr(image) : NULL;
}

static void free_group(struct ss_image_group *group)
{
	for (size_t i = 0; group && i < SS_IMAGE_GROUP; i++)
		free(group->chunks[i]);
	free(group);
}

void ss_cfi_index_free(struct ss_cfi_index *index)
{
	if (!index)
		return;
	ss_vector_free(&index->entries);
	free(index->bytes);
	free(index);
}

void ss_image_free(struct ss_image *image)
{
	if (!image)
		return;
	for (size_t i = 0; image->groups && i < count_groups(image); i++)
		free_group(image->groups[i]);
	free(image->groups);
	ss_cfi_index_free(image->cfi_index);
	ss_cfi_index_free(image->debug_index);
	free(image->go_program);
	free(image->called);
	ss_module_unref(image->module);
	free(image);
}

static const uint8_t *get_chunk(struct ss_image *image, size_t index, size_t *size)
{
	struct ss_image_group **group = &image->groups[index / SS_IMAGE_GROUP];
	size_t at = index % SS_IMAGE_GROUP;

	if (!*group)
		*group = calloc(1, sizeof(**group));
	if (!*group)
		return NULL;
	if (!(*group)->chunks[at]) {
		uint8_t *chunk = malloc(SS_IMAGE_CHUNK);
		if (!chunk)
			return NULL;
		ssize_t n = ss_module_read(image->module,
					   (uint64_t)index * SS_IMAGE_CHUNK, chunk,
					   SS_IMAGE_CHUNK);
		(*group)->chunks[at] = chunk;
		(*group)->sizes[at] = n > 0 ? (uint16_t)n : 0;
	}
	*size = (*group)->sizes[at];
	return (*group)->chunks[at];
}

size_t ss_image_read_at(struct ss_image *image, uint64_t offset, void *bytes, size_t size)
{
	uint8_t *to = bytes;
	size_t done = 0;

	while (done < size && (offset + done) / SS_IMAGE_CHUNK < image->chunk_count) {
		size_t chunk_size;
		size_t index = (size_t)((offset + done) / SS_IMAGE_CHUNK);
		size_t at = (size_t)((offset + done) % SS_IMAGE_CHUNK);
		const uint8_t *chunk = get_chunk(image, index, &chunk_size);
		if (!chunk || at >= chunk_size)
			break;
		size_t n = SS_MIN(size - done, chunk_size - at);
		memcpy(to + done, chunk + at, n);
		done += n;
	}
	return done;
}

size_t ss_image_read(struct ss_image *image, uint64_t address, void *bytes, size_t size)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct ss_segment *s = &image->segments[i];
		if ((s->flags & PF_W) || address - s->address >= s->size)
			continue;
		uint64_t at = address - s->address;
		return ss_image_read_at(image, s->offset + at, bytes,
					SS_MIN(size, s->size - at));
	}
	return 0;
}

bool ss_image_read_records(struct ss_image *image, enum ss_elf_record record,
			   uint64_t address, void *ret, size_t count)
{
	const size_t size = count * ss_elf_record_size(image->arch->elf_class, record);

	if (ss_image_read(image, address, ret, size) != size)
		return false;
	ss_elf_widen(image->arch->elf_class, record, ret, count);
	return true;
}

uint64_t ss_image_bias(const struct ss_image *image, const struct ss_module_impl *module)
{
	const struct ss_mapping *m = &module->mappings[0];

	/* The segment whose pages begin with the first mapping; ld.so maps whole pages.
	 */
	for (size_t i = 0; i < image->segment_count && module->mapping_count > 0; i++) {
		const struct ss_segment *s = &image->segments[i];
		if (m->offset <= s->offset && s->offset < m->offset + (m->end - m->start))
			return m->start - (s->address - (s->offset - m->offset));
	}
	/* V8 maps a part of its program once more, near its generated code. */
	for (size_t i = 0; i < image->segment_count && module->mapping_count > 0; i++) {
		const struct ss_segment *s = &image->segments[i];
		if (s->offset < m->offset && m->offset - s->offset < s->size)
			return m->start - (s->address + (m->offset - s->offset));
	}
	return module->pub.base - image->low;
}
