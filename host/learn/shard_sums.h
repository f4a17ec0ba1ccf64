// shard_sums.h: adds up the gradients of a process's shards, in the order of the tree
// (team/tree.h).
//
// A shard's gradients are computed in the model's own memory. The pending sums of the tree are in
// buffers of the same size. When the gradients of a shard are complete, the pending sums that come
// next in the tree are added to them. If another shard follows, the result is stored in a buffer
// and the gradients are zeroed.
//
// Two sibling shards of one process need fewer passes over memory. If the second one runs in a
// single backward pass over at most RLHF_ADDS_ONCE_ROWS tokens, the first one's gradients with
// RLHF_PARAM_ADDS_ONCE or RLHF_PARAM_CAN_ADD_ONCE are kept in place. The second one's backward pass
// adds to them, with the same bits.
#ifndef RLHF_HOST_LEARN_SHARD_SUMS_H
#define RLHF_HOST_LEARN_SHARD_SUMS_H

#include "learn/optim.h"
#include "team/share.h"
#include "team/tree.h"

// A range of an optimizer's gradients (struct rlhf__optim.grads) with one of these two flags.
struct rlhf__once {
    uint64_t at, end; // in bytes
};

struct rlhf__shard_sums {
    const rlhf_compute *compute;
    struct rlhf__optim *optim[2]; // the policy's and the critic's, or NULL
    struct rlhf__tree tree;       // without the current shard
    uint32_t n_aside;
    rlhf_dev aside[2][RLHF__TREE_DEPTH]; // pending sums
    uint32_t shard, last;                // the current shard, the last shard of this process
    struct rlhf__once *once[2];          // in ascending order, with a gap between any two
    uint32_t n_once[2];
    int needs_flag[2]; // 1: some of them need RLHF_FORWARD_ADDS_ONCE
    int completes; // 1: sums of squares are computed as gradients are completed (optim_blocks.h)
    int keeps;     // 1: the current shard's gradients in `once` are kept
    int follows;   // 1: those of the shard before were kept
    uint64_t complete; // the policy's gradients from this byte onward have been processed
    rlhf_status table; // first failure of the compute table while they were added up
};

// Allocate the buffers. The optimizers are borrowed; the critic's may be NULL. Call
// rlhf__shard_sums_finish even after a failure. Errors: those of the table's alloc(). [main]
rlhf_status rlhf__shard_sums_init(struct rlhf__shard_sums *, const rlhf_compute *,
                                  struct rlhf__optim *policy, struct rlhf__optim *critic,
                                  const struct rlhf__share *, struct rlhf__error *err);
void rlhf__shard_sums_finish(struct rlhf__shard_sums *); // accepts a zeroed struct [main]

// Call rlhf__shard_sums_begin at the start of a minibatch, and rlhf__shard_sums_shard at the start
// of each of its shards that this process computes. The gradients must be 0, except those that were
// kept. Set next_adds_once to 1 if this process also computes the next shard, in a single backward
// pass over at most RLHF_ADDS_ONCE_ROWS tokens. [step]
void rlhf__shard_sums_begin(struct rlhf__shard_sums *, const struct rlhf__share *);
void rlhf__shard_sums_shard(struct rlhf__shard_sums *, uint32_t shard, int next_adds_once);

// Call this during a shard's last backward pass, when the range of the policy's gradients at `grad`
// is complete. Returns 1 if it processed the range at once, while the range is in the processor's
// cache: it added the range to the sums, or kept parts of it for the next shard. This is possible
// only if the range ends where the previous one begins (or, for the first range, at the end of the
// gradients). For any other range returns 0, and rlhf__shard_sums_end processes it. [step]
int rlhf__shard_sums_graded(struct rlhf__shard_sums *, rlhf_dev grad, uint64_t bytes);

// Call this when all gradients of the shard are complete. Processes the ranges that
// rlhf__shard_sums_graded has not processed. Errors: those of the compute table. [step]
rlhf_status rlhf__shard_sums_end(struct rlhf__shard_sums *);

#endif
