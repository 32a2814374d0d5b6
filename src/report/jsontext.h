/*
 * Texts in JSON that is written piece by piece.
 */
#ifndef SS_REPORT_JSONTEXT_H
#define SS_REPORT_JSONTEXT_H

#include <stdint.h>
#include <stdio.h>

/* A string in quotes, in ASCII whatever is in it: bytes that are not UTF-8 become the
   four characters \xNN. NULL becomes null. */
void ss_json_write_text(const char *text, FILE *out);

/* The same with a key before it: "key":"text" */
void ss_json_write_member(const char *key, const char *text, FILE *out);

#endif
