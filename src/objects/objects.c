#include "objects/objects.h"

#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "objects/arguments.h"
#include "objects/connections.h"
#include "objects/descriptors.h"
#include "objects/file_locks.h"
#include "objects/holders.h"
#include "objects/processes.h"
#include "objects/sockets.h"

/* In another time namespace CLOCK_MONOTONIC differs. */
static bool has_our_clock(const struct ss_target *target)
{
	struct stat ours;
	struct stat theirs;

	if (stat("/proc/self/ns/time", &ours) != 0) /* before Linux 5.6 */
		return true;
	return fstatat(target->proc_fd, "ns/time", &theirs, 0) == 0 &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/* Converts the time of the capture from CLOCK_REALTIME to CLOCK_MONOTONIC. */
static void set_time(struct ss_facts *facts, const struct ss_process *process,
		     const struct ss_target *target)
{
	uint64_t ago = ss_clock_ns(CLOCK_REALTIME) - process->time_ns;

	facts->pid = process->pid;
	facts->time_ns = process->time_ns;
	if (has_our_clock(target))
		facts->monotonic_ns = ss_now_ns() - ago;
}

void ss_objects_collect(struct ss_capture *capture, const struct ss_target *target,
			const struct ss_process_memory *memory,
			const struct ss_capture *previous,
			const struct ss_kept_files *counters)
{
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts = ss_facts_new();
	const struct ss_facts *then = previous ? previous->facts : NULL;

	if (!facts || !ss_capture_add_thread_facts(capture, facts))
		return;
	set_time(facts, &capture->process, target);
	ss_arguments_read(facts, capture, target, memory);
	ss_descriptors_read(facts, target, then);
	if (then)
		ss_connections_keep(facts, capture, then);
	ss_sockets_read(facts, target);
	if (then)
		ss_holders_confirm(facts, target, then);
	ss_processes_find(facts, target);
	ss_file_locks_find_owners(facts, target);
	/* The rest needs the complete descriptors. */
	ss_arguments_check(facts, capture, target, counters ? counters : target->kept);
	ss_holders_find(facts, target);
	capture->facts = take_ptr(facts);
}
