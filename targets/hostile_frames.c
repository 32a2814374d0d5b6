/*
 * JIT code whose unwind information is hostile: all words of libgcc's lists of what was
 * registered with __register_frame() lead to objects of this program.
 *
 * hostile_frames KIND
 *	expression	the CFA is an expression that never ends
 *	states		thousands of remembered states
 *	length		a section that is said to be 4 GiB long
 *	nowhere		sections at unmapped addresses
 *	itself		each object is its own section
 *	cycle		each object is its own successor
 *
 * Thread "sleeper":	poll, target_block, [JIT code], ...
 * Thread "runner":	spin, [JIT code], ...
 * Without hostile information both continue with thread_routine, target_thread_main,
 * start_thread, clone3.
 */
#include "target.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OBJECTS = 1024, SECTION = 4096, PROGRAM = 3000, REMEMBER_STATE = 0x0a };

/* struct object of libgcc, up to GCC 12 */
struct object {
	uint64_t unused[3];
	const void *frames;
	uint64_t flags;
	struct object *next;
};

static const char *kind;
static struct object *objects;
static uint8_t *sections;
static uint8_t *code;

TARGET_FRAME static void spin(void)
{
	target_arrive();
	for (;;)
		TARGET_KEEP();
}

TARGET_FRAME static void thread_routine(void *function)
{
	((void (*)(void *))(uintptr_t)code)(function);
	TARGET_KEEP();
}

static void *map(size_t size, int protection)
{
	void *bytes = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (bytes == MAP_FAILED)
		target_die("mmap");
	return bytes;
}

static void put(uint8_t **at, const void *bytes, size_t size)
{
	memcpy(*at, bytes, size);
	*at += size;
}

/* A CIE, and an FDE for the code. */
static void make_section(uint8_t *section)
{
	static const uint8_t cie[] = { 16,  0, 0, 0,	0,  0, 0, 0,  1, 'z',
				       'R', 0, 1, 0x78, 16, 1, 0, 12, 7, 8 };
	static const uint8_t endless[] = { 0x0f, 4, 0x31, 0x2f, 0xfc, 0xff };
	uint32_t length = strcmp(kind, "length") == 0 ? 0xfffffff0 : 25 + PROGRAM;
	uint32_t to_cie = sizeof(cie) + sizeof(length);
	uint64_t range[] = { (uintptr_t)code, SECTION };
	uint8_t *at = section;

	put(&at, cie, sizeof(cie));
	put(&at, &length, sizeof(length));
	put(&at, &to_cie, sizeof(to_cie));
	put(&at, range, sizeof(range));
	at++; /* no augmentation */
	if (strcmp(kind, "expression") == 0)
		put(&at, endless, sizeof(endless));
	else if (strcmp(kind, "states") == 0)
		memset(at, REMEMBER_STATE, PROGRAM);
}

static void make_object(size_t i)
{
	struct object *object = &objects[i];

	make_section(sections + i * SECTION);
	object->frames = sections + i * SECTION;
	object->next = &objects[(i * 37 + 11) % OBJECTS];
	if (strcmp(kind, "nowhere") == 0)
		object->frames = (const void *)(i % 2 ? 1 : UINTPTR_MAX - 8);
	else if (strcmp(kind, "itself") == 0)
		object->frames = object;
	else if (strcmp(kind, "cycle") == 0)
		object->next = object;
}

/* Replaces all of libgcc's data that is 0 in its file. */
static int take_lists(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	if (!strstr(info->dlpi_name, "libgcc_s.so"))
		return 0;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
			continue;
		uintptr_t start = info->dlpi_addr + segment->p_vaddr + segment->p_filesz;
		uintptr_t end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
		struct object **word = (struct object **)((start + 7) & ~(uintptr_t)7);
		for (size_t n = 0; (uintptr_t)(word + 1) <= end; n++)
			*word++ = &objects[n % OBJECTS];
	}
	return 0;
}

int main(int argc, char **argv)
{
	/* sub rsp, 40; call rdi; add rsp, 40; ret */
	static const uint8_t function[] = { 0x48, 0x83, 0xec, 0x28, 0xff, 0xd7,
					    0x48, 0x83, 0xc4, 0x28, 0xc3 };

	kind = argc > 1 ? argv[1] : "";
	target_init();
	code = map(SECTION, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(code, function, sizeof(function));
	objects = map(OBJECTS * sizeof(*objects), PROT_READ | PROT_WRITE);
	sections = map(OBJECTS * SECTION, PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < OBJECTS; i++)
		make_object(i);
	if (!dlopen("libgcc_s.so.1", RTLD_NOW))
		target_die("dlopen");
	dl_iterate_phdr(take_lists, NULL);
	target_start("sleeper", SYS_poll, thread_routine,
		     (void *)(uintptr_t)target_block);
	target_start("runner", -1, thread_routine, (void *)(uintptr_t)spin);
	target_wait();
	_exit(0); /* libgcc's lists are of no use any more */
}
