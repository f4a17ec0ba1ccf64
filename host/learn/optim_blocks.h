// optim_blocks.h: the optimizer of a run whose minibatches are divided into shards. It takes its
// step block by block (team/blocks.h), so that the gradient norm does not depend on which process
// sums up which block.
//
// The squared norm is the sum of the blocks' sums of squares, in order; a block's sum is that of
// its pieces. With one shard it is the sum of the tensors' sums, which is rounded
// differently.
#ifndef RLHF_HOST_OPTIM_BLOCKS_H
#define RLHF_HOST_OPTIM_BLOCKS_H

#include "learn/optim.h"
#include "team/blocks.h"

struct rlhf__optim_blocks {
    struct rlhf__share share;
    struct rlhf__blocks cut;
    uint32_t n_own, reserved; // blocks of this process
    double *sum;              // [cut.n] sums of squares
    rlhf_clip *clip;          // [n_own] as downloaded from dev_clip
    rlhf_dev dev_clip;
    // All pieces as one list, then o->n_between ranges between them. Only pieces of own blocks, and
    // none of Muon's matrices, have a weight.
    uint64_t *len;
    rlhf_dev *places; // g, w, m, v
    double *rates;    // lr, weight_decay of the current step
    uint32_t n_list, reserved2;
};

// Divide o's parameters into blocks: sets o->blocks. o has its items and ranges. [main]
rlhf_status rlhf__optim_blocks_init(struct rlhf__optim *o, const struct rlhf__share *,
                                    struct rlhf__error *err);
void rlhf__optim_blocks_destroy(struct rlhf__optim *o); // without blocks: nothing [main]

// Take a step, as rlhf__optim_step does, and describe it in *clip. [step]
rlhf_status rlhf__optim_blocks_step(struct rlhf__optim *o, double factor, int32_t loss_ok,
                                    rlhf_clip *clip, struct rlhf__error *err);

#endif
