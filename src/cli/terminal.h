/*
 * A terminal as a screen: the alternate buffer, keys as they are pressed, no cursor. What it
 * was like before is restored by ss_terminal_leave().
 */
#ifndef SS_CLI_TERMINAL_H
#define SS_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "base/error.h"

struct ss_terminal {
	struct termios saved;
	bool entered;
	unsigned lines;
	unsigned columns;
};

enum ss_key {
	SS_KEY_NONE = 0, /* nothing was pressed */
	/* Others are the characters themselves. */
	SS_KEY_UP = 0x100,
	SS_KEY_DOWN,
	SS_KEY_PAGE_UP,
	SS_KEY_PAGE_DOWN,
	SS_KEY_HOME,
	SS_KEY_UNKNOWN,
	SS_KEY_END_OF_INPUT,
};

/* Saves the state of the terminal. Errors: INVALID (standard input or output is none, or one
   that cannot move its cursor). */
struct ss_error *ss_terminal_init(struct ss_terminal *terminal);

void ss_terminal_enter(struct ss_terminal *terminal);
/* Does nothing if it was not entered. Safe in a signal handler. */
void ss_terminal_leave(struct ss_terminal *terminal);

/* Reads how large it is. */
void ss_terminal_measure(struct ss_terminal *terminal);

/* The next key that was pressed. Does not wait. */
int ss_terminal_key(void);

/* Shows lines of text, and below them status in the last line of the screen. */
void ss_terminal_draw(const struct ss_terminal *terminal, const char *text,
		      const char *status, bool color);

#endif
