// minibatches.h: how a phase's batch is cut into minibatches: by groups where there are enough of
// them, else by rows; and the fresh order of every epoch.
//
// It gives row numbers. It copies nothing and knows no algorithm.
#ifndef RLHF_HOST_MINIBATCHES_H
#define RLHF_HOST_MINIBATCHES_H

#include "batch/rows.h"

// A unit is a group or a row. Minibatch k has the units unit[k * units / parts .. (k + 1) * units /
// parts) of an epoch.
struct rlhf__minibatches {
    uint32_t units, parts;
    uint32_t *unit;    // [units] in the order of the epoch
    uint32_t *begin;   // [units + 1] rows of unit u: [begin[u], begin[u + 1])
    uint32_t *pick;    // [rows] of a minibatch
    int32_t ascending; // 1: the rows of a minibatch are in the order of the batch
    int32_t reserved;
};

// Cut e into `want` minibatches, or fewer when there are not so many units. whole = 1: a group is
// never split; ascending = 1: rows of a minibatch are sorted, so that single rows of a group stand
// together. The first epoch's units are in order until they are shuffled. Release with
// rlhf__minibatches_finish. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__minibatches_init(struct rlhf__minibatches *m, const struct rlhf__rows *e,
                                   uint32_t want, int whole, int ascending,
                                   struct rlhf__error *err);
void rlhf__minibatches_finish(struct rlhf__minibatches *m); // accepts a zeroed one [any]

// A fresh order for an epoch, a function of (seed, phase, epoch) alone: Fisher and Yates with the
// stream "minibatch", a block of counters of its own for every phase and epoch. [any]
void rlhf__minibatches_shuffle(struct rlhf__minibatches *m, uint64_t seed, int64_t phase,
                               uint32_t epoch);

// Rows of minibatch k < parts into m->pick; how many. [any]
uint32_t rlhf__minibatches_pick(struct rlhf__minibatches *m, uint32_t k);

#endif
