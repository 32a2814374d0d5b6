#include "core/decompress.h"

/* Input of zlib is const. */
#define ZLIB_CONST
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#ifdef SS_HAVE_LZ4
#include <lz4frame.h>
#endif

#include "base/io.h"

enum {
	INPUT_SIZE = 128 << 10,
	MAGIC_SIZE = 6,
	GZIP_WINDOW = 15 + 16, /* see inflateInit2(): gzip only */
};

/* xz -9 needs 65 MiB. zstd refuses by itself what needs more than 128 MiB. */
#define XZ_MEMORY_MAX ((uint64_t)256 << 20)

/* Progress of one call: whether the stream can go on. */
enum step { STEP_MORE, STEP_END };

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
	bool (*begin)(struct ss_decompressor *d);
	/* Consumes input and fills output, and moves both on. */
	enum step (*step)(struct ss_decompressor *d, struct input *in,
			  struct output *out);
	void (*end)(struct ss_decompressor *d);
};

struct ss_decompressor {
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

static bool zstd_begin(struct ss_decompressor *d)
{
	d->zstd = ZSTD_createDStream();
	return d->zstd != NULL;
}

static enum step zstd_step(struct ss_decompressor *d, struct input *in,
			   struct output *out)
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

static void zstd_end(struct ss_decompressor *d)
{
	(void)ZSTD_freeDStream(d->zstd);
	d->zstd = NULL;
}

/* xz ----------------------------------------------------------------------- */

static bool xz_begin(struct ss_decompressor *d)
{
	d->xz = (lzma_stream)LZMA_STREAM_INIT;
	return lzma_stream_decoder(&d->xz, XZ_MEMORY_MAX, LZMA_CONCATENATED) == LZMA_OK;
}

static enum step xz_step(struct ss_decompressor *d, struct input *in, struct output *out)
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

static void xz_end(struct ss_decompressor *d)
{
	lzma_end(&d->xz);
}

/* gzip --------------------------------------------------------------------- */

static bool gzip_begin(struct ss_decompressor *d)
{
	memset(&d->gzip, 0, sizeof(d->gzip));
	return inflateInit2(&d->gzip, GZIP_WINDOW) == Z_OK;
}

static enum step gzip_step(struct ss_decompressor *d, struct input *in,
			   struct output *out)
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

static void gzip_end(struct ss_decompressor *d)
{
	(void)inflateEnd(&d->gzip);
}

/* lz4 ---------------------------------------------------------------------- */

#ifdef SS_HAVE_LZ4
static bool lz4_begin(struct ss_decompressor *d)
{
	return !LZ4F_isError(LZ4F_createDecompressionContext(&d->lz4, LZ4F_VERSION));
}

static enum step lz4_step(struct ss_decompressor *d, struct input *in, struct output *out)
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

static void lz4_end(struct ss_decompressor *d)
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

struct ss_error *ss_decompressor_new(int fd, struct ss_decompressor **ret)
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
	struct ss_decompressor *d = calloc(1, sizeof(*d));
	if (!d)
		return ss_error_no_memory();
	d->fd = fd;
	d->method = method;
	if (!method->begin(d)) {
		ss_decompressor_free(d);
		return ss_error_no_memory();
	}
	*ret = d;
	return NULL;
}

void ss_decompressor_free(struct ss_decompressor *d)
{
	if (d)
		d->method->end(d);
	free(d);
}

bool ss_decompressor_rewind(struct ss_decompressor *d)
{
	d->method->end(d);
	d->offset = 0;
	d->input = (struct input){};
	d->last = d->ended = false;
	return d->method->begin(d);
}

static void read_input(struct ss_decompressor *d)
{
	ssize_t size = ss_io_pread(d->fd, d->buffer, sizeof(d->buffer), d->offset);

	d->last = size < (ssize_t)sizeof(d->buffer);
	d->input = (struct input){ d->buffer, size < 0 ? 0 : (size_t)size };
	d->offset += d->input.size;
}

size_t ss_decompressor_read(struct ss_decompressor *d, void *bytes, size_t size)
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
