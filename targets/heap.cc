/*
 * Allocations of malloc with known numbers: in the main arena, in those of two threads, and in
 * separate mappings; objects of classes with virtual functions; freed ones in caches of
 * threads, in fastbins and in other lists. Prints what glibc counts: the members uordblks,
 * fordblks, fsmblks, hblks and hblkhd of struct mallinfo2.
 *
 * With the argument "churn" a thread allocates and frees all the time.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <malloc.h>
#include <unistd.h>

#include "target.h"

namespace shop
{
struct Item {
	virtual ~Item() = default;
	char name[40];
};
template <class T> struct Priced : Item {
	T price;
};
} // namespace shop

enum { ITEMS = 10000, PRICED = 500, SOLD = 100, BLOCKS = 2000, LARGE = 3, SLOTS = 512 };

static void *volatile keep;

/* The compiler may leave out an allocation that is not used. */
static void *allocate(size_t size)
{
	keep = malloc(size);
	if (!keep)
		abort();
	memset(keep, 'x', size < 32 ? size : 32);
	return keep;
}

static void free_half(size_t size)
{
	static void *blocks[BLOCKS];

	for (void *&block : blocks)
		block = allocate(size);
	for (size_t i = 0; i < BLOCKS; i += 2)
		free(blocks[i]);
}

static void allocator_routine(void *)
{
	for (int i = 0; i < BLOCKS; i++)
		allocate(500);
	for (int i = 0; i < 20; i++)
		free(allocate(300));
	target_arrive();
	target_block();
}

static void churn_routine(void *)
{
	static void *slots[SLOTS];

	target_arrive();
	for (unsigned i = 1;; i = i * 1103515245u + 12345u) {
		void *&slot = slots[i >> 16 & (SLOTS - 1)];
		free(slot);
		slot = allocate(16 + (i >> 8) % 3000);
	}
}

static void allocate_objects()
{
	static shop::Item *sold[SOLD];

	for (int i = 0; i < ITEMS; i++)
		keep = new shop::Item;
	for (int i = 0; i < PRICED; i++)
		keep = new shop::Priced<long>;
	for (shop::Item *&item : sold)
		item = new shop::Item;
	for (shop::Item *item : sold)
		delete item;
	for (int i = 0; i < LARGE; i++)
		allocate(1 << 20);
}

int main(int argc, char **argv)
{
	target_init();
	allocate_objects();
	free_half(200); /* lists that merge neighbours */
	target_start("first", -1, allocator_routine, nullptr);
	target_start("second", -1, allocator_routine, nullptr);
	free_half(24);			     /* caches and fastbins */
	setvbuf(stdout, nullptr, _IONBF, 0); /* its buffer would be allocated later */
	const struct mallinfo2 info = mallinfo2();
	printf("%zu %zu %zu %zu %zu\n", info.uordblks, info.fordblks, info.fsmblks,
	       info.hblks, info.hblkhd);
	if (argc > 1 && strcmp(argv[1], "churn") == 0)
		target_start("churn", -1, churn_routine, nullptr);
	target_wait();
	return 0;
}
