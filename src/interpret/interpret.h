/*
 * The pipeline from captures to snapshots, and the sources of live processes.
 */
#ifndef SS_INTERPRET_INTERPRET_H
#define SS_INTERPRET_INTERPRET_H

#include "base/vector.h"
#include "data/gather.h"
#include "data/pipeline.h"
#include "diagnose/progress.h"
#include "diagnose/wait_table.h"
#include "sandbox/sandbox.h"
#include "stacksnap.h"

/*
 * The way from captures to snapshots, whatever is looked at: a source has captures, which
 * ss_interpret() unwinds, symbolizes and diagnoses in a confined process (ss_sandbox_run()).
 * That process asks for what is missing, and the source provides it: with privileges, and
 * without parsing anything.
 */

/* What is missing of the last capture of a source: memory according to a plan, or stacks. */
struct ss_completion {
	bool goroutines; /* the plan is for goroutines */
	bool runtimes;	 /* capture again with the plan */
	enum ss_jit_plan jit;
	struct ss_gather_plan plan;	       /* of one of these three; unchecked */
	const struct ss_stack_request *stacks; /* address 0: registers are missing */
	size_t count;
};

/* Of struct ss_source, the functions that a source does not have are NULL. */
struct ss_source {
	void *data;
	size_t count; /* of captures */
	/* In the order of time, of one process; or of several. The source owns them, and may
	   replace them when it completes the last one. NULL: see load. */
	struct ss_capture **captures;
	bool of_processes;
	/* Makes the only capture in the confined process, from input that may not be parsed with
	   privileges. count is 1 then. */
	struct ss_error *(*load)(void *data, const struct ss_sandbox_attempt *attempt,
				 struct ss_capture **ret);
	/* Completes the last capture as far as possible. may_stop: threads whose registers are
	   missing may be stopped. Returns whether anything has changed. */
	bool (*complete)(void *data, const struct ss_completion *completion,
			 bool may_stop);
	/* For struct ss_unwind_options, of the capture with that index. */
	size_t (*read)(void *data, size_t index, uint64_t address, void *bytes,
		       size_t size);
	bool (*check)(void *data, size_t index, pid_t tid);
};

/* For the times of struct ss_interpretation. */
enum ss_interpret_step {
	SS_STEP_CAPTURE, /* in the caller, to complete a capture */
	SS_STEP_UNWIND,
	SS_STEP_SYMBOLIZE,
	SS_STEP_DIAGNOSE,
	SS_STEP_FINISH,
	SS_STEP_COUNT,
};

/* What write of struct ss_interpret_options gets, in the confined process. */
struct ss_interpreted {
	const struct ss_capture *const *captures;
	const struct ss_snapshot *const *snapshots;
	size_t count;
	enum ss_sandbox_level level;
	const char *problem; /* as in struct ss_interpretation */
	int output;	     /* file for the result */
};

struct ss_interpret_options {
	size_t size;	     /* sizeof(struct ss_interpret_options) */
	unsigned max_frames; /* per thread; 0: no limit */
	bool native;	     /* as in struct ss_unwind_options, also the next two */
	bool tasks;	     /* of the last capture, or of each process */
	bool many;
	bool goroutines;   /* read those of the last capture */
	bool raw;	   /* no symbols */
	bool no_waits;	   /* no diagnosis */
	bool may_be_empty; /* as in struct ss_capture_options */
	bool last_waits; /* diagnose the last capture, and the others if they must be compared */
	bool only_stacks;   /* neither symbols nor diagnosis */
	bool for_recording; /* identify files; symbols only as diagnosis needs them */
	unsigned symbolize_flags;	   /* enum ss_symbolize_flags */
	const struct ss_wait_table *waits; /* NULL: the functions that are built in */
	const char *debug_dir;		   /* as in struct ss_session_options */
	const char *sysroot;
	struct ss_cache *cache; /* or NULL */
	/* Whose privileges the confined process has; see ss_target_owner(). */
	bool owner_known;
	bool owner_reads_sysroot;
	uid_t uid;
	gid_t gid;
	enum ss_sandbox_level last_level; /* see struct ss_sandbox_options */
	unsigned timeout_ms;		  /* likewise */
	uint64_t more_memory;		  /* likewise */
	uint64_t max_output;		  /* likewise */
	bool keep_modules;		  /* likewise */
	unsigned stops;	    /* how often threads may be stopped to read their registers */
	unsigned plans;	    /* for runtimes that were executed before */
	unsigned max_plans; /* 0: no limit but that of all requests */
	bool settled;	    /* nothing can be completed */
	void *data;	    /* of the functions, each of which may be NULL */
	/* In the confined process: writes the result in place of snapshots, which are not
	   returned then. *ret_value: see struct ss_sandbox_result. */
	struct ss_error *(*write)(void *data, const struct ss_interpreted *interpreted,
				  uint64_t *ret_value);
	/* In the confined process: a text about what is missing in the last snapshot. */
	char *(*advise)(void *data, const struct ss_snapshot *snapshot,
			struct ss_session *session);
	/* Files that the confined process may not open; NULL: it gets none. */
	struct ss_file_requests *files;
	/* As in struct ss_sandbox_options; read: for ss_interpret_work(). */
	ss_memory_read_function *read;
	bool (*stop)(void *data);
	void (*slow)(void *data, enum ss_sandbox_step step);
};

struct ss_interpretation {
	struct ss_snapshot **snapshots; /* one of each capture */
	size_t count;			/* 0 with write */
	char *problem; /* one line: what failed, and what is missing therefore; or NULL */
	char *advice;  /* of the advise function; or NULL */
	bool settled;  /* nothing more could be completed */
	uint64_t spent_ns[SS_STEP_COUNT];
	struct ss_sandbox_result
		*sandbox; /* level, failures, messages; output with write */
};

/* Sets the owner of the process in options. */
void ss_interpret_as_owner(const struct ss_target *target,
			   struct ss_interpret_options *options);

/* With only_stacks and without write, there are no snapshots: the source was completed. Errors:
   those of ss_sandbox_run(); NO_PROCESS (there are no threads left), INVALID. */
struct ss_error *ss_interpret(struct ss_source *source,
			      const struct ss_interpret_options *options,
			      struct ss_interpretation **ret);
void ss_interpretation_free(struct ss_interpretation *result);

/* Runs work on something else than captures (recordings, build-ids, a heap) in a process that is
   confined in the same way, and gets the same files. data of options is that of work. Errors: those of
   ss_sandbox_run(). */
struct ss_error *ss_interpret_work(const struct ss_interpret_options *options,
				   ss_sandbox_work *work, struct ss_sandbox_result **ret);

/* For both: what options say about the confined process, and its session. */
struct ss_sandbox_options
ss_interpret_confine(const struct ss_interpret_options *options);

/* A line about failures before an attempt, to be freed; NULL: there were none. path (or NULL) returns
   the path of a module, or NULL, for those that were skipped. */
typedef const char *ss_module_path_function(const void *data, size_t index);
char *ss_interpret_problem(const struct ss_sandbox_attempt *attempt, bool raw,
			   ss_module_path_function *path, const void *data);

/* Registers may be needed only after more of a stack was copied: default of stops. */
enum { SS_INTERPRET_STOPS = 2 };

/* A live process as a source: one capture of it, or several, one after the other. */
struct ss_process_source;

struct ss_process_source_options {
	size_t size; /* sizeof(struct ss_process_source_options) */
	const struct ss_capture_options *capture;
	/* An open target, which must outlive this; NULL: it is opened by its pid. */
	struct ss_target *target;
	bool held;    /* all threads of target stand still: see ss_supervisor_hold() */
	bool no_list; /* if access is denied, that is the error: threads are not listed */
	bool no_related; /* skip processes that threads wait for */
	bool owners;	 /* threads that those of a filter wait for are captured, too */
	/* After a capture: whether filter needs all threads, which are then captured; or NULL */
	bool (*needs_all)(const void *filter_data);
	/* Called before and after what may never return, because memory of the process
	   depends on a file system that does not answer; or NULL. */
	void (*watch)(void *data, pid_t pid, bool begin);
	/* Called if something could not be completed; or NULL. */
	void (*warn)(void *data, const struct ss_error *error);
	/* Called after the first capture; or NULL. refusal: why threads are only listed, with name
	   and state; or NULL. */
	void (*captured)(void *data, const struct ss_target *target,
			 const struct ss_error *refusal);
	void *data;
};

/* Captures the process, or lists its threads. Errors: those of ss_target_open() and
   ss_capture_take(). */
struct ss_error *ss_process_source_new(pid_t pid,
				       const struct ss_process_source_options *options,
				       struct ss_process_source **ret);
void ss_process_source_free(struct ss_process_source *source);
/* The last capture, which can be completed; valid as long as it, as the next three. */
struct ss_source *ss_process_source_last(struct ss_process_source *source);
/* All captures. */
struct ss_source *ss_process_source_all(struct ss_process_source *source);
struct ss_target *ss_process_source_target(struct ss_process_source *source);

/* For ss_snapshot_take(): what the library's own commands set, in place of the public options. */
struct ss_pipeline {
	struct ss_process_source_options source;
	struct ss_interpret_options interpret;
	struct ss_interpretation
		*result; /* set; without the snapshot, which is NULL with write */
};

/*
 * For several captures: begin completes the first one and reads the functions of runtimes,
 * which is possible only before the process goes on; take adds a capture, and does the same
 * for it; end finds the processes that threads of the last capture wait for. options: of
 * the interpretation that follows. Errors: those of ss_capture_take() and ss_interpret();
 * INTERRUPTED: the capture was dropped.
 */
struct ss_error *
ss_process_source_begin_series(struct ss_process_source *source,
			       const struct ss_interpret_options *options);
struct ss_error *ss_process_source_take(struct ss_process_source *source,
					const struct ss_interpret_options *options);
/* Bytes of all captures, see ss_capture_size(). */
uint64_t ss_process_source_size(const struct ss_process_source *source);
void ss_process_source_end_series(struct ss_process_source *source);

struct ss_progress;

/*
 * A process that is observed for a while: captures of all threads at the beginning and at the
 * end, of running threads between, and the scheduler's counters. Of options, the members
 * target and held are not used. Errors: those of ss_target_open(), ss_activity_take()
 * and ss_capture_take().
 */
struct ss_observation;
struct ss_error *ss_observation_new(pid_t pid, uint64_t time_ns,
				    const struct ss_process_source_options *options,
				    struct ss_observation **ret);
void ss_observation_free(struct ss_observation *observation);
/* Both are valid as long as the observation. */
struct ss_source *ss_observation_source(struct ss_observation *observation);
struct ss_target *ss_observation_target(struct ss_observation *observation);
/* See ss_progress_new(); result: of the source. */
struct ss_error *ss_observation_compare(const struct ss_observation *observation,
					const struct ss_interpretation *result,
					struct ss_progress **ret);

/*
 * Files that an analysis in the sandbox needs and cannot open itself: those that only the
 * caller may read, and those that are on a debuginfod server. The child asks for them with
 * ss_sandbox_request(); the caller opens or downloads them before the next attempt.
 */

/*
 * The child may have been taken over by what it reads. It gets no file that it cannot tell
 * apart from others already: another child, which has seen nothing else, must find the build-id
 * or the checksum in the file that was requested with it. Core dumps are never handed over.
 */

/* Attempts that may end with requests: for modules, for their debug files, for alternate
   debug files, and a spare one. */
enum { SS_FILE_REQUEST_ROUNDS = 4 };

/*
 * Executables and debug files by build-id, downloaded with libdebuginfod if it is installed.
 * Only on request, since the servers learn which programs were analysed.
 */
struct ss_debuginfod;

/* warn is called once if servers do not answer. Errors: INVALID (DEBUGINFOD_URLS is empty, or the
   library is missing), NO_MEMORY. */
struct ss_error *ss_debuginfod_new(void (*warn)(const char *text),
				   struct ss_debuginfod **ret);
void ss_debuginfod_free(struct ss_debuginfod *debuginfod);

SS_DEFINE_CLEANUP(struct ss_debuginfod, ss_debuginfod, ss_debuginfod_free)

struct ss_file_request {
	char *key; /* a letter for the kind, and a build-id, or a proof, a space and a path */
	int fd; /* or -1: there is no such file. Owned. */
};

struct ss_file_requests {
	SS_VECTOR(struct ss_file_request) answered;
	SS_VECTOR(char *) pending;	  /* in the child only */
	struct ss_debuginfod *debuginfod; /* or NULL: no server is asked. Not owned. */
	bool opens;			  /* paths are opened */
	bool privileged;		  /* more than the child */
	const char *sysroot;		  /* or NULL: none below it. Not owned. */
};

void ss_file_requests_deinit(struct ss_file_requests *requests);

/* Requests files that a session may not open, and those of the server if there is one. The sandbox
   must allow SS_FILE_REQUEST_ROUNDS requests. */
struct ss_session_files ss_file_requests_attach(struct ss_file_requests *requests,
						const char *sysroot);

/* In the child: sends the pending requests; *ret says whether there are any. */
struct ss_error *ss_file_requests_send(const struct ss_file_requests *requests,
				       const struct ss_sandbox_attempt *attempt,
				       bool *ret);

/* In the caller: opens the requested files. bytes are untrusted. */
void ss_file_requests_answer(struct ss_file_requests *requests, const void *bytes,
			     size_t size);

SS_DEFINE_CLEANUP(struct ss_interpretation, ss_interpretation, ss_interpretation_free)
SS_DEFINE_CLEANUP(struct ss_process_source, ss_process_source, ss_process_source_free)
SS_DEFINE_CLEANUP(struct ss_observation, ss_observation, ss_observation_free)

#endif
