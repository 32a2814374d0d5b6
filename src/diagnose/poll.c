#include "diagnose/poll.h"

#include <poll.h>
#include <string.h>

#include "diagnose/descriptor.h"

enum { NEAR = 8 }; /* limit of entries searched for the same descriptor */

/* The entry of a descriptor: usually a new one, but some programs list a descriptor
   twice. */
static struct ss_watched_fd *get_entry(struct ss_watched_fd *fds, size_t *count, int fd)
{
	for (size_t i = *count; i > 0 && *count - i < NEAR; i--) {
		if (fds[i - 1].fd == fd)
			return &fds[i - 1];
	}
	fds[*count].fd = fd;
	return &fds[(*count)++];
}

static size_t read_poll(const struct ss_memory_fact *memory, struct ss_watched_fd *fds)
{
	size_t count = 0;

	for (size_t at = 0; at + sizeof(struct pollfd) <= memory->size;
	     at += sizeof(struct pollfd)) {
		struct pollfd from;
		memcpy(&from, memory->bytes + at, sizeof(from));
		if (from.fd < 0)
			continue;
		struct ss_watched_fd *entry = get_entry(fds, &count, from.fd);
		entry->input |=
			(from.events & (POLLIN | POLLPRI | POLLRDNORM | POLLRDHUP)) != 0;
		entry->output |= (from.events & (POLLOUT | POLLWRNORM)) != 0;
	}
	return count;
}

static void set_fds(struct ss_diagnosis *d, struct ss_watched_fd *fds, size_t count)
{
	struct ss_wait *wait = d->wait;

	for (size_t i = 0; d->facts->still_in_call && i < count; i++)
		fds[i].what = ss_descriptor_find(d->snapshot, fds[i].fd);
	wait->fds = fds;
	wait->fd_count = count;
	if (count == 1 && !wait->fds_incomplete)
		ss_descriptor_fill(d, fds[0].fd);
}

void ss_poll_fill(struct ss_diagnosis *d)
{
	const struct ss_memory_fact *memory = &d->facts->memory[0];
	uint64_t total = d->facts->call.args[1] & UINT32_MAX;
	size_t count = memory->size / sizeof(struct pollfd);
	struct ss_watched_fd *fds = ss_diagnosis_alloc(d, count, sizeof(*fds));

	d->wait->fds_incomplete = count < total;
	if (fds)
		set_fds(d, fds, read_poll(memory, fds));
}

static bool has_bit(const struct ss_memory_fact *memory, size_t bit)
{
	return bit / 8 < memory->size && (memory->bytes[bit / 8] >> (bit % 8) & 1);
}

static bool is_selected(const struct ss_memory_fact *memory, size_t bit)
{
	return has_bit(&memory[1], bit) || has_bit(&memory[2], bit) ||
	       has_bit(&memory[3], bit);
}

void ss_poll_fill_select(struct ss_diagnosis *d)
{
	const struct ss_memory_fact *memory = d->facts->memory;
	size_t bits = 0;
	size_t count = 0;

	for (int arg = 1; arg <= 3; arg++)
		bits = SS_MAX(bits, memory[arg].size * 8);
	bits = SS_MIN(bits, (size_t)(d->facts->call.args[0] & INT32_MAX));
	for (size_t bit = 0; bit < bits; bit++)
		count += is_selected(memory, bit);
	struct ss_watched_fd *fds = ss_diagnosis_alloc(d, count, sizeof(*fds));
	if (!fds)
		return;
	for (size_t bit = 0, i = 0; bit < bits; bit++) {
		if (is_selected(memory, bit))
			fds[i++] = (struct ss_watched_fd){
				.fd = (int)bit,
				.input = has_bit(&memory[1], bit),
				.output = has_bit(&memory[2], bit),
			};
	}
	set_fds(d, fds, count);
}
