#include "capture/observe.h"

#include <string.h>

#include "base/clock.h"
#include "capture/tasks.h"

enum {
	STEP_NS = 100 * 1000, /* doubles with each, up to: */
	STEP_MAX_NS = 1000 * 1000,
	SAMPLES = 1, /* at a time: more would come during the stop */
	/* Without samples: to see a thread sleep that moves data. */
	SLEEP_NS = 500 * 1000,
	READS = 32, /* threads that are read in each step */
	/* A thread may begin a call after it was seen in user space. */
	FRESH_NS = 200 * 1000,
	/* A thread that has run for so long, and was not in user space meanwhile, is hardly
	   ever there. */
	BUSY_NS = 20 * SS_USER_PERIOD_NS,
	/* Samples in user space that show that a thread computes. One that makes one call
	   after the other may be there for some, if a hypervisor takes away its CPU: more
	   for a thread of which most clock ticks were in the kernel. */
	COMPUTES = 3,
	COMPUTES_LATELY = 20,
	MOSTLY = 10,
	TRIES = 4,
};

/* It is to be stopped, and not known yet where it is. */
static bool is_pending(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_SEEN && task->runs && !task->spared &&
	       !task->computes && !task->moves_data;
}

/* Also one that is not to be stopped, which is not waited for. */
static bool is_sampled(const struct ss_tracee *task)
{
	return is_pending(task) ||
	       (task->phase == SS_TASK_SEEN && task->runs && task->moves_data);
}

static struct ss_tracee *find(const struct ss_task_list *tasks, pid_t tid)
{
	for (size_t i = 0; i < tasks->items.count; i++)
		if (tasks->items.items[i].tid == tid)
			return &tasks->items.items[i];
	return NULL;
}

bool ss_look_find_call(const struct ss_target *target,
		       const struct ss_process_memory *memory,
		       const ss_kernel_regs *kernel, struct ss_syscall_text *ret)
{
	const struct ss_arch *arch = target->arch;
	struct ss_regs regs;
	struct ss_syscall made;
	long number;
	uint8_t code[SS_SYSCALL_CODE];

	arch->attach->regs(kernel, &regs);
	arch->attach->syscall(kernel, &made);
	uint64_t pc = ss_regs_pc(arch, &regs);
	struct ss_piece piece = { .address = pc - sizeof(code),
				  .bytes = code,
				  .size = sizeof(code) };
	ss_process_memory_read_present(memory, &piece, 1);
	if (piece.done != sizeof(code) ||
	    !arch->attach->in_syscall(kernel, code, sizeof(code), &number))
		return false;
	*ret = (struct ss_syscall_text){
		.kind = SS_SYSCALL_BLOCKED,
		.number = number,
		.sp = ss_regs_sp(arch, &regs),
		.pc = pc,
	};
	memcpy(ret->args, made.args, sizeof(ret->args));
	ss_target_unfold(target, ret);
	return true;
}

static void classify(struct ss_look *look, struct ss_tracee *task,
		     struct ss_cpu_sample *sample)
{
	struct ss_syscall_text call;

	task->sampled_ns = sample->time_ns;
	bool fragile =
		sample->in_kernel &&
		ss_look_find_call(look->target, look->memory, &sample->kernel, &call) &&
		ss_fragile_running(look->target, task->tid, &call, true);
	task->fragile = task->in_call = fragile;
	task->left = false;
	if (!fragile)
		return;
	ss_task_enter(task, SS_TASK_WATCHED);
	task->call = call;
	task->kernel = sample->kernel;
}

/* Takes the samples. from_ns: older ones are dropped. */
static void take_samples(struct ss_look *look, struct ss_task_list *tasks,
			 uint64_t from_ns)
{
	struct ss_cpu_sample sample;

	while (ss_cpu_sampler_next(&look->cpus, &sample)) {
		struct ss_tracee *task = find(tasks, sample.tid);
		if (!task || sample.time_ns < SS_MAX(from_ns, task->sampled_ns))
			continue;
		if (is_sampled(task)) {
			classify(look, task, &sample);
		} else if (ss_task_is_watched(task) && task->in_call) {
			task->sampled_ns = sample.time_ns;
			task->left |= memcmp(&task->kernel, &sample.kernel,
					     sizeof(task->kernel)) != 0;
		}
	}
}

/* Whether any was started: samples will come. */
static bool start_cpus(struct ss_look *look, const struct ss_task_list *tasks,
		       bool (*wanted)(const struct ss_tracee *), uint64_t since_ns)
{
	bool any = false;

	for (size_t i = 0; i < tasks->items.count; i++) {
		const struct ss_tracee *task = &tasks->items.items[i];
		if (wanted(task) && task->sampled_ns < since_ns)
			any |= ss_cpu_sampler_start(&look->cpus, task->processor,
						    SAMPLES);
	}
	return any;
}

static bool is_put_off(const struct ss_tracee *task)
{
	return task->put_off;
}

static bool any_task(const struct ss_task_list *tasks,
		     bool (*wanted)(const struct ss_tracee *))
{
	for (size_t i = 0; i < tasks->items.count; i++)
		if (wanted(&tasks->items.items[i]))
			return true;
	return false;
}

/* Where CPUs must not be sampled. Whether any was started. */
static bool start_users(struct ss_look *look, const struct ss_task_list *tasks)
{
	bool any = false;

	for (size_t i = 0; i < tasks->items.count; i++)
		if (is_pending(&tasks->items.items[i]))
			any |= ss_user_sampler_start(&look->users,
						     tasks->items.items[i].tid);
	return any;
}

/* In its life. */
static bool is_mostly_in_kernel(const struct ss_tracee *task)
{
	return task->system_ticks >= MOSTLY * (task->user_ticks + 1);
}

static uint64_t find_seen(const struct ss_look *look, const struct ss_tracee *task)
{
	return ss_user_sampler_seen(&look->users, task->tid,
				    is_mostly_in_kernel(task) ? COMPUTES_LATELY :
								COMPUTES);
}

static void take_user_samples(struct ss_look *look, struct ss_task_list *tasks)
{
	for (size_t i = 0; look->users.events.count && i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		if (is_pending(task))
			task->sampled_ns =
				SS_MAX(task->sampled_ns, find_seen(look, task));
	}
}

static void wait_for_samples(const struct ss_look *look, uint64_t limit_ns)
{
	if (look->users.events.count)
		ss_user_sampler_wait(&look->users, limit_ns);
	else
		ss_cpu_sampler_wait(&look->cpus, limit_ns);
}

/*
 * The kernel stack of a thread that waits for a CPU shows whether it was preempted in user
 * space, where it can be stopped, or in a system call. A thread that was woken up in futex(2), or
 * that has yielded, can be stopped as well: neither call moves data, and on a busy machine they may
 * wait for long. The stack is empty while the thread is on a CPU, and not readable for all.
 */
static bool has_any(const char *stack, const char *const *names)
{
	for (; *names; names++) {
		if (strstr(stack, *names))
			return true;
	}
	return false;
}

static void look_at_kernel_stack(struct ss_look *look, struct ss_tracee *task,
				 uint64_t now_ns)
{
	if (!ss_target_read_task(look->target, task->tid, "stack", &look->text) ||
	    look->text.size == 0)
		return;
	task->fragile =
		has_any(look->text.bytes, look->target->arch->attach->syscall_entries) &&
		!has_any(look->text.bytes, look->target->arch->attach->safe_entries);
	if (!task->fragile)
		task->sampled_ns = now_ns;
}

/*
 * One that is put off stays so if its kernel stack shows that it waits for a CPU in a system call. It
 * is in user space, where it has to be stopped now, or on a CPU, if not: one that was preempted with
 * the GIL, which it may soon drop, or one that runs with it. The latter stays put off if it is known to
 * have woken up just now.
 */
static void check_put_off(struct ss_look *look, struct ss_task_list *tasks,
			  uint64_t now_ns)
{
	size_t reads = 0;

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		/* The others stay put off: they are looked at if they still run later. */
		if (!is_put_off(task) || reads++ >= (size_t)READS)
			continue;
		bool waits = ss_target_read_task(look->target, task->tid, "stack",
						 &look->text) &&
			     look->text.size > 0;
		if (waits ? has_any(look->text.bytes,
				    look->target->arch->attach->syscall_entries) :
			    task->woken)
			continue;
		task->put_off = task->spared = false;
		if (waits)
			task->sampled_ns = now_ns;
	}
}

/* Threads that wait for a CPU: no sample of one would come. Returns how many are still unknown. */
static size_t read_kernel_stacks(struct ss_look *look, struct ss_task_list *tasks,
				 uint64_t since_ns)
{
	size_t left = 0;

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		if (!is_pending(task) || task->sampled_ns >= since_ns)
			continue;
		if (left < READS)
			look_at_kernel_stack(look, task, since_ns);
		left += task->sampled_ns < since_ns;
	}
	return left;
}

/* Reads threads that were not on a CPU: one may sleep in its call by now, and would then
   be read like any other. Returns how many are still unknown. */
static size_t read_pending(struct ss_look *look, struct ss_task_list *tasks,
			   uint64_t since_ns)
{
	size_t left = 0;

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		bool fragile = task->fragile;
		if (!is_pending(task) || task->sampled_ns >= since_ns)
			continue;
		if (left < READS)
			ss_task_read(task, look->target, look->options, &look->text);
		if (!is_pending(task))
			continue;
		task->fragile = fragile;
		if (left < READS)
			look_at_kernel_stack(look, task, since_ns);
		left += task->sampled_ns < since_ns;
	}
	return left;
}

/* The time of the oldest sample of a thread that will be stopped; 0: none is left. */
static uint64_t find_oldest(const struct ss_task_list *tasks)
{
	uint64_t oldest_ns = 0;

	for (size_t i = 0; i < tasks->items.count; i++) {
		const struct ss_tracee *task = &tasks->items.items[i];
		if (is_pending(task) && (oldest_ns == 0 || task->sampled_ns < oldest_ns))
			oldest_ns = task->sampled_ns;
	}
	return oldest_ns;
}

/* Looks until each thread was seen since then; left have not been. False: the time is over. */
static bool see_all(struct ss_look *look, struct ss_task_list *tasks, size_t left,
		    uint64_t since_ns, uint64_t until_ns)
{
	uint64_t step_ns = STEP_NS;

	while (left > 0 && ss_now_ns() < until_ns) {
		(void)start_cpus(look, tasks, is_sampled, since_ns);
		wait_for_samples(look, step_ns);
		step_ns = SS_MIN(2 * step_ns, (uint64_t)STEP_MAX_NS);
		take_samples(look, tasks, since_ns);
		take_user_samples(look, tasks);
		left = read_pending(look, tasks, since_ns);
	}
	return left == 0;
}

/* Whether a thread that was not seen in user space is in a call, most likely. If it got no CPU,
   or cannot be sampled, its past tells. */
static bool is_busy_in_kernel(const struct ss_look *look, const struct ss_tracee *task)
{
	if (!look->cpus.refused)
		return false;
	if (look->users.events.count == 0)
		return is_mostly_in_kernel(task);
	return ss_user_sampler_ran_ns(&look->users, task->tid) >= (uint64_t)BUSY_NS ||
	       task->system_ticks >= task->user_ticks;
}

/* Those that were not seen in user space; lately, if they are hardly ever there. */
static void spare(const struct ss_look *look, struct ss_task_list *tasks,
		  uint64_t begin_ns)
{
	uint64_t fresh_ns = SS_MAX(begin_ns, ss_now_ns() - FRESH_NS);

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		bool lately = look->cpus.refused && is_mostly_in_kernel(task);
		if (is_pending(task) && task->sampled_ns < (lately ? fresh_ns : begin_ns))
			task->spared = task->fragile || is_busy_in_kernel(look, task);
	}
}

/* Without samples there is only the chance that a thread goes to sleep. */
static uint64_t find_limit(const struct ss_look *look, const struct ss_task_list *tasks)
{
	for (size_t i = 0; i < tasks->items.count; i++)
		if (is_pending(&tasks->items.items[i]) &&
		    is_mostly_in_kernel(&tasks->items.items[i]))
			return look->limit_ns;
	return SLEEP_NS;
}

/* users: where CPUs must not be sampled, sample threads. */
static void look_at_running(struct ss_look *look, struct ss_task_list *tasks, bool users)
{
	uint64_t begin_ns = ss_now_ns();
	uint64_t since_ns = begin_ns;

	check_put_off(look, tasks, begin_ns);
	if (!any_task(tasks, is_pending))
		return;
	size_t left = read_kernel_stacks(look, tasks, since_ns);
	bool samples = left == 0 || start_cpus(look, tasks, is_sampled, since_ns);
	if (left > 0 && look->cpus.refused && users)
		samples = start_users(look, tasks);
	uint64_t limit_ns = samples ? look->limit_ns : SLEEP_NS;
	if (!samples && users)
		limit_ns = find_limit(look, tasks);
	uint64_t until_ns = begin_ns + limit_ns;
	for (int i = 0; i < TRIES && see_all(look, tasks, left, since_ns, until_ns);
	     i++) {
		uint64_t oldest_ns = find_oldest(tasks);
		since_ns = ss_now_ns();
		/* A thread must be seen in user space twice: one that only makes calls is
		   there between two of them, too. */
		if (oldest_ns == 0 || (since_ns - oldest_ns < FRESH_NS && i > 0))
			return;
		left = read_kernel_stacks(look, tasks, since_ns);
	}
	spare(look, tasks, begin_ns);
}

void ss_look_at_running(struct ss_look *look, struct ss_task_list *tasks)
{
	look_at_running(look, tasks, true);
	/* They would go on to interrupt the threads. */
	ss_user_sampler_deinit(&look->users);
}

void ss_look_briefly(struct ss_look *look, struct ss_task_list *tasks)
{
	look_at_running(look, tasks, false);
}

static bool is_in_call(const struct ss_tracee *task)
{
	return ss_task_is_watched(task) && task->in_call && !task->left;
}

/* Whether it sleeps in the same call now. */
static bool sleeps_in_call(struct ss_look *look, const struct ss_tracee *task)
{
	struct ss_syscall_text call;

	return ss_target_read_syscall(look->target, task->tid, &look->text, &call) &&
	       call.kind == SS_SYSCALL_BLOCKED && call.sp == task->call.sp &&
	       call.pc == task->call.pc &&
	       memcmp(call.args, task->call.args, sizeof(call.args)) == 0;
}

/* Returns how many threads have not been seen since. */
static size_t see_again(struct ss_look *look, struct ss_task_list *tasks,
			uint64_t since_ns)
{
	struct ss_stat stat;
	size_t unseen = 0;

	take_samples(look, tasks, 0);
	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		if (!is_in_call(task) || task->sampled_ns >= since_ns)
			continue;
		if (sleeps_in_call(look, task)) {
			task->sampled_ns = since_ns;
			continue;
		}
		if (ss_target_read_stat(look->target, task->tid, &look->text, &stat))
			task->processor = stat.processor;
		unseen++;
	}
	return unseen;
}

void ss_look_again(struct ss_look *look, struct ss_task_list *tasks)
{
	uint64_t begin_ns = ss_now_ns();
	size_t unseen = see_again(look, tasks, begin_ns);

	for (uint64_t step_ns = STEP_NS;
	     unseen > 0 && ss_now_ns() < begin_ns + look->limit_ns;
	     step_ns = SS_MIN(2 * step_ns, (uint64_t)STEP_MAX_NS)) {
		(void)start_cpus(look, tasks, is_in_call, begin_ns);
		ss_cpu_sampler_wait(&look->cpus, step_ns);
		unseen = see_again(look, tasks, begin_ns);
	}
	for (size_t i = 0; unseen && i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		task->left |= is_in_call(task) && task->sampled_ns < begin_ns;
	}
}

void ss_look_deinit(struct ss_look *look)
{
	ss_cpu_sampler_deinit(&look->cpus);
	ss_user_sampler_deinit(&look->users);
	ss_buffer_deinit(&look->text);
}
