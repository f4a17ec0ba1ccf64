// optim_blocks.h: the optimizer of a run whose minibatches are divided into shards. This optimizer
// takes its step block by block (team/blocks.h), so that the gradient norm does not depend on how
// the blocks are divided between processes. With several processes, each process has only the
// moments of its blocks.
//
// The squared norm is the sum of the blocks' sums of squares, in order. A block's sum of squares is
// the sum over its pieces. With one shard there are no blocks, so the squared norm is the sum of
// the tensors' sums, which is rounded differently.
#ifndef RLHF_HOST_LEARN_OPTIM_BLOCKS_H
#define RLHF_HOST_LEARN_OPTIM_BLOCKS_H

#include "learn/optim.h"
#include "team/sum.h"

struct rlhf__optim_blocks {
    const struct rlhf__share *share;
    struct rlhf__blocks cut;
    uint32_t n_own;          // blocks of this process
    double *sum;             // [cut.n] sums of squares
    uint8_t *is_summed;      // [cut.n] 1: the block's sum of squares is ready for the next step
    double *sent, *received; // several processes: sums of this process's blocks; of all
    struct rlhf__sum over;   // for sums over processes; all zeros with one process
    rlhf_dev moments;        // of own blocks, with several processes
    uint64_t moments_bytes;
    rlhf_clip *clip; // [n_own] as downloaded from dev_clip
    rlhf_dev dev_clip;
    // A list of all pieces, followed by the o->n_between ranges between them. A piece's weight
    // pointer is NULL if the piece is not in one of this process's blocks, or is part of a matrix
    // that uses Muon.
    uint64_t *len;
    rlhf_dev *places; // g, w, m, v
    double *rates;    // lr, weight_decay of the current step
    uint32_t n_list;
    int32_t is_late; // 1: the caller receives other blocks' new values after the step (overlap.h)
};

// Divide the parameters of `o` into blocks: sets o->blocks. `o` must have its items and ranges
// already. [main]
rlhf_status rlhf__optim_blocks_init(struct rlhf__optim *o, const struct rlhf__share *,
                                    struct rlhf__error *err);
void rlhf__optim_blocks_finish(struct rlhf__optim *o); // does nothing without blocks [main]

// Sum up the gradients of this process's blocks over all processes. Does nothing with one process.
// `aside` is as in rlhf__sum_reduce. After this, the caller must take the step. [step]
rlhf_status rlhf__optim_blocks_reduce(struct rlhf__optim *o, const rlhf_dev *aside,
                                      struct rlhf__error *err);

// Call this when the gradients from byte `at` onward (as in struct rlhf__piece) are the sums over
// all shards. Computes the sums of squares of the blocks in this range while the gradients may
// still be in the processor's cache. The next step uses these sums, and computes those of all other
// blocks. Only for a single process. Errors: those of the compute table. [step]
rlhf_status rlhf__optim_blocks_complete(struct rlhf__optim *o, uint64_t at);

// Take a step, as rlhf__optim_step does, and describe it in *clip. With several processes, each
// process updates its own blocks. Then, unless o->blocks->is_late is set, it receives the
// parameters of the other blocks from their owners. [step]
rlhf_status rlhf__optim_blocks_step(struct rlhf__optim *o, double factor, int32_t loss_ok,
                                    rlhf_clip *clip, struct rlhf__error *err);

// Receive the parameters of other blocks from their owners. [step]
rlhf_status rlhf__optim_blocks_spread(struct rlhf__optim *o, struct rlhf__error *err);

// These functions are for an optimizer whose state is divided between processes. They copy the
// elements [from, from + n) of one moment of the item with index `item`. This is the second moment
// if v is 1, otherwise the first moment (or momentum). rlhf__optim_blocks_get collects the elements
// in `host` of rank 0. All ranks must call this function, in the same order; on the other ranks
// `host` may be NULL. rlhf__optim_blocks_put copies those elements from `host` that the rank owns.
// [main]
rlhf_status rlhf__optim_blocks_get(const struct rlhf__optim *o, uint32_t item, int v, uint64_t from,
                                   uint64_t n, float *host, struct rlhf__error *err);
rlhf_status rlhf__optim_blocks_put(struct rlhf__optim *o, uint32_t item, int v, uint64_t from,
                                   uint64_t n, const float *host, struct rlhf__error *err);

#endif
