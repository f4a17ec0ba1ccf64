// rlhf/heads.h: the outputs of a model's forward pass that an algorithm sees, as host arrays of
// per-token numbers.
//
// Plugin contract 1.0, frozen: it only grows.
//
// Alignment of per-token arrays [total]: entry t of `logp`, `entropy` and `kl` belongs to the
// prediction of ids[t] from the tokens before it in its row; value[t] is the value of the state
// before ids[t] is chosen. Only response tokens are computed; the rest read 0. logp, entropy and kl
// are natural logarithms (nats). [R:log-probs]
#ifndef RLHF_HEADS_H
#define RLHF_HEADS_H

#include "base.h"

// Outputs of a forward pass. Bits 32 and 64 are taken by model.h.
enum rlhf_head {
    RLHF_HEAD_LOGP = 1,
    RLHF_HEAD_ENTROPY = 2,
    RLHF_HEAD_KL = 4, // divergence between policy and another model over the distribution [R:kl]
    RLHF_HEAD_VALUE = 8,
    RLHF_HEAD_SCORE = 16 // pooled, [n, n_labels]
};

// How one number of a row is made of those of its tokens.
enum rlhf_pool { RLHF_POOL_MEAN = 1, RLHF_POOL_FIRST = 2, RLHF_POOL_LAST = 3 };

// The divergence that the head `kl` contains. p is the model's distribution and q the reference's,
// over the whole vocabulary or the row's support.
enum rlhf_divergence {
    RLHF_DIVERGENCE_REVERSE = 0, // KL(p || q)
    RLHF_DIVERGENCE_FORWARD = 1, // KL(q || p)
    // Generalized Jensen-Shannon (Agarwal et al. 2024, "On-Policy Distillation of Language
    // Models"): beta KL(q || m) + (1 - beta) KL(p || m) with m = beta q + (1 - beta) p, 0 < beta
    // < 1.
    RLHF_DIVERGENCE_JS = 2
};

// The heads that loss() reads. NULL for a head that is not computed.
typedef struct rlhf_head_values {
    uint32_t size, reserved;
    const float *logp, *entropy, *kl, *value; // [total]
    const float *score;                       // [n, n_labels]
} rlhf_head_values;

// The arrays that loss() fills: the derivatives of the loss by the heads. NULL for a head that the
// plan does not request.
typedef struct rlhf_head_gradients {
    uint32_t size, reserved;
    float *logp, *entropy, *kl, *value; // [total]
    float *score;                       // [n, n_labels]
} rlhf_head_gradients;

#endif
