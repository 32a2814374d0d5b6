/*
 * A function that libunwind exports since 1.0 and declares in no public header (its
 * source: include/dwarf.h); libunwind-ptrace and libunwind-coredump call it as well.
 */
#ifndef SS_ARCH_UNWIND_TABLE_H
#define SS_ARCH_UNWIND_TABLE_H

#include <libunwind.h>

#define ss_unwind_table_search UNW_OBJ(dwarf_search_unwind_table)

/*
 * Finds the FDE for ip in a table of the format UNW_INFO_FORMAT_REMOTE_TABLE, which the
 * accessors of space read: u.rti.segbase is the address of .eh_frame_hdr, table_data of
 * its first entry, table_len the number of entries (of 8 bytes).
 */
extern int ss_unwind_table_search(unw_addr_space_t space, unw_word_t ip,
				  unw_dyn_info_t *table, unw_proc_info_t *info,
				  int need_info, void *data);

/*
 * Accessors of a space that only reads memory and registers, for unw_accessors_t.
 */

static inline void ss_unwind_put_info(unw_addr_space_t space, unw_proc_info_t *info,
				      void *data)
{
	(void)space;
	(void)info; /* from a pool of libunwind; has no data of ours */
	(void)data;
}

static inline int ss_unwind_no_dyn_info(unw_addr_space_t space, unw_word_t *ret,
					void *data)
{
	(void)space;
	(void)ret;
	(void)data;
	return -UNW_ENOINFO;
}

static inline int ss_unwind_no_fpreg(unw_addr_space_t space, unw_regnum_t reg,
				     unw_fpreg_t *value, int write, void *data)
{
	(void)space;
	(void)reg;
	(void)value;
	(void)write;
	(void)data;
	return -UNW_EBADREG;
}

static inline int ss_unwind_no_resume(unw_addr_space_t space, unw_cursor_t *cursor,
				      void *data)
{
	(void)space; /* the thread is never modified */
	(void)cursor;
	(void)data;
	return -UNW_EINVAL;
}

static inline int ss_unwind_no_name(unw_addr_space_t space, unw_word_t address,
				    char *name, size_t size, unw_word_t *offset,
				    void *data)
{
	(void)space;
	(void)address;
	(void)name;
	(void)size;
	(void)offset;
	(void)data;
	return -UNW_ENOINFO;
}

#define SS_UNWIND_NO_ACCESS                                                              \
	.put_unwind_info = ss_unwind_put_info,                                           \
	.get_dyn_info_list_addr = ss_unwind_no_dyn_info,                                 \
	.access_fpreg = ss_unwind_no_fpreg, .resume = ss_unwind_no_resume,               \
	.get_proc_name = ss_unwind_no_name

#endif
