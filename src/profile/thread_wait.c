#include "profile/thread_wait.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8 };

/* The first of two passes only counts: bytes is NULL. */
struct block {
	struct ss_profile *profile;
	char *bytes;
	size_t size;
	bool failed;
};

/* Room for an array, or NULL. */
static void *take(struct block *block, size_t size)
{
	size_t at = block->size;

	block->size += (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	return block->bytes && size ? block->bytes + at : NULL;
}

static void copy_text(struct block *block, const char **text)
{
	if (!block->bytes || !*text)
		return;
	*text = ss_profile_text(block->profile, *text);
	block->failed |= !*text;
}

static const struct ss_related_process *
copy_processes(struct block *block, const struct ss_related_process *from, size_t count)
{
	struct ss_related_process *to = take(block, count * sizeof(*to));

	for (size_t i = 0; to && i < count; i++) {
		to[i] = from[i];
		copy_text(block, &to[i].name);
	}
	return to;
}

static const struct ss_watched_fd *
copy_watched(struct block *block, const struct ss_watched_fd *from, size_t count);

static const struct ss_descriptor *copy_descriptor(struct block *block,
						   const struct ss_descriptor *from)
{
	if (!from)
		return NULL;
	struct ss_descriptor *to = take(block, sizeof(*to));
	struct ss_descriptor copy = *from;
	copy_text(block, &copy.name);
	copy_text(block, &copy.protocol);
	copy_text(block, &copy.path);
	copy_text(block, &copy.peer_path);
	copy.peers = copy_processes(block, from->peers, from->peer_count);
	copy.watches = copy_watched(block, from->watches, from->watch_count);
	if (to)
		*to = copy;
	return to;
}

/* A watched descriptor has no watched ones itself. */
static const struct ss_watched_fd *
copy_watched(struct block *block, const struct ss_watched_fd *from, size_t count)
{
	struct ss_watched_fd *to = take(block, count * sizeof(*to));

	for (size_t i = 0; i < count; i++) {
		const struct ss_descriptor *what = copy_descriptor(block, from[i].what);
		if (to) {
			to[i] = from[i];
			to[i].what = what;
		}
	}
	return to;
}

static void copy(struct block *block, const struct ss_wait *from)
{
	struct ss_wait *to = take(block, sizeof(*to));
	struct ss_wait wait = *from;

	copy_text(block, &wait.syscall);
	copy_text(block, &wait.function);
	copy_text(block, &wait.symbol);
	copy_text(block, &wait.owner_name);
	copy_text(block, &wait.owner_process);
	copy_text(block, &wait.path);
	copy_text(block, &wait.purpose_function);
	copy_text(block, &wait.purpose_words);
	wait.owner_frame_count = 0;
	wait.chain = NULL;
	wait.chain_length = 0;
	wait.descriptor = copy_descriptor(block, from->descriptor);
	wait.fds = copy_watched(block, from->fds, from->fd_count);
	wait.children = copy_processes(block, from->children, from->child_count);
	if (to)
		*to = wait;
}

struct ss_wait *ss_thread_wait_copy(struct ss_profile *profile,
				    const struct ss_wait *wait, size_t *bytes)
{
	struct block block = { .profile = profile };

	copy(&block, wait);
	block.bytes = malloc(block.size);
	block.size = 0;
	if (!block.bytes)
		return NULL;
	copy(&block, wait);
	if (bytes)
		*bytes += block.size;
	if (!block.failed)
		return (struct ss_wait *)(void *)block.bytes; /* it begins with it */
	free(block.bytes);
	return NULL;
}
