// iteration.h: what surrounds the inner loop of a rollout run: the judge that looks on, the service
// "rlhf.iteration/0" (rlhf/iteration.h) that an algorithm calls at a phase's end, and their state
// in a checkpoint.
//
// It keeps the rows of the phase at hand for that. Training the reward model is reward_round.h's,
// the pairs are replay.h's; the inner loop is phase_rollout.c's.
#ifndef RLHF_HOST_ITERATION_H
#define RLHF_HOST_ITERATION_H

#include "batch/replay.h"
#include "sample/scoring.h"

#include <rlhf/iteration.h>

struct rlhf__run;
struct rlhf__reward_round;

struct rlhf__iteration {
    rlhf_iteration_service table;
    struct rlhf__run *t;
    struct rlhf__instance *judge; // NULL = none; owned
    // The phase at hand, from its rollout to its end.
    struct rlhf__episodes rows;
    struct rlhf__scored scored;
    float *judged;        // [rows.n] what the judge says; NULL without one
    int32_t in_phase_end; // 1: the service may be called
    int32_t reserved;
    uint64_t syncs;                   // of the reference with the policy
    struct rlhf__replay replay;       // with RLHF_PLAN_REWARD_MODEL
    struct rlhf__reward_round *round; // the reward model that is trained, or NULL; owned
};

// Make the service known to the plugins of t->session. *it must stay where it is; release with
// rlhf__iteration_finish. [main]
void rlhf__iteration_init(struct rlhf__iteration *it, struct rlhf__run *t);
void rlhf__iteration_finish(struct rlhf__iteration *it); // accepts a zeroed one [main]

// Open the judge and, where the plan says so, what trains the reward model; the run's rewards are
// open. Errors: RLHF_E_INVALID when the plan needs a judge and there is none, when not exactly one
// reward model is asked for rewards, when the judge asks that model too, when groups are of one;
// and what plugins say. [main]
rlhf_status rlhf__iteration_open(struct rlhf__iteration *it, struct rlhf__error *err);

// Keep the phase's rows (both are emptied) and let the judge score them: metrics judge/mean and
// judge/std. A score that is not finite is RLHF_E_NUMERIC with rewards.nan_policy stop, else it is
// left out of the metrics and of the pairs. [main]
rlhf_status rlhf__iteration_take(struct rlhf__iteration *it, struct rlhf__episodes *rows,
                                 struct rlhf__scored *scored, struct rlhf__error *err);

// Allow the service's calls, or refuse them and drop the phase's rows. [main]
void rlhf__iteration_begin(struct rlhf__iteration *it);
void rlhf__iteration_end(struct rlhf__iteration *it);

// Write to, or read from, the directory of a checkpoint: state/iteration.json,
// state/reference.safetensors (once the reference has moved) and, for a run that trains a reward
// model, state/replay.bin, state/reward_optimizer.safetensors and reward_model/, a model directory.
// Nothing for other runs. [main]
rlhf_status rlhf__iteration_save(const struct rlhf__iteration *it, const struct rlhf__folder *dir,
                                 struct rlhf__error *err);
rlhf_status rlhf__iteration_load(struct rlhf__iteration *it, const char *dir,
                                 struct rlhf__error *err);

#endif
