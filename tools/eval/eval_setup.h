// eval_setup.h: opens a model, prompts and rewards outside a training run, for `eval --reward`,
// `eval --env`, `generate --env` and `pairs`.
//
// Sampling, prompt and response settings come from a run's config or from ppo.so's defaults, so
// that texts are sampled and scored as in training. Rewards are weighted, but not normalized or
// clipped.
#ifndef RLHF_TOOLS_EVAL_EVAL_SETUP_H
#define RLHF_TOOLS_EVAL_EVAL_SETUP_H

#include "cmd/command_setup.h"
#include "episode/playing.h"
#include "report/metrics.h"
#include "sample/rollout.h"
#include "sample/scoring.h"

struct rlhf__eval_setup_options {
    const char *model;       // NULL = the default policy
    const char *reference;   // NULL = none
    const char *config;      // --config; NULL = settings of the run or of ppo.so
    const char *prompts;     // file that replaces the config's prompts, NULL = the config's
    const char *environment; // --env; NULL = none
    const char *reward_flag; // flag that `reward` came from, for messages
    const struct rlhf__command_setup_flags *at;
    const struct rlhf__flag_list *reward, *set;
    const char *command;   // "eval", "pairs", for messages
    int64_t limit;         // number of prompts to use, 0 = as in the config
    int64_t seed, max_mib; // max_mib 0: data.max_mib
    int32_t as_the_run;    // 1: without a config, use the settings of the model's run
    int32_t unpaid;        // 1: neither a reward nor an environment that pays is needed
    int32_t has_set;       // 1: the command has the flags --set and --config
};

// Zero-initialize; release with rlhf__eval_setup_finish. Everything is owned.
struct rlhf__eval_setup {
    struct rlhf__command_setup at;
    struct rlhf__config config;                // config.reward names the rewards
    const struct rlhf__plugin *algo, **reward; // [config.n_reward]
    struct rlhf__model *model, *reference;     // reference NULL = none
    struct rlhf__instance **rewards;           // [config.n_reward]
    struct rlhf__reward_tally *tally;          // [config.n_reward]
    struct rlhf__instance *environment;        // NULL = none
    struct rlhf__episode_setup episodes;       // with an environment
    struct rlhf__prompts *prompts;
    struct rlhf__response_rules *rules;
    rlhf_dist logp_dist;
    int64_t limit, max_mib; // as in the options
};

// Errors: RLHF_E_INVALID (invalid settings or files, or a reference with another vocabulary), and
// those of opening models and plugins. [main]
rlhf_status rlhf__eval_setup_open(struct rlhf__eval_setup *t, const struct rlhf__env *env,
                                  const struct rlhf__eval_setup_options *o,
                                  struct rlhf__error *err);
// Replace the prompts with those in `file` or, if `file` is NULL, with the config's prompts.
// Errors: those of reading prompts. [main]
rlhf_status rlhf__eval_setup_prompts(struct rlhf__eval_setup *t, const char *file,
                                     struct rlhf__error *err);

// Set `out` to the directory of the policy that the model's run began with or, for another adapter,
// of the model below it. Errors: RLHF_E_INVALID if the model is neither a run's checkpoint nor an
// adapter. [main]
rlhf_status rlhf__eval_setup_base(const struct rlhf__eval_setup *t, char out[RLHF__PATH_CAP],
                                  struct rlhf__error *err);

void rlhf__eval_setup_finish(struct rlhf__eval_setup *t); // accepts a zeroed one [main]

// Returns a request to sample one response to each of n prompts with the config's settings. The
// caller sets the members `cache` and `first` if needed. `stream` selects the random numbers. [any]
struct rlhf__rollout_request rlhf__eval_setup_request(const struct rlhf__eval_setup *t, uint32_t n,
                                                      uint32_t slots, int64_t seed,
                                                      const char *stream);

// Sample the responses of a request. Uses the prompts in order; if there are too few, begins again
// with the first prompt. With an environment, each response is an episode; without prompts
// (`alone`), each episode has a different task. [step]
rlhf_status rlhf__eval_setup_sample(const struct rlhf__eval_setup *t,
                                    const struct rlhf__rollout_request *q, struct rlhf__rows *e,
                                    struct rlhf__error *err);

// Score e, the rows that were sampled for a request:
// - e->score, e->reward and token rewards are set.
// - *x receives the texts. It must be zeroed before the call; release it with rlhf__scored_finish.
// - keep[n] is 0 for rows that nan_policy or on_failure drop.
// - raw[n_reward * n] receives each plugin's own scores.
// - missing[n_reward * n] receives 1 where a plugin has no score for a row; NULL = not wanted.
// - `reported` receives the metrics that rewards report; NULL = they are dropped. [step]
rlhf_status rlhf__eval_setup_score(const struct rlhf__eval_setup *t, struct rlhf__rows *e,
                                   struct rlhf__scored *x, uint8_t *keep, float *raw,
                                   uint8_t *missing, struct rlhf__metrics *reported,
                                   struct rlhf__error *err);

#endif
