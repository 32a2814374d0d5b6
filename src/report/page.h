/*
 * The page of the format "html", built from page/ by embed.cmake: the parts before and
 * after the data.
 */
#ifndef SS_REPORT_PAGE_H
#define SS_REPORT_PAGE_H

#include <stddef.h>

extern const char ss_page_before[];
extern const size_t ss_page_before_size;
extern const char ss_page_after[];
extern const size_t ss_page_after_size;

#endif
