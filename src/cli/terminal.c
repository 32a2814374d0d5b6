#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/io.h"

/* ECMA-48 and xterm's private modes; tmux, screen and the Linux console know them, too. */
#define ALTERNATE "\033[?1049h"
#define NO_ALTERNATE "\033[?1049l"
#define HIDE_CURSOR "\033[?25l"
#define SHOW_CURSOR "\033[?25h"
#define NO_WRAP "\033[?7l" /* a line that is too wide is cut */
#define WRAP "\033[?7h"
#define PLAIN "\033[0m"
#define REVERSE "\033[7m"
#define HOME "\033[H"
#define CLEAR "\033[2J"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

enum { DEFAULT_LINES = 24, DEFAULT_COLUMNS = 80, SIZE_MAX_SHOWN = 1000, ESCAPE_MS = 30 };

struct ss_error *ss_terminal_init(struct ss_terminal *terminal)
{
	const char *type = getenv("TERM");

	*terminal = (struct ss_terminal){};
	if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 ||
	    tcgetattr(STDIN_FILENO, &terminal->saved) != 0)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "standard input and output are not a terminal"),
			"--once prints one screen as text");
	if (type && strcmp(type, "dumb") == 0)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "this terminal (TERM=dumb) cannot show a screen"),
			"--once prints one screen as text");
	ss_terminal_measure(terminal);
	return NULL;
}

static void put(const char *text)
{
	/* Nothing can be done for a terminal that has gone. */
	(void)ss_io_write_all(STDOUT_FILENO, text, strlen(text));
}

void ss_terminal_enter(struct ss_terminal *terminal)
{
	struct termios raw = terminal->saved;

	/* Ctrl-C and Ctrl-Z remain signals. */
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw); /* or keys need Enter */
	terminal->entered = true;
	put(ALTERNATE HIDE_CURSOR NO_WRAP CLEAR);
	ss_terminal_measure(terminal);
}

void ss_terminal_leave(struct ss_terminal *terminal)
{
	if (!terminal->entered)
		return;
	terminal->entered = false;
	put(PLAIN WRAP SHOW_CURSOR NO_ALTERNATE);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->saved); /* it was valid */
}

void ss_terminal_measure(struct ss_terminal *terminal)
{
	struct winsize size = {};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		size = (struct winsize){};
	terminal->lines = size.ws_row ? SS_MIN(size.ws_row, SIZE_MAX_SHOWN) :
					DEFAULT_LINES;
	terminal->columns = size.ws_col ? SS_MIN(size.ws_col, SIZE_MAX_SHOWN) :
					  DEFAULT_COLUMNS;
}

/* The next byte within a time; -1: none, -2: there will be none. */
static int read_byte(int timeout_ms)
{
	struct pollfd pollfd = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned char byte;

	if (poll(&pollfd, 1, timeout_ms) <= 0)
		return -1;
	ssize_t n = read(STDIN_FILENO, &byte, 1);
	if (n == 1)
		return byte;
	return n < 0 && (errno == EINTR || errno == EAGAIN) ? -1 : -2;
}

/* The rest of a key that sends several bytes, such as ESC [ 5 ~ */
static int read_sequence(void)
{
	static const struct {
		const char *bytes;
		enum ss_key key;
	} keys[] = {
		{ "[A", SS_KEY_UP },	   { "OA", SS_KEY_UP },
		{ "[B", SS_KEY_DOWN },	   { "OB", SS_KEY_DOWN },
		{ "[5~", SS_KEY_PAGE_UP }, { "[6~", SS_KEY_PAGE_DOWN },
		{ "[H", SS_KEY_HOME },	   { "OH", SS_KEY_HOME },
		{ "[1~", SS_KEY_HOME },
	};
	char bytes[16] = "";
	size_t size = 0;

	while (size < sizeof(bytes) - 1) {
		int byte = read_byte(ESCAPE_MS);
		if (byte < 0)
			break;
		bytes[size++] = (char)byte;
		if (size > 1 && byte >= '@' && byte <= '~')
			break;
	}
	for (size_t i = 0; i < SS_ARRAY_SIZE(keys); i++) {
		if (strcmp(keys[i].bytes, bytes) == 0)
			return (int)keys[i].key;
	}
	return size ? SS_KEY_UNKNOWN : '\033';
}

int ss_terminal_key(void)
{
	int byte = read_byte(0);

	if (byte == -2)
		return SS_KEY_END_OF_INPUT;
	if (byte < 0 || byte == 0)
		return SS_KEY_NONE;
	return byte == '\033' ? read_sequence() : byte;
}

static void add(struct ss_buffer *screen, const char *text)
{
	ss_buffer_add(screen, text, strlen(text));
}

void ss_terminal_draw(const struct ss_terminal *terminal, const char *text,
		      const char *status, bool color)
{
	_cleanup_buffer_ struct ss_buffer screen = {};
	unsigned line = 1;
	char last[32];

	add(&screen, HOME);
	for (; *text && line < terminal->lines; line++) {
		size_t size = strcspn(text, "\n");
		ss_buffer_add(&screen, text, size);
		add(&screen, CLEAR_LINE "\r\n");
		text += size + (text[size] == '\n');
	}
	add(&screen, CLEAR_BELOW);
	(void)snprintf(last, sizeof(last), "\033[%u;1H", terminal->lines);
	add(&screen, last);
	add(&screen, color ? REVERSE : "");
	ss_buffer_add(&screen, status, strnlen(status, terminal->columns));
	add(&screen, color ? PLAIN CLEAR_LINE : CLEAR_LINE);
	if (!screen.failed)
		(void)ss_io_write_all(STDOUT_FILENO, screen.bytes, screen.size);
}
