/*
 * Snapshots as stacksnap-recording(5), the input of "stacksnap report": without names.
 */
#include <errno.h>
#include <fcntl.h>

#include "report/format.h"
#include "data/recording.h"
#include "stacksnap/record.h"

static struct ss_error *write_snapshots(const struct ss_snapshots *snapshots,
					const struct ss_format_options *options,
					FILE *out)
{
	if (fflush(out) != 0)
		return NULL; /* the caller checks ferror() */
	int fd = fcntl(fileno(out), F_DUPFD_CLOEXEC, 3);
	int errnum = errno;

	if (fd < 0)
		return ss_error_new_errno(errnum, "writing the recording");
	const struct ss_row_options *rows = options->row_options;
	const struct ss_recording_about about = {
		.wait_functions = options->wait_functions,
		.boot_id = rows ? rows->boot_id : NULL,
		.labels = rows ? rows->labels : NULL,
		.label_count = rows ? rows->label_count : 0,
	};
	return ss_snapshots_record(snapshots->items, snapshots->count,
				   snapshots->period_ns, &about, fd);
}

static struct ss_error *write_snapshot(const struct ss_snapshot *snapshot,
				       const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshots snapshots = { .items = &snapshot, .count = 1 };

	return write_snapshots(&snapshots, options, out);
}

const struct ss_format ss_format_recording = {
	.name = "recording",
	.description = "for stacksnap report; without names, see stacksnap-recording(5)",
	.binary = true,
	.single = true,
	.confined = true,
	.unsymbolized = true,
	.write_snapshot = write_snapshot,
	.write_snapshots = write_snapshots,
};
