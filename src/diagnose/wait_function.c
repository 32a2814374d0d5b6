#include "diagnose/wait_function.h"

#include <string.h>

/* Limit of searched frames, including inlined calls and wrappers. */
enum { FRAMES_MAX = 16, NAME_MAX_SIZE = 64 };

struct known {
	const char *name;
	enum ss_lock_class lock_class;
};

/* Functions of glibc and musl that wait, by plain name. */
static const struct known functions[] = {
	{ "pthread_mutex_lock", SS_CLASS_MUTEX },
	{ "pthread_mutex_lock_full", SS_CLASS_MUTEX },
	{ "pthread_mutex_timedlock", SS_CLASS_MUTEX },
	{ "pthread_mutex_timedlock_pi", SS_CLASS_MUTEX },
	{ "pthread_mutex_clocklock", SS_CLASS_MUTEX },
	{ "pthread_mutex_clocklock_common", SS_CLASS_MUTEX },
	{ "pthread_mutex_cond_lock", SS_CLASS_MUTEX },
	{ "pthread_mutex_cond_lock_full", SS_CLASS_MUTEX },
	{ "pthread_rwlock_rdlock", SS_CLASS_READ },
	{ "pthread_rwlock_rdlock_full", SS_CLASS_READ },
	{ "pthread_rwlock_rdlock_full64", SS_CLASS_READ },
	{ "pthread_rwlock_timedrdlock", SS_CLASS_READ },
	{ "pthread_rwlock_timedrdlock64", SS_CLASS_READ },
	{ "pthread_rwlock_clockrdlock", SS_CLASS_READ },
	{ "pthread_rwlock_clockrdlock64", SS_CLASS_READ },
	{ "pthread_rwlock_wrlock", SS_CLASS_WRITE },
	{ "pthread_rwlock_wrlock_full", SS_CLASS_WRITE },
	{ "pthread_rwlock_wrlock_full64", SS_CLASS_WRITE },
	{ "pthread_rwlock_timedwrlock", SS_CLASS_WRITE },
	{ "pthread_rwlock_timedwrlock64", SS_CLASS_WRITE },
	{ "pthread_rwlock_clockwrlock", SS_CLASS_WRITE },
	{ "pthread_rwlock_clockwrlock64", SS_CLASS_WRITE },
	{ "pthread_cond_wait", SS_CLASS_CONDVAR },
	{ "pthread_cond_wait_common", SS_CLASS_CONDVAR },
	{ "pthread_cond_timedwait", SS_CLASS_CONDVAR },
	{ "pthread_cond_timedwait64", SS_CLASS_CONDVAR },
	{ "pthread_cond_clockwait", SS_CLASS_CONDVAR },
	{ "pthread_cond_clockwait64", SS_CLASS_CONDVAR },
	{ "cnd_wait", SS_CLASS_CONDVAR },
	{ "cnd_timedwait", SS_CLASS_CONDVAR },
	{ "sem_wait", SS_CLASS_SEMAPHORE },
	{ "new_sem_wait", SS_CLASS_SEMAPHORE },
	{ "new_sem_wait_slow", SS_CLASS_SEMAPHORE },
	{ "new_sem_wait_slow64", SS_CLASS_SEMAPHORE },
	{ "sem_timedwait", SS_CLASS_SEMAPHORE },
	{ "sem_timedwait64", SS_CLASS_SEMAPHORE },
	{ "sem_clockwait", SS_CLASS_SEMAPHORE },
	{ "sem_clockwait64", SS_CLASS_SEMAPHORE },
	{ "pthread_barrier_wait", SS_CLASS_BARRIER },
	{ "pthread_join", SS_CLASS_JOIN },
	{ "pthread_join_common", SS_CLASS_JOIN },
	{ "pthread_timedjoin_np", SS_CLASS_JOIN },
	{ "pthread_clockjoin_np", SS_CLASS_JOIN },
	{ "pthread_clockjoin_ex", SS_CLASS_JOIN },
	{ "thrd_join", SS_CLASS_JOIN },
	{ "pthread_once", SS_CLASS_ONCE },
	{ "pthread_once_slow", SS_CLASS_ONCE },
	{ "pthread_once_full", SS_CLASS_ONCE },
	{ "call_once", SS_CLASS_ONCE },
	{ "cxa_guard_acquire", SS_CLASS_STATIC_INIT },
	{ "lll_lock_wait_private", SS_CLASS_LIBC },
};

/* Functions of Rust's standard library, named "std::sys::...::Mutex::lock_contended"
   or, with v0 mangling, "<std::sys::...::Mutex>::lock_contended": a name must contain
   both parts, in this order. */
static const struct {
	const char *pieces[2];
	enum ss_lock_class lock_class;
} rust[] = {
	{ { "Mutex", "::lock_contended" }, SS_CLASS_RUST_MUTEX },
	{ { "RwLock", "::read_contended" }, SS_CLASS_RUST_READ },
	{ { "RwLock", "::write_contended" }, SS_CLASS_RUST_WRITE },
	{ { "Condvar", "::wait" }, SS_CLASS_RUST_CONDVAR },
	{ { "Once", "::call" }, SS_CLASS_RUST_ONCE },
	{ { "Once", "::wait" }, SS_CLASS_RUST_ONCE },
	{ { "Parker", "::park" }, SS_CLASS_RUST_PARKER },
	{ { "std::thread::", "park" }, SS_CLASS_RUST_PARKER },
};

static bool ends_with_number(const char *text)
{
	return strspn(text, "0123456789") == strlen(text);
}

void ss_wait_function_plain_name(const char *symbol, char *ret, size_t size)
{
	static const char *const parts[] = { ".part.", ".constprop.", ".isra.", ".cold" };

	symbol += strspn(symbol, "_");
	if (strncmp(symbol, "GI_", 3) == 0)
		symbol += 3;
	symbol += strspn(symbol, "_");
	size_t length = SS_MIN(strcspn(symbol, "@ ("), size - 1);
	memcpy(ret, symbol, length);
	ret[length] = '\0';
	for (size_t i = 0; i < SS_ARRAY_SIZE(parts); i++) {
		char *part = strstr(ret, parts[i]);
		if (part && ends_with_number(part + strlen(parts[i])))
			*part = '\0';
	}
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static enum ss_lock_class find_rust(const char *symbol)
{
	symbol += *symbol == '<';
	if (!starts_with(symbol, "std::sys") && !starts_with(symbol, "std::thread"))
		return SS_CLASS_UNKNOWN;
	for (size_t i = 0; i < SS_ARRAY_SIZE(rust); i++) {
		const char *type = strstr(symbol, rust[i].pieces[0]);
		if (type && strstr(type, rust[i].pieces[1]))
			return rust[i].lock_class;
	}
	return SS_CLASS_UNKNOWN;
}

enum ss_lock_class ss_wait_function_class(const char *symbol)
{
	char name[NAME_MAX_SIZE];

	if (strstr(symbol, "std::"))
		return find_rust(symbol);
	ss_wait_function_plain_name(symbol, name, sizeof(name));
	for (size_t i = 0; i < SS_ARRAY_SIZE(functions); i++) {
		if (strcmp(name, functions[i].name) == 0)
			return functions[i].lock_class;
	}
	return SS_CLASS_UNKNOWN;
}

/* Whether the frame is musl's: glibc does not have these waiting functions. */
static bool is_musl(const struct ss_frame *frame)
{
	static const char *const names[] = { "timedwait", "timedwait_cp", "wait",
					     "futexwait", "pthread_mutex_timedlock_pi" };
	char name[NAME_MAX_SIZE];

	if (frame->module && frame->module->path && strstr(frame->module->path, "musl"))
		return true;
	/* The symbols are __timedwait and so on; wait() may be defined by the program. */
	if (!frame->symbol || strncmp(frame->symbol, "__", 2) != 0)
		return false;
	ss_wait_function_plain_name(frame->symbol, name, sizeof(name));
	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* A thread that enters a HotSpot monitor waits on its own condition variable. */
static bool enters_monitor(const struct ss_snapshot *snapshot,
			   const struct ss_thread *thread, size_t from)
{
	for (size_t i = from; i < SS_MIN(thread->frame_count, (size_t)FRAMES_MAX); i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		const char *symbol = frame->kind == SS_FRAME_NATIVE ? frame->symbol :
								      NULL;
		if (symbol && (starts_with(symbol, "ObjectMonitor::EnterI(") ||
			       starts_with(symbol, "ObjectMonitor::enter(")))
			return true;
	}
	return false;
}

struct ss_wait_function ss_wait_function_find(const struct ss_snapshot *snapshot,
					      const struct ss_thread *thread)
{
	struct ss_wait_function found = {};

	for (size_t i = 0; i < SS_MIN(thread->frame_count, (size_t)FRAMES_MAX); i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		/* The thread does not wait for what the signal interrupted. */
		if (frame->signal_frame)
			break;
		found.musl |= is_musl(frame);
		if (!frame->symbol || frame->kind != SS_FRAME_NATIVE)
			continue;
		found.has_symbols = true;
		found.lock_class = ss_wait_function_class(frame->symbol);
		if (found.lock_class == SS_CLASS_CONDVAR &&
		    enters_monitor(snapshot, thread, i))
			found.lock_class = SS_CLASS_JAVA_MONITOR;
		if (found.lock_class) {
			found.name = frame->symbol;
			break;
		}
	}
	return found;
}
