#include "diagnose/duration.h"

#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

void ss_duration_write(uint64_t time_ns, struct ss_words *words)
{
	uint64_t minutes = time_ns / NS_PER_S / 60;

	if (time_ns < NS_PER_S)
		ss_words_add(words, "%.3g ms", (double)time_ns / 1e6);
	else if (minutes < 2)
		ss_words_add(words, "%.4g s", (double)time_ns / 1e9);
	else if (minutes < 120)
		ss_words_add(words, "%" PRIu64 " min", minutes);
	else if (minutes < UINT64_C(48) * 60)
		ss_words_add(words, "%" PRIu64 " h", minutes / 60);
	else
		ss_words_add(words, "%" PRIu64 " days", minutes / 60 / 24);
}

/* Two 64-bit words: seconds, and a fraction of which there are per_second. */
static bool read_pair(const struct ss_memory_fact *memory, uint64_t per_second,
		      uint64_t *ret)
{
	int64_t pair[2];
	uint64_t ns;

	if (memory->size != sizeof(pair))
		return false;
	memcpy(pair, memory->bytes, sizeof(pair));
	if (pair[0] < 0 || pair[1] < 0 ||
	    __builtin_mul_overflow((uint64_t)pair[0], NS_PER_S, &ns) ||
	    __builtin_add_overflow(ns, (uint64_t)pair[1] * (NS_PER_S / per_second), &ns))
		return false;
	*ret = SS_MIN(ns, (uint64_t)INT64_MAX);
	return true;
}

/* A point in time; what was left until then at the moment of the capture. */
static void set_deadline(struct ss_diagnosis *d, uint64_t deadline_ns, clockid_t clock)
{
	const struct ss_facts *facts = d->snapshot->facts;
	uint64_t now = clock == CLOCK_REALTIME	? facts->time_ns :
		       clock == CLOCK_MONOTONIC ? facts->monotonic_ns :
						  0;

	if (now)
		d->wait->left_ns = deadline_ns > now ? (int64_t)(deadline_ns - now) : 0;
}

static bool is_absolute(const struct ss_diagnosis *d)
{
	return d->facts->call.number == SYS_clock_nanosleep &&
	       (d->facts->call.args[1] & TIMER_ABSTIME);
}

void ss_duration_read(struct ss_diagnosis *d, const struct ss_call *call)
{
	const struct ss_syscall *made = &d->facts->call;
	int arg = call->timeout - 1;
	uint64_t ns;

	if (arg < 0)
		return;
	if (call->timeout_type == SS_TIMEOUT_MS) {
		int32_t ms = (int32_t)(uint32_t)made->args[arg];
		d->wait->timeout_ns = ms < 0 ? -1 : (int64_t)ms * (int64_t)NS_PER_MS;
		return;
	}
	uint64_t per_second = call->timeout_type == SS_TIMEOUT_VAL ? 1000000 : NS_PER_S;
	if (!read_pair(&d->facts->memory[arg], per_second, &ns))
		return;
	if (is_absolute(d))
		set_deadline(d, ns, (clockid_t)made->args[0]);
	else if (call->timeout_type == SS_TIMEOUT_REALTIME)
		set_deadline(d, ns, CLOCK_REALTIME);
	else
		d->wait->timeout_ns = (int64_t)ns;
}

void ss_duration_write_limit(struct ss_diagnosis *d)
{
	if (d->wait->timeout_ns >= 0) {
		ss_words_add(&d->text, ", for ");
		ss_duration_write((uint64_t)d->wait->timeout_ns, &d->text);
		ss_words_add(&d->text, " at most");
	}
	if (d->wait->left_ns >= 0) {
		ss_words_add(&d->text, ", for another ");
		ss_duration_write((uint64_t)d->wait->left_ns, &d->text);
		ss_words_add(&d->text, " at most");
	}
}
