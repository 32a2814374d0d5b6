#include "proc/net.h"

#include "base/scan.h"

/* include/uapi/linux/net.h: __SO_ACCEPTCON */
enum { ACCEPTS = 1 << 16 };

static bool next_line(const char **cursor, const char *end, struct ss_scan *ret)
{
	if (*cursor >= end)
		return false;
	const char *newline = memchr(*cursor, '\n', (size_t)(end - *cursor));
	*ret = (struct ss_scan){ .at = *cursor, .end = newline ? newline : end };
	*cursor = newline ? newline + 1 : end;
	return true;
}

static int digit_of(char c)
{
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : ss_scan_digit(c);
}

/* Parses at most `most` hexadecimal digits of either case. */
static bool read_hex(struct ss_scan *s, unsigned most, uint64_t *ret)
{
	unsigned count = 0;

	*ret = 0;
	for (; s->at < s->end && digit_of(*s->at) >= 0 && count < most; s->at++, count++)
		*ret = *ret << 4 | (uint64_t)digit_of(*s->at);
	return count > 0;
}

/* 32-bit words, each printed as a native number of an address in network byte order. */
static bool read_address(struct ss_scan *s, struct ss_net_address *ret)
{
	uint64_t number;

	ss_scan_spaces(s);
	for (ret->size = 0; ret->size < sizeof(ret->bytes); ret->size += 4) {
		if (s->at < s->end && *s->at == ':')
			break;
		const char *first = s->at;
		if (!read_hex(s, 8, &number) || s->at - first != 8)
			return false;
		uint32_t word = (uint32_t)number;
		memcpy(ret->bytes + ret->size, &word, sizeof(word));
	}
	if ((ret->size != 4 && ret->size != 16) || !ss_scan_char(s, ':') ||
	    !read_hex(s, 4, &number))
		return false;
	ret->port = (unsigned)number;
	return true;
}

static bool skip_words(struct ss_scan *s, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		ss_scan_spaces(s);
		while (s->at < s->end && *s->at != ' ')
			s->at++;
	}
	ss_scan_spaces(s);
	return s->at < s->end;
}

/* sl: local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode */
static bool read_inet(struct ss_scan *s, struct ss_net_inet *ret)
{
	uint64_t number;

	*ret = (struct ss_net_inet){};
	ss_scan_spaces(s);
	if (!ss_scan_number(s, 10, &number) || !ss_scan_char(s, ':') ||
	    !read_address(s, &ret->local) || !read_address(s, &ret->remote))
		return false;
	ss_scan_spaces(s);
	if (!read_hex(s, 2, &number))
		return false;
	ret->state = (unsigned)number;
	return skip_words(s, 5) && ss_scan_number(s, 10, &ret->inode);
}

bool ss_net_next_inet(const char **cursor, const char *end, struct ss_net_inet *ret)
{
	struct ss_scan s;

	while (next_line(cursor, end, &s)) {
		if (read_inet(&s, ret))
			return true;
	}
	return false;
}

/* Num: RefCount Protocol Flags Type St Inode Path */
static bool read_unix(struct ss_scan *s, struct ss_net_unix *ret)
{
	uint64_t flags;
	uint64_t type;
	uint64_t state;

	*ret = (struct ss_net_unix){};
	if (!skip_words(s, 3) || !read_hex(s, 8, &flags))
		return false;
	ss_scan_spaces(s);
	if (!read_hex(s, 4, &type))
		return false;
	ss_scan_spaces(s);
	if (!read_hex(s, 2, &state))
		return false;
	ss_scan_spaces(s);
	if (!ss_scan_number(s, 10, &ret->inode))
		return false;
	ret->listens = flags & ACCEPTS;
	ret->type = (unsigned)type;
	ret->state = (unsigned)state;
	if (ss_scan_char(s, ' ')) {
		ret->path = s->at;
		ret->path_size = (size_t)(s->end - s->at);
	}
	return true;
}

bool ss_net_next_unix(const char **cursor, const char *end, struct ss_net_unix *ret)
{
	struct ss_scan s;

	while (next_line(cursor, end, &s)) {
		if (read_unix(&s, ret))
			return true;
	}
	return false;
}
