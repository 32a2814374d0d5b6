/*
 * A stream that compresses with gzip (RFC 1952), optionally encodes the result as base64
 * (RFC 4648), and writes it to another stream.
 */
#ifndef SS_OUTPUT_GZIP_H
#define SS_OUTPUT_GZIP_H

#include <stdbool.h>
#include <stdio.h>

/* Close the stream with fclose(), before out. Returns NULL without memory. Write errors of
   out are left in ferror(out). */
FILE *ss_gzip_open(FILE *out, bool base64);

#endif
