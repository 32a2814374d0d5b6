#include "cli/command.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/arguments.h"
#include "data/names.h"
#include "report/format.h"

/* What may follow an option or a command, derived from its name in the help. */
enum kind { KIND_ANY, KIND_WORDS, KIND_FILE, KIND_DIRECTORY };

/* What each shell does with one option. */
typedef void option_writer(const struct ss_command *command,
			   const struct ss_option *option, FILE *out);

static void each_option(const struct ss_command *command,
			const struct ss_option_group *group, option_writer *write,
			FILE *out)
{
	const struct ss_option *o = group->options;

	for (; o && !ss_option_is_end(o); o++) {
		if (o->name)
			write(command, o, out);
	}
	for (const struct ss_option_child *c = group->children; c && c->group; c++)
		each_option(command, c->group, write, out);
}

static void each_known_option(const struct ss_command *command, option_writer *write,
			      FILE *out)
{
	each_option(command, command->options, write, out);
	each_option(command, &ss_usage_group, write, out);
}

static bool has_argument(const struct ss_command *command, const char *name)
{
	return command->options->args_doc && strstr(command->options->args_doc, name);
}

static bool takes_files(const struct ss_command *command)
{
	return has_argument(command, "RECORDING") || has_argument(command, "COREFILE");
}

static enum kind kind_of(const struct ss_option *option)
{
	if (strcmp(option->arg, "FILE") == 0)
		return KIND_FILE;
	if (strcmp(option->arg, "DIR") == 0)
		return KIND_DIRECTORY;
	return strcmp(option->arg, "MODE") == 0 || strcmp(option->arg, "SHELL") == 0 ||
			       strcmp(option->arg, "WHEN") == 0 ||
			       strcmp(option->name, "format") == 0 ?
		       KIND_WORDS :
		       KIND_ANY;
}

static void write_commands(FILE *out)
{
	for (size_t i = 0; ss_command_at(i); i++)
		(void)fprintf(out, "%s%s", i ? " " : "", ss_command_at(i)->name);
}

static void write_formats(const struct ss_command *command, FILE *out)
{
	if (command->formats)
		(void)fputs(command->formats, out);
	else
		ss_format_write_names(command->input, " ", out);
}

/* Writes the words that may follow an option, separated by spaces; nothing if there is no
   fixed set. */
static void write_values(const struct ss_command *command, const struct ss_option *option,
			 FILE *out)
{
	if (strcmp(option->arg, "SHELL") == 0)
		(void)fputs("bash zsh fish", out);
	for (int i = SS_MODE_STOP; strcmp(option->arg, "MODE") == 0 && i <= SS_MODE_AUTO;
	     i++)
		(void)fprintf(out, "%s%s", i > SS_MODE_STOP ? " " : "",
			      ss_mode_name((enum ss_mode)i));
	for (size_t i = 0; strcmp(option->arg, "WHEN") == 0 && ss_options_color_name(i);
	     i++)
		(void)fprintf(out, "%s%s", i ? " " : "", ss_options_color_name(i));
	if (strcmp(option->name, "format") == 0)
		write_formats(command, out);
}

static void write_bash_name(const struct ss_command *command,
			    const struct ss_option *option, FILE *out)
{
	(void)command;
	if (option->letter)
		(void)fprintf(out, "-%c ", option->letter);
	(void)fprintf(out, "--%s%s ", option->name, option->arg ? "=" : "");
}

static void write_bash_case(const struct ss_command *command,
			    const struct ss_option *option, FILE *out)
{
	if (!option->arg)
		return;
	enum kind kind = kind_of(option);
	(void)fprintf(out, "\t--%s", option->name);
	if (option->letter)
		(void)fprintf(out, "|-%c", option->letter);
	(void)fputs(")\n\t\t", out);
	if (kind == KIND_FILE || kind == KIND_DIRECTORY) {
		(void)fprintf(out,
			      "compopt -o filenames 2>/dev/null; "
			      "mapfile -t COMPREPLY < <(compgen -%c -- \"$cur\")",
			      kind == KIND_FILE ? 'f' : 'd');
	} else {
		(void)fputs("COMPREPLY=($(compgen -W '", out);
		write_values(command, option, out);
		(void)fputs("' -- \"$cur\"))", out);
	}
	(void)fputs("; return ;;\n", out);
}

static void print_bash_command(const struct ss_command *command, FILE *out)
{
	(void)fprintf(out,
		      "_stacksnap_%s()\n{\n"
		      "\tcase $prev in\n",
		      command->name);
	each_known_option(command, write_bash_case, out);
	(void)fputs("\tesac\n\tif [[ $cur == -* ]]; then\n"
		    "\t\tCOMPREPLY=($(compgen -W '",
		    out);
	each_known_option(command, write_bash_name, out);
	(void)fputs("' -- \"$cur\"))\n"
		    "\t\t[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
		    "\t\treturn\n\tfi\n",
		    out);
	if (takes_files(command)) {
		(void)fputs("\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n}\n", out);
		return;
	}
	(void)fputs("\tlocal words\n"
		    "\twords=$(cd /proc && printf '%s ' [0-9]*)\n"
		    "\t(( COMP_CWORD == 1 )) && words+=' ",
		    out);
	write_commands(out);
	(void)fputs("'\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n", out);
}

static void print_bash(FILE *out)
{
	(void)fputs("# bash completion for stacksnap\n", out);
	for (size_t i = 0; ss_command_at(i); i++)
		print_bash_command(ss_command_at(i), out);
	(void)fputs("_stacksnap()\n{\n"
		    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} "
		    "prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		    "\tCOMPREPLY=()\n"
		    "\tif [[ $cur == = ]]; then cur=\n"
		    "\telif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
		    "\tlocal command=${COMP_WORDS[1]}\n"
		    "\t(( COMP_CWORD > 1 )) || command=\n"
		    "\tdeclare -F \"_stacksnap_$command\" > /dev/null || command=",
		    out);
	(void)fputs(ss_command_at(0)->name, out);
	(void)fputs("\n\t_stacksnap_$command\n}\n"
		    "complete -F _stacksnap stacksnap\n",
		    out);
}

/* Writes a description for use inside single quotes and, in zsh, brackets. */
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

static void write_zsh_value(const struct ss_command *command,
			    const struct ss_option *option, FILE *out)
{
	if (!option->arg)
		return;
	enum kind kind = kind_of(option);
	(void)fprintf(out, ":%s:", option->arg);
	if (kind == KIND_FILE)
		(void)fputs("_files", out);
	if (kind == KIND_DIRECTORY)
		(void)fputs("_files -/", out);
	if (kind == KIND_WORDS) {
		(void)fputc('(', out);
		write_values(command, option, out);
		(void)fputc(')', out);
	}
}

static void write_zsh_option(const struct ss_command *command,
			     const struct ss_option *option, FILE *out)
{
	if (option->letter) {
		(void)fprintf(out, "\t'*-%c%s[", option->letter, option->arg ? "+" : "");
		write_description(option->doc, out);
		(void)fputc(']', out);
		write_zsh_value(command, option, out);
		(void)fputs("' \\\n", out);
	}
	(void)fprintf(out, "\t'*--%s%s[", option->name, option->arg ? "=" : "");
	write_description(option->doc, out);
	(void)fputc(']', out);
	write_zsh_value(command, option, out);
	(void)fputs("' \\\n", out);
}

/* The first word selects the command; without one it is the first command. */
static void print_zsh(FILE *out)
{
	(void)fputs("#compdef stacksnap\ncase $words[2] in\n", out);
	for (size_t i = 1; ss_command_at(i); i++) {
		const struct ss_command *command = ss_command_at(i);
		(void)fprintf(out, "%s)\n_arguments -s \\\n", command->name);
		each_known_option(command, write_zsh_option, out);
		(void)fprintf(out, "\t'1:command:(%s)' \\\n\t'*:%s'\n;;\n", command->name,
			      takes_files(command) ? "recording:_files" : "pid:_pids");
	}
	(void)fputs("*)\n_arguments -s \\\n", out);
	each_known_option(ss_command_at(0), write_zsh_option, out);
	(void)fputs("\t'1:command or pid:{ compadd ", out);
	write_commands(out);
	(void)fputs("; _pids }' \\\n\t'*:pid:_pids'\n;;\nesac\n", out);
}

/* Writes the condition under which the options of a command are offered. */
static void write_fish_condition(const struct ss_command *command, FILE *out)
{
	bool first = command == ss_command_at(0);

	(void)fprintf(out, " -n '%s__fish_seen_subcommand_from", first ? "not " : "");
	for (size_t i = 1; first && ss_command_at(i); i++)
		(void)fprintf(out, " %s", ss_command_at(i)->name);
	(void)fprintf(out, "%s%s'", first ? "" : " ", first ? "" : command->name);
}

static void write_fish_option(const struct ss_command *command,
			      const struct ss_option *option, FILE *out)
{
	enum kind kind = option->arg ? kind_of(option) : KIND_ANY;

	(void)fputs("complete -c stacksnap", out);
	write_fish_condition(command, out);
	(void)fprintf(out, " -l %s", option->name);
	if (option->letter)
		(void)fprintf(out, " -s %c", option->letter);
	if (option->arg)
		(void)fputs(kind == KIND_FILE ? " -r -F" : " -x", out);
	if (kind == KIND_DIRECTORY)
		(void)fputs(" -a '(__fish_complete_directories)'", out);
	if (kind == KIND_WORDS) {
		(void)fputs(" -a '", out);
		write_values(command, option, out);
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
	for (size_t i = 0; ss_command_at(i); i++) {
		if (takes_files(ss_command_at(i))) {
			(void)fputs("complete -c stacksnap", out);
			write_fish_condition(ss_command_at(i), out);
			(void)fputs(" -F\n", out);
		}
		each_known_option(ss_command_at(i), write_fish_option, out);
	}
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
