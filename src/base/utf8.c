#include "base/utf8.h"

size_t ss_utf8_decode(const char *string, uint32_t *ret)
{
	const unsigned char *text = (const unsigned char *)string;
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char first = text[0];
	size_t size = first < 0x80	     ? 1 :
		      (first & 0xe0) == 0xc0 ? 2 :
		      (first & 0xf0) == 0xe0 ? 3 :
		      (first & 0xf8) == 0xf0 ? 4 :
					       0;

	if (size == 0)
		return 0;
	uint32_t c = size == 1 ? first : first & (0x7fU >> size);
	for (size_t i = 1; i < size; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3f);
	}
	if (c < smallest[size] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return size;
}

char *ss_utf8_encode(uint32_t c, char *ret)
{
	if (c < 0x80) {
		*ret++ = (char)c;
	} else if (c < 0x800) {
		*ret++ = (char)(0xc0 | c >> 6);
		*ret++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*ret++ = (char)(0xe0 | c >> 12);
		*ret++ = (char)(0x80 | (c >> 6 & 0x3f));
		*ret++ = (char)(0x80 | (c & 0x3f));
	} else {
		*ret++ = (char)(0xf0 | c >> 18);
		*ret++ = (char)(0x80 | (c >> 12 & 0x3f));
		*ret++ = (char)(0x80 | (c >> 6 & 0x3f));
		*ret++ = (char)(0x80 | (c & 0x3f));
	}
	return ret;
}
