/*
 * Code that is generated at run time, in anonymous memory, with frame pointers but without
 * unwind tables. Prints "area ADDRESS"; piece N of the code begins at ADDRESS + N * 0x100.
 *
 * Thread "jitted":	poll, target_block, called_from_jit, piece 3, piece 2, piece 1,
 *			call_jit, target_thread_main, start_thread, clone3
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "target.h"

enum { AREA = 4096, PIECES = 3, PIECE_STEP = 0x100 };

static uint8_t *area;

TARGET_FRAME static void called_from_jit(void)
{
	target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void call_jit(void *arg)
{
	void (*code)(void);

	memcpy(&code, &arg, sizeof(code));
	code();
	TARGET_KEEP();
}

/* push %rbp; mov %rsp,%rbp; mov $CALLEE,%r11; call *%r11; pop %rbp; ret */
static void write_piece(uint8_t *at, uint64_t callee)
{
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x49, 0xbb, 0,
					0,    0,    0,	  0,	0,    0,    0,
					0x41, 0xff, 0xd3, 0x5d, 0xc3 };

	memcpy(at, code, sizeof(code));
	memcpy(at + 6, &callee, sizeof(callee));
}

int main(void)
{
	void (*last)(void) = called_from_jit;
	uint64_t callee;

	target_init();
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		target_die("mmap");
	memcpy(&callee, &last, sizeof(callee));
	printf("area %llu\n", (unsigned long long)(uintptr_t)area);
	for (int i = PIECES; i > 0; i--) {
		write_piece(area + i * PIECE_STEP, callee);
		callee = (uint64_t)(uintptr_t)(area + i * PIECE_STEP);
	}
	target_start("jitted", SYS_poll, call_jit, area + PIECE_STEP);
	target_wait();
	return 0;
}
