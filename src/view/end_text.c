#include "view/end_text.h"

#include "base/cleanup.h"

enum { DEFAULT_MAX_STACK = 256 << 10, KIB = 1024, MORE = 8 };

struct text {
	const char *meaning;
	const char *remedy;
};

static const struct text texts[] = {
	[SS_END_ROOT] = { "whole", NULL },
	[SS_END_FRAMES] = { "cut: the limit of frames was reached", "-n 0 shows all" },
	[SS_END_LIMIT] = { "cut: no more of this stack was copied", NULL },
	[SS_END_NO_UNWIND_INFO] = { "lost: no unwind information leads further out",
				    NULL },
	[SS_END_BAD_UNWIND_INFO] = { "lost: the unwind information cannot be read",
				     NULL },
	[SS_END_UNREADABLE] = { "lost: memory that is needed could not be read", NULL },
	[SS_END_LOOP] = { "lost: the next frame would not lie further out, "
			  "the stack may be damaged",
			  NULL },
	[SS_END_REGISTER] = { "lost: a register that is needed is not known",
			      "--mode=stop stops the thread and reads it, if that does "
			      "not end its call" },
	[SS_END_GONE] = { "the thread ended before it could be read", NULL },
	[SS_END_RUNNING] = { "it runs and was not stopped",
			     "--mode=stop shows its stack" },
	[SS_END_NOT_STOPPED] = { "it did not stop in time",
				 "--timeout=MS waits longer, --mode=no-stop reads what "
				 "is blocked without stopping it" },
	[SS_END_TRACED] = { "another tracer holds this thread", NULL },
	[SS_END_DENIED] = { "we may not look at it: only its state is known", NULL },
};

const char *ss_end_text(enum ss_end end)
{
	return (size_t)end < SS_ARRAY_SIZE(texts) ? texts[end].meaning : "unknown";
}

void ss_end_write_remedy(enum ss_end end, size_t max_stack, FILE *out)
{
	size_t copied = max_stack ? max_stack : DEFAULT_MAX_STACK;

	if (end == SS_END_LIMIT)
		(void)fprintf(out, "; --max-stack=%zu copies more", copied / KIB * MORE);
	else if ((size_t)end < SS_ARRAY_SIZE(texts) && texts[end].remedy)
		(void)fprintf(out, "; %s", texts[end].remedy);
}
