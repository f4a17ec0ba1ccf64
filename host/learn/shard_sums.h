// shard_sums.h: adds up the gradients of a process's shards, in the order of the tree
// (team/tree.h).
//
// A shard's gradients are computed in the model's own memory. The pending sums of the tree are in
// buffers of the same size. When the gradients of a shard are complete, the pending sums that come
// next in the tree are added to them. If another shard follows, the result is stored in a buffer
// and the gradients are zeroed.
#ifndef RLHF_HOST_LEARN_SHARD_SUMS_H
#define RLHF_HOST_LEARN_SHARD_SUMS_H

#include "learn/optim.h"
#include "team/share.h"
#include "team/tree.h"

struct rlhf__shard_sums {
    const rlhf_compute *compute;
    struct rlhf__optim *optim[2]; // the policy's and the critic's, or NULL
    struct rlhf__tree tree;       // without the current shard
    uint32_t n_aside;
    rlhf_dev aside[2][RLHF__TREE_DEPTH]; // pending sums
    uint32_t shard, last;                // the current shard, the last shard of this process
    int completes; // 1: sums of squares are computed as gradients are completed (optim_blocks.h)
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
// of each of its shards that this process computes. The gradients must be 0. [step]
void rlhf__shard_sums_begin(struct rlhf__shard_sums *, const struct rlhf__share *);
void rlhf__shard_sums_shard(struct rlhf__shard_sums *, uint32_t shard);

// Call this during a shard's last backward pass, when the range of the policy's gradients at `grad`
// is complete. Returns 1 if it added the range to the sums at once, while the range is in the
// processor's cache. This is possible only if the range ends where the previous one begins (or, for
// the first range, at the end of the gradients). For any other range returns 0, and
// rlhf__shard_sums_end processes it. [step]
int rlhf__shard_sums_graded(struct rlhf__shard_sums *, rlhf_dev grad, uint64_t bytes);

// Call this when all gradients of the shard are complete. Processes the ranges that
// rlhf__shard_sums_graded has not processed. Errors: those of the compute table. [step]
rlhf_status rlhf__shard_sums_end(struct rlhf__shard_sums *);

#endif
