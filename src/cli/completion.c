#include "cli/completion.h"

#include <argp.h>
#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/options.h"
#include "view/mode.h"

/* What each shell does with one option. */
typedef void option_writer(const struct argp_option *option, FILE *out);

static void each_option(const struct argp *argp, option_writer *write, FILE *out)
{
	const struct argp_option *o = argp->options;

	for (; o && (o->name || o->key || o->doc); o++) {
		if (o->name && !(o->flags & OPTION_HIDDEN))
			write(o, out);
	}
	for (const struct argp_child *c = argp->children; c && c->argp; c++)
		each_option(c->argp, write, out);
}

/* argp adds these itself: they are in no table. */
static const struct argp_option help_options[] = {
	{ "help", '?', NULL, 0, "Print the help", 0 },
	{ "usage", 0x1000, NULL, 0, "Print a short usage message", 0 },
	{},
};
static const struct argp help_argp = { .options = help_options };

static void each_known_option(option_writer *write, FILE *out)
{
	/* the commands share their options so far; each of them adds its own here */
	for (size_t i = 0; ss_command_at(i); i++)
		each_option(ss_command_at(i)->argp, write, out);
	each_option(&help_argp, write, out);
}

static bool has_letter(const struct argp_option *option)
{
	return option->key > 0 && option->key < 0x80 && isalnum(option->key);
}

static void write_commands(FILE *out)
{
	for (size_t i = 0; ss_command_at(i); i++)
		(void)fprintf(out, "%s%s", i ? " " : "", ss_command_at(i)->name);
}

/* The words that may follow an option, separated by spaces; nothing if any may. */
static void write_values(enum ss_value_kind kind, FILE *out)
{
	const struct ss_renderer *renderer = NULL;

	if (kind == SS_VALUE_SHELL)
		(void)fputs("bash zsh fish", out);
	for (int i = SS_MODE_STOP; kind == SS_VALUE_MODE && i <= SS_MODE_AUTO; i++)
		(void)fprintf(out, "%s%s", i > SS_MODE_STOP ? " " : "",
			      ss_mode_name((enum ss_mode)i));
	for (size_t i = 0; kind == SS_VALUE_FORMAT && (renderer = ss_renderer_at(i)); i++)
		(void)fprintf(out, "%s%s", i ? " " : "", renderer->name);
}

static void write_bash_name(const struct argp_option *option, FILE *out)
{
	if (has_letter(option))
		(void)fprintf(out, "-%c ", option->key);
	(void)fprintf(out, "--%s%s ", option->name, option->arg ? "=" : "");
}

static void write_bash_case(const struct argp_option *option, FILE *out)
{
	enum ss_value_kind kind = ss_options_value_kind(option->key);

	if (!option->arg)
		return;
	(void)fprintf(out, "\t--%s", option->name);
	if (has_letter(option))
		(void)fprintf(out, "|-%c", option->key);
	(void)fputs(")\n\t\t", out);
	if (kind == SS_VALUE_FILE || kind == SS_VALUE_DIRECTORY) {
		(void)fprintf(out, "COMPREPLY=($(compgen -%c -- \"$cur\"))",
			      kind == SS_VALUE_FILE ? 'f' : 'd');
	} else {
		(void)fputs("COMPREPLY=($(compgen -W '", out);
		write_values(kind, out);
		(void)fputs("' -- \"$cur\"))", out);
	}
	(void)fputs("; return ;;\n", out);
}

static void print_bash(FILE *out)
{
	(void)fputs("# bash completion for stacksnap\n"
		    "_stacksnap()\n{\n"
		    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} "
		    "prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		    "\tCOMPREPLY=()\n"
		    "\tif [[ $cur == = ]]; then cur=\n"
		    "\telif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
		    "\tcase $prev in\n",
		    out);
	each_known_option(write_bash_case, out);
	(void)fputs("\tesac\n\tif [[ $cur == -* ]]; then\n"
		    "\t\tCOMPREPLY=($(compgen -W '",
		    out);
	each_known_option(write_bash_name, out);
	(void)fputs("' -- \"$cur\"))\n"
		    "\t\t[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
		    "\t\treturn\n\tfi\n\tlocal words\n"
		    "\twords=$(cd /proc && printf '%s ' [0-9]*)\n"
		    "\t(( COMP_CWORD == 1 )) && words+=' ",
		    out);
	write_commands(out);
	(void)fputs("'\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
		    "complete -F _stacksnap stacksnap\n",
		    out);
}

/* A description inside of single quotes and, for zsh, brackets. */
static void write_description(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '\'')
			(void)fputs("'\\''", out);
		else if (*text == '[' || *text == ']' || *text == ':')
			(void)fprintf(out, "\\%c", *text);
		else
			(void)fputc(*text, out);
	}
}

static void write_zsh_value(const struct argp_option *option, FILE *out)
{
	enum ss_value_kind kind = ss_options_value_kind(option->key);

	if (!option->arg)
		return;
	(void)fprintf(out, ":%s:", option->arg);
	if (kind == SS_VALUE_FILE)
		(void)fputs("_files", out);
	if (kind == SS_VALUE_DIRECTORY)
		(void)fputs("_files -/", out);
	if (kind == SS_VALUE_FORMAT || kind == SS_VALUE_MODE || kind == SS_VALUE_SHELL) {
		(void)fputc('(', out);
		write_values(kind, out);
		(void)fputc(')', out);
	}
}

static void write_zsh_option(const struct argp_option *option, FILE *out)
{
	if (has_letter(option)) {
		(void)fprintf(out, "\t'*-%c%s[", option->key, option->arg ? "+" : "");
		write_description(option->doc, out);
		(void)fputc(']', out);
		write_zsh_value(option, out);
		(void)fputs("' \\\n", out);
	}
	(void)fprintf(out, "\t'*--%s%s[", option->name, option->arg ? "=" : "");
	write_description(option->doc, out);
	(void)fputc(']', out);
	write_zsh_value(option, out);
	(void)fputs("' \\\n", out);
}

static void print_zsh(FILE *out)
{
	(void)fputs("#compdef stacksnap\n_arguments -s \\\n", out);
	each_known_option(write_zsh_option, out);
	(void)fputs("\t'1:command or pid:{ compadd ", out);
	write_commands(out);
	(void)fputs("; _pids }' \\\n\t'*:pid:_pids'\n", out);
}

static void write_fish_option(const struct argp_option *option, FILE *out)
{
	enum ss_value_kind kind = ss_options_value_kind(option->key);

	(void)fprintf(out, "complete -c stacksnap -l %s", option->name);
	if (has_letter(option))
		(void)fprintf(out, " -s %c", option->key);
	if (option->arg)
		(void)fputs(kind == SS_VALUE_FILE ? " -r -F" : " -x", out);
	if (kind == SS_VALUE_DIRECTORY)
		(void)fputs(" -a '(__fish_complete_directories)'", out);
	if (kind == SS_VALUE_FORMAT || kind == SS_VALUE_MODE || kind == SS_VALUE_SHELL) {
		(void)fputs(" -a '", out);
		write_values(kind, out);
		(void)fputc('\'', out);
	}
	(void)fprintf(out, " -d '%s'\n", option->doc);
}

static void print_fish(FILE *out)
{
	(void)fputs("# fish completion for stacksnap\n"
		    "complete -c stacksnap -f -a '(__fish_complete_pids)'\n"
		    "complete -c stacksnap -f -n __fish_is_first_arg -a '",
		    out);
	write_commands(out);
	(void)fputs("'\n", out);
	each_known_option(write_fish_option, out);
}

static const struct {
	const char *shell;
	void (*print)(FILE *out);
} printers[] = {
	{ "bash", print_bash },
	{ "zsh", print_zsh },
	{ "fish", print_fish },
};

bool ss_completion_print(const char *shell, FILE *out)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(printers); i++) {
		if (strcmp(printers[i].shell, shell) != 0)
			continue;
		printers[i].print(out);
		return true;
	}
	return false;
}

const char *ss_completion_shells(void)
{
	return "bash, zsh, fish";
}
