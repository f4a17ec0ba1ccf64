// cast.h: the models and plugins of a run, and the algorithm's plan. The set-up makes it; it does
// not change until the end.
#ifndef RLHF_HOST_CAST_H
#define RLHF_HOST_CAST_H

#include "model/model.h"

#include <rlhf/algo.h>
#include <rlhf/draft/iteration.h>

struct rlhf__response_rules;

// All owned by the run.
struct rlhf__cast {
    struct rlhf__model *policy;
    struct rlhf__model *reference; // NULL: the run has no reference
    struct rlhf__model *critic;    // NULL: the policy has the value head
    struct rlhf__instance *algo;
    struct rlhf__instance **rewards;    // [n_rewards]
    size_t n_rewards;                   // 0: the rows come from a file and are not rewarded
    struct rlhf__instance *judge;       // NULL = none
    struct rlhf__response_rules *rules; // of responses; NULL if none are sampled
    rlhf_plan plan;
    rlhf_iteration iteration; // the algorithm's extension; zeros: none
    rlhf_dist logp_dist;      // of the log-probs in training
};

// 1: the rows of this run are responses, sampled for it and scored by its rewards; 0: rows of a
// file, used as they are. [any]
static inline int rlhf__cast_has_rewards(const struct rlhf__cast *c) { return c->n_rewards > 0; }

#endif
