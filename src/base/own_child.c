#include "base/own_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/scan.h"

enum {
	/* A child that was killed frees its memory, which does not block it for so long. */
	END_BLOCKED_MS = 150,
	END_STEP_NS = 20000, /* grows up to */
	END_STEP_MAX_NS = 20000000,
	/* Looks at a child that has not ended when the step is so long. */
	END_LOOK_NS = 200000,
	STATUS_MAX = 16 << 10,
	/* What counts between two looks: this process may have been stopped, too. */
	STEP_MAX_MS = 200,
	/* The kernel allocates the lowest free descriptor: after this many free ones, no
	   more are expected. */
	GAP_MAX = 256,
};

/* The number of close_range(2); headers before Linux 5.9 lack it. */
enum { CLOSE_RANGE = 436 };

static const char *skip_line(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return newline ? newline + 1 : end;
}

/* Reads State and voluntary_ctxt_switches of proc_pid_status(5). False: it has ended. */
static bool read_status(pid_t pid, char *ret_state, uint64_t *ret_switches)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	bool found = false;
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid); /* fits */
	if (ss_io_read_path(AT_FDCWD, path, STATUS_MAX, &text) != 0)
		return false;
	const char *end = text.bytes + text.size;
	*ret_state = '?';
	for (const char *at = text.bytes; at < end; at = skip_line(at, end)) {
		struct ss_scan line = { .at = at, .end = end };
		if (ss_scan_text(&line, "State:")) {
			ss_scan_spaces(&line);
			*ret_state = line.at < end ? *line.at : '?';
		} else if (ss_scan_text(&line, "voluntary_ctxt_switches:")) {
			ss_scan_spaces(&line);
			found = ss_scan_number(&line, 10, ret_switches);
		}
	}
	return found;
}

uint64_t ss_own_child_blocked_ns(struct ss_own_child *child)
{
	uint64_t now_ns = ss_now_ns();
	uint64_t last_ns = child->looked_ns;
	uint64_t before = child->switches;
	bool was_blocked = child->was_blocked;
	char state = '?';

	child->looked_ns = now_ns;
	child->was_blocked = read_status(child->pid, &state, &child->switches) &&
			     (state == 'D' || state == 'S');
	/* Confined children have the user of the target, who may signal them. */
	if (state == 'T')
		(void)kill(child->pid, SIGCONT);
	if (!child->was_blocked || !was_blocked || child->switches != before)
		child->blocked_ns = 0;
	else
		child->blocked_ns += SS_MIN(now_ns - last_ns, STEP_MAX_MS * SS_NS_PER_MS);
	return child->blocked_ns;
}

bool ss_own_child_end(pid_t pid, int *ret_status)
{
	struct ss_own_child child = { .pid = pid };
	uint64_t step_ns = END_STEP_NS;

	(void)kill(pid, SIGKILL); /* one that has ended keeps its status */
	for (;;) {
		pid_t ended = waitpid(pid, ret_status, WNOHANG);
		if (ended == pid)
			return true;
		if (ended < 0 && errno != EINTR) {
			*ret_status = 0; /* the program has waited for it */
			return true;
		}
		if (step_ns >= END_LOOK_NS &&
		    ss_own_child_blocked_ns(&child) >= END_BLOCKED_MS * SS_NS_PER_MS)
			return false;
		ss_sleep_ns(step_ns);
		step_ns = SS_MIN(step_ns * 2, (uint64_t)END_STEP_MAX_NS);
	}
}

static void close_from_to(unsigned first, unsigned last)
{
	unsigned free_ones = 0;

	if (first > last || syscall(CLOSE_RANGE, first, last, 0) == 0)
		return;
	for (unsigned fd = first; fd <= last && free_ones <= GAP_MAX; fd++)
		free_ones = close((int)fd) == 0 ? 0 : free_ones + 1;
}

/* The lowest of the descriptors from first on; or UINT_MAX. */
static unsigned next_kept(const int *keep, size_t count, unsigned first)
{
	unsigned lowest = UINT_MAX;

	for (size_t i = 0; i < count; i++) {
		if (keep[i] >= 0 && (unsigned)keep[i] >= first)
			lowest = SS_MIN(lowest, (unsigned)keep[i]);
	}
	return lowest;
}

void ss_own_child_close_files(const int *keep, size_t count)
{
	unsigned first = 0;

	for (;;) {
		unsigned kept = next_kept(keep, count, first);
		if (kept == UINT_MAX)
			break;
		if (kept > first)
			close_from_to(first, kept - 1);
		first = kept + 1;
	}
	close_from_to(first, UINT_MAX);
}
