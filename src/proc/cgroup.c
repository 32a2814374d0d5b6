#include "proc/cgroup.h"

#include "base/scan.h"

static bool next_line(struct ss_scan *rest, struct ss_scan *ret)
{
	if (rest->at == rest->end)
		return false;
	const char *end = memchr(rest->at, '\n', (size_t)(rest->end - rest->at));
	*ret = (struct ss_scan){ rest->at, end ? end : rest->end };
	rest->at = end ? end + 1 : rest->end;
	return true;
}

/* Absolute, without "..". */
static bool is_inside(const char *path, size_t size)
{
	struct ss_scan s = { path, path + size };

	if (size == 0 || *path != '/' || memchr(path, '\0', size))
		return false;
	while (ss_scan_char(&s, '/')) {
		const char *name = s.at;
		while (s.at < s.end && *s.at != '/')
			s.at++;
		if (s.at - name == 2 && name[0] == '.' && name[1] == '.')
			return false;
	}
	return true;
}

bool ss_cgroup_find_path(const char *text, size_t size, const char **ret,
			 size_t *ret_size)
{
	struct ss_scan rest = { text, text + size };
	struct ss_scan line;

	while (next_line(&rest, &line)) {
		if (!ss_scan_text(&line, "0::"))
			continue;
		*ret = line.at;
		*ret_size = (size_t)(line.end - line.at);
		return is_inside(*ret, *ret_size);
	}
	return false;
}

/* Moves to the path of a line such as "4:memory:/a". */
static bool skip_to_path(struct ss_scan *line)
{
	for (int colons = 0; colons < 2 && line->at < line->end; line->at++)
		colons += *line->at == ':';
	return line->at < line->end && *line->at == '/';
}

bool ss_cgroup_is_below(const char *text, size_t size, const char *path)
{
	struct ss_scan rest = { text, text + size };
	struct ss_scan line;
	size_t length = strlen(path);

	while (length > 0 && path[length - 1] == '/')
		length--;
	while (next_line(&rest, &line)) {
		if (!skip_to_path(&line))
			continue;
		size_t left = (size_t)(line.end - line.at);
		if (left >= length && memcmp(line.at, path, length) == 0 &&
		    (left == length || line.at[length] == '/') &&
		    is_inside(line.at, left))
			return true;
	}
	return false;
}

bool ss_cgroup_is_frozen(const char *text, size_t size)
{
	struct ss_scan rest = { text, text + size };
	struct ss_scan line;

	while (next_line(&rest, &line)) {
		if (ss_scan_text(&line, "frozen 1") && line.at == line.end)
			return true;
	}
	return false;
}

bool ss_cgroup_has_thread(const char *text, size_t size, pid_t tid)
{
	struct ss_scan rest = { text, text + size };
	struct ss_scan line;
	uint64_t number;

	while (next_line(&rest, &line)) {
		if (ss_scan_number(&line, 10, &number) && line.at == line.end &&
		    number == (uint64_t)tid)
			return true;
	}
	return false;
}
