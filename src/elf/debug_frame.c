#include "elf/debug_frame.h"

#include <libelf.h>
#include <string.h>

#include "elf/debugfile.h"
#include "elf/elffile.h"

/* Decompresses a section with libelf. */
static uint8_t *decompress_section(Elf *handle, const struct ss_elf *elf,
				   const Elf64_Shdr *section, size_t *size)
{
	Elf_Scn *compressed = elf_getscn(handle, (size_t)(section - elf->sections));
	Elf_Data *data = compressed && elf_compress(compressed, 0, 0) >= 0 ?
				 elf_rawdata(compressed, NULL) :
				 NULL;

	if (!data || !data->d_buf || data->d_size > SS_DEBUG_FRAME_MAX)
		return NULL;
	uint8_t *bytes = malloc(data->d_size + 1);
	if (!bytes)
		return NULL;
	memcpy(bytes, data->d_buf, data->d_size);
	*size = data->d_size;
	return bytes;
}

static uint8_t *read_compressed(const struct ss_elf *elf, const Elf64_Shdr *section,
				size_t *size)
{
	Elf64_Chdr header;

	if (elf->fd < 0 || section->sh_size > SS_DEBUG_FRAME_MAX ||
	    elf_version(EV_CURRENT) == EV_NONE ||
	    !ss_elf_read(elf, section->sh_offset, &header, sizeof(header)) ||
	    header.ch_size > SS_DEBUG_FRAME_MAX)
		return NULL;
	Elf *handle = elf_begin(elf->fd, ELF_C_READ, NULL);
	uint8_t *bytes = handle ? decompress_section(handle, elf, section, size) : NULL;
	(void)elf_end(handle); /* returns a reference count; accepts NULL */
	return bytes;
}

static uint8_t *read_section(const struct ss_elf *elf, size_t *size)
{
	const Elf64_Shdr *section = elf ? ss_elf_find_section(elf, ".debug_frame") : NULL;

	if (!section || section->sh_size > SS_DEBUG_FRAME_MAX)
		return NULL;
	if (section->sh_flags & SHF_COMPRESSED)
		return read_compressed(elf, section, size);
	*size = section->sh_size;
	return ss_elf_copy_section(elf, section);
}

uint8_t *ss_debug_frame_read(const struct ss_session *session,
			     const struct ss_module_impl *module, size_t *size)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *own = ss_elf_from_module(module);
	_cleanup_(ss_elf_cleanup) struct ss_elf *debug = NULL;
	uint8_t *bytes = read_section(own, size);

	if (bytes || !session)
		return bytes;
	debug = ss_debugfile_find(session, module, own);
	return read_section(debug, size);
}
