#include "data/session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/search.h"

SS_DEFINE_CLEANUP(struct ss_session, ss_session, ss_session_free)

static const char default_debug_dir[] = "/usr/lib/debug";

struct ss_error *ss_session_new(const struct ss_session_options *options,
				struct ss_session **ret)
{
	struct ss_session_options o = {};
	_cleanup_(ss_session_cleanup) struct ss_session *session =
		calloc(1, sizeof(*session));

	if (!session)
		return ss_error_no_memory();
	session->sysroot = -1;
	session->file_bytes = SS_SESSION_FILE_BYTES;
	if (options)
		memcpy(&o, options, SS_MIN(options->size, sizeof(o)));
	session->debug_dir = strdup(o.debug_dir ? o.debug_dir : default_debug_dir);
	if (o.sysroot)
		session->sysroot = open(o.sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int errnum = errno;
	if (o.sysroot && session->sysroot < 0)
		return ss_error_new_errno(errnum, "%s", o.sysroot);
	if (!session->debug_dir)
		return ss_error_no_memory();
	*ret = take_ptr(session);
	return NULL;
}

bool ss_session_skips(const struct ss_session *session, int32_t module)
{
	return ss_any(session->skip_count, i, session->skip_modules[i] == module);
}

static void slot_free(struct ss_session_slot *slot)
{
	if (slot->data)
		slot->free(slot->data);
}

void ss_session_save(struct ss_session *session, int fd)
{
	if (session->symbolize.data && session->symbolize.save)
		session->symbolize.save(session->symbolize.data, fd);
}

void ss_session_free(struct ss_session *session)
{
	if (!session)
		return;
	slot_free(&session->unwind);
	slot_free(&session->symbolize);
	slot_free(&session->runtime);
	slot_free(&session->module_symbols);
	slot_free(&session->python_codes);
	free(session->debug_dir);
	close_cleanup(&session->sysroot);
	free(session);
}
