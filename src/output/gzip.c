#include "output/gzip.h"

#include <stdint.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/cleanup.h"

enum { PIECE = 48 << 10, GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8 };

struct gzip {
	FILE *out;
	bool base64;
	z_stream stream;
	uint8_t piece[PIECE];
	uint8_t rest[3]; /* bytes that do not make a group of three yet */
	unsigned rest_count;
};

static void write_group(const struct gzip *gzip)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *b = gzip->rest;
	unsigned count = gzip->rest_count;
	const char text[] = {
		digits[b[0] >> 2],
		digits[(b[0] & 3) << 4 | b[1] >> 4],
		count > 1 ? digits[(b[1] & 15) << 2 | b[2] >> 6] : '=',
		count > 2 ? digits[b[2] & 63] : '=',
	};

	(void)fwrite_unlocked(text, 1, sizeof(text), gzip->out);
}

static void write_base64(struct gzip *gzip, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		gzip->rest[gzip->rest_count++] = bytes[i];
		if (gzip->rest_count == 3) {
			write_group(gzip);
			gzip->rest_count = 0;
		}
	}
}

static void end_base64(struct gzip *gzip)
{
	if (gzip->rest_count == 0)
		return;
	for (unsigned i = gzip->rest_count; i < 3; i++)
		gzip->rest[i] = 0;
	write_group(gzip);
}

/* Returns false after an internal error of zlib: a bug, or no memory. */
static bool pack(struct gzip *gzip, int flush)
{
	int result = Z_OK;

	do {
		gzip->stream.next_out = gzip->piece;
		gzip->stream.avail_out = sizeof(gzip->piece);
		result = deflate(&gzip->stream, flush);
		size_t size = sizeof(gzip->piece) - gzip->stream.avail_out;
		if (gzip->base64)
			write_base64(gzip, gzip->piece, size);
		else
			(void)fwrite_unlocked(gzip->piece, 1, size, gzip->out);
	} while (result == Z_OK && gzip->stream.avail_out == 0);
	return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
}

static ssize_t gzip_write(void *cookie, const char *bytes, size_t size)
{
	struct gzip *gzip = cookie;
	unsigned part = (unsigned)SS_MIN(size, (size_t)1 << 30);

	gzip->stream.next_in = (const Bytef *)bytes;
	gzip->stream.avail_in = part;
	return pack(gzip, Z_NO_FLUSH) ? (ssize_t)part : 0;
}

static int gzip_close(void *cookie)
{
	struct gzip *gzip = cookie;

	gzip->stream.avail_in = 0;
	bool whole = pack(gzip, Z_FINISH);
	if (gzip->base64)
		end_base64(gzip);
	(void)deflateEnd(&gzip->stream); /* only frees */
	free(gzip);
	return whole ? 0 : EOF;
}

FILE *ss_gzip_open(FILE *out, bool base64)
{
	const cookie_io_functions_t functions = { .write = gzip_write,
						  .close = gzip_close };
	_cleanup_free_ struct gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip)
		return NULL;
	gzip->out = out;
	gzip->base64 = base64;
	if (deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
			 MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	FILE *file = fopencookie(gzip, "w", functions);
	if (!file) {
		(void)deflateEnd(&gzip->stream); /* only frees */
		return NULL;
	}
	(void)take_ptr(gzip);
	return file;
}
