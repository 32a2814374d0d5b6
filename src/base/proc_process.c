#include "base/procfs.h"

#include <linux/auxvec.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/scan.h"

/* include/linux/sched.h */
enum {
	PF_EXITING = 0x4,
	PF_IO_WORKER = 0x10,
	PF_FORKNOEXEC = 0x40,
	PF_USER_WORKER = 0x4000,
	PF_KTHREAD = 0x200000,
};

/* Fields of stat after comm, by their number in proc_pid_stat(5). */
enum {
	FIELD_PARENT = 4,
	FIELD_FLAGS = 9,
	FIELD_USER_TIME = 14,
	FIELD_SYSTEM_TIME = 15,
	FIELD_START_TIME = 22,
	FIELD_START_CODE = 26,
	FIELD_END_CODE = 27,
	FIELD_START_STACK = 28,
	FIELD_PROCESSOR = 39
};

static void copy_comm(const char *from, const char *to, struct ss_stat *ret)
{
	size_t size = SS_MIN((size_t)(to - from), sizeof(ret->comm) - 1);

	memcpy(ret->comm, from, size);
	ret->comm[size] = '\0';
}

/* Fields to parse, by number. Fields that older kernels lack stay zero. */
static bool scan_fields(struct ss_scan *s, uint64_t *ret)
{
	for (int field = 4; field <= FIELD_PROCESSOR; field++) {
		ss_scan_spaces(s);
		(void)ss_scan_char(
			s, '-'); /* some fields are negative, but none of those listed */
		if (!ss_scan_number(s, 10, &ret[field]))
			return field > FIELD_START_TIME;
	}
	return true;
}

static uint64_t mix_program(const uint64_t *fields)
{
	static const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t mixed = fields[FIELD_START_CODE];

	mixed = mixed * factor + fields[FIELD_END_CODE];
	return mixed * factor + fields[FIELD_START_STACK];
}

/* The flags had other meanings in older kernels, and names are arbitrary: check both. */
static bool is_worker(uint64_t flags, const char *comm)
{
	return ((flags & PF_IO_WORKER) && strncmp(comm, "iou-", 4) == 0) ||
	       ((flags & PF_USER_WORKER) && strncmp(comm, "vhost-", 6) == 0);
}

bool ss_stat_parse(const char *text, size_t size, struct ss_stat *ret)
{
	struct ss_scan s = { .at = text, .end = text + size };
	const char *open = memchr(text, '(', size);
	const char *close = memrchr(text, ')', size);
	uint64_t pid;
	uint64_t fields[FIELD_PROCESSOR + 1] = {};

	if (!open || !close || close < open || text + size - close < 4)
		return false;
	*ret = (struct ss_stat){};
	if (!ss_scan_number(&s, 10, &pid) || pid > INT32_MAX)
		return false;
	copy_comm(open + 1, close, ret);
	ret->pid = (pid_t)pid;
	ret->state = close[2];
	s.at = close + 3;
	if (!scan_fields(&s, fields))
		return false;
	ret->parent = (pid_t)SS_MIN(fields[FIELD_PARENT], (uint64_t)INT32_MAX);
	ret->start_time = fields[FIELD_START_TIME];
	ret->user_ticks = fields[FIELD_USER_TIME];
	ret->system_ticks = fields[FIELD_SYSTEM_TIME];
	ret->processor = (int)SS_MIN(fields[FIELD_PROCESSOR], (uint64_t)INT32_MAX);
	ret->kernel_thread = fields[FIELD_FLAGS] & PF_KTHREAD;
	ret->program = mix_program(fields);
	ret->worker = is_worker(fields[FIELD_FLAGS], ret->comm);
	ret->forked = fields[FIELD_FLAGS] & PF_FORKNOEXEC;
	ret->exiting = fields[FIELD_FLAGS] & PF_EXITING;
	return true;
}

/* The text after "NAME:" at the start of a line, up to its end. */
static bool find_line(const char *text, size_t size, const char *name,
		      struct ss_scan *ret)
{
	const char *end = text + size;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct ss_scan line = { .at = text, .end = newline ? newline : end };
		if (*text == *name && ss_scan_text(&line, name) &&
		    ss_scan_char(&line, ':')) {
			ss_scan_spaces(&line);
			*ret = line;
			return true;
		}
		text = newline ? newline + 1 : end;
	}
	return false;
}

static bool find_numbers(const char *text, size_t size, const char *name, unsigned base,
			 uint64_t *ret, size_t count)
{
	struct ss_scan line;

	if (!find_line(text, size, name, &line))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!ss_scan_number(&line, base, &ret[i]))
			return false;
		ss_scan_spaces(&line);
	}
	return true;
}

/* NSpid has the id in each pid namespace, from that of /proc inwards. */
static void scan_inner_id(const char *text, size_t size, struct ss_status *ret)
{
	struct ss_scan line;
	uint64_t id;

	if (!find_line(text, size, "NSpid", &line))
		return;
	while (ss_scan_number(&line, 10, &id) && id <= INT32_MAX) {
		ret->inner_id = (pid_t)id;
		ret->id_count++;
		ss_scan_spaces(&line);
	}
}

bool ss_status_dumps_core(const char *text, size_t size)
{
	uint64_t dumping;

	return find_numbers(text, size, "CoreDumping", 10, &dumping, 1) && dumping != 0;
}

bool ss_status_refuses_huge_pages(const char *text, size_t size)
{
	uint64_t enabled;

	return find_numbers(text, size, "THP_enabled", 10, &enabled, 1) && enabled == 0;
}

bool ss_status_parse(const char *text, size_t size, struct ss_status *ret)
{
	uint64_t tgid;
	uint64_t tracer = 0;
	uint64_t parent = 0;
	uint64_t seccomp = 0;
	uint64_t privileges = 0;
	uint64_t swapped = 0;
	uint64_t ids[3] = {};

	*ret = (struct ss_status){};
	if (!find_numbers(text, size, "Tgid", 10, &tgid, 1) || tgid > INT32_MAX)
		return false;
	ret->tgid = (pid_t)tgid;
	if (find_numbers(text, size, "TracerPid", 10, &tracer, 1) && tracer <= INT32_MAX)
		ret->tracer = (pid_t)tracer;
	if (find_numbers(text, size, "PPid", 10, &parent, 1) && parent <= INT32_MAX)
		ret->parent = (pid_t)parent;
	if (find_numbers(text, size, "Uid", 10, ids, 3)) {
		for (int i = 0; i < 3; i++)
			ret->uid[i] = (uid_t)ids[i];
	}
	if (find_numbers(text, size, "Gid", 10, ids, 3)) {
		for (int i = 0; i < 3; i++)
			ret->gid[i] = (gid_t)ids[i];
	}
	(void)find_numbers(text, size, "CapEff", 16, &ret->cap_effective, 1);
	(void)find_numbers(text, size, "CapPrm", 16, &ret->cap_permitted, 1);
	(void)find_numbers(text, size, "SigCgt", 16, &ret->handled_signals, 1);
	(void)find_numbers(text, size, "SigIgn", 16, &ret->ignored_signals, 1);
	(void)find_numbers(text, size, "ShdPnd", 16, &ret->pending_signals, 1);
	ret->no_new_privileges =
		find_numbers(text, size, "NoNewPrivs", 10, &privileges, 1) &&
		privileges != 0;
	ret->seccomp_filter = find_numbers(text, size, "Seccomp", 10, &seccomp, 1) &&
			      seccomp != 0;
	ret->dumping_core = ss_status_dumps_core(text, size);
	ret->not_swapped = find_numbers(text, size, "VmSwap", 10, &swapped, 1) &&
			   swapped == 0;
	(void)find_numbers(text, size, "voluntary_ctxt_switches", 10,
			   &ret->voluntary_switches, 1);
	(void)find_numbers(text, size, "nonvoluntary_ctxt_switches", 10,
			   &ret->forced_switches, 1);
	scan_inner_id(text, size, ret);
	return true;
}

size_t ss_kernel_stack_clean(char *text, size_t size)
{
	size_t done = 0;

	for (size_t at = 0; at < size;) {
		const char *newline = memchr(text + at, '\n', size - at);
		size_t end = newline ? (size_t)(newline - text) : size;
		const char *space = memchr(text + at, ' ', end - at);
		if (space && text[at] == '[')
			at = (size_t)(space - text) + 1;
		if (done > 0 && at < end)
			text[done++] = '\n';
		memmove(text + done, text + at, end - at);
		done += end - at;
		at = end + 1;
	}
	text[done] = '\0';
	return done;
}

bool ss_schedstat_parse(const char *text, size_t size, struct ss_schedstat *ret)
{
	struct ss_scan s = { .at = text, .end = text + size };
	uint64_t *const fields[] = { &ret->run_ns, &ret->wait_ns, &ret->run_count };

	*ret = (struct ss_schedstat){};
	for (size_t i = 0; i < SS_ARRAY_SIZE(fields); i++) {
		ss_scan_spaces(&s);
		if (!ss_scan_number(&s, 10, fields[i]))
			return false;
	}
	return true;
}

static bool scan_hex(struct ss_scan *s, uint64_t *ret)
{
	ss_scan_spaces(s);
	return ss_scan_text(s, "0x") && ss_scan_number(s, 16, ret);
}

bool ss_syscall_parse(const char *text, size_t size, struct ss_syscall_text *ret)
{
	struct ss_scan s = { .at = text, .end = text + size };
	uint64_t number;

	*ret = (struct ss_syscall_text){ .number = -1 };
	if (ss_scan_text(&s, "running"))
		return true;
	if (ss_scan_text(&s, "-1")) {
		ret->kind = SS_SYSCALL_NONE;
		return scan_hex(&s, &ret->sp) && scan_hex(&s, &ret->pc);
	}
	if (!ss_scan_number(&s, 10, &number) || number > INT32_MAX)
		return false;
	for (size_t i = 0; i < SS_ARRAY_SIZE(ret->args); i++) {
		if (!scan_hex(&s, &ret->args[i]))
			return false;
	}
	ret->kind = SS_SYSCALL_BLOCKED;
	ret->number = (long)number;
	return scan_hex(&s, &ret->sp) && scan_hex(&s, &ret->pc);
}

bool ss_auxv_find(const void *bytes, size_t size, size_t word, uint64_t type,
		  uint64_t *ret)
{
	for (size_t at = 0; size - at >= 2 * word; at += 2 * word) {
		uint64_t entry[2] = {};
		memcpy(&entry[0], (const char *)bytes + at, word);
		memcpy(&entry[1], (const char *)bytes + at + word, word);
		if (entry[0] == type) {
			*ret = entry[1];
			return true;
		}
	}
	return false;
}

static bool has_page_size(const char *bytes, size_t size, size_t word)
{
	uint64_t page;

	return ss_auxv_find(bytes, size, word, AT_PAGESZ, &page) && page != 0;
}

unsigned ss_auxv_word(const void *bytes, size_t size)
{
	/* In a vector of 32-bit words no pair looks like a 64-bit type: the upper half
	   would be the page size. */
	if (has_page_size(bytes, size, sizeof(uint64_t)))
		return sizeof(uint64_t);
	return has_page_size(bytes, size, sizeof(uint32_t)) ? sizeof(uint32_t) : 0;
}

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
