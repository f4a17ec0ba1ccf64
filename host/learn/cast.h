// cast.h: who plays in a run: its models and its plugins, and what the algorithm planned. Made by
// the set-up, the same until the end.
#ifndef RLHF_HOST_CAST_H
#define RLHF_HOST_CAST_H

#include "model/model.h"

#include <rlhf/algo.h>

struct rlhf__response_rules;

// All owned by the run.
struct rlhf__cast {
    struct rlhf__model *policy;
    struct rlhf__model *reference; // NULL: nothing is compared with one
    struct rlhf__model *critic;    // NULL: the value head is the policy's
    struct rlhf__instance *algo;
    struct rlhf__instance **rewards;    // [n_rewards]
    size_t n_rewards;                   // 0: nobody pays for the rows, they are those of a file
    struct rlhf__instance *judge;       // NULL = none
    struct rlhf__response_rules *rules; // of responses; NULL where none are drawn
    rlhf_plan plan;
    rlhf_dist logp_dist; // of the log-probs that are trained on
};

// 1: the rows of this run are responses, drawn for it and paid by its rewards; 0: rows of a file,
// each seen as it is. [any]
static inline int rlhf__cast_pays(const struct rlhf__cast *c) { return c->n_rewards > 0; }

#endif
