/* The frames, locks and tasks of runtimes, and their plans, of a whole process: see fuzz_process.h. */
#include "fuzz_process.h"

/* A seed in which nothing is found any more has to be made again. */
static void check_seed(const struct fuzz_process *process, const struct ss_buffer *text)
{
	const char *bytes = text->bytes ? text->bytes : "";

	if (process->flags & FUZZ_SEED)
		FUZZ_REQUIRE(strstr(bytes, "\n1 ") || strstr(bytes, "\n2 ") ||
			     strstr(bytes, "\n3 "));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_process *process = fuzz_process_new(data, size);
	_cleanup_buffer_ struct ss_buffer text = {};

#ifdef FUZZ_REPLAY
	fuzz_process_decode(process, &text);
	ss_buffer_add(&text, "", 1);
	check_seed(process, &text);
#else
	(void)check_seed;
	fuzz_process_decode(process, NULL);
#endif
	fuzz_process_free(process);
	return 0;
}
