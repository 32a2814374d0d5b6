#include "proc/locks.h"

#include "base/cleanup.h"
#include "base/scan.h"

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

static bool read_pid(struct ss_scan *s, struct ss_file_lock *ret)
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
	if (!read_pid(s, ret))
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
