// grpo_options.c: see grpo_options.h. Sources of the defaults: docs/algorithms/grpo.md.
#include "grpo_options.h"

#include "common/why_unused.h"

#include <rlhf/log.h>

#define T  struct rlhf__grpo_options
#define PG struct rlhf__pg_options // the type of the options' first member

static const char *const scale_names[] = {"group", "batch", "none", NULL};
static const char *const rewards_names[] = {"sum", "each", NULL};
static const char *const loss_names[] = {"grpo",  "bnpo", "dr_grpo", "dapo",
                                         "cispo", "gmpo", "sapo",    NULL};

const rlhf_opt rlhf__grpo_option_table[] = {
    RLHF_OPT_I64(PG, group_size, 8, 1, 4096, "samples per prompt, at least 2"),
    RLHF_OPT_I64(PG, epochs, 1, 1, 1000, "passes over the rollout in a phase (mu)"),
    RLHF_OPT_I64(PG, minibatches, 1, 1, 1000000, "optimizer steps per epoch"),
    RLHF_OPT_ENUM(
        T, advantage_rewards, RLHF__GRPO_REWARDS_SUM, rewards_names,
        "normalize the weighted sum of the rewards, or each reward in its group, and then "
        "the weighted sum of the results in the batch"),
    RLHF_OPT_ENUM(T, advantage_scale, RLHF__GRPO_SCALE_GROUP, scale_names,
                  "divide reward - group mean by the standard deviation of the group, of the "
                  "batch, or not"),
    RLHF_OPT_F64(T, advantage_eps, 1e-4, 0, 1, "added to that standard deviation"),
    RLHF_OPT_ENUM(T, advantage_std, RLHF__STD_UNBIASED, rlhf__std_names,
                  "variance over n - 1 or over n"),
    RLHF_OPT_ENUM(T, advantage_scope, RLHF__SCOPE_BATCH, rlhf__scope_names,
                  "advantages over the phase's batch, or recomputed in each minibatch, which "
                  "then holds whole groups"),
    RLHF_OPT_ENUM(
        T, loss, RLHF__GRPO_LOSS_GRPO, loss_names,
        "grpo: mean of per-response means; bnpo: mean over a minibatch's tokens; "
        "dr_grpo: sum / (rows * longest response); dapo: mean over the tokens of the "
        "phase; cispo: dapo's mean of -min(ratio, 1 + clip_range_high) * A * log-prob; gmpo: "
        "grpo's mean of -A * geometric mean of ratios, log-ratios clipped to "
        "[-clip_range, clip_range_high]; sapo: grpo's mean with a soft gate for the clip"),
    RLHF_OPT_F64_ABOVE(T, sapo_temperature_pos, 1, 0, 1000,
                       "loss sapo: temperature of the gate where the advantage is positive"),
    RLHF_OPT_F64_ABOVE(T, sapo_temperature_neg, 1.05, 0, 1000,
                       "loss sapo: temperature of the gate elsewhere"),
    RLHF_OPT_ENUM(PG, ratio, RLHF__RATIO_TOKEN, rlhf__ratio_names,
                  "one ratio a token, or one a response from its summed or mean log-prob"),
    RLHF_OPT_F64(PG, clip_range, 0.2, 0, 1, "ratio is clipped below at 1 - clip_range"),
    RLHF_OPT_F64(PG, clip_range_high, -1, -1, 100,
                 "ratio is clipped above at 1 + clip_range_high; negative: clip_range"),
    RLHF_OPT_F64(PG, dual_clip, 0, 0, 1e6,
                 "bound of the ratio where the advantage is negative; 0 = off"),
    RLHF_OPT_ENUM(PG, kl_placement, RLHF__KL_IN_LOSS, rlhf__kl_placement_names,
                  "penalty -kl_coef * KL in a response's reward, +kl_coef * KL in the loss, or "
                  "nowhere"),
    RLHF_OPT_ENUM(PG, kl_estimator, RLHF__KL_K3, rlhf__kl_estimator_names,
                  "per-token KL; full is the exact sum over the vocabulary (in the loss only)"),
    RLHF_OPT_F64(PG, kl_coef, 0.04, 0, 1000, "KL coefficient, or where the controller starts"),
    RLHF_OPT_ENUM(PG, kl_controller, RLHF__KL_FIXED, rlhf__kl_controller_names,
                  "adaptive: move kl_coef each phase so that the measured KL meets kl_target"),
    RLHF_OPT_F64_ABOVE(PG, kl_target, 6.0, 0, 1e6, "KL the adaptive controller aims at, nats"),
    RLHF_OPT_F64_ABOVE(PG, kl_horizon, 10000.0, 0, 1e12,
                       "samples over which the adaptive controller acts"),
    RLHF_OPT_ENUM(PG, kl_unit, RLHF__KL_PER_SEQUENCE, rlhf__kl_unit_names,
                  "whether kl_target is a sum over the response or a mean over tokens"),
    RLHF_OPT_BOOL(PG, kl_measure, 1,
                  "measure the KL with kl_placement none too (costs a reference forward)"),
    RLHF_OPT_F64(PG, entropy_coef, 0, 0, 1000, "entropy bonus"),
    RLHF__PG_OPT_DYNAMIC,
    RLHF_OPT_BOOL(PG, mask_truncated, 0,
                  "responses that max_new_tokens cut off give no loss and count in no token "
                  "total"),
    RLHF_OPT_BOOL(PG, mask_zero_advantage_groups, 0,
                  "groups whose responses all have advantage 0 give no loss, KL and entropy terms "
                  "included, and count in no divisor"),
    RLHF_OPT_F64(PG, target_kl, 0, 0, 1000,
                 "end the phase's epochs once a minibatch's policy/approxkl exceeds this; 0 = "
                 "off"),
    RLHF__PG_OPT_LOGPROBS,
    RLHF__PG_OPT_CORRECTION,
};
_Static_assert(sizeof rlhf__grpo_option_table ==
                   RLHF__GRPO_OPTION_COUNT * sizeof *rlhf__grpo_option_table,
               "RLHF__GRPO_OPTION_COUNT");

int32_t rlhf__grpo_aggregation(const struct rlhf__grpo_options *o) {
    switch (o->loss) {
    case RLHF__GRPO_LOSS_BNPO:
        return RLHF__AGG_TOKEN;
    case RLHF__GRPO_LOSS_DR_GRPO:
        return RLHF__AGG_MAX_LEN;
    case RLHF__GRPO_LOSS_DAPO:
    case RLHF__GRPO_LOSS_CISPO:
        return RLHF__AGG_DAPO;
    default:
        return RLHF__AGG_SEQUENCE;
    }
}

const char *rlhf__grpo_why_unused(const rlhf_option_in *in) {
    const struct rlhf__grpo_options *o = in->config;
    const char *key = in->key;
    const int unscaled = o->advantage_scale == RLHF__GRPO_SCALE_NONE;
    const int sapo = o->loss == RLHF__GRPO_LOSS_SAPO;
    const struct rlhf__unused rules[] = {
        {"sapo_temperature_pos", !sapo, "loss is not sapo"},
        {"sapo_temperature_neg", !sapo, "loss is not sapo"},
        {"clip_range", sapo, "loss sapo has no clip"},
        {"clip_range_high", sapo, "loss sapo has no clip"},
        {"advantage_eps", unscaled, "advantage_scale is none"},
        {"advantage_std", unscaled, "advantage_scale is none"},
        {"dynamic_rounds", !o->pg.dynamic_sampling, "dynamic_sampling is false"},
        {"advantage_scope", o->pg.minibatches == 1, "minibatches is 1"},
        {"clip_range", o->loss == RLHF__GRPO_LOSS_CISPO && o->pg.clip_range_high >= 0,
         "loss cispo has the upper bound clip_range_high alone"},
    };
    const char *why = rlhf__why_unused(rules, sizeof rules / sizeof *rules, key);
    return why ? why : rlhf__pg_why_unused(&o->pg, key);
}

rlhf_status rlhf__grpo_options_check(const rlhf_host *host, const struct rlhf__grpo_options *o) {
    if (o->pg.group_size < 2)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "group_size is %lld; a response is compared with the others of its "
                          "prompt, so it must be at least 2",
                          (long long)o->pg.group_size);
    if (o->advantage_rewards == RLHF__GRPO_REWARDS_EACH &&
        o->advantage_scale != RLHF__GRPO_SCALE_GROUP)
        return rlhf_failf(
            host, RLHF_E_INVALID,
            "advantage_scale is %s, but advantage_rewards each divides each reward by "
            "its deviation in the group; leave it at group",
            scale_names[o->advantage_scale]);
    if (o->advantage_rewards == RLHF__GRPO_REWARDS_EACH && o->pg.kl_placement == RLHF__KL_IN_REWARD)
        return host->fail(host, RLHF_E_INVALID,
                          "kl_placement is reward, but with advantage_rewards each the KL is not "
                          "part of a reward; use kl_placement loss or none");
    const int clipped = o->loss < RLHF__GRPO_LOSS_CISPO;
    if (o->pg.dual_clip > 0 && !clipped)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "dual_clip has no meaning with loss %s, which bounds the ratio in its "
                          "own way; leave it at 0",
                          loss_names[o->loss]);
    if (o->pg.ratio != RLHF__RATIO_TOKEN && o->loss == RLHF__GRPO_LOSS_GMPO)
        return rlhf_failf(
            host, RLHF_E_INVALID,
            "ratio is %s, but loss gmpo uses its own ratio, the geometric mean of the "
            "tokens' ratios; leave it at token",
            rlhf__ratio_names[o->pg.ratio]);
    if (o->pg.mask_zero_advantage_groups && o->advantage_scope == RLHF__SCOPE_MINIBATCH &&
        rlhf__grpo_aggregation(o) == RLHF__AGG_DAPO)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "mask_zero_advantage_groups with loss %s needs advantage_scope batch: "
                          "that loss is a mean over the tokens of the phase, and in scope "
                          "minibatch it is not known which of them are left",
                          loss_names[o->loss]);
    return RLHF_OK;
}
