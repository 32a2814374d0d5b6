#include "trace/resolve.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/cleanup.h"

bool ss_pattern_has_wildcards(const char *pattern)
{
	return strpbrk(pattern, "*?[") && !strstr(pattern, "operator");
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' ||
	       (unsigned char)c >= 0x80;
}

bool ss_pattern_may_match(const char *pattern, const char *mangled)
{
	const char *best = NULL;
	size_t best_size = 0;

	for (const char *at = pattern; *at && *at != '(';) {
		const char *begin = at;
		while (is_word(*at))
			at++;
		size_t size = (size_t)(at - begin);
		/* Inside a bracket expression are letters, not words. */
		if (*at == '[')
			break;
		/* "operator" is not mangled as such; nor are types. */
		if (size > best_size && strncmp(begin, "operator", 8) != 0 && size >= 3 &&
		    strchr("(*?:", *at)) {
			best = begin;
			best_size = size;
		}
		if (*at == '<') { /* builtin types have other names there */
			unsigned depth = 0;
			for (; *at; at++) {
				depth += *at == '<';
				depth -= *at == '>' && depth;
				if (depth == 0)
					break;
			}
		}
		if (*at)
			at++;
	}
	if (!best || strncmp(best, "std", best_size) == 0 ||
	    strncmp(best, "string", best_size) == 0)
		return true; /* substitutions of the mangling */
	return memmem(mangled, strlen(mangled), best, best_size) != NULL;
}

/* Whether what precedes at is the keyword, so that < and ( belong to the name. */
static bool after_operator(const char *begin, const char *at)
{
	while (at > begin && strchr("<>=-()[]+*/%^&|~!, ", at[-1]))
		at--;
	return at - begin >= 8 && strncmp(at - 8, "operator", 8) == 0 &&
	       (at - begin == 8 || !is_word(at[-9]));
}

/* After the bracket that closes the one at from. */
static const char *skip_brackets(const char *begin, const char *from)
{
	char open = *from;
	char close = open == '<' ? '>' : open == '(' ? ')' : ']';
	unsigned depth = 0;

	for (const char *at = from; *at; at++) {
		if (*at == open &&
		    !(at > from && open == '<' && after_operator(begin, at)))
			depth++;
		else if (*at == close && !(open == '<' && at[-1] == '-'))
			depth--;
		if (depth == 0)
			return at + 1;
	}
	return from + strlen(from);
}

static const char anonymous[] = "(anonymous namespace)";

/* Finds the parameters: the end of the name if it has none. *begin: after the result. */
static const char *find_parameters(const char *name, const char **begin)
{
	const char *at = name;

	*begin = name;
	while (*at) {
		if (strncmp(at, anonymous, sizeof(anonymous) - 1) == 0) {
			at += sizeof(anonymous) - 1;
		} else if (after_operator(*begin, at) && *at != ' ') {
			/* "operator()(int)", "operator<<" */
			at += strncmp(at, "()", 2) == 0 ? 2 : *at == '(' ? 0 : 1;
			if (*at == '(')
				return at;
		} else if (*at == '<') {
			at = skip_brackets(*begin, at);
		} else if (*at == '(') {
			return at;
		} else if (*at == ' ' && !after_operator(*begin, at)) {
			*begin = ++at;
		} else {
			at++;
		}
	}
	return at;
}

static bool skip_word(const char **at, const char *word)
{
	size_t size = strlen(word);

	if (strncmp(*at, word, size) != 0)
		return false;
	*at += size;
	return true;
}

/* What a name has and people do not type. */
static bool skip_unsaid(const char *begin, const char **name, const char *pattern)
{
	if (strncmp(*name, "[abi:", 5) == 0) {
		*name = skip_brackets(begin, *name);
		return true;
	}
	if ((*name == begin || (*name)[-1] == ':') &&
	    ((*pattern != '_' &&
	      (skip_word(name, "__cxx11::") || skip_word(name, "__1::")))))
		return true;
	if (**name == '<' && *pattern != '<' && !after_operator(begin, *name)) {
		*name = skip_brackets(begin, *name);
		return true;
	}
	return false;
}

/* The rest of the template arguments, if the pattern ends its list here. */
static bool skip_arguments(const char **name)
{
	unsigned depth = 0;
	const char *at = *name;

	for (; *at && !(*at == '>' && depth == 0); at++) {
		depth += *at == '<' || *at == '(';
		depth -= (*at == '>' || *at == ')') && depth;
	}
	*name = at;
	return *at == '>';
}

/* end: of the name, without its parameters. */
static bool matches(const char *pattern, const char *name, const char *end)
{
	const char *begin = name;

	for (;;) {
		while (*pattern == ' ')
			pattern++;
		while (*name == ' ')
			name++;
		if (!*pattern && (name >= end || !*name))
			return true;
		if (name < end && skip_unsaid(begin, &name, pattern))
			continue;
		if (*pattern && *pattern == *name) {
			pattern++;
			name++;
			continue;
		}
		if (*pattern == '>' && *name == ',' && skip_arguments(&name))
			continue;
		return false;
	}
}

static bool matches_wildcards(const char *pattern, const char *begin, const char *end)
{
	_cleanup_buffer_ struct ss_buffer name = {};
	_cleanup_buffer_ struct ss_buffer plain = {};

	for (const char *at = begin; at < end; at++) {
		if (*at != ' ')
			ss_buffer_add_byte(&name, (uint8_t)*at);
	}
	for (const char *at = pattern; *at; at++) {
		if (*at != ' ')
			ss_buffer_add_byte(&plain, (uint8_t)*at);
	}
	return name.bytes && plain.bytes && !name.failed && !plain.failed &&
	       fnmatch(plain.bytes, name.bytes, 0) == 0;
}

enum ss_pattern_match ss_pattern_match(const char *pattern, const char *name)
{
	const char *begin;
	const char *end = find_parameters(name, &begin);

	if (ss_pattern_has_wildcards(pattern))
		return matches_wildcards(pattern, begin, end) ? SS_PATTERN_WHOLE :
								SS_PATTERN_NO;
	if (matches(pattern, begin, end))
		return SS_PATTERN_WHOLE;
	for (const char *at = begin; at < end;) {
		if (*at == '<' && !after_operator(begin, at)) {
			at = skip_brackets(begin, at);
			continue;
		}
		if (at[0] == ':' && at[1] == ':' && matches(pattern, at + 2, end))
			return SS_PATTERN_SUFFIX;
		at++;
	}
	return SS_PATTERN_NO;
}

/* The last colon that is not one of "::", and not in brackets. */
static const char *find_colon(const char *text)
{
	const char *found = NULL;

	for (const char *at = text; *at && !strchr("<(", *at); at++) {
		if (*at != ':')
			continue;
		if (at[1] == ':')
			at++;
		else
			found = at;
	}
	return found;
}

/* A number to the end of the text. */
static bool read_number(const char *text, int base, unsigned long *ret)
{
	char *end = NULL;

	if (!isxdigit((unsigned char)*text))
		return false;
	errno = 0;
	*ret = strtoul(text, &end, base);
	return *end == '\0' && errno == 0;
}

bool ss_pattern_parse(const char *text, struct ss_pattern *ret)
{
	const char *colon = find_colon(text);
	const char *plus = strrchr(text, '+');
	struct ss_pattern pattern = {};
	const char *split = colon;

	if (plus > text && strncmp(plus, "+0x", 3) == 0 &&
	    read_number(plus + 3, 16, &pattern.number)) {
		pattern.kind = SS_PATTERN_OFFSET;
		split = plus;
	} else if (colon && read_number(colon + 1, 10, &pattern.number)) {
		pattern.kind = SS_PATTERN_LINE;
	}
	bool ok = true;
	if (split) {
		pattern.scope = strndup(text, (size_t)(split - text));
		ok = pattern.scope;
	}
	if (pattern.kind == SS_PATTERN_FUNCTION) {
		pattern.function = strdup(split ? split + 1 : text);
		ok &= pattern.function != NULL;
	}
	if (ok)
		*ret = pattern;
	else
		ss_pattern_deinit(&pattern);
	return ok;
}

void ss_pattern_deinit(struct ss_pattern *pattern)
{
	free(pattern->scope);
	free(pattern->function);
	*pattern = (struct ss_pattern){};
}

bool ss_pattern_is_module(const char *scope, const char *path)
{
	const char *base = ss_path_base(path);

	if (!scope)
		return true;
	if (strchr(scope, '/'))
		return strcmp(scope, path) == 0;
	if (strpbrk(scope, "*?["))
		return fnmatch(scope, base, 0) == 0;
	size_t size = strlen(scope);
	return strncmp(scope, base, size) == 0 &&
	       (base[size] == '\0' || strncmp(base + size, ".so", 3) == 0 ||
		(base[size] == '-' && isdigit((unsigned char)base[size + 1])));
}
