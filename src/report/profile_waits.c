#include "report/profile_waits.h"

#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/graph.h"
#include "data/snapshot.h"
#include "report/profile.h"
#include "diagnose/wait_table.h"
#include "stacksnap/record.h"

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

/* What waits is near the innermost frame. Without a limit, a small file whose many samples have one
   deep stack would take minutes. */
enum { FRAMES_MAX = 64 };

static uint32_t function_of(const struct ss_profile *profile, uint32_t call)
{
	uint32_t frame = ss_profile_call_at(profile, call)->frame;

	return (uint32_t)ss_profile_frame_at(profile, frame)->function;
}

static bool is_reason(const struct ss_profile_function *function)
{
	return function->is_end || function->is_origin;
}

struct ss_waiting_function ss_waiting_function_of(const struct ss_profile *profile,
						  uint32_t call)
{
	const struct ss_waiting_function none = { SS_ID_NONE, SS_ID_NONE };
	uint64_t inner = SS_ID_NONE;
	uint32_t library = SS_ID_NONE;

	for (size_t i = 0; call; call = ss_profile_call_at(profile, call)->parent) {
		uint32_t function = function_of(profile, call);
		const struct ss_profile_function *f =
			ss_profile_function_at(profile, function);
		if (is_reason(f) || i++ == FRAMES_MAX)
			return none;
		if (library == SS_ID_NONE)
			inner = f->module;
		else if (f->module != inner && !ss_symbol_is_of_c_library(f->name))
			break;
		if (f->module == inner && !f->place)
			library = function;
	}
	if (!call || library == SS_ID_NONE)
		return none;
	return (struct ss_waiting_function){ library, function_of(profile, call) };
}

uint32_t ss_waiting_function_name(const struct ss_profile *profile, uint32_t call)
{
	uint32_t found = ss_waiting_function_of(profile, call).program;

	for (size_t i = 0; call && i < FRAMES_MAX; i++) {
		uint32_t function = function_of(profile, call);
		const struct ss_profile_function *f =
			ss_profile_function_at(profile, function);
		if (f->kind != SS_FRAME_NATIVE && f->kind != SS_FRAME_JIT)
			return function;
		if (found == SS_ID_NONE && !is_reason(f) && !f->place)
			found = function;
		call = ss_profile_call_at(profile, call)->parent;
	}
	return found;
}

static void set_cycles(const struct ss_profile *profile, struct ss_chain *chains,
		       const struct ss_graph *graph)
{
	for (size_t i = 0; i < graph->count; i++) {
		if (graph->cyclic[i] && !profile->threads.items[i].in_cycle)
			chains[graph->end[i]].unproven = true;
	}
	for (size_t i = 0; i < graph->count; i++) {
		struct ss_chain *first = &chains[graph->end[i]];
		chains[i].cycle = SS_ID_NONE;
		if (!ss_graph_ends_in_cycle(graph, i) || first->unproven)
			continue;
		chains[i].cycle = (uint32_t)graph->end[i];
		chains[i].member = graph->cyclic[i];
		first->size += graph->cyclic[i];
		first->behind += !graph->cyclic[i];
	}
}

struct ss_chain *ss_chains_new(const struct ss_profile *profile)
{
	size_t count = profile->threads.count;
	_cleanup_free_ struct ss_chain *chains = calloc(count + 1, sizeof(*chains));
	_cleanup_free_ size_t *next = calloc(count + 1, sizeof(*next));
	struct ss_graph graph;

	if (!chains || !next)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		uint32_t owner = profile->threads.items[i].owner;
		next[i] = owner ? owner - 1 : SS_GRAPH_NONE;
	}
	if (!ss_graph_init(&graph, next, count))
		return NULL;
	set_cycles(profile, chains, &graph);
	ss_graph_deinit(&graph);
	return take_ptr(chains);
}

enum { LOCK_FRAMES_MAX = 48 }; /* that are searched */

/* What was found for the stack of a call, in one system call. */
struct known {
	uint32_t wait; /* + 1; 0: not searched yet */
	uint32_t lock; /* + 1; 0: none */
};

/* The name of the function of a call, or NULL. */
static const char *symbol_of(const struct ss_profile *profile, uint32_t call)
{
	const struct ss_profile_frame *frame =
		ss_profile_frame_at(profile, ss_profile_call_at(profile, call)->frame);
	const struct ss_profile_function *function =
		ss_profile_function_at(profile, frame->function);

	return frame->named && !function->is_end && !function->is_origin ?
		       function->name :
		       NULL;
}

/* Locks with the same description, or else the same function, are one. Texts are interned. */
static uint32_t add_lock(struct ss_profile *profile, const char *function,
			 const char *words)
{
	for (uint32_t i = 0; i < profile->locks.count; i++) {
		const struct ss_profile_lock *lock = &profile->locks.items[i];
		if (words ? lock->words == words :
			    !lock->words && lock->function == function)
			return i + 1;
	}
	struct ss_profile_lock *lock = ss_vector_push(&profile->locks);
	if (!lock)
		return 0;
	*lock = (struct ss_profile_lock){ .function = function, .words = words };
	return (uint32_t)profile->locks.count;
}

/* Finds the lock that a stack waits for; 0: none. False without memory. */
static bool find_lock(struct ss_profile *profile, const struct ss_wait_table *waits,
		      const struct ss_profile_run *run, uint32_t *ret)
{
	const char *symbols[LOCK_FRAMES_MAX];
	size_t count = 0;

	*ret = 0;
	for (uint32_t call = run->call; call && count < LOCK_FRAMES_MAX;
	     call = ss_profile_call_at(profile, call)->parent) {
		const char *symbol = symbol_of(profile, call);
		/* The signal trampoline: the thread does not wait for what it interrupted. */
		if (symbol && strcmp(symbol, "__restore_rt") == 0)
			break;
		symbols[count++] = symbol;
	}
	const struct ss_stack_purpose found = ss_wait_table_search(
		waits, profile->waits.items[run->wait].name, symbols, count);
	if (found.purpose != SS_PURPOSE_LOCK)
		return true;
	_cleanup_free_ char *name = strndup(found.function, found.size);
	const char *function = name ? ss_profile_text(profile, name) : NULL;
	const char *words = ss_profile_text(profile, found.words);
	if (!function || (found.words && !words))
		return false;
	*ret = add_lock(profile, function, words);
	return *ret != 0;
}

bool ss_profile_find_locks(struct ss_profile *profile, const struct ss_wait_table *waits)
{
	_cleanup_free_ struct known *known =
		calloc(profile->calls.count + 1, sizeof(*known));

	if (!known)
		return false;
	for (size_t t = 0; t < profile->threads.count; t++) {
		struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			struct ss_profile_run *run = &thread->runs.items[r];
			if (run->wait == SS_ID_NONE || run->call == 0 ||
			    run->state == 'R')
				continue;
			struct known *at = &known[run->call];
			if (at->wait != run->wait + 1 &&
			    !find_lock(profile, waits, run, &at->lock))
				return false;
			at->wait = run->wait + 1;
			run->lock = at->lock;
		}
	}
	return true;
}
