/*
 * Numbers for people.
 */
#ifndef SS_REPORT_QUANTITY_H
#define SS_REPORT_QUANTITY_H

#include <stdint.h>

/* A number in words, for the arguments of a print function: ss_quantity_count(n).text */
struct ss_quantity {
	char text[64];
};

/* "49,990" */
struct ss_quantity ss_quantity_count(uint64_t count);

/* "1 thread", "49,990 threads", "2 addresses" */
struct ss_quantity ss_quantity_things(uint64_t count, const char *thing);

/* "0.041 ms", "1.20 ms", "3.40 s" */
struct ss_quantity ss_quantity_time(uint64_t time_ns);

/* "2026-11-21 11:45:06.047", local time. */
struct ss_quantity ss_quantity_date(uint64_t time_ns);

/* "512 bytes", "256 KiB", "1.5 MiB" */
struct ss_quantity ss_quantity_size(uint64_t size);

#endif
