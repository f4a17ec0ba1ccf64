// reward_round.h: one round of reward-model training inside a rollout run: the model that the run's
// rewards ask, its optimiser, the loss of bradley_terry.so, and gain and bias afterwards.
//
// Which pairs a round uses is replay.h's; when it happens is the algorithm's (iteration.h).
#ifndef RLHF_HOST_REWARD_ROUND_H
#define RLHF_HOST_REWARD_ROUND_H

#include "batch/replay.h"
#include "learn/learner.h"
#include "model/reward_model.h"

#include <rlhf/iteration.h>

struct rlhf__run;

struct rlhf__reward_round {
    struct rlhf__run *t;
    struct rlhf__reward_model *rm;  // the reward service's; open as long as the rewards are
    struct rlhf__instance *loss;    // bradley_terry.so; owned
    struct rlhf__services services; // its host: metrics are caught
    double caught_loss, caught_accuracy, caught_margin;
    struct rlhf__optim *optim; // AdamW with the run's optim.* and the round's lr; owned
    struct rlhf__learner learner;
};

// rm must be trainable. Caller owns *out. [main]
rlhf_status rlhf__reward_round_create(struct rlhf__run *t, struct rlhf__reward_model *rm,
                                      struct rlhf__reward_round **out, struct rlhf__error *err);
void rlhf__reward_round_destroy(struct rlhf__reward_round *); // before rm is closed; NULL allowed

// Train on the buffer's fresh pairs mixed with history as u says, lr falling linearly to 0, and
// retire the fresh ones; with u->refit fit gain and bias again on responses of the reference, drawn
// with counters that depend on `syncs` alone. Without fresh pairs nothing is trained. Errors:
// RLHF_E_INVALID (u out of range), RLHF_E_NUMERIC, RLHF_E_NOMEM. [step]
rlhf_status rlhf__reward_round_run(struct rlhf__reward_round *, struct rlhf__replay *replay,
                                   uint64_t syncs, const rlhf_reward_update *u,
                                   rlhf_reward_update_report *report, struct rlhf__error *err);

#endif
