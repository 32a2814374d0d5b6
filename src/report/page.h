/*
 * The page of the html format, made of page/ when the program is built: what stands
 * before the data, and what stands after it.
 */
#ifndef SS_REPORT_PAGE_H
#define SS_REPORT_PAGE_H

#include <stddef.h>

extern const char ss_page_before[];
extern const size_t ss_page_before_size;
extern const char ss_page_after[];
extern const size_t ss_page_after_size;

#endif
