#include "core/core_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/io.h"
#include "base/search.h"
#include "base/vector.h"

/* Input of zlib is const. */
#define ZLIB_CONST
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#ifdef SS_HAVE_LZ4
#include <lz4frame.h>
#endif

/*
 * A compressed file as a stream of bytes: zstd, xz, lz4 (its frame format) and gzip, also
 * several of them one after the other. The file is untrusted: what it decompresses to can
 * be endless, so the caller decides when to stop.
 */

enum {
	INPUT_SIZE = 128 << 10,
	MAGIC_SIZE = 6,
	GZIP_WINDOW = 15 + 16, /* see inflateInit2(): gzip only */
};

/* xz -9 needs 65 MiB. zstd refuses by itself what needs more than 128 MiB. */
#define XZ_MEMORY_MAX ((uint64_t)256 << 20)

/* Progress of one call: whether the stream can go on. */
enum step { STEP_MORE, STEP_END };

struct decompressor;

struct input {
	const uint8_t *bytes;
	size_t size;
};

struct output {
	uint8_t *bytes;
	size_t size;
};

struct method {
	const char *name;
	uint8_t magic[MAGIC_SIZE];
	size_t magic_size;
	bool (*begin)(struct decompressor *d);
	/* Consumes input and fills output, and moves both on. */
	enum step (*step)(struct decompressor *d, struct input *in, struct output *out);
	void (*end)(struct decompressor *d);
};

struct decompressor {
	int fd;
	const struct method *method;
	uint64_t offset; /* of the next input in the file */
	struct input input;
	bool last; /* there is no more input in the file */
	bool ended;
	ZSTD_DStream *zstd;
	lzma_stream xz;
	z_stream gzip;
#ifdef SS_HAVE_LZ4
	LZ4F_dctx *lz4;
#endif
	uint8_t buffer[INPUT_SIZE];
};

/* zstd --------------------------------------------------------------------- */

static bool zstd_begin(struct decompressor *d)
{
	d->zstd = ZSTD_createDStream();
	return d->zstd != NULL;
}

static enum step zstd_step(struct decompressor *d, struct input *in, struct output *out)
{
	ZSTD_inBuffer from = { in->bytes, in->size, 0 };
	ZSTD_outBuffer to = { out->bytes, out->size, 0 };
	size_t result = ZSTD_decompressStream(d->zstd, &to, &from);

	in->bytes += from.pos;
	in->size -= from.pos;
	out->bytes += to.pos;
	out->size -= to.pos;
	return ZSTD_isError(result) ? STEP_END : STEP_MORE;
}

static void zstd_end(struct decompressor *d)
{
	(void)ZSTD_freeDStream(d->zstd);
	d->zstd = NULL;
}

/* xz ----------------------------------------------------------------------- */

static bool xz_begin(struct decompressor *d)
{
	d->xz = (lzma_stream)LZMA_STREAM_INIT;
	return lzma_stream_decoder(&d->xz, XZ_MEMORY_MAX, LZMA_CONCATENATED) == LZMA_OK;
}

static enum step xz_step(struct decompressor *d, struct input *in, struct output *out)
{
	d->xz.next_in = in->bytes;
	d->xz.avail_in = in->size;
	d->xz.next_out = out->bytes;
	d->xz.avail_out = out->size;
	lzma_ret result = lzma_code(&d->xz, d->last ? LZMA_FINISH : LZMA_RUN);
	in->bytes = d->xz.next_in;
	in->size = d->xz.avail_in;
	out->bytes = d->xz.next_out;
	out->size = d->xz.avail_out;
	return result == LZMA_OK ? STEP_MORE : STEP_END;
}

static void xz_end(struct decompressor *d)
{
	lzma_end(&d->xz);
}

/* gzip --------------------------------------------------------------------- */

static bool gzip_begin(struct decompressor *d)
{
	memset(&d->gzip, 0, sizeof(d->gzip));
	return inflateInit2(&d->gzip, GZIP_WINDOW) == Z_OK;
}

static enum step gzip_step(struct decompressor *d, struct input *in, struct output *out)
{
	d->gzip.next_in = in->bytes;
	d->gzip.avail_in = (uInt)in->size;
	d->gzip.next_out = out->bytes;
	d->gzip.avail_out = (uInt)SS_MIN(out->size, (size_t)INPUT_SIZE);
	uInt room = d->gzip.avail_out;
	int result = inflate(&d->gzip, Z_NO_FLUSH);
	in->bytes = d->gzip.next_in;
	in->size = d->gzip.avail_in;
	out->bytes = d->gzip.next_out;
	out->size -= room - d->gzip.avail_out;
	if (result == Z_STREAM_END) /* another one may follow */
		result = inflateReset(&d->gzip);
	return result == Z_OK || result == Z_BUF_ERROR ? STEP_MORE : STEP_END;
}

static void gzip_end(struct decompressor *d)
{
	(void)inflateEnd(&d->gzip);
}

/* lz4 ---------------------------------------------------------------------- */

#ifdef SS_HAVE_LZ4
static bool lz4_begin(struct decompressor *d)
{
	return !LZ4F_isError(LZ4F_createDecompressionContext(&d->lz4, LZ4F_VERSION));
}

static enum step lz4_step(struct decompressor *d, struct input *in, struct output *out)
{
	size_t used = in->size;
	size_t made = out->size;
	size_t result =
		LZ4F_decompress(d->lz4, out->bytes, &made, in->bytes, &used, NULL);

	if (LZ4F_isError(result))
		return STEP_END;
	in->bytes += used;
	in->size -= used;
	out->bytes += made;
	out->size -= made;
	return STEP_MORE;
}

static void lz4_end(struct decompressor *d)
{
	(void)LZ4F_freeDecompressionContext(d->lz4);
	d->lz4 = NULL;
}
#else
#define lz4_begin NULL
#define lz4_step NULL
#define lz4_end NULL
#endif

/* The stream --------------------------------------------------------------- */

static const struct method methods[] = {
	{ "zstd", { 0x28, 0xb5, 0x2f, 0xfd }, 4, zstd_begin, zstd_step, zstd_end },
	{ "lz4", { 0x04, 0x22, 0x4d, 0x18 }, 4, lz4_begin, lz4_step, lz4_end },
	{ "xz", { 0xfd, '7', 'z', 'X', 'Z', 0 }, 6, xz_begin, xz_step, xz_end },
	{ "gzip", { 0x1f, 0x8b }, 2, gzip_begin, gzip_step, gzip_end },
};

static const struct method *find_method(int fd)
{
	uint8_t magic[MAGIC_SIZE];
	ssize_t size = ss_io_pread(fd, magic, sizeof(magic), 0);

	for (size_t i = 0; i < SS_ARRAY_SIZE(methods); i++) {
		if (size >= (ssize_t)methods[i].magic_size &&
		    memcmp(magic, methods[i].magic, methods[i].magic_size) == 0)
			return &methods[i];
	}
	return NULL;
}

static void decompressor_free(struct decompressor *d)
{
	if (d)
		d->method->end(d);
	free(d);
}

/* *ret is NULL if the bytes of fd are not compressed. fd stays the caller's and must live as
   long. Errors: UNSUPPORTED (built without that format), NO_MEMORY. */
static struct ss_error *decompressor_new(int fd, struct decompressor **ret)
{
	const struct method *method = find_method(fd);

	*ret = NULL;
	if (!method)
		return NULL;
	if (!method->begin)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_UNSUPPORTED,
				     "it is compressed with %s, which this build of "
				     "stacksnap cannot read",
				     method->name),
			"decompress it first");
	struct decompressor *d = calloc(1, sizeof(*d));
	if (!d)
		return ss_error_no_memory();
	d->fd = fd;
	d->method = method;
	if (!method->begin(d)) {
		decompressor_free(d);
		return ss_error_no_memory();
	}
	*ret = d;
	return NULL;
}

/* Begins again. False without memory. */
static bool decompressor_rewind(struct decompressor *d)
{
	d->method->end(d);
	d->offset = 0;
	d->input = (struct input){};
	d->last = d->ended = false;
	return d->method->begin(d);
}

static void read_input(struct decompressor *d)
{
	ssize_t size = ss_io_pread(d->fd, d->buffer, sizeof(d->buffer), d->offset);

	d->last = size < (ssize_t)sizeof(d->buffer);
	d->input = (struct input){ d->buffer, size < 0 ? 0 : (size_t)size };
	d->offset += d->input.size;
}

/* The next bytes, at most size. 0: the end, also of a truncated or damaged file. */
static size_t decompressor_read(struct decompressor *d, void *bytes, size_t size)
{
	struct output out = { bytes, size };

	while (out.size > 0 && !d->ended) {
		if (d->input.size == 0 && !d->last)
			read_input(d);
		size_t input = d->input.size;
		size_t room = out.size;
		bool moves = d->method->step(d, &d->input, &out) == STEP_MORE;
		bool idle = d->input.size == input && out.size == room;
		d->ended = !moves || (idle && (d->last || input > 0));
	}
	return size - out.size;
}

enum {
	/* Headers and notes: 65,530 mappings and thousands of threads are some 20 MiB. */
	PREFIX_MAX = 256 << 20,
	PREFIX_STEP = 1 << 20,
	SCRATCH = 128 << 10,
	ZEROS = 4096,
};

/* Bytes of the core file that are kept, sorted by offset. */
struct range {
	uint64_t offset;
	uint64_t size;	/* wanted */
	uint64_t found; /* so far */
	uint8_t *bytes; /* owned; NULL: none found */
};

struct ss_core_source {
	int fd;				   /* owned */
	uint64_t size;			   /* UINT64_MAX: not known */
	struct decompressor *decompressor; /* NULL: not compressed */
	uint64_t position;		   /* of the decompressor */
	struct ss_buffer prefix;
	bool fetched;
	SS_VECTOR(struct range) wanted;
	SS_VECTOR(struct range) ranges;
	uint8_t scratch[SCRATCH];
};

struct ss_error *ss_core_source_new(int fd, struct ss_core_source **ret)
{
	_cleanup_(ss_core_source_cleanup) struct ss_core_source *source =
		calloc(1, sizeof(*source));
	struct stat status;

	if (!source) {
		close_cleanup(&fd);
		return ss_error_no_memory();
	}
	source->fd = fd;
	struct ss_error *error = decompressor_new(fd, &source->decompressor);
	if (error)
		return error;
	if (source->decompressor)
		source->size = UINT64_MAX;
	else if (fstat(fd, &status) == 0)
		source->size = (uint64_t)status.st_size;
	*ret = take_ptr(source);
	return NULL;
}

void ss_core_source_free(struct ss_core_source *source)
{
	if (!source)
		return;
	for (size_t i = 0; i < source->ranges.count; i++)
		free(source->ranges.items[i].bytes);
	ss_vector_free(&source->ranges);
	ss_vector_free(&source->wanted);
	ss_buffer_deinit(&source->prefix);
	decompressor_free(source->decompressor);
	close_cleanup(&source->fd);
	free(source);
}

bool ss_core_source_is_compressed(const struct ss_core_source *source)
{
	return source->decompressor != NULL;
}

uint64_t ss_core_source_size(const struct ss_core_source *source)
{
	return source->size;
}

/* The next bytes of the core file, in scratch. */
static size_t decompress(struct ss_core_source *source)
{
	size_t size = decompressor_read(source->decompressor, source->scratch,
					sizeof(source->scratch));

	source->position += size;
	if (size < sizeof(source->scratch))
		source->size = source->position;
	return size;
}

static void extend_prefix(struct ss_core_source *source, uint64_t end)
{
	end = SS_MIN(end + PREFIX_STEP, (uint64_t)PREFIX_MAX);
	while (source->prefix.size < end && source->size == UINT64_MAX &&
	       !source->prefix.failed) {
		size_t size = decompress(source);
		ss_buffer_add(&source->prefix, source->scratch, size);
	}
}

static size_t copy(void *to, size_t size, uint64_t offset, const void *from,
		   uint64_t start, uint64_t count)
{
	if (offset < start || offset - start >= count)
		return 0;
	size = (size_t)SS_MIN((uint64_t)size, count - (offset - start));
	memcpy(to, (const char *)from + (offset - start), size);
	return size;
}

ssize_t ss_core_source_read(struct ss_core_source *source, void *bytes, size_t size,
			    uint64_t offset)
{
	if (!source->decompressor)
		return ss_io_pread(source->fd, bytes, size, offset);
	if (!source->fetched && offset < PREFIX_MAX &&
	    source->prefix.size < offset + size)
		extend_prefix(source, offset + size);
	size_t found =
		copy(bytes, size, offset, source->prefix.bytes, 0, source->prefix.size);
	if (found == size)
		return (ssize_t)found;
	size_t at = ss_lower_bound(
		source->ranges.count, i,
		source->ranges.items[i].offset + source->ranges.items[i].size <= offset);
	if (at == source->ranges.count)
		return (ssize_t)found;
	const struct range *range = &source->ranges.items[at];
	size_t more =
		copy(bytes, size, offset, range->bytes, range->offset, range->found);
	return (ssize_t)SS_MAX(found, more);
}

bool ss_core_source_want(struct ss_core_source *source, uint64_t offset, uint64_t size)
{
	if (!source->decompressor || size == 0 || size > UINT64_MAX - offset ||
	    offset + size <= source->prefix.size)
		return true;
	struct range *range = ss_vector_push(&source->wanted);
	if (!range)
		return false;
	range->offset = offset;
	range->size = size;
	return true;
}

SS_DEFINE_COMPARE(compare_ranges, struct range, offset)

/* Ranges that touch become one. What was there before is collected again. */
static bool merge_wanted(struct ss_core_source *source, uint64_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < source->ranges.count; i++) {
		struct range *range = &source->ranges.items[i];
		if (!ss_core_source_want(source, range->offset, range->size))
			return false;
		free(range->bytes);
		range->bytes = NULL;
	}
	source->ranges.count = 0;
	qsort(source->wanted.items, source->wanted.count, sizeof(*source->wanted.items),
	      compare_ranges);
	for (size_t i = 0; i < source->wanted.count; i++) {
		struct range *range = &source->wanted.items[i];
		struct range *last = count ? &source->wanted.items[count - 1] : NULL;
		uint64_t end = range->offset + range->size;
		if (last && range->offset <= last->offset + last->size)
			last->size = SS_MAX(last->size, end - last->offset);
		else
			source->wanted.items[count++] = *range;
	}
	for (size_t i = 0; i < count; i++) {
		struct range *range = ss_vector_push(&source->ranges);
		if (!range)
			return false;
		*range = source->wanted.items[i];
		range->size = SS_MIN(range->size, max);
		max -= range->size;
	}
	source->wanted.count = 0;
	return true;
}

/* Leaves out zeros, so that untouched memory of the process needs none here. to is zero. */
static void copy_data(uint8_t *to, const uint8_t *from, size_t size)
{
	static const uint8_t zeros[ZEROS];

	for (size_t at = 0; at < size; at += ZEROS) {
		size_t part = SS_MIN(size - at, (size_t)ZEROS);
		if (memcmp(from + at, zeros, part) != 0)
			memcpy(to + at, from + at, part);
	}
}

/* Copies what scratch, which ends at the position, has of the range. */
static bool collect(struct ss_core_source *source, struct range *range, size_t size)
{
	uint64_t start = source->position - size;
	uint64_t from = SS_MAX(range->offset, start);
	uint64_t to = SS_MIN(range->offset + range->size, source->position);

	if (from >= to)
		return true;
	if (!range->bytes)
		range->bytes = calloc(1, range->size);
	if (!range->bytes)
		return false;
	copy_data(range->bytes + (from - range->offset), source->scratch + (from - start),
		  to - from);
	range->found = to - range->offset;
	return true;
}

/* A range that begins in the prefix, which the decompressor is behind. */
static bool begin_again(struct ss_core_source *source)
{
	source->position = 0;
	return decompressor_rewind(source->decompressor);
}

bool ss_core_source_fetch(struct ss_core_source *source, uint64_t max)
{
	size_t first = 0;

	source->fetched = true;
	if (!source->decompressor || source->wanted.count == 0)
		return true;
	if (!merge_wanted(source, max) || source->prefix.failed)
		return false;
	if (source->ranges.items[0].offset < source->position && !begin_again(source))
		return false;
	while (first < source->ranges.count) {
		size_t size = decompress(source);
		if (size == 0)
			break;
		for (size_t i = first; i < source->ranges.count; i++) {
			struct range *range = &source->ranges.items[i];
			if (range->offset >= source->position)
				break;
			if (!collect(source, range, size))
				return false;
			if (range->offset + range->size <= source->position)
				first = i + 1;
		}
	}
	return true;
}
