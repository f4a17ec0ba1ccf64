// state_list.h: the list of the hot loops of layers with a state (state/). Only hot.h includes it.
#ifndef RLHF_CPU_MACHINE_STATE_LIST_H
#define RLHF_CPU_MACHINE_STATE_LIST_H

#include <stddef.h>
#include <stdint.h>

enum { RLHF__CONV_BLOCK = 64, RLHF__CONV_TAPS = 8 }; // channels of an item; most taps

// Some channels of one row of a convolution. x, y, dx and dy point to the row's first token, at the
// first channel. Strides are in elements.
struct rlhf__conv_item {
    const void *x, *before[RLHF__CONV_TAPS - 1]; // the taps - 1 tokens before x, oldest first;
                                                 // NULL: zeros
    const float *weight, *bias;                  // [taps, RLHF__CONV_BLOCK], [RLHF__CONV_BLOCK]
    void *y;                                     // forward
    const void *dy;                              // backward
    void *dx;
    const float *later; // backward: gradients of the row's last taps - 1 tokens that later rows
                        // have added, [taps - 1, RLHF__CONV_BLOCK]; NULL: none
    float *earlier;     // backward: the same of the tokens before x: +=
    float *sums;        // backward: += dweight, then dbias, [taps + 1, RLHF__CONV_BLOCK]
    float *scratch;     // backward: rlhf__conv_scratch floats
    int64_t x_stride, y_stride;
    uint32_t n, channels;
    int32_t taps, act, bf16;
};

// The floats of scratch memory that a backward item with n tokens needs.
size_t rlhf__conv_scratch(uint32_t n);

// One value head of one row of the gated delta rule. q, k, v, beta, alpha, out and the gradients
// point to the row's first token, at the head. Strides are in elements. A state is f32 [key_dim,
// value_dim].
struct rlhf__delta_item {
    const void *q, *k, *v, *beta, *alpha;
    void *out;         // forward; NULL: only the state is computed
    const float *from; // the state before the row; NULL: zeros
    float *to;         // forward: the state after it; may be `from`; NULL: not stored
    // Backward: `grad` is [key_dim, value_dim], padded in both directions to multiples of 16. On
    // entry it is the gradient of the state after the row, on return that of the state before it.
    // dqk is the gradient of the normalized queries and keys, [n, 2 * key_dim], each padded to a
    // multiple of 16; it is overwritten if `first` is set, and otherwise added to. If `last` is
    // set, dq and dk are then written.
    float *grad, *dqk;
    const void *dout;
    void *dq, *dk, *dv, *dbeta, *dalpha;
    float *sums;    // backward: += the gradients of a_log and dt_bias
    float *scratch; // rlhf__delta_scratch(_bwd) floats, 64-byte aligned
    int64_t x_stride, gate_stride, out_stride;
    uint32_t n;
    int32_t key_dim, value_dim, bf16, first, last;
    float scale, eps, a_log, dt_bias;
};

// The floats of scratch memory of an item with at most n tokens, the same at all levels.
size_t rlhf__delta_scratch(int32_t key_dim, int32_t value_dim);
size_t rlhf__delta_scratch_bwd(uint32_t n, int32_t key_dim, int32_t value_dim);

// One row of a gated norm.
struct rlhf__gated_row {
    const void *x, *gate;
    void *out;
    float *stats; // [heads]; may be NULL
    const void *dout;
    void *dx, *dgate;
    float *part; // backward: += dgamma; NULL: skip
    const float *gamma;
    size_t heads, head_dim;
    float eps;
    int32_t act, bf16;
};

// X(name, args), as in hot.h.
//
// conv, delta, gated_norm            one item or row
// conv_bwd, delta_bwd, gated_norm_bwd  their derivatives
#define RLHF__HOT_STATE(X)                                                                         \
    X(conv, (const struct rlhf__conv_item *it))                                                    \
    X(conv_bwd, (const struct rlhf__conv_item *it))                                                \
    X(delta, (const struct rlhf__delta_item *it))                                                  \
    X(delta_bwd, (const struct rlhf__delta_item *it))                                              \
    X(gated_norm, (const struct rlhf__gated_row *r))                                               \
    X(gated_norm_bwd, (const struct rlhf__gated_row *r))

#endif
