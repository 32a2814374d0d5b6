#include "symbolize/names.h"

#include <ctype.h>
#include <demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { MANGLED_MAX = 64 * 1024, D_MANGLED_MAX = 4096 };

/*
 * With its recursion limit, libiberty refuses C++ names of more than 1,024 bytes. Without
 * the limit its stack grows with the length of the name, by at most 216 bytes for each
 * byte (of "FFF..."), plus 1,024 frames of its printer, which always has a limit.
 */
enum {
	CPLUS_USUAL = 1024,
	CPLUS_STACK_PER_BYTE = 320,
	CPLUS_STACK = 1 << 20,
	CPLUS_STACK_MAX = 64 << 20, /* enough for the longest */
};

/* Ten times the longest name found in real programs. */
enum { DEMANGLED_MAX = 1 << 20 };

/* A back reference in D can repeat everything before it: N of them multiply a name by
   3^(N/3) at worst, and dlang_demangle() cannot be interrupted. */
enum { D_REFERENCES_MAX = 24 };

/* Collects the demangler's output. The callback cannot ask it to stop, hence the longjmp():
   the demangler keeps its state on the stack, except for the letters of one Rust
   identifier, which leak if the limit is reached there. */
struct output {
	char *bytes;
	size_t size;
	size_t capacity;
	size_t max;
	jmp_buf stop;
};

static bool output_grow(struct output *output, size_t needed)
{
	size_t capacity = SS_MAX(output->capacity * 2, needed + 256);
	char *bytes = needed <= output->max ? realloc(output->bytes, capacity) : NULL;

	if (!bytes)
		return false;
	output->bytes = bytes;
	output->capacity = capacity;
	return true;
}

static void output_append(const char *piece, size_t size, void *data)
{
	struct output *output = data;

	if (size == 0) /* libiberty passes empty pieces, which may be NULL */
		return;
	if (output->size + size + 1 > output->capacity &&
	    !output_grow(output, output->size + size + 1))
		longjmp(output->stop, 1);
	memcpy(output->bytes + output->size, piece, size);
	output->size += size;
	output->bytes[output->size] = '\0';
}

typedef int demangler(const char *mangled, int options, demangle_callbackref callback,
		      void *data);

/* A function of its own, because no variable may live across setjmp(). */
static bool demangle_into(demangler *function, const char *mangled, int options,
			  struct output *output)
{
	return setjmp(output->stop) == 0 &&
	       function(mangled, options, output_append, output) != 0;
}

static char *demangle_pieces(demangler *function, const char *mangled, int options,
			     size_t *budget)
{
	struct output output = { .max = SS_MIN(*budget, (size_t)DEMANGLED_MAX) };
	bool done = demangle_into(function, mangled, options, &output);

	*budget -= SS_MIN(*budget, output.size);
	if (done)
		return output.bytes;
	free(output.bytes);
	return NULL;
}

/* Without DMGL_VERBOSE the hash of a Rust name is omitted. */
static char *demangle_rust(const char *mangled, size_t *budget)
{
	return demangle_pieces(rust_demangle_callback, mangled, DMGL_NO_OPTS, budget);
}

/* For the initial thread pthread_getattr_np() reads /proc/self/maps, which the sandbox does
   not allow. The bytes that AT_RANDOM points to are at the top of its stack. */
static size_t first_stack_left(uintptr_t here)
{
	uintptr_t top = getauxval(AT_RANDOM);
	struct rlimit limit;

	if (!top || getrlimit(RLIMIT_STACK, &limit) != 0)
		return 0;
	/* With a large limit, another mapping may be in the way. */
	size_t size = SS_MIN(limit.rlim_cur, (rlim_t)CPLUS_STACK_MAX);
	return here < top && top - here < size ? size - (top - here) : 0;
}

/* The bytes that remain of this thread's stack; 0: unknown. */
static size_t stack_left(void)
{
	pthread_attr_t attr;
	void *lowest = NULL;
	size_t size = 0;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (gettid() == getpid())
		return first_stack_left(here);
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return 0;
	bool known = pthread_attr_getstack(&attr, &lowest, &size) == 0;
	(void)pthread_attr_destroy(&attr); /* frees its CPU set */
	return known && here - (uintptr_t)lowest < size ? here - (uintptr_t)lowest : 0;
}

static char *demangle_cplus(const char *mangled, size_t *budget)
{
	size_t size = strlen(mangled);
	int options = DMGL_PARAMS;

	if (size > CPLUS_USUAL) {
		if (stack_left() < CPLUS_STACK + size * CPLUS_STACK_PER_BYTE)
			return NULL;
		options |= DMGL_NO_RECURSE_LIMIT;
	}
	return demangle_pieces(cplus_demangle_v3_callback, mangled, options, budget);
}

static char *demangle_d(const char *mangled, size_t *budget)
{
	size_t references = 0;
	char *result;

	if (strlen(mangled) > D_MANGLED_MAX || !*budget)
		return NULL;
	for (const char *c = mangled; *c; c++)
		references += *c == 'Q';
	if (references > D_REFERENCES_MAX)
		return NULL;
	result = dlang_demangle(mangled, DMGL_DLANG);
	if (result)
		*budget -= SS_MIN(*budget, strlen(result));
	return result;
}

/* C has names such as _Zap and _Done, so the characters after the prefix decide. */
static char *demangle_plain(const char *mangled, size_t *budget)
{
	char *result = NULL;

	if (strncmp(mangled, "_ZN", 3) == 0 || strncmp(mangled, "_R", 2) == 0)
		result = demangle_rust(mangled, budget);
	if (!result && strncmp(mangled, "_Z", 2) == 0)
		result = demangle_cplus(mangled, budget);
	if (!result && strncmp(mangled, "_D", 2) == 0 &&
	    (isdigit((unsigned char)mangled[2]) || strcmp(mangled, "_Dmain") == 0))
		result = demangle_d(mangled, budget);
	return result;
}

char *ss_name_demangle(const char *name, size_t *budget)
{
	if (name[0] != '_' || strnlen(name, MANGLED_MAX + 1) > MANGLED_MAX)
		return NULL;
	return demangle_plain(name, budget);
}

/* Whether text is a symbol version, as in a version script of the linker. */
static bool is_version(const char *text)
{
	const char *at = text;

	while (isalnum((unsigned char)*at) || (*at && strchr("._-", *at)))
		at++;
	return at > text && *at == '\0';
}

size_t ss_name_plain_size(const char *name)
{
	const char *at = strrchr(name, '@');

	if (!at || !is_version(at + 1))
		return strlen(name);
	if (at > name && at[-1] == '@') /* of the default version */
		at--;
	return at > name ? (size_t)(at - name) : strlen(name);
}
