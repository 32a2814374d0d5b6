/*
 * Parser for /proc/PID/maps, one line at a time. Format: proc_pid_maps(5),
 * fs/proc/task_mmu.c show_map_vma().
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
	bool shared;	  /* MAP_SHARED: writes are visible to other processes */
	bool deleted;	  /* " (deleted)" was removed from the name */
	const char *name; /* points into the text, not terminated, newlines as \012 */
	size_t name_size; /* 0: anonymous */
};

/* Parses the line at *cursor and advances *cursor. Skips invalid lines. Returns false at
   the end. */
bool ss_maps_next(const char **cursor, const char *end, struct ss_maps_entry *ret);

/* Copies a name to ret (capacity bytes, NUL-terminated, truncated if necessary) and
   converts \012 to newlines. Returns its length. */
size_t ss_maps_unescape(const char *name, size_t size, char *ret, size_t capacity);

#endif
