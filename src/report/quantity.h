/*
 * Numbers for people.
 */
#ifndef SS_REPORT_QUANTITY_H
#define SS_REPORT_QUANTITY_H

#include <stdint.h>
#include <stdio.h>

/* "49,990" */
void ss_quantity_write_count(uint64_t count, FILE *out);

/* "1 thread", "49,990 threads", "2 addresses" */
void ss_quantity_write_things(uint64_t count, const char *thing, FILE *out);

/* "0.041 ms", "1.20 ms", "3.40 s" */
void ss_quantity_write_time(uint64_t time_ns, FILE *out);

/* "2026-11-21 11:45:06.047", local time. */
void ss_quantity_write_date(uint64_t time_ns, FILE *out);

/* "512 bytes", "256 KiB", "1.5 MiB" */
void ss_quantity_write_size(uint64_t size, FILE *out);

/* The same two, right-aligned in a column of so many characters. */
void ss_quantity_write_size_column(uint64_t size, int width, FILE *out);
void ss_quantity_write_count_column(uint64_t count, int width, FILE *out);

#endif
