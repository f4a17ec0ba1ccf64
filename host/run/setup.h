// setup.h: the steps of rlhf__run_create; setup.c calls them.
#ifndef RLHF_HOST_SETUP_H
#define RLHF_HOST_SETUP_H

#include "base/log.h"
#include "config/config.h"
#include "run/run.h"

#include <rlhf/algo.h>
#include <rlhf/draft/iteration.h>

struct rlhf__memory_need;

// ---- rows: setup_rows.c ----

// Open everything that depends on the planned source of rows: the feed, the policy and whatever
// else its rows need. [main]
rlhf_status rlhf__setup_rows(struct rlhf__run *r, struct rlhf__error *err);

// Create the parts that need rows and loaded models: the feed's, and those that train a reward
// model. [main]
rlhf_status rlhf__setup_ready(struct rlhf__run *r, struct rlhf__error *err);

// ---- models: setup_models.c ----

// Ask the algorithm for its plan; the run's phases and labels are known only after its rows have
// been read. [main]
rlhf_status rlhf__setup_ask_plan(const struct rlhf__run *r, int64_t phases, int32_t n_labels,
                                 rlhf_plan *out, struct rlhf__error *err);

// The score head that the trained model needs; zeroed: none.
struct rlhf__setup_head {
    int32_t n_labels, pooling; // as in struct rlhf__model_spec
    int32_t init;              // enum rlhf_score_init
    int32_t draws;             // 1: responses are sampled from the model
};

// The directory that the policy is loaded from: policy.path, the default one, or the newest
// checkpoint of a resumed run. [main]
void rlhf__setup_policy_dir(const struct rlhf__run *r, char out[4200]);

// The adapter that the policy's model begins with, from the settings; none if the checkpoint of a
// resumed run has it. [any]
struct rlhf__model_adapter rlhf__setup_adapter(const struct rlhf__run *r);

// Open the policy, from the newest checkpoint if the run is resumed, and check that it has the
// planned heads. [main]
rlhf_status rlhf__setup_policy(struct rlhf__run *r, const struct rlhf__setup_head *head,
                               struct rlhf__error *err);

// Open a separate critic if value.critic asks for one. The policy must be open. [main]
rlhf_status rlhf__setup_critic(struct rlhf__run *r, struct rlhf__error *err);

// Open the reference if the plan needs one: reference.path, or else the policy's start. The policy
// must be open. Errors: those of rlhf__model_open; RLHF_E_INVALID for another vocabulary and, with
// RLHF_HEAD_KL, for a model of another plugin or width. [main]
rlhf_status rlhf__setup_reference(struct rlhf__run *r, struct rlhf__error *err);

// Check that m gives log-probs of the policy's tokens and, if it is the model on the KL head's
// other side, that policy and backend can compute it. what: "reference", "teacher". RLHF_E_INVALID,
// RLHF_E_UNSUPPORTED. [main]
rlhf_status rlhf__setup_check_frozen(const struct rlhf__cast *c, const struct rlhf__model *m,
                                     const char *what, struct rlhf__error *err);

// ---- named models: setup_named.c ----

// Check that each named model of the plan has a setting, and each setting a planned name. [main]
rlhf_status rlhf__setup_names(const struct rlhf__run *r, struct rlhf__error *err);

// Open the plan's named models, frozen. One with the weights of the reference or of another one is
// that model. Policy and reference must be open. Errors: as rlhf__setup_reference. [main]
rlhf_status rlhf__setup_named(struct rlhf__run *r, struct rlhf__error *err);

// ---- all models: setup_models.c ----

// Check the names and shapes of the tensors that models of the memory plan would read from files.
// Errors: those of rlhf__params_check. [main]
rlhf_status rlhf__setup_check(struct rlhf__run *r, struct rlhf__error *err);

// Load the models of the memory plan; a reference that begins as the policy becomes a copy of it.
// Errors: those of rlhf__model_load. [main]
rlhf_status rlhf__setup_load(struct rlhf__run *r, struct rlhf__error *err);

// Number of values that the optimiser stores per parameter. [any]
int32_t rlhf__setup_moments(const struct rlhf__config *c);

// Create the optimiser of m, the policy or the critic, which is loaded or on the memory plan.
// [main]
rlhf_status rlhf__setup_optim(const struct rlhf__run *r, const struct rlhf__model *m,
                              struct rlhf__optim **out, struct rlhf__error *err);

// The run's learner with these optimisers; the critic's is NULL without a separate critic. The
// caller finishes it. [any]
struct rlhf__learner rlhf__setup_learner(const struct rlhf__run *r, struct rlhf__optim *optim,
                                         struct rlhf__optim *critic_optim);

// ---- memory: memory_estimate.c ----

// Count the memory of one phase with the models that rlhf__setup_rows opened, which are on the
// memory plan, and refuse the run if less is free (model/free_memory.h), unless
// compute.memory_check is off. If a model fails on the plan, what was counted so far is compared,
// with a warning. *out (NULL allowed) = what the run needs, also when it is refused. [main]
rlhf_status rlhf__estimate_memory(struct rlhf__run *r, struct rlhf__memory_need *out,
                                  struct rlhf__error *err);

// ---- files and models that settings name: setup_inputs.c ----

// If policy.path, policy.adapter.path, reference.path, value.path or models.* names a run
// directory, replace it, in the settings too, by the checkpoint that represents the run
// (weights/run_checkpoint.h). Then config.json names the checkpoint, and a resumed run reads the
// same weights, however far the other run has progressed. Call it before any model is opened.
// Errors: RLHF_E_INVALID (a run without a checkpoint). [main]
rlhf_status rlhf__setup_checkpoints(struct rlhf__run *r, struct rlhf__error *err);

// The same for options by which the open rewards and judge use a run's model. [main]
rlhf_status rlhf__setup_reward_checkpoints(struct rlhf__run *r, struct rlhf__error *err);

// List in r->inputs what a resumed run reads again: the rows, the reference unless the checkpoint
// has one, and the files of rewards and judge, except a reward model that the run trains. All of
// them are open. [main]
rlhf_status rlhf__setup_inputs(struct rlhf__run *r, struct rlhf__error *err);

// Refuse typed settings that do nothing in this run, whose plan is made. [main]
rlhf_status rlhf__effect_rules(const struct rlhf__run *r, struct rlhf__error *err);

#endif
