/*
 * stacksnap-recording(5): what "stacksnap report" reads, without names.
 */
#include <errno.h>
#include <fcntl.h>

#include "view/render.h"

static struct ss_error *render_recording(const struct ss_snapshot *snapshot,
					 const struct ss_render_options *options,
					 FILE *out)
{
	(void)options;
	if (fflush(out) != 0)
		return NULL; /* ferror() of out says it */
	int fd = fcntl(fileno(out), F_DUPFD_CLOEXEC, 3);
	int errnum = errno;

	if (fd < 0)
		return ss_error_new_errno(errnum, "writing the recording");
	return ss_snapshot_record(snapshot, fd);
}

const struct ss_renderer ss_renderer_recording = {
	.name = "recording",
	.summary = "for stacksnap report, without names; see stacksnap-recording(5)",
	.single = true,
	.render = render_recording,
};
