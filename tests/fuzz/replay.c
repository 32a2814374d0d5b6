/*
 * The main() of a fuzz program without libFuzzer: runs it on each file given as an argument,
 * and on each file in each directory given. Every input is a heap block of its exact size,
 * so that sanitizers detect reads beyond its end.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat status;

	if (!file || fstat(fileno(file), &status) != 0) {
		perror(path);
		return -1;
	}

	size_t size = (size_t)status.st_size;
	uint8_t *bytes = malloc(size ? size : 1);

	if (!bytes || fread(bytes, 1, size, file) != size) {
		perror(path);
		return -1;
	}
	fclose(file);
	LLVMFuzzerTestOneInput(bytes, size);
	free(bytes);
	return 1;
}

static int replay_directory(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int count = 0;

	if (!directory)
		return replay_file(path);
	while ((entry = readdir(directory))) {
		char name[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (replay_file(name) < 0)
			exit(1);
		count++;
	}
	closedir(directory);
	return count;
}

int main(int argc, char **argv)
{
	int count = 0;

	for (int i = 1; i < argc; i++)
		count += replay_directory(argv[i]);
	printf("%d inputs\n", count);
	return count > 0 ? 0 : 1;
}
