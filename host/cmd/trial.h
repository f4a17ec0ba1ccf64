// trial.h: a model, prompts and rewards opened outside a training run: what `eval --reward` and
// `pairs` share.
//
// Sampling, prompts and response rules come from a run's config (or ppo.so's defaults), so that
// texts are sampled and judged as in training; rewards are weighted but neither normalised nor
// clipped.
#ifndef RLHF_HOST_TRIAL_H
#define RLHF_HOST_TRIAL_H

#include "cmd/workplace.h"
#include "sample/rollout.h"
#include "sample/scoring.h"

struct rlhf__trial_options {
    const char *model;       // NULL = the default policy
    const char *reference;   // NULL = none
    const char *config;      // --config, NULL = ppo.so's settings
    const char *prompts;     // file that replaces the config's prompts, NULL = the config's
    const char *reward_flag; // flag that `reward` came from, for messages
    const struct rlhf__workplace_flags *at;
    const struct rlhf__flag_list *reward, *set;
    const char *command;   // "eval", "pairs", for messages
    int64_t limit;         // prompts used, 0 = as in the config
    int64_t seed, max_mib; // max_mib 0: data.max_mib
};

// Zero-initialise; release with rlhf__trial_finish. Everything is owned.
struct rlhf__trial {
    struct rlhf__workplace at;
    struct rlhf__config config;                // config.reward names the rewards
    const struct rlhf__plugin *algo, **reward; // [config.n_reward]
    struct rlhf__model *model, *reference;     // reference NULL = none
    struct rlhf__instance **rewards;           // [config.n_reward]
    struct rlhf__reward_books *books;          // [config.n_reward]
    struct rlhf__prompts *prompts;
    struct rlhf__response_rules *rules;
    rlhf_dist logp_dist;
};

// Errors: RLHF_E_INVALID (settings, files, a reference of another vocabulary) and what opening
// models and plugins says. [main]
rlhf_status rlhf__trial_open(struct rlhf__trial *t, const struct rlhf__env *env,
                             const struct rlhf__trial_options *o, struct rlhf__error *err);
void rlhf__trial_finish(struct rlhf__trial *t); // accepts a zeroed one [main]

// What sampling one response to each of n prompts takes, by the config: fill in cache and first
// if need be. stream names the draws. [any]
struct rlhf__rollout_request rlhf__trial_request(const struct rlhf__trial *t, uint32_t n,
                                                 uint32_t slots, int64_t seed, const char *stream);

// Score the rows of e, made by that request: e->score, e->reward and token rewards; texts in *x
// (zeroed; release with rlhf__scored_finish); keep[n] 0 for a row that nan_policy or on_failure
// drop leaves out;
// raw[n_reward * n] of the plugins' own values. [step]
rlhf_status rlhf__trial_score(const struct rlhf__trial *t, struct rlhf__rows *e,
                              struct rlhf__scored *x, uint8_t *keep, float *raw,
                              struct rlhf__error *err);

#endif
