#include "cli/advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/package.h"
#include "report/profile.h"
#include "symbolize/notes.h"

enum { MODULES_MAX = 3 };

struct advice {
	const struct ss_snapshot *snapshot;
	const struct ss_advice_options *options;
	size_t *nameless; /* by module: frames without a name; owned */
	size_t nameless_jit;
	size_t parts; /* written so far */
	FILE *out;
};

static void count_frames(struct advice *advice, const struct ss_task *thread)
{
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame =
			ss_snapshot_frame(advice->snapshot, thread, i);
		if (frame->symbol || frame->signal_frame)
			continue;
		/* The vDSO has no file. */
		if (frame->module_index >= 0 && frame->module->path[0] == '/')
			advice->nameless[frame->module_index]++;
		else if (frame->area && strcmp(frame->area, "[jit]") == 0)
			advice->nameless_jit++;
	}
}

/* The module with the most frames without a name that was not taken yet; -1: none. */
static int take_module(struct advice *advice)
{
	int found = -1;

	for (size_t i = 0; i < ss_snapshot_module_count(advice->snapshot); i++) {
		if (advice->nameless[i] &&
		    (found < 0 || advice->nameless[i] > advice->nameless[found]))
			found = (int)i;
	}
	if (found >= 0)
		advice->nameless[found] = 0;
	return found;
}

static void begin_part(struct advice *advice)
{
	(void)fputs(advice->parts++ ? "; " : "missing: ", advice->out);
}

static void write_module(const struct advice *advice, const struct ss_module *module,
			 const char *package)
{
	(void)fputs(ss_label_base(module->path), advice->out);
	if (package)
		(void)fprintf(advice->out, " (install %s)", package);
	else if (module->build_id)
		(void)fprintf(advice->out, " (build-id %s)", module->build_id);
	else
		(void)fputs(" (it has no build-id)", advice->out);
}

/* The modules that are named, and their packages. */
struct named {
	size_t modules[MODULES_MAX];
	struct ss_package_query queries[MODULES_MAX];
	size_t count;
};

/* Finding a package takes as long as a snapshot: the cache has those that were found. */
static void find_packages(const struct advice *advice, struct named *named)
{
	struct ss_session *session = advice->options->session;
	uint64_t version = ss_packages_version(SS_PACKAGE_DATABASE);
	struct ss_package_query left[MODULES_MAX];
	size_t indexes[MODULES_MAX];
	size_t count = 0;

	for (size_t i = 0; i < named->count; i++) {
		const char *package = NULL;
		if (session &&
		    ss_session_find_note(session, advice->snapshot, named->modules[i],
					 version, &package)) {
			named->queries[i].package = package ? strdup(package) : NULL;
			continue;
		}
		indexes[count] = i;
		left[count++] = named->queries[i];
	}
	ss_packages_find_debug(SS_PACKAGE_DATABASE, left, count);
	for (size_t i = 0; i < count; i++) {
		named->queries[indexes[i]].package = left[i].package;
		if (session)
			ss_session_add_note(session, advice->snapshot,
					    named->modules[indexes[i]], version,
					    left[i].package);
	}
}

static void write_modules(struct advice *advice)
{
	struct named named = {};
	size_t rest = 0;

	for (int index; (index = take_module(advice)) >= 0;) {
		if (named.count == MODULES_MAX) {
			rest++;
			continue;
		}
		const struct ss_module *module =
			ss_snapshot_module(advice->snapshot, (size_t)index);
		named.modules[named.count] = (size_t)index;
		named.queries[named.count++].path = module->deleted ? "" : module->path;
	}
	if (named.count == 0)
		return;
	if (advice->options->packages)
		find_packages(advice, &named);
	begin_part(advice);
	(void)fputs("names in ", advice->out);
	for (size_t i = 0; i < named.count; i++) {
		(void)fputs(i ? ", " : "", advice->out);
		write_module(advice,
			     ss_snapshot_module(advice->snapshot, named.modules[i]),
			     named.queries[i].package);
		free(named.queries[i].package);
	}
	if (rest)
		(void)fprintf(advice->out, " and %zu more", rest);
	if (!advice->options->debuginfod)
		(void)fputs(", or use --debuginfod", advice->out);
}

static bool lacks_peers(const struct ss_task *thread)
{
	const struct ss_descriptor *descriptor = thread->wait ? thread->wait->descriptor :
								NULL;

	return descriptor && descriptor->peers_searched && descriptor->peers_incomplete &&
	       descriptor->peer_count == 0;
}

/* What only root may read. */
static void write_root(struct advice *advice)
{
	bool kernel = false;
	bool peers = false;

	for (size_t i = 0; i < ss_snapshot_task_count(advice->snapshot, SS_TASK_THREAD);
	     i++) {
		const struct ss_task *thread =
			ss_snapshot_task(advice->snapshot, SS_TASK_THREAD, i);
		kernel |= thread->state == 'D' && !thread->kernel_stack;
		peers |= lacks_peers(thread);
	}
	if (advice->options->privileged || !(kernel || peers))
		return;
	begin_part(advice);
	(void)fprintf(advice->out, "%s%s%s (run as root)",
		      kernel ? "kernel functions" : "", kernel && peers ? ", " : "",
		      peers ? "other ends of pipes and sockets" : "");
}

static void write_all(struct advice *advice)
{
	for (size_t i = 0; i < ss_snapshot_task_count(advice->snapshot, SS_TASK_THREAD);
	     i++)
		count_frames(advice,
			     ss_snapshot_task(advice->snapshot, SS_TASK_THREAD, i));
	write_modules(advice);
	if (advice->nameless_jit) {
		begin_part(advice);
		(void)fputs("names of JIT code (needs a perf map, see stacksnap(1))",
			    advice->out);
	}
	write_root(advice);
}

char *ss_advice_new(const struct ss_snapshot *snapshot,
		    const struct ss_advice_options *options)
{
	_cleanup_free_ size_t *nameless =
		calloc(ss_snapshot_module_count(snapshot) + 1, sizeof(*nameless));
	char *text = NULL;
	size_t size = 0;
	struct advice advice = {
		.snapshot = snapshot,
		.options = options,
		.nameless = nameless,
		.out = nameless ? open_memstream(&text, &size) : NULL,
	};

	if (!advice.out)
		return NULL;
	write_all(&advice);
	if (fclose(advice.out) == 0 && size)
		return text;
	free(text);
	return NULL;
}
