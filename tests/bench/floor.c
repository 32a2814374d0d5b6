/*
 * The minimal sequence of system calls for an atomic copy of the registers and stacks of
 * all threads: the lower limit that the bench compares stacksnap's freeze with.
 *
 * floor [-b] [-f PRIORITY] PID
 *
 * Threads are listed and SEIZEd, and buffers touched, before the clock starts. Timed are:
 * INTERRUPT of every thread; for every thread waiting and GETREGSET; one process_vm_readv
 * per thread, from its stack pointer to the end of the mapping; DETACH of every thread.
 * Nothing is done to shorten the pause of the target.
 *
 *	-b	read 1,024 stacks with each call instead of one
 *	-f	run at SCHED_FIFO with this priority while the clock runs
 *
 * Prints JSON: freeze_ns, threads, copied_bytes, and the nanoseconds of each phase. If a
 * thread does not stop within ten seconds, floor exits, which releases the target.
 */
#include <dirent.h>
#include <elf.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 16384
#define MAX_STACK ((size_t)256 * 1024)
#define BATCH 1024 /* UIO_MAXIOV */
#define RED_ZONE 128
#define PATIENCE_S 10

struct area {
	uint64_t start;
	uint64_t end;
};

struct thread {
	pid_t tid;
	struct user_regs_struct registers;
};

struct job {
	pid_t pid;
	int priority; /* 0: not at SCHED_FIFO */
	bool batched;
	struct thread *threads;
	size_t thread_count;
	struct area *areas;
	size_t area_count;
	char *buffer; /* MAX_STACK for each thread, touched where it will be used */
	size_t copied;
};

struct times {
	uint64_t start;
	uint64_t interrupted;
	uint64_t stopped;
	uint64_t copied;
	uint64_t released;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		die("calloc");
	return memory;
}

static void seize_all(struct job *job)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", job->pid);
	DIR *directory = opendir(path);
	if (!directory)
		die(path);
	for (struct dirent *entry; (entry = readdir(directory));) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid > 0 && job->thread_count < MAX_THREADS &&
		    !ptrace(PTRACE_SEIZE, tid, NULL, NULL))
			job->threads[job->thread_count++].tid = tid;
	}
	closedir(directory);
	if (!job->thread_count)
		die("PTRACE_SEIZE");
}

static void read_areas(struct job *job)
{
	char path[64];
	char line[PATH_MAX + 128];
	size_t room = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", job->pid);
	FILE *maps = fopen(path, "r");
	if (!maps)
		die(path);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx ", &start, &end) != 2)
			continue;
		if (job->area_count == room) {
			room = room ? 2 * room : 256;
			job->areas = realloc(job->areas, room * sizeof(*job->areas));
			if (!job->areas)
				die("realloc");
		}
		job->areas[job->area_count++] = (struct area){ start, end };
	}
	fclose(maps);
}

static uint64_t area_end(const struct job *job, uint64_t address)
{
	size_t low = 0, high = job->area_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (job->areas[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == job->area_count || job->areas[low].start > address)
		return 0;
	return job->areas[low].end;
}

/* Where the stack of a thread is copied to, and which part of it can be read. */
static bool stack_of(const struct job *job, size_t index, struct iovec *local,
		     struct iovec *remote)
{
	uint64_t sp = job->threads[index].registers.rsp;
	uint64_t end = area_end(job, sp);

	if (!end)
		return false;
	size_t size = end - (sp - RED_ZONE);
	if (size > MAX_STACK)
		size = MAX_STACK;
	*local = (struct iovec){ job->buffer + index * MAX_STACK, size };
	*remote = (struct iovec){ (void *)(uintptr_t)(sp - RED_ZONE), size };
	return true;
}

static void get_registers(struct thread *thread)
{
	struct iovec io = { &thread->registers, sizeof(thread->registers) };

	if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)NT_PRSTATUS, &io))
		thread->registers.rsp = 0; /* it ended: area_end finds nothing */
}

/*
 * The size of each stack is unknown before the stop. A sleeping thread will have the
 * same stack pointer as in /proc; for a running thread, assumes the whole mapping.
 */
static void prefault(struct job *job)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < job->thread_count; i++) {
		struct thread *thread = &job->threads[i];
		struct iovec local, remote;
		unsigned long long sp = 0;
		char path[64];
		size_t size = MAX_STACK;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", job->pid,
			 thread->tid);
		FILE *file = fopen(path, "r");
		if (file && fscanf(file, "%*d %*x %*x %*x %*x %*x %*x %llx", &sp) == 1) {
			thread->registers.rsp = sp;
			if (stack_of(job, i, &local, &remote))
				size = local.iov_len;
		}
		if (file)
			fclose(file);
		for (size_t at = 0; at < size; at += page)
			job->buffer[i * MAX_STACK + at] = 1;
		job->buffer[i * MAX_STACK + size - 1] = 1;
	}
}

static void collect(struct job *job)
{
	for (size_t i = 0; i < job->thread_count; i++) {
		int status;

		if (waitpid(job->threads[i].tid, &status, __WALL) > 0)
			get_registers(&job->threads[i]);
	}
}

static void copy(struct job *job)
{
	static struct iovec local[BATCH], remote[BATCH];
	size_t limit = job->batched ? BATCH : 1;
	size_t count = 0;

	for (size_t i = 0; i < job->thread_count; i++) {
		count += stack_of(job, i, &local[count], &remote[count]);
		if (!count || (count < limit && i + 1 < job->thread_count))
			continue;
		ssize_t got = process_vm_readv(job->pid, local, count, remote, count, 0);
		if (got < 0)
			die("process_vm_readv");
		job->copied += (size_t)got;
		count = 0;
	}
}

static void sequence(struct job *job, struct times *times)
{
	times->start = now_ns();
	for (size_t i = 0; i < job->thread_count; i++)
		(void)ptrace(PTRACE_INTERRUPT, job->threads[i].tid, NULL, NULL);
	times->interrupted = now_ns();
	collect(job);
	times->stopped = now_ns();
	copy(job);
	times->copied = now_ns();
	for (size_t i = 0; i < job->thread_count; i++)
		(void)ptrace(PTRACE_DETACH, job->threads[i].tid, NULL, NULL);
	times->released = now_ns();
}

static void raise_priority(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		die("SCHED_FIFO");
}

static void print(const struct job *job, const struct times *times)
{
	printf("{\"freeze_ns\": %llu, \"threads\": %zu, \"copied_bytes\": %zu, "
	       "\"interrupt_ns\": %llu, \"wait_ns\": %llu, \"copy_ns\": %llu, "
	       "\"detach_ns\": %llu}\n",
	       (unsigned long long)(times->released - times->start), job->thread_count,
	       job->copied, (unsigned long long)(times->interrupted - times->start),
	       (unsigned long long)(times->stopped - times->interrupted),
	       (unsigned long long)(times->copied - times->stopped),
	       (unsigned long long)(times->released - times->copied));
}

static bool parse(struct job *job, int argc, char **argv)
{
	for (int option; (option = getopt(argc, argv, "bf:")) != -1;) {
		if (option == 'b')
			job->batched = true;
		else if (option == 'f')
			job->priority = atoi(optarg);
		else
			return false;
	}
	if (optind + 1 == argc)
		job->pid = (pid_t)atoi(argv[optind]);
	return job->pid > 0;
}

int main(int argc, char **argv)
{
	struct job job = { 0 };
	struct times times;

	if (!parse(&job, argc, argv)) {
		fprintf(stderr, "usage: %s [-b] [-f PRIORITY] PID\n", argv[0]);
		return 64;
	}
	alarm(PATIENCE_S);
	job.threads = allocate(MAX_THREADS, sizeof(*job.threads));
	seize_all(&job);
	read_areas(&job);
	job.buffer = allocate(job.thread_count, MAX_STACK);
	prefault(&job);
	if (job.priority)
		raise_priority(job.priority);
	sequence(&job, &times);
	print(&job, &times);
	return 0;
}
