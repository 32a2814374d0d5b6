/*
 * File descriptors in words: what they are, and who is at the other end.
 */
#ifndef SS_OUTPUT_DESCRIPTOR_TEXT_H
#define SS_OUTPUT_DESCRIPTOR_TEXT_H

#include "output/text_writer.h"
#include "stacksnap.h"

/* Writes "pipe, written by 4711 (cat)", "TCP connection 127.0.0.1:80 to ...", a path. */
void ss_descriptor_text_write(const struct ss_text_writer *w,
			      const struct ss_descriptor *descriptor);

/* Writes "127.0.0.1:80", "[::1]:80", "*:80". */
void ss_descriptor_text_write_address(const struct ss_text_writer *w,
				      const struct ss_socket_address *address);

#endif
