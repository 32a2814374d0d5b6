#include "profile/waits.h"

#include <seccomp.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	enum ss_wait_argument argument;
} arguments[] = {
	{ "accept", SS_WAIT_DESCRIPTOR },	  { "accept4", SS_WAIT_DESCRIPTOR },
	{ "connect", SS_WAIT_DESCRIPTOR },	  { "epoll_pwait", SS_WAIT_DESCRIPTOR },
	{ "epoll_pwait2", SS_WAIT_DESCRIPTOR },	  { "epoll_wait", SS_WAIT_DESCRIPTOR },
	{ "fcntl", SS_WAIT_DESCRIPTOR },	  { "fdatasync", SS_WAIT_DESCRIPTOR },
	{ "flock", SS_WAIT_DESCRIPTOR },	  { "fsync", SS_WAIT_DESCRIPTOR },
	{ "ftruncate", SS_WAIT_DESCRIPTOR },	  { "futex", SS_WAIT_ADDRESS },
	{ "io_uring_enter", SS_WAIT_DESCRIPTOR }, { "ioctl", SS_WAIT_DESCRIPTOR },
	{ "pread64", SS_WAIT_DESCRIPTOR },	  { "pwrite64", SS_WAIT_DESCRIPTOR },
	{ "read", SS_WAIT_DESCRIPTOR },		  { "readv", SS_WAIT_DESCRIPTOR },
	{ "recvfrom", SS_WAIT_DESCRIPTOR },	  { "recvmmsg", SS_WAIT_DESCRIPTOR },
	{ "recvmsg", SS_WAIT_DESCRIPTOR },	  { "sendmmsg", SS_WAIT_DESCRIPTOR },
	{ "sendmsg", SS_WAIT_DESCRIPTOR },	  { "sendto", SS_WAIT_DESCRIPTOR },
	{ "write", SS_WAIT_DESCRIPTOR },	  { "writev", SS_WAIT_DESCRIPTOR },
};

/* Names of uname -m that libseccomp does not know. */
static uint32_t machine_of(const char *name)
{
	static const char *const others[][2] = {
		{ "i386", "x86" },   { "i486", "x86" },	  { "i586", "x86" },
		{ "i686", "x86" },   { "armv6l", "arm" }, { "armv7l", "arm" },
		{ "armv8l", "arm" },
	};

	for (size_t i = 0; name && i < SS_ARRAY_SIZE(others); i++) {
		if (strcmp(name, others[i][0]) == 0)
			return seccomp_arch_resolve_name(others[i][1]);
	}
	return name ? seccomp_arch_resolve_name(name) : 0;
}

void ss_load_waits_init(struct ss_load_waits *waits, struct ss_profile *profile,
			const char *machine)
{
	*waits = (struct ss_load_waits){ .profile = profile,
					 .machine = machine_of(machine),
					 .first_thread = profile->threads.count };
}

static enum ss_wait_argument argument_of(const char *name)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(arguments); i++) {
		if (strcmp(name, arguments[i].name) == 0)
			return arguments[i].argument;
	}
	return SS_WAIT_NOTHING;
}

static const char *name_of(const struct ss_load_waits *waits, long call)
{
	char *name = waits->machine ?
			     seccomp_syscall_resolve_num_arch(waits->machine, (int)call) :
			     NULL;
	char number[32];

	(void)snprintf(number, sizeof(number), "syscall %ld", call); /* it fits */
	const char *text = ss_profile_text(waits->profile, name ? name : number);
	free(name);
	return text;
}

/* Finds or adds a wait by name. */
static uint32_t add_wait(struct ss_load_waits *waits, long call)
{
	struct ss_profile *profile = waits->profile;
	const char *name = name_of(waits, call);

	if (!name)
		return SS_ID_NONE;
	for (uint32_t i = 0; i < profile->waits.count; i++) {
		if (profile->waits.items[i].name == name)
			return i;
	}
	struct ss_profile_wait *wait = ss_vector_push(&profile->waits);
	if (!wait)
		return SS_ID_NONE;
	wait->name = name;
	wait->argument = argument_of(name);
	wait->restart = strcmp(name, "restart_syscall") == 0;
	return (uint32_t)profile->waits.count - 1;
}

bool ss_load_waits_set(struct ss_load_waits *waits, const struct ss_sample *sample,
		       struct ss_profile_run *run)
{
	run->wait = SS_ID_NONE;
	run->argument = 0;
	if (sample->call < 0 || sample->call >= SS_LOAD_CALLS_MAX)
		return true;
	uint32_t *number = &waits->numbers[sample->call];
	if (!*number)
		*number = add_wait(waits, sample->call) + 1;
	if (!*number)
		return false;
	run->wait = *number - 1;
	const struct ss_profile_wait *wait = &waits->profile->waits.items[run->wait];
	waits->restarts = waits->restarts || wait->restart;
	if (wait->argument == SS_WAIT_DESCRIPTOR)
		run->argument = (uint32_t)sample->argument;
	else if (wait->argument == SS_WAIT_ADDRESS || wait->restart)
		run->argument = sample->argument;
	return true;
}

enum { AMBIGUOUS = SS_ID_NONE - 1 };

typedef void run_visitor(struct ss_load_waits *waits, struct ss_profile_run *run,
			 uint32_t *at_place);

static void learn(struct ss_load_waits *waits, struct ss_profile_run *run,
		  uint32_t *at_place)
{
	if (waits->profile->waits.items[run->wait].restart || run->state == 'R')
		return;
	if (*at_place == SS_ID_NONE)
		*at_place = run->wait;
	else if (*at_place != run->wait)
		*at_place = AMBIGUOUS;
}

static void resolve(struct ss_load_waits *waits, struct ss_profile_run *run,
		    uint32_t *at_place)
{
	if (!waits->profile->waits.items[run->wait].restart)
		return;
	if (*at_place < waits->profile->waits.count)
		run->wait = *at_place;
	if (waits->profile->waits.items[run->wait].argument != SS_WAIT_ADDRESS)
		run->argument = 0;
}

/* at_places has an entry for each frame. */
static void each_run(struct ss_load_waits *waits, uint32_t *at_places, run_visitor *visit)
{
	struct ss_profile *profile = waits->profile;

	for (size_t t = waits->first_thread; t < profile->threads.count; t++) {
		struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			struct ss_profile_run *run = &thread->runs.items[r];
			if (run->wait == SS_ID_NONE || run->call == 0)
				continue;
			visit(waits, run,
			      &at_places[ss_profile_call_at(profile, run->call)->frame]);
		}
	}
}

bool ss_load_waits_finish(struct ss_load_waits *waits)
{
	size_t count = waits->profile->frames.count;

	if (!waits->restarts)
		return true;
	_cleanup_free_ uint32_t *at_places = calloc(count + 1, sizeof(*at_places));
	if (!at_places)
		return false;
	memset(at_places, 0xff, count * sizeof(*at_places));
	each_run(waits, at_places, learn);
	each_run(waits, at_places, resolve);
	return true;
}
