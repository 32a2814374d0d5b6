#include "cli/target_argument.h"

#include <limits.h>
#include <string.h>

#include "cli/number.h"

struct ss_error *ss_target_argument_parse_id(const char *text, const char *what,
					     pid_t *ret)
{
	uint64_t value = 0;

	switch (ss_number_parse(text, 1, INT_MAX, &value)) {
	case SS_NUMBER_OK:
		*ret = (pid_t)value;
		return NULL;
	case SS_NUMBER_NEGATIVE:
		return ss_error_new(SS_ERROR_INVALID,
				    "'%s' is not a valid %s: it is negative", text, what);
	case SS_NUMBER_RANGE:
		return ss_error_new(SS_ERROR_INVALID,
				    "'%s' is not a valid %s: it must be from 1 to %d",
				    text, what, INT_MAX);
	default:
		return ss_error_new(SS_ERROR_INVALID,
				    "'%s' is not a valid %s: it is not a number", text,
				    what);
	}
}

static struct ss_error *parse_tids(char *list, struct ss_target_argument *argument)
{
	for (char *item = strsep(&list, ","); item; item = strsep(&list, ",")) {
		pid_t tid = 0;
		struct ss_error *error = ss_target_argument_parse_id(item, "tid", &tid);
		if (error)
			return error;
		pid_t *slot = ss_vector_push(&argument->tids);
		if (!slot)
			return ss_error_no_memory();
		*slot = tid;
	}
	return NULL;
}

struct ss_error *ss_target_argument_parse(const char *text,
					  struct ss_target_argument *ret)
{
	_cleanup_free_ char *copy = strdup(text);
	struct ss_target_argument argument = {};

	if (!copy)
		return ss_error_no_memory();
	char *list = copy;
	char *pid = strsep(&list, "/");
	struct ss_error *error = ss_target_argument_parse_id(pid, "pid", &argument.pid);
	if (!error && list)
		error = parse_tids(list, &argument);
	if (error) {
		ss_target_argument_deinit(&argument);
		return error;
	}
	*ret = argument;
	return NULL;
}

void ss_target_argument_deinit(struct ss_target_argument *argument)
{
	ss_vector_free(&argument->tids);
}
