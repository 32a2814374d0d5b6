/*
 * Finds the list of goroutines of a Go program and the layout of its runtime, in the file
 * of the program, stripped or not. The file is untrusted input.
 */
#ifndef SS_RUNTIME_GO_PROGRAM_H
#define SS_RUNTIME_GO_PROGRAM_H

#include <stdbool.h>

#include "elf/image.h"
#include "runtime/go/layout.h"

struct ss_go_program {
	bool is_go;
	char version[32];		   /* "go1.24.4"; "": not known */
	const struct ss_go_layout *layout; /* NULL: see problem */
	uint64_t list;	     /* ELF virtual address of the slice runtime.allgs */
	const char *problem; /* why goroutines cannot be found, or NULL */
};

/* The Go program that an image is, kept by the image. NULL: it is none. */
const struct ss_go_program *ss_go_program_find(struct ss_image *image);

#endif
