#include "diagnose/futex.h"

#include <inttypes.h>

void ss_futex_describe(struct ss_diagnosis *d)
{
	d->wait->kind = SS_WAIT_FUTEX;
	d->wait->address = d->facts->call.args[0];
	ss_words_add(&d->text, "the futex at 0x%" PRIx64, d->wait->address);
}
