#include "cli/wait_functions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"
#include "cli/failure.h"
#include "diagnose/wait_table.h"

enum { SIZE_LIMIT = (1 << 20) + 1 }; /* more than the library accepts */

static struct ss_error *add_file(struct ss_wait_table *table, const char *path, int fd)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	int code = ss_io_read_all(fd, SIZE_LIMIT, &text);

	if (code)
		return ss_error_new(SS_ERROR_SYSTEM, "cannot read %s: %s", path,
				    strerror(-code));
	return ss_wait_table_add(table, path, text.bytes ? text.bytes : "", text.size);
}

struct ss_error *ss_wait_functions_add(struct ss_wait_table *table, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return ss_error_new(SS_ERROR_SYSTEM, "cannot open %s: %s", path,
				    strerror(errno));
	return add_file(table, path, fd);
}

/* Files of other users are not read: with HOME unchanged, sudo would read them as root. */
static void add_config(struct ss_wait_table *table, const char *path)
{
	_cleanup_close_ int found = open(path, O_PATH | O_CLOEXEC);
	_cleanup_close_ int fd = found < 0 ? -1 : ss_io_reopen(found);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 ||
	    (status.st_uid != 0 && status.st_uid != geteuid()))
		return;
	_cleanup_error_ struct ss_error *error = add_file(table, path, fd);
	if (error)
		ss_failure_warn("%s", ss_error_message(error));
}

static void add_user_config(struct ss_wait_table *table)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	_cleanup_buffer_ struct ss_buffer path = {};

	if (config && config[0] == '/')
		ss_buffer_printf(&path, "%s/stacksnap/wait-functions", config);
	else if (home && home[0] == '/')
		ss_buffer_printf(&path, "%s/.config/stacksnap/wait-functions", home);
	if (path.size && !path.failed)
		add_config(table, path.bytes);
}

struct ss_error *ss_wait_functions_load(struct ss_wait_table **ret)
{
	struct ss_wait_table *table = NULL;
	struct ss_error *error = ss_wait_table_new(&table);

	if (error)
		return error;
	add_config(table, "/etc/stacksnap/wait-functions");
	add_user_config(table);
	*ret = table;
	return NULL;
}
