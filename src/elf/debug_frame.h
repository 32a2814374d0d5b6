/*
 * The .debug_frame section, with which programs without .eh_frame are unwound. It is
 * not loaded with the program, but read from the module's file or its separate debug
 * file, and may be compressed.
 */
#ifndef SS_ELF_DEBUG_FRAME_H
#define SS_ELF_DEBUG_FRAME_H

#include "model/module.h"
#include "model/session.h"

/* 64 MiB describe a million functions. */
enum { SS_DEBUG_FRAME_MAX = 64 << 20 };

/* Returns the decompressed section, which the caller frees, or NULL. session: where debug
   files are; NULL: reads the module's own file only. */
uint8_t *ss_debug_frame_read(const struct ss_session *session,
			     const struct ss_module_impl *module, size_t *size);

#endif
