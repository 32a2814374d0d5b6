#include "diagnose/sets.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "diagnose/descriptor.h"
#include "diagnose/duration.h"

enum { SHOWN = 8 };

/* A descriptor of a set, and what it is watched for. */
struct item {
	int fd;
	bool in;
	bool out;
};

struct set {
	struct item *items;
	size_t count;
	bool cut; /* there are more than could be read */
};

static const char *purpose(const struct item *item)
{
	if (item->in && item->out)
		return "input from or room to write to";
	if (item->in)
		return "input from";
	return item->out ? "room to write to" : "an error of";
}

/* What all of them together are for. */
static const char *common_purpose(const struct set *set)
{
	struct item all = {};

	for (size_t i = 0; i < set->count; i++) {
		all.in |= set->items[i].in;
		all.out |= set->items[i].out;
	}
	return purpose(&all);
}

static void write_item(struct ss_diagnosis *d, const struct item *item, bool last)
{
	const struct ss_facts *facts = d->snapshot->facts;
	const struct ss_fd_fact *fd = ss_facts_find_fd(facts, item->fd);
	_cleanup_words_ struct ss_words words = {};

	if (fd && d->facts->stayed)
		ss_descriptor_write(facts, fd, &words);
	ss_words_add(&d->text, "%d", item->fd);
	if (words.size)
		ss_words_add(&d->text, " (%s)", words.bytes);
	ss_words_add(&d->text, "%s", last ? "" : ", ");
}

static void write_items(struct ss_diagnosis *d, const struct set *set)
{
	size_t shown = SS_MIN(set->count, (size_t)SHOWN);

	for (size_t i = 0; i < shown; i++)
		write_item(d, &set->items[i], i + 1 == shown);
	if (shown < set->count || set->cut)
		ss_words_add(&d->text, " and %zu more%s", set->count - shown,
			     set->cut ? " at least" : "");
}

/* "input from fd 5, ...", "input from any of 3 fds: 5 (...), ..." */
static void write_set(struct ss_diagnosis *d, const struct set *set)
{
	if (set->count == 0) {
		ss_words_add(&d->text, d->wait->timeout_ns >= 0 ?
					       "time to pass" :
					       "a signal (no fd is asked for)");
	} else if (set->count == 1 && !set->cut) {
		ss_words_add(&d->text, "%s ", purpose(&set->items[0]));
		ss_descriptor_describe(d, set->items[0].fd);
	} else {
		ss_words_add(&d->text, "%s any of %zu%s fds: ", common_purpose(set),
			     set->count, set->cut ? " or more" : "");
		write_items(d, set);
	}
	ss_duration_write_limit(d);
}

/* The item of a descriptor; mostly a new one, but some programs name one twice. */
static struct item *get_item(struct set *set, int fd)
{
	for (size_t i = set->count; i > 0 && set->count - i < SHOWN; i--) {
		if (set->items[i - 1].fd == fd)
			return &set->items[i - 1];
	}
	set->items[set->count] = (struct item){ .fd = fd };
	return &set->items[set->count++];
}

static void add_poll(struct set *set, const struct ss_memory_fact *memory)
{
	for (size_t at = 0; at + sizeof(struct pollfd) <= memory->size;
	     at += sizeof(struct pollfd)) {
		struct pollfd from;
		memcpy(&from, memory->bytes + at, sizeof(from));
		if (from.fd < 0)
			continue;
		struct item *item = get_item(set, from.fd);
		item->in |= (from.events & (POLLIN | POLLPRI | POLLRDNORM | POLLRDHUP)) !=
			    0;
		item->out |= (from.events & (POLLOUT | POLLWRNORM)) != 0;
	}
}

void ss_sets_describe_poll(struct ss_diagnosis *d)
{
	const struct ss_memory_fact *memory = &d->facts->memory[0];
	uint64_t wanted = d->facts->call.args[1] & UINT32_MAX;
	size_t count = memory->size / sizeof(struct pollfd);
	_cleanup_free_ struct item *items = calloc(count + 1, sizeof(*items));
	struct set set = { .items = items, .cut = count < wanted };

	if (!items) {
		d->text.failed = true;
		return;
	}
	if (wanted && count == 0) {
		ss_words_add(&d->text, "%u fds, which could not be read",
			     (unsigned)wanted);
		ss_duration_write_limit(d);
		return;
	}
	add_poll(&set, memory);
	write_set(d, &set);
}

static bool has_bit(const struct ss_memory_fact *memory, size_t bit)
{
	return bit / 8 < memory->size && (memory->bytes[bit / 8] >> (bit % 8) & 1);
}

void ss_sets_describe_select(struct ss_diagnosis *d)
{
	const struct ss_memory_fact *memory = d->facts->memory;
	size_t bits = 0;

	for (int arg = 1; arg <= 3; arg++)
		bits = SS_MAX(bits, memory[arg].size * 8);
	bits = SS_MIN(bits, (size_t)(d->facts->call.args[0] & INT32_MAX));
	_cleanup_free_ struct item *items = calloc(bits + 1, sizeof(*items));
	struct set set = { .items = items };

	if (!items) {
		d->text.failed = true;
		return;
	}
	for (size_t bit = 0; bit < bits; bit++) {
		struct item item = { .fd = (int)bit,
				     .in = has_bit(&memory[1], bit),
				     .out = has_bit(&memory[2], bit) };
		if (item.in || item.out || has_bit(&memory[3], bit))
			items[set.count++] = item;
	}
	write_set(d, &set);
}

static void write_watches(struct ss_diagnosis *d, const struct ss_fd_fact *fd)
{
	_cleanup_free_ struct item *items = calloc(fd->watch_count + 1, sizeof(*items));
	struct set set = { .items = items,
			   .count = fd->watch_count,
			   .cut = fd->watches_cut };

	if (!items) {
		d->text.failed = true;
		return;
	}
	for (size_t i = 0; i < fd->watch_count; i++)
		items[i].fd = fd->watches[i].fd;
	ss_words_add(&d->text, ", which watches %zu%s: ", set.count,
		     set.cut ? " or more" : "");
	write_items(d, &set);
}

void ss_sets_describe_epoll(struct ss_diagnosis *d)
{
	int number = (int)(uint32_t)d->facts->call.args[0];
	const struct ss_fd_fact *fd = ss_facts_find_fd(d->snapshot->facts, number);

	d->wait->fd = number;
	ss_words_add(&d->text, "an event of epoll fd %d", number);
	if (fd && fd->kind == SS_FD_EPOLL && d->facts->stayed) {
		_cleanup_words_ struct ss_words words = {};
		ss_descriptor_write(d->snapshot->facts, fd, &words);
		d->wait->object = ss_diagnosis_keep(d, words.bytes);
		if (fd->watch_count)
			write_watches(d, fd);
		else
			ss_words_add(&d->text, ", which watches nothing");
	}
	ss_duration_write_limit(d);
}
