#include "target/sample_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/search.h"

enum {
	PLANS_MAX = 64,
	THREADS_MAX = 1 << 12,
	/* Of each CPU, so that a late tick still finds those of its samples: half a mebibyte */
	RECORDS = 8,
	RECORDS_MANY = 4, /* of each of many CPUs */
	MANY_CPUS = 16,
	/* Between a sample and its copies; the machine may be one that its host interrupts. Another sample
	   of the CPU comes a millisecond later. */
	APART_NS = 500 * 1000,
	ROOT_NAMESPACE = 0xEFFFFFFC, /* PROC_PID_INIT_INO */
};

struct ss_sample_plan {
	struct ss_gather_plan plan;
	size_t roots; /* of a thread, in the program */
	int program;
	SS_VECTOR(uint32_t) tids; /* ascending: elements of the map of threads */
};

static int open_maps(struct ss_gather_maps *maps, size_t cpus)
{
	struct stat status;

	*maps = (struct ss_gather_maps){
		.records = -1,
		.counters = -1,
		.threads = -1,
		.programs = -1,
		.record_count = cpus > MANY_CPUS ? RECORDS_MANY : RECORDS,
	};
	if (stat("/proc/self/ns/pid", &status) == 0 && status.st_ino != ROOT_NAMESPACE) {
		maps->namespace_device = status.st_dev;
		maps->namespace_inode = status.st_ino;
	}
	maps->records = ss_bpf_new_map(
		BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), SS_GATHER_RECORD_SIZE,
		(uint32_t)cpus * (uint32_t)maps->record_count, BPF_F_MMAPABLE);
	if (maps->records < 0)
		return -maps->records;
	maps->counters = ss_bpf_new_map(BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(uint32_t),
					sizeof(uint64_t), 1, 0);
	if (maps->counters < 0)
		return -maps->counters;
	maps->threads = ss_bpf_new_map(BPF_MAP_TYPE_HASH, sizeof(uint32_t),
				       sizeof(struct ss_gather_thread), THREADS_MAX, 0);
	if (maps->threads < 0)
		return -maps->threads;
	maps->programs = ss_bpf_new_map(BPF_MAP_TYPE_PROG_ARRAY, sizeof(uint32_t),
					sizeof(uint32_t), PLANS_MAX, 0);
	return maps->programs < 0 ? -maps->programs : 0;
}

static void close_maps(struct ss_gather_maps *maps)
{
	close_cleanup(&maps->records);
	close_cleanup(&maps->counters);
	close_cleanup(&maps->threads);
	close_cleanup(&maps->programs);
}

static size_t records_size(const struct ss_sample_reader *reader)
{
	return reader->cpu_count * (size_t)reader->maps.record_count *
	       SS_GATHER_RECORD_SIZE;
}

static int load_dispatcher(struct ss_sample_reader *reader)
{
	struct ss_bpf_code code = {};

	ss_gather_program_dispatch(&code, &reader->maps);
	reader->dispatcher = ss_bpf_load(&code);
	ss_bpf_code_deinit(&code);
	return reader->dispatcher < 0 ? -reader->dispatcher : 0;
}

/* All events have the program, or none: it goes with the event. */
static int attach(const struct ss_sample_reader *reader)
{
	for (size_t i = 0; i < reader->clock->rings.count; i++) {
		if (ioctl(reader->clock->rings.items[i].ring.fd, PERF_EVENT_IOC_SET_BPF,
			  reader->dispatcher) != 0)
			return errno;
	}
	return 0;
}

static int open_reader(struct ss_sample_reader *reader)
{
	/* The kernel numbers CPUs up to here. */
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	reader->dispatcher = -1;
	reader->cpu_count = cpus > 0 ? (size_t)cpus : 1;
	int errnum = open_maps(&reader->maps, reader->cpu_count);
	if (errnum)
		return errnum;
	void *records = mmap(NULL, records_size(reader), PROT_READ, MAP_SHARED,
			     reader->maps.records, 0);
	if (records == MAP_FAILED)
		return errno;
	reader->records = records;
	errnum = load_dispatcher(reader);
	return errnum ? errnum : attach(reader);
}

static void close_parts(struct ss_sample_reader *reader)
{
	if (reader->records)
		(void)munmap(ss_drop_const(reader->records),
			     records_size(reader)); /* our mapping */
	reader->records = NULL;
	close_maps(&reader->maps);
	close_cleanup(&reader->dispatcher);
	reader->is_open = false;
}

/* Plans ------------------------------------------------------------------ */

static int load_plan(const struct ss_sample_reader *reader, struct ss_sample_plan *plan)
{
	struct ss_bpf_code code = {};

	plan->program =
		ss_gather_program_make(&code, &reader->maps, &plan->plan, plan->roots) ?
			ss_bpf_load(&code) :
			-EOPNOTSUPP;
	ss_bpf_code_deinit(&code);
	return plan->program < 0 ? -plan->program : 0;
}

static void remove_threads(const struct ss_sample_reader *reader,
			   struct ss_sample_plan *plan)
{
	for (size_t i = 0; i < plan->tids.count; i++)
		(void)ss_bpf_remove_element(reader->maps.threads, &plan->tids.items[i]);
	plan->tids.count = 0;
}

static void free_plan(const struct ss_sample_reader *reader, uint32_t index)
{
	struct ss_sample_plan *plan = reader->plans.items[index];

	if (!plan)
		return;
	remove_threads(reader, plan);
	(void)ss_bpf_remove_element(reader->maps.programs, &index);
	close_cleanup(&plan->program);
	ss_vector_free(&plan->tids);
	free(plan);
	reader->plans.items[index] = NULL;
}

static int compare_tids(const void *a, const void *b)
{
	const struct ss_gather_root *x = *(const struct ss_gather_root *const *)a;
	const struct ss_gather_root *y = *(const struct ss_gather_root *const *)b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* Sets the elements of the threads of a plan, and removes those of threads that it has no more. */
static int set_threads(const struct ss_sample_reader *reader, struct ss_sample_plan *plan,
		       uint32_t index, const struct ss_gather_plan *from)
{
	const struct ss_gather_root *roots[SS_GATHER_ROOTS_MAX] = {};
	const uint32_t count = SS_MIN(from->root_count, (uint32_t)SS_GATHER_ROOTS_MAX);

	for (uint32_t i = 0; i < count; i++)
		roots[i] = &from->roots[i];
	qsort(roots, count, sizeof(roots[0]), compare_tids);
	remove_threads(reader, plan);
	for (uint32_t i = 0; i < count;) {
		struct ss_gather_thread thread = { .program = index };
		const uint32_t tid = (uint32_t)roots[i]->tid;
		uint32_t at = 0;
		for (; i < count && (uint32_t)roots[i]->tid == tid; i++) {
			if (at < SS_GATHER_PROGRAM_ROOTS)
				thread.roots[at++] = roots[i]->address;
		}
		uint32_t *slot = tid ? ss_vector_push(&plan->tids) : NULL;
		if (!slot)
			continue;
		*slot = tid;
		int n = ss_bpf_set_element(reader->maps.threads, &tid, &thread);
		if (n < 0)
			return -n;
	}
	return 0;
}

/* How many roots a thread has at most, as far as a program knows them. */
static size_t count_roots(const struct ss_gather_plan *plan)
{
	for (size_t i = 0; i < plan->root_count; i++) {
		for (size_t k = 0; k < i; k++) {
			if (plan->roots[i].tid == plan->roots[k].tid)
				return SS_GATHER_PROGRAM_ROOTS;
		}
	}
	return 1;
}

/* Whether the program of a plan is also that of another one. */
static bool serves(const struct ss_sample_plan *known, const struct ss_gather_plan *plan)
{
	return known->roots >= count_roots(plan) &&
	       known->plan.step_count == plan->step_count &&
	       memcmp(known->plan.steps, plan->steps,
		      plan->step_count * sizeof(plan->steps[0])) == 0;
}

/* The place of a new plan; -1: there is none. */
static int find_place(struct ss_sample_reader *reader)
{
	for (size_t i = 0; i < reader->plans.count; i++) {
		if (!reader->plans.items[i])
			return (int)i;
	}
	if (reader->plans.count == PLANS_MAX || !ss_vector_push(&reader->plans))
		return -1;
	return (int)reader->plans.count - 1;
}

static int add_plan(struct ss_sample_reader *reader, const struct ss_gather_plan *plan,
		    uint32_t *ret)
{
	int place = find_place(reader);
	struct ss_sample_plan *added = place < 0 ? NULL : calloc(1, sizeof(*added));

	if (!added)
		return ENOMEM;
	const uint32_t index = (uint32_t)place;
	added->plan = *plan;
	added->roots = count_roots(plan);
	reader->plans.items[index] = added;
	int errnum = load_plan(reader, added);
	if (errnum == 0)
		errnum = -ss_bpf_set_element(reader->maps.programs, &index,
					     &added->program);
	if (errnum)
		free_plan(reader, index);
	else
		*ret = index;
	return errnum;
}

/* Whether the reader works. */
static bool is_ready(struct ss_sample_reader *reader)
{
	if (reader->tried)
		return reader->is_open;
	reader->tried = true;
	reader->errnum = reader->clock && ss_cpu_clock_is_open(reader->clock) ?
				 open_reader(reader) :
				 ENOENT;
	reader->is_open = reader->errnum == 0;
	if (!reader->is_open)
		close_parts(reader);
	return reader->is_open;
}

void ss_sample_reader_set(struct ss_sample_reader *reader, uint32_t *handle,
			  const struct ss_gather_plan *plan)
{
	struct ss_sample_plan *known = *handle ? reader->plans.items[*handle - 1] : NULL;
	uint32_t index = *handle - 1;
	int errnum = 0;

	if (known && (!plan || !serves(known, plan))) {
		free_plan(reader, index);
		known = NULL;
		*handle = 0;
	}
	if (!plan || !is_ready(reader))
		return;
	*handle = 0;
	if (!known)
		errnum = add_plan(reader, plan, &index);
	if (errnum == 0) {
		errnum = set_threads(reader, reader->plans.items[index], index, plan);
		if (errnum)
			free_plan(reader, index);
	}
	reader->errnum = errnum;
	*handle = errnum ? 0 : index + 1;
}

void ss_sample_reader_close(struct ss_sample_reader *reader)
{
	for (uint32_t i = 0; i < reader->plans.count; i++)
		free_plan(reader, i);
	ss_vector_free(&reader->plans);
	if (reader->is_open)
		close_parts(reader);
	*reader = (struct ss_sample_reader){};
}

/* Records ---------------------------------------------------------------- */

static uint64_t time_between(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The record that was written with a sample: the nearest one. Which of the two times is first depends on
   the version of the kernel. */
static const uint8_t *find_record(const struct ss_sample_reader *reader,
				  const struct ss_clock_sample *sample,
				  struct ss_gather_record *ret)
{
	const size_t count = (size_t)reader->maps.record_count;
	const uint8_t *first =
		reader->records + (size_t)sample->cpu * count * SS_GATHER_RECORD_SIZE;
	uint64_t nearest_ns = APART_NS;
	const uint8_t *found = NULL;

	for (size_t i = 0; i < count; i++) {
		const uint8_t *record = first + i * SS_GATHER_RECORD_SIZE;
		struct ss_gather_record head;
		memcpy(&head, record, sizeof(head));
		const uint64_t apart_ns = time_between(head.time_ns, sample->time_ns);
		if (head.begin != head.end || head.tid != (uint32_t)sample->tid ||
		    apart_ns >= nearest_ns)
			continue;
		nearest_ns = apart_ns;
		*ret = head;
		found = record;
	}
	return found;
}

/* The kernel has written the record before its ring shows the sample. It may overwrite it by now. */
size_t ss_sample_reader_find(const struct ss_sample_reader *reader,
			     const struct ss_clock_sample *sample, void *ret)
{
	struct ss_gather_record head;
	struct ss_gather_record after;

	if (!reader->is_open || sample->cpu < 0 ||
	    (size_t)sample->cpu >= reader->cpu_count)
		return 0;
	const uint8_t *record = find_record(reader, sample, &head);
	if (!record || head.cut || head.used <= sizeof(head) ||
	    head.used > SS_GATHER_RECORD_SIZE)
		return 0;
	memcpy(ret, record + sizeof(head), head.used - sizeof(head));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	memcpy(&after, record, sizeof(after));
	return after.begin == head.begin && after.end == head.begin ?
		       head.used - sizeof(head) :
		       0;
}
