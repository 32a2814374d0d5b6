#include "process/limited_memory.h"

#include "base/cleanup.h"

static size_t read_process(const struct ss_memory *memory, uint64_t address, void *bytes,
			   size_t size)
{
	const struct ss_limited_memory *self = (const struct ss_limited_memory *)memory;
	struct ss_memory_budget *budget = self->budget;
	struct ss_piece piece = {
		.address = address,
		.bytes = bytes,
		.size = SS_MIN(size, budget->bytes),
	};

	if (piece.size == 0 || budget->calls == 0)
		return 0;
	budget->calls--;
	ss_process_memory_read(self->process, &piece, 1);
	budget->bytes -= piece.done;
	return piece.done;
}

void ss_limited_memory_init(struct ss_limited_memory *memory,
			    const struct ss_process_memory *process,
			    struct ss_memory_budget *budget)
{
	*memory = (struct ss_limited_memory){
		.memory.read = read_process,
		.process = process,
		.budget = budget,
	};
}
