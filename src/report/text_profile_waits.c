/*
 * The locks of applications that threads waited for, and the system calls in which threads slept. The first argument identifies the object that
 * they waited on: a futex shared by many threads, or a file descriptor. Futexes are merged
 * by the functions that wait: that of the C library, which tells the kind of lock, and that
 * of the program. A condition variable has two futexes, a pool of locks hundreds.
 */
#include <inttypes.h>
#include <string.h>

#include "base/search.h"
#include "report/print.h"
#include "report/text.h"
#include "report/wait_text.h"
#include "report/profile.h"
#include "report/profile_waits.h"
#include "data/snapshot.h"

enum { NAMES_SHOWN = 3 };

/* An object that threads wait on. */
struct object {
	uint64_t argument; /* of a futex with a program's function: 0 */
	uint32_t process;  /* owns the descriptor or address; SS_ID_NONE: not relevant */
	uint32_t
		wait; /* SS_ID_NONE: a lock of the application, whose index is function */
	uint32_t lock; /* futex: the function of the library that waits, or SS_ID_NONE */
	uint32_t function; /* futex: that of the program, or SS_ID_NONE */
};

/* The address of a futex. */
struct address {
	uint64_t address;
	uint64_t object;
};

/* What is known of an object. */
struct total {
	uint64_t samples;
	uint64_t addresses; /* of futexes */
	uint64_t first;	    /* of these */
	uint64_t detail_samples;
	uint32_t detail; /* the most frequent one: index + 1; 0: not known */
	bool varies;	 /* others wait for something else */
};

struct detail {
	uint32_t object;
	uint32_t detail;
};

/* A thread that waited on an object. */
struct waiter {
	uint32_t object;
	uint32_t thread;
};

struct waiting {
	const struct ss_profile *profile;
	const struct ss_format_options *options;
	FILE *out;
	struct ss_idtable objects;
	struct ss_idtable waiters;
	struct ss_idtable addresses;
	SS_VECTOR(struct total) totals; /* by object */
	struct ss_idtable details;
	SS_VECTOR(uint64_t) detail_samples; /* by number of these */
};

struct row {
	uint64_t samples;
	uint32_t object;
	size_t first; /* of its waiters, which are sorted by object and name */
	size_t count;
};

static void waiting_deinit(struct waiting *w)
{
	ss_idtable_deinit(&w->objects);
	ss_idtable_deinit(&w->waiters);
	ss_idtable_deinit(&w->addresses);
	ss_vector_free(&w->totals);
	ss_idtable_deinit(&w->details);
	ss_vector_free(&w->detail_samples);
}

static bool add_address(struct waiting *w, uint32_t object, uint64_t address)
{
	const struct address key = { .address = address, .object = object };
	struct total *total = &w->totals.items[object];
	size_t known = w->addresses.count;

	if (ss_idtable_add(&w->addresses, &key, sizeof(key), NULL) == SS_ID_NONE)
		return false;
	if (w->addresses.count > known && total->addresses++ == 0)
		total->first = address;
	return true;
}

static bool add_detail(struct waiting *w, uint32_t object,
		       const struct ss_profile_run *run)
{
	const struct detail key = { object, run->detail };
	struct total *total = &w->totals.items[object];

	if (!run->detail)
		return true;
	uint32_t number = ss_idtable_add(&w->details, &key, sizeof(key), NULL);
	if (number == SS_ID_NONE ||
	    (number == w->detail_samples.count && !ss_vector_push(&w->detail_samples)))
		return false;
	w->detail_samples.items[number] += run->count;
	total->varies |= total->detail && total->detail != run->detail;
	if (w->detail_samples.items[number] < total->detail_samples)
		return true;
	total->detail_samples = w->detail_samples.items[number];
	total->detail = run->detail;
	return true;
}

static bool add_run(struct waiting *w, uint32_t thread, const struct ss_profile_run *run)
{
	const struct ss_profile_wait *wait = &w->profile->waits.items[run->wait];
	bool has_object = wait->argument != SS_WAIT_NOTHING;
	struct object key = {
		.argument = has_object ? run->argument : 0,
		.process = has_object ? w->profile->threads.items[thread].process :
					SS_ID_NONE,
		.wait = run->wait,
		.lock = SS_ID_NONE,
		.function = SS_ID_NONE,
	};
	if (run->lock)
		key = (struct object){ .process =
					       w->profile->threads.items[thread].process,
				       .wait = SS_ID_NONE,
				       .lock = SS_ID_NONE,
				       .function = run->lock - 1 };
	else if (wait->argument == SS_WAIT_ADDRESS) {
		struct ss_waiting_function function =
			ss_waiting_function_of(w->profile, run->call);
		key.lock = function.library;
		key.function = function.program;
	}
	if (key.function != SS_ID_NONE)
		key.argument = 0;
	const struct waiter waiter = {
		ss_idtable_add(&w->objects, &key, sizeof(key), NULL), thread
	};

	if (waiter.object == SS_ID_NONE)
		return false;
	if (waiter.object == w->totals.count && !ss_vector_push(&w->totals))
		return false;
	w->totals.items[waiter.object].samples += run->count;
	if (!run->lock && wait->argument == SS_WAIT_ADDRESS &&
	    !add_address(w, waiter.object, run->argument))
		return false;
	if (!add_detail(w, waiter.object, run))
		return false;
	return ss_idtable_add(&w->waiters, &waiter, sizeof(waiter), NULL) != SS_ID_NONE;
}

static bool add_runs(struct waiting *w)
{
	for (uint32_t t = 0; t < w->profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &w->profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			const struct ss_profile_run *run = &thread->runs.items[r];
			if (run->wait != SS_ID_NONE && run->state != 'R' &&
			    !add_run(w, t, run))
				return false;
		}
	}
	return true;
}

static const char *name_of(const struct ss_profile *profile, const struct waiter *waiter)
{
	return profile->threads.items[waiter->thread].name;
}

static int compare_waiters(const void *a, const void *b, void *data)
{
	const struct waiter *x = a;
	const struct waiter *y = b;
	const struct ss_profile *profile = *(const struct ss_profile **)data;

	return SS_COMPARE(x->object, y->object)				?:
		       strcmp(name_of(profile, x), name_of(profile, y)) ?:
		       SS_COMPARE(x->thread, y->thread);
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	return SS_COMPARE(y->samples, x->samples)     ?:
		       SS_COMPARE(y->count, x->count) ?:
							SS_COMPARE(x->object, y->object);
}

/* ", pthread_mutex_lock in take (shop)" */
static void write_functions(const struct waiting *w, const struct object *object)
{
	if (object->function == SS_ID_NONE)
		return;
	(void)fputs(", ", w->out);
	ss_escape_write(ss_profile_function_at(w->profile, object->lock)->name, NULL,
			w->out);
	(void)fputs(" in ", w->out);
	ss_text_profile_name(w->profile, object->function, w->options, w->out);
}

/* "MDL_context::acquire_lock (metadata lock)" */
static void write_lock(const struct waiting *w, uint32_t number)
{
	const struct ss_profile_lock *lock = &w->profile->locks.items[number];

	ss_escape_write(lock->function, NULL, w->out);
	if (!lock->words)
		return;
	(void)fputs(" (", w->out);
	ss_escape_write(lock->words, NULL, w->out);
	(void)fputc(')', w->out);
}

/* " (TCP connection 10.0.0.1:4711 to 10.0.0.2:80)", ", held by worker 4712", each with "mostly" if
   others wait for something else, or if more than a tenth were not looked up. Nothing if most were
   not, or if most wait for something else. */
static void write_detail(const struct waiting *w, const struct total *total)
{
	const struct ss_wait *wait =
		total->detail ? w->profile->details.items[total->detail - 1] : NULL;
	uint64_t unknown = total->samples - total->detail_samples;
	const char *mostly = total->varies || unknown > total->samples / 10 ? "mostly " :
									      "";

	if (!wait || total->detail_samples <= total->samples / 2)
		return;
	_cleanup_free_ char *text = ss_wait_text_new_descriptor(wait->descriptor);
	if (text) {
		(void)fprintf(w->out, " (%s", mostly);
		ss_escape_write(text, NULL, w->out);
		(void)fputc(')', w->out);
	}
	if (!wait->owner_tid && !wait->owner_pid)
		return;
	const char *name = wait->owner_tid ? wait->owner_name : wait->owner_process;
	(void)fprintf(w->out, ", %s%s ", mostly,
		      wait->kind == SS_WAIT_JOIN ? "for the end of" : "held by");
	ss_escape_write(name ? name : "", NULL, w->out);
	(void)fprintf(w->out, " %d", wait->owner_tid ? wait->owner_tid : wait->owner_pid);
}

/* "futex 0x55d0c83f4a10", "30 futexes", "epoll_wait fd 8", "nanosleep" */
static void write_object(const struct waiting *w, uint32_t number)
{
	const struct total *total = &w->totals.items[number];
	const struct object *object = ss_idtable_key(&w->objects, number, NULL);
	if (object->wait == SS_ID_NONE) {
		write_lock(w, object->function);
		return;
	}
	const struct ss_profile_wait *wait = &w->profile->waits.items[object->wait];
	if (total->addresses > 1)
		(void)fprintf(w->out, "%s ", ss_quantity_count(total->addresses).text);
	ss_escape_write(wait->name, NULL, w->out);
	if (wait->argument == SS_WAIT_DESCRIPTOR)
		(void)fprintf(w->out, " fd %d", (int)object->argument);
	else if (total->addresses > 1)
		(void)fputs("es", w->out);
	else if (wait->argument == SS_WAIT_ADDRESS)
		(void)fprintf(w->out, " 0x%" PRIx64, total->first);
	write_functions(w, object);
	write_detail(w, total);
}

/* "worker (12 threads)", "main 100" */
static void write_waiters(const struct waiting *w, const struct waiter *waiters,
			  size_t count)
{
	const struct ss_profile_thread *thread =
		&w->profile->threads.items[waiters->thread];

	ss_escape_write(thread->name, NULL, w->out);
	if (count > 1)
		(void)fprintf(w->out, " (%s threads)", ss_quantity_count(count).text);
	else
		(void)fprintf(w->out, " %d", thread->tid);
}

static void write_row(const struct waiting *w, const struct waiter *waiters,
		      const struct row *row)
{
	size_t shown = 0;

	ss_text_profile_share(row->samples, w->profile->samples, w->out);
	(void)fputs("  ", w->out);
	write_object(w, row->object);
	(void)fputc(':', w->out);
	for (size_t i = 0, same; i < row->count; i += same, shown++) {
		const struct waiter *one = waiters + row->first + i;
		if (shown == NAMES_SHOWN && !w->options->verbose) {
			(void)fprintf(w->out, " and %zu more", row->count - i);
			break;
		}
		for (same = 1; i + same < row->count &&
			       strcmp(name_of(w->profile, one),
				      name_of(w->profile, one + same)) == 0;)
			same++;
		(void)fputs(shown ? ", " : " ", w->out);
		write_waiters(w, one, same);
	}
	(void)fputc('\n', w->out);
}

/* Returns the objects with their waiters, most samples first; NULL without memory. */
static struct row *arrange(const struct waiting *w, struct waiter *waiters)
{
	const struct ss_profile *profile = w->profile;
	size_t count = w->objects.count;
	struct row *rows = calloc(count + 1, sizeof(*rows));

	if (!rows)
		return NULL;
	qsort_r(waiters, w->waiters.count, sizeof(*waiters), compare_waiters, &profile);
	for (size_t i = w->waiters.count; i-- > 0;) {
		struct row *row = &rows[waiters[i].object];
		row->first = i;
		row->count++;
	}
	for (uint32_t i = 0; i < count; i++) {
		rows[i].object = i;
		rows[i].samples = w->totals.items[i].samples;
	}
	qsort(rows, count, sizeof(*rows), compare_rows);
	return rows;
}

static bool is_lock(const struct waiting *w, const struct row *row)
{
	const struct object *object = ss_idtable_key(&w->objects, row->object, NULL);

	return object->wait == SS_ID_NONE;
}

static void write_section(const struct waiting *w, const struct waiter *waiters,
			  const struct row *rows, bool locks)
{
	size_t count = 0;

	for (size_t i = 0; i < w->objects.count; i++) {
		if (is_lock(w, &rows[i]) != locks)
			continue;
		if (count++ == 0)
			ss_text_profile_heading(locks ? "Waits for application locks" :
							"Blocking system calls",
						w->options, w->out);
		if (count <= w->options->rows || w->options->verbose)
			write_row(w, waiters, &rows[i]);
	}
	if (count > w->options->rows && !w->options->verbose)
		(void)fprintf(w->out, "  and %zu more (-v lists them)\n",
			      count - w->options->rows);
}

static bool write_rows(const struct waiting *w)
{
	_cleanup_free_ struct waiter *waiters =
		calloc(w->waiters.count + 1, sizeof(*waiters));
	for (size_t i = 0; waiters && i < w->waiters.count; i++)
		waiters[i] = *(const struct waiter *)ss_idtable_key(&w->waiters,
								    (uint32_t)i, NULL);
	_cleanup_free_ struct row *rows = waiters ? arrange(w, waiters) : NULL;

	if (!rows)
		return false;
	write_section(w, waiters, rows, true);
	write_section(w, waiters, rows, false);
	return true;
}

bool ss_text_profile_waits(const struct ss_profile *profile,
			   const struct ss_format_options *options, FILE *out)
{
	__attribute__((cleanup(waiting_deinit))) struct waiting w = {
		.profile = profile,
		.options = options,
		.out = out,
	};

	return add_runs(&w) && (w.objects.count == 0 || write_rows(&w));
}

/*
 * Waits in recorded snapshots: deadlocks, and what other threads wait for.
 */

enum {
	DEADLOCKS_MAX = 8, /* without -v */
	FRAMES_MAX = 256,  /* of a thread in a deadlock: -v has no limit of threads */
};

/* Writes the process and recording of a thread if there are several. */
static void write_process(const struct ss_profile *profile,
			  const struct ss_profile_thread *thread, FILE *out)
{
	const struct ss_profile_process *process =
		&profile->processes.items[thread->process];

	if (profile->processes.count == 1)
		return;
	(void)fputs(" of ", out);
	ss_escape_write(process->name, NULL, out);
	(void)fprintf(out, " %d", process->pid);
	if (profile->recordings.count == 1)
		return;
	(void)fputs(" in ", out);
	ss_escape_write(ss_profile_recording_of(profile, thread)->file, NULL, out);
}

/* Adds the stack of the last sample of a thread, without what is no function. */
static bool add_stack(struct ss_snapshot *snapshot, const struct ss_profile *profile,
		      const struct ss_profile_thread *thread, struct ss_task *task)
{
	_cleanup_free_ struct ss_frame *frames = calloc(FRAMES_MAX, sizeof(*frames));
	size_t runs = thread->runs.count;
	uint32_t call = runs ? thread->runs.items[runs - 1].call : 0;

	for (; frames && call && task->frame_count < FRAMES_MAX;
	     call = ss_profile_call_at(profile, call)->parent) {
		const struct ss_profile_frame *frame = ss_profile_frame_at(
			profile, ss_profile_call_at(profile, call)->frame);
		const struct ss_profile_function *function =
			ss_profile_function_at(profile, frame->function);
		if (function->is_end || function->is_origin)
			break;
		struct ss_frame *model = &frames[task->frame_count++];
		*model = ss_profile_frame_model(profile, frame);
		/* Without a symbol the label of where its function begins. */
		if (model->module || model->area)
			model->symbol = function->name;
	}
	return frames && ss_snapshot_add_stack(snapshot, frames, task->frame_count,
					       SS_END_ROOT, &task->stack_id);
}

/* Adds a thread with its last stack. Texts and the wait stay those of the profile. */
static bool add_thread(struct ss_snapshot *snapshot, const struct ss_profile *profile,
		       uint32_t number, const struct ss_wait *wait)
{
	const struct ss_profile_thread *thread = &profile->threads.items[number];
	struct ss_task *task = ss_snapshot_add_task(snapshot, SS_TASK_THREAD);

	if (!task)
		return false;
	task->id = (uint64_t)thread->tid;
	task->tid = thread->tid;
	task->name = thread->name;
	task->wait = wait;
	return !wait || add_stack(snapshot, profile, thread, task);
}

/* Adds another thread of the process, if there is one: it might unlock the lock. */
static bool add_other_thread(struct ss_snapshot *snapshot,
			     const struct ss_profile *profile, uint32_t thread)
{
	for (uint32_t i = 0; i < profile->threads.count; i++) {
		if (i != thread && profile->threads.items[i].process ==
					   profile->threads.items[thread].process)
			return add_thread(snapshot, profile, i, NULL);
	}
	return true;
}

/* A deadlock as that of a snapshot, whose threads are its members. NULL without memory. */
static struct ss_snapshot *new_deadlock(const struct ss_profile *profile,
					const struct ss_chain *chains, uint32_t first)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = ss_snapshot_new();
	const size_t count = chains[first].size;
	struct ss_deadlock *deadlock = snapshot ? ss_vector_push(&snapshot->deadlocks) :
						  NULL;
	size_t *members =
		deadlock ? ss_snapshot_alloc(snapshot, count, sizeof(*members)) : NULL;
	uint32_t at = first;

	if (!members)
		return NULL;
	*deadlock = (struct ss_deadlock){ .threads = members,
					  .count = count,
					  .behind = chains[first].behind };
	for (size_t i = 0; i < count; i++, at = profile->threads.items[at].owner - 1) {
		const struct ss_wait *wait = profile->threads.items[at].wait;
		members[i] = i;
		deadlock->timed |= wait->timed;
		if (!add_thread(snapshot, profile, at, wait))
			return NULL;
	}
	if (count == 1 && !add_other_thread(snapshot, profile, first))
		return NULL;
	return take_ptr(snapshot);
}

static bool write_deadlock(const struct ss_profile *profile,
			   const struct ss_chain *chains, uint32_t first,
			   const struct ss_format_options *options, FILE *out)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot =
		new_deadlock(profile, chains, first);

	if (!snapshot)
		return false;
	if (profile->processes.count > 1) {
		(void)fputs("\nThreads", out);
		write_process(profile, &profile->threads.items[first], out);
		(void)fputs(":\n", out);
	}
	ss_text_write_deadlocks(snapshot, NULL, options, out);
	return true;
}

bool ss_text_profile_deadlocks(const struct ss_profile *profile,
			       const struct ss_chain *chains,
			       const struct ss_format_options *options, FILE *out)
{
	size_t count = 0;

	for (uint32_t i = 0; i < profile->threads.count; i++) {
		if (!chains[i].size)
			continue;
		if ((count++ < DEADLOCKS_MAX || options->verbose) &&
		    !write_deadlock(profile, chains, i, options, out))
			return false;
	}
	if (count > DEADLOCKS_MAX && !options->verbose)
		(void)fprintf(out, "... and %zu more deadlock%s (-v lists them)\n",
			      count - DEADLOCKS_MAX,
			      count == DEADLOCKS_MAX + 1 ? "" : "s");
	return true;
}

/* A wait that is not part of a deadlock, and its text. */
struct item {
	uint32_t thread;
	char *text; /* owned */
};

struct order {
	const struct ss_profile *profile;
	const struct ss_chain *chains;
	struct item *items;
	size_t count;
};

static void order_deinit(struct order *order)
{
	for (size_t i = 0; i < order->count; i++)
		free(order->items[i].text);
	free(order->items);
}

static const struct ss_profile_thread *thread_of(const struct order *order,
						 const struct item *item)
{
	return &order->profile->threads.items[item->thread];
}

/* Threads of one process with the same wait. */
struct wait_row {
	const struct item *items;
	size_t count;
};

/* Whether it is part of a deadlock with threads that were not selected, or of other processes. */
static bool is_marked(const struct order *order, const struct item *item)
{
	return thread_of(order, item)->in_cycle &&
	       order->chains[item->thread].cycle == SS_ID_NONE;
}

static int compare_waits(const struct item *x, const struct item *y,
			 const struct order *order)
{
	return SS_COMPARE(thread_of(order, x)->process, thread_of(order, y)->process) ?:
		       SS_COMPARE(is_marked(order, y), is_marked(order, x))	      ?:
		       strcmp(x->text, y->text);
}

static int compare_items(const void *a, const void *b, void *data)
{
	const struct item *x = a;
	const struct item *y = b;

	return compare_waits(x, y, data) ?: SS_COMPARE(x->thread, y->thread);
}

/* Deadlocks come first, then those with an owner in the recording. */
static int compare_wait_rows(const void *a, const void *b, void *data)
{
	const struct wait_row *x = a;
	const struct wait_row *y = b;
	const bool owned[] = { thread_of(data, x->items)->owner != 0,
			       thread_of(data, y->items)->owner != 0 };

	return SS_COMPARE(is_marked(data, y->items), is_marked(data, x->items)) ?:
		       SS_COMPARE(owned[1], owned[0])				?:
		       SS_COMPARE(y->count, x->count)				?:
		       SS_COMPARE(x->items->thread, y->items->thread);
}

static bool list_items(struct order *order)
{
	const struct ss_profile *profile = order->profile;

	for (uint32_t i = 0; i < profile->threads.count; i++) {
		const struct ss_profile_thread *thread = &profile->threads.items[i];
		if (!thread->in_wait_graph || order->chains[i].member)
			continue;
		struct item item = { i, ss_wait_text_new(thread->wait) };
		if (!item.text)
			return false;
		order->items[order->count++] = item;
	}
	return true;
}

/* Merges equal waits. Returns the number of rows. */
static size_t make_rows(struct order *order, struct wait_row *rows)
{
	size_t count = 0;

	qsort_r(order->items, order->count, sizeof(*order->items), compare_items, order);
	for (size_t i = 0; i < order->count; i++) {
		const struct item *item = &order->items[i];
		if (i && compare_waits(item - 1, item, order) == 0)
			rows[count - 1].count++;
		else
			rows[count++] = (struct wait_row){ item, 1 };
	}
	qsort_r(rows, count, sizeof(*rows), compare_wait_rows, order);
	return count;
}

/* "  17 (a), 18 (b), 19 (c) and 2 more wait for mutex ..., held by 16 (d)" */
static void write_wait_row(const struct order *order, const struct wait_row *row,
			   const struct ss_format_options *options, FILE *out)
{
	const struct ss_profile_thread *first = thread_of(order, row->items);
	size_t shown = options->verbose || row->count <= NAMES_SHOWN ? row->count :
								       NAMES_SHOWN;

	for (size_t i = 0; i < shown; i++) {
		const struct ss_profile_thread *thread = thread_of(order, &row->items[i]);
		(void)fputs(i ? ", " : "  ", out);
		ss_text_write_thread(thread->tid, thread->name, options, out);
	}
	if (shown < row->count)
		(void)fprintf(out, " and %zu more", row->count - shown);
	write_process(order->profile, first, out);
	(void)fputs(row->count > 1 ? " wait for " : " waits for ", out);
	ss_wait_text_write(first->wait, options->color, out);
	if (is_marked(order, row->items))
		(void)fprintf(out, "; a DEADLOCK with threads %s",
			      first->wait->owner_pid ? "of other processes" :
						       "that are not shown");
	(void)fputc('\n', out);
}

bool ss_text_profile_other_waits(const struct ss_profile *profile,
				 const struct ss_chain *chains,
				 const struct ss_format_options *options, FILE *out)
{
	size_t most = profile->threads.count + 1;
	__attribute__((cleanup(order_deinit))) struct order order = {
		.profile = profile,
		.chains = chains,
		.items = calloc(most, sizeof(struct item)),
	};
	_cleanup_free_ struct wait_row *rows = calloc(most, sizeof(*rows));

	if (!order.items || !rows || !list_items(&order))
		return false;
	size_t count = make_rows(&order, rows);
	if (count)
		ss_text_profile_heading("Waits: what threads wait for, and who holds it",
					options, out);
	for (size_t i = 0; i < count; i++) {
		if (i == options->rows && !options->verbose) {
			(void)fprintf(out, "  and %zu more (-v lists them)\n", count - i);
			break;
		}
		write_wait_row(&order, &rows[i], options, out);
	}
	return true;
}
