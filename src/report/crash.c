#include "report/crash.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/search.h"
#include "base/text_stream.h"
#include "report/json.h"
#include "report/print.h"

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

	if (frame->symbol) {
		size_t size = frame->kind == SS_FRAME_NATIVE ? base_size(frame->symbol) :
							       strlen(frame->symbol);
		(void)fwrite_unlocked(frame->symbol, 1, size, out);
		return;
	}
	(void)fputs_unlocked(path ? ss_path_base(path) : "[unmapped]", out);
	if (frame->module)
		(void)fprintf(out, "+0x%" PRIx64, frame->lookup_offset);
}

const struct ss_task *ss_signature_thread(const struct ss_snapshot *snapshot)
{
	const struct ss_crash *crash = &ss_snapshot_process(snapshot)->crash;

	for (size_t i = 0;
	     crash->signal && i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		if (thread->tid == crash->tid)
			return thread;
	}
	return NULL;
}

/* Where the cause is: a handler that has reported a signal raises it again, and the function
   that was interrupted is below. If the kernel sent the signal, the cause is right here. */
static size_t find_first(const struct ss_snapshot *snapshot, const struct ss_task *thread)
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
			    const struct ss_task *thread, FILE *out)
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

static void write_names(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			FILE *out)
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

char *ss_signature_new(const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	struct ss_text_stream names;

	if (!ss_text_stream_open(&names))
		return NULL;
	write_names(snapshot, thread, names.out);
	return ss_text_stream_close(&names);
}

/* Codes of the kernel, see sigaction(2). The address follows the text. */
static const struct {
	int signal;
	int code;
	const char *text;
} codes[] = {
	{ SIGSEGV, SEGV_MAPERR, "no memory is mapped at" },
	{ SIGSEGV, SEGV_ACCERR, "the access is not permitted at" },
	{ SIGSEGV, SI_KERNEL,
	  "the address is not canonical, or the access is privileged" },
	{ SIGBUS, BUS_ADRALN, "the address is not aligned:" },
	{ SIGBUS, BUS_ADRERR, "beyond the end of the mapped file, at" },
	{ SIGBUS, BUS_OBJERR, "hardware error at" },
	{ SIGFPE, FPE_INTDIV, "integer division by zero at" },
	{ SIGFPE, FPE_INTOVF, "integer overflow at" },
	{ SIGFPE, FPE_FLTDIV, "floating-point division by zero at" },
	{ SIGILL, ILL_ILLOPC, "illegal instruction at" },
	{ SIGILL, ILL_ILLOPN, "illegal operand at" },
	{ SIGILL, ILL_PRVOPC, "privileged instruction at" },
	{ SIGTRAP, TRAP_BRKPT, "breakpoint at" },
	{ SIGSYS, 1, "a seccomp filter forbids the system call at" },
};

void ss_crash_name(int signal, char *text, size_t size)
{
	const char *name = sigabbrev_np(signal);

	if (name)
		(void)snprintf(text, size, "SIG%s", name);
	else
		(void)snprintf(text, size, "signal %d", signal);
}

static void write_cause(const struct ss_process *process, FILE *out)
{
	const struct ss_crash *crash = &process->crash;

	if (crash->stack_overflow) {
		(void)fprintf(out, ": stack overflow at 0x%" PRIx64, crash->address);
		return;
	}
	for (size_t i = 0; i < SS_ARRAY_SIZE(codes); i++) {
		if (codes[i].signal != crash->signal || codes[i].code != crash->code)
			continue;
		(void)fprintf(out, ": %s", codes[i].text);
		if (crash->code != SI_KERNEL)
			(void)fprintf(out, " 0x%" PRIx64, crash->address);
		return;
	}
	if (crash->code <= 0 && crash->sender == process->pid)
		(void)fputs_unlocked(", sent by the process itself", out);
	else if (crash->code <= 0 && crash->sender > 0)
		(void)fprintf(out, ", sent by process %d", crash->sender);
}

static void write_signature(const struct ss_snapshot *snapshot,
			    const struct ss_task *thread, FILE *out)
{
	char exact[SS_SIGNATURE_SIZE];
	_cleanup_free_ char *text = ss_signature_new(snapshot, thread);
	_cleanup_error_ struct ss_error *error =
		ss_snapshot_signature(snapshot, thread, exact);

	if (!text || error)
		return;
	(void)fputs_unlocked("signature: ", out);
	ss_escape_write(text, NULL, out);
	(void)fprintf(out, "%s[%s]\n", *text ? " " : "", exact);
}

void ss_crash_write(const struct ss_snapshot *snapshot, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	const struct ss_crash *crash = &process->crash;
	const struct ss_task *thread = ss_signature_thread(snapshot);
	char name[32];

	if (crash->signal == 0)
		return;
	ss_crash_name(crash->signal, name, sizeof(name));
	(void)fprintf(out, "killed by %s in thread %d", name, crash->tid);
	if (crash->has_info)
		write_cause(process, out);
	(void)fputc_unlocked('\n', out);
	if (thread)
		write_signature(snapshot, thread, out);
}

void ss_crash_write_registers(const struct ss_snapshot *snapshot, FILE *out)
{
	enum { PER_LINE = 4 };
	struct ss_register reg;
	size_t count = 0;

	for (; ss_snapshot_crash_register(snapshot, count, &reg); count++)
		(void)fprintf(out, "%s%-3s %016" PRIx64,
			      count == 0	    ? "" :
			      count % PER_LINE == 0 ? "\n" :
						      "  ",
			      reg.name, reg.value);
	if (count)
		(void)fputc_unlocked('\n', out);
}

enum { NAMES_MAX = 5, ID_DIGITS = 12, NS_PER_S = 1000000000 };

/* Crashes with the same hash: neighbours after sorting. */
struct group {
	struct ss_crash_report *reports;
	size_t count;
	uint64_t first_ns;
	uint64_t last_ns;
};

typedef SS_VECTOR(struct group) group_list;

static int compare_hashes(const void *a, const void *b)
{
	const struct ss_crash_report *x = a;
	const struct ss_crash_report *y = b;

	return strcmp(x->hash, y->hash) ?: SS_COMPARE(x->time_ns, y->time_ns);
}

static int compare_hosts(const void *a, const void *b)
{
	const struct ss_crash_report *x = a;
	const struct ss_crash_report *y = b;

	return strcmp(x->host, y->host);
}

static int compare_builds(const void *a, const void *b)
{
	const struct ss_crash_report *x = a;
	const struct ss_crash_report *y = b;
	int order = strcmp(x->program, y->program);

	return order ? order : strcmp(x->build_id, y->build_id);
}

/* The largest first, then what was seen last. */
static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a;
	const struct group *y = b;

	return SS_COMPARE(y->count, x->count)		  ?:
		       SS_COMPARE(y->last_ns, x->last_ns) ?:
		       strcmp(x->reports->hash, y->reports->hash);
}

static struct ss_error *make_groups(struct ss_crash_reports *reports, group_list *ret)
{
	struct ss_crash_report *items = reports->items.items;
	size_t count = reports->items.count;

	if (count > 1)
		qsort(items, count, sizeof(*items), compare_hashes);
	for (size_t i = 0; i < count; i++) {
		struct group *group = ret->count ? &ret->items[ret->count - 1] : NULL;
		if (!group || strcmp(group->reports->hash, items[i].hash) != 0) {
			group = ss_vector_push(ret);
			if (!group)
				return ss_error_no_memory();
			group->reports = &items[i];
			group->first_ns = items[i].time_ns;
		}
		group->count++;
		group->last_ns = items[i].time_ns;
	}
	if (ret->count > 1)
		qsort(ret->items, ret->count, sizeof(*ret->items), compare_groups);
	return NULL;
}

/* How many reports from `at` on are equal, after sorting by compare. */
static size_t run_length(const struct group *group, size_t at,
			 int (*compare)(const void *, const void *))
{
	size_t end = at + 1;

	while (end < group->count &&
	       compare(&group->reports[at], &group->reports[end]) == 0)
		end++;
	return end - at;
}

/* Text --------------------------------------------------------------------- */

static void write_time(uint64_t time_ns, FILE *out)
{
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	struct tm tm = {};
	char text[32] = "?";

	if (gmtime_r(&seconds, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	(void)fputs_unlocked(text, out);
}

static void write_hosts(struct group *group, FILE *out)
{
	size_t names = 0;

	qsort(group->reports, group->count, sizeof(*group->reports), compare_hosts);
	for (size_t i = 0; i < group->count;) {
		size_t count = run_length(group, i, compare_hosts);
		const char *host = group->reports[i].host;
		if (*host && names++ < NAMES_MAX) {
			(void)fputs_unlocked(names == 1 ? "    hosts: " : ", ", out);
			ss_escape_write(host, NULL, out);
			(void)fprintf(out, " (%zu)", count);
		}
		i += count;
	}
	if (names > NAMES_MAX)
		(void)fprintf(out, " and %zu more", names - NAMES_MAX);
	if (names)
		(void)fputc_unlocked('\n', out);
}

static void write_builds(struct group *group, FILE *out)
{
	qsort(group->reports, group->count, sizeof(*group->reports), compare_builds);
	for (size_t i = 0; i < group->count;) {
		size_t count = run_length(group, i, compare_builds);
		const struct ss_crash_report *report = &group->reports[i];
		(void)fputs_unlocked("    ", out);
		ss_escape_write(report->program, NULL, out);
		if (*report->build_id) {
			(void)fputs_unlocked(", build-id ", out);
			ss_escape_write_owned(strndup(report->build_id, ID_DIGITS), NULL,
					      out);
		}
		(void)fprintf(out, " (%zu)\n", count);
		i += count;
	}
}

struct ss_error *ss_crash_groups_write_text(struct ss_crash_reports *reports,
					    unsigned rows, FILE *out)
{
	group_list groups = {};
	struct ss_error *error = make_groups(reports, &groups);

	(void)fprintf(out, "%zu crash%s, %zu different\n", reports->items.count,
		      reports->items.count == 1 ? "" : "es", groups.count);
	for (size_t i = 0; !error && i < groups.count && (!rows || i < rows); i++) {
		struct group *group = &groups.items[i];
		const struct ss_crash_report *first = group->reports;
		(void)fprintf(out, "\n%6zu  ", group->count);
		ss_escape_write(*first->signature ? first->signature : "(no names)", NULL,
				out);
		(void)fputs_unlocked("  ", out);
		ss_escape_write(first->signal, NULL, out);
		(void)fputs_unlocked(" [", out);
		ss_escape_write(first->hash, NULL, out);
		(void)fputs_unlocked("]\n    from ", out);
		write_time(group->first_ns, out);
		(void)fputs_unlocked(" to ", out);
		write_time(group->last_ns, out);
		(void)fputc_unlocked('\n', out);
		write_hosts(group, out);
		write_builds(group, out);
	}
	if (rows && groups.count > rows)
		(void)fprintf(out, "\n%zu more; --rows=0 shows all\n",
			      groups.count - rows);
	if (reports->skipped)
		(void)fprintf(out,
			      reports->skipped == 1 ?
				      "\n%zu file is not a crash report\n" :
				      "\n%zu files are not crash reports\n",
			      reports->skipped);
	if (reports->foreign)
		(void)fprintf(out, "\n%zu file%s skipped: not written by the handler\n",
			      reports->foreign, reports->foreign == 1 ? "" : "s");
	if (reports->refused)
		(void)fprintf(out,
			      "\n%" PRIu64 " crash%s without a report: too many of one "
			      "user in a minute (--rate) or at once\n",
			      reports->refused, reports->refused == 1 ? "" : "es");
	ss_vector_free(&groups);
	return error;
}

/* JSON --------------------------------------------------------------------- */

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

static void write_group(struct group *group, struct ss_json *json)
{
	const struct ss_crash_report *first = group->reports;

	ss_json_new_line(json);
	ss_json_open(json, NULL, '{');
	ss_json_text(json, "stack_hash", first->hash);
	ss_json_text(json, "signature", or_null(first->signature));
	ss_json_text(json, "signal", or_null(first->signal));
	ss_json_unsigned(json, "count", group->count);
	ss_json_unsigned(json, "first_ns", group->first_ns);
	ss_json_unsigned(json, "last_ns", group->last_ns);
	ss_json_open(json, "hosts", '[');
	qsort(group->reports, group->count, sizeof(*group->reports), compare_hosts);
	for (size_t i = 0; i < group->count;) {
		size_t count = run_length(group, i, compare_hosts);
		ss_json_open(json, NULL, '{');
		ss_json_text(json, "name", or_null(group->reports[i].host));
		ss_json_unsigned(json, "count", count);
		ss_json_close(json, '}');
		i += count;
	}
	ss_json_close(json, ']');
	ss_json_open(json, "builds", '[');
	qsort(group->reports, group->count, sizeof(*group->reports), compare_builds);
	for (size_t i = 0; i < group->count;) {
		size_t count = run_length(group, i, compare_builds);
		ss_json_open(json, NULL, '{');
		ss_json_text(json, "program", or_null(group->reports[i].program));
		ss_json_text(json, "build_id", or_null(group->reports[i].build_id));
		ss_json_unsigned(json, "count", count);
		ss_json_close(json, '}');
		i += count;
	}
	ss_json_close(json, ']');
	ss_json_close(json, '}');
}

struct ss_error *ss_crash_groups_write_json(struct ss_crash_reports *reports, FILE *out)
{
	struct ss_json json = { .out = out };
	group_list groups = {};
	struct ss_error *error = make_groups(reports, &groups);

	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-crashes/1");
	ss_json_unsigned(&json, "crashes", reports->items.count);
	ss_json_unsigned(&json, "skipped", reports->skipped);
	ss_json_unsigned(&json, "foreign", reports->foreign);
	ss_json_unsigned(&json, "refused", reports->refused);
	ss_json_open(&json, "groups", '[');
	for (size_t i = 0; !error && i < groups.count; i++)
		write_group(&groups.items[i], &json);
	ss_json_close(&json, ']');
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	ss_vector_free(&groups);
	return error;
}
