/*
 * The child's side of wire.h. It runs without privileges, and is the only part of this
 * room that reads ELF files and unwind tables.
 */
#ifndef SS_SAMPLE_UNWIND_SERVER_H
#define SS_SAMPLE_UNWIND_SERVER_H

#include "sandbox/worker.h"

struct ss_arena;
struct ss_unwind_server;

/* arena: the recorder's (see ss_arena_share()). NULL: no memory. */
struct ss_unwind_server *ss_unwind_server_new(const struct ss_arena *arena);
void ss_unwind_server_free(struct ss_unwind_server *server);

/* A ss_worker_serve; data is a struct ss_unwind_server. */
bool ss_unwind_server_serve(void *data, const struct ss_worker_request *request,
			    volatile int32_t *module_at, const uint8_t **answer,
			    size_t *answer_size);

#endif
