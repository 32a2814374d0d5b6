/*
 * A minidump, for debuggers and crash collectors. It is made from the capture: the snapshot has
 * neither registers nor the bytes of stacks.
 */
#include "crash/dump.h"
#include "report/format.h"

static struct ss_error *write_minidump_snapshot(const struct ss_snapshot *snapshot,
						const struct ss_format_options *options,
						FILE *out)
{
	(void)snapshot;
	if (!options->capture)
		return ss_error_new(SS_ERROR_INVALID,
				    "a minidump needs a capture of the process");
	if (fflush(out) != 0)
		return NULL; /* the caller checks ferror() */
	return ss_capture_write_minidump(
		options->capture, options->environment ? SS_MINIDUMP_ENVIRONMENT : 0,
		fileno(out));
}

const struct ss_format ss_format_minidump = {
	.name = "minidump",
	.description = "registers, stacks and modules, for lldb and crash collectors",
	.binary = true,
	.single = true,
	.confined = true,
	.unsymbolized = true,
	.write_snapshot = write_minidump_snapshot,
};
