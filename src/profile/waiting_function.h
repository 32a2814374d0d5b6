/*
 * The functions of a stack that say where a thread waits: that of the library, which tells the
 * kind of wait, and its caller in the program.
 */
#ifndef SS_PROFILE_WAITING_FUNCTION_H
#define SS_PROFILE_WAITING_FUNCTION_H

#include "profile/profile.h"

struct ss_waiting_function {
	uint32_t library; /* SS_ID_NONE, like the other one: not known */
	uint32_t program;
};

/* Of the frames of the module that waits, or of the libraries that are linked into it, the
   outermost one, and its caller. call: the innermost one of the stack. */
struct ss_waiting_function ss_waiting_function_of(const struct ss_profile *profile,
						  uint32_t call);

/* The function to name in one word: the innermost one of a runtime, or else that of the program, or
   the innermost one with a name. SS_ID_NONE: there is none. */
uint32_t ss_waiting_function_name(const struct ss_profile *profile, uint32_t call);

#endif
