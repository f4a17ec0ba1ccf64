// transformer/work.h: a batch on the device, and the tensors computed from it, with their shapes.
#ifndef RLHF_MODELS_TRANSFORMER_WORK_H
#define RLHF_MODELS_TRANSFORMER_WORK_H

#include "tensor.h"

// A batch of rows on the device, without padding.
//
//   resp    the n_resp positions whose states predict a response token
//   target  the ids of the predicted tokens
//   pool    the position at which each row's score is read
enum { TF_N_PART = 3 };
struct rlhf__tf_rows {
    uint32_t n, total, n_resp, resp_is_all; // resp_is_all: resp is all of 0 .. total-1
    rlhf_ragged ragged;
    // in layers with a ring: the rows of each part of a step (enum rlhf__tf_part); n 0: none
    rlhf_ragged part[TF_N_PART];
    rlhf_dev from, to; // of rlhf_states, in a step of a model with states; otherwise NULL
    rlhf_dev ids, pos, resp, target, read, pool;
    rlhf_dev ref; // rows of the reference's states; NULL: there is no reference
};

// The source of the rows on the device: a batch or, if `gen` is set, a step of that session. For a
// step, `start`, `slot` and `silent` are set, the entries of `prefix` are slots, and a row that
// samples needs only the state of its last token. The meaning of a NULL array:
//
//   prompt_len  rows have no response positions
//   turn        all tokens from prompt_len onward are the policy's
//   prefix      rows have no prefixes
//   silent      every row samples
struct rlhf__tf_layout {
    uint32_t n, total;
    const int32_t *ids, *offset, *prompt_len, *prefix, *turn;
    const struct rlhf_gen *gen;
    const int32_t *slot, *start;
    const uint8_t *silent;
    int32_t pooling;
    const struct rlhf__tf_recorded *recorded; // if set, the rows are copied to its fixed addresses
    const int32_t *order; // [n] row i on the device is row order[i] of the step; NULL: row i
    const int32_t *ref;   // [response tokens] rows of the reference's states on the device, or NULL
};

// Returns 1 if the policy wrote token t. t must be after the prompt of its row.
static inline int32_t rlhf__tf_is_response(const int32_t *turn, int32_t t) {
    return !turn || turn[t] >= 0;
}

// The activations of the score head for P states, f32.
struct rlhf__tf_scored {
    struct rlhf__tf_buf px, pstats, pf; // gathered residual [P, d], norm's stats [P, 2], norm
    struct rlhf__tf_buf p1, p1a;        // [P, d] before and after ReLU
    struct rlhf__tf_buf score;          // [P, n_labels]; the token scores are in the work's result
};

// Elements per token:
//   d       residual stream
//   q, kv   all query heads; all key (or value) heads
//   qkv     q + 2 kv, with gates of attention 2 q + 2 kv
//   inner   the MLP
//   fc      the MLP's first product: inner, or 2 inner if gated
struct rlhf_tf_widths {
    int32_t d, q, kv, qkv, inner, fc;
};

// Elements per token between the first and the second product of a layer (mix.c): the results of
// the first product; the inputs of the second one; what bwd.mix has; the numbers in `lse`.
struct rlhf__tf_mix_widths {
    int32_t first, mixed, scratch, stats;
};

// A layer's activations for T tokens. `in` is the stream at the start of the layer, `mid` the
// stream between attention and MLP, and `out` the stream at the end, which is the next layer's
// `in`. h1 and stats1 belong to the attention block, h2 and stats2 to the MLP. Their values
// depend on norm_at of struct rlhf_tf_arch:
//   BEFORE  h1 = norm(in)   mid = in + attention(h1)   h2 = norm(mid)   out = mid + mlp(h2)
//   AFTER   h1 = in   mid = in + norm(attention(h1))   h2 = mid   out = mid + norm(mlp(h2))
//   AROUND  h1 and h2 as with BEFORE, mid and out as with AFTER
//   SUMS    h1 = in   sum = in + attention(h1)   mid = norm(sum)   h2 = mid   mid += mlp(h2)
//           out = norm(mid)
// `sum` has the memory of `in`, unless `in` is kept to recompute the layer. Without training, the
// members of each of these groups may share memory: in, mid and out; h1 and h2; fc and ac; both
// branches. raw, the stats and lse are then NULL.
struct rlhf__tf_acts {
    rlhf_dev in, sum, mid, out; // f32 [T, d]
    rlhf_dev h1, h2;            // act dtype [T, d], inputs of qkv's and fc's products
    rlhf_dev stats1, stats2;    // f32 [T, 2], mean and 1/std of both norms; RMS: [T]
    rlhf_dev first;             // act dtype, the result of the first product: qkv, or bwd.mix
    rlhf_dev qkv;               // act dtype [T, qkv], rotated if positions are rotary, and then the
                                // gates of attention; or the first product of a layer with a state
    rlhf_dev raw;               // act dtype [T, q + kv], queries and keys before their norms; with
    rlhf_dev raw_stats;         // f32 [T, rlhf__tf_qk_stats()], 1/rms; only with qk_norm
    rlhf_dev att;   // act dtype [T, q]; RLHF_TF_CONV: the convolution [T, d]; RLHF_TF_DELTA: the
                    // result of the delta rule [T, value_heads * value_dim]
    rlhf_dev mixed; // act dtype, as wide as att: the second product's input; att or, if a gate
                    // multiplies it, bwd.mixed
    // With norms of the blocks' outputs: f32 [T, d], the outputs of attention and of the MLP before
    // their norms; [T], the stats of these norms; f32 [T, d], for a norm's output where the stream
    // is not stored twice
    rlhf_dev branch[2], branch_stats[2], normed;
    rlhf_dev lse;            // f32 [T, n_head]; RLHF_TF_DELTA: stats of the norm [T, value_heads]
    rlhf_dev fc, ac;         // act dtype [T, fc], [T, inner], before and after the activation
    rlhf_dev low[TF_N_SITE]; // act dtype [T, blocks * rank], A x of adapters
};

// The locations of the first token's queries, keys and values in a qkv buffer.
struct rlhf__tf_qkv {
    rlhf_dev q, k, v;
};

// The activations of one batch. There are two of these structs: `train` keeps every layer for the
// backward pass; `infer` keeps one layer, and is used by forward(train = 0) and by generation.
struct rlhf__tf_work {
    struct rlhf__tf_rows rows;
    struct rlhf__tf_buf ints;
    // The trunk's buffers. emb and emb_stats exist once. In training, each of the other buffers has
    // one part for each layer (struct rlhf__tf_acts), and `in` has one part more. Otherwise all
    // layers use the same part. If layers are recomputed (recompute of rlhf_model_open), only `in`
    // has a part for each layer.
    struct rlhf__tf_buf emb, emb_stats; // f32 [T, d], [T, 2]: the sum of embeddings, if normed
    struct rlhf__tf_buf in, sum, mid, h1, h2, stats1, stats2, qkv, raw, raw_stats, att, lse, fc, ac;
    struct rlhf__tf_buf branch, branch_stats; // two parts for each layer
    struct rlhf__tf_buf low[TF_N_SITE];
    // LM head and value head, with R = n_resp states:
    struct rlhf__tf_buf rx, rstats; // gathered residual f32 [R, d]; its norm's stats [R, 2]
    struct rlhf__tf_buf rf, rh;     // output of that norm, f32 and act dtype [R, d]
    // The reference's states: act dtype [R, d]. If they came from the host and the act dtype is not
    // f32, their f32 copy [R, d] is stored before them.
    struct rlhf__tf_buf ref;
    struct rlhf__tf_buf support;          // u32 [R, words of the vocabulary]
    struct rlhf__tf_buf result;           // the heads of each response token; rlhf__tf_result
    struct rlhf__tf_buf v1;               // f32 [R, 4 d] after ReLU
    struct rlhf__tf_scored pooled, token; // score head: for each row; for each response token
    struct rlhf__tf_buf full, fstats;     // final norm of all tokens (hidden, mean pooling)
    rlhf_dev x; // borrowed: the residual stream after the last layer, f32 [total, d]
    rlhf_dev rf_p, rh_p, ref_p, full_p; // borrowed: the locations of rf, rh, ref, full
    rlhf_dev support_p;                 // borrowed: support; NULL if the last forward pass had none
    uint32_t heads;                     // bits of the heads that the last forward computed
    int32_t train, valid;               // valid: the backward pass may read these activations
    int32_t keep, plain; // keep 1: keep activations for backward; plain 1: leave out the adapter
    // 1: h1, h2 and ac exist only once, in the scratch buffers, not for each layer. The backward
    // pass recomputes them from in, mid and fc.
    int32_t lean;
};

// Buffers of the backward pass, and buffers for the values that a forward pass with `lean` does not
// keep. The name dX means the gradient of X, which is a member of rlhf__tf_acts or of the structs
// above.
struct rlhf__tf_scratch {
    struct rlhf__tf_buf ds, ds2, dy; // the stream: f32 [T, d], a spare buffer, and in the act dtype
    // Holds one array at a time, in this order: f32 [R, 4 d] for the value head; act dtype [T,
    // inner] for the MLP's recomputed activation, then for its gradient; act dtype [T, qkv] for the
    // gradient of qkv.
    struct rlhf__tf_buf wide;
    struct rlhf__tf_buf narrow; // act dtype [T, d]: a product's recomputed input, then its gradient
    struct rlhf__tf_buf datt;   // act dtype, as wide as att
    // act dtype [T, fc], if the MLP is gated; also the gradient of what bwd.mix has
    struct rlhf__tf_buf dfc;
    // act dtype: att times its gate; and one of these arrays at a time: the first product of
    // attention with gates; the input of a convolution (RLHF_TF_CONV), or its result
    struct rlhf__tf_buf mixed, mix;
    struct rlhf__tf_buf dlow;                  // act dtype [T, blocks * rank]
    struct rlhf__tf_buf dres;                  // gradients, in the layout of `result`
    struct rlhf__tf_buf drh, drf, drx;         // act dtype [R, d]; f32 [R, d], [R, d]
    struct rlhf__tf_buf dscore, dp1, dpf, dpx; // f32 [P, n_labels], [P, d] each
    struct rlhf__tf_buf dfull;                 // f32 [T, d]
};

// The heads of a response token, in the order of `result` and dres.
enum rlhf__tf_result { TF_LOGP, TF_ENTROPY, TF_KL, TF_VALUE, TF_TOKEN_SCORE, TF_N_RESULT };

// Returns the row stride, in floats, of `result`, f32 [TF_N_RESULT, stride], which has one row per
// head. The stride is n_resp, rounded up so that a row is a multiple of 64 bytes.
static inline uint64_t rlhf__tf_result_stride(const struct rlhf__tf_rows *r) {
    return ((uint64_t)r->n_resp + 15) & ~(uint64_t)15;
}

// The row of one head in `result` or dres.
static inline rlhf_dev rlhf__tf_result(const struct rlhf__tf_buf *b, const struct rlhf__tf_rows *r,
                                       enum rlhf__tf_result head) {
    return rlhf_dev_at(b->p, (uint64_t)head * rlhf__tf_result_stride(r) * sizeof(float));
}

#endif
