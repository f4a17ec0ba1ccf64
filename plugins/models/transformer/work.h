// transformer/work.h: a batch on the device and its computed tensors, with shapes.
#ifndef RLHF_MODELS_TRANSFORMER_WORK_H
#define RLHF_MODELS_TRANSFORMER_WORK_H

#include "tensor.h"

// A ragged batch on the device. resp are the n_resp positions whose state predicts a response
// token, target the tokens they predict, read at those tokens' positions; pool is the position at
// which each row's score is read.
struct rlhf__tf_rows {
    uint32_t n, total, n_resp, resp_is_all; // resp_is_all: resp is 0 .. total-1
    rlhf_ragged ragged;
    rlhf_dev ids, pos, resp, target, read, pool;
    rlhf_dev ref; // rows of the reference's states, NULL: not given
};

// Source of the device's rows: a batch, or with gen the step of that session (then start, slot and
// silent are the step's, prefix counts slots and each row that draws is read at its last token).
// NULL prompt_len: no response positions; NULL turn: all from prompt_len on; NULL prefix: none;
// NULL silent: every row draws.
struct rlhf__tf_layout {
    uint32_t n, total;
    const int32_t *ids, *offset, *prompt_len, *prefix, *turn;
    const struct rlhf_gen *gen;
    const int32_t *slot, *start;
    const uint8_t *silent;
    int32_t pooling, reserved;
    const struct rlhf__tf_recorded *recorded; // NULL; or the block lies there, at fixed addresses
    const int32_t *ref; // [response tokens] rows of the reference's states on the device, or NULL
};

// 1 if token t, behind its row's prompt, is one that the policy wrote.
static inline int32_t rlhf__tf_is_response(const int32_t *turn, int32_t t) {
    return !turn || turn[t] >= 0;
}

// Activations of the score head over P states, f32.
struct rlhf__tf_scored {
    struct rlhf__tf_buf px, pstats, pf; // gathered residual [P, d], its norm's [P, 2], the norm
    struct rlhf__tf_buf p1, p1a;        // [P, d] before and after ReLU
    struct rlhf__tf_buf score;          // [P, n_labels]; the token scores are in the work's result
};

// Elements of one token: the residual stream, all query heads, all key (or value) heads, q + 2 kv,
// the MLP, and what its first product gives: inner, or 2 inner where it is gated.
struct rlhf_tf_widths {
    int32_t d, q, kv, qkv, inner, fc;
};

// A layer's activations for T tokens. `in` is the stream at its entry and `out` at its end, which
// is the next layer's `in`; mid is between attention and MLP. h1, h2, stats1, stats2 belong to the
// block of attention and the block of the MLP.
//   pre-norm   h1 = norm(in)   mid = in + attention(h1)   h2 = norm(mid)   out = mid + mlp(h2)
//   post-norm  h1 = in   sum = in + attention(h1)   mid = norm(sum)   h2 = mid   mid += mlp(h2)
//              out = norm(mid)
// sum is where in was, unless in is kept to compute the layer again.
// When not training, in, mid and out may be the same memory, as may h1 and h2, and fc and ac; raw,
// the stats and lse are NULL.
struct rlhf__tf_acts {
    rlhf_dev in, sum, mid, out; // f32 [T, d]
    rlhf_dev h1, h2;            // act dtype [T, d], inputs of qkv's and fc's products
    rlhf_dev stats1, stats2;    // f32 [T, 2], mean and 1/std of both norms; RMS: [T]
    rlhf_dev qkv;               // act dtype [T, q + 2 kv], turned where positions are rotary
    rlhf_dev raw;               // act dtype [T, q + kv], queries and keys before their norms, and
    rlhf_dev raw_stats;         // f32 [T, heads + kv heads], 1/rms; where heads are normed
    rlhf_dev att;               // act dtype [T, q]
    rlhf_dev lse;               // f32 [T, n_head]
    rlhf_dev fc, ac;            // act dtype [T, fc], [T, inner], before and after the activation
    rlhf_dev low[TF_N_SITE];    // act dtype [T, blocks * rank], A x of adapters
};

// Queries, keys and values of the first token of a qkv buffer.
struct rlhf__tf_qkv {
    rlhf_dev q, k, v;
};

// Activations of one batch. Two of these exist: `train` keeps every layer for backward, `infer`
// keeps one layer and is shared by forward(train = 0) and generation.
struct rlhf__tf_work {
    struct rlhf__tf_rows rows;
    struct rlhf__tf_buf ints;
    // Trunk: emb and emb_stats once, of the rest a share for each layer (struct rlhf__tf_acts) when
    // training, `in` one more; else one share that every layer uses again. What is computed again
    // (recompute of rlhf_model_open) has a share for each layer of `in` alone.
    struct rlhf__tf_buf emb, emb_stats; // f32 [T, d], [T, 2]: post-norm's sum of embeddings
    struct rlhf__tf_buf in, sum, mid, h1, h2, stats1, stats2, qkv, raw, raw_stats, att, lse, fc, ac;
    struct rlhf__tf_buf low[TF_N_SITE];
    // LM and value heads, R = n_resp states:
    struct rlhf__tf_buf rx, rstats; // gathered residual f32 [R, d], its norm's [R, 2]
    struct rlhf__tf_buf rf, rh;     // its norm, f32 and act dtype [R, d]
    // The reference's states: act dtype [R, d]; behind f32 [R, d] when they came from the host.
    struct rlhf__tf_buf ref;
    struct rlhf__tf_buf support;          // u32 [R, words of the vocabulary]
    struct rlhf__tf_buf result;           // what a response token has of each head; rlhf__tf_result
    struct rlhf__tf_buf v1;               // f32 [R, 4 d] after ReLU
    struct rlhf__tf_scored pooled, token; // score head: one state a row; each response token
    struct rlhf__tf_buf full, fstats;     // final norm of every token (hidden output, mean pooling)
    rlhf_dev x; // borrowed: the residual stream after the last layer, f32 [total, d]
    rlhf_dev rf_p, rh_p, ref_p, full_p; // borrowed: actual locations of rf, rh, ref, full
    rlhf_dev support_p;                 // borrowed: support, or NULL when the last forward had none
    uint32_t heads;                     // what the last forward made
    int32_t train, valid;               // valid: backward may read this
    int32_t keep, plain; // the trunk keeps what its backward reads; it leaves out the adapter
    // h1, h2 and ac have a single copy, in the scratch: backward recomputes them from in, mid and
    // fc.
    int32_t lean;
};

// Backward's, and what a lean forward does not keep; d of what is named in rlhf__tf_acts and above.
struct rlhf__tf_scratch {
    struct rlhf__tf_buf ds, ds2, dy; // the stream: f32 [T, d], spare, in the act dtype
    // One after the other: the value head's f32 [R, 4 d]; act dtype [T, inner] of the MLP, its
    // activation made again and then d of that; act dtype [T, qkv].
    struct rlhf__tf_buf wide;
    struct rlhf__tf_buf narrow; // act dtype [T, d]: a product's recomputed input, then its gradient
    struct rlhf__tf_buf datt;   // act dtype [T, q]
    struct rlhf__tf_buf dfc;    // act dtype [T, fc], where the MLP is gated
    struct rlhf__tf_buf dlow;   // act dtype [T, blocks * rank]
    struct rlhf__tf_buf dres;   // derivatives, laid out as the work's result
    struct rlhf__tf_buf drh, drf, drx;         // act dtype [R, d]; f32 [R, d], [R, d]
    struct rlhf__tf_buf dscore, dp1, dpf, dpx; // f32 [P, n_labels], [P, d] each
    struct rlhf__tf_buf dfull;                 // f32 [T, d]
};

// Heads of a response token, in their order in result and dres.
enum rlhf__tf_result { TF_LOGP, TF_ENTROPY, TF_KL, TF_VALUE, TF_TOKEN_SCORE, TF_N_RESULT };

// Numbers from one head's row of result (f32 [TF_N_RESULT, stride]) to the next: n_resp, rounded up
// to 64 bytes.
static inline uint64_t rlhf__tf_result_stride(const struct rlhf__tf_rows *r) {
    return ((uint64_t)r->n_resp + 15) & ~(uint64_t)15;
}

// One head's row of result, or of dres.
static inline rlhf_dev rlhf__tf_result(const struct rlhf__tf_buf *b, const struct rlhf__tf_rows *r,
                                       enum rlhf__tf_result head) {
    return rlhf_dev_at(b->p, (uint64_t)head * rlhf__tf_result_stride(r) * sizeof(float));
}

#endif
