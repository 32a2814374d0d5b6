#include "crash/cli/core.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/search.h"
#include "base/vector.h"
#include "crash/dump.h"

enum {
	/* Owners can open their reports; only root can list them. */
	DIRECTORY_MODE = S_IRWXU | S_IXGRP | S_IXOTH,
	MINUTE_S = 60,
	USERS = 128, /* with crashes in the last minute */
	/* One half of each limit is for system users, the other one for all others. */
	SYSTEM_UID_END = SS_DUMP_SYSTEM_UIDS,
	HALVES = 2,
	/* Slots, of which there are more on larger machines; those of one user. */
	HANDLERS_MIN = 4,
	USER_HANDLERS_MIN = 2,
	USER_HANDLERS_MAX = 4,
	/* The part of the quota that a user has. */
	USER_PART = 8,
	/* That of the machine's memory which all handlers have. */
	MEMORY_PART = 4,
	PROCESSES = 2, /* of a handler, that read and interpret */
	BLOCK = 4096,  /* files occupy multiples of this */
	REPORT_MAX = 2 << 20,
	/* Offsets of locks. */
	STATE_LOCK = 0,
	SLOT_LOCKS,
};

/* The symbols of a large program, or a thousand goroutines, fit into that. */
#define MEMORY_MIN ((uint64_t)256 << 20)
#define MEMORY_MAX ((uint64_t)512 << 20)

/* Names of reports begin with this: other files are left alone. */
static const char prefix[] = "crash-";

/* The file with struct state. */
static const char state_name[] = ".handler";
static const char magic[] = "ssreps1";

/* Crashes of a user. */
struct user_crashes {
	uint32_t uid;
	uint32_t begun;	   /* reports in the minute */
	uint64_t since_ns; /* that begins here: CLOCK_BOOTTIME, perhaps of another boot */
};

struct state {
	char magic[sizeof(magic)];
	uint64_t refused;
	uint32_t slots[SS_CORE_HANDLERS_MAX]; /* uid; valid while the slot is locked */
	struct user_crashes users[USERS];
};

/* A user with reports. */
struct owner {
	uid_t uid;
	uint64_t size; /* of the reports */
};

struct file {
	char *name; /* owned; NULL: removed */
	size_t owner;
	struct timespec time;
	uint64_t size;
};

struct list {
	SS_VECTOR(struct file) files; /* the oldest first */
	SS_VECTOR(struct owner) owners;
};

static bool is_system(uid_t uid)
{
	return uid < SYSTEM_UID_END;
}

/* The first of count elements that are for this kind of user; there are count / HALVES. */
static unsigned first_for(uid_t uid, unsigned count)
{
	return is_system(uid) ? count / HALVES : 0;
}

struct ss_core_limits ss_core_reports_limits(uint64_t memory)
{
	const uint64_t all = memory / MEMORY_PART;
	const uint64_t each =
		SS_MIN(SS_MAX(all / SS_CORE_HANDLERS_MAX, MEMORY_MIN), MEMORY_MAX);
	const uint64_t handlers =
		SS_MIN(all / PROCESSES / each, (uint64_t)SS_CORE_HANDLERS_MAX);

	return (struct ss_core_limits){
		.handlers = SS_MAX((unsigned)handlers / HALVES * HALVES,
				   (unsigned)HANDLERS_MIN),
		.process_memory = each,
	};
}

/* Directory --------------------------------------------------------------------- */

/* No other user may replace anything in it. length: of what was opened of the path. */
static struct ss_error *check_directory(int fd, const char *path, size_t length)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return ss_error_new_errno(errno, "cannot open '%s'", path);
	if ((status.st_uid == 0 || status.st_uid == geteuid()) &&
	    !(status.st_mode & (S_IWGRP | S_IWOTH)))
		return NULL;
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_DENIED,
			     "'%.*s' belongs to another user, or others may write to it",
			     (int)SS_MAX(length, (size_t)1), path),
		"reports must be in a directory that belongs to root, as all its parents "
		"must");
}

static struct ss_error *open_component(int *fd, const char *path, const char *name,
				       size_t length, bool last)
{
	static const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	bool made = last && mkdirat(*fd, name, 0700) == 0;
	int next = openat(*fd, name, flags);
	int errnum = errno;

	if (next < 0)
		return errnum == ENOTDIR ?
			       ss_error_new(
				       SS_ERROR_DENIED,
				       "'%.*s' is a symbolic link, or not a directory",
				       (int)length, path) :
			       ss_error_new_errno(errnum, "cannot open '%.*s'",
						  (int)length, path);
	if (made) /* or it stays closed to others */
		(void)fchmodat(next, ".", DIRECTORY_MODE, 0);
	(void)close(*fd);
	*fd = next;
	return check_directory(next, path, length);
}

/* One component after the other, without symbolic links, and thus without magic ones: like
   openat2(2), which not every kernel has, but with a check of each. */
static struct ss_error *open_directory(const char *path, int *ret)
{
	_cleanup_close_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *copy = strdup(path);
	const char *end = path + strlen(path);
	char *rest = NULL;

	if (*path != '/')
		return ss_error_new(SS_ERROR_INVALID,
				    "--directory: '%s' does not begin with /: the kernel "
				    "runs the handler in the root directory",
				    path);
	if (!copy)
		return ss_error_no_memory();
	while (end > path && end[-1] == '/')
		end--;
	struct ss_error *error = check_directory(fd, path, 0);
	for (char *name = strtok_r(copy, "/", &rest); name && !error;
	     name = strtok_r(NULL, "/", &rest)) {
		size_t length = (size_t)(name - copy) + strlen(name);
		error = open_component(&fd, path, name, length,
				       length == (size_t)(end - path));
	}
	if (!error)
		*ret = take_fd(fd);
	return error;
}

/* State ------------------------------------------------------------------------- */

/* Locks of an open file: a child process has them too, and the kernel releases them. */
static int lock(int fd, int command, short type, off_t offset)
{
	struct flock range = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1
	};

	if (fcntl(fd, command, &range) != 0)
		return -errno;
	return command == F_OFD_GETLK && range.l_type != F_UNLCK ? -EAGAIN : 0;
}

static void unlock(const struct ss_core_reports *reports)
{
	(void)lock(reports->state, F_OFD_SETLK, F_UNLCK, STATE_LOCK); /* cannot fail */
}

static struct ss_error *open_state(int directory, int *ret)
{
	_cleanup_close_ int fd = openat(directory, state_name,
					O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int errnum = errno;
	struct stat status;

	if (fd < 0)
		return ss_error_new_errno(errnum, "cannot open '%s' of --directory",
					  state_name);
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
	    status.st_uid != geteuid() || status.st_nlink != 1)
		return ss_error_new(SS_ERROR_DENIED,
				    "'%s' of --directory belongs to another user",
				    state_name);
	*ret = take_fd(fd);
	return NULL;
}

struct ss_error *ss_core_reports_open(const char *path, struct ss_core_reports *ret)
{
	_cleanup_close_ int directory = -1;
	struct ss_error *error = open_directory(path, &directory);

	if (!error)
		error = open_state(directory, &ret->state);
	if (!error)
		ret->directory = take_fd(directory);
	return error;
}

void ss_core_reports_close(struct ss_core_reports *reports)
{
	close_cleanup(&reports->directory);
	close_cleanup(&reports->state);
	reports->directory = reports->state = -1;
}

/* Locks it until unlock(). */
static struct ss_error *read_state(const struct ss_core_reports *reports,
				   struct state *ret)
{
	int error = lock(reports->state, F_OFD_SETLKW, F_WRLCK, STATE_LOCK);

	if (error)
		return ss_error_new_errno(-error, "locking '%s'", state_name);
	if (ss_io_pread(reports->state, ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret) ||
	    memcmp(ret->magic, magic, sizeof(magic)) != 0) {
		*ret = (struct state){};
		memcpy(ret->magic, magic, sizeof(magic));
	}
	return NULL;
}

static struct ss_error *write_state(const struct ss_core_reports *reports,
				    const struct state *state)
{
	if (pwrite(reports->state, state, sizeof(*state), 0) == (ssize_t)sizeof(*state))
		return NULL;
	return ss_error_new_errno(errno, "writing '%s'", state_name);
}

/* NULL: too many users. */
static struct user_crashes *find_user(struct state *state, uid_t uid, uint64_t now_ns)
{
	struct user_crashes *users = &state->users[first_for(uid, USERS)];
	struct user_crashes *unused = NULL;

	for (unsigned i = 0; i < USERS / HALVES; i++) {
		struct user_crashes *user = &users[i];
		bool over = user->since_ns > now_ns ||
			    now_ns - user->since_ns >= MINUTE_S * SS_NS_PER_SECOND;
		if (user->begun > 0 && !over && user->uid == uid)
			return user;
		if (user->begun == 0 || over)
			unused = user;
	}
	if (unused)
		*unused = (struct user_crashes){ .uid = uid, .since_ns = now_ns };
	return unused;
}

static struct ss_error *take_slot(const struct ss_core_reports *reports,
				  struct state *state, uid_t uid, unsigned handlers)
{
	/* One is left for other users, if there are enough. */
	const unsigned user_max =
		SS_MAX(SS_MIN(handlers / HALVES - 1, (unsigned)USER_HANDLERS_MAX),
		       (unsigned)USER_HANDLERS_MIN);
	unsigned first = first_for(uid, SS_CORE_HANDLERS_MAX);
	unsigned own = 0;
	unsigned unused = SS_CORE_HANDLERS_MAX;

	for (unsigned i = first; i < first + handlers / HALVES; i++) {
		if (lock(reports->state, F_OFD_GETLK, F_WRLCK, SLOT_LOCKS + i) == 0)
			unused = i;
		else
			own += state->slots[i] == uid;
	}
	if (own >= user_max)
		return ss_error_new(SS_ERROR_SYSTEM,
				    "%u reports of user %u are being written", own, uid);
	if (unused == SS_CORE_HANDLERS_MAX)
		return ss_error_new(SS_ERROR_SYSTEM, "%u reports are being written",
				    handlers / HALVES);
	state->slots[unused] = uid;
	int error = lock(reports->state, F_OFD_SETLK, F_WRLCK, SLOT_LOCKS + unused);
	return error ? ss_error_new_errno(-error, "locking '%s'", state_name) : NULL;
}

struct ss_error *ss_core_reports_begin(const struct ss_core_reports *reports, uid_t uid,
				       unsigned rate, unsigned handlers)
{
	struct state state;
	struct ss_error *error = read_state(reports, &state);

	if (error)
		return error;
	struct user_crashes *user = find_user(&state, uid, ss_clock_ns(CLOCK_BOOTTIME));
	if (!user)
		error = ss_error_new(SS_ERROR_SYSTEM,
				     "processes of %d users crashed in the last minute",
				     USERS / HALVES);
	else if (user->begun >= rate)
		error = ss_error_new(SS_ERROR_SYSTEM,
				     "there were %u of user %u in the last minute "
				     "(--rate)",
				     user->begun, uid);
	else
		error = take_slot(reports, &state, uid, handlers);
	if (error)
		state.refused++;
	else
		user->begun++;
	struct ss_error *failure = write_state(reports, &state);
	unlock(reports);
	if (!error)
		return failure;
	ss_error_free(failure); /* it would not have been written in any case */
	return error;
}

bool ss_core_reports_read_refused(int directory, uint64_t *ret)
{
	_cleanup_close_ int fd =
		openat(directory, state_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat above;
	struct stat status;
	struct state state;

	if (fd < 0 || fstat(directory, &above) != 0 || fstat(fd, &status) != 0 ||
	    !S_ISREG(status.st_mode) || status.st_uid != above.st_uid ||
	    ss_io_pread(fd, &state, sizeof(state), 0) != (ssize_t)sizeof(state) ||
	    memcmp(state.magic, magic, sizeof(magic)) != 0)
		return false;
	*ret = state.refused;
	return true;
}

/* Reports ----------------------------------------------------------------------- */

struct ss_error *ss_core_reports_name(const struct ss_core_process *process,
				      const char *format, char ret[NAME_MAX + 1])
{
	char name[SS_DUMP_NAME_MAX];
	size_t size = 0;

	for (; process->about.name[size] && size + 1 < sizeof(name); size++) {
		char c = process->about.name[size];
		bool plain = isascii(c) && (isalnum(c) || strchr("._-", c));
		name[size] = plain ? c : '_';
	}
	name[size] = '\0';
	int n = snprintf(ret, NAME_MAX + 1, "%s%s-%u-%d-%llu.%s", prefix, name,
			 process->about.account, process->pid,
			 (unsigned long long)process->time_s, format);
	return n > 0 && n <= NAME_MAX ?
		       NULL :
		       ss_error_new(SS_ERROR_INVALID, "the report's name is too long");
}

bool ss_core_reports_has_written(const char *name, const struct stat *status, uid_t owner,
				 uid_t *ret)
{
	enum { NUMBERS = 3 }; /* user, process, time */
	const char *at = strrchr(name, '.');

	if (!S_ISREG(status->st_mode) || status->st_uid != owner ||
	    status->st_nlink != 1 || strncmp(name, prefix, strlen(prefix)) != 0 || !at)
		return false;
	for (unsigned i = 0; i < NUMBERS; i++) {
		const char *end = at;
		while (at > name && isdigit((unsigned char)at[-1]))
			at--;
		if (at == end || at == name || *--at != '-')
			return false;
	}
	*ret = (uid_t)strtoul(at + 1, NULL, 10);
	return true;
}

void ss_core_reports_allow(int fd, uid_t uid)
{
	enum { NONE = 0, ENTRIES = 5 };
	static const uint32_t no_id = UINT32_MAX; /* ACL_UNDEFINED_ID */
	struct {
		struct posix_acl_xattr_header header;
		struct posix_acl_xattr_entry entries[ENTRIES];
	} list = {
		.header = { .a_version = htole32(POSIX_ACL_XATTR_VERSION) },
		.entries = {
			{ htole16(ACL_USER_OBJ), htole16(ACL_READ | ACL_WRITE),
			  htole32(no_id) },
			{ htole16(ACL_USER), htole16(ACL_READ), htole32(uid) },
			{ htole16(ACL_GROUP_OBJ), NONE, htole32(no_id) },
			{ htole16(ACL_MASK), htole16(ACL_READ),
			  htole32(no_id) },
			{ htole16(ACL_OTHER), NONE, htole32(no_id) },
		},
	};

	/* Otherwise only root can read it. */
	(void)fsetxattr(fd, "system.posix_acl_access", &list, sizeof(list), 0);
}

static void free_list(struct list *list)
{
	for (size_t i = 0; i < list->files.count; i++)
		free(list->files.items[i].name);
	ss_vector_free(&list->files);
	ss_vector_free(&list->owners);
}

static int compare_files(const void *a, const void *b)
{
	const struct timespec *x = &((const struct file *)a)->time;
	const struct timespec *y = &((const struct file *)b)->time;

	return SS_COMPARE(x->tv_sec, y->tv_sec) ?: SS_COMPARE(x->tv_nsec, y->tv_nsec);
}

/* False without memory. */
static bool find_owner(struct list *list, uid_t uid, size_t *ret)
{
	for (*ret = 0; *ret < list->owners.count; ++*ret) {
		if (list->owners.items[*ret].uid == uid)
			return true;
	}
	struct owner *owner = ss_vector_push(&list->owners);
	if (owner)
		*owner = (struct owner){ .uid = uid };
	return owner != NULL;
}

/* False without memory. */
static bool add_file(struct list *list, const char *name, const struct stat *status,
		     uid_t uid)
{
	uint64_t blocks = ((uint64_t)status->st_size + BLOCK - 1) / BLOCK;
	_cleanup_free_ char *copy = strdup(name);
	size_t owner;
	struct file *file = copy && find_owner(list, uid, &owner) ?
				    ss_vector_push(&list->files) :
				    NULL;

	if (!file)
		return false;
	*file = (struct file){ .name = take_ptr(copy),
			       .owner = owner,
			       .time = status->st_mtim,
			       .size = blocks * BLOCK };
	list->owners.items[owner].size += file->size;
	return true;
}

/* Lists as many reports as there is memory for. */
static void list_files(int fd, struct list *ret)
{
	DIR *dir = ss_io_open_directory(fd, ".");
	bool ok = true;

	if (!dir)
		return;
	for (struct dirent *entry; ok && (entry = readdir(dir));) {
		struct stat status;
		uid_t uid;
		if (fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		    ss_core_reports_has_written(entry->d_name, &status, geteuid(), &uid))
			ok = add_file(ret, entry->d_name, &status, uid);
	}
	(void)closedir(dir); /* only read from */
	if (ret->files.count > 1)
		qsort(ret->files.items, ret->files.count, sizeof(*ret->files.items),
		      compare_files);
}

/* Removes the oldest reports of a user until the others have at most that many bytes. */
static void remove_oldest(int directory, struct list *list, size_t owner, uint64_t max)
{
	uint64_t *size = &list->owners.items[owner].size;

	for (size_t i = 0; i<list->files.count && * size> max; i++) {
		struct file *file = &list->files.items[i];
		if (!file->name || file->owner != owner)
			continue;
		/* Its user may have it open, and would keep what it occupies. */
		_cleanup_close_ int fd =
			openat(directory, file->name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			(void)!ftruncate(fd, 0);
		(void)unlinkat(directory, file->name, 0); /* or the next one tries it */
		free(take_ptr(file->name));
		*size -= file->size;
	}
}

/* Takes from the user who has the most, until this kind of users has at most that many bytes. */
static void divide(int directory, struct list *list, bool system, uint64_t max)
{
	for (;;) {
		uint64_t total = 0;
		size_t largest = 0;
		uint64_t most = 0;
		for (size_t i = 0; i < list->owners.count; i++) {
			const struct owner *owner = &list->owners.items[i];
			if (is_system(owner->uid) != system)
				continue;
			total += owner->size;
			if (owner->size > most) {
				most = owner->size;
				largest = i;
			}
		}
		if (total <= max)
			return;
		remove_oldest(directory, list, largest, most - 1);
	}
}

void ss_core_reports_expire(const struct ss_core_reports *reports, uint64_t quota)
{
	_cleanup_(free_list) struct list list = {};

	if (lock(reports->state, F_OFD_SETLKW, F_WRLCK, STATE_LOCK) != 0)
		return;
	list_files(reports->directory, &list);
	for (size_t i = 0; i < list.owners.count; i++)
		remove_oldest(reports->directory, &list, i, quota / USER_PART);
	divide(reports->directory, &list, false, quota / HALVES);
	divide(reports->directory, &list, true, quota / HALVES);
	unlock(reports);
}

uint64_t ss_core_reports_size_max(uint64_t quota)
{
	return SS_MIN(quota / USER_PART, (uint64_t)REPORT_MAX);
}
