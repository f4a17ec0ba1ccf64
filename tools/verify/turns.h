// turns.h: names the turn of an episode in which a fault lies.
#ifndef RLHF_TOOLS_VERIFY_TURNS_H
#define RLHF_TOOLS_VERIFY_TURNS_H

#include "verify/faults.h"

// If the fault is in a row of several turns (a line of rollouts.jsonl), put the turn into its
// `where`: "row 3, ids[14]" becomes "row 3, turn 2, ids[14]", or "row 3, answer to turn 2, ids[14]"
// if the environment wrote the token. Turns count from 1. Does nothing for the prompt and for
// numbers of the whole row. [main]
void rlhf__turns_name(const json_t *row, struct rlhf__fault *);

#endif
