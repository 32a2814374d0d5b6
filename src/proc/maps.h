/*
 * Reader of /proc/PID/maps: one line at a time, over bytes that are there already.
 * Format: proc_pid_maps(5), fs/proc/task_mmu.c show_map_vma().
 */
#ifndef SS_PROC_MAPS_H
#define SS_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_maps_entry {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t device;  /* major << 32 | minor */
	uint64_t inode;	  /* 0: no file */
	unsigned prot;	  /* PROT_READ | PROT_WRITE | PROT_EXEC */
	bool shared;	  /* what is written is seen by others who map it */
	bool deleted;	  /* the name ended in " (deleted)", which name leaves out */
	const char *name; /* into the text, not terminated, newlines still as \012 */
	size_t name_size; /* 0: anonymous */
};

/* Reads the line at *cursor (before end) and moves *cursor past it. Lines that do
   not parse are skipped. False at the end. */
bool ss_maps_next(const char **cursor, const char *end, struct ss_maps_entry *ret);

/* Copies a name to ret (capacity bytes, NUL-terminated, cut if it must be), with
   \012 turned back into a newline. Its length. */
size_t ss_maps_unescape(const char *name, size_t size, char *ret, size_t capacity);

#endif
