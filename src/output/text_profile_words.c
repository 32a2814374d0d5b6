/* What the parts of a profile as text share. */
#include <string.h>

#include "output/escape.h"
#include "output/quantity.h"
#include "output/style.h"
#include "output/text.h"
#include "output/text_profile.h"
#include "profile/label.h"

void ss_text_profile_share(uint64_t part, uint64_t whole, FILE *out)
{
	(void)fprintf(out, "%6.1f %%",
		      whole ? 100.0 * (double)part / (double)whole : 0.0);
}

void ss_text_profile_name(const struct ss_profile *profile, uint64_t function,
			  const struct ss_format_options *options, FILE *out)
{
	const struct ss_profile_function *f = ss_profile_function_at(profile, function);

	ss_text_write_symbol(strdup(f->name), options->verbose, out);
	if (f->module == SS_ID_NONE || f->place) /* it contains the module */
		return;
	const char *base = ss_label_base(profile->modules.items[f->module].path);
	(void)fputs(" (", out);
	ss_escape_write(base, NULL, out);
	(void)fputc(')', out);
}

void ss_text_profile_function(const struct ss_condensed *condensed, uint64_t function,
			      const struct ss_places *places,
			      const struct ss_format_options *options, FILE *out)
{
	if (places->count == 1) {
		ss_text_profile_name(condensed->original, places->first, options, out);
		return;
	}
	if (places->count == 0) {
		ss_text_profile_name(&condensed->profile, function, options, out);
		return;
	}
	ss_escape_write(ss_profile_function_at(&condensed->profile, function)->name, NULL,
			out);
	(void)fputs(" (no symbols: ", out);
	ss_quantity_write_things(places->count, "address", out);
	(void)fputc(')', out);
}

void ss_text_profile_heading(const char *text, const struct ss_format_options *options,
			     FILE *out)
{
	(void)fputc('\n', out);
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	(void)fputs(text, out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputc('\n', out);
}
