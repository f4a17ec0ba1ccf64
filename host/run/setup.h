// setup.h: the parts of rlhf__run_create that differ by where rows come from, and what they
// share.
#ifndef RLHF_HOST_SETUP_H
#define RLHF_HOST_SETUP_H

#include "run/run.h"

// The score head that the trained model needs; zeroed: none.
struct rlhf__setup_head {
    int32_t n_labels, pooling; // as in struct rlhf__model_spec
    int32_t init;              // enum rlhf_score_init
    int32_t reserved;
};

// Where the policy starts: policy.path, the default one, or the newest checkpoint of the run that
// is resumed. [main]
void rlhf__setup_policy_dir(const struct rlhf__run *t, char out[4200]);

// Open t->policy, from the newest checkpoint when resuming, and check that it has the planned
// heads. [main]
rlhf_status rlhf__setup_policy(struct rlhf__run *t, const struct rlhf__setup_head *head,
                               struct rlhf__error *err);

// Ask the algorithm again now that t->phases and the labels are known: its plan must stay. [main]
rlhf_status rlhf__setup_check_plan(struct rlhf__run *t, int32_t n_labels, struct rlhf__error *err);

// Longest row as data.max_tokens and the policy's context say, into t->max_tokens. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__setup_max_tokens(struct rlhf__run *t, struct rlhf__error *err);

// Policy, rows and number of phases of each supervised source. data.path is set. [main]
rlhf_status rlhf__setup_supervised(struct rlhf__run *t, struct rlhf__error *err);
rlhf_status rlhf__setup_preferences(struct rlhf__run *t, struct rlhf__error *err);

#endif
