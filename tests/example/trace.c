/*
 * How long the calls of a function take, for a second; root only:
 *
 *	cc trace.c $(pkg-config --cflags --libs stacksnap)
 *	./a.out PID FUNCTION
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <stacksnap/trace.h>

static void print_event(void *data, const struct ss_trace_event *event)
{
	const struct ss_trace *trace = data;
	const struct ss_trace_stack *stack =
		event->stack ? ss_trace_stack(trace, event->stack) : NULL;
	const char *name = ss_trace_probe(trace, event->probe)->name;

	if (event->kind == SS_TRACE_ENTER)
		printf("%s called by %s\n", name,
		       stack && stack->count > 1 && stack->frames[1].symbol ?
			       stack->frames[1].symbol :
			       "?");
	else if (event->kind == SS_TRACE_EXIT)
		printf("%s took %" PRIu64 " us\n", name, event->duration_ns / 1000);
}

static struct ss_error *watch(struct ss_trace *trace)
{
	struct ss_error *error = ss_trace_start(trace);

	for (int i = 0; !error && i < 50; i++) {
		const struct timespec pause = { .tv_nsec = 20000000 };

		(void)nanosleep(&pause, NULL);
		error = ss_trace_read(trace, print_event, trace);
	}
	return error ? error : ss_trace_end(trace, print_event, trace);
}

static void print_summary(const struct ss_trace *trace)
{
	const struct ss_trace_summary *summary = ss_trace_summary(trace);

	for (size_t i = 0; i < ss_trace_note_count(trace); i++)
		printf("note: %s\n", ss_trace_note(trace, i)->text);
	printf("%zu probes, %" PRIu64 " hits, %" PRIu64 " lost, %zu different stacks\n",
	       ss_trace_probe_count(trace), summary->hits, summary->lost,
	       ss_trace_stack_count(trace));
}

int main(int argc, char **argv)
{
	struct ss_target *target = NULL;
	struct ss_trace *trace = NULL;
	const struct ss_trace_options options = {
		.size = sizeof(options),
		.specs = (const char *const *)argv + 2,
		.spec_count = argc > 2 ? 1 : 0,
		.scopes = true,
		.max_stack = 65536,
	};
	struct ss_error *error = ss_trace_check();

	if (!error)
		error = ss_target_open(argc > 1 ? atoi(argv[1]) : 0, &target);
	if (!error)
		error = ss_trace_new(target, &options, &trace);
	if (!error)
		error = watch(trace);
	if (!error)
		print_summary(trace);
	if (error)
		fprintf(stderr, "%s\n", ss_error_message(error));
	ss_trace_free(trace);
	ss_target_close(target);
	int status = error ? EXIT_FAILURE : EXIT_SUCCESS;
	ss_error_free(error);
	return status;
}
