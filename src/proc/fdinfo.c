#include "proc/fdinfo.h"

#include <limits.h>

#include "base/scan.h"

static bool next_line(const char **cursor, const char *end, struct ss_scan *ret)
{
	if (*cursor >= end)
		return false;
	const char *newline = memchr(*cursor, '\n', (size_t)(end - *cursor));
	*ret = (struct ss_scan){ .at = *cursor, .end = newline ? newline : end };
	*cursor = newline ? newline + 1 : end;
	return true;
}

static bool read_key(struct ss_scan *line, const char *key)
{
	struct ss_scan s = *line;

	ss_scan_spaces(&s);
	if (!ss_scan_text(&s, key))
		return false;
	ss_scan_spaces(&s);
	if (!ss_scan_char(&s, ':'))
		return false;
	ss_scan_spaces(&s);
	*line = s;
	return true;
}

static bool read_octal(struct ss_scan *s, unsigned *ret)
{
	const char *first = s->at;
	unsigned value = 0;

	for (; s->at < s->end && *s->at >= '0' && *s->at <= '7'; s->at++) {
		if (value >> 29)
			return false;
		value = value * 8 + (unsigned)(*s->at - '0');
	}
	*ret = value;
	return s->at > first;
}

/* "(12, 345)": seconds and nanoseconds */
static bool read_time(struct ss_scan *s, uint64_t *ret)
{
	enum { NS_PER_S = 1000000000 };
	uint64_t seconds;
	uint64_t ns;

	if (!ss_scan_char(s, '(') || !ss_scan_number(s, 10, &seconds) ||
	    !ss_scan_char(s, ','))
		return false;
	ss_scan_spaces(s);
	if (!ss_scan_number(s, 10, &ns) || ns >= NS_PER_S ||
	    __builtin_mul_overflow(seconds, (uint64_t)NS_PER_S, &seconds))
		return false;
	return !__builtin_add_overflow(seconds, ns, ret);
}

static void read_pid(struct ss_scan *s, struct ss_fdinfo *ret)
{
	bool negative = ss_scan_char(s, '-');
	uint64_t pid;

	if (!ss_scan_number(s, 10, &pid) || pid > INT_MAX)
		return;
	ret->has_pid = true;
	ret->pid = negative ? -(pid_t)pid : (pid_t)pid;
}

static void read_line(struct ss_scan s, struct ss_fdinfo *ret)
{
	uint64_t number = 0;

	if (read_key(&s, "pos"))
		(void)ss_scan_number(&s, 10, &ret->position); /* or 0 */
	else if (read_key(&s, "eventfd-count"))
		ret->has_count = ss_scan_number(&s, 16, &ret->count);
	else if (read_key(&s, "sigmask"))
		ret->has_mask = ss_scan_number(&s, 16, &ret->mask);
	else if (read_key(&s, "clockid") && ss_scan_number(&s, 10, &number))
		ret->clock = (int)(number & 0xff);
	else if (read_key(&s, "it_value"))
		ret->has_timer = read_time(&s, &ret->left_ns);
	else if (read_key(&s, "it_interval"))
		(void)read_time(&s, &ret->interval_ns); /* or 0 */
	else if (read_key(&s, "Pid"))
		read_pid(&s, ret);
	else if (ss_scan_text(&s, "inotify wd:"))
		ret->watches += ret->watches < UINT_MAX;
}

bool ss_fdinfo_parse(const char *text, size_t size, struct ss_fdinfo *ret)
{
	const char *end = text + size;
	struct ss_scan line;
	bool found = false;

	*ret = (struct ss_fdinfo){};
	while (next_line(&text, end, &line)) {
		struct ss_scan s = line;
		if (read_key(&s, "flags"))
			found |= read_octal(&s, &ret->flags);
		else
			read_line(line, ret);
	}
	return found;
}

/* "tfd:        5 events:       19 data: ..." */
bool ss_fdinfo_next_watch(const char **cursor, const char *end,
			  struct ss_fdinfo_watch *ret)
{
	struct ss_scan s;

	while (next_line(cursor, end, &s)) {
		uint64_t fd;
		uint64_t events;
		if (!read_key(&s, "tfd") || !ss_scan_number(&s, 10, &fd) || fd > INT_MAX)
			continue;
		if (!read_key(&s, "events") || !ss_scan_number(&s, 16, &events))
			continue;
		*ret = (struct ss_fdinfo_watch){ .fd = (int)fd,
						 .events = (uint32_t)events };
		return true;
	}
	return false;
}
