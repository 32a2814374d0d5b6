#include "proc/maps.h"

#include <string.h>
#include <sys/mman.h>

#include "base/scan.h"

static const char deleted_suffix[] = " (deleted)";

static bool scan_permissions(struct ss_scan *s, struct ss_maps_entry *e)
{
	if (s->end - s->at < 4)
		return false;
	e->prot = (s->at[0] == 'r' ? PROT_READ : 0u) |
		  (s->at[1] == 'w' ? PROT_WRITE : 0u) |
		  (s->at[2] == 'x' ? PROT_EXEC : 0u);
	e->shared = s->at[3] == 's';
	s->at += 4;
	return true;
}

static bool scan_device(struct ss_scan *s, uint64_t *ret)
{
	uint64_t major;
	uint64_t minor;

	if (!ss_scan_number(s, 16, &major) || !ss_scan_char(s, ':') ||
	    !ss_scan_number(s, 16, &minor))
		return false;
	*ret = major << 32 | (minor & UINT32_MAX);
	return true;
}

/* A file whose name really ends in " (deleted)" is ambiguous here; device and inode are
   compared when the file is opened. */
static void strip_deleted(struct ss_maps_entry *entry)
{
	size_t suffix = sizeof(deleted_suffix) - 1;

	if (entry->inode == 0 || entry->name_size <= suffix ||
	    memcmp(entry->name + entry->name_size - suffix, deleted_suffix, suffix) != 0)
		return;
	entry->name_size -= suffix;
	entry->deleted = true;
}

static bool parse_line(struct ss_scan *s, struct ss_maps_entry *e)
{
	*e = (struct ss_maps_entry){};
	if (!ss_scan_number(s, 16, &e->start) || !ss_scan_char(s, '-') ||
	    !ss_scan_number(s, 16, &e->end) || !ss_scan_char(s, ' ') ||
	    !scan_permissions(s, e) || !ss_scan_char(s, ' ') ||
	    !ss_scan_number(s, 16, &e->offset) || !ss_scan_char(s, ' ') ||
	    !scan_device(s, &e->device) || !ss_scan_char(s, ' ') ||
	    !ss_scan_number(s, 10, &e->inode))
		return false;
	if (e->start >= e->end)
		return false;
	ss_scan_spaces(s);
	e->name = s->at;
	e->name_size = (size_t)(s->end - s->at);
	strip_deleted(e);
	return true;
}

bool ss_maps_next(const char **cursor, const char *end, struct ss_maps_entry *ret)
{
	while (*cursor < end) {
		const char *newline = memchr(*cursor, '\n', (size_t)(end - *cursor));
		struct ss_scan line = { .at = *cursor, .end = newline ? newline : end };
		*cursor = newline ? newline + 1 : end;
		if (parse_line(&line, ret))
			return true;
	}
	return false;
}

size_t ss_maps_unescape(const char *name, size_t size, char *ret, size_t capacity)
{
	size_t used = 0;

	for (size_t i = 0; i < size && used + 1 < capacity; i++) {
		if (size - i >= 4 && memcmp(name + i, "\\012", 4) == 0) {
			ret[used++] = '\n';
			i += 3;
		} else {
			ret[used++] = name[i];
		}
	}
	if (capacity)
		ret[used] = '\0';
	return used;
}
