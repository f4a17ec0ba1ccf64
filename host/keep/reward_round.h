// reward_round.h: one round of reward-model training inside a rollout run. It trains the reward
// model that the run's rewards use, with the pair loss and a separate optimizer. Afterwards it can
// fit the gain and the bias of the model again.
//
// batch/replay_pairs.h chooses the pairs of a round. The algorithm decides when a round takes place
// (iteration.h).
#ifndef RLHF_HOST_KEEP_REWARD_ROUND_H
#define RLHF_HOST_KEEP_REWARD_ROUND_H

#include "batch/replay_pairs.h"
#include "feed/feed.h"
#include "learn/learner.h"
#include "model/reward_model.h"

#include <rlhf/draft/iteration.h>

// Sums over all calls of the pair loss; zero-initialize.
struct rlhf__pair_loss {
    double loss;         // every microbatch adds its share of its minibatch's loss
    double margin;       // R_chosen - R_rejected
    double pairs, right; // right: the chosen response has the higher reward
};

// Returns the objective. Its rows come in pairs: first the chosen response, then the rejected one.
// Each row has one score. A pair is never split between microbatches. [any]
struct rlhf__objective rlhf__pair_objective(struct rlhf__pair_loss *);

struct rlhf__reward_round {
    const struct rlhf__config *config;
    const struct rlhf__cast *cast;
    const struct rlhf__feed *feed; // a prompt feed
    struct rlhf__log *log;
    struct rlhf__reward_model *rm; // owned by the reward service; stays open as long as the rewards
    struct rlhf__optim *optim;     // AdamW with the run's optim.* and the round's lr; owned
    struct rlhf__pair_loss loss;   // of the current round
    struct rlhf__learner learner;
};

// `rm` must be trainable. All arguments are borrowed. The caller owns *out. [main]
rlhf_status rlhf__reward_round_open(const struct rlhf__config *config,
                                    const struct rlhf__cast *cast, const struct rlhf__feed *feed,
                                    struct rlhf__log *log, struct rlhf__reward_model *rm,
                                    struct rlhf__reward_round **out, struct rlhf__error *err);
void rlhf__reward_round_close(struct rlhf__reward_round *); // before rm is closed; NULL allowed

// Train on the replay buffer's fresh pairs, mixed with earlier pairs. The share of earlier pairs is
// u->replay_share. The learning rate falls linearly to 0. Afterwards the fresh pairs become earlier
// pairs. If u->refit is set, gain and bias are fitted again, to responses of the reference. The
// random numbers for these responses depend only on `syncs`. Does nothing if there are no fresh
// pairs. Errors: RLHF_E_INVALID (u out of range), RLHF_E_NUMERIC, RLHF_E_NOMEM. [step]
rlhf_status rlhf__reward_round_run(struct rlhf__reward_round *, struct rlhf__replay *replay,
                                   uint64_t syncs, const rlhf_reward_update *u,
                                   rlhf_reward_update_report *report, struct rlhf__error *err);

#endif
