/*
 * Leaks known amounts of memory in C++, when a line comes from standard input:
 *
 * leaks OBJECTS STRINGS BREAK REUSED	(MiB)
 *
 * leak_objects:	OBJECTS MiB by new, in objects of a class with 200 bytes; all are kept
 * leak_strings:	STRINGS MiB in std::string of 1,000 characters; all are kept
 * leak_break:	BREAK MiB by sbrk()
 * reuse:	REUSED MiB by new and delete, of 64 KiB each: always the same memory
 *
 * Each fills what it has allocated. Prints "done" afterwards, and waits.
 */
#include "target.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <unistd.h>

static const size_t mib = 1 << 20;

struct Record {
	virtual ~Record() = default;
	char bytes[192];
};

static std::deque<Record *> records;
static std::deque<std::string> strings;

TARGET_FRAME static void leak_objects(size_t bytes)
{
	for (size_t sum = 0; sum < bytes; sum += sizeof(Record)) {
		Record *record = new Record;
		memset(record->bytes, 1, sizeof(record->bytes));
		records.push_back(record);
	}
	TARGET_KEEP();
}

TARGET_FRAME static void leak_strings(size_t bytes)
{
	for (size_t sum = 0; sum < bytes; sum += 1000)
		strings.emplace_back(1000, 'x');
	TARGET_KEEP();
}

TARGET_FRAME static void leak_break(size_t bytes)
{
	for (size_t sum = 0; sum < bytes; sum += mib) {
		void *memory = sbrk((intptr_t)mib);
		if (memory == (void *)-1)
			abort();
		for (size_t i = 0; i < mib; i += 64)
			((volatile char *)memory)[i] = 1;
	}
	TARGET_KEEP();
}

TARGET_FRAME static void reuse(size_t bytes)
{
	const size_t size = 64 << 10;

	for (size_t sum = 0; sum < bytes; sum += size) {
		char *memory = new char[size];
		for (size_t i = 0; i < size; i += 64)
			((volatile char *)memory)[i] = 1;
		delete[] memory;
	}
	TARGET_KEEP();
}

int main(int argc, char **argv)
{
	size_t sizes[4];
	char line[16];

	for (int i = 0; i < 4; i++)
		sizes[i] = target_number(argc, argv, i + 1, 16) * mib;
	target_init();
	puts("ready");
	if (!fgets(line, sizeof(line), stdin))
		return 0;
	leak_objects(sizes[0]);
	leak_strings(sizes[1]);
	leak_break(sizes[2]);
	reuse(sizes[3]);
	puts("done");
	target_wait();
	return 0;
}
