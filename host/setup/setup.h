// setup.h: rlhf__run_open, which sets up a training run from a resolved config, and its steps.
#ifndef RLHF_HOST_SETUP_SETUP_H
#define RLHF_HOST_SETUP_SETUP_H

#include "base/log.h"
#include "config/config.h"
#include "run/run.h"

#include <rlhf/algo.h>
#include <rlhf/draft/iteration.h>

struct rlhf__memory_need;

// Open compute, models, plugins and data as configured. With req->resume, also restore the newest
// checkpoint. Writes nothing. The caller frees *out with rlhf__run_close. [main]
rlhf_status rlhf__run_open(const struct rlhf__run_request *req, struct rlhf__run **out,
                           struct rlhf__error *err);

// ---- rows: setup_rows.c ----

// Open everything that depends on the source of the plan's rows: the feed, the policy and the other
// models that the rows need. [main]
rlhf_status rlhf__setup_rows(struct rlhf__run *r, struct rlhf__error *err);

// Create the parts that need rows and loaded models: those of the feed, and those that train a
// reward model. [main]
rlhf_status rlhf__setup_ready(struct rlhf__run *r, struct rlhf__error *err);

// ---- models: setup_models.c ----

// Ask the algorithm for its plan. The numbers of phases and labels are known only after the rows
// have been read. [main]
rlhf_status rlhf__setup_ask_plan(const struct rlhf__run *r, int64_t phases, int32_t n_labels,
                                 rlhf_plan *out, struct rlhf__error *err);

// The score head that the trained model needs; all zero means none.
struct rlhf__setup_head {
    int32_t n_labels, pooling; // as in struct rlhf__model_spec
    int32_t init;              // enum rlhf_score_init
    int32_t draws;             // 1: responses are sampled from the model
};

// Set `out` to the directory from which the policy is loaded: policy.path, the default policy, or
// the newest checkpoint of a resumed run. [main]
void rlhf__setup_policy_dir(const struct rlhf__run *r, char out[4200]);

// Returns the adapter with which the policy is opened. In a new run, the settings specify the
// adapter. A resumed run opens its checkpoint, so the adapter is empty. If the base has been moved,
// however, a resumed run opens the base, and the adapter is the checkpoint. [any]
struct rlhf__model_adapter rlhf__setup_adapter(const struct rlhf__run *r);

// Open the policy, from the newest checkpoint if the run is resumed, and check that it has the
// planned heads. [main]
rlhf_status rlhf__setup_policy(struct rlhf__run *r, const struct rlhf__setup_head *head,
                               struct rlhf__error *err);

// Open a separate critic if value.critic asks for one. The policy must be open. [main]
rlhf_status rlhf__setup_critic(struct rlhf__run *r, struct rlhf__error *err);

// Open the reference if the plan needs one: reference.path, or else the weights that the policy
// started from. The policy must be open. Errors: those of rlhf__model_open and
// rlhf__setup_check_frozen; RLHF_E_INVALID if a reference that is updated is not on the base of the
// policy's adapter. [main]
rlhf_status rlhf__setup_reference(struct rlhf__run *r, struct rlhf__error *err);

// Check that m can give log-probs of the policy's tokens. If the KL head compares the policy with
// m, also check that the policy and the backend support this. `what` is the name of m in messages,
// such as "reference" or "teacher". Errors: RLHF_E_INVALID, RLHF_E_UNSUPPORTED. [main]
rlhf_status rlhf__setup_check_frozen(const struct rlhf__cast *c, const struct rlhf__model *m,
                                     const char *what, struct rlhf__error *err);

// ---- named models: setup_named.c ----

// Check that each named model of the plan has a setting, and that each name in the settings is a
// name of the plan. [main]
rlhf_status rlhf__setup_names(const struct rlhf__run *r, struct rlhf__error *err);

// Open the plan's named models, which are frozen. A model with the same weights as the reference or
// as an earlier named model is not opened again. Policy and reference must be open. Errors: those
// of rlhf__setup_reference. [main]
rlhf_status rlhf__setup_named(struct rlhf__run *r, struct rlhf__error *err);

// ---- all models: setup_models.c ----

// Check the names and shapes of the tensors that the models on the memory plan will read. Errors:
// those of rlhf__params_check. [main]
rlhf_status rlhf__setup_check(struct rlhf__run *r, struct rlhf__error *err);

// Load the models that are on the memory plan. A reference that starts from the policy's weights is
// copied from the policy. Errors: those of rlhf__model_load. [main]
rlhf_status rlhf__setup_load(struct rlhf__run *r, struct rlhf__error *err);

// Returns the number of values that the optimizer stores per parameter. [any]
int32_t rlhf__setup_moments(const struct rlhf__config *c);

// Create the optimizer of m, which is the policy or the critic. m is either loaded or on the memory
// plan. [main]
rlhf_status rlhf__setup_optim(const struct rlhf__run *r, const struct rlhf__model *m,
                              struct rlhf__optim **out, struct rlhf__error *err);

// Returns the run's learner with the optimizers optim and critic_optim. critic_optim is NULL
// without a separate critic. The caller finishes the learner. [any]
struct rlhf__learner rlhf__setup_learner(const struct rlhf__run *r, struct rlhf__optim *optim,
                                         struct rlhf__optim *critic_optim);

// ---- shards: setup_shards.c ----

// Set the run's share: how many shards a minibatch has, and which of them belong to this process.
// If parallel.shards is 0, chooses the number of shards and writes it into the config. Errors:
// RLHF_E_INVALID if the number of shards is not a multiple of the number of processes. [main]
rlhf_status rlhf__setup_shards(struct rlhf__run *r, struct rlhf__error *err);

// Check that a phase has enough rows: at least one group for each process or, if the plan has no
// groups, one row for each process. The plan must have been made. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__setup_check_batch(const struct rlhf__run *r, struct rlhf__error *err);

// ---- rollout.ahead: setup_ahead.c ----

// Returns 1 if the run samples responses ahead of training. The plan must have been made. [any]
int rlhf__setup_is_ahead(const struct rlhf__run *r);

// Check rollout.ahead and parallel.actors. Call this after the plan has been made. Returns
// RLHF_E_INVALID if
// - rollout.ahead is set, but the algorithm draws no responses or does not correct for old rows;
// - rollout.ahead is set, and several processes train without actors;
// - rollout.ahead and rewards.overlap are both set;
// - the run has actors without rollout.ahead, or more actors than a batch has groups. [main]
rlhf_status rlhf__setup_check_ahead(const struct rlhf__run *r, struct rlhf__error *err);

// Set r->ahead_threads: how many of the run's `all` threads sample ahead of training. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__setup_split_threads(struct rlhf__run *r, int64_t all, struct rlhf__error *err);

// rlhf__setup_ahead opens the sampler, unless actors sample the rows. Call it after the feed has
// been opened. rlhf__setup_ahead_ready loads the sampler, or connects learners and actors. Call it
// after the models have been loaded. Both functions do nothing without rollout.ahead. Errors: those
// of rlhf__sampler_open and rlhf__sampler_load. [main]
rlhf_status rlhf__setup_ahead(struct rlhf__run *r, struct rlhf__error *err);
rlhf_status rlhf__setup_ahead_ready(struct rlhf__run *r, struct rlhf__error *err);

// ---- parallel.actors: setup_actor.c ----

// On an actor: open what sampling needs, namely the prompts and a policy without gradients. [main]
rlhf_status rlhf__setup_actor_rows(struct rlhf__run *r, struct rlhf__error *err);

// Set *out to the values that must be equal on learners and actors. The caller owns the new
// reference. Everything must be open and loaded. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__setup_actor_same(const struct rlhf__run *r, json_t **out,
                                   struct rlhf__error *err);

// ---- several processes: setup_team.c ----

// Returns run.threads. If that is 0 and several processes may use the same cores, returns this
// process's share of the cores instead. [main]
int64_t rlhf__setup_threads(const struct rlhf__run *r);

// Returns compute.gpu if the user chose a card, or if this is the only process of the run on its
// machine. Otherwise returns the card that this process gets, and sets r->gpus to the number of
// cards. [main]
int64_t rlhf__setup_gpu(struct rlhf__run *r);

// Log that the processes of this machine are assigned to its cards in turn. Warn if there are fewer
// cards than processes. [main]
void rlhf__setup_say_gpus(const struct rlhf__run *r);

// If every learner computes on a GPU, connect the GPUs with NCCL, so that gradients need not pass
// through host memory. If NCCL cannot be used, a run with parallel.backend=auto continues without
// it. With parallel.backend=nccl, this is an error (RLHF_E_INVALID). Other errors: those of the
// team's calls. [main]
rlhf_status rlhf__setup_device(struct rlhf__run *r, struct rlhf__error *err);

// Check that all processes execute the same run. Call this when everything is open and, in a
// resumed run, the checkpoint is loaded. Errors: those of rlhf__team_same. [main]
rlhf_status rlhf__setup_same(const struct rlhf__run *r, struct rlhf__error *err);

// ---- memory: memory_estimate.c ----

// Count the memory that one phase needs. rlhf__setup_rows must have opened the models on the memory
// plan. Unless compute.memory_check is off, reject the run if it needs more memory than is free
// (model/free_memory.h). If a model fails on the plan, warn, and compare only the bytes counted so
// far with the free memory. *out (NULL allowed) receives the memory that the run needs, even if the
// run is rejected. Also sets r->seconds, if this process alone runs each phase on a CPU. [main]
rlhf_status rlhf__estimate_memory(struct rlhf__run *r, struct rlhf__memory_need *out,
                                  struct rlhf__error *err);

// ---- time: time_estimate.c ----

// From now on, the memory plan adds up how long its calls would take. Does nothing if the time of a
// phase cannot be estimated: if the backend is not a CPU or is very slow, with environments,
// rollout.ahead or several processes. `tokens` is the number of tokens in the phase's rows. [main]
void rlhf__time_begin(struct rlhf__run *, int64_t tokens);
// Returns the seconds of the plan's calls since *at, and sets *at to their total. [any]
double rlhf__time_lap(const struct rlhf__run *, double *at);
// Set s->sampling and s->tokens. The plan has sampled two tokens in each slot, after the prompts of
// rows of e, in `took` seconds. [any]
void rlhf__time_sampling(const struct rlhf__run *, const struct rlhf__rows *e, double took,
                         struct rlhf__phase_seconds *s);
// Set s->held_out. The feed has made the calls of `e` in `took` seconds. `rows` is the number of a
// phase's rows. [any]
void rlhf__time_held_out(const struct rlhf__run *, const struct rlhf__held_out_estimate *e,
                         uint32_t rows, double took, struct rlhf__phase_seconds *s);
// Log how long a phase and the rest of the run will take, if r->seconds is set. If the machine is
// busy, also log how long the run would take with this load. [main]
void rlhf__say_time(const struct rlhf__run *);

// ---- defaults: tuned_defaults.c ----

// If the policy is much larger than the model on which the defaults were tuned, and the learning
// rate is a default, log which settings are such defaults. The policy must be open. [main]
void rlhf__say_tuned_defaults(const struct rlhf__run *);

// ---- updates that bf16 rounds away: small_steps.c ----

// Log a note if all weights of a model are trained with products in bf16, and AdamW's steps in the
// whole run are too small to change most of its bf16 weights. The number of phases must be known.
// [main]
void rlhf__say_small_steps(const struct rlhf__run *);

// ---- what verify needs: recomputable.c ----

// If a reward does not promise the same scores each time, and the run does not record them, log
// that verify cannot recompute the run. [main]
void rlhf__say_recomputable(const struct rlhf__run *);

// ---- files and models that settings name: setup_inputs.c ----

// If policy.path, policy.adapter.path, reference.path, value.path or models.* is a run directory,
// replace the directory by the checkpoint that represents that run (weights/run_checkpoint.h).
// config.json then names the checkpoint, so a resumed run reads the same weights even if the other
// run has continued. Call this before any model is opened. Errors: RLHF_E_INVALID (a run without a
// checkpoint). [main]
rlhf_status rlhf__setup_checkpoints(struct rlhf__run *r, struct rlhf__error *err);

// Like rlhf__setup_checkpoints, for options of the open rewards and of the judge that name a run as
// a model. [main]
rlhf_status rlhf__setup_reward_checkpoints(struct rlhf__run *r, struct rlhf__error *err);

// List in r->inputs what a resumed run reads again: the rows; the reference, unless the checkpoint
// contains it; and the files of the rewards and of the judge, but not a reward model that the run
// trains. Call this when all of them are open. [main]
rlhf_status rlhf__setup_inputs(struct rlhf__run *r, struct rlhf__error *err);

// Append the files of rows and prompts to a list. [main]
rlhf_status rlhf__setup_row_inputs(const struct rlhf__run *r, json_t *list,
                                   struct rlhf__error *err);

// Reject settings that the user set but that do nothing in this run. The plan must have been made.
// [main]
rlhf_status rlhf__effect_rules(const struct rlhf__run *r, struct rlhf__error *err);

// ---- disk.c ----

// Compare the size of the run's checkpoints with the free disk space. Returns RLHF_E_INVALID if not
// even one checkpoint fits, and warns if fewer fit than the run keeps. A dry run logs the numbers.
// [main]
rlhf_status rlhf__setup_disk(const struct rlhf__run *, struct rlhf__error *err);

#endif
