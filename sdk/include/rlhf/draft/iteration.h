// rlhf/draft/iteration.h: DRAFT, not in plugin contract 1.0: it may change in any minor.
// Lets an outer loop over training phases act at the end of a phase: make the policy the new
// reference, or continue training the run's reward model.
//
// The inner loop is in algo.h. The calls are allowed only in rlhf_algo_ops.phase_end.
#ifndef RLHF_DRAFT_ITERATION_H
#define RLHF_DRAFT_ITERATION_H

#include "../host.h"

// The extension (rlhf_plugin.extension) of an algorithm that uses the service below.
#define RLHF_EXT_ITERATION "rlhf.iteration/1"
typedef struct rlhf_iteration {
    uint32_t size;
    int32_t reward_model;    // 1: phase_end() trains the run's reward model
    int32_t moves_reference; // 1: phase_end() moves the reference
    int32_t reserved;
} rlhf_iteration;

#define RLHF_SVC_ITERATION "rlhf.iteration/1"

// One round of reward-model training (DeepSeekMath, Shao et al. 2024, algorithm 1, line 12). It
// uses the fresh pairs, which are the preference pairs collected since the last round, and older
// pairs, which are called the history.
typedef struct rlhf_reward_update {
    uint32_t size;
    int32_t epochs;      // passes over the fresh pairs, > 0
    int32_t batch_pairs; // pairs per optimizer step, > 0
    int32_t refit;       // 1: fit gain and bias again afterwards, on samples of the reference
    double lr;           // learning rate at the start of the round; decays linearly to 0
    double replay_share; // share of a step's pairs that come from history, [0, 1]
    int64_t history_max; // newest pairs kept as history after the round; 0 = all
} rlhf_reward_update;

typedef struct rlhf_reward_update_report {
    uint32_t size, steps;
    int64_t fresh, replayed;          // pairs used (a pair used twice counts twice)
    int64_t history;                  // pairs in the buffer afterwards
    double loss, accuracy, margin;    // means over the round, before each step
    double fresh_before, fresh_after; // accuracy on the fresh pairs before and after the round
} rlhf_reward_update_report;

typedef struct rlhf_iteration_service {
    uint32_t size, reserved;
    void *self; // the host's
    // Copies the policy's weights to the reference. Needs rlhf_iteration.moves_reference. [step]
    rlhf_status (*reference_sync)(const rlhf_host *);
    // Lets the judge (config `judge`) score the phase's responses, and keeps the best and the worst
    // of each group as a fresh pair. Groups with equal judge scores are skipped. Sets *added to the
    // number of pairs kept. [step]
    rlhf_status (*collect_pairs)(const rlhf_host *, uint32_t *added);
    // Train the reward model; the fresh pairs become history. Needs rlhf_iteration.reward_model.
    // [step]
    rlhf_status (*reward_update)(const rlhf_host *, const rlhf_reward_update *,
                                 rlhf_reward_update_report *out);
} rlhf_iteration_service;

#endif
