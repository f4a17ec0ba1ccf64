// pass.h: runs rows through a model without gradients, in microbatches. Also counts the FLOPs of
// passes, from which perf/mfu is computed.
#ifndef RLHF_HOST_LEARN_PASS_H
#define RLHF_HOST_LEARN_PASS_H

#include "base/watch.h"
#include "batch/rows.h"
#include "model/model.h"

#include <signal.h>

// Returns the FLOPs of the GEMMs of a forward pass in which `model` computes `heads` for the rows
// of `full`. `tokens` is the number of tokens that pass through the layers; a shared prompt counts
// once. The LM head is counted for response tokens if one of `heads` needs its logits. Attention
// scores are not counted. [any]
double rlhf__forward_flops(const struct rlhf__model *model, uint32_t heads, int64_t tokens,
                           const rlhf_batch *full);

// Returns the factor by which the FLOPs of a forward pass are multiplied to include its backward
// pass. Without a backward pass it is 1. With a backward pass it is normally 3. If the trunk is
// frozen under an adapter, it is only 2, because the trunk's weight gradients are skipped. [any]
double rlhf__train_ways(const struct rlhf__model *model, int32_t train);

// Returns the FLOPs of the LM head alone, in a forward pass. [any]
double rlhf__lm_head_flops(const struct rlhf__model *model, const rlhf_batch *full);

// Returns 1 if a group's prompt is computed once, i.e. if the rows allow it (RLHF__SHARE_PROMPTS)
// and the model supports it. [any]
int rlhf__can_share_prompts(const struct rlhf__model *, const struct rlhf__rows *);

// Returns the bytes of one row of dev_hidden. [any]
uint64_t rlhf__state_bytes(const struct rlhf__model *);

// The outputs of a pass without gradients; NULL = not needed.
struct rlhf__pass_out {
    float *logp, *value;             // [total]
    float *hidden;                   // [total, d_model]
    rlhf_dev dev_hidden;             // as in rlhf_heads; only for models with RLHF_CAP_DEV_HIDDEN
    float *score;                    // [n, n_labels]
    double *flops;                   // the FLOPs of the pass's GEMMs are added
    const struct rlhf__watch *watch; // receives the number of rows done; NULL = none
    const char *doing;               // label for the watch
    // Checked between microbatches (RLHF_E_CANCELLED); NULL = never.
    const volatile sig_atomic_t *cancelled;
};

// Run the forward pass of all rows in microbatches, with train = 0. Prompts are shared as in
// training, unless scores are computed. The outputs are in the full layout (batch/shared_batch.h),
// in which every row is written out. [step]
rlhf_status rlhf__pass(const struct rlhf__model *, const struct rlhf__rows *, const rlhf_dist *dist,
                       int64_t microbatch_tokens, const struct rlhf__pass_out *out,
                       struct rlhf__error *err);

// Like rlhf__pass, but only for the rows [first, end). Only the outputs of these rows are written.
// [step]
rlhf_status rlhf__pass_range(const struct rlhf__model *, const struct rlhf__rows *, uint32_t first,
                             uint32_t end, const rlhf_dist *dist, int64_t microbatch_tokens,
                             const struct rlhf__pass_out *out, struct rlhf__error *err);

#endif
