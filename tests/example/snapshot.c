/*
 * Prints what "stacksnap PID" prints:
 *
 *	cc snapshot.c $(pkg-config --cflags --libs stacksnap)
 */
#include <stdio.h>
#include <stdlib.h>

#include <stacksnap.h>

int main(int argc, char **argv)
{
	struct ss_snapshot *snapshot = NULL;
	struct ss_error *error =
		ss_snapshot_take(argc > 1 ? atoi(argv[1]) : 0, NULL, &snapshot);
	int status = EXIT_SUCCESS;

	if (!error)
		error = ss_snapshot_write(snapshot, "text", 0, stdout);
	if (error) {
		const char *remedy = ss_error_remedy(error);

		fprintf(stderr, "%s\n%s%s", ss_error_message(error), remedy ? remedy : "",
			remedy ? "\n" : "");
		status = EXIT_FAILURE;
	}
	ss_error_free(error);
	ss_snapshot_free(snapshot);
	return status;
}
