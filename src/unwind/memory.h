/*
 * Memory as an unwinder sees it: the copied stacks of one thread, and what is mapped
 * from files. No live process is asked.
 */
#ifndef SS_UNWIND_MEMORY_H
#define SS_UNWIND_MEMORY_H

#include "model/capture.h"
#include "unwind/cfi_table.h"

/* A module of the capture with its image. */
struct ss_loaded {
	struct ss_module_impl *module; /* the capture's */
	struct ss_image *image;	       /* the session's; NULL: no bytes */
	uint64_t bias;
	struct ss_cfi_table table; /* empty: none */
	bool left_out;		   /* its unwind information is not to be read */
	bool opened;		   /* image was looked for */
};

struct ss_images; /* the session's images, by file */

struct ss_view {
	const struct ss_capture *capture;
	struct ss_images *images;
	struct ss_loaded *loaded; /* one for each module of the capture */
	const struct ss_loaded *last;
	const struct ss_capture_thread *thread;
	uint64_t missing; /* address of the last read that failed */
};

/* False without memory. The capture must outlive the view. */
bool ss_view_init(struct ss_view *view, const struct ss_capture *capture,
		  struct ss_images *images);
void ss_view_deinit(struct ss_view *view);

/* The module at an address of the process, its image opened; or NULL. */
struct ss_loaded *ss_view_find_module(struct ss_view *view, uint64_t address);

/* The same for data, which may lie behind what is mapped from the file: in its .bss. That
   it is the module's own is for a symbol to say. */
struct ss_loaded *ss_view_find_data(struct ss_view *view, uint64_t address);

/* Reads a word. False: not among what was copied; view->missing says where. */
bool ss_view_read_word(struct ss_view *view, uint64_t address, uint64_t *ret);

/* Reads code or read-only data of a module. The bytes that could be read. */
size_t ss_view_read_code(struct ss_view *view, uint64_t address, void *bytes,
			 size_t size);

/* Where the function with that address begins, as its CFI says. 0: not known. */
uint64_t ss_view_find_function(struct ss_view *view, uint64_t address);

/* Whether address lies in an executable area. */
bool ss_view_is_code(struct ss_view *view, uint64_t address);

/* Whether the missing address is where the copy of a stack was cut. */
bool ss_view_was_cut(const struct ss_view *view);

/* session: where debug files are looked for; NULL: they are not. */
struct ss_images *ss_images_new(const struct ss_session *session);
void ss_images_free(struct ss_images *images);

#endif
