#include <malloc.h>

#include "cli/dispatch.h"
#include "cli/file_limit.h"
#include "cli/streams.h"

/* Each capture has a thread of its own, and releases what it has allocated. Without this, each
   would map a heap, and the kernel would clear the same pages again. */
static void configure_heap(void)
{
	(void)mallopt(M_ARENA_MAX, 1); /* best effort */
	(void)mallopt(M_TRIM_THRESHOLD, 4 << 20);
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

int main(int argc, char **argv)
{
	configure_heap();
	ss_streams_prepare();
	ss_file_limit_raise();
	return ss_dispatch(argc, argv);
}
