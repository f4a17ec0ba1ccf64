// options.h: what a user can set on grpo.so, and on grpo_iterative.so beside its own options.
#ifndef RLHF_ALGOS_GRPO_OPTIONS_H
#define RLHF_ALGOS_GRPO_OPTIONS_H

#include "common/pg.h"

enum rlhf__grpo_scale {
    RLHF__GRPO_SCALE_GROUP = 0,
    RLHF__GRPO_SCALE_BATCH = 1,
    RLHF__GRPO_SCALE_NONE = 2
};
enum rlhf__grpo_loss {
    RLHF__GRPO_LOSS_GRPO = 0,
    RLHF__GRPO_LOSS_BNPO = 1,
    RLHF__GRPO_LOSS_DR_GRPO = 2,
    RLHF__GRPO_LOSS_DAPO = 3,
    RLHF__GRPO_LOSS_CISPO = 4
};

// Filled by the host from the option table; the keys are the field names.
struct rlhf__grpo_options {
    struct rlhf__pg_options pg; // must stay the first member: its option rows say so
    double advantage_eps;
    int32_t advantage_scale, advantage_std, advantage_scope, loss;
};

extern const char *const rlhf__grpo_scale_names[], *const rlhf__grpo_loss_names[];

// Rows of an option table whose config struct is, or starts with, struct rlhf__grpo_options.
#define RLHF__GRPO_OPTION_ROWS(T)                                                                  \
    RLHF_OPT_I64(struct rlhf__pg_options, group_size, 8, 1, 4096, "samples a prompt, at least 2"), \
        RLHF_OPT_I64(struct rlhf__pg_options, epochs, 1, 1, 1000,                                  \
                     "passes over the rollout in a phase (mu)"),                                   \
        RLHF_OPT_I64(struct rlhf__pg_options, minibatches, 1, 1, 1000000,                          \
                     "optimiser steps an epoch"),                                                  \
        RLHF_OPT_ENUM(T, advantage_scale, RLHF__GRPO_SCALE_GROUP, rlhf__grpo_scale_names,          \
                      "divide reward - group mean by the standard deviation of the group, of the " \
                      "batch, or not"),                                                            \
        RLHF_OPT_F64(T, advantage_eps, 1e-4, 0, 1, "added to that standard deviation"),            \
        RLHF_OPT_ENUM(T, advantage_std, RLHF__STD_UNBIASED, rlhf__std_names,                       \
                      "variance over n - 1 or over n"),                                            \
        RLHF_OPT_ENUM(T, advantage_scope, RLHF__SCOPE_BATCH, rlhf__scope_names,                    \
                      "advantages over the phase's batch, or anew in each minibatch, which then "  \
                      "holds whole groups"),                                                       \
        RLHF_OPT_ENUM(                                                                             \
            T, loss, RLHF__GRPO_LOSS_GRPO, rlhf__grpo_loss_names,                                  \
            "grpo: mean of per-response means; bnpo: mean over a minibatch's tokens; "             \
            "dr_grpo: sum / (rows * longest response); dapo: mean over the tokens of the "         \
            "phase; cispo: dapo's mean of -min(ratio, 1 + clip_range_high) * A * log-prob"),       \
        RLHF_OPT_ENUM(struct rlhf__pg_options, ratio, RLHF__RATIO_TOKEN, rlhf__ratio_names,        \
                      "one ratio a token, or one a response from its summed or mean log-prob"),    \
        RLHF_OPT_F64(struct rlhf__pg_options, clip_range, 0.2, 0, 1,                               \
                     "ratio is clipped below at 1 - clip_range"),                                  \
        RLHF_OPT_F64(struct rlhf__pg_options, clip_range_high, -1, -1, 100,                        \
                     "ratio is clipped above at 1 + clip_range_high; negative: clip_range"),       \
        RLHF_OPT_F64(struct rlhf__pg_options, dual_clip, 0, 0, 1e6,                                \
                     "bound of the ratio where the advantage is negative; 0 = off"),               \
        RLHF_OPT_ENUM(                                                                             \
            struct rlhf__pg_options, kl_placement, RLHF__KL_IN_LOSS, rlhf__kl_placement_names,     \
            "penalty -kl_coef * KL in a response's reward, +kl_coef * KL in the loss, or "         \
            "nowhere"),                                                                            \
        RLHF_OPT_ENUM(                                                                             \
            struct rlhf__pg_options, kl_estimator, RLHF__KL_K3, rlhf__kl_estimator_names,          \
            "per-token KL; full is the exact sum over the vocabulary (in the loss only)"),         \
        RLHF_OPT_F64(struct rlhf__pg_options, kl_coef, 0.04, 0, 1000,                              \
                     "KL coefficient, or where the controller starts"),                            \
        RLHF_OPT_ENUM(                                                                             \
            struct rlhf__pg_options, kl_controller, RLHF__KL_FIXED, rlhf__kl_controller_names,     \
            "adaptive: move kl_coef each phase so that the measured KL meets kl_target"),          \
        {"kl_target",                                                                              \
         "KL the adaptive controller aims at, nats",                                               \
         RLHF_T_F64,                                                                               \
         RLHF_OPT_MIN_OPEN,                                                                        \
         offsetof(struct rlhf__pg_options, kl_target),                                             \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         6.0,                                                                                      \
         0,                                                                                        \
         1e6,                                                                                      \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"kl_horizon",                                                                             \
         "samples over which the adaptive controller acts",                                        \
         RLHF_T_F64,                                                                               \
         RLHF_OPT_MIN_OPEN,                                                                        \
         offsetof(struct rlhf__pg_options, kl_horizon),                                            \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         10000.0,                                                                                  \
         0,                                                                                        \
         1e12,                                                                                     \
         NULL,                                                                                     \
         NULL},                                                                                    \
        RLHF_OPT_ENUM(struct rlhf__pg_options, kl_unit, RLHF__KL_PER_SEQUENCE,                     \
                      rlhf__kl_unit_names,                                                         \
                      "whether kl_target is a sum over the response or a mean over tokens"),       \
        RLHF_OPT_BOOL(struct rlhf__pg_options, kl_measure, 1,                                      \
                      "measure the KL with kl_placement none too (costs a reference forward)"),    \
        RLHF_OPT_F64(struct rlhf__pg_options, entropy_coef, 0, 0, 1000, "entropy bonus"),          \
        RLHF_OPT_F64(                                                                              \
            struct rlhf__pg_options, target_kl, 0, 0, 1000,                                        \
            "end the phase's epochs once a minibatch's policy/approxkl exceeds this; 0 = "         \
            "off"),                                                                                \
        RLHF_OPT_ENUM(struct rlhf__pg_options, old_logp, RLHF__OLD_ROLLOUT, rlhf__old_logp_names,  \
                      "old log-probs as sampled, or from a second forward"),                       \
        RLHF_OPT_ENUM(struct rlhf__pg_options, logprob_temperature, RLHF__TEMPERATURE_SAMPLING,    \
                      rlhf__temperature_names, "log-probs at the sampling temperature, or at 1"),  \
        RLHF_OPT_ENUM(struct rlhf__pg_options, logprob_support, RLHF__SUPPORT_FULL,                \
                      rlhf__support_names,                                                         \
                      "log-probs over the whole vocabulary, or over what top-k and top-p kept")

// Weights of tokens that `loss` stands for: enum rlhf__aggregation. [any]
int32_t rlhf__grpo_aggregation(const struct rlhf__grpo_options *);

// Refuses combinations without a meaning, in one sentence through host->fail. [main]
rlhf_status rlhf__grpo_options_check(const rlhf_host *, const struct rlhf__grpo_options *);

#endif
