// turns.h: finds the turn of an episode that has a fault.
#ifndef RLHF_TOOLS_VERIFY_TURNS_H
#define RLHF_TOOLS_VERIFY_TURNS_H

#include "verify/faults.h"

// If the fault is in a row of several turns (a line of rollouts.jsonl), put the turn into the
// fault's `where`: "row 3, ids[14]" becomes "row 3, turn 2, ids[14]", or "row 3, answer to turn 2,
// ids[14]" if the environment wrote the token. Turns count from 1. Does nothing for faults in the
// prompt, or in a number that belongs to the whole row. [main]
void rlhf__turns_name(const json_t *row, struct rlhf__fault *);

#endif
