/*
 * The state of a thread in words.
 */
#ifndef SS_OUTPUT_STATE_H
#define SS_OUTPUT_STATE_H

/* The states of proc(5) that are shown, in this order, the most active first. */
#define SS_STATE_LETTERS "RDSTtIZX"

/* "sleeping" of 'S'. Never NULL. */
const char *ss_state_name(char state);

#endif
