#include "process/sample_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/search.h"
#include "data/gather.h"

enum {
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

/* A program that was loaded, or could not be. Processes share it, and it stays: to load one takes some
   10 ms. */
struct ss_sample_program {
	bool loaded;
	uint32_t step_count;
	size_t roots; /* of a thread */
	struct ss_gather_step steps[SS_GATHER_PROGRAM_STEPS];
};

/* The elements of a process in the map of threads. */
struct ss_sample_plan {
	SS_VECTOR(uint64_t) keys; /* ascending */
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
	maps->threads = ss_bpf_new_map(BPF_MAP_TYPE_HASH, sizeof(uint64_t),
				       sizeof(struct ss_gather_thread), THREADS_MAX, 0);
	if (maps->threads < 0)
		return -maps->threads;
	maps->programs = ss_bpf_new_map(BPF_MAP_TYPE_PROG_ARRAY, sizeof(uint32_t),
					sizeof(uint32_t), SS_SAMPLE_PROGRAMS, 0);
	if (maps->programs < 0)
		return -maps->programs;
	return ss_io_may_keep(maps->programs) ? 0 : EMFILE;
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

/* The events keep it. If one of them refuses it, the others keep it nevertheless: it finds nothing. */
static int attach(const struct ss_sample_reader *reader)
{
	struct ss_bpf_code code = {};

	ss_gather_program_dispatch(&code, &reader->maps);
	_cleanup_close_ int dispatcher = ss_bpf_load(&code);
	ss_bpf_code_deinit(&code);
	if (dispatcher < 0)
		return -dispatcher;
	for (size_t i = 0; i < reader->clock->rings.count; i++) {
		if (ioctl(reader->clock->rings.items[i].ring.fd, PERF_EVENT_IOC_SET_BPF,
			  dispatcher) != 0)
			return errno;
	}
	return 0;
}

static int open_reader(struct ss_sample_reader *reader)
{
	/* The kernel numbers CPUs up to here. */
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	reader->cpu_count = cpus > 0 ? (size_t)cpus : 1;
	int errnum = open_maps(&reader->maps, reader->cpu_count);
	if (errnum)
		return errnum;
	void *records = mmap(NULL, records_size(reader), PROT_READ, MAP_SHARED,
			     reader->maps.records, 0);
	if (records == MAP_FAILED)
		return errno;
	reader->records = records;
	/* The sandboxed child does not need it. */
	(void)madvise(records, records_size(reader), MADV_DONTFORK);
	return attach(reader);
}

static void close_parts(struct ss_sample_reader *reader)
{
	if (reader->records)
		(void)munmap(ss_drop_const(reader->records),
			     records_size(reader)); /* our mapping */
	reader->records = NULL;
	close_maps(&reader->maps);
	reader->is_open = false;
}

/* Programs --------------------------------------------------------------- */

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

static bool is_same(const struct ss_sample_program *a, const struct ss_sample_program *b)
{
	return a->roots == b->roots && a->step_count == b->step_count &&
	       memcmp(a->steps, b->steps, a->step_count * sizeof(a->steps[0])) == 0;
}

/* Loads the program of a plan into a place of the array, which keeps it. */
static bool load(const struct ss_sample_reader *reader, const struct ss_gather_plan *plan,
		 size_t roots, uint32_t at)
{
	struct ss_bpf_code code = {};
	const bool known = ss_gather_program_make(&code, &reader->maps, plan, roots);
	_cleanup_close_ int program = known ? ss_bpf_load(&code) : -1;

	ss_bpf_code_deinit(&code);
	return program >= 0 &&
	       ss_bpf_set_element(reader->maps.programs, &at, &program) == 0;
}

/* The program of a plan, which is loaded if it is new. False: there is none. Each is tried once, and there is a
   limit of all: a hostile process would have others all the time. */
static bool find_program(struct ss_sample_reader *reader,
			 const struct ss_gather_plan *plan, uint32_t *ret)
{
	struct ss_sample_program wanted = { .step_count = plan->step_count,
					    .roots = count_roots(plan) };

	if (plan->step_count > SS_GATHER_PROGRAM_STEPS)
		return false;
	for (uint32_t i = 0; i < plan->step_count; i++) {
		wanted.steps[i] = plan->steps[i];
		/* More is not copied. */
		wanted.steps[i].max_nodes = SS_MIN(plan->steps[i].max_nodes,
						   (uint32_t)SS_GATHER_PROGRAM_NODES);
	}
	for (*ret = 0; *ret < reader->programs.count; (*ret)++) {
		if (is_same(&reader->programs.items[*ret], &wanted))
			return reader->programs.items[*ret].loaded;
	}
	struct ss_sample_program *added = reader->programs.count < SS_SAMPLE_PROGRAMS ?
						  ss_vector_push(&reader->programs) :
						  NULL;
	if (!added)
		return false;
	*added = wanted;
	added->loaded = load(reader, plan, wanted.roots, *ret);
	return added->loaded;
}

/* Processes -------------------------------------------------------------- */

static int compare_roots(const void *a, const void *b)
{
	const struct ss_gather_root *x = *(const struct ss_gather_root *const *)a;
	const struct ss_gather_root *y = *(const struct ss_gather_root *const *)b;

	return SS_COMPARE(x->tid, y->tid);
}

/* If there is no room, the thread is stopped instead. */
static void set_element(const struct ss_sample_reader *reader,
			struct ss_sample_plan *plan, uint64_t key,
			const struct ss_gather_thread *thread)
{
	uint64_t *slot = ss_vector_push(&plan->keys);

	if (!slot)
		return;
	*slot = key;
	if (ss_bpf_set_element(reader->maps.threads, &key, thread) < 0)
		plan->keys.count--;
}

/* Sets the elements of a process, and of its threads that have roots. */
static void set_elements(const struct ss_sample_reader *reader, pid_t pid,
			 uint32_t program, const struct ss_gather_plan *from,
			 struct ss_sample_plan *plan)
{
	const struct ss_gather_root *roots[SS_GATHER_ROOTS_MAX] = {};
	const uint32_t count = SS_MIN(from->root_count, (uint32_t)SS_GATHER_ROOTS_MAX);
	struct ss_gather_thread thread = { .program = program };

	set_element(reader, plan, ss_gather_key((uint32_t)pid, 0), &thread);
	for (uint32_t i = 0; i < count; i++)
		roots[i] = &from->roots[i];
	qsort(roots, count, sizeof(roots[0]), compare_roots);
	for (uint32_t i = 0; i < count;) {
		const int32_t tid = roots[i]->tid;
		uint32_t at = 0;
		memset(thread.roots, 0, sizeof(thread.roots));
		for (; i < count && roots[i]->tid == tid; i++) {
			if (at < SS_GATHER_PROGRAM_ROOTS)
				thread.roots[at++] = roots[i]->address;
		}
		if (tid > 0)
			set_element(reader, plan,
				    ss_gather_key((uint32_t)pid, (uint32_t)tid), &thread);
	}
}

/* Removes the elements of a plan that another one does not have. */
static void remove_elements(const struct ss_sample_reader *reader,
			    const struct ss_sample_plan *plan,
			    const struct ss_sample_plan *other)
{
	size_t at = 0;

	for (size_t i = 0; i < plan->keys.count; i++) {
		const uint64_t key = plan->keys.items[i];
		while (at < other->keys.count && other->keys.items[at] < key)
			at++;
		if (at == other->keys.count || other->keys.items[at] != key)
			(void)ss_bpf_remove_element(reader->maps.threads, &key);
	}
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

/* The place of a process; 0: no memory. */
static uint32_t find_handle(struct ss_sample_reader *reader)
{
	uint32_t at = 0;

	while (at < reader->plans.count && reader->plans.items[at])
		at++;
	if (at == reader->plans.count && !ss_vector_push(&reader->plans))
		return 0;
	reader->plans.items[at] = calloc(1, sizeof(struct ss_sample_plan));
	return reader->plans.items[at] ? at + 1 : 0;
}

static void drop(struct ss_sample_reader *reader, uint32_t *handle)
{
	static const struct ss_sample_plan none;
	struct ss_sample_plan **plan = *handle ? &reader->plans.items[*handle - 1] : NULL;

	if (!plan)
		return;
	remove_elements(reader, *plan, &none);
	ss_vector_free(&(*plan)->keys);
	free(*plan);
	*plan = NULL;
	*handle = 0;
}

void ss_sample_reader_set(struct ss_sample_reader *reader, uint32_t *handle, pid_t pid,
			  const struct ss_gather_plan *plan)
{
	struct ss_sample_plan set = {};
	uint32_t program;

	if (!plan || !is_ready(reader) || !find_program(reader, plan, &program)) {
		drop(reader, handle);
		return;
	}
	if (!*handle)
		*handle = find_handle(reader);
	if (!*handle)
		return;
	struct ss_sample_plan *known = reader->plans.items[*handle - 1];
	set_elements(reader, pid, program, plan, &set);
	remove_elements(reader, known, &set);
	ss_vector_free(&known->keys);
	*known = set;
}

void ss_sample_reader_close(struct ss_sample_reader *reader)
{
	for (uint32_t i = 0; i < reader->plans.count; i++) {
		uint32_t handle = reader->plans.items[i] ? i + 1 : 0;
		drop(reader, &handle);
	}
	ss_vector_free(&reader->plans);
	ss_vector_free(&reader->programs);
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
bool ss_sample_reader_find(const struct ss_sample_reader *reader,
			   const struct ss_clock_sample *sample, void *ret,
			   size_t *ret_size)
{
	struct ss_gather_record head;
	struct ss_gather_record after;

	if (!reader->is_open || sample->cpu < 0 ||
	    (size_t)sample->cpu >= reader->cpu_count)
		return false;
	const uint8_t *record = find_record(reader, sample, &head);
	if (!record || head.cut || head.used < sizeof(head) ||
	    head.used > SS_GATHER_RECORD_SIZE)
		return false;
	*ret_size = head.used - sizeof(head);
	memcpy(ret, record + sizeof(head), *ret_size);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	memcpy(&after, record, sizeof(after));
	return after.begin == head.begin && after.end == head.begin;
}
