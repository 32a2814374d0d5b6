/* The name of a symbol. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "symbolize/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = strndup((const char *)data, size);
	size_t budget = SS_DEMANGLE_BUDGET;
	char *demangled = name ? ss_name_demangle(name, &budget) : NULL;

	if (demangled)
		fuzz_touch(demangled, strlen(demangled));
	free(demangled);
	free(name);
	return 0;
}
