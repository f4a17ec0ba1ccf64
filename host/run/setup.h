// setup.h: what rlhf__run_create is made of.
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
void rlhf__setup_policy_dir(const struct rlhf__run *r, char out[4200]);

// Values that the optimiser keeps of each parameter. [any]
int32_t rlhf__setup_moments(const struct rlhf__run *r);

// Open the policy, from the newest checkpoint when resuming, and check that it has the planned
// heads. [main]
rlhf_status rlhf__setup_policy(struct rlhf__run *r, const struct rlhf__setup_head *head,
                               struct rlhf__error *err);

// A critic of its own, with its optimiser, when value.critic says so. The policy is open. [main]
rlhf_status rlhf__setup_critic(struct rlhf__run *r, struct rlhf__error *err);

// The reference when the plan asks for one, whatever the rows are: reference.path, else where the
// policy starts. The policy is open. Errors: those of rlhf__model_open; RLHF_E_INVALID for another
// vocabulary and, with RLHF_HEAD_KL, for a model of another plugin or width. [main]
rlhf_status rlhf__setup_reference(struct rlhf__run *r, struct rlhf__error *err);

// Everything that depends on the source of rows that is planned: the feed, the policy and what else
// is needed to use its rows. [main]
rlhf_status rlhf__setup_rows(struct rlhf__run *r, struct rlhf__error *err);

// List in r->inputs what a resume opens again: the rows, the reference unless the checkpoint has
// one, and what rewards and judge opened, but for a reward model that the run trains. All of it is
// open. [main]
rlhf_status rlhf__setup_inputs(struct rlhf__run *r, struct rlhf__error *err);

// Ask the algorithm for its plan; phases and labels of a run are known only after its rows are
// read. [main]
rlhf_status rlhf__setup_ask_plan(const struct rlhf__run *r, int64_t phases, int32_t n_labels,
                                 rlhf_plan *out, struct rlhf__error *err);

#endif
