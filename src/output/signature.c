#include "output/signature.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	PARTS_MAX = 8,
	INNER_FRAMES = 200, /* of a stack overflow */
};

/* Names are compared without leading underscores, "GI_" and versions. An entry that ends in
   '*' matches any name that begins with the rest. */

/* They say that a process ends, not why. */
static const char *const irrelevant[] = {
	"raise",
	"gsignal",
	"abort",
	"kill",
	"tgkill",
	"pthread_kill*",
	"assert_fail*",
	"assert_perror_fail*",
	"libc_message*",
	"libc_fatal",
	"malloc_printerr*",
	"malloc_assert*",
	"fortify_fail*",
	"chk_fail",
	"stack_chk_fail*",
	"restore_rt",
	"kernel_rt_sigreturn",
	"syscall",
	"cxxabiv1::*",
	"cxa_throw",
	"cxa_rethrow",
	"gnu_cxx::__verbose_terminate_handler*",
	"std::terminate*",
	"terminate",
	"Unwind_*",
	"gxx_personality_v0",
	"cxa_call_unexpected",
	"cxa_pure_virtual",
	"std::__throw_*",
	"std::__glibcxx_assert_fail*",
	"rust_panic*",
	"rust_start_panic",
	"core::panicking::*",
	"std::panicking::*",
	"runtime.raise*",
	"runtime.dieFromSignal*",
	"runtime.crash",
	"runtime.fatal*",
	"runtime.throw",
	"runtime.gopanic",
	"runtime.panic*",
	"runtime.goPanic*",
	"runtime.sigpanic*",
};

/* Their callers are to blame. */
static const char *const blameless[] = {
	"memccpy*",
	"memchr*",
	"memcmp*",
	"memcpy*",
	"memmem*",
	"memmove*",
	"mempcpy*",
	"memrchr*",
	"memset*",
	"stpcpy*",
	"stpncpy*",
	"strcasecmp*",
	"strcasestr*",
	"strcat*",
	"strchr*",
	"strcmp*",
	"strcoll*",
	"strcpy*",
	"strcspn*",
	"strdup",
	"strlen*",
	"strncasecmp*",
	"strncat*",
	"strncmp*",
	"strncpy*",
	"strndup",
	"strnlen*",
	"strpbrk*",
	"strrchr*",
	"strsep*",
	"strspn*",
	"strstr*",
	"strtod*",
	"strtok*",
	"strtol*",
	"strtoul*",
	"wcs*",
	"wmem*",
	"malloc",
	"malloc_consolidate",
	"calloc",
	"realloc",
	"free",
	"cfree",
	"int_malloc*",
	"int_free*",
	"int_realloc*",
	"libc_malloc*",
	"libc_free*",
	"libc_calloc*",
	"libc_realloc*",
	"operator new*",
	"operator delete*",
	"vfprintf*",
	"vsnprintf*",
	"printf*",
	"snprintf*",
	"sprintf*",
	"fprintf*",
	"pthread_mutex_*",
	"pthread_cond_*",
	"pthread_rwlock_*",
	"lll_lock_wait*",
	"unlink_chunk*",
	"tcache_*",
	"sysmalloc*",
	"std::*",
};

static bool matches(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(list[i]);
		bool open = list[i][size - 1] == '*';
		if (open ? strncmp(name, list[i], size - 1) == 0 :
			   strcmp(name, list[i]) == 0)
			return true;
	}
	return false;
}

/* The name without what differs between builds of the C library. Points into symbol. */
static const char *stem(const char *symbol)
{
	while (*symbol == '_')
		symbol++;
	return strncmp(symbol, "GI_", 3) == 0 ? stem(symbol + 3) : symbol;
}

/* The length of a name without the version and without what tells parts of a function apart. */
static size_t base_size(const char *symbol)
{
	static const char *const suffixes[] = { ".cold",   ".part.",	 ".constprop.",
						".isra.",  ".lto_priv.", "@",
						" [clone " };
	for (const char *at = symbol; *at; at++) {
		for (size_t i = 0; i < SS_ARRAY_SIZE(suffixes) && at > symbol; i++) {
			if (strncmp(at, suffixes[i], strlen(suffixes[i])) == 0)
				return (size_t)(at - symbol);
		}
	}
	return strlen(symbol);
}

/* A function of the C or C++ library that has no name, since these are stripped: it is one
   of those that end the process, or works for its caller. */
static bool is_unnamed_runtime(const struct ss_frame *frame)
{
	static const char *const names[] = { "libc.so.*",      "libc-2.*",
					     "libstdc++.so.*", "libgcc_s.so.*",
					     "libc++.so.*",    "libc++abi.so.*",
					     "ld-linux*",      "libpthread*" };
	const char *slash = frame->module ? strrchr(frame->module->path, '/') : NULL;

	return !frame->symbol && slash && matches(slash + 1, names, SS_ARRAY_SIZE(names));
}

static void write_frame(const struct ss_frame *frame, FILE *out)
{
	const char *path = frame->module ? frame->module->path : frame->area;
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (frame->symbol) {
		size_t size = frame->kind == SS_FRAME_NATIVE ? base_size(frame->symbol) :
							       strlen(frame->symbol);
		(void)fwrite_unlocked(frame->symbol, 1, size, out);
		return;
	}
	(void)fputs_unlocked(slash ? slash + 1 : path ? path : "[unmapped]", out);
	if (frame->module)
		(void)fprintf(out, "+0x%" PRIx64, frame->lookup_offset);
}

const struct ss_thread *ss_signature_thread(const struct ss_snapshot *snapshot)
{
	const struct ss_crash *crash = &ss_snapshot_process(snapshot)->crash;

	for (size_t i = 0; crash->signal && i < ss_snapshot_thread_count(snapshot); i++) {
		const struct ss_thread *thread = ss_snapshot_thread(snapshot, i);
		if (thread->tid == crash->tid)
			return thread;
	}
	return NULL;
}

/* Where the cause is: a handler that has reported a signal raises it again, and the function
   that was interrupted is below. If the kernel sent the signal, the cause is right here. */
static size_t find_first(const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread)
{
	const struct ss_crash *crash = &ss_snapshot_process(snapshot)->crash;
	size_t first = 0;

	if (crash->has_info && crash->code > 0)
		return 0;
	for (size_t i = 0; i + 1 < thread->frame_count; i++) {
		if (ss_snapshot_frame(snapshot, thread, i)->signal_frame)
			first = i + 1;
	}
	return first;
}

static bool is_same_function(const struct ss_frame *a, const struct ss_frame *b)
{
	if (a->symbol && b->symbol)
		return strcmp(a->symbol, b->symbol) == 0;
	return !a->symbol && !b->symbol && a->module == b->module && a->area == b->area &&
	       a->lookup_offset == b->lookup_offset;
}

static int compare_functions(const void *a, const void *b)
{
	const struct ss_frame *x = *(const struct ss_frame *const *)a;
	const struct ss_frame *y = *(const struct ss_frame *const *)b;

	if (!x->symbol || !y->symbol)
		return (!x->symbol - !y->symbol) != 0 ?
			       !x->symbol - !y->symbol :
			       (x->lookup_offset > y->lookup_offset) -
				       (x->lookup_offset < y->lookup_offset);
	return strcmp(x->symbol, y->symbol);
}

/*
 * Of a stack overflow: the functions of the recursion, sorted. Which of them, or of the
 * functions that they call, needs the last bytes of the stack is a matter of chance. False:
 * there is no recursion.
 */
static bool write_recursion(const struct ss_snapshot *snapshot,
			    const struct ss_thread *thread, FILE *out)
{
	const struct ss_frame *all[INNER_FRAMES] = {};
	size_t count = 0;
	size_t parts = 0;

	for (size_t i = 0; i < SS_MIN(thread->frame_count, (size_t)INNER_FRAMES); i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		const char *name = frame->symbol ? stem(frame->symbol) : "";
		if (!matches(name, irrelevant, SS_ARRAY_SIZE(irrelevant)) &&
		    !matches(name, blameless, SS_ARRAY_SIZE(blameless)))
			all[count++] = frame;
	}
	qsort(all, count, sizeof(*all), compare_functions);
	for (size_t i = 1; i < count && parts < PARTS_MAX; i++) {
		if (!is_same_function(all[i], all[i - 1]) ||
		    (i > 1 && is_same_function(all[i], all[i - 2])))
			continue;
		(void)fputs_unlocked(parts++ ? " | " : "", out);
		write_frame(all[i], out);
	}
	return parts > 0;
}

void ss_signature_write(const struct ss_snapshot *snapshot,
			const struct ss_thread *thread, FILE *out)
{
	const char *last = NULL;
	size_t parts = 0;

	if (ss_snapshot_process(snapshot)->crash.stack_overflow &&
	    write_recursion(snapshot, thread, out))
		return;
	for (size_t i = find_first(snapshot, thread);
	     i < thread->frame_count && parts < PARTS_MAX; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		const char *name = frame->symbol ? stem(frame->symbol) : "";
		if (frame->signal_frame || is_unnamed_runtime(frame) ||
		    matches(name, irrelevant, SS_ARRAY_SIZE(irrelevant)))
			continue;
		if (last && frame->symbol && strcmp(last, frame->symbol) == 0)
			continue; /* recursion */
		(void)fputs_unlocked(parts++ ? " | " : "", out);
		write_frame(frame, out);
		last = frame->symbol;
		if (!matches(name, blameless, SS_ARRAY_SIZE(blameless)))
			return;
	}
}
