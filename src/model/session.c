#include "model/session.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

SS_DEFINE_CLEANUP(struct ss_session, ss_session, ss_session_free)

static const char default_debug_dir[] = "/usr/lib/debug";

struct ss_error *ss_session_new(const struct ss_session_options *options,
				struct ss_session **ret)
{
	const char *debug_dir = options && options->debug_dir ? options->debug_dir :
								default_debug_dir;
	_cleanup_(ss_session_cleanup) struct ss_session *session =
		calloc(1, sizeof(*session));

	if (!session)
		return ss_error_no_memory();
	session->debug_dir = strdup(debug_dir);
	if (options && options->sysroot)
		session->sysroot = strdup(options->sysroot);
	if (!session->debug_dir || (options && options->sysroot && !session->sysroot))
		return ss_error_no_memory();
	*ret = take_ptr(session);
	return NULL;
}

static void slot_free(struct ss_session_slot *slot)
{
	if (slot->data)
		slot->free(slot->data);
}

void ss_session_free(struct ss_session *session)
{
	if (!session)
		return;
	slot_free(&session->unwind);
	slot_free(&session->symbolize);
	free(session->debug_dir);
	free(session->sysroot);
	free(session);
}
