#include "symbolize/answers.h"

#include <stdlib.h>

void ss_answers_deinit(struct ss_answers *answers)
{
	free(answers->slots);
	ss_vector_free(&answers->items);
}

static size_t slot_of(const struct ss_module *module, uint32_t process, uint64_t address)
{
	uint64_t hash = (address ^ (uintptr_t)module >> 4 ^ process) * 0x9e3779b97f4a7c15;

	return (size_t)(hash >> 20);
}

/* The slot of an address, or the free one where it belongs. */
static uint32_t *find_slot(const struct ss_answers *answers,
			   const struct ss_module *module, uint32_t process,
			   uint64_t address)
{
	size_t mask = answers->slot_count - 1;
	size_t i = slot_of(module, process, address) & mask;

	for (; answers->slots[i]; i = (i + 1) & mask) {
		const struct ss_answer *answer =
			&answers->items.items[answers->slots[i] - 1];
		if (answer->address == address && answer->module == module &&
		    answer->process == process)
			break;
	}
	return &answers->slots[i];
}

static void enter(struct ss_answers *answers, size_t number)
{
	const struct ss_answer *answer = &answers->items.items[number];

	*find_slot(answers, answer->module, answer->process, answer->address) =
		(uint32_t)number + 1;
}

static bool grow_slots(struct ss_answers *answers)
{
	if (answers->items.count * 2 < answers->slot_count)
		return true;
	size_t count = SS_MAX(answers->slot_count * 2, (size_t)256);
	uint32_t *slots = calloc(count, sizeof(*slots));
	if (!slots)
		return false;
	free(answers->slots);
	answers->slots = slots;
	answers->slot_count = count;
	for (size_t i = 0; i < answers->items.count; i++)
		enter(answers, i);
	return true;
}

bool ss_answers_add(struct ss_answers *answers, const struct ss_answer *answer)
{
	struct ss_answer *kept = grow_slots(answers) ? ss_vector_push(&answers->items) :
						       NULL;

	if (!kept)
		return false;
	*kept = *answer;
	enter(answers, answers->items.count - 1);
	return true;
}

const struct ss_answer *ss_answers_find(const struct ss_answers *answers,
					const struct ss_module *module, uint32_t process,
					uint64_t address)
{
	if (answers->slot_count == 0)
		return NULL;
	uint32_t slot = *find_slot(answers, module, process, address);
	return slot ? &answers->items.items[slot - 1] : NULL;
}
