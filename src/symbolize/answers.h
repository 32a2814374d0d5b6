/*
 * What is known of addresses that were looked up: each is looked up once, however many
 * frames share it.
 */
#ifndef SS_SYMBOLIZE_ANSWERS_H
#define SS_SYMBOLIZE_ANSWERS_H

#include "base/vector.h"
#include "symbolize/lines.h"
#include "stacksnap.h"

/* What is known of one address. The strings are in the snapshot. */
struct ss_answer {
	const struct ss_module *module;
	uint64_t address; /* lookup_offset; without a module that of the process, */
	uint32_t process; /* which is this one */
	const char *symbol;
	uint64_t start;
	bool absolute; /* start is an address of the process */
	struct ss_location line;
	size_t first_inline; /* in the list of inlined calls */
	size_t inline_count;
};

/* Zeroed: empty. */
struct ss_answers {
	SS_VECTOR(struct ss_answer) items; /* in the order in which they came */
	uint32_t *slots;		   /* hash table of an item's number + 1 */
	size_t slot_count;
};

void ss_answers_deinit(struct ss_answers *answers);

/* Adds one for an address that has none. False without memory. */
bool ss_answers_add(struct ss_answers *answers, const struct ss_answer *answer);

/* NULL: there is none. Valid until the next one is added. */
const struct ss_answer *ss_answers_find(const struct ss_answers *answers,
					const struct ss_module *module, uint32_t process,
					uint64_t address);

#endif
