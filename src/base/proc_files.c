#include "base/procfs.h"

#include <limits.h>

#include "base/cleanup.h"
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
	else if (read_key(&s, "fuse_connection"))
		ret->has_connection = ss_scan_number(&s, 10, &ret->connection);
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

/* include/uapi/linux/net.h: __SO_ACCEPTCON */
enum { ACCEPTS = 1 << 16 };

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

/* A word in which special characters are octal: "\\040". */
static bool read_path(struct ss_scan *s, char path[PATH_MAX])
{
	size_t size = 0;

	while (s->at < s->end && *s->at != ' ' && size < PATH_MAX - 1) {
		unsigned code = 0;
		struct ss_scan digits = { s->at + 1, s->at + 4 };
		if (*s->at == '\\' && s->end - s->at >= 4 && read_octal(&digits, &code) &&
		    digits.at == digits.end && code) {
			path[size++] = (char)code;
			s->at = digits.at;
		} else {
			path[size++] = *s->at++;
		}
	}
	path[size] = '\0';
	return size > 0 && s->at < s->end && *s->at == ' ';
}

/* id parent major:minor root path options tags... - type source options */
static bool read_mount(struct ss_scan *s, struct ss_mount *ret)
{
	uint64_t major;
	uint64_t minor;

	ret->is_fuse = false;
	if (!skip_words(s, 2) || !ss_scan_number(s, 10, &major) ||
	    !ss_scan_char(s, ':') || !ss_scan_number(s, 10, &minor) ||
	    !skip_words(s, 1) || !read_path(s, ret->path))
		return false;
	ret->device = major << 32 | minor;
	for (ss_scan_spaces(s); s->at < s->end; (void)skip_words(s, 1)) {
		if (!ss_scan_text(s, "- "))
			continue;
		ret->is_fuse = ss_scan_text(s, "fuse") &&
			       !ss_scan_text(s, "ctl"); /* its settings */
		return true;
	}
	return false;
}

bool ss_mounts_next(const char **cursor, const char *end, struct ss_mount *ret)
{
	struct ss_scan s;

	while (next_line(cursor, end, &s)) {
		if (read_mount(&s, ret))
			return true;
	}
	return false;
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

static bool read_type(struct ss_scan *s, struct ss_file_lock *ret)
{
	static const struct {
		const char *name;
		enum ss_file_lock_type type;
	} types[] = {
		{ "POSIX ", SS_FILE_LOCK_POSIX },
		{ "OFDLCK ", SS_FILE_LOCK_OFD },
		{ "FLOCK ", SS_FILE_LOCK_FLOCK },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(types); i++) {
		if (!ss_scan_text(s, types[i].name))
			continue;
		ret->type = types[i].type;
		return true;
	}
	return false;
}

static bool read_holder(struct ss_scan *s, struct ss_file_lock *ret)
{
	bool negative = ss_scan_char(s, '-');
	uint64_t pid;

	if (!ss_scan_number(s, 10, &pid) || pid > INT32_MAX)
		return false;
	ret->pid = negative ? -1 : (pid_t)pid;
	return true;
}

/* "08:01:1234": major and minor are hexadecimal */
static bool read_file(struct ss_scan *s, struct ss_file_lock *ret)
{
	uint64_t major;
	uint64_t minor;

	if (!ss_scan_number(s, 16, &major) || !ss_scan_char(s, ':') ||
	    !ss_scan_number(s, 16, &minor) || !ss_scan_char(s, ':'))
		return false;
	ret->device = major << 32 | (minor & UINT32_MAX);
	return ss_scan_number(s, 10, &ret->inode);
}

/* "1: POSIX  ADVISORY  WRITE 4711 08:01:1234 0 EOF", "1: -> FLOCK ..." */
static bool read_lock(struct ss_scan *s, struct ss_file_lock *ret)
{
	*ret = (struct ss_file_lock){ .last = UINT64_MAX };
	if (!ss_scan_number(s, 10, &ret->id) || !ss_scan_char(s, ':'))
		return false;
	ss_scan_spaces(s);
	ret->waits = ss_scan_text(s, "->");
	ss_scan_spaces(s);
	if (!read_type(s, ret))
		return false;
	ss_scan_spaces(s);
	while (s->at < s->end && *s->at != ' ') /* ADVISORY, MANDATORY */
		s->at++;
	ss_scan_spaces(s);
	ret->write = ss_scan_text(s, "WRITE");
	if (!ret->write && !ss_scan_text(s, "READ"))
		return false;
	ss_scan_spaces(s);
	if (!read_holder(s, ret))
		return false;
	ss_scan_spaces(s);
	if (!read_file(s, ret))
		return false;
	ss_scan_spaces(s);
	if (!ss_scan_number(s, 10, &ret->first))
		return false;
	ss_scan_spaces(s);
	return ss_scan_text(s, "EOF") || ss_scan_number(s, 10, &ret->last);
}

bool ss_locks_next(const char **cursor, const char *end, struct ss_file_lock *ret)
{
	while (*cursor < end) {
		const char *newline = memchr(*cursor, '\n', (size_t)(end - *cursor));
		struct ss_scan s = { .at = *cursor, .end = newline ? newline : end };
		*cursor = newline ? newline + 1 : end;
		if (read_lock(&s, ret))
			return true;
	}
	return false;
}

static bool is_of_kind(const struct ss_file_lock *lock,
		       const struct ss_lock_request *request)
{
	return lock->inode == request->inode && lock->device == request->device &&
	       lock->type == request->type;
}

static bool is_waiter(const struct ss_file_lock *lock,
		      const struct ss_lock_request *request)
{
	return lock->waits && (lock->pid == request->pid || lock->pid == -1) &&
	       (!request->ranged ||
		(lock->first == request->first &&
		 (lock->last == request->last || lock->last >= INT64_MAX)));
}

static bool excludes(const struct ss_file_lock *lock,
		     const struct ss_lock_request *request)
{
	return !lock->waits && request->ranged && (lock->write || request->write) &&
	       lock->first <= request->last && lock->last >= request->first;
}

/* Finds the acquired lock with this id. */
static bool find_held(const char *text, size_t size, uint64_t id,
		      struct ss_file_lock *ret)
{
	const char *cursor = text;

	while (ss_locks_next(&cursor, text + size, ret)) {
		if (!ret->waits && ret->id == id)
			return true;
	}
	return false;
}

bool ss_locks_find(const char *text, size_t size, const struct ss_lock_request *request,
		   struct ss_file_lock *ret)
{
	const char *cursor = text;
	struct ss_file_lock lock;
	unsigned count = 0;

	while (ss_locks_next(&cursor, text + size, &lock)) {
		if (!is_of_kind(&lock, request))
			continue;
		if (is_waiter(&lock, request))
			return find_held(text, size, lock.id, ret);
		if (excludes(&lock, request)) {
			*ret = lock;
			count++;
		}
	}
	return count == 1 && ret->pid != request->pid;
}
