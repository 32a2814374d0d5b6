/*
 * UTF-8 (RFC 3629).
 */
#ifndef SS_BASE_UTF8_H
#define SS_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the sequence at string, which ends with a NUL byte. Returns its size, 1 to 4 bytes,
   or 0 if it is invalid: also overlong forms, surrogates and numbers above U+10FFFF. */
size_t ss_utf8_decode(const char *string, uint32_t *ret);

/* Writes the sequence of a character, up to U+10FFFF: 1 to 4 bytes. Returns where it ends. */
char *ss_utf8_encode(uint32_t c, char *ret);

#endif
