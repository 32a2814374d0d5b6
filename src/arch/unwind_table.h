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

#endif
