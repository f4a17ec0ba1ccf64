// pass.h: runs rows through a model without gradients, in microbatches.
#ifndef RLHF_HOST_PASS_H
#define RLHF_HOST_PASS_H

#include "base/watch.h"
#include "batch/rows.h"
#include "model/model.h"

#include <signal.h>

// 1 if the model computes the prompt of a group's rows once: the rows allow it
// (RLHF__SHARE_PROMPTS) and the model can. [any]
int rlhf__can_share_prompts(const struct rlhf__model *, const struct rlhf__rows *);

// Bytes of one row of dev_hidden. [any]
uint64_t rlhf__state_bytes(const struct rlhf__model *);

// Outputs of a pass without gradients; NULL = not needed.
struct rlhf__pass_out {
    float *logp, *value;             // [total]
    float *hidden;                   // [total, d_model]
    rlhf_dev dev_hidden;             // as in rlhf_heads; models with RLHF_CAP_DEV_HIDDEN only
    float *score;                    // [n, n_labels]
    double *flops;                   // grows by the operations of the pass's matrix products
    const struct rlhf__watch *watch; // receives the number of rows done; NULL = none
    const char *doing;               // label for the watch
    // Checked between microbatches (RLHF_E_CANCELLED); NULL = never.
    const volatile sig_atomic_t *cancelled;
};

// Forward all rows in microbatches, train = 0. Prompts are shared as in training (but not for
// scores); outputs are laid out with every row written out. [step]
rlhf_status rlhf__pass(const struct rlhf__model *, const struct rlhf__rows *, const rlhf_dist *dist,
                       int64_t microbatch_tokens, const struct rlhf__pass_out *out,
                       struct rlhf__error *err);

#endif
