#include "unit.h"

#include <string.h>

#include "base/utf8.h"

TEST(test_characters_survive)
{
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		char text[5] = "";
		uint32_t decoded = UINT32_MAX;
		size_t size = (size_t)(ss_utf8_encode(c, text) - text);
		if (c >= 0xd800 && c <= 0xdfff) { /* half of a pair */
			assert_int_equal(ss_utf8_decode(text, &decoded), 0);
			continue;
		}
		assert_int_equal(ss_utf8_decode(text, &decoded), size);
		assert_int_equal(decoded, c);
		assert_int_equal(size, c < 0x80	   ? 1 :
				       c < 0x800   ? 2 :
				       c < 0x10000 ? 3 :
						     4);
	}
}

TEST(test_invalid_sequences_have_no_size)
{
	static const char *const texts[] = {
		"\x80",		    /* no first byte */
		"\xc3",		    /* cut */
		"\xe2\x82",	    /* cut */
		"\xc0\xaf",	    /* overlong */
		"\xe0\x80\xaf",	    /* overlong */
		"\xf0\x80\x80\xaf", /* overlong */
		"\xf4\x90\x80\x80", /* beyond U+10FFFF */
		"\xff",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		uint32_t c = 7;
		assert_int_equal(ss_utf8_decode(texts[i], &c), 0);
		assert_int_equal(c, 7);
	}
}
