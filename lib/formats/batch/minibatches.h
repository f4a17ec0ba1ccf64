// minibatches.h: in each epoch, shuffles a phase's batch and cuts it into minibatches. It moves
// whole units: groups if there are at least as many groups as minibatches, otherwise rows.
//
// This file only computes row numbers: it copies no rows and does not depend on the algorithm.
#ifndef RLHF_HOST_BATCH_MINIBATCHES_H
#define RLHF_HOST_BATCH_MINIBATCHES_H

#include "batch/rows.h"

// A unit is a group or a row. In an epoch, minibatch k consists of unit[i] for k * units / parts <=
// i < (k + 1) * units / parts.
struct rlhf__minibatches {
    uint32_t units, parts;
    uint32_t *unit;    // [units] in this epoch's order
    uint32_t *begin;   // [units + 1] rows of unit u: [begin[u], begin[u + 1])
    uint32_t *pick;    // [rows] the rows of a minibatch
    int32_t ascending; // 1: a minibatch's rows are in the order of the batch
};

// Cut the batch e into minibatches. Their number is `want`, or the number of units if that is
// smaller. If `whole` is 1, groups are never split. If `ascending` is 1, the rows of a minibatch
// are sorted by index, so that rows of one group are adjacent. Until the first shuffle, units are
// in the order of the rows. Release with rlhf__minibatches_finish. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__minibatches_init(struct rlhf__minibatches *m, const struct rlhf__rows *e,
                                   uint32_t want, int whole, int ascending,
                                   struct rlhf__error *err);
void rlhf__minibatches_finish(struct rlhf__minibatches *m); // accepts a zeroed struct [any]

// Shuffle the units for an epoch (Fisher-Yates). The order depends only on (seed, phase, epoch):
// each phase and epoch has a separate block of counters in the random stream "minibatch". [any]
void rlhf__minibatches_shuffle(struct rlhf__minibatches *m, uint64_t seed, int64_t phase,
                               uint32_t epoch);

// Write the indices of the rows of minibatch k (k < parts) to m->pick, and return how many there
// are. [any]
uint32_t rlhf__minibatches_pick(struct rlhf__minibatches *m, uint32_t k);

#endif
