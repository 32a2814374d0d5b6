#include "report/chains.h"

static struct ss_chain *begin(const struct ss_profile *profile)
{
	struct ss_chain *chains = calloc(profile->threads.count + 1, sizeof(*chains));

	for (size_t i = 0; chains && i < profile->threads.count; i++)
		chains[i] = (struct ss_chain){ .link = SS_NUMBER_NOT,
					       .next = SS_NUMBER_NOT,
					       .circle = SS_NUMBER_NOT,
					       .walk = SS_NUMBER_NOT };
	for (uint32_t i = 0; chains && i < profile->links.count; i++) {
		const struct ss_profile_link *link = &profile->links.items[i];
		if (chains[link->thread].link != SS_NUMBER_NOT)
			continue;
		chains[link->thread].link = i;
		chains[link->thread].next = link->owner;
	}
	return chains;
}

/* A circle, from any of its threads on: its members, if it is a deadlock. */
static void mark_circle(const struct ss_profile *profile, struct ss_chain *chains,
			uint32_t from)
{
	uint32_t first = from;
	uint32_t size = 0;
	uint32_t at = from;

	do {
		if (!profile->links.items[chains[at].link].in_circle)
			return;
		first = SS_MIN(first, at);
		size++;
		at = chains[at].next;
	} while (at != from);
	do {
		chains[at].circle = first;
		chains[at].member = true;
		at = chains[at].next;
	} while (at != from);
	chains[first].size = size;
}

/* Each thread is come to twice by the walk that comes there first, and by each other one
   at its end at most. */
static void walk(const struct ss_profile *profile, struct ss_chain *chains,
		 uint32_t number)
{
	uint32_t at = number;

	while (at != SS_NUMBER_NOT && chains[at].walk == SS_NUMBER_NOT) {
		chains[at].walk = number;
		at = chains[at].next;
	}
	if (at != SS_NUMBER_NOT && chains[at].walk == number)
		mark_circle(profile, chains, at);
	uint32_t circle = at == SS_NUMBER_NOT ? SS_NUMBER_NOT : chains[at].circle;
	if (circle == SS_NUMBER_NOT)
		return;
	for (at = number; chains[at].walk == number && chains[at].circle == SS_NUMBER_NOT;
	     at = chains[at].next) {
		chains[at].circle = circle;
		chains[circle].behind++;
	}
}

struct ss_chain *ss_chains_new(const struct ss_profile *profile)
{
	struct ss_chain *chains = begin(profile);

	for (uint32_t i = 0; chains && i < profile->threads.count; i++) {
		if (chains[i].walk == SS_NUMBER_NOT)
			walk(profile, chains, i);
	}
	return chains;
}
