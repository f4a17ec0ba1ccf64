// pair_loss.h: the Bradley-Terry loss on pairs of responses, for a reward model that the host
// trains itself (reward_round.h).
//
//   L = sum over pairs of (2 / n) (-log sigmoid(R_chosen - R_rejected)),   n = rows of the
//   minibatch
#ifndef RLHF_HOST_PAIR_LOSS_H
#define RLHF_HOST_PAIR_LOSS_H

#include "learn/learner.h"

// Sums over its calls; zero-initialise.
struct rlhf__pair_loss {
    double loss;          // of microbatches, each as a share of its minibatch's loss
    double margin;        // R_chosen - R_rejected
    int64_t pairs, right; // right: the chosen response has the higher reward
};

// Rows are pairs, the chosen one first, with one score per row; a pair is never split. [any]
struct rlhf__objective rlhf__pair_objective(struct rlhf__pair_loss *);

#endif
