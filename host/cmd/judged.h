// judged.h: a model, prompts and rewards opened outside a training run: what `eval --reward` and
// `pairs` share.
//
// Sampling, prompts and response rules come from a run's config (or ppo.so's defaults), so that
// texts are sampled and judged as in training; rewards are weighted but neither normalised nor
// clipped.
#ifndef RLHF_HOST_JUDGED_H
#define RLHF_HOST_JUDGED_H

#include "cmd/commands.h"
#include "cmd/flags.h"
#include "model/session.h"
#include "sample/rollout.h"
#include "sample/scoring.h"

struct rlhf__judged_options {
    const char *model;     // NULL = the default policy
    const char *reference; // NULL = none
    const char *config;    // --config, NULL = ppo.so's settings
    const char *prompts;   // file that replaces the config's prompts, NULL = the config's
    const char *backend, *dtype;
    const char *reward_flag; // flag that `reward` came from, for messages
    const struct rlhf__flag_list *reward, *set;
    const char *command;            // "eval", "pairs", for messages
    int64_t limit;                  // prompts used, 0 = as in the config
    int64_t seed, threads, max_mib; // max_mib 0: data.max_mib
    int32_t shows_progress;         // 1: log.progress is looked at
    int32_t reserved;
};

// Zero-initialise; release with rlhf__judged_finish. Everything is owned.
struct rlhf__judged {
    const struct rlhf__env *env;
    struct rlhf__config config; // config.reward names the rewards
    struct rlhf__plugins *plugins;
    const struct rlhf__plugin *algo, **reward; // [config.n_reward]
    struct rlhf__session session;
    struct rlhf__model *model, *reference; // reference NULL = none
    struct rlhf__instance **rewards;       // [config.n_reward]
    struct rlhf__prompts *prompts;
    struct rlhf__response_rules *rules;
    rlhf_dist dist, logp_dist;
};

// Errors: RLHF_E_INVALID (settings, files, a reference of another vocabulary) and what opening
// models and plugins says. [main]
rlhf_status rlhf__judged_open(struct rlhf__judged *j, const struct rlhf__env *env,
                              const struct rlhf__judged_options *o, struct rlhf__error *err);
void rlhf__judged_finish(struct rlhf__judged *j); // accepts a zeroed one [main]

// What sampling one response to each of n prompts takes, by the config: fill in session and first
// if need be. stream names the draws. [any]
struct rlhf__rollout_request rlhf__judged_request(const struct rlhf__judged *j, uint32_t n,
                                                  uint32_t slots, int64_t seed, const char *stream);

// Score the rows of e, made by that request: e->score, e->reward and token rewards; texts in *x
// (zeroed; release with rlhf__scored_finish); keep[n] 0 for a row that nan_policy drop leaves out;
// raw[n_reward * n] of the plugins' own values. [step]
rlhf_status rlhf__judged_score(const struct rlhf__judged *j, struct rlhf__episodes *e,
                               struct rlhf__scored *x, uint8_t *keep, float *raw,
                               struct rlhf__error *err);

#endif
