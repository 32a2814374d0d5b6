/* The frames, locks and tasks of runtimes, and their plans, of a whole process: see fuzz_process.h. */
#include "fuzz_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_process *process = fuzz_process_new(data, size);

	fuzz_process_decode(process, NULL);
	fuzz_process_free(process);
	return 0;
}
