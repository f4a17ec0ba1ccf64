// delta.h: one head of the gated delta rule, token by token (delta.c, delta_bwd.c).
#ifndef RLHF_KERNELS_REFERENCE_DELTA_H
#define RLHF_KERNELS_REFERENCE_DELTA_H

#include "state.h"

// The tensors of a call.
struct rlhf__ref_delta {
    const rlhf_delta *d;
    rlhf_dev x, beta, alpha;
};

// The numbers of one token and value head. q, k and v are scratch memory.
struct rlhf__ref_delta_token {
    double g, b;         // factor of the state, and of the update
    double q_inv, k_inv; // 1 / sqrt(sum of squares + eps)
    double *q, *k;       // [key_dim], normalized; q also scaled
    double *v;           // [value_dim]
    double *error, *out; // [value_dim]: v - S^T k before the update; S^T q after it
};

// Returns scratch memory for a token, and sets the pointers of *t into it. The caller frees it.
rlhf_status rlhf__ref_delta_token_scratch(struct rlhf__ref *r, const rlhf_delta *d,
                                          struct rlhf__ref_delta_token *t, void **out);

// Reads row `row` of the tensors, for value head h.
void rlhf__ref_delta_read_token(const struct rlhf__ref_delta *a, uint64_t row, uint64_t h,
                                struct rlhf__ref_delta_token *t);

// Sets `to` to the state after the token, and t->error and t->out. S is f32 [key_dim, value_dim],
// rounded after every token. `to` may be `from`.
void rlhf__ref_delta_step(const rlhf_delta *d, const float *from, float *to,
                          struct rlhf__ref_delta_token *t);

// Copies the caller's struct to *d, and sets r->op to `op`.
rlhf_status rlhf__ref_delta_struct(struct rlhf__ref *r, const char *op, rlhf_delta *d,
                                   const rlhf_delta *from);

// The elements of a row of x, and of a head's state.
uint64_t rlhf__ref_delta_width(const rlhf_delta *d);
uint64_t rlhf__ref_delta_state(const rlhf_delta *d);

#endif
