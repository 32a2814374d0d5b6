/*
 * Random mutations of recordings, through every format of a report: usage mutate_report
 * DIRECTORY..., with recordings as in the corpus of fuzz_report. STACKSNAP_TRIES mutations
 * (default: 150), from SEED on. Unlike fuzz_report.c it has no limit of its own on what a recording may
 * contain: none may take longer than ten seconds of processor time.
 *
 * ctest: quick tries=5000
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zstd.h>

#include "fuzz_file.h"
#include "report/format.h"
#include "report/profile_load.h"
#include "data/recording.h"
#include "stacksnap/record.h"

enum {
	TRIES = 150,
	CPU_S_MAX = 10,
	SEEDS_MAX = 64,
	CHUNKS_MAX = 256,
	MUTATIONS_MAX = 4,
	RAW_MAX = 1 << 20, /* of a mutated chunk */
	COPIES_MAX = 1000,
};

/* As in the tool, for a small file. */
static const size_t output_max = (size_t)192 << 20;

/* Uncompressed. */
struct contents {
	uint32_t type;
	uint8_t *bytes;
	size_t size;
};

struct seed {
	struct contents chunks[CHUNKS_MAX];
	size_t count;
};

static uint64_t state;
static uint64_t shown; /* mutations with samples */

/* SplitMix64. */
static uint64_t next_random(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static size_t below(size_t n)
{
	return n ? (size_t)(next_random() % n) : 0;
}

static void *allocate(size_t size)
{
	void *bytes = malloc(size + 1);

	if (!bytes)
		abort();
	return bytes;
}

static struct contents copy_of(const struct contents *from)
{
	struct contents to = { .type = from->type,
			       .bytes = allocate(from->size),
			       .size = from->size };

	memcpy(to.bytes, from->bytes, from->size);
	return to;
}

/* Replaces size bytes at a position by count copies of others. */
static void splice(struct contents *c, size_t at, size_t size, const uint8_t *bytes,
		   size_t length, size_t count)
{
	size_t grown = c->size - size + length * count;

	if (grown > RAW_MAX)
		return;
	uint8_t *made = allocate(grown);
	memcpy(made, c->bytes, at);
	for (size_t i = 0; i < count; i++)
		memcpy(made + at + i * length, bytes, length);
	memcpy(made + at + length * count, c->bytes + at + size, c->size - at - size);
	free(c->bytes);
	c->bytes = made;
	c->size = grown;
}

static void insert_number(struct contents *c)
{
	uint8_t bytes[10];
	size_t size = 1 + below(sizeof(bytes));

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(next_random() | (i + 1 < size ? 0x80 : 0));
	bytes[size - 1] &= 0x7f;
	splice(c, below(c->size), below(2) && c->size ? 1 : 0, bytes, size, 1);
}

/* Repeats a part, which costs nothing in a compressed file. */
static void repeat(struct contents *c)
{
	size_t at = below(c->size);
	size_t size = 1 + below(SS_MIN(c->size - at, (size_t)64) - (c->size > at));
	uint8_t part[64];

	if (c->size == 0)
		return;
	memcpy(part, c->bytes + at, size);
	splice(c, at, 0, part, size, below(COPIES_MAX));
}

static void mutate_contents(struct contents *c)
{
	size_t at = below(c->size);

	if (c->size == 0)
		return;
	switch (below(6)) {
	case 0:
		c->bytes[at] ^= (uint8_t)(1U << below(8));
		break;
	case 1:
		c->bytes[at] = (uint8_t)next_random();
		break;
	case 2:
		insert_number(c);
		break;
	case 3:
		splice(c, at, below(SS_MIN(c->size - at, (size_t)32)), NULL, 0, 0);
		break;
	case 4:
		repeat(c);
		break;
	default:
		c->bytes[at] = (uint8_t)(c->bytes[at] + (below(2) ? 1 : 255));
		break;
	}
}

static void mutate_order(struct seed *seed)
{
	size_t from = below(seed->count);
	size_t to = below(seed->count);
	size_t copies = below(32);

	if (below(2)) {
		struct contents swapped = seed->chunks[from];
		seed->chunks[from] = seed->chunks[to];
		seed->chunks[to] = swapped;
		return;
	}
	for (size_t i = 0; i < copies && seed->count < CHUNKS_MAX; i++)
		seed->chunks[seed->count++] = copy_of(&seed->chunks[from]);
}

/* Decompresses the chunks of a file without its header. */
static void read_seed(const uint8_t *bytes, size_t size, struct seed *ret)
{
	size_t at = 0;

	while (size - at >= SS_CHUNK_HEADER_SIZE && ret->count < CHUNKS_MAX) {
		const uint8_t *head = bytes + at;
		size_t stored = ss_decode_fixed(head + 8, 4);
		size_t raw = ss_decode_fixed(head + 12, 4);
		if (stored > size - at - SS_CHUNK_HEADER_SIZE || raw > RAW_MAX)
			return;
		struct contents c = { .type = (uint32_t)ss_decode_fixed(head, 4),
				      .bytes = allocate(raw),
				      .size = raw };
		const uint8_t *data = head + SS_CHUNK_HEADER_SIZE;
		if (ss_decode_fixed(head + 4, 4) == SS_COMPRESSION_NONE)
			memcpy(c.bytes, data, SS_MIN(stored, raw));
		else
			c.size = ZSTD_decompress(c.bytes, raw, data, stored);
		if (ZSTD_isError(c.size))
			abort();
		ret->chunks[ret->count++] = c;
		at += SS_CHUNK_HEADER_SIZE + stored;
	}
}

static void seed_clear(struct seed *seed)
{
	for (size_t i = 0; i < seed->count; i++)
		free(seed->chunks[i].bytes);
	seed->count = 0;
}

static void write_all(int fd, const void *bytes, size_t size)
{
	if (write(fd, bytes, size) != (ssize_t)size)
		abort();
}

static struct ss_recording *open_mutated(const struct seed *seed)
{
	static const uint8_t file_header[] = SS_FORMAT_MAGIC "\2\0\0\0\4\3\2\1";
	struct ss_recording *recording = NULL;
	int fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	write_all(fd, file_header, SS_FILE_HEADER_SIZE);
	for (size_t i = 0; i < seed->count; i++) {
		const struct contents *c = &seed->chunks[i];
		size_t size = SS_CHUNK_HEADER_SIZE + ZSTD_compressBound(c->size);
		uint8_t *bytes = allocate(size);
		size_t packed = ZSTD_compress(bytes + SS_CHUNK_HEADER_SIZE,
					      size - SS_CHUNK_HEADER_SIZE, c->bytes,
					      c->size, 1);
		bool plain = packed >= c->size;
		if (plain) {
			memcpy(bytes + SS_CHUNK_HEADER_SIZE, c->bytes, c->size);
			packed = c->size;
		}
		ss_encode_fixed(bytes, c->type, 4);
		ss_encode_fixed(bytes + 4,
				plain ? SS_COMPRESSION_NONE : SS_COMPRESSION_ZSTD, 4);
		ss_encode_fixed(bytes + 8, packed, 4);
		ss_encode_fixed(bytes + 12, c->size, 4);
		uint64_t sum = XXH3_64bits_withSeed(bytes + SS_CHUNK_HEADER_SIZE, packed,
						    XXH3_64bits(bytes, SS_CHUNK_CHECKED));
		ss_encode_fixed(bytes + SS_CHUNK_CHECKED, sum, 8);
		write_all(fd, bytes, SS_CHUNK_HEADER_SIZE + packed);
		free(bytes);
	}
	ss_error_free(ss_recording_open_fd(fd, &recording));
	return recording;
}

/* Accepts as much as the tool does. */
static ssize_t take_output(void *data, const char *bytes, size_t size)
{
	size_t *left = data;

	(void)fuzz_touch(bytes, size);
	if (size > *left)
		return 0;
	*left -= size;
	return (ssize_t)size;
}

static void report(struct ss_recording *recording, bool raw)
{
	const struct ss_load_options options = { .size = sizeof(options), .raw = raw };
	struct ss_profile *profile = ss_profile_new();

	if (!profile)
		abort();
	profile->start_ns = ss_recording_info(recording)->begin_ns;
	ss_error_free(ss_load_recording(profile, recording, "file", &options));
	shown += profile->samples > 0;
	for (size_t i = 0; ss_format_at(SS_FORMAT_PROFILE, i) && profile->samples; i++) {
		const struct ss_format *format = ss_format_at(SS_FORMAT_PROFILE, i);
		const struct ss_format_options how = {
			.size = sizeof(how), .threshold = 1, .rows = 20, .verbose = raw
		};
		size_t left = output_max;
		FILE *out = fopencookie(&left, "w",
					(cookie_io_functions_t){ .write = take_output });
		if (!out)
			abort();
		ss_error_free(format->write_profile(profile, &how, out));
		(void)fclose(out); /* fails if there was too much */
	}
	ss_profile_free(profile);
}

static double cpu_s(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool try_one(const struct seed *original, uint64_t number)
{
	struct seed seed = { .count = original->count };
	size_t mutations = 1 + below(MUTATIONS_MAX);
	double begin = cpu_s();

	for (size_t i = 0; i < original->count; i++)
		seed.chunks[i] = copy_of(&original->chunks[i]);
	for (size_t i = 0; i < mutations; i++) {
		if (below(8) == 0)
			mutate_order(&seed);
		else
			mutate_contents(&seed.chunks[below(seed.count)]);
	}
	struct ss_recording *recording = open_mutated(&seed);
	if (recording)
		report(recording, number % 2);
	ss_recording_close(recording);
	seed_clear(&seed);
	double took = cpu_s() - begin;
	if (took > (double)CPU_S_MAX)
		(void)fprintf(stderr, "SEED=%" PRIu64 " STACKSNAP_TRIES=1 takes %.1f s\n",
			      number, took);
	return took <= (double)CPU_S_MAX;
}

static size_t read_seeds(const char *path, struct seed *ret, size_t count)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory)) && count < SEEDS_MAX) {
		static uint8_t bytes[FUZZ_FILE_MAX];
		char name[4096];
		(void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		FILE *file = entry->d_name[0] == '.' ? NULL : fopen(name, "rb");
		if (!file)
			continue;
		read_seed(bytes, fread(bytes, 1, sizeof(bytes), file), &ret[count]);
		count += ret[count].count > 0;
		(void)fclose(file); /* was read */
	}
	if (directory)
		(void)closedir(directory);
	return count;
}

static uint64_t number_in(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	static struct seed seeds[SEEDS_MAX];
	size_t count = 0;
	uint64_t first = number_in("SEED", 1);
	uint64_t tries = number_in("STACKSNAP_TRIES", TRIES);
	uint64_t slow = 0;

	for (int i = 1; i < argc; i++)
		count = read_seeds(argv[i], seeds, count);
	if (count == 0) {
		(void)fprintf(stderr, "no recordings\n");
		return 2;
	}
	for (uint64_t i = first; i < first + tries; i++) {
		state = i;
		slow += !try_one(&seeds[i % count], i);
	}
	for (size_t i = 0; i < count; i++)
		seed_clear(&seeds[i]);
	(void)printf("%" PRIu64 " mutations of %zu recordings, %" PRIu64
		     " with samples, %" PRIu64 " slow\n",
		     tries, count, shown, slow);
	return slow || (tries > 100 && shown < tries / 8) ? 1 : 0;
}
