/*
 * The bytes of a module's .debug_frame, which programs are unwound by that were built
 * without .eh_frame. It is not loaded with the program: it is in the module's file or in
 * its separate debug file, perhaps compressed.
 */
#ifndef SS_UNWIND_DEBUG_FRAME_H
#define SS_UNWIND_DEBUG_FRAME_H

#include "model/module.h"
#include "model/session.h"

/* 64 MiB are a million functions. */
enum { SS_DEBUG_FRAME_MAX = 64 << 20 };

/* The section, unpacked, to be freed, or NULL. session: where debug files are looked
   for; NULL: in the module's own file only. */
uint8_t *ss_debug_frame_read(const struct ss_session *session,
			     const struct ss_module_impl *module, size_t *size);

#endif
