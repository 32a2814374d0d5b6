#include "diagnose/diagnose.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "diagnose/lock.h"
#include "data/futex.h"
#include "data/snapshot.h"
#include "diagnose/wait_table.h"

enum { COMMON_FRAMES_MAX = 4096 }; /* that are compared */

/* Functions of a runtime's language may have the same name in several files. */
static bool is_same_file(const struct ss_frame *a, const struct ss_frame *b)
{
	if (a->kind == SS_FRAME_NATIVE || a->file == b->file)
		return true;
	return a->file && b->file && strcmp(a->file, b->file) == 0;
}

const struct ss_frame *ss_outer_frame(const struct ss_snapshot *snapshot,
				      const struct ss_task *thread, size_t from_outside)
{
	return ss_snapshot_frame(snapshot, thread,
				 thread->frame_count - 1 - from_outside);
}

bool ss_frame_is_same_function(const struct ss_frame *a, const struct ss_frame *b)
{
	if (a->kind != b->kind || !is_same_file(a, b))
		return false;
	if (a->symbol && b->symbol)
		return a->symbol == b->symbol || strcmp(a->symbol, b->symbol) == 0;
	return a->symbol == b->symbol && a->pc == b->pc;
}

size_t ss_outer_frames_common(const struct ss_snapshot *a, const struct ss_task *x,
			      const struct ss_snapshot *b, const struct ss_task *y)
{
	size_t count = SS_MIN(x->frame_count, y->frame_count);
	size_t i = 0;

	for (count = SS_MIN(count, (size_t)COMMON_FRAMES_MAX); i < count; i++) {
		if (!ss_frame_is_same_function(ss_outer_frame(a, x, i),
					       ss_outer_frame(b, y, i)))
			break;
	}
	return i;
}

/* The first reference of a thread: they are sorted by thread. */
static size_t first_of(const struct ss_snapshot *snapshot, size_t thread)
{
	return ss_lower_bound(snapshot->references.count, i,
			      snapshot->references.items[i].thread < thread);
}

/* References count frames as they were before inlined native calls were inserted: walk
   frames and references in parallel. */
static void add_frames(const struct ss_snapshot *snapshot, size_t owner, uint64_t futex,
		       struct ss_wait *wait)
{
	const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[owner];
	const struct ss_lock_reference *at =
		snapshot->references.items + first_of(snapshot, owner);
	const struct ss_lock_reference *end =
		snapshot->references.items + snapshot->references.count;
	const struct ss_module *inner = NULL;

	for (size_t i = 0, number = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		inner = i == 0 ? frame->module : inner;
		if (frame->inlined && frame->kind == SS_FRAME_NATIVE)
			continue;
		for (; at < end && at->thread == owner && at->frame == number; at++) {
			/* In frames of the library that waits, the reference is only a
			   saved register. */
			if (at->futex == futex && (at->in_code || frame->module != inner))
				wait->owner_frames[wait->owner_frame_count++] =
					(struct ss_owner_frame){
						.frame = (uint32_t)i,
						.file = at->call_file,
						.line = at->call_line,
					};
			if (wait->owner_frame_count == SS_OWNER_FRAMES_MAX)
				return;
		}
		if (at == end || at->thread != owner)
			return;
		number++;
	}
}

void ss_owner_frames_find(struct ss_snapshot *snapshot)
{
	if (snapshot->references.count == 0)
		return;
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		const struct ss_thread_facts *facts =
			ss_facts_find_thread(snapshot->facts, thread->tid);
		struct ss_futex futex;
		if (!thread->wait || !facts || thread->wait->owner_tid == 0 ||
		    thread->wait->owner_pid || !ss_futex_parse(&facts->call, &futex))
			continue;
		const struct ss_task *owner =
			ss_snapshot_find_thread(snapshot, thread->wait->owner_tid);
		if (owner)
			add_frames(
				snapshot,
				(size_t)(owner - snapshot->tasks[SS_TASK_THREAD].items),
				futex.address, &snapshot->waits[i]);
	}
}

enum {
	FRAMES_MAX = 48,       /* that are searched */
	POOL_FRAMES_MAX = 256, /* tasks are further out */
	LOCKS_MAX = 32,	       /* that are listed */
	WAITERS_MAX = 16,      /* of a lock, with which other threads are compared */
	SUSPECTS_MAX = 16,     /* that are listed */
};

/* What a stack says. */
struct finding {
	const struct ss_wait_entry *entry; /* NULL: nothing */
	const char *symbol;
	bool searched;
};

/* The innermost function counts, unless an outer one tells more: a lock is built on a condition, and
   a function may be known to be idle, or not to belong to the program. */
static bool is_stronger(const struct ss_wait_entry *outer,
			const struct ss_wait_entry *inner)
{
	if (outer->purpose >= SS_PURPOSE_IDLE)
		return outer->purpose > inner->purpose;
	return outer->purpose == SS_PURPOSE_LOCK && inner->purpose == SS_PURPOSE_EVENT;
}

/* The function that the table may have, or NULL: those of Python are not qualified by a module. */
static const char *function_of(const struct ss_frame *frame)
{
	if (frame->kind == SS_FRAME_NATIVE && !frame->symbol)
		return frame->called;
	return frame->kind == SS_FRAME_NATIVE || frame->kind == SS_FRAME_JAVA ?
		       frame->symbol :
		       NULL;
}

/* Ruby's interpreter: the thread does not wait in the native functions that have called the program. */
static bool executes_ruby(const struct ss_frame *frame)
{
	return frame->symbol && strcmp(frame->symbol, "rb_vm_exec") == 0;
}

static struct finding find(const struct ss_snapshot *snapshot,
			   const struct ss_task *thread,
			   const struct ss_wait_table *table)
{
	struct finding found = { .searched = true };

	for (size_t i = 0; i < SS_MIN(thread->frame_count, (size_t)FRAMES_MAX); i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		/* The thread does not wait for what the signal interrupted. */
		if (frame->signal_frame || executes_ruby(frame))
			break;
		const char *function = function_of(frame);
		const struct ss_wait_entry *entry =
			function ? ss_wait_table_find(table, function) : NULL;
		if (!entry || (found.entry && !is_stronger(entry, found.entry)))
			continue;
		found.entry = entry;
		found.symbol = function;
	}
	return found;
}

/* In such a wait, an application may wait for anything; the others say themselves what they
   wait for. */
static bool may_be_application(const struct ss_wait *wait)
{
	switch (wait->kind) {
	case SS_WAIT_FUTEX:
	case SS_WAIT_CONDVAR:
	case SS_WAIT_SEMAPHORE:
	case SS_WAIT_POLL:
	case SS_WAIT_SELECT:
	case SS_WAIT_EPOLL:
	case SS_WAIT_SLEEP:
	case SS_WAIT_SIGNAL:
	case SS_WAIT_IPC:
		return true;
	default:
		return false;
	}
}

/* Such a wait may be for a lock of the application. */
static bool is_call_of_application(const char *call)
{
	static const char *const calls[] = {
		"clock_nanosleep", "epoll_pwait", "epoll_pwait2",  "epoll_wait",
		"futex",	   "futex_wait",  "futex_waitv",   "msgrcv",
		"msgsnd",	   "nanosleep",	  "pause",	   "poll",
		"ppoll",	   "pselect6",	  "rt_sigsuspend", "rt_sigtimedwait",
		"select",	   "semop",	  "semtimedop",
	};

	return ss_any(SS_ARRAY_SIZE(calls), i, strcmp(call, calls[i]) == 0);
}

struct ss_stack_purpose ss_wait_table_search(const struct ss_wait_table *table,
					     const char *call, const char *const *symbols,
					     size_t count)
{
	struct ss_stack_purpose ret = {};
	const struct ss_wait_entry *found = NULL;
	enum ss_lock_class known = SS_CLASS_UNKNOWN;

	for (size_t i = 0; i < SS_MIN(count, (size_t)FRAMES_MAX); i++) {
		if (!symbols[i])
			continue;
		if (!known)
			known = ss_wait_function_class(symbols[i]);
		const struct ss_wait_entry *entry = ss_wait_table_find(table, symbols[i]);
		if (!entry || (found && !is_stronger(entry, found)))
			continue;
		found = entry;
		ret.symbol = i;
	}
	const struct ss_wait wait = { .kind = ss_lock_class_kind(known) };
	if (!found || (found->purpose < SS_PURPOSE_IDLE &&
		       (!is_call_of_application(call) || !may_be_application(&wait))))
		return (struct ss_stack_purpose){};
	ret.purpose = found->purpose;
	ret.words = found->words;
	ret.size = ss_wait_table_plain_name(symbols[ret.symbol], &ret.function);
	return ret;
}

/* Whether it is a thread that the JDK starts in every program. For the case that the names
   of its methods are not known. */
static bool is_of_jdk(const struct ss_task *thread, const struct ss_wait_entry *entry)
{
	static const char *const functions[] = { "JVM_MonitorWait", "Unsafe_Park" };
	static const char *const names[] = { "Finalizer", "Common-Cleaner" };
	bool waits = false;
	bool is_its = false;

	for (size_t i = 0; i < SS_ARRAY_SIZE(functions); i++)
		waits |= strcmp(entry->function, functions[i]) == 0;
	for (size_t i = 0; i < SS_ARRAY_SIZE(names) && waits; i++)
		is_its |= thread->name && strcmp(thread->name, names[i]) == 0;
	return is_its;
}

/* The process that holds it, if the application's memory tells: it executes the same program. */
static void set_holder(struct ss_snapshot *snapshot, pid_t tid, struct ss_wait *wait)
{
	for (size_t i = 0; i < snapshot->runtime_locks.count; i++) {
		const struct ss_runtime_lock *lock = &snapshot->runtime_locks.items[i];
		if (lock->process == 0 || lock->waiter != tid)
			continue;
		wait->owner_pid = lock->process;
		wait->owner_process = snapshot->process.name;
	}
}

/* SQLite sleeps only to try again: its library has but names of its outermost functions. NULL: the thread
   does not sleep there. */
static const char *find_sqlite(const struct ss_snapshot *snapshot,
			       const struct ss_task *thread)
{
	const struct ss_module *inner = NULL;
	const struct ss_module *sqlite = NULL;
	const char *function = NULL;

	for (size_t i = 0; i < SS_MIN(thread->frame_count, (size_t)FRAMES_MAX); i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		inner = i == 0 ? frame->module : inner;
		if (frame->module == inner)
			continue;
		if (!sqlite &&
		    (!frame->module || !ss_path_is_sqlite(frame->module->path)))
			return NULL;
		sqlite = sqlite ? sqlite : frame->module;
		if (frame->module != sqlite)
			break;
		function = frame->symbol ? frame->symbol : function;
	}
	return function && strcmp(function, "sqlite3_sleep") != 0 ? function : NULL;
}

/* False without memory. */
static bool set_sqlite(struct ss_snapshot *snapshot, size_t index)
{
	static const char words[] =
		"SQLite: the database is locked by another connection";
	struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[index];
	struct ss_wait *wait = &snapshot->waits[index];
	const struct ss_thread_facts *facts =
		ss_facts_find_thread(snapshot->facts, thread->tid);
	const char *function =
		wait->kind == SS_WAIT_SLEEP ? find_sqlite(snapshot, thread) : NULL;

	if (!function || wait->purpose)
		return true;
	wait->purpose = SS_PURPOSE_LOCK;
	wait->purpose_function = ss_intern_string(snapshot->strings, function);
	wait->purpose_words = ss_intern_string(snapshot->strings, words);
	if (facts && facts->holder.pid) {
		wait->owner_pid = facts->holder.pid;
		wait->owner_process = facts->holder.name;
	}
	return wait->purpose_function && wait->purpose_words;
}

static bool set_purpose(struct ss_snapshot *snapshot, size_t index,
			const struct finding *found)
{
	const struct ss_wait_entry *entry = found->entry;
	struct ss_wait *wait = &snapshot->waits[index];

	if (!entry || (entry->purpose < SS_PURPOSE_IDLE && !may_be_application(wait)))
		return true;
	const char *name;
	size_t size = ss_wait_table_plain_name(found->symbol, &name);
	wait->purpose = is_of_jdk(&snapshot->tasks[SS_TASK_THREAD].items[index], entry) ?
				SS_PURPOSE_SERVICE :
				entry->purpose;
	wait->purpose_function = ss_intern_bytes(snapshot->strings, name, size);
	if (wait->purpose == SS_PURPOSE_LOCK)
		set_holder(snapshot, snapshot->tasks[SS_TASK_THREAD].items[index].tid,
			   wait);
	if (entry->words)
		wait->purpose_words = ss_intern_string(snapshot->strings, entry->words);
	return wait->purpose_function && (!entry->words || wait->purpose_words);
}

/* Exhausted pools ----------------------------------------------------------- */

/* Functions of a library of thread pools. */
static const struct pool_functions {
	enum ss_frame_kind kind;
	const char *executes; /* the loop of a thread of a pool */
	/* For the result of a task that a thread of a pool executes; an event may complete
	   a CompletableFuture. */
	const char *waits[3];
	const char *executes_file, *waits_file; /* how their files end, or NULL */
	const char *completes_files[3];		/* of others that complete such tasks */
} pool_functions[] = {
	{ .kind = SS_FRAME_JAVA,
	  .executes = "java.util.concurrent.ThreadPoolExecutor.runWorker",
	  .waits = { "java.util.concurrent.FutureTask.get" } },
	{ .kind = SS_FRAME_PYTHON,
	  .executes = "_worker",
	  .waits = { "Future.result", "result",
		     "Future.exception" }, /* "result": up to 3.10 */
	  .executes_file = "/concurrent/futures/thread.py",
	  .waits_file = "/concurrent/futures/_base.py",
	  .completes_files = { "/concurrent/futures/process.py",
			       "/asyncio/base_events.py", "/asyncio/runners.py" } },
};

/* A thread of a pool, as far as its stack tells. */
struct worker {
	const char
		*waits; /* where its task waits for the result of another one, or NULL */
	const struct pool_functions
		*of; /* NULL: it has no functions of such a language */
	bool busy;   /* it may complete tasks of pools */
	bool apart;  /* it belongs to no pool */
};

static bool is_in_file(const struct ss_frame *frame, const char *file)
{
	size_t end = strlen(file);

	if (!frame->file)
		return false;
	size_t given = strlen(frame->file);
	return given >= end && strcmp(frame->file + given - end, file) == 0;
}

static bool is_function(const struct ss_frame *frame, const char *function,
			const char *file)
{
	const char *name;
	size_t size = ss_wait_table_plain_name(frame->symbol, &name);

	return size == strlen(function) && memcmp(name, function, size) == 0 &&
	       (!file || is_in_file(frame, file));
}

static bool completes(const struct ss_frame *frame, const struct pool_functions *of)
{
	return ss_any(SS_ARRAY_SIZE(of->completes_files), i,
		      of->completes_files[i] &&
			      is_in_file(frame, of->completes_files[i]));
}

static struct worker find_worker(const struct ss_snapshot *snapshot,
				 const struct ss_task *thread)
{
	enum ss_wait_purpose purpose = thread->wait ? thread->wait->purpose :
						      SS_PURPOSE_UNKNOWN;
	struct worker worker = {};

	for (size_t i = 0; i < SS_MIN(thread->frame_count, (size_t)POOL_FRAMES_MAX);
	     i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		const struct pool_functions *of = NULL;
		for (size_t j = 0; j < SS_ARRAY_SIZE(pool_functions); j++) {
			if (pool_functions[j].kind == frame->kind && frame->symbol)
				of = &pool_functions[j];
		}
		if (!of)
			continue;
		bool executes = is_function(frame, of->executes, of->executes_file);
		/* Python's loop calls what waits for work; Java's calls a function that is
		   known to be idle. */
		bool idle = purpose == SS_PURPOSE_IDLE || !worker.apart;
		worker.of = of;
		worker.busy |= completes(frame, of) ||
			       (executes && !idle && !worker.waits);
		worker.apart = !executes;
		if (executes)
			return worker;
		for (size_t j = 0; j < SS_ARRAY_SIZE(of->waits) && !worker.waits; j++) {
			if (purpose == SS_PURPOSE_EVENT && of->waits[j] &&
			    is_function(frame, of->waits[j], of->waits_file))
				worker.waits = of->waits[j];
		}
	}
	worker.waits = NULL;
	return worker;
}

/* Threads of a pool have one name, apart from a number at the end. */
static size_t pool_name(const struct ss_task *thread)
{
	size_t size = thread->name ? strlen(thread->name) : 0;

	while (size > 0 && strchr("0123456789", thread->name[size - 1]))
		size--;
	return size;
}

static bool same_pool(const struct ss_task *a, const struct ss_task *b)
{
	size_t size = pool_name(a);

	return size > 0 && size == pool_name(b) && memcmp(a->name, b->name, size) == 0;
}

/* If each of several threads of a pool waits for a task, there may be none to execute it, unless
   another thread executes tasks. Clears waits of the threads of the pool. */
static bool mark_pool(struct ss_snapshot *snapshot, struct worker *workers, size_t first)
{
	static const char words[] =
		"result of a task; all threads of the pool wait for one";
	const struct ss_task *threads = snapshot->tasks[SS_TASK_THREAD].items;
	const struct pool_functions *of = workers[first].of;
	size_t members = 0;
	bool all = true;

	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		bool member = !workers[i].apart &&
			      same_pool(&threads[first], &threads[i]);
		members += member;
		all = all && (!member || workers[i].waits) &&
		      !(workers[i].busy && workers[i].of == of);
	}
	for (size_t i = snapshot->tasks[SS_TASK_THREAD].count; i-- > first;) {
		struct ss_wait *wait = &snapshot->waits[i];
		if (!workers[i].waits || !same_pool(&threads[first], &threads[i]))
			continue;
		const char *function = take_ptr(workers[i].waits);
		if (!all || members < 2)
			continue;
		wait->purpose = SS_PURPOSE_LOCK;
		wait->purpose_function = ss_intern_string(snapshot->strings, function);
		wait->purpose_words = ss_intern_string(snapshot->strings, words);
		if (!wait->purpose_function || !wait->purpose_words)
			return false;
	}
	return true;
}

static bool find_exhausted_pools(struct ss_snapshot *snapshot)
{
	size_t count = snapshot->tasks[SS_TASK_THREAD].count;
	_cleanup_free_ struct worker *workers = calloc(count + 1, sizeof(*workers));

	if (!workers)
		return false;
	for (size_t i = 0; i < count; i++)
		workers[i] =
			find_worker(snapshot, &snapshot->tasks[SS_TASK_THREAD].items[i]);
	for (size_t i = 0; i < count; i++) {
		if (workers[i].waits && !mark_pool(snapshot, workers, i))
			return false;
	}
	return true;
}

bool ss_purposes_find(struct ss_snapshot *snapshot, const struct ss_wait_table *table)
{
	size_t stacks = snapshot->stacks.count;
	_cleanup_free_ struct finding *found = calloc(stacks + 1, sizeof(*found));

	if (!found)
		return false;
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		uint32_t stack = thread->stack_id;
		if (!thread->wait || thread->frame_count == 0 || stack >= stacks)
			continue;
		if (!found[stack].searched)
			found[stack] = find(snapshot, thread, table);
		if (!set_purpose(snapshot, i, &found[stack]) || !set_sqlite(snapshot, i))
			return false;
	}
	return find_exhausted_pools(snapshot);
}

/* Application locks --------------------------------------------------------- */

static bool waits_for_lock(const struct ss_task *thread)
{
	return thread->wait && thread->wait->purpose == SS_PURPOSE_LOCK;
}

/* Locks are told apart by their description; without, by the function. Strings are
   interned. */
static const char *key_of(const struct ss_wait *wait)
{
	return wait->purpose_words ? wait->purpose_words : wait->purpose_function;
}

/* A thread that does not wait for such a lock, nor for work that it is known to wait for. */
static bool may_hold(const struct ss_task *thread)
{
	return thread->frame_count > 0 && !waits_for_lock(thread) &&
	       (!thread->wait || thread->wait->purpose < SS_PURPOSE_IDLE);
}

/* Whether it is a function of the program in its own language. */
static bool is_of_language(const struct ss_frame *frame)
{
	return frame->kind != SS_FRAME_NATIVE && frame->symbol &&
	       !ss_frame_is_of_library(frame);
}

/* Whether a runtime executes the program: native functions may be the runtime's. */
static bool has_language(const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	return ss_any(thread->frame_count, i,
		      ss_snapshot_frame(snapshot, thread, i)->kind != SS_FRAME_NATIVE);
}

/* The number of outermost frames that two threads have in common, up to the innermost one
   that has a name and is not of the library in which the threads wait and begin; where a
   runtime executes the waiter, up to a function of the program in its own language. */
static size_t common_of_program(const struct ss_snapshot *snapshot,
				const struct ss_task *waiter, const struct ss_task *other)
{
	size_t common = ss_outer_frames_common(snapshot, waiter, snapshot, other);
	const struct ss_module *waits = ss_snapshot_frame(snapshot, waiter, 0)->module;
	bool language = common > 0 && has_language(snapshot, waiter);

	for (size_t i = common; i > 0; i--) {
		const struct ss_frame *frame = ss_outer_frame(snapshot, waiter, i - 1);
		bool native = frame->module && frame->module != waits && frame->symbol;
		if (language ? is_of_language(frame) : native)
			return i;
	}
	return 0;
}

/* The waiters of one lock that are compared: one for each stack. */
static size_t list_waiters(const struct ss_snapshot *snapshot, const char *key,
			   const struct ss_task **ret, size_t *waiting)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		if (!waits_for_lock(thread) || key_of(thread->wait) != key)
			continue;
		++*waiting;
		bool known = count == WAITERS_MAX;
		for (size_t j = 0; j < count && !known; j++)
			known = ret[j]->stack_id == thread->stack_id;
		if (!known)
			ret[count++] = thread;
	}
	return count;
}

static bool is_connection(const struct ss_descriptor *descriptor)
{
	return descriptor && descriptor->kind == SS_FD_SOCKET && !descriptor->listening;
}

/* Whether a thread waits for the next request of its client, not for one of many clients. */
static bool waits_for_client(const struct ss_wait *wait)
{
	switch (wait ? wait->kind : SS_WAIT_OTHER) {
	case SS_WAIT_READ:
	case SS_WAIT_RECEIVE:
		return is_connection(wait->descriptor);
	case SS_WAIT_POLL:
	case SS_WAIT_SELECT:
		return wait->fd_count == 1 && is_connection(wait->fds[0].what);
	default:
		return false;
	}
}

/* Whether a thread does nothing in the function that it has in common with a waiter, but waits
   itself, for the next job of a pool. */
static bool only_waits(const struct ss_snapshot *snapshot, const struct ss_task *thread,
		       size_t common)
{
	const enum ss_wait_kind kind = thread->wait ? thread->wait->kind : SS_WAIT_OTHER;
	const struct ss_module *waits = ss_snapshot_frame(snapshot, thread, 0)->module;

	for (size_t i = 0; i + common < thread->frame_count; i++) {
		if (ss_snapshot_frame(snapshot, thread, i)->module != waits)
			return false;
	}
	return kind == SS_WAIT_CONDVAR || kind == SS_WAIT_SEMAPHORE ||
	       kind == SS_WAIT_FUTEX;
}

/* Threads that have equally much in common with a waiter. */
struct suspects {
	size_t most; /* frames in common */
	size_t total;
	const char *function; /* the innermost one in common */
	size_t *items;	      /* up to SUSPECTS_MAX indexes of threads */
};

/* Adds the thread, unless others have more in common. */
static void add_suspect(struct suspects *suspects, size_t index, size_t common,
			const char *function)
{
	if (common == 0 || common < suspects->most)
		return;
	if (common > suspects->most) {
		suspects->total = 0;
		suspects->function = function;
	}
	suspects->most = common;
	if (suspects->total < SUSPECTS_MAX)
		suspects->items[suspects->total] = index;
	suspects->total++;
}

/* Lists the threads that have the most functions in common with a waiter, and of those that have less
   in common and wait for their clients, those that have the most. */
static bool find_suspects(struct ss_snapshot *snapshot,
			  const struct ss_task *const *waiters, size_t count,
			  struct ss_application_lock *lock)
{
	struct suspects all = {};
	struct suspects clients = {};

	all.items = ss_snapshot_alloc(snapshot, SUSPECTS_MAX, sizeof(*all.items));
	clients.items = ss_snapshot_alloc(snapshot, SUSPECTS_MAX, sizeof(*clients.items));
	if (!all.items || !clients.items)
		return false;
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		const struct ss_task *nearest = NULL;
		size_t common = 0;
		for (size_t j = 0; j < count && may_hold(thread); j++) {
			size_t now = common_of_program(snapshot, waiters[j], thread);
			nearest = now > common ? waiters[j] : nearest;
			common = SS_MAX(common, now);
		}
		if (nearest && only_waits(snapshot, thread, common))
			continue;
		const char *function =
			nearest ? ss_outer_frame(snapshot, nearest, common - 1)->symbol :
				  NULL;
		add_suspect(&all, i, common, function);
		if (waits_for_client(thread->wait))
			add_suspect(&clients, i, common, function);
	}
	lock->suspects = all.items;
	lock->suspects_total = all.total;
	lock->suspect_count = SS_MIN(all.total, (size_t)SUSPECTS_MAX);
	lock->common_function = all.function;
	if (clients.most == all.most)
		return true;
	lock->client_suspects = clients.items;
	lock->client_suspects_total = clients.total;
	lock->client_suspect_count = SS_MIN(clients.total, (size_t)SUSPECTS_MAX);
	lock->client_function = clients.function;
	return true;
}

static bool is_listed(const struct ss_snapshot *snapshot, const char *key)
{
	for (size_t i = 0; i < snapshot->application_locks.count; i++) {
		const struct ss_application_lock *lock =
			&snapshot->application_locks.items[i];
		if ((lock->words ? lock->words : lock->function) == key)
			return true;
	}
	return false;
}

static bool add_lock(struct ss_snapshot *snapshot, const struct ss_wait *wait)
{
	const struct ss_task *waiters[WAITERS_MAX];
	struct ss_application_lock lock = { .function = wait->purpose_function,
					    .words = wait->purpose_words,
					    .owner_pid = wait->owner_pid,
					    .owner_process = wait->owner_process };
	size_t count = list_waiters(snapshot, key_of(wait), waiters, &lock.waiting);

	if (!find_suspects(snapshot, waiters, count, &lock))
		return false;
	struct ss_application_lock *slot = ss_vector_push(&snapshot->application_locks);
	if (slot)
		*slot = lock;
	return slot != NULL;
}

static int compare_locks(const void *a, const void *b)
{
	const struct ss_application_lock *x = a;
	const struct ss_application_lock *y = b;

	return SS_COMPARE(y->waiting, x->waiting) ?: strcmp(x->function, y->function);
}

bool ss_application_locks_find(struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		if (snapshot->application_locks.count < LOCKS_MAX &&
		    waits_for_lock(thread) &&
		    !is_listed(snapshot, key_of(thread->wait)) &&
		    !add_lock(snapshot, thread->wait))
			return false;
	}
	if (snapshot->application_locks.count > 1)
		qsort(snapshot->application_locks.items,
		      snapshot->application_locks.count,
		      sizeof(*snapshot->application_locks.items), compare_locks);
	return true;
}
