#include "cli/usage_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "report/escape.h"

enum { TEXT_MAX = 1 << 20 };

/* The real standard error; -1: nothing is collected. */
static int real_stderr = -1;

static bool is_plain(const char *text)
{
	for (size_t size; *text; text += size) {
		size = ss_escape_safe_size(text);
		if (size == 0)
			return false;
	}
	return true;
}

/* Lines are those of the messages: a newline in an argument begins one, too. */
static void print_escaped(char *text)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		ss_escape_write(line, NULL, stderr);
		(void)fputc('\n', stderr);
	}
}

void ss_usage_guard_end(void)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	if (real_stderr < 0)
		return;
	(void)fflush(stderr);
	_cleanup_close_ int collected = dup(STDERR_FILENO);
	(void)dup2(real_stderr, STDERR_FILENO);
	close_cleanup(&real_stderr);
	real_stderr = -1;
	if (collected >= 0 && lseek(collected, 0, SEEK_SET) == 0 &&
	    ss_io_read_all(collected, TEXT_MAX, &text) == 0 && text.size > 0)
		print_escaped(text.bytes);
}

void ss_usage_guard_begin(int argc, char **argv)
{
	bool plain = true;

	for (int i = 0; i < argc; i++)
		plain = plain && is_plain(argv[i]);
	_cleanup_close_ int file = plain ? -1 : memfd_create("usage", MFD_CLOEXEC);
	if (file < 0)
		return;
	real_stderr = dup(STDERR_FILENO);
	if (real_stderr < 0)
		return;
	(void)dup2(file, STDERR_FILENO);
	(void)atexit(ss_usage_guard_end); /* argp ends the program after an error */
}
