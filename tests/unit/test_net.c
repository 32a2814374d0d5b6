#include "unit.h"

#include <string.h>

#include <arpa/inet.h>
#include <stdio.h>

#include "base/procfs.h"

#define REST " 00000000:00000000 00:00000000 00000000     0        0 "

/* As this processor would write the four bytes of an address. */
static const char *word(const char *address)
{
	static char text[9];
	uint32_t bytes;

	assert_int_equal(inet_pton(AF_INET, address, &bytes), 1);
	(void)snprintf(text, sizeof(text), "%08X", bytes);
	return text;
}

TEST(test_tcp)
{
	char text[400];
	uint8_t wanted[4];
	struct ss_net_inet line;

	(void)snprintf(text, sizeof(text),
		       "  sl  local_address rem_address   st tx_queue rx_queue\n"
		       "   0: %s:0CEA 00000000:0000 0A" REST "4711 1 00 100\n"
		       "garbage\n",
		       word("127.0.0.1"));
	const char *cursor = text;
	const char *end = text + strlen(text);
	assert_true(ss_net_next_inet(&cursor, end, &line));
	assert_int_equal(inet_pton(AF_INET, "127.0.0.1", wanted), 1);
	assert_int_equal(line.local.size, 4);
	assert_memory_equal(line.local.bytes, wanted, 4);
	assert_int_equal(line.local.port, 3306);
	assert_int_equal(line.remote.port, 0);
	assert_int_equal(line.state, 10);
	assert_int_equal(line.inode, 4711);
	assert_false(ss_net_next_inet(&cursor, end, &line));
}

TEST(test_tcp6)
{
	static const char text[] = "   1: 00000000000000000000000001000000:0050 "
				   "00000000000000000000000000000000:0000 01" REST "5";
	const char *cursor = text;
	struct ss_net_inet line;

	assert_true(ss_net_next_inet(&cursor, text + strlen(text), &line));
	assert_int_equal(line.local.size, 16);
	assert_int_equal(line.local.bytes[15], 1); /* ::1 (this byte order) */
	assert_int_equal(line.local.port, 80);
	assert_int_equal(line.inode, 5);
}

TEST(test_bad_inet)
{
	static const char *const texts[] = {
		"   0: 0100007F",
		"   0: 0100007F:0CEA",
		"   0: 010000:0CEA 00000000:0000 0A" REST "4711",
		"   0: 0100007F0100007F:0CEA 00000000:0000 0A" REST "4711",
		"   0: 0100007F:0CEA 00000000:0000 0A" REST "99999999999999999999999",
		"   0: 0100007F:0CEA 00000000:0000 0A",
		"   0: 00000000000000000000000001000000000000:0050 0:0 0A" REST "4711",
	};
	struct ss_net_inet line;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *cursor = texts[i];
		assert_false(ss_net_next_inet(&cursor, cursor + strlen(cursor), &line));
	}
}

TEST(test_unix)
{
	static const char text[] =
		"Num       RefCount Protocol Flags    Type St Inode Path\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01 23413 /run/a "
		"b.sock\n"
		"0000000000000000: 00000003 00000000 00000000 0005 03 23414\n";
	const char *cursor = text;
	const char *end = text + strlen(text);
	struct ss_net_unix line;

	assert_true(ss_net_next_unix(&cursor, end, &line));
	assert_true(line.listens);
	assert_int_equal(line.inode, 23413);
	assert_int_equal(line.path_size, strlen("/run/a b.sock"));
	assert_memory_equal(line.path, "/run/a b.sock", line.path_size);
	assert_true(ss_net_next_unix(&cursor, end, &line));
	assert_false(line.listens);
	assert_int_equal(line.type, 5);
	assert_int_equal(line.state, 3);
	assert_int_equal(line.path_size, 0);
	assert_false(ss_net_next_unix(&cursor, end, &line));
}
