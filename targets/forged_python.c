/*
 * Claims to be CPython 3.11, x86-64: has its symbols, and structures of a thread with one frame. With
 * the argument "moving", another thread changes these all the time: valid ones of two functions,
 * cycles, lengths, pointers to nothing, names of another type.
 *
 * Main thread, if they are valid: forged_a at a.py:7 (or forged_b at b.py:9) in place of
 * _PyEval_EvalFrameDefault, main, __libc_start_call_main, __libc_start_main, _start; above: read,
 * target_wait.
 */
#include "target.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 64, FUNCTIONS = 2 };
enum { INTERPRETERS = 5, INTERPRETER_THREADS = 2 };
enum {
	STATE_NEXT = 1,
	STATE_INTERPRETER = 2,
	STATE_CFRAME = 7,
	STATE_ID = 19,
	STATE_TID = 20,
	ROOT_CFRAME = 320
};
enum { FRAME_CODE = 4, FRAME_PREVIOUS = 6, FRAME_INSTRUCTION = 7, FRAME_ENTRY_BYTE = 68 };
enum {
	CODE_LINE = 9,
	CODE_FILE = 14,
	CODE_NAME = 15,
	CODE_QUALNAME = 16,
	CODE_TABLE = 17,
	CODE_BYTES = 184
};
enum {
	TYPE = 1,
	TYPE_NAME = 3,
	SIZE = 2,
	STRING_STATE = 4,
	STRING_TEXT = 6,
	BYTES_TEXT = 4
};

/* What the interpreter exports. */
uint64_t _PyRuntime[WORDS];
const uint32_t Py_Version = 0x030b00f0;
int _PyEval_EvalFrameDefault(void);

typedef volatile uint64_t object[WORDS];

/* On the stack of the loop: struct _PyCFrame */
struct cframe {
	uint64_t use_tracing;
	volatile uint64_t frame;
	volatile uint64_t previous;
};

static object interpreter, state, frames[2], codes[FUNCTIONS], names[FUNCTIONS],
	files[FUNCTIONS];
static object types[3], table;
static struct cframe *loop;

static uint64_t address_of(const volatile void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static void make_type(int index, const char *name)
{
	static char copies[3][64]; /* a page of the file may not be in memory */

	strcpy(copies[index], name);
	types[index][TYPE_NAME] = address_of(copies[index]);
}

/* Compact, ASCII. */
static void make_string(volatile uint64_t *ret, const char *text)
{
	ret[TYPE] = address_of(types[1]);
	ret[SIZE] = strlen(text);
	ret[STRING_STATE] = 1 << 2 | 1 << 5 | 1 << 6 | 1 << 7;
	memcpy((char *)(uintptr_t)address_of(ret + STRING_TEXT), text, strlen(text));
}

static void make_code(int index, const char *name, const char *file, uint64_t line)
{
	make_string(names[index], name);
	make_string(files[index], file);
	codes[index][0] = 1; /* reference */
	codes[index][TYPE] = address_of(types[0]);
	codes[index][CODE_LINE] = line;
	codes[index][CODE_FILE] = address_of(files[index]);
	codes[index][CODE_NAME] = codes[index][CODE_QUALNAME] = address_of(names[index]);
	codes[index][CODE_TABLE] = address_of(table);
}

static void make_frame(int index)
{
	frames[0][FRAME_CODE] = address_of(codes[index]);
	frames[0][FRAME_INSTRUCTION] = address_of(codes[index]) + CODE_BYTES;
	frames[0][FRAME_PREVIOUS] = 0;
	((volatile uint8_t *)frames[0])[FRAME_ENTRY_BYTE] = 1;
}

/* A page that was never written is not in memory. */
static void touch(volatile uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		words[i] = 0;
}

static void make_all(void)
{
	touch(_PyRuntime, WORDS);
	touch(interpreter, WORDS);
	touch(state, WORDS);
	make_type(0, "code");
	make_type(1, "str");
	make_type(2, "bytes");
	/* Eight units of code, without columns, in the first line. */
	table[TYPE] = address_of(types[2]);
	table[SIZE] = 2;
	table[BYTES_TEXT] = 0x80 | 13 << 3 | 7;
	make_code(0, "forged_a", "a.py", 7);
	make_code(1, "forged_b", "b.py", 9);
	make_frame(0);
	_PyRuntime[INTERPRETERS] = address_of(interpreter);
	interpreter[INTERPRETER_THREADS] = address_of(state);
	state[STATE_INTERPRETER] = address_of(interpreter);
	state[STATE_ID] = (uint64_t)pthread_self();
	state[STATE_TID] = (uint64_t)getpid();
	state[STATE_CFRAME] = address_of(loop);
	loop->frame = address_of(frames[0]);
	loop->previous = address_of(state) + ROOT_CFRAME; /* all 0 */
}

/* What is wrong next; everything else is right. */
static void spoil(unsigned number)
{
	static const uint64_t wrong[] = {
		0, 1, 8, UINT64_MAX - 7, UINT64_C(1) << 47, 4096
	};
	volatile uint64_t *const words[] = {
		&loop->frame,
		&loop->previous,
		&frames[0][FRAME_CODE],
		&frames[0][FRAME_PREVIOUS],
		&frames[0][FRAME_INSTRUCTION],
		&codes[0][TYPE],
		&codes[0][CODE_NAME],
		&codes[0][CODE_FILE],
		&codes[0][CODE_TABLE],
		&names[0][SIZE],
		&files[0][SIZE],
		&names[0][STRING_STATE],
		&table[SIZE],
		&types[0][TYPE_NAME],
		&state[STATE_NEXT],
		&state[STATE_INTERPRETER],
		&interpreter[INTERPRETER_THREADS],
		&codes[0][CODE_QUALNAME],
		&interpreter[0],
		&state[STATE_CFRAME],
	};
	enum {
		COUNT = sizeof(words) / sizeof(words[0]),
		WRONG = sizeof(wrong) / sizeof(wrong[0])
	};
	volatile uint64_t *word = words[number % COUNT];
	const uint64_t before = *word;

	/* Every third time it leads to itself or to another structure. */
	if (number % 3 == 0)
		*word = address_of(number % 2 ? word : frames[number / 2 % 2]);
	else
		*word = wrong[number / COUNT % WRONG];
	for (volatile unsigned i = 0; i < number % 4096; i++)
		;
	*word = before;
}

static void *move(void *argument)
{
	for (unsigned number = 0;; number++) {
		make_frame((int)(number / 64 % FUNCTIONS));
		spoil(number);
	}
	return argument;
}

TARGET_FRAME int _PyEval_EvalFrameDefault(void)
{
	struct cframe own = {};

	loop = &own;
	make_all();
	target_wait();
	return (int)own.use_tracing;
}

static void start(void)
{
	pthread_t thread;

	while (!*(struct cframe *volatile *)&loop)
		usleep(1000);
	if (pthread_create(&thread, NULL, move, NULL) != 0)
		target_die("pthread_create");
}

static void *start_moving(void *argument)
{
	start();
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argv;
	target_init();
	if (argc > 1 && pthread_create(&thread, NULL, start_moving, NULL) != 0)
		target_die("pthread_create");
	return _PyEval_EvalFrameDefault();
}
