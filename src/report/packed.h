/*
 * A stream that packs what is written to it with gzip (RFC 1952), and if wanted writes
 * that as base64 (RFC 4648), to another stream.
 */
#ifndef SS_REPORT_PACKED_H
#define SS_REPORT_PACKED_H

#include <stdbool.h>
#include <stdio.h>

/* Close it with fclose(), before out. NULL without memory. That out cannot be written
   shows in ferror(out). */
FILE *ss_packed_open(FILE *out, bool base64);

#endif
