// setup_models.h: a run's own models, as setup.h opens and loads them, and the plan that says
// which.
#ifndef RLHF_HOST_SETUP_MODELS_H
#define RLHF_HOST_SETUP_MODELS_H

#include "run/run.h"

// The score head that the trained model needs; zeroed: none.
struct rlhf__setup_head {
    int32_t n_labels, pooling; // as in struct rlhf__model_spec
    int32_t init;              // enum rlhf_score_init
    int32_t draws;             // 1: responses are drawn from it
};

// Where the policy starts: policy.path, the default one, or the newest checkpoint of the run that
// is resumed. [main]
void rlhf__setup_policy_dir(const struct rlhf__run *r, char out[4200]);

// The adapter that the policy's model begins with, as the settings say; none where a run that goes
// on has it in its checkpoint. [any]
struct rlhf__model_adapter rlhf__setup_adapter(const struct rlhf__run *r);

// Open the policy, from the newest checkpoint when resuming, and check that it has the planned
// heads. [main]
rlhf_status rlhf__setup_policy(struct rlhf__run *r, const struct rlhf__setup_head *head,
                               struct rlhf__error *err);

// A critic of its own when value.critic says so. The policy is open. [main]
rlhf_status rlhf__setup_critic(struct rlhf__run *r, struct rlhf__error *err);

// The reference when the plan asks for one, whatever the rows are: reference.path, else where the
// policy starts. The policy is open. Errors: those of rlhf__model_open; RLHF_E_INVALID for another
// vocabulary and, with RLHF_HEAD_KL, for a model of another plugin or width. [main]
rlhf_status rlhf__setup_reference(struct rlhf__run *r, struct rlhf__error *err);

// Models that were opened on paper have their tensors' names and shapes looked at, where they would
// be read from files. Errors: those of rlhf__params_check. [main]
rlhf_status rlhf__setup_check(struct rlhf__run *r, struct rlhf__error *err);

// Models that were opened on paper are loaded, and a reference that begins as the policy is made
// so. Errors: those of rlhf__model_load. [main]
rlhf_status rlhf__setup_load(struct rlhf__run *r, struct rlhf__error *err);

// Ask the algorithm for its plan; phases and labels of a run are known only after its rows are
// read. [main]
rlhf_status rlhf__setup_ask_plan(const struct rlhf__run *r, int64_t phases, int32_t n_labels,
                                 rlhf_plan *out, struct rlhf__error *err);

#endif
