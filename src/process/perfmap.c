#include "process/perfmap.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "process/files.h"
#include "process/references.h"

/* Tolerance for clocks that were adjusted since, and for the resolution of file systems
   (ext3: one second; FAT: two). */
enum { CLOCK_TOLERANCE_S = 3 };

/* The start of the process by the clock of file systems. */
static int64_t start_second(const struct ss_target *target)
{
	struct timespec now;
	struct timespec up;
	long ticks = sysconf(_SC_CLK_TCK);

	/* These cannot fail: Linux has both clocks. */
	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	return now.tv_sec - up.tv_sec +
	       (int64_t)(target->start_time / (uint64_t)SS_MAX(ticks, 1L));
}

/*
 * Whether the target wrote the file. A file that is older than the process comes from an
 * earlier process with this pid and has wrong names. A file of another user, or with
 * several links, may have been planted.
 */
static bool is_its_own(const struct ss_target *target, const struct ss_status *status,
		       const struct stat *st)
{
	return (st->st_uid == status->uid[1] || st->st_uid == 0) && st->st_nlink == 1 &&
	       st->st_mtim.tv_sec + CLOCK_TOLERANCE_S >= start_second(target);
}

struct ss_module_impl *ss_perfmap_of(const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_status status;
	struct stat st;
	char path[48];

	/* Read from the leader: even a zombie has its ids. */
	if (!ss_target_read_status(target, target->pid, &text, &status))
		return NULL;
	pid_t pid = status.inner_id ? status.inner_id : target->pid;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid); /* fits */
	_cleanup_close_ int fd = ss_files_open_below_root(target, path, &st);
	if (fd < 0 || !is_its_own(target, &status, &st))
		return NULL;
	struct ss_module_impl *file = ss_module_new(path, 0, 0);
	if (file)
		file->fd = take_fd(fd);
	return file;
}

void ss_perfmap_open(struct ss_capture *capture, const struct ss_target *target)
{
	if (ss_references_find_jit(capture))
		capture->perf_map = ss_perfmap_of(target);
}
