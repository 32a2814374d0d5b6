#include "crash/cli/core.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "cli/interpret.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "sandbox/sandbox.h"

enum {
	REPORTS_MAX = 10000000,
	REPORT_MAX = 64 << 20, /* 5,000 threads */
	TIMEOUT_MS = 3600 * 1000,
};

#define MORE_MEMORY ((uint64_t)1 << 30)

/* Documents -------------------------------------------------------------------- */

bool ss_crash_reader_init(struct ss_crash_reader *reader)
{
	*reader = (struct ss_crash_reader){ .strings = ss_intern_new() };
	return reader->strings != NULL;
}

void ss_crash_reader_deinit(struct ss_crash_reader *reader)
{
	ss_vector_free(&reader->reports.items);
	ss_intern_free(reader->strings);
}

/* The string of that key, or "". NULL without memory. */
static const char *get_string(struct ss_crash_reader *reader, const json_t *object,
			      const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return ss_intern_string(reader->strings, text ? text : "");
}

static const char *find_build_id(struct ss_crash_reader *reader, const json_t *document,
				 const char *program)
{
	const json_t *modules = json_object_get(document, "modules");

	for (size_t i = 0; i < json_array_size(modules); i++) {
		const json_t *module = json_array_get(modules, i);
		const char *path = json_string_value(json_object_get(module, "path"));
		if (path && strcmp(path, program) == 0)
			return get_string(reader, module, "build_id");
	}
	return "";
}

/* One document; file_ns is when its file was written. False without memory. */
static bool add_document(struct ss_crash_reader *reader, const json_t *document,
			 uint64_t file_ns)
{
	const json_t *capture = json_object_get(document, "capture");
	const json_t *crash = json_object_get(capture, "crash");
	const json_t *process = json_object_get(document, "process");
	json_int_t time_ns = json_integer_value(json_object_get(capture, "time_ns"));
	const char *schema = json_string_value(json_object_get(document, "schema"));

	if (!schema || strcmp(schema, "stacksnap-snapshot/1") != 0 ||
	    !json_is_object(crash) || reader->reports.items.count >= REPORTS_MAX) {
		reader->reports.skipped++;
		return true;
	}
	struct ss_crash_report *report = ss_vector_push(&reader->reports.items);
	if (!report)
		return false;
	report->hash = get_string(reader, crash, "stack_hash");
	report->signature = get_string(reader, crash, "signature");
	if (report->hash && !*report->hash)
		report->hash = report->signature;
	report->signal = get_string(reader, crash, "name");
	report->program = get_string(reader, process, "executable");
	if (report->program && !*report->program)
		report->program = get_string(reader, process, "name");
	report->host = get_string(reader, process, "host");
	report->build_id =
		report->program ? find_build_id(reader, document, report->program) : NULL;
	report->time_ns = time_ns > 0 ? (uint64_t)time_ns : file_ns;
	return report->hash && report->signature && report->signal && report->program &&
	       report->host && report->build_id;
}

bool ss_crash_reader_add(struct ss_crash_reader *reader, const char *bytes, size_t size,
			 uint64_t file_ns)
{
	const char *at = bytes;
	size_t left = size;
	json_error_t problem;
	bool ok = true;

	if (left == 0)
		reader->reports.skipped++;
	while (ok && left > 0) {
		json_t *document = json_loadb(at, left, JSON_DISABLE_EOF_CHECK, &problem);
		if (!document) {
			reader->reports.skipped++;
			return true;
		}
		size_t used = SS_MIN((size_t)problem.position, left);
		ok = add_document(reader, document, file_ns);
		json_decref(document);
		while (used < left && strchr(" \t\r\n", at[used]))
			used++;
		if (used == 0)
			return ok;
		at += used;
		left -= used;
	}
	return ok;
}

/* Directories ------------------------------------------------------------------ */

/* owner: that of a directory of the handler, or NULL. False without memory. */
static bool add_file(struct ss_crash_reader *reader, int directory, const char *name,
		     const uid_t *owner)
{
	_cleanup_buffer_ struct ss_buffer bytes = {};
	struct stat status;
	_cleanup_close_ int path =
		openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (path < 0 || fstat(path, &status) != 0 || S_ISDIR(status.st_mode))
		return true;
	uid_t uid;
	if (owner && !ss_core_reports_has_written(name, &status, *owner, &uid)) {
		reader->reports.foreign++;
		return true;
	}
	_cleanup_close_ int fd = ss_io_reopen(path);
	if (fd < 0 || ss_io_read_all(fd, REPORT_MAX, &bytes) < 0) {
		reader->reports.skipped++;
		return !bytes.failed;
	}
	return ss_crash_reader_add(reader, bytes.bytes, bytes.size,
				   ss_timespec_ns(&status.st_mtim));
}

static struct ss_error *read_directory(struct ss_crash_reader *reader, const char *path)
{
	DIR *directory = ss_io_open_directory(AT_FDCWD, path);
	int errnum = errno;
	const struct dirent *entry;
	struct stat status;
	bool ok = true;

	if (!directory)
		return ss_error_new_errno(errnum, "cannot open '%s'", path);
	bool of_handler = ss_core_reports_read_refused(dirfd(directory),
						       &reader->reports.refused) &&
			  fstat(dirfd(directory), &status) == 0;
	while (ok && (entry = readdir(directory)))
		ok = entry->d_name[0] == '.' ||
		     add_file(reader, dirfd(directory), entry->d_name,
			      of_handler ? &status.st_uid : NULL);
	(void)closedir(directory);
	return ok ? NULL : ss_error_no_memory();
}

/* In the sandbox. */
static struct ss_error *work(void *data, const struct ss_sandbox_attempt *attempt)
{
	const struct ss_report_arguments *arguments = data;
	_cleanup_(ss_crash_reader_deinit) struct ss_crash_reader reader = {};
	FILE *out = NULL;

	if (!ss_crash_reader_init(&reader))
		return ss_error_no_memory();
	struct ss_error *error = read_directory(&reader, arguments->files.items[0]);
	if (!error && reader.reports.items.count == 0 && reader.reports.refused == 0)
		error = ss_error_new(SS_ERROR_INVALID,
				     "'%s' has neither recordings nor crash reports",
				     arguments->files.items[0]);
	if (!error)
		error = ss_stream_open(attempt->output, &out);
	if (error)
		return error;
	ss_sandbox_set_value(attempt,
			     reader.reports.skipped > 0 || reader.reports.foreign > 0);
	error = arguments->common.format == &ss_format_json ?
			ss_crash_groups_write_json(&reader.reports, out) :
			ss_crash_groups_write_text(&reader.reports, arguments->rows, out);
	return ss_stream_close(out, error);
}

struct ss_error *ss_crash_reports_run(const struct ss_report_arguments *arguments,
				      int *ret)
{
	struct ss_interpret_options options =
		ss_work_options(NULL, NULL, ss_drop_const(arguments));
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;
	_cleanup_(ss_output_cleanup) struct ss_output *output = NULL;
	const struct ss_format *format = arguments->common.format;

	if (format != &ss_format_text && format != &ss_format_json)
		return ss_error_new(SS_ERROR_INVALID,
				    "--format: crash reports of a directory are shown as "
				    "text or json");
	options.raw = true;
	options.timeout_ms = TIMEOUT_MS;
	options.more_memory = MORE_MEMORY;
	struct ss_error *error = ss_work_run(&options, work, &result);
	if (!error)
		error = ss_output_open(arguments->common.output, 0, &output);
	if (!error)
		error = ss_work_copy(result, &arguments->common, false, output);
	if (!error)
		*ret = result->value ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE;
	return error;
}
