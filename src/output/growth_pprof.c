/*
 * "trace --alloc" in the format of pprof, with the sample types of heap profiles. Field numbers are
 * those of profile.proto of github.com/google/pprof. An object is a page.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/idtable.h"
#include "output/escape.h"
#include "output/growth.h"
#include "output/gzip.h"
#include "output/pprof_fields.h"
#include "output/protobuf.h"
#include "output/trace.h"

/* A location is one function at one address; strings are interned. */
struct location {
	const struct ss_module *module;
	const char *symbol;
	const char *file;
	uint64_t offset;
	uint64_t line;
};

struct function {
	const char *symbol;
	const char *file;
};

struct pprof {
	struct ss_trace_output *output;
	struct ss_buffer out;
	struct ss_buffer strings; /* encoded */
	struct ss_idtable texts;
	struct ss_idtable modules; /* of pointers */
	struct ss_idtable locations;
	struct ss_idtable functions;
};

static void pprof_deinit(struct pprof *p)
{
	ss_buffer_deinit(&p->out);
	ss_buffer_deinit(&p->strings);
	ss_idtable_deinit(&p->texts);
	ss_idtable_deinit(&p->modules);
	ss_idtable_deinit(&p->locations);
	ss_idtable_deinit(&p->functions);
}

/* The number of a key from 1 on; 0: no memory. */
static uint64_t number_of(struct pprof *p, struct ss_idtable *table, const void *key,
			  size_t size, bool *added)
{
	uint32_t id = ss_idtable_add(table, key, size, added);

	p->out.failed |= id == SS_ID_NONE;
	return id == SS_ID_NONE ? 0 : (uint64_t)id + 1;
}

/* The index in the string table, of which 0 must be "". */
static uint64_t text(struct pprof *p, const char *bytes)
{
	_cleanup_free_ char *valid = ss_escape_invalid(bytes);
	bool added = false;

	if (!valid) {
		p->out.failed = true;
		return 0;
	}
	uint64_t number = number_of(p, &p->texts, valid, strlen(valid) + 1, &added);
	if (added)
		ss_protobuf_text(&p->strings, PROFILE_STRING, valid);
	return number ? number - 1 : 0;
}

static void put_type(struct pprof *p, unsigned field, const char *kind, const char *unit)
{
	_cleanup_buffer_ struct ss_buffer type = {};

	ss_protobuf_number(&type, TYPE_KIND, text(p, kind));
	ss_protobuf_number(&type, TYPE_UNIT, text(p, unit));
	ss_protobuf_message(&p->out, field, &type);
}

static uint64_t mapping_of(struct pprof *p, const struct ss_module *module)
{
	_cleanup_buffer_ struct ss_buffer mapping = {};
	bool added = false;

	if (!module)
		return 0;
	uint64_t id = number_of(p, &p->modules, &module, sizeof(module), &added);
	if (!added)
		return id;
	ss_protobuf_number(&mapping, MAPPING_ID, id);
	ss_protobuf_number(&mapping, MAPPING_FILE, text(p, module->path));
	if (module->build_id)
		ss_protobuf_number(&mapping, MAPPING_BUILD_ID, text(p, module->build_id));
	ss_protobuf_number(&mapping, MAPPING_HAS_FUNCTIONS, 1);
	ss_protobuf_message(&p->out, PROFILE_MAPPING, &mapping);
	return id;
}

static uint64_t function_of(struct pprof *p, const struct ss_trace_frame *frame)
{
	const struct function key = { frame->symbol, frame->file };
	_cleanup_buffer_ struct ss_buffer function = {};
	bool added = false;
	uint64_t id = number_of(p, &p->functions, &key, sizeof(key), &added);

	if (!added)
		return id;
	ss_protobuf_number(&function, FUNCTION_ID, id);
	ss_protobuf_number(&function, FUNCTION_NAME, text(p, frame->symbol));
	ss_protobuf_number(&function, FUNCTION_SYSTEM_NAME, text(p, frame->symbol));
	if (frame->file)
		ss_protobuf_number(&function, FUNCTION_FILE, text(p, frame->file));
	ss_protobuf_message(&p->out, PROFILE_FUNCTION, &function);
	return id;
}

static uint64_t location_of(struct pprof *p, const struct ss_trace_frame *frame)
{
	const struct location key = {
		.module = frame->module,
		.symbol = frame->symbol,
		.file = frame->file,
		.offset = frame->module ? frame->offset : frame->pc,
		.line = frame->line,
	};
	_cleanup_buffer_ struct ss_buffer location = {};
	_cleanup_buffer_ struct ss_buffer line = {};
	bool added = false;
	uint64_t id = number_of(p, &p->locations, &key, sizeof(key), &added);

	if (!added)
		return id;
	ss_protobuf_number(&location, LOCATION_ID, id);
	ss_protobuf_number(&location, LOCATION_MAPPING, mapping_of(p, frame->module));
	ss_protobuf_number(&location, LOCATION_ADDRESS, key.offset);
	if (frame->symbol) {
		ss_protobuf_number(&line, LINE_FUNCTION, function_of(p, frame));
		ss_protobuf_number(&line, LINE_LINE, frame->line);
		ss_protobuf_message(&location, LOCATION_LINE, &line);
	}
	ss_protobuf_message(&p->out, PROFILE_LOCATION, &location);
	return id;
}

static void put_site(struct pprof *p, const struct ss_growth_site *site)
{
	const struct ss_trace_stack *stack =
		ss_trace_stack(p->output->trace, site->stack);
	const uint64_t bytes = p->output->growth->sample_bytes;
	const uint64_t pages = bytes / ss_trace_page_size();
	const uint64_t values[] = { site->samples * pages, site->samples * bytes,
				    site->held * pages, site->held * bytes };
	_cleanup_free_ uint64_t *path = calloc(stack->count + 1, sizeof(*path));
	_cleanup_buffer_ struct ss_buffer sample = {};

	if (!path) {
		p->out.failed = true;
		return;
	}
	for (size_t i = 0; i < stack->count; i++)
		path[i] = location_of(p, &stack->frames[i]);
	ss_protobuf_numbers(&sample, SAMPLE_LOCATIONS, path, stack->count);
	ss_protobuf_numbers(&sample, SAMPLE_VALUES, values, SS_ARRAY_SIZE(values));
	ss_protobuf_message(&p->out, PROFILE_SAMPLE, &sample);
}

static void put_profile(struct pprof *p)
{
	const struct ss_growth *growth = p->output->growth;

	(void)text(p, "");
	put_type(p, PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
	put_type(p, PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
	put_type(p, PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
	put_type(p, PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
	for (size_t i = 0; i < growth->sites.count; i++) {
		if (growth->sites.items[i].stack)
			put_site(p, &growth->sites.items[i]);
	}
	ss_protobuf_number(&p->out, PROFILE_TIME,
			   ss_clock_ns(CLOCK_REALTIME) -
				   (growth->end_ns - growth->begin_ns));
	ss_protobuf_number(&p->out, PROFILE_DURATION, growth->end_ns - growth->begin_ns);
	put_type(p, PROFILE_PERIOD_TYPE, "space", "bytes");
	ss_protobuf_number(&p->out, PROFILE_PERIOD, growth->sample_bytes);
	ss_protobuf_number(&p->out, PROFILE_DEFAULT_TYPE,
			   text(p, growth->held_only ? "inuse_space" : "alloc_space"));
}

static void write_end(struct ss_trace_output *output)
{
	__attribute__((cleanup(pprof_deinit))) struct pprof p = { .output = output };

	if (!ss_growth_finish(output->growth, output->trace))
		return;
	put_profile(&p);
	FILE *compressed = p.out.failed || p.strings.failed ?
				   NULL :
				   ss_gzip_open(output->out, false);
	output->growth->failed = !compressed;
	if (!compressed)
		return;
	(void)fwrite(p.out.bytes, 1, p.out.size, compressed);
	(void)fwrite(p.strings.bytes, 1, p.strings.size, compressed);
	(void)fclose(compressed); /* the caller checks the output */
}

const struct ss_trace_format ss_growth_pprof = {
	.name = "pprof",
	.wants_stacks = true,
	.begin = ss_growth_begin,
	.event = ss_growth_take,
	.end = write_end,
};
