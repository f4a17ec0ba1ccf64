// ppo_options.c: see ppo_options.h. Sources of the published values: docs/algorithms/ppo.md.
#include "ppo_options.h"

#include "common/why_unused.h"

#include <rlhf/log.h>

#define T  struct rlhf__ppo_options
#define PG struct rlhf__pg_options // the type of the options' first member

static const char *const advantage_names[] = {
    "gae", "one_step", "sequence", "group", "group_mean", "broadcast_reward", "reward_to_go", NULL};
static const char *const switch_names[] = {"auto", "off", "on", NULL};
static const char *const form_names[] = {"rsqrt", "std", NULL};
static const char *const aggregation_names[] = {"token", "sequence", "max_len", "dapo",
                                                "grpo",  "bnpo",     "dr_grpo", NULL};

const rlhf_opt rlhf__ppo_option_table[] = {
    RLHF_OPT_ENUM(T, advantage, RLHF__PPO_GAE, advantage_names,
                  "gae, one_step, broadcast_reward use a critic; sequence normalizes one reward a "
                  "response over the batch, group and group_mean over the samples of a prompt; "
                  "reward_to_go is the discounted sum of a token's rewards and the later ones"),
    RLHF_OPT_F64(T, gamma, 1.0, 0, 1,
                 "discount of later rewards (gae, broadcast_reward, reward_to_go)"),
    RLHF_OPT_F64(T, lambda, 0.95, 0, 1, "GAE trace decay (gae, broadcast_reward)"),
    RLHF_OPT_F64(T, advantage_eps, 1e-4, 0, 1, "added to the standard deviation (sequence, group)"),
    RLHF_OPT_ENUM(T, advantage_std, RLHF__STD_UNBIASED, rlhf__std_names,
                  "variance over n - 1 or over n (sequence, group)"),
    RLHF_OPT_I64(PG, group_size, 1, 1, 4096, "samples per prompt; group advantages need 2 or more"),
    RLHF_OPT_ENUM(PG, kl_placement, RLHF__KL_IN_REWARD, rlhf__kl_placement_names,
                  "penalty -kl_coef * KL in every token's reward, +kl_coef * KL in the loss, or "
                  "nowhere"),
    RLHF_OPT_ENUM(PG, kl_estimator, RLHF__KL_K1, rlhf__kl_estimator_names,
                  "per-token KL; full is the exact sum over the vocabulary (in the loss only)"),
    RLHF_OPT_F64(PG, kl_coef, 0.05, 0, 1000, "KL coefficient, or where the controller starts"),
    RLHF_OPT_ENUM(PG, kl_controller, RLHF__KL_FIXED, rlhf__kl_controller_names,
                  "adaptive: move kl_coef each phase so that the measured KL meets kl_target"),
    RLHF_OPT_F64_ABOVE(PG, kl_target, 6, 0, 1e6, "KL the adaptive controller aims at, nats"),
    RLHF_OPT_F64_ABOVE(PG, kl_horizon, 10000, 0, 1e12,
                       "samples over which the adaptive controller acts"),
    RLHF_OPT_ENUM(PG, kl_unit, RLHF__KL_PER_SEQUENCE, rlhf__kl_unit_names,
                  "whether kl_target is a sum over the response or a mean over tokens"),
    RLHF_OPT_BOOL(PG, kl_measure, 1,
                  "measure the KL with kl_placement none too (costs a reference forward)"),
    RLHF_OPT_BOOL(T, whiten_rewards, 0,
                  "scale per-token rewards to unit variance, keeping their mean"),
    RLHF_OPT_ENUM(T, whiten_advantages, RLHF__PPO_AUTO, switch_names,
                  "whiten advantages over tokens; auto: only with a critic"),
    RLHF_OPT_ENUM(T, whiten_scope, RLHF__SCOPE_BATCH, rlhf__scope_names,
                  "whiten over the phase's batch, or inside each minibatch, where advantages are "
                  "then recomputed"),
    RLHF_OPT_ENUM(T, whiten_form, RLHF__WHITEN_RSQRT, form_names,
                  "rsqrt(biased variance + whiten_eps), or 1 / (unbiased std + whiten_eps)"),
    RLHF_OPT_F64(T, whiten_eps, 1e-8, 0, 1, "see whiten_form"),
    RLHF_OPT_BOOL(T, normalize_scores, 0,
                  "scores of a phase become (score - mean) / (unbiased std + 1e-5)"),
    RLHF_OPT_F64(PG, clip_range, 0.2, 0, 1, "ratio is clipped below at 1 - clip_range"),
    RLHF_OPT_F64(PG, clip_range_high, -1, -1, 100,
                 "ratio is clipped above at 1 + clip_range_high; negative: clip_range"),
    RLHF_OPT_F64(PG, dual_clip, 0, 0, 1e6,
                 "bound of the ratio where the advantage is negative; 0 = off"),
    RLHF_OPT_ENUM(PG, ratio, RLHF__RATIO_TOKEN, rlhf__ratio_names,
                  "one ratio a token, or one a response from its summed or mean log-prob"),
    RLHF_OPT_ENUM(T, aggregation, RLHF__AGG_TOKEN, aggregation_names,
                  "token (bnpo): mean over a minibatch's tokens; sequence (grpo): mean of "
                  "per-response means; max_len (dr_grpo): sum / (rows * longest response); dapo: "
                  "mean over the tokens of the phase"),
    RLHF_OPT_F64(T, value_coef, 0.1, 0, 1000, "c1 in c1/2 * mean (value - return)^2"),
    RLHF_OPT_F64(T, value_clip, 0.2, 0, 1e6, "keep the value this near its rollout value; 0 = off"),
    RLHF_OPT_F64(PG, entropy_coef, 0, 0, 1000, "entropy bonus"),
    RLHF_OPT_I64(PG, epochs, 4, 1, 1000, "passes over the rollout in a phase"),
    RLHF_OPT_I64(PG, minibatches, 1, 1, 1000000, "optimizer steps per epoch"),
    RLHF_OPT_F64(PG, target_kl, 0, 0, 1000,
                 "end the phase's epochs once a minibatch's policy/approxkl exceeds this; 0 = off"),
    RLHF__PG_OPT_LOGPROBS,
    RLHF__PG_OPT_CORRECTION,
};
_Static_assert(sizeof rlhf__ppo_option_table ==
                   RLHF__PPO_OPTION_COUNT * sizeof *rlhf__ppo_option_table,
               "RLHF__PPO_OPTION_COUNT");

int32_t rlhf__ppo_has_critic(const struct rlhf__ppo_options *o) {
    return o->advantage == RLHF__PPO_GAE || o->advantage == RLHF__PPO_ONE_STEP ||
           o->advantage == RLHF__PPO_BROADCAST_REWARD;
}

int32_t rlhf__ppo_whitens_advantages(const struct rlhf__ppo_options *o) {
    if (o->whiten_advantages == RLHF__PPO_AUTO) return rlhf__ppo_has_critic(o);
    return o->whiten_advantages == RLHF__PPO_ON;
}

const char *rlhf__ppo_why_unused(const rlhf_option_in *in) {
    const struct rlhf__ppo_options *o = in->config;
    const char *key = in->key;
    const int traces = o->advantage == RLHF__PPO_GAE || o->advantage == RLHF__PPO_BROADCAST_REWARD;
    const int normal = o->advantage == RLHF__PPO_SEQUENCE || o->advantage == RLHF__PPO_GROUP;
    const int whitens = o->whiten_rewards || rlhf__ppo_whitens_advantages(o);
    const int critic = rlhf__ppo_has_critic(o);
    const struct rlhf__unused rules[] = {
        {"gamma", !traces && o->advantage != RLHF__PPO_REWARD_TO_GO,
         "advantage is not gae, broadcast_reward or reward_to_go"},
        {"lambda", !traces, "advantage is neither gae nor broadcast_reward"},
        {"advantage_eps", !normal, "advantage is neither sequence nor group"},
        {"advantage_std", !normal, "advantage is neither sequence nor group"},
        {"whiten_scope", !whitens && o->advantage != RLHF__PPO_SEQUENCE, "nothing is whitened"},
        {"whiten_scope", o->pg.minibatches == 1, "minibatches is 1"},
        {"whiten_form", !whitens, "nothing is whitened"},
        {"whiten_eps", !whitens, "nothing is whitened"},
        {"value_coef", !critic, "this advantage has no critic"},
        {"value_clip", !critic, "this advantage has no critic"},
    };
    const char *why = rlhf__why_unused(rules, sizeof rules / sizeof *rules, key);
    return why ? why : rlhf__pg_why_unused(&o->pg, key);
}

rlhf_status rlhf__ppo_options_check(const rlhf_host *host, const struct rlhf__ppo_options *o) {
    int grouped = o->advantage == RLHF__PPO_GROUP || o->advantage == RLHF__PPO_GROUP_MEAN;
    const char *name = advantage_names[o->advantage];
    if (grouped && o->pg.group_size < 2)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "advantage %s needs group_size of at least 2, found %lld", name,
                          (long long)o->pg.group_size);
    if (grouped && o->whiten_scope == RLHF__SCOPE_MINIBATCH)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "advantage %s needs whiten_scope batch: a minibatch may split a group",
                          name);
    return RLHF_OK;
}
