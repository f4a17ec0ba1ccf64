// pair_loss.h: the loss of Bradley and Terry on pairs of responses, for a reward model that the
// host itself trains on (reward_round.h).
//
//   L = sum over pairs of (2 / n) (-log sigmoid(R_chosen - R_rejected)),   n = rows of the
//   minibatch
#ifndef RLHF_HOST_PAIR_LOSS_H
#define RLHF_HOST_PAIR_LOSS_H

#include "learn/learner.h"

// Sums over what it has seen; zero-initialise.
struct rlhf__pair_loss {
    double loss;          // of microbatches, each its share of its minibatch's
    double margin;        // R_chosen - R_rejected
    int64_t pairs, right; // right: the chosen response has the higher reward
};

// Rows are pairs, the chosen one first, one score a row; a pair is never split. [any]
struct rlhf__objective rlhf__pair_objective(struct rlhf__pair_loss *);

#endif
