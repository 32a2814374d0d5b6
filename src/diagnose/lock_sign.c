#include "diagnose/lock_sign.h"

#include <string.h>

/* Inlined functions and musl's wrappers count as well. */
enum { FRAMES_MAX = 16, NAME_MAX_SIZE = 64 };

struct known {
	const char *name;
	enum ss_lock_layout layout;
};

/* Functions of glibc and musl that wait, as plain names. */
static const struct known functions[] = {
	{ "pthread_mutex_lock", SS_LOCK_MUTEX },
	{ "pthread_mutex_lock_full", SS_LOCK_MUTEX },
	{ "pthread_mutex_timedlock", SS_LOCK_MUTEX },
	{ "pthread_mutex_timedlock_pi", SS_LOCK_MUTEX },
	{ "pthread_mutex_clocklock", SS_LOCK_MUTEX },
	{ "pthread_mutex_clocklock_common", SS_LOCK_MUTEX },
	{ "pthread_mutex_cond_lock", SS_LOCK_MUTEX },
	{ "pthread_mutex_cond_lock_full", SS_LOCK_MUTEX },
	{ "pthread_rwlock_rdlock", SS_LOCK_READ },
	{ "pthread_rwlock_rdlock_full", SS_LOCK_READ },
	{ "pthread_rwlock_rdlock_full64", SS_LOCK_READ },
	{ "pthread_rwlock_timedrdlock", SS_LOCK_READ },
	{ "pthread_rwlock_timedrdlock64", SS_LOCK_READ },
	{ "pthread_rwlock_clockrdlock", SS_LOCK_READ },
	{ "pthread_rwlock_clockrdlock64", SS_LOCK_READ },
	{ "pthread_rwlock_wrlock", SS_LOCK_WRITE },
	{ "pthread_rwlock_wrlock_full", SS_LOCK_WRITE },
	{ "pthread_rwlock_wrlock_full64", SS_LOCK_WRITE },
	{ "pthread_rwlock_timedwrlock", SS_LOCK_WRITE },
	{ "pthread_rwlock_timedwrlock64", SS_LOCK_WRITE },
	{ "pthread_rwlock_clockwrlock", SS_LOCK_WRITE },
	{ "pthread_rwlock_clockwrlock64", SS_LOCK_WRITE },
	{ "pthread_cond_wait", SS_LOCK_COND },
	{ "pthread_cond_wait_common", SS_LOCK_COND },
	{ "pthread_cond_timedwait", SS_LOCK_COND },
	{ "pthread_cond_timedwait64", SS_LOCK_COND },
	{ "pthread_cond_clockwait", SS_LOCK_COND },
	{ "pthread_cond_clockwait64", SS_LOCK_COND },
	{ "cnd_wait", SS_LOCK_COND },
	{ "cnd_timedwait", SS_LOCK_COND },
	{ "sem_wait", SS_LOCK_SEM },
	{ "new_sem_wait", SS_LOCK_SEM },
	{ "new_sem_wait_slow", SS_LOCK_SEM },
	{ "new_sem_wait_slow64", SS_LOCK_SEM },
	{ "sem_timedwait", SS_LOCK_SEM },
	{ "sem_timedwait64", SS_LOCK_SEM },
	{ "sem_clockwait", SS_LOCK_SEM },
	{ "sem_clockwait64", SS_LOCK_SEM },
	{ "pthread_barrier_wait", SS_LOCK_BARRIER },
	{ "pthread_join", SS_LOCK_JOIN },
	{ "pthread_join_common", SS_LOCK_JOIN },
	{ "pthread_timedjoin_np", SS_LOCK_JOIN },
	{ "pthread_clockjoin_np", SS_LOCK_JOIN },
	{ "pthread_clockjoin_ex", SS_LOCK_JOIN },
	{ "thrd_join", SS_LOCK_JOIN },
	{ "pthread_once", SS_LOCK_ONCE },
	{ "pthread_once_slow", SS_LOCK_ONCE },
	{ "pthread_once_full", SS_LOCK_ONCE },
	{ "call_once", SS_LOCK_ONCE },
	{ "cxa_guard_acquire", SS_LOCK_STATIC },
	{ "lll_lock_wait_private", SS_LOCK_INTERNAL },
};

/* Functions of Rust's standard library, which come as
   "std::sys::...::Mutex::lock_contended" or, mangled in the newer way, as
   "<std::sys::...::Mutex>::lock_contended": both pieces, in this order. */
static const struct {
	const char *pieces[2];
	enum ss_lock_layout layout;
} rust[] = {
	{ { "Mutex", "::lock_contended" }, SS_LOCK_RUST_MUTEX },
	{ { "RwLock", "::read_contended" }, SS_LOCK_RUST_READ },
	{ { "RwLock", "::write_contended" }, SS_LOCK_RUST_WRITE },
	{ { "Condvar", "::wait" }, SS_LOCK_RUST_COND },
	{ { "Once", "::call" }, SS_LOCK_RUST_ONCE },
	{ { "Once", "::wait" }, SS_LOCK_RUST_ONCE },
	{ { "Parker", "::park" }, SS_LOCK_RUST_PARK },
	{ { "std::thread::", "park" }, SS_LOCK_RUST_PARK },
};

static bool ends_with_number(const char *text)
{
	return strspn(text, "0123456789") == strlen(text);
}

void ss_lock_sign_plain_name(const char *symbol, char *ret, size_t size)
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

static enum ss_lock_layout find_rust(const char *symbol)
{
	symbol += *symbol == '<';
	if (!starts_with(symbol, "std::sys") && !starts_with(symbol, "std::thread"))
		return SS_LOCK_UNKNOWN;
	for (size_t i = 0; i < SS_ARRAY_SIZE(rust); i++) {
		const char *type = strstr(symbol, rust[i].pieces[0]);
		if (type && strstr(type, rust[i].pieces[1]))
			return rust[i].layout;
	}
	return SS_LOCK_UNKNOWN;
}

static enum ss_lock_layout find_function(const char *symbol)
{
	char name[NAME_MAX_SIZE];

	if (strstr(symbol, "std::"))
		return find_rust(symbol);
	ss_lock_sign_plain_name(symbol, name, sizeof(name));
	for (size_t i = 0; i < SS_ARRAY_SIZE(functions); i++) {
		if (strcmp(name, functions[i].name) == 0)
			return functions[i].layout;
	}
	return SS_LOCK_UNKNOWN;
}

/* What the waiting functions of musl call; glibc has none of these. */
static bool is_musl(const struct ss_frame *frame)
{
	static const char *const names[] = { "timedwait", "timedwait_cp", "wait",
					     "futexwait", "pthread_mutex_timedlock_pi" };
	char name[NAME_MAX_SIZE];

	if (frame->module && frame->module->path && strstr(frame->module->path, "musl"))
		return true;
	/* The linker knows them as __timedwait and so on: a program's own wait() is not
	   meant. */
	if (!frame->symbol || strncmp(frame->symbol, "__", 2) != 0)
		return false;
	ss_lock_sign_plain_name(frame->symbol, name, sizeof(name));
	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* A thread that wants a monitor of HotSpot waits on a condition variable of its own. */
static bool wants_monitor(const struct ss_snapshot *snapshot,
			  const struct ss_thread *thread, size_t from)
{
	for (size_t i = from; i < SS_MIN(thread->frame_count, (size_t)FRAMES_MAX); i++) {
		const char *symbol = ss_snapshot_frame(snapshot, thread, i)->symbol;
		if (symbol && (starts_with(symbol, "ObjectMonitor::EnterI(") ||
			       starts_with(symbol, "ObjectMonitor::enter(")))
			return true;
	}
	return false;
}

struct ss_lock_sign ss_lock_sign_find(const struct ss_snapshot *snapshot,
				      const struct ss_thread *thread)
{
	struct ss_lock_sign sign = {};

	for (size_t i = 0; i < SS_MIN(thread->frame_count, (size_t)FRAMES_MAX); i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		/* What lies outside of a signal handler is not what it waits for. */
		if (frame->signal_frame)
			break;
		sign.musl |= is_musl(frame);
		sign.unsure |= frame->source == SS_FROM_RETURN_ADDRESS;
		if (!frame->symbol)
			continue;
		sign.named = true;
		sign.layout = find_function(frame->symbol);
		if (sign.layout == SS_LOCK_COND && wants_monitor(snapshot, thread, i))
			sign.layout = SS_LOCK_JAVA;
		if (sign.layout)
			break;
	}
	return sign;
}
