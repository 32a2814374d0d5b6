/*
 * In how many of several snapshots a group is, and with how many members.
 */
#ifndef SS_OUTPUT_PRESENCE_H
#define SS_OUTPUT_PRESENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "output/json.h"

struct ss_presence {
	size_t last;	  /* the last snapshot that has members, */
	size_t snapshots; /* and how many have */
	size_t least;	  /* members in one snapshot; 0: not all of them have some */
	size_t most;
	size_t before; /* members in the first snapshot, */
	size_t after;  /* and in the last one */
};

/* A snapshot has members. Snapshots come in ascending order. Returns whether that is new. */
bool ss_presence_see(struct ss_presence *presence, size_t snapshot);

/* After each snapshot, how many members it has, if it has some. first: it is the first one. */
void ss_presence_count(struct ss_presence *presence, size_t snapshot, size_t members,
		       bool first);

/* After all snapshots: how many they are. */
void ss_presence_end(struct ss_presence *presence, size_t snapshots);

void ss_presence_write_times(struct ss_json *json, const struct ss_presence *presence);
void ss_presence_write_counts(struct ss_json *json, const struct ss_presence *presence);

#endif
