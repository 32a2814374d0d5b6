#include "report/packed.h"

#include <stdint.h>
#include <zlib.h>

#include "base/cleanup.h"

enum { PIECE = 48 << 10, GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8 };

struct packed {
	FILE *out;
	bool base64;
	z_stream stream;
	uint8_t piece[PIECE];
	uint8_t rest[3]; /* bytes that make no group of three yet */
	unsigned rest_count;
};

static void write_group(const struct packed *packed)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *b = packed->rest;
	unsigned count = packed->rest_count;
	const char text[] = {
		digits[b[0] >> 2],
		digits[(b[0] & 3) << 4 | b[1] >> 4],
		count > 1 ? digits[(b[1] & 15) << 2 | b[2] >> 6] : '=',
		count > 2 ? digits[b[2] & 63] : '=',
	};

	(void)fwrite_unlocked(text, 1, sizeof(text), packed->out); /* ferror() later */
}

static void write_base64(struct packed *packed, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		packed->rest[packed->rest_count++] = bytes[i];
		if (packed->rest_count == 3) {
			write_group(packed);
			packed->rest_count = 0;
		}
	}
}

static void end_base64(struct packed *packed)
{
	if (packed->rest_count == 0)
		return;
	for (unsigned i = packed->rest_count; i < 3; i++)
		packed->rest[i] = 0;
	write_group(packed);
}

/* False: it is broken, which only a bug or a lack of memory can do. */
static bool pack(struct packed *packed, int flush)
{
	int result = Z_OK;

	do {
		packed->stream.next_out = packed->piece;
		packed->stream.avail_out = sizeof(packed->piece);
		result = deflate(&packed->stream, flush);
		size_t size = sizeof(packed->piece) - packed->stream.avail_out;
		if (packed->base64)
			write_base64(packed, packed->piece, size);
		else
			(void)fwrite_unlocked(packed->piece, 1, size, packed->out);
	} while (result == Z_OK && packed->stream.avail_out == 0);
	return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
}

static ssize_t packed_write(void *cookie, const char *bytes, size_t size)
{
	struct packed *packed = cookie;
	unsigned part = (unsigned)SS_MIN(size, (size_t)1 << 30);

	packed->stream.next_in = (z_const Bytef *)bytes;
	packed->stream.avail_in = part;
	return pack(packed, Z_NO_FLUSH) ? (ssize_t)part : 0;
}

static int packed_close(void *cookie)
{
	struct packed *packed = cookie;

	packed->stream.avail_in = 0;
	bool whole = pack(packed, Z_FINISH);
	if (packed->base64)
		end_base64(packed);
	(void)deflateEnd(&packed->stream); /* only frees */
	free(packed);
	return whole ? 0 : EOF;
}

FILE *ss_packed_open(FILE *out, bool base64)
{
	const cookie_io_functions_t functions = { .write = packed_write,
						  .close = packed_close };
	_cleanup_free_ struct packed *packed = calloc(1, sizeof(*packed));

	if (!packed)
		return NULL;
	packed->out = out;
	packed->base64 = base64;
	if (deflateInit2(&packed->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
			 MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	FILE *file = fopencookie(packed, "w", functions);
	if (!file) {
		(void)deflateEnd(&packed->stream); /* only frees */
		return NULL;
	}
	(void)take_ptr(packed);
	return file;
}
