#include "diagnose/lock.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/search.h"
#include "diagnose/wait_table.h"

enum {
	TEXT_MAX = 1 << 20,
	ENTRIES_MAX = 10000,
	FUNCTION_MAX = 256, /* bytes of a function's name, also of a symbol's */
	WORDS_MAX = 256,
	STARS_MAX = 4, /* of a pattern, which keeps matching cheap */
};

/* Symbols ------------------------------------------------------------------ */

static bool starts_with(const char *text, size_t size, const char *start)
{
	return size >= strlen(start) && memcmp(text, start, strlen(start)) == 0;
}

/* Behind the "operator" at symbol, with its sign: "operator<<", "operator()", "operator ". The
   signs are not brackets. */
static size_t skip_operator(const char *symbol, size_t size)
{
	size_t at = strlen("operator");

	if (starts_with(symbol + at, size - at, "()"))
		return at + 2;
	while (at < size && strchr("<>=!+-*/%^&|~,[] ", symbol[at]))
		at++;
	return at;
}

/* Where a name ends without what a compiler appends to parts and clones of functions. */
static size_t without_suffixes(const char *name, size_t size)
{
	static const char *const suffixes[] = { ".part.", ".constprop.", ".isra.",
						".cold", ".llvm." };

	for (size_t i = 0; i < SS_ARRAY_SIZE(suffixes); i++) {
		const char *found = memmem(name, size, suffixes[i], strlen(suffixes[i]));
		size = found ? (size_t)(found - name) : size;
	}
	return size;
}

size_t ss_wait_table_plain_name(const char *symbol, const char **ret)
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t size = strnlen(symbol, FUNCTION_MAX + 1);
	size_t first = size; /* end of the first word */
	size_t begin = 0;    /* of the last word */
	size_t depth = 0;    /* of template arguments */
	size_t end = 0;

	while (end < size && symbol[end] != '@') {
		char c = symbol[end];
		if (starts_with(symbol + end, size - end, anonymous)) {
			end += sizeof(anonymous) - 1;
			continue;
		}
		if (starts_with(symbol + end, size - end, "operator") &&
		    (end == 0 || strchr(": ", symbol[end - 1]))) {
			end += skip_operator(symbol + end, size - end);
			continue;
		}
		if (c == '(' && depth == 0 && (end + 1 >= size || symbol[end + 1] != '*'))
			break;
		if (c == ' ' && depth == 0) {
			first = SS_MIN(first, end);
			begin = end + 1;
		}
		depth += c == '<';
		depth -= c == '>' && depth > 0;
		end++;
	}
	/* Only parameters tell that what is before the name is the type of the result. */
	if (end >= size || symbol[end] != '(' || begin == end) {
		begin = 0;
		end = SS_MIN(first, end);
	}
	*ret = symbol + begin;
	return without_suffixes(symbol + begin, end - begin);
}

/* Writes the nested name of a mangled symbol (Itanium C++ ABI, 5.1.2) as "a::b", without
   templates. Returns its size; 0: it is something else. */
static size_t unmangle(const char *symbol, char *ret, size_t size)
{
	bool nested = starts_with(symbol, strnlen(symbol, 4), "_ZN");
	const char *at = symbol + (nested ? 3 : 2);
	size_t done = 0;

	if (!starts_with(symbol, strnlen(symbol, 4), "_Z"))
		return 0;
	at += nested && *at == 'K';
	while (isdigit((unsigned char)*at)) {
		char *end;
		unsigned long part = strtoul(at, &end, 10);
		if (part == 0 || part > size || strnlen(end, part) < part ||
		    done + part + 2 > size)
			return 0;
		if (done) {
			memcpy(ret + done, "::", 2);
			done += 2;
		}
		if (done + part > size)
			return 0;
		memcpy(ret + done, end, part);
		done += part;
		at = end + part;
		if (!nested)
			break;
	}
	return !nested || *at == 'E' ? done : 0;
}

/* Whether the pattern matches; a '*' that fails is retried one character later, so the
   cost is at most the product of the sizes. */
static bool matches(const struct ss_wait_entry *entry, const char *name, size_t size)
{
	size_t at = 0;
	size_t star = SIZE_MAX;
	size_t retry = 0;

	for (size_t i = 0; i < size;) {
		if (at < entry->size && entry->function[at] == '*') {
			star = at++;
			retry = i;
		} else if (at < entry->size && entry->function[at] == name[i]) {
			at++;
			i++;
		} else if (star != SIZE_MAX) {
			at = star + 1;
			i = ++retry;
		} else {
			return false;
		}
	}
	while (at < entry->size && entry->function[at] == '*')
		at++;
	return at == entry->size;
}

static int compare_names(const char *a, size_t a_size, const char *b, size_t b_size)
{
	return memcmp(a, b, SS_MIN(a_size, b_size)) ?: SS_COMPARE(a_size, b_size);
}

static int compare_entries(const void *a, const void *b)
{
	const struct ss_wait_entry *x = a;
	const struct ss_wait_entry *y = b;

	return compare_names(x->function, x->size, y->function, y->size) ?:
		       SS_COMPARE(x->number, y->number);
}

static const struct ss_wait_entry *find_exact(const struct ss_wait_table *table,
					      const char *name, size_t size)
{
	size_t low = 0;
	size_t high = table->exact.count;

	/* The first entry behind all those of this name. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct ss_wait_entry *entry = &table->exact.items[middle];
		if (compare_names(entry->function, entry->size, name, size) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	const struct ss_wait_entry *last = &table->exact.items[low - 1];
	return compare_names(last->function, last->size, name, size) == 0 ? last : NULL;
}

const struct ss_wait_entry *ss_wait_table_find(const struct ss_wait_table *table,
					       const char *symbol)
{
	char plain[FUNCTION_MAX];
	const char *name = plain;
	size_t size = unmangle(symbol, plain, sizeof(plain));

	if (size == 0) {
		size = ss_wait_table_plain_name(symbol, &name);
	}
	if (size == 0 || size > FUNCTION_MAX)
		return NULL;
	const struct ss_wait_entry *found = find_exact(table, name, size);
	for (size_t i = table->globs.count; i > 0; i--) {
		const struct ss_wait_entry *glob = &table->globs.items[i - 1];
		if (found && found->number > glob->number)
			break;
		if (matches(glob, name, size))
			return glob;
	}
	return found;
}

/* Texts -------------------------------------------------------------------- */

/* A line that is being parsed. */
struct line {
	const char *file;
	unsigned number;
	const char *at;
	const char *end;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word; without, *size is 0. */
static const char *next_word(struct line *line, size_t *size)
{
	while (line->at < line->end && is_blank(*line->at))
		line->at++;
	const char *word = line->at;
	while (line->at < line->end && !is_blank(*line->at))
		line->at++;
	*size = (size_t)(line->at - word);
	return word;
}

static struct ss_error *refuse(const struct line *line, const char *problem)
{
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_INVALID, "%s, line %u: %s", line->file,
			     line->number, problem),
		"a line is KIND FUNCTION [DESCRIPTION], where KIND is lock, event, idle "
		"or service; see stacksnap-waits(5)");
}

static bool find_purpose(const char *word, size_t size, enum ss_wait_purpose *ret)
{
	for (enum ss_wait_purpose i = SS_PURPOSE_LOCK; i <= SS_PURPOSE_SERVICE; i++) {
		const char *name = ss_wait_purpose_name(i);
		if (strlen(name) == size && memcmp(name, word, size) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static size_t count_stars(const char *text, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < size; i++)
		count += text[i] == '*';
	return count;
}

static struct ss_error *add_entry(struct ss_wait_table *table,
				  const struct ss_wait_entry *entry, size_t stars)
{
	struct ss_wait_entry *slot = stars ? ss_vector_push(&table->globs) :
					     ss_vector_push(&table->exact);

	if (!slot)
		return ss_error_no_memory();
	*slot = *entry;
	slot->number = table->count++;
	return NULL;
}

static struct ss_error *parse_line(struct ss_wait_table *table, struct line *line)
{
	struct ss_wait_entry entry = {};
	size_t size;
	const char *kind = next_word(line, &size);

	if (size == 0 || kind[0] == '#')
		return NULL;
	if (!find_purpose(kind, size, &entry.purpose))
		return refuse(line, "unknown kind of wait");
	const char *function = next_word(line, &entry.size);
	if (entry.size == 0)
		return refuse(line, "the name of a function is missing");
	size_t stars = count_stars(function, entry.size);
	if (entry.size > FUNCTION_MAX || stars > STARS_MAX)
		return refuse(line, "the name is longer than 256 bytes, or has more than "
				    "four asterisks");
	if (stars == entry.size)
		return refuse(line, "this would match every function");
	if (table->count == ENTRIES_MAX)
		return refuse(line, "there are more than 10000 functions");
	while (line->at < line->end && is_blank(*line->at))
		line->at++;
	while (line->end > line->at && is_blank(line->end[-1]))
		line->end--;
	if (line->end - line->at > WORDS_MAX)
		return refuse(line, "the description is longer than 256 bytes");
	entry.function = ss_intern_bytes(table->strings, function, entry.size);
	if (line->end > line->at)
		entry.words = ss_intern_bytes(table->strings, line->at,
					      (size_t)(line->end - line->at));
	if (!entry.function)
		return ss_error_no_memory();
	return add_entry(table, &entry, stars);
}

struct ss_error *ss_wait_table_add(struct ss_wait_table *table, const char *file,
				   const char *text, size_t size)
{
	const char *end = text + size;
	struct ss_error *error = NULL;

	if (size > TEXT_MAX)
		return ss_error_new(SS_ERROR_INVALID, "%s is larger than 1 MiB", file);
	if (memchr(text, '\0', size))
		return ss_error_new(SS_ERROR_INVALID, "%s is not a text file", file);
	for (unsigned number = 1; text < end && !error; number++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct line line = { file, number, text, newline ? newline : end };
		error = parse_line(table, &line);
		text = newline ? newline + 1 : end;
	}
	if (table->exact.count > 1)
		qsort(table->exact.items, table->exact.count, sizeof(*table->exact.items),
		      compare_entries);
	return error;
}

struct ss_error *ss_wait_table_new(struct ss_wait_table **ret)
{
	_cleanup_(ss_wait_table_cleanup) struct ss_wait_table *table =
		calloc(1, sizeof(*table));

	if (!table || !(table->strings = ss_intern_new()))
		return ss_error_no_memory();
	struct ss_error *error = ss_wait_table_add(
		table, "the built-in table", ss_wait_functions, ss_wait_functions_size);
	if (error)
		return error;
	table->built_in = table->count;
	*ret = take_ptr(table);
	return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
	const struct ss_wait_entry *x = *(const struct ss_wait_entry *const *)a;
	const struct ss_wait_entry *y = *(const struct ss_wait_entry *const *)b;

	return SS_COMPARE(x->number, y->number);
}

/* Collects the entries that were added, in order of number. */
static size_t list_added(const struct ss_wait_table *table,
			 const struct ss_wait_entry **ret)
{
	size_t count = 0;

	for (size_t i = 0; i < table->exact.count; i++) {
		if (table->exact.items[i].number >= table->built_in)
			ret[count++] = &table->exact.items[i];
	}
	for (size_t i = 0; i < table->globs.count; i++) {
		if (table->globs.items[i].number >= table->built_in)
			ret[count++] = &table->globs.items[i];
	}
	if (count > 1)
		qsort(ret, count, sizeof(const struct ss_wait_entry *), compare_numbers);
	return count;
}

static void add_word(struct ss_buffer *text, const char *word, char end)
{
	ss_buffer_add(text, word, strlen(word));
	ss_buffer_add_byte(text, (uint8_t)end);
}

struct ss_error *ss_wait_table_added(const struct ss_wait_table *table, char **ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	_cleanup_free_ const struct ss_wait_entry **added = calloc(
		table->count - table->built_in + 1, sizeof(const struct ss_wait_entry *));

	if (!added)
		return ss_error_no_memory();
	size_t count = list_added(table, added);
	for (size_t i = 0; i < count; i++) {
		add_word(&text, ss_wait_purpose_name(added[i]->purpose), ' ');
		add_word(&text, added[i]->function, added[i]->words ? ' ' : '\n');
		if (added[i]->words)
			add_word(&text, added[i]->words, '\n');
	}
	ss_buffer_add_byte(&text, 0);
	char *copy = count ? strdup(text.failed ? "" : text.bytes) : NULL;
	if (text.failed || (count && !copy)) {
		free(copy);
		return ss_error_no_memory();
	}
	*ret = copy;
	return NULL;
}

void ss_wait_table_free(struct ss_wait_table *table)
{
	if (!table)
		return;
	ss_intern_free(table->strings);
	ss_vector_free(&table->exact);
	ss_vector_free(&table->globs);
	free(table);
}

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

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static enum ss_lock_class find_rust(const char *symbol)
{
	symbol += *symbol == '<';
	if (!begins_with(symbol, "std::sys") && !begins_with(symbol, "std::thread"))
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
	return ss_any(SS_ARRAY_SIZE(names), i, strcmp(name, names[i]) == 0);
}

/* A thread that enters a HotSpot monitor waits on its own condition variable. */
static bool enters_monitor(const struct ss_snapshot *snapshot,
			   const struct ss_task *thread, size_t from)
{
	for (size_t i = from; i < SS_MIN(thread->frame_count, (size_t)FRAMES_MAX); i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		const char *symbol = frame->kind == SS_FRAME_NATIVE ? frame->symbol :
								      NULL;
		if (symbol && (begins_with(symbol, "ObjectMonitor::EnterI(") ||
			       begins_with(symbol, "ObjectMonitor::enter(")))
			return true;
	}
	return false;
}

bool ss_wait_function_initialises(const struct ss_frame *frame)
{
	return frame->kind == SS_FRAME_NATIVE && frame->symbol &&
	       begins_with(frame->symbol, "InstanceKlass::initialize_impl(");
}

/* A thread that waits for a class of Java that another one initialises. */
static bool awaits_class(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 size_t from)
{
	for (size_t i = from; i < SS_MIN(thread->frame_count, (size_t)FRAMES_MAX); i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->kind != SS_FRAME_NATIVE ||
		    (frame->symbol && strstr(frame->symbol, "::link_class")))
			return false;
		if (ss_wait_function_initialises(frame))
			return true;
	}
	return false;
}

struct ss_wait_function ss_wait_function_find(const struct ss_snapshot *snapshot,
					      const struct ss_task *thread)
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
		found.cancels |= strcmp(frame->symbol, "__syscall_cancel") == 0 ||
				 strcmp(frame->symbol, "__internal_syscall_cancel") == 0;
		found.lock_class = ss_wait_function_class(frame->symbol);
		if (found.lock_class == SS_CLASS_CONDVAR &&
		    enters_monitor(snapshot, thread, i))
			found.lock_class = SS_CLASS_JAVA_MONITOR;
		else if (found.lock_class == SS_CLASS_CONDVAR &&
			 awaits_class(snapshot, thread, i))
			found.lock_class = SS_CLASS_JAVA_CLASS;
		if (found.lock_class) {
			found.name = frame->symbol;
			break;
		}
	}
	return found;
}
