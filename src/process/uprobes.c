#include "process/perf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "base/search.h"

enum {
	RING_BYTES = 8 << 20,
	RING_BYTES_MANY = 1 << 20, /* of each of many CPUs */
	RING_BYTES_MIN = 128 << 10,
	MANY_CPUS = 16,
	PASSES_MAX = 20, /* over the threads of a process */
	TEXT_MAX = 1 << 20,
};

static const char group_prefix[] = "stacksnap_";

/* What precedes the fields in the raw data: struct trace_entry, and the address. */
enum { RAW_ADDRESS = 8, RAW_FIELDS = 16 };

/* tracefs ----------------------------------------------------------------- */

/* Refuses tracefs to everybody (LOCKDOWN_TRACEFS in include/linux/security.h). */
static bool is_locked_down(void)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	return ss_io_read_path(AT_FDCWD, "/sys/kernel/security/lockdown", TEXT_MAX,
			       &text) >= 0 &&
	       strstr(text.bytes, "[confidentiality]");
}

/* Why a user may not set uprobes. */
static struct ss_error *denied(int errnum)
{
	const bool root = geteuid() == 0;

	if (is_locked_down())
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_DENIED,
				     "the kernel is locked down (confidentiality): "
				     "nobody may set uprobes"),
			"see lockdown= in kernel_lockdown(7)");
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_DENIED,
			     root ? "root may not set uprobes here: "
				    "/sys/kernel/tracing/uprobe_events: %s" :
				    "this user may not set uprobes: "
				    "/sys/kernel/tracing/uprobe_events: %s",
			     strerror(errnum)),
		root ? "run it on the host, or in a privileged container" :
		       "run it as root: sudo stacksnap trace ...");
}

static struct ss_error *open_tracefs(struct ss_uprobes *uprobes)
{
	static const char *const paths[] = { "/sys/kernel/tracing",
					     "/sys/kernel/debug/tracing" };
	int errnum = ENOENT;

	for (size_t i = 0; i < SS_ARRAY_SIZE(paths); i++) {
		_cleanup_close_ int fd = open(paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0) {
			errnum = errno == ENOENT ? errnum : errno;
			continue;
		}
		if (faccessat(fd, "uprobe_events", W_OK, AT_EACCESS) == 0) {
			uprobes->tracefs = take_fd(fd);
			return NULL;
		}
		errnum = errno == ENOENT ? errnum : errno;
	}
	if (errnum == EACCES || errnum == EPERM)
		return denied(errnum);
	if (errnum == EROFS)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_DENIED,
				     "/sys/kernel/tracing is mounted read-only"),
			"run it on the host, or in a privileged container");
	if (access("/sys/kernel", F_OK) != 0)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_UNSUPPORTED,
				     "/sys is not mounted: tracefs is below it"),
			"mount -t sysfs nodev /sys && mount -t tracefs nodev "
			"/sys/kernel/tracing");
	if (access("/sys/bus/event_source/devices/uprobe", F_OK) != 0)
		return ss_error_new(
			SS_ERROR_UNSUPPORTED,
			"uprobes need Linux 4.17 or later (CONFIG_UPROBE_EVENTS)");
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_UNSUPPORTED, "tracefs is not mounted"),
		"mount -t tracefs nodev /sys/kernel/tracing");
}

/* One command of uprobe_events. Returns 0 or an error number. */
static int command(const struct ss_uprobes *uprobes, const char *text)
{
	/* Without O_APPEND the kernel removes the probes of everybody else. */
	_cleanup_close_ int fd = openat(uprobes->tracefs, "uprobe_events",
					O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return errno;
	return write(fd, text, strlen(text)) < 0 ? errno : 0;
}

static void remove_group(const struct ss_uprobes *uprobes, const char *group)
{
	char text[64];

	if (snprintf(text, sizeof(text), "-:%.40s/hit", group) > 0)
		(void)command(uprobes, text); /* busy, or gone */
}

/* Removes the definitions of those that were killed. */
static void remove_stale(const struct ss_uprobes *uprobes)
{
	DIR *directory = ss_io_open_directory(uprobes->tracefs, "events");
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		const char *name = entry->d_name;
		size_t size = sizeof(group_prefix) - 1;
		if (strncmp(name, group_prefix, size) != 0)
			continue;
		char path[64];
		int pid = (int)strtol(name + size, NULL, 10);
		(void)snprintf(path, sizeof(path), "/proc/%d", pid); /* it fits */
		if (pid == getpid() || access(path, F_OK) != 0)
			remove_group(uprobes, name);
	}
	if (directory)
		(void)closedir(directory); /* nothing was written */
}

struct ss_error *ss_uprobes_init(struct ss_uprobes *uprobes,
				 const struct ss_uprobe_options *options)
{
	*uprobes = (struct ss_uprobes){ .options = *options, .tracefs = -1 };
	uprobes->options.stack_max =
		SS_MIN(options->stack_max, (size_t)SS_UPROBE_STACK_MAX) & ~(size_t)7;
	if (options->faults)
		return NULL;
	(void)snprintf(uprobes->group, sizeof(uprobes->group), "%s%d", group_prefix,
		       (int)getpid()); /* it fits */
	struct ss_error *error = open_tracefs(uprobes);
	if (!error)
		remove_stale(uprobes);
	return error;
}

void ss_uprobes_deinit(struct ss_uprobes *uprobes)
{
	for (size_t i = 0; i < uprobes->events.count; i++)
		close_cleanup(&uprobes->events.items[i].fd);
	for (size_t i = 0; i < uprobes->rings.count; i++)
		ss_perf_ring_close(&uprobes->rings.items[i]);
	if (uprobes->places)
		remove_group(uprobes, uprobes->group);
	ss_vector_free(&uprobes->events);
	ss_vector_free(&uprobes->rings);
	ss_vector_free(&uprobes->cpus);
	ss_vector_free(&uprobes->late);
	if (uprobes->group[0])
		close_cleanup(&uprobes->tracefs);
	*uprobes = (struct ss_uprobes){};
}

static struct ss_error *read_config(struct ss_uprobes *uprobes)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	char path[96];

	(void)snprintf(path, sizeof(path), "events/%s/hit/id", uprobes->group); /* fits */
	int result = ss_io_read_path(uprobes->tracefs, path, TEXT_MAX, &text);
	if (result < 0)
		return ss_error_new_errno(-result, "cannot read %s of tracefs", path);
	uprobes->config = strtoull(text.bytes, NULL, 10);
	return NULL;
}

struct ss_error *ss_uprobes_add(struct ss_uprobes *uprobes, int fd, uint64_t offset,
				uint64_t counter)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	/* The kernel looks the path up at once, and keeps the file. */
	ss_buffer_printf(&text, "p:%s/hit /proc/self/fd/%d:0x%" PRIx64, uprobes->group,
			 fd, offset);
	if (counter)
		ss_buffer_printf(&text, "(0x%" PRIx64 ")", counter);
	ss_buffer_printf(&text, " sp=%s:u64", ss_arch_host.attach->probe_sp);
	for (unsigned i = 0; i < uprobes->options.args; i++)
		ss_buffer_printf(&text, " a%u=%s:u64", i,
				 ss_arch_host.attach->probe_args[i]);
	if (uprobes->options.callers)
		ss_buffer_printf(&text, " ra=%s:u64", ss_arch_host.attach->probe_return);
	ss_buffer_printf(&text, " place=\\%zu:u32", uprobes->places);
	if (text.failed)
		return ss_error_no_memory();
	int errnum = command(uprobes, text.bytes);
	if (errnum == EACCES || errnum == EPERM)
		return denied(errnum);
	if (errnum)
		return ss_error_new_errno(errnum, "the kernel refuses a uprobe");
	uprobes->places++;
	return uprobes->config ? NULL : read_config(uprobes);
}

/* Events ------------------------------------------------------------------ */

static int open_ring(struct ss_uprobes *uprobes, int cpu, size_t size)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		/* The reader wakes up by itself. */
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
	struct ss_perf_ring ring = {};
	int errnum = ss_perf_ring_open(&ring, &attr, cpu, size, RING_BYTES_MIN);

	if (errnum == ENODEV) /* offline */
		return 0;
	if (errnum)
		return errnum;
	struct ss_perf_ring *slot = ss_vector_push(&uprobes->rings);
	int *number = ss_vector_push(&uprobes->cpus);
	if (!slot || !number) {
		ss_perf_ring_close(&ring);
		return ENOMEM;
	}
	*slot = ring;
	*number = cpu;
	return 0;
}

static struct ss_error *refused(int errnum)
{
	if (errnum == EACCES || errnum == EPERM)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_DENIED,
				     "perf_event_open() is not permitted: it needs "
				     "CAP_PERFMON or CAP_SYS_ADMIN"),
			geteuid() == 0 ?
				"in a container add the capability and allow the call "
				"(--security-opt seccomp=unconfined)" :
				"run it as root: sudo stacksnap trace ...");
	if (errnum == EMFILE)
		return ss_error_with_remedy(
			ss_error_new(
				SS_ERROR_SYSTEM,
				"too few file descriptors: each thread needs one for "
				"each CPU"),
			"raise the limit: ulimit -n 1048576");
	if (errnum == ENOSYS)
		return ss_error_new(
			SS_ERROR_UNSUPPORTED,
			"perf events need Linux 2.6.31 or later (CONFIG_PERF_EVENTS)");
	return ss_error_new_errno(errnum, "perf_event_open");
}

struct ss_error *ss_uprobes_check(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY };
	struct ss_perf_ring ring = {};
	int errnum = ss_perf_ring_open(&ring, &attr, sched_getcpu(), RING_BYTES_MIN,
				       RING_BYTES_MIN);

	if (errnum == 0)
		ss_perf_ring_close(&ring);
	/* This CPU went offline. */
	return errnum == 0 || errnum == ENODEV ? NULL : refused(errnum);
}

static struct ss_error *open_rings(struct ss_uprobes *uprobes)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t size = cpus > MANY_CPUS ? RING_BYTES_MANY : RING_BYTES;

	for (int cpu = 0; cpu < cpus && uprobes->rings.count <= (size_t)cpu; cpu++) {
		int errnum = open_ring(uprobes, cpu, size);
		if (errnum)
			return refused(errnum);
	}
	return NULL;
}

static int open_event(struct ss_uprobes *uprobes, pid_t tid, size_t ring)
{
	const struct ss_uprobe_options *o = &uprobes->options;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_TRACEPOINT,
		.config = uprobes->config,
		.sample_period = o->every ? o->every : 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.sample_id_all = 1,
		.inherit = 1,
		.disabled = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.mmap = o->regs || o->callers,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};

	if (o->faults) {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
		attr.sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
		attr.sample_type |= PERF_SAMPLE_ADDR;
	}
	if (o->regs) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER;
		attr.sample_regs_user = ss_arch_host.attach->sample_mask;
	}
	if (o->stack_max) {
		attr.sample_type |= PERF_SAMPLE_STACK_USER;
		attr.sample_stack_user = (uint32_t)o->stack_max;
	}
	struct ss_uprobe_event *slot = ss_vector_push(&uprobes->events);
	if (!slot)
		return ENOMEM;
	slot->fd = (int)syscall(SYS_perf_event_open, &attr, tid,
				uprobes->cpus.items[ring], -1, PERF_FLAG_FD_CLOEXEC);
	int errnum = errno;
	slot->tid = tid;
	if (slot->fd >= 0) {
		errnum = 0;
		if (ioctl(slot->fd, PERF_EVENT_IOC_SET_OUTPUT,
			  uprobes->rings.items[ring].fd) != 0 ||
		    ioctl(slot->fd, PERF_EVENT_IOC_ID, &slot->id) != 0)
			errnum = errno;
	}
	if (errnum) {
		close_cleanup(&slot->fd);
		uprobes->events.count--;
	}
	return errnum;
}

static bool has_event(const struct ss_uprobes *uprobes, pid_t tid)
{
	for (size_t i = uprobes->events.count; i-- > 0;) {
		if (uprobes->events.items[i].tid == tid)
			return true;
	}
	return false;
}

/* 0 also if the thread has ended. */
static int attach_thread(struct ss_uprobes *uprobes, pid_t tid, bool late)
{
	int errnum = 0;

	for (size_t i = 0; i < uprobes->rings.count && errnum == 0; i++)
		errnum = open_event(uprobes, tid, i);
	if (late && errnum == 0) {
		pid_t *slot = ss_vector_push(&uprobes->late);
		if (!slot)
			return ENOMEM;
		*slot = tid;
	}
	return errnum == ESRCH ? 0 : errnum;
}

/* Opens the events of threads that have none; the first pass finds those that are there, the
   next ones those that they have started meanwhile. */
static int attach_new(struct ss_uprobes *uprobes, const struct ss_target *target,
		      bool late, bool *ret)
{
	DIR *directory = ss_io_open_directory(target->task_fd, ".");
	const struct dirent *entry;
	size_t known = uprobes->events.count;
	int errnum = directory ? 0 : errno;

	while (directory && errnum == 0 && (entry = readdir(directory))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (tid > 0 && !(late && has_event(uprobes, tid)))
			errnum = attach_thread(uprobes, tid, late);
	}
	if (directory)
		(void)closedir(directory); /* nothing was written */
	*ret = uprobes->events.count > known;
	return errnum;
}

struct ss_error *ss_uprobes_attach(struct ss_uprobes *uprobes,
				   const struct ss_target *target)
{
	struct ss_error *error = open_rings(uprobes);
	bool more = true;

	for (int i = 0; !error && more && i < PASSES_MAX; i++) {
		int errnum = attach_new(uprobes, target, i > 0, &more);
		if (errnum)
			error = refused(errnum);
	}
	if (!error && uprobes->events.count == 0)
		error = ss_target_missing(target);
	return error;
}

size_t ss_uprobes_cpus(const struct ss_uprobes *uprobes)
{
	return uprobes->rings.count;
}

static void control(const struct ss_uprobes *uprobes, unsigned long request)
{
	/* Fails for a CPU that went offline. */
	for (size_t i = 0; i < uprobes->events.count; i++)
		(void)ioctl(uprobes->events.items[i].fd, request, 0);
}

void ss_uprobes_start(const struct ss_uprobes *uprobes)
{
	control(uprobes, PERF_EVENT_IOC_ENABLE);
}

void ss_uprobes_stop(const struct ss_uprobes *uprobes)
{
	control(uprobes, PERF_EVENT_IOC_DISABLE);
}

uint64_t ss_uprobes_count(const struct ss_uprobes *uprobes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < uprobes->events.count; i++) {
		uint64_t count = 0;
		if (read(uprobes->events.items[i].fd, &count, sizeof(count)) ==
		    sizeof(count))
			sum += count;
	}
	uint64_t duplicates =
		uprobes->duplicates * SS_MAX(uprobes->options.every, UINT64_C(1));
	return sum - SS_MIN(sum, duplicates);
}

/* Records ------------------------------------------------------------------ */

/* PERF_RECORD_SAMPLE with these sample types; the fields of the probe follow, then registers
   and stack. */
struct head {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid;
	uint32_t tid;
	uint64_t time_ns;
	uint32_t raw_size;
};

enum { HEAD_SIZE = 36 }; /* without padding */

/* With PERF_SAMPLE_ADDR instead of PERF_SAMPLE_RAW. */
struct fault {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid;
	uint32_t tid;
	uint64_t time_ns;
	uint64_t address;
};

/*
 * A thread that was started while events were opened may have two: one that it inherited, and
 * one of its own. The latter counts.
 */
static bool is_duplicate(const struct ss_uprobes *uprobes, pid_t tid, uint64_t id)
{
	bool late = false;

	for (size_t i = 0; i < uprobes->late.count && !late; i++)
		late = uprobes->late.items[i] == tid;
	if (!late)
		return false;
	return !ss_any(uprobes->events.count, i,
		       uprobes->events.items[i].tid == tid &&
			       uprobes->events.items[i].id == id);
}

static void read_regs(struct ss_uprobes *uprobes, const struct ss_perf_ring *ring,
		      size_t at, struct ss_uprobe_hit *ret)
{
	uint64_t regs[sizeof(ss_arch_host.attach->sample_mask) * 8];
	size_t size = (size_t)__builtin_popcountll(ss_arch_host.attach->sample_mask) *
		      SS_SAMPLE_WORD;
	uint64_t abi = 0;
	uint64_t dump = 0;
	uint64_t copied = 0;

	if (!ss_perf_ring_copy(ring, at, &abi, sizeof(abi)) ||
	    abi == PERF_SAMPLE_REGS_ABI_NONE ||
	    !ss_perf_ring_copy(ring, at + sizeof(abi), regs, size))
		return;
	ret->has_regs = true;
	ss_arch_host.attach->from_sample(regs, &uprobes->regs);
	uprobes->stack_offset = at + sizeof(abi) + size;
	if (!uprobes->options.stack_max ||
	    !ss_perf_ring_copy(ring, uprobes->stack_offset, &dump, sizeof(dump)) ||
	    dump == 0 || dump > SS_UPROBE_STACK_MAX * 2 ||
	    !ss_perf_ring_copy(ring, uprobes->stack_offset + sizeof(dump) + dump, &copied,
			       sizeof(copied)))
		return;
	ret->truncated = copied == dump && dump >= uprobes->options.stack_max;
	ret->stack_size = SS_MIN(copied, dump);
}

static bool read_hit(struct ss_uprobes *uprobes, const struct ss_perf_ring *ring,
		     struct ss_uprobe_hit *ret)
{
	const struct ss_uprobe_options *o = &uprobes->options;
	uint64_t fields[1 + SS_PROBE_ARGS + 1];
	size_t size = (1 + o->args + o->callers) * sizeof(*fields);
	struct head head;

	if (!ss_perf_ring_copy(ring, 0, &head, HEAD_SIZE) ||
	    !ss_perf_ring_copy(ring, HEAD_SIZE + RAW_ADDRESS, &ret->pc,
			       sizeof(ret->pc)) ||
	    !ss_perf_ring_copy(ring, HEAD_SIZE + RAW_FIELDS, fields, size) ||
	    !ss_perf_ring_copy(ring, HEAD_SIZE + RAW_FIELDS + size, &ret->place,
			       sizeof(ret->place)))
		return false;
	if (uprobes->late.count && is_duplicate(uprobes, (pid_t)head.tid, head.id)) {
		uprobes->duplicates++;
		return false;
	}
	ret->kind = SS_UPROBE_HIT;
	ret->pid = (pid_t)head.pid;
	ret->tid = (pid_t)head.tid;
	ret->time_ns = head.time_ns;
	ret->sp = fields[0];
	for (unsigned i = 0; i < o->args; i++)
		ret->args[i] = fields[1 + i];
	ret->return_address = o->callers ? fields[1 + o->args] : 0;
	ret->has_regs = false;
	ret->stack_size = 0;
	if (o->regs)
		read_regs(uprobes, ring, HEAD_SIZE + head.raw_size, ret);
	return ret->place < uprobes->places;
}

static bool read_fault(struct ss_uprobes *uprobes, const struct ss_perf_ring *ring,
		       struct ss_uprobe_hit *ret)
{
	struct fault fault;

	if (!ss_perf_ring_copy(ring, 0, &fault, sizeof(fault)))
		return false;
	if (uprobes->late.count && is_duplicate(uprobes, (pid_t)fault.tid, fault.id)) {
		uprobes->duplicates++;
		return false;
	}
	*ret = (struct ss_uprobe_hit){ .kind = SS_UPROBE_HIT,
				       .pid = (pid_t)fault.pid,
				       .tid = (pid_t)fault.tid,
				       .time_ns = fault.time_ns,
				       .args = { fault.address } };
	if (uprobes->options.regs)
		read_regs(uprobes, ring, sizeof(fault), ret);
	return true;
}

/* sample_id_all: pid and tid, time, identifier at the end of a record. */
struct trailer {
	uint32_t pid;
	uint32_t tid;
	uint64_t time_ns;
	uint64_t id;
};

static bool read_name(const struct ss_perf_ring *ring,
		      const struct perf_event_header *header, struct ss_uprobe_hit *ret)
{
	uint32_t ids[2];
	struct trailer trailer;
	size_t size = header->size;

	if (size < sizeof(*header) + sizeof(ids) + sizeof(trailer) ||
	    !ss_perf_ring_copy(ring, sizeof(*header), ids, sizeof(ids)) ||
	    !ss_perf_ring_copy(ring, size - sizeof(trailer), &trailer, sizeof(trailer)))
		return false;
	size_t length = SS_MIN(size - sizeof(*header) - sizeof(ids) - sizeof(trailer),
			       sizeof(ret->name) - 1);
	*ret = (struct ss_uprobe_hit){
		.kind = SS_UPROBE_NAME,
		.pid = (pid_t)ids[0],
		.tid = (pid_t)ids[1],
		.time_ns = trailer.time_ns,
		.exec = header->misc & PERF_RECORD_MISC_COMM_EXEC,
	};
	return ss_perf_ring_copy(ring, sizeof(*header) + sizeof(ids), ret->name, length);
}

/* PERF_RECORD_MMAP, of executable mappings. What JIT compilers map has no file. */
static bool read_map(const struct ss_perf_ring *ring,
		     const struct perf_event_header *header, struct ss_uprobe_hit *ret)
{
	struct {
		uint32_t pid;
		uint32_t tid;
		uint64_t address;
		uint64_t size;
		uint64_t offset;
		char name[8]; /* its beginning */
	} map;
	struct trailer trailer;
	size_t size = header->size;

	if (size < sizeof(*header) + sizeof(map) + sizeof(trailer) ||
	    !ss_perf_ring_copy(ring, sizeof(*header), &map, sizeof(map)) ||
	    !ss_perf_ring_copy(ring, size - sizeof(trailer), &trailer, sizeof(trailer)) ||
	    map.name[0] != '/' || map.name[1] == '/')
		return false;
	*ret = (struct ss_uprobe_hit){
		.kind = SS_UPROBE_MAP,
		.pid = (pid_t)map.pid,
		.tid = (pid_t)map.tid,
		.time_ns = trailer.time_ns,
	};
	return true;
}

/* PERF_RECORD_FORK and EXIT. */
static bool read_task(const struct ss_perf_ring *ring,
		      const struct perf_event_header *header, struct ss_uprobe_hit *ret)
{
	struct {
		uint32_t pid;
		uint32_t ppid;
		uint32_t tid;
		uint32_t ptid;
		uint64_t time_ns;
	} task;

	if (!ss_perf_ring_copy(ring, sizeof(*header), &task, sizeof(task)))
		return false;
	*ret = (struct ss_uprobe_hit){
		.kind = header->type == PERF_RECORD_FORK ? SS_UPROBE_FORK :
							   SS_UPROBE_EXIT,
		.pid = (pid_t)task.pid,
		.tid = (pid_t)task.tid,
		.parent_pid = (pid_t)task.ppid,
		.parent_tid = (pid_t)task.ptid,
		.time_ns = task.time_ns,
	};
	return true;
}

static bool read_record(struct ss_uprobes *uprobes, const struct ss_perf_ring *ring,
			const struct perf_event_header *header, struct ss_uprobe_hit *ret)
{
	uint64_t lost[2]; /* id, count */

	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		return uprobes->options.faults ? read_fault(uprobes, ring, ret) :
						 read_hit(uprobes, ring, ret);
	case PERF_RECORD_COMM:
		return read_name(ring, header, ret);
	case PERF_RECORD_MMAP:
		return read_map(ring, header, ret);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return read_task(ring, header, ret);
	case PERF_RECORD_LOST:
		if (ss_perf_ring_copy(ring, sizeof(*header), lost, sizeof(lost)))
			uprobes->lost += lost[1];
		return false;
	default:
		return false;
	}
}

bool ss_uprobes_next(struct ss_uprobes *uprobes, struct ss_uprobe_hit *ret)
{
	struct perf_event_header header;

	for (; uprobes->reading < uprobes->rings.count; uprobes->reading++) {
		struct ss_perf_ring *ring = &uprobes->rings.items[uprobes->reading];
		/* The one that was returned last. */
		if (ring->next > ring->page->data_tail)
			ss_perf_ring_drop(ring);
		while (ss_perf_ring_next(ring, &header)) {
			if (read_record(uprobes, ring, &header, ret))
				return true;
			ss_perf_ring_drop(ring);
		}
	}
	uprobes->reading = 0;
	return false;
}

bool ss_uprobes_copy_stack(const struct ss_uprobes *uprobes, void *ret, size_t size)
{
	return ss_perf_ring_copy(&uprobes->rings.items[uprobes->reading],
				 uprobes->stack_offset + sizeof(uint64_t), ret, size);
}

void ss_uprobes_regs(const struct ss_uprobes *uprobes, struct ss_regs *ret)
{
	ss_arch_host.attach->regs(&uprobes->regs, ret);
}
