/*
 * Whose code a frame is: the program's, that of the library of its language, or that of what
 * executes it.
 */
#include <string.h>

#include "data/call.h"
#include "data/snapshot.h"
#include "base/bytes.h"
#include "base/search.h"

static bool begins_with_any(const char *text, const char *const *starts, size_t count)
{
	for (size_t i = 0; text && i < count; i++) {
		if (strncmp(text, starts[i], strlen(starts[i])) == 0)
			return true;
	}
	return false;
}

/* Classes of the JDK. */
static bool is_of_java(const char *symbol)
{
	static const char *const starts[] = { "java.", "javax.", "jdk.", "sun.",
					      "com.sun." };

	return begins_with_any(symbol, starts, SS_ARRAY_SIZE(starts));
}

/* ".../lib/python3.11/queue.py": where CPython installs its library. Below it, packages
   of others are in a directory of their own. */
static bool is_of_python(const char *file)
{
	static const char *const starts[] = { "<frozen " };
	const char *found = file ? strstr(file, "/python3.") : NULL;

	if (begins_with_any(file, starts, SS_ARRAY_SIZE(starts)))
		return true;
	if (!found)
		return false;
	const char *rest = found + strlen("/python3.");
	rest += strspn(rest, "0123456789");
	return rest[0] == '/' && !strstr(rest, "/site-packages/") &&
	       !strstr(rest, "/dist-packages/");
}

/* "node:internal/timers"; without a file, what V8 itself defines, such as Array.map. */
static bool is_of_javascript(const char *file)
{
	static const char *const starts[] = { "node:" };

	return !file || begins_with_any(file, starts, SS_ARRAY_SIZE(starts));
}

bool ss_frame_is_valid(const struct ss_frame *frame)
{
	if (frame->line == UINT32_MAX)
		return false;
	return frame->kind == SS_FRAME_NATIVE ? frame->source != SS_FROM_RUNTIME :
						frame->symbol && frame->module_index < 0;
}

bool ss_frame_is_of_library(const struct ss_frame *frame)
{
	switch (frame->kind) {
	case SS_FRAME_PYTHON:
		return is_of_python(frame->file);
	case SS_FRAME_JAVA:
		return is_of_java(frame->symbol);
	case SS_FRAME_JAVASCRIPT:
		return is_of_javascript(frame->file);
	default:
		return false;
	}
}

const char *ss_path_import(const char *path)
{
	static const struct {
		const char *root;
		size_t skip;
	} roots[] = {
		{ "/site-packages/", sizeof("/site-packages/") - 1 },
		{ "/dist-packages/", sizeof("/dist-packages/") - 1 },
		{ "/lib/python3.", sizeof("/lib/") - 1 },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(roots); i++) {
		const char *root = strstr(path, roots[i].root);
		if (root)
			return root + roots[i].skip;
	}
	return NULL;
}

/* The C library, its loader, and those of C++ and of threads. */
static bool is_c_library(const char *base)
{
	static const char *const starts[] = { "libc.so",   "libc-2.",	   "libpthread",
					      "ld-linux",  "ld-2.",	   "ld-musl",
					      "libc.musl", "librt.so",	   "libdl.so",
					      "libm.so",   "libgcc_s.",	   "libstdc++.so",
					      "libc++.so", "libc++abi.so", "[vdso]",
					      "linux-vdso" };

	return begins_with_any(base, starts, SS_ARRAY_SIZE(starts));
}

enum ss_code ss_frame_code(const struct ss_process *process, const struct ss_frame *frame)
{
	static const char *const directories[] = {
		"/lib/",       "/lib32/",     "/lib64/",	 "/usr/lib/",
		"/usr/lib32/", "/usr/lib64/", "/usr/local/lib/",
	};
	const char *path = frame->module ? frame->module->path : NULL;

	if (!path || (process->executable && strcmp(path, process->executable) == 0))
		return SS_CODE_PROGRAM;
	if (is_c_library(ss_path_base(path)))
		return SS_CODE_C_LIBRARY;
	return begins_with_any(path, directories, SS_ARRAY_SIZE(directories)) ?
		       SS_CODE_LIBRARY :
		       SS_CODE_PROGRAM;
}

/* Files of a runtime, by the kind of its frames. */
static bool is_runtime_file(unsigned kinds, const char *path, const char *base)
{
	static const char *const python[] = { "python", "libpython" };
	static const char *const javascript[] = { "node", "libnode.so", "libuv.so",
						  "libv8" };
	static const char *const java[] = { "libjvm.so", "libjli.so", "java" };

	if (kinds & (1u << SS_FRAME_PYTHON) &&
	    (begins_with_any(base, python, SS_ARRAY_SIZE(python)) ||
	     strstr(path, "/lib-dynload/")))
		return true;
	if (kinds & (1u << SS_FRAME_JAVASCRIPT) &&
	    begins_with_any(base, javascript, SS_ARRAY_SIZE(javascript)))
		return true;
	/* The JDK has its libraries in one directory: .../lib/libjava.so, .../lib/server/libjvm.so */
	return kinds & (1u << SS_FRAME_JAVA) &&
	       (begins_with_any(base, java, SS_ARRAY_SIZE(java)) ||
		strstr(path, "/jvm/"));
}

bool ss_path_is_of_runtime(const char *path)
{
	return path && is_runtime_file(1u << SS_FRAME_PYTHON | 1u << SS_FRAME_JAVA, path,
				       ss_path_base(path));
}

/* Names of C++ templates begin with the type of their result: "void std::__invoke_impl<...>(...)". */
static const char *skip_result(const char *symbol)
{
	const char *name = symbol;
	int depth = 0;

	for (const char *at = symbol; *at && (*at != '(' || depth); at++) {
		depth += *at == '<' || *at == '(';
		depth -= *at == '>' || *at == ')';
		if (*at == ' ' && depth == 0)
			name = at + 1;
	}
	return name;
}

bool ss_symbol_is_of_c_library(const char *symbol)
{
	static const char *const starts[] = {
		"std::",     "<std::",	     "core::",	  "<core::",	 "alloc::",
		"<alloc::",  "<&dyn core::", "__rust_",	  "__gthread",	 "__glibcxx",
		"__cxa_",    "__GI_",	     "__pthread", "___pthread",	 "pthread_",
		"__lll_",    "__futex",	     "futex_",	  "__timedwait", "__wait",
		"__syscall", "sem_",	     "__new_sem",
	};

	return begins_with_any(symbol, starts, SS_ARRAY_SIZE(starts)) ||
	       (symbol && begins_with_any(skip_result(symbol), starts, 1));
}

bool ss_frame_is_of_c_library(const struct ss_frame *frame)
{
	if (frame->kind != SS_FRAME_NATIVE || frame->signal_frame)
		return false;
	if (ss_symbol_is_of_c_library(frame->symbol))
		return true;
	return frame->module && is_c_library(ss_path_base(frame->module->path));
}

static unsigned kinds_of(const struct ss_snapshot *snapshot, const struct ss_task *task)
{
	unsigned kinds = 0;

	for (size_t i = 0; i < task->frame_count; i++)
		kinds |= 1u << ss_snapshot_frame(snapshot, task, i)->kind;
	return kinds & ~(1u << SS_FRAME_NATIVE);
}

struct ss_languages ss_task_languages(const struct ss_snapshot *snapshot,
				      const struct ss_task *task)
{
	return (struct ss_languages){
		.kinds = kinds_of(snapshot, task),
		.go = ss_snapshot_task_count(snapshot, SS_TASK_GOROUTINE) > 0,
	};
}

struct ss_languages ss_snapshot_languages(const struct ss_snapshot *snapshot)
{
	struct ss_languages languages = {
		.go = ss_snapshot_task_count(snapshot, SS_TASK_GOROUTINE) > 0,
	};

	for (size_t i = 0; i < ss_snapshot_runtime_count(snapshot); i++)
		languages.kinds |= 1u << ss_snapshot_runtime(snapshot, i)->kind;
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++)
		languages.kinds |=
			kinds_of(snapshot, ss_snapshot_task(snapshot, SS_TASK_THREAD, i));
	return languages;
}

bool ss_symbol_is_of_go_runtime(const char *symbol)
{
	static const char *const starts[] = { "runtime.", "runtime/",
					      "internal/runtime/" };

	return begins_with_any(symbol, starts, SS_ARRAY_SIZE(starts));
}

bool ss_frame_is_of_runtime(const struct ss_frame *frame,
			    const struct ss_languages *languages)
{
	if (frame->kind != SS_FRAME_NATIVE || frame->signal_frame)
		return frame->kind == SS_FRAME_JIT;
	if (languages->go && ss_symbol_is_of_go_runtime(frame->symbol))
		return true;
	if (!languages->kinds && !languages->go)
		return false;
	if (!frame->module) /* a stub, if it is generated code */
		return frame->area && strcmp(frame->area, "[jit]") == 0;
	const char *base = ss_path_base(frame->module->path);
	return is_c_library(base) ||
	       is_runtime_file(languages->kinds, frame->module->path, base);
}

bool ss_frame_is_of_go_library(const struct ss_frame *frame)
{
	static const char *const starts[] = { "sync.",	      "sync/",	  "internal/",
					      "syscall.",     "net.",	  "net/http.",
					      "os.",	      "os/exec.", "time.",
					      "io.",	      "bufio.",	  "context.",
					      "database/sql." };

	return frame->kind == SS_FRAME_NATIVE &&
	       begins_with_any(frame->symbol, starts, SS_ARRAY_SIZE(starts));
}

/* Whether a thread waits for a file, a socket or a child: threads of runtimes do so for the program. */
static bool does_work(const struct ss_wait *wait)
{
	const enum ss_wait_kind kind = wait ? wait->kind : SS_WAIT_WORK;

	return ss_wait_kind_transfers(kind) || kind == SS_WAIT_CONNECT ||
	       kind == SS_WAIT_CHILD || kind == SS_WAIT_FILE_LOCK ||
	       kind == SS_WAIT_OTHER;
}

bool ss_task_is_of_runtime(const struct ss_snapshot *snapshot, const struct ss_task *task,
			   const struct ss_languages *languages)
{
	const struct ss_wait *wait = task->wait;
	const bool thread = task->kind == SS_TASK_THREAD;

	if (wait && wait->purpose == SS_PURPOSE_SERVICE)
		return true;
	if ((!languages->kinds && !languages->go) || task->frame_count == 0 ||
	    task->native_reason || !ss_end_is_outermost(task->end) || does_work(wait))
		return false;
	/* The event loop of node has no frame of the program while it waits. The launcher of Java only
	   waits for the program to end. */
	if (thread && !languages->go && task->tid == ss_snapshot_process(snapshot)->pid &&
	    !(wait && wait->kind == SS_WAIT_JOIN))
		return false;
	return ss_all(
		task->frame_count, i,
		ss_frame_is_of_runtime(ss_snapshot_frame(snapshot, task, i), languages));
}

size_t ss_task_find_lock(const struct ss_snapshot *snapshot, const struct ss_task *task)
{
	const struct ss_wait *wait = task->wait;
	const char *function =
		wait && wait->purpose == SS_PURPOSE_LOCK ? wait->purpose_function : NULL;

	for (size_t i = 0; function && i < task->frame_count; i++) {
		const char *symbol = ss_snapshot_frame(snapshot, task, i)->symbol;
		if (symbol && strstr(symbol, function))
			return i;
	}
	return 0;
}
