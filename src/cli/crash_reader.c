#include "cli/crash_reader.h"

#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"

enum { REPORTS_MAX = 10000000 };

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
