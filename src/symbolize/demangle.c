#include "symbolize/names.h"

#include <ctype.h>
#include <demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"

enum { MANGLED_MAX = 64 * 1024, D_MANGLED_MAX = 4096, ADA_MANGLED_MAX = 4096 };

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
static char *demangle_prefixed(const char *mangled, size_t *budget)
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

/* Whether text ends with that; *size is then without it. */
static bool cut_end(const char *text, size_t *size, const char *end)
{
	const size_t length = strlen(end);

	if (*size <= length || memcmp(text + *size - length, end, length) != 0)
		return false;
	*size -= length;
	return true;
}

/* The same with a character and digits. */
static bool cut_number(const char *text, size_t *size, char before)
{
	size_t at = *size;

	while (at > 0 && isdigit((unsigned char)text[at - 1]))
		at--;
	if (at == *size || at < 2 || text[at - 1] != before)
		return false;
	*size = at - 1;
	return true;
}

/*
 * OCaml: "camlStdlib__List__iter_507", "camlStdlib__List.iter_507" since 5.1. The number makes the name
 * unique; functions without a name are all called "fun". Other characters are "$" and two digits
 * (asmcomp/asmlink.ml, Compilenv.make_symbol).
 */
static bool demangle_ocaml(const char *mangled, size_t size, struct ss_buffer *ret)
{
	static const char prefix[] = "caml";
	static const char wrapper[] = "Dune__exe__";
	size_t at = sizeof(prefix) - 1;

	if (strncmp(mangled, prefix, at) != 0 || !isupper((unsigned char)mangled[at]))
		return false;
	if (strncmp(mangled + at, wrapper, sizeof(wrapper) - 1) == 0)
		at += sizeof(wrapper) - 1;
	size_t named = size;
	const bool number = cut_number(mangled, &named, '_');
	size_t rest = named;
	if (cut_end(mangled, &rest, number ? "fun" : "entry") &&
	    strchr("_.", mangled[rest - 1]))
		named = size;
	else if (!number)
		return false;
	for (; at < named; at++) {
		unsigned code;
		if (mangled[at] == '_' && mangled[at + 1] == '_' && at + 2 < named) {
			ss_buffer_add_byte(ret, '.');
			at++;
		} else if (mangled[at] == '$' && at + 2 < named &&
			   isxdigit((unsigned char)mangled[at + 1]) &&
			   isxdigit((unsigned char)mangled[at + 2]) &&
			   sscanf(mangled + at + 1, "%2x", &code) == 1 && code >= ' ') {
			ss_buffer_add_byte(ret, (uint8_t)code);
			at += 2;
		} else {
			ss_buffer_add_byte(ret, (uint8_t)mangled[at]);
		}
	}
	/* Data have only a number. */
	return ret->bytes && strchr(ret->bytes, '.') && ret->bytes[ret->size - 1] != '.';
}

/* Adds the name of a scope of Pascal, without the types of its arguments, and a dot. */
static void add_scope(const char *name, size_t size, struct ss_buffer *ret)
{
	const char *types = memchr(name, '$', size);

	size = types ? (size_t)(types - name) : size;
	if (size == 0)
		return;
	ss_buffer_add(ret, name, size);
	ss_buffer_add_byte(ret, '.');
}

/*
 * Free Pascal: UNIT_$$_NAME$ARGUMENTS$$RESULT; P$PROGRAM for the unit of a program; after the unit
 * come classes and functions, as in UNIT$_$CLASS_$__$$_NAME and UNIT$_$OUTER$ARGUMENTS_$$_NAME
 * (make_mangledname() in compiler/symdef.pas).
 */
static bool demangle_pascal(const char *mangled, size_t size, struct ss_buffer *ret)
{
	static const char separator[] = "_$$_";
	static const char *const prefixes[] = { "U_$", "TC_$", "P$" }; /* variables */
	const char *at = mangled;
	const char *name = NULL;

	for (const char *next = mangled; (next = strstr(next, separator)); next++)
		name = next;
	if (!name || name == mangled)
		return false;
	for (size_t i = 0; i < SS_ARRAY_SIZE(prefixes); i++) {
		if (strncmp(at, prefixes[i], strlen(prefixes[i])) == 0)
			at += strlen(prefixes[i]);
	}
	if (at >= name || !isupper((unsigned char)*at) || strncmp(at, "RTTI_$", 6) == 0 ||
	    strncmp(at, "VMT_$", 5) == 0 || strncmp(at, "INIT_$", 6) == 0 ||
	    strncmp(at, "RESSTR_$", 8) == 0)
		return false;
	while (at < name) {
		const char *end = at + 1;
		while (end < name && strncmp(end, "$_$", 3) != 0 &&
		       strncmp(end, "_$_", 3) != 0)
			end++;
		add_scope(at, (size_t)(end - at), ret);
		at = SS_MIN(end + 3, name);
	}
	at = name + strlen(separator);
	at += *at == '$'; /* an operator */
	const size_t left = (size_t)(mangled + size - at);
	const char *types = memchr(at, '$', left);
	ss_buffer_add(ret, at, types ? (size_t)(types - at) : left);
	return types != at && left > 0;
}

/* The z-encoding of GHC (compiler/GHC/Utils/Encoding.hs): pairs of a code and what it stands for. */
static const char after_z[] = "a&b|c^d$e=g>h#i.l<m-n!p+q'r\\s/t*u_v%zz";
static const char after_Z[] = "L(R)M[N]C:ZZ";

static const char *find_code(const char *codes, char code)
{
	for (; *codes; codes += 2) {
		if (*codes == code)
			return codes + 1;
	}
	return NULL;
}

/* A tuple is "Z", the number of its members, and "T", or "H" if it is unboxed. */
static size_t add_tuple(const char *at, struct ss_buffer *ret)
{
	unsigned count = 0;
	char kind;
	int length = 0;

	if (sscanf(at, "%3u%c%n", &count, &kind, &length) < 2 ||
	    (kind != 'T' && kind != 'H') || count > 64)
		return 0;
	ss_buffer_printf(ret, "%s", kind == 'H' ? "(#" : "(");
	for (unsigned i = 1; i < count; i++)
		ss_buffer_add_byte(ret, ',');
	ss_buffer_printf(ret, "%s", kind == 'H' ? "#)" : ")");
	return (size_t)length;
}

/* False: it is not encoded in this way. */
static bool add_z_decoded(const char *at, size_t size, struct ss_buffer *ret)
{
	const char *end = at + size;

	while (at < end) {
		const char *codes = *at == 'z' ? after_z : after_Z;
		if (*at != 'z' && *at != 'Z') {
			ss_buffer_add_byte(ret, (uint8_t)*at++);
			continue;
		}
		if (++at == end)
			return false;
		const char *letter = find_code(codes, *at);
		const size_t tuple = !letter && codes == after_Z ? add_tuple(at, ret) : 0;
		if (!letter && tuple == 0)
			return false;
		if (letter)
			ss_buffer_add_byte(ret, (uint8_t)*letter);
		at += letter ? 1 : tuple;
	}
	return true;
}

/*
 * GHC: PACKAGE_MODULE_NAME_info, each encoded, so that "_" only separates them. The main package has
 * no name; names of local functions are followed by something that makes them unique.
 * certain: it is a program of GHC. Otherwise the encoded dot of a module tells.
 */
static bool demangle_haskell(const char *mangled, size_t size, bool certain,
			     struct ss_buffer *ret)
{
	enum { PARTS = 4 };
	const char *parts[PARTS + 1] = { mangled };
	size_t count = 1;

	if (!cut_end(mangled, &size, "_info") && !cut_end(mangled, &size, "_entry") &&
	    !cut_end(mangled, &size, "_slow") && !cut_end(mangled, &size, "_fast") &&
	    !cut_end(mangled, &size, "_closure"))
		return false;
	if (!cut_end(mangled, &size, "_con"))
		(void)cut_end(mangled, &size, "_static"); /* or neither */
	for (size_t i = 0; i < size; i++) {
		if (mangled[i] != '_')
			continue;
		if (count == PARTS)
			return false;
		parts[count++] = mangled + i + 1;
	}
	parts[count] = mangled + size + 1;
	const size_t package = !isupper((unsigned char)*mangled) || count > 3 ||
			       (count == 3 && isupper((unsigned char)*parts[1]));
	if (count < package + 2 || !isupper((unsigned char)*parts[package]))
		return false;
	const size_t module = (size_t)(parts[package + 1] - parts[package]) - 1;
	const size_t name = (size_t)(parts[package + 2] - parts[package + 1]) - 1;
	if ((!certain && !memmem(parts[package], module, "zi", 2)) || name == 0 ||
	    !add_z_decoded(parts[package], module, ret))
		return false;
	ss_buffer_add_byte(ret, '.');
	return add_z_decoded(parts[package + 1], name, ret);
}

static char *take_text(struct ss_buffer *text, bool valid, size_t *budget)
{
	*budget -= SS_MIN(*budget, text->size);
	if (!valid || text->failed)
		return NULL;
	return take_ptr(text->bytes);
}

/* Names that no other compiler makes */
static char *demangle_unmistakable(const char *mangled, size_t *budget)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	const size_t size = strlen(mangled);
	bool valid = false;

	if (*budget == 0)
		return NULL;
	if (!isupper((unsigned char)mangled[0]))
		valid = demangle_ocaml(mangled, size, &text);
	if (!valid && strchr(mangled, '$')) {
		ss_buffer_clear(&text);
		valid = demangle_pascal(mangled, size, &text);
	}
	if (!valid) {
		ss_buffer_clear(&text);
		valid = demangle_haskell(mangled, size, false, &text);
	}
	return take_text(&text, valid, budget);
}

char *ss_name_demangle(const char *name, size_t *budget)
{
	if (strnlen(name, MANGLED_MAX + 1) > MANGLED_MAX)
		return NULL;
	return name[0] == '_' ? demangle_prefixed(name, budget) :
				demangle_unmistakable(name, budget);
}

/* GNAT: "package__subprogram", "_ada_main". Nested functions end in a dot and a number. */
static char *demangle_ada(const char *mangled, size_t *budget)
{
	size_t size = strlen(mangled);

	(void)cut_number(mangled, &size, '.'); /* or none */
	_cleanup_free_ char *plain = size <= ADA_MANGLED_MAX ? strndup(mangled, size) :
							       NULL;
	_cleanup_free_ char *result = plain ? ada_demangle(plain, DMGL_GNAT) : NULL;
	if (!result || result[0] == '<' || strcmp(result, mangled) == 0)
		return NULL;
	*budget -= SS_MIN(*budget, strlen(result));
	return take_ptr(result);
}

static char *demangle_ghc(const char *mangled, size_t *budget)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	const bool valid = demangle_haskell(mangled, strlen(mangled), true, &text);

	return take_text(&text, valid, budget);
}

enum ss_name_compiler ss_name_find_compiler(const char *name)
{
	const size_t size = strnlen(name, MANGLED_MAX + 1);
	size_t named = size;

	if (size > MANGLED_MAX)
		return SS_COMPILER_OTHER;
	if (isupper((unsigned char)name[0]) || cut_end(name, &named, "_info"))
		return SS_COMPILER_GHC;
	if (strncmp(name, "_ada_", 5) == 0 ||
	    (islower((unsigned char)name[0]) && strstr(name, "__")))
		return SS_COMPILER_GNAT;
	return SS_COMPILER_OTHER;
}

char *ss_name_demangle_of(enum ss_name_compiler compiler, const char *name,
			  size_t *budget)
{
	if (compiler == SS_COMPILER_OTHER || *budget == 0 ||
	    ss_name_find_compiler(name) != compiler)
		return NULL;
	return compiler == SS_COMPILER_GHC ? demangle_ghc(name, budget) :
					     demangle_ada(name, budget);
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
