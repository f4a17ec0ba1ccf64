// rlhf/compute.h: the compute table. Its type is the same for every device. Compute backends
// implement it (kernels_cpu.so, kernels_reference.so, kernels_cuda.so); model plugins call it.
//
// Compute contract 0.14, a draft: it may change in any minor.
//
// Device memory is opaque: an rlhf_dev is never dereferenced outside a table function, except by a
// host that uses RLHF_COMPUTE_HOST_MEMORY. Byte offsets into one allocation are allowed
// (rlhf_dev_at). Every rlhf_dev below is device memory. Host memory is used only by uploads and
// downloads, by parameters named host_*, and where a comment says so.
//
// Guarantees of a backend, asserted by tests:
//   row exactness     with RLHF_COMPUTE_ROW_EXACT: the bits of output row i do not depend on which
//                     or how many other rows are in the call (linear, norm, rms_norm, act,
//                     gate, rope, attention, lm_head, lm_sample, pool);
//   threads           no result depends on the number of threads;
//   reductions        over rows (linear_dw, norm_bwd, rms_norm_bwd, rope_bwd, embed_bwd, sumsq)
//                     have a fixed order.
// On a row-exact backend, the log-prob from sampling and the one from the training forward pass are
// therefore equal bit for bit.
//
// Shapes are in elements, row-major and dense unless a stride is given. `act dtype` is the dtype of
// activations (RLHF_F32 or RLHF_BF16); matrix products accumulate in f32. A bf16 store rounds to
// nearest even. All functions are [step] per table: one call at a time. They take effect in call
// order, but may be asynchronous until sync, download, or a host_ output. Unless stated otherwise,
// outputs must not overlap inputs.
//
// A failing function returns a negative status and passes the message to host->fail; a model
// returns that status and does not add a message. A backend may delay reporting invalid contents of
// device arrays (an id outside the vocabulary, inconsistent offsets) until the next sync, download
// or host_ output; the outputs are then undefined. [R:rows] [R:step]
#ifndef RLHF_COMPUTE_H
#define RLHF_COMPUTE_H

#include "heads.h"
#include "plugin.h"

#define RLHF_COMPUTE_MAJOR 0 // model.h and compute.h: exact match until this contract is frozen
#define RLHF_COMPUTE_MINOR 14

enum rlhf_dtype { RLHF_F32 = 1, RLHF_BF16 = 2, RLHF_I32 = 3 };

static inline uint64_t rlhf_dtype_size(int32_t dtype) { return dtype == RLHF_BF16 ? 2 : 4; }

// A device address. Only backends define the struct, so code outside a backend cannot dereference
// the address or do arithmetic on it, except with rlhf_dev_at.
typedef struct rlhf_dev_mem *rlhf_dev;

// Returns the address `bytes` after base, within base's allocation.
static inline rlhf_dev rlhf_dev_at(rlhf_dev base, uint64_t bytes) {
    return (rlhf_dev)(void *)((char *)base + bytes);
}

// A weight matrix packed in the layouts that are fastest on the device. Created by weight_create.
typedef struct rlhf_weight rlhf_weight;

enum rlhf_weight_flag {
    RLHF_WEIGHT_OUT_IN =
        1, // the f32 source is [n, k] (torch.nn.Linear, tied embeddings), not [k, n]
    RLHF_WEIGHT_BACKWARD = 2 // linear_dx will be called: also keep the layout for it
};
// All bits defined in this header; weight_create rejects others (RLHF_E_UNSUPPORTED).
#define RLHF_WEIGHT_KNOWN (RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD)

// How the elements of a weight's source are stored. The quantised formats are those of GGUF files
// (ggml). They store the elements of a row in blocks, and a block is dequantised as the Python
// package gguf does it: in f32, each operation rounded once. d, m and dmin are f16 numbers of the
// block, widened to f32; q are its integers:
//   Q8_0  q * d                   Q4_K  (d * scale) * q - (dmin * min)
//   Q4_0  d * (q - 8)             Q6_K  (d * scale) * (q - 32)
//   Q4_1  (d * q) + m             Q5_0  d * (q - 16)
//   Q5_1  (d * q) + m
enum rlhf_format {
    RLHF_FORMAT_F32 = 0,
    RLHF_FORMAT_Q8_0 = 1,
    RLHF_FORMAT_Q4_0 = 2,
    RLHF_FORMAT_Q4_1 = 3,
    RLHF_FORMAT_Q4_K = 4,
    RLHF_FORMAT_Q6_K = 5,
    RLHF_FORMAT_Q5_0 = 6,
    RLHF_FORMAT_Q5_1 = 7
};

// The elements of a block; 0: the format is unknown.
static inline int32_t rlhf_format_elements(int32_t format) {
    return format == RLHF_FORMAT_F32                                  ? 1
           : format >= RLHF_FORMAT_Q8_0 && format <= RLHF_FORMAT_Q4_1 ? 32
           : format == RLHF_FORMAT_Q5_0 || format == RLHF_FORMAT_Q5_1 ? 32
           : format == RLHF_FORMAT_Q4_K || format == RLHF_FORMAT_Q6_K ? 256
                                                                      : 0;
}

// The bytes of a block; 0: the format is unknown.
static inline int32_t rlhf_format_bytes(int32_t format) {
    return format == RLHF_FORMAT_F32    ? 4
           : format == RLHF_FORMAT_Q8_0 ? 34
           : format == RLHF_FORMAT_Q4_0 ? 18
           : format == RLHF_FORMAT_Q4_1 ? 20
           : format == RLHF_FORMAT_Q4_K ? 144
           : format == RLHF_FORMAT_Q6_K ? 210
           : format == RLHF_FORMAT_Q5_0 ? 22
           : format == RLHF_FORMAT_Q5_1 ? 24
                                        : 0;
}

// The bytes of a row of k elements; k is a multiple of the elements of a block.
static inline uint64_t rlhf_format_row_bytes(int32_t format, int32_t k) {
    const int32_t elements = rlhf_format_elements(format);
    return elements ? (uint64_t)(k / elements) * (uint64_t)rlhf_format_bytes(format) : 0;
}

enum rlhf_act {
    RLHF_ACT_GELU_TANH = 1,
    RLHF_ACT_GELU_ERF = 2,
    RLHF_ACT_RELU = 3,
    RLHF_ACT_SILU = 4,   // x / (1 + e^-x) (Elfwing et al. 2017)
    RLHF_ACT_RELU2 = 5,  // relu(x)^2 (So et al. 2021)
    RLHF_ACT_SIGMOID = 6 // 1 / (1 + e^-x)
};

// Layout of the queries and keys of n ragged rows. Query token t of row i (offset[i] <= t <
// offset[i+1]) has position start[i] + t - offset[i]. If `causal` is set, the token sees the row's
// keys 0..position (with a window, the last ones of these, see rlhf_attn), otherwise all start[i] +
// offset[i+1] - offset[i] keys of the row. Key j of row i is at (kv_base[i] + j) * kv_stride
// elements from k and v.
//
// Rows may share a prefix. The first prefix_len[i] <= start[i] keys of row i are then those of the
// prefix: key j is at (prefix_base[i] + j) * kv_stride. The row's other keys, j >= prefix_len[i],
// are at (kv_base[i] + j - prefix_len[i]) * kv_stride. A query's result depends on the keys but not
// on their location, so the bits are the same with and without a shared prefix. All arrays of this
// struct are in device memory.
//
// Only keys that a query sees need a location. So with a window, kv_base and prefix_base may be
// negative, as for a ring of the last keys: its first part is the prefix, the other the own keys.
typedef struct rlhf_ragged {
    uint32_t size;
    uint32_t n, total;     // rows; query tokens
    uint32_t max_q, max_k; // at least the longest row's queries and keys (prefix counted)
    uint32_t reserved;
    rlhf_dev offset;      // i32 [n + 1]
    rlhf_dev start;       // i32 [n], tokens before the first query (prefix counted)
    rlhf_dev kv_base;     // i32 [n]
    rlhf_dev prefix_base; // i32 [n], or NULL: no row has a prefix
    rlhf_dev prefix_len;  // i32 [n], 0 = none; NULL if prefix_base is NULL
} rlhf_ragged;

// Geometry of an attention call. Strides in elements between consecutive tokens.
typedef struct rlhf_attn {
    uint32_t size;
    int32_t heads;
    // Number of heads of k and v, which must divide heads; 0 = heads. Query head h reads key and
    // value head h / (heads / kv_heads). A row of k, v, dk or dv has kv_heads * head_dim columns.
    int32_t kv_heads;
    int32_t head_dim, causal, dtype;
    int64_t q_stride, kv_stride, out_stride;
    double scale; // usually 1/sqrt(head_dim)
    // Sliding window: a query at position p sees the keys p - window + 1 .. p, as with
    // sliding_window of transformers. Keys outside of the window are not read, and the bits of a
    // query that sees all keys up to its own are those without a window. 0 = no window; otherwise
    // `causal` must be set.
    int32_t window;
    int32_t reserved;
    // Each score s = scale * q . k becomes softcap * tanh(s / softcap) (Bello et al. 2016; Gemma
    // 2). 0 = off; finite.
    double softcap;
} rlhf_attn;

// Rotary position embedding (Su et al. 2021), the variant that rotates the two halves of a head:
// for pair (c, c + h), where h = head_dim / 2, y_c = x_c cos - x_{c+h} sin and y_{c+h} = x_{c+h}
// cos + x_c sin. With rotary_dim below head_dim, only the first rotary_dim elements of a head are
// rotated, in pairs (c, c + rotary_dim / 2). cos and sin are in the position's row of the table
// `turn`. The rows of x are `stride` elements apart. Each begins with the queries (heads * head_dim
// elements), followed by the keys (kv_heads * head_dim); the elements after the keys are unchanged.
//
// With gamma_q and gamma_k, each head is RMS-normalized first: x = gamma * x / sqrt(mean(x^2) +
// eps). Norm and rotation are computed in f32 from the stored values and rounded once.
typedef struct rlhf_rope {
    uint32_t size;
    int32_t heads, kv_heads; // heads of queries and of keys; kv_heads 0 = heads
    int32_t head_dim;        // even
    int32_t dtype;           // dtype of x, dx and raw
    int32_t n_pos;           // rows of turn
    int64_t stride;          // elements between rows of x, at least those of the queries and keys
    double eps;              // epsilon of the norms
    rlhf_dev pos;            // i32 [rows], 0 .. n_pos - 1 (others give RLHF_E_INVALID, as for ids)
    rlhf_dev turn; // f32 [n_pos, rotary_dim]: cosines of the position's h angles, then their sines
    rlhf_dev gamma_q, gamma_k; // f32 [head_dim] each (see `whole`); both NULL: no norms
    // The data of the norms for the backward pass: rope writes both arrays, and rope_bwd reads
    // them. Both are NULL without norms, and in a forward pass that no backward pass follows.
    rlhf_dev raw;        // dtype [rows, (heads + kv_heads) * head_dim]: x on entry
    rlhf_dev stats;      // f32 [rows, heads + kv_heads]: 1 / sqrt(mean(x^2) + eps) of each head
    double gamma_offset; // added to gamma_q and gamma_k, as in rms_norm
    int32_t rotary_dim;  // even, at most head_dim; 0 = head_dim
    // 1: a row has one norm of all its queries and one of all its keys. Then gamma_q is f32 [heads
    // * head_dim], gamma_k [kv_heads * head_dim], and stats [rows, 2]. 0: each head has its own
    // norm.
    int32_t whole;
} rlhf_rope;

// The states of layers that have one (conv, delta), for ragged rows that continue others. Row i
// begins with the state in slot from[i] (-1: with zeros), and its last state is stored in slot
// to[i] (-1: nowhere). A call works on its rows in order, so row i may begin with what an earlier
// row stored. The state of slot s begins `stride` * s bytes after `state`. All arrays are in device
// memory. Of rlhf_ragged, conv and delta read n, total, max_q and offset, and in the training
// layout the prefix arrays.
//
// Instead of such states, calls in the training layout (see attention_bwd) pass NULL. A row without
// a prefix then begins with zeros, and a row with a prefix with the last state of the prefix row.
typedef struct rlhf_states {
    uint32_t size, reserved;
    rlhf_dev state;
    int64_t stride;    // bytes; a multiple of 64
    rlhf_dev from, to; // i32 [n]
} rlhf_states;

// Causal convolution of each channel over the tokens of ragged rows: y[t, c] = f(bias[c] + sum over
// j of weight[c, j] * x[t - taps + 1 + j, c]), added in the order of j, in f32, rounded once.
// Tokens before the row's first are those of its state: the last taps - 1 rows of x, dtype [taps -
// 1, channels], oldest first.
typedef struct rlhf_conv {
    uint32_t size;
    int32_t channels, taps; // taps: 2 .. 8
    int32_t dtype;          // of x, y and their gradients
    int32_t act;            // enum rlhf_act of f; 0: none
    uint32_t reserved;
    int64_t x_stride, y_stride; // elements between rows; dx has the stride of x, dy that of y
    rlhf_dev weight;            // f32 [channels, taps]
    rlhf_dev bias;              // f32 [channels], or NULL
} rlhf_conv;

// The gated delta rule (Yang et al. 2024) over the tokens of ragged rows. A row of x has queries
// and keys (key_heads * key_dim each) and then values (heads * value_dim). Value head h reads query
// and key head h / (heads / key_heads). With q, k, v of a token and head:
//   q = scale * q / sqrt(sum(q^2) + eps)      k = k / sqrt(sum(k^2) + eps)
//   g = exp(-exp(a_log[h]) * softplus(alpha[t, h] + dt_bias[h]))      b = sigmoid(beta[t, h])
//   S = g S;   S += k (b (v - S^T k))^T;   out = S^T q
// in f32 from the stored values, out rounded once. S is the state, f32 [heads, key_dim, value_dim].
typedef struct rlhf_delta {
    uint32_t size;
    int32_t heads, key_heads;                  // key_heads divides heads
    int32_t key_dim, value_dim;                // of a head
    int32_t dtype;                             // of x, beta, alpha, out and their gradients
    int64_t x_stride, gate_stride, out_stride; // elements between rows; gate_stride: beta and alpha
    double scale, eps;
    rlhf_dev a_log, dt_bias; // f32 [heads]
} rlhf_delta;

// RMS norm of each head, times the activation of a gate: out[t, h, c] = gamma[c] * x[t, h, c] /
// sqrt(mean over c of x[t, h, c]^2 + eps) * f(gate[t, h, c]), in f32, rounded once.
typedef struct rlhf_gated_norm {
    uint32_t size;
    int32_t heads, head_dim;
    int32_t dtype; // of x, gate, out and their gradients
    int32_t act;   // enum rlhf_act of f
    uint32_t reserved;
    int64_t x_stride, gate_stride, out_stride; // elements between rows
    double eps;
    rlhf_dev gamma; // f32 [head_dim]
} rlhf_gated_norm;

// Columns of a matrix in blocks: element c of block b in row t is at t * stride + b * step + c.
typedef struct rlhf_columns {
    uint32_t size;
    int32_t blocks, width; // the elements of a row are blocks * width
    int32_t dtype;
    int32_t act; // enum rlhf_act of the gate; 0: none (multiply, multiply_bwd)
    uint32_t reserved;
    int64_t x_stride, gate_stride, out_stride;
    int64_t x_step, gate_step, out_step;
} rlhf_columns;

// The distribution over the vocabulary for sampling and scoring. Steps in order: logits *
// inv_temperature, top-k, softmax, top-p, min-p, renormalize.
typedef struct rlhf_dist {
    uint32_t size;
    int32_t greedy;         // sampling only: take the arg max (lowest id on a tie)
    double inv_temperature; // > 0; ignored when greedy
    double top_p;           // (0, 1]; 1 = off
    int32_t top_k;          // 0 = off
    int32_t reserved;
    // [0, 1]; 0 = off. Drops ids whose probability is below min_p times the highest probability.
    // The table must have RLHF_COMPUTE_MIN_P.
    double min_p;
} rlhf_dist;

// Initializers of an rlhf_dist: one from the given fields, one for the whole vocabulary at
// temperature 1.
#define RLHF_DIST(inv_temperature, top_p, top_k, greedy)                                           \
    { (uint32_t)sizeof(rlhf_dist), greedy, inv_temperature, top_p, top_k, 0, 0.0 }
#define RLHF_DIST_WHOLE RLHF_DIST(1.0, 1.0, 0, 0)

// A support is the set of ids that a row's distribution covers. Id v is bit v % 32 of word v / 32;
// bits past the vocabulary are 0. rlhf_support_words returns the number of words of a row.
static inline uint32_t rlhf_support_words(int32_t vocab) { return ((uint32_t)vocab + 31) / 32; }

// Arguments of lm_head and lm_head_bwd. `rows` is the number of scored positions.
typedef struct rlhf_lm_head {
    uint32_t size, rows;
    int32_t d, vocab, dtype;
    int32_t ref_d;              // width of ref_hidden; 0 = d
    int32_t divergence;         // enum rlhf_divergence; other than REVERSE: RLHF_COMPUTE_DIVERGENCE
    uint32_t reserved;          // 0
    double divergence_beta;     // beta of RLHF_DIVERGENCE_JS
    const rlhf_dist *dist;      // if top_k, top_p or min_p is active, log-probs are renormalized
                                // over the kept set; a target outside it gets -inf
    rlhf_dev hidden;            // act dtype [rows, d], after the final norm
    const rlhf_weight *weight;  // k = d, n = vocab
    rlhf_dev target;            // i32 [rows]
    rlhf_dev logp, entropy, kl; // f32 [rows] each; entropy and kl may be NULL
    rlhf_dev ref_hidden;        // act dtype [rows, ref_d]; needed for kl
    const rlhf_weight *ref_weight;
    // Backward only: the loss's gradients by logp, entropy and kl, f32 [rows]; NULL means zero.
    // d_hidden and d_weight receive the results. The gradients by the products of hidden states and
    // weight are rounded to the act dtype, because they are inputs of matrix products.
    rlhf_dev d_logp, d_entropy, d_kl;
    rlhf_dev d_hidden; // act dtype [rows, d], overwritten
    rlhf_dev d_weight; // f32, layout of the weight's source, accumulated; may be NULL
    // u32 [rows, rlhf_support_words(vocab)]: the support of each row's distribution and of the
    // reference's. It must include the row's target. dist's temperature applies, but its top_k,
    // top_p and min_p are off. NULL: the distribution covers the ids that dist keeps.
    rlhf_dev support;
    // The logits are the products of hidden states and weight, times logit_scale. If softcap is
    // set, they are then replaced by softcap * tanh(logits / softcap) (Gemma 2, 2024). logit_scale
    // 0 = 1; softcap 0 = off. The other two are those of the reference.
    double logit_scale, softcap;
    double ref_logit_scale, ref_softcap;
} rlhf_lm_head;

// Arguments of lm_sample, which samples one id per row by inverse CDF, with the ids in vocabulary
// order. The backend adds probabilities in a fixed order. Row i uses one random number: the first
// double of the block {seed, stream, counter[i]} (rng.h).
typedef struct rlhf_lm_sample {
    uint32_t size, rows;
    int32_t d, vocab, dtype, reserved;
    const rlhf_dist *dist;      // distribution to sample from
    const rlhf_dist *logp_dist; // distribution for logp (may equal dist)
    rlhf_dev hidden;            // act dtype [rows, d]
    const rlhf_weight *weight;
    uint64_t seed, stream;
    const uint64_t *host_counter; // [rows]
    int32_t *host_id;             // out [rows]
    float *host_logp;             // out [rows]; same bits as lm_head's logp for that id
    // out [rows, rlhf_support_words(vocab)], may be NULL: the ids that dist kept for sampling
    // (greedy: only the sampled id). If host_support is not NULL, logp covers this support, at
    // logp_dist's temperature and with logp_dist's top_k, top_p and min_p off.
    uint32_t *host_support;
    // The counterparts of the host_ arrays in device memory. If `id` is set, `counter` and `logp`
    // must be set too. The host_ arrays are then not accessed, and the call does not wait for its
    // results.
    rlhf_dev counter;            // u64 [rows]
    rlhf_dev id;                 // i32 [rows]; NULL: use the host_ arrays
    rlhf_dev logp;               // f32 [rows]
    rlhf_dev support;            // u32 [rows, rlhf_support_words(vocab)], or NULL
    double logit_scale, softcap; // as in rlhf_lm_head, before the distributions
} rlhf_lm_sample;

// A block weight with n outputs. Block b covers the outputs from[b] .. from[b] + count[b] - 1.
// These outputs are computed only from the inputs b * rank .. (b + 1) * rank - 1, and multiplied by
// `scale`. Outputs outside of all blocks are 0. Blocks ascend and do not overlap; k = n_blocks *
// rank. If one product computes several linear layers, a block weight contains the B matrices of
// their separate low-rank adapters (rlhf_adapter in model.h).
typedef struct rlhf_blocks {
    uint32_t size;
    int32_t n, rank, dtype;
    uint32_t flags; // RLHF_WEIGHT_BACKWARD or 0
    uint32_t n_blocks;
    const int32_t *from, *count; // [n_blocks], host memory, borrowed until the call returns
    double scale;
} rlhf_blocks;

// A weight whose rows stay quantised, for a frozen layer. A row is one output of k elements, as
// with RLHF_WEIGHT_OUT_IN, which is implied. The n rows consist of n_parts parts: part p is the
// next count[p] rows, and all of them have format[p], an enum rlhf_format other than
// RLHF_FORMAT_F32. So one matrix may contain the queries, keys and values of a layer in different
// formats. The counts are at least 1, their sum is n, and k is a multiple of the elements of a
// block in every part.
typedef struct rlhf_quantised {
    uint32_t size;
    int32_t k, n, dtype; // dtype: of the operands, as in weight_create
    uint32_t flags;      // RLHF_WEIGHT_BACKWARD, RLHF_WEIGHT_OUT_IN
    uint32_t n_parts;
    const int32_t *format, *count; // [n_parts], host memory, borrowed until the call returns
} rlhf_quantised;

// Arguments of linear_sum. If `across` is 1, linear_sum multiplies by W^T and W2^T, as linear_dx
// does.
typedef struct rlhf_linear_sum {
    uint32_t size, rows;
    int32_t out_dtype, accumulate; // as in linear
    int32_t across, reserved;
    rlhf_dev out;              // [rows, n]; if `across`, [rows, k]
    rlhf_dev x, x2;            // [rows, k], [rows, k2]; if `across`, [rows, n], [rows, n2]
    const rlhf_weight *w, *w2; // both of one dtype; n = n2; if `across`, k = k2
    rlhf_dev bias;             // f32 [n], or NULL; NULL if `across`
} rlhf_linear_sum;

enum rlhf_adam_epsilon { RLHF_ADAM_TORCH = 0, RLHF_ADAM_TF1 = 1 };

// torch: p -= lr * wd * p; p -= lr * mhat / (sqrt(vhat) + eps). tf1: lr_t = lr * sqrt(1 - b2^t) /
// (1 - b1^t); p -= lr_t * m / (sqrt(v) + eps). g is multiplied by grad_scale first.
typedef struct rlhf_adamw {
    uint32_t size;
    int32_t epsilon; // enum rlhf_adam_epsilon
    double lr, beta1, beta2, eps, weight_decay, grad_scale;
    int64_t step; // 1 for the first
} rlhf_adamw;

// Muon (K. Jordan 2024): mom = momentum * mom + g; u = nesterov ? g + momentum * mom : mom;
// u = NewtonSchulz5(u / |u|_F) with ns_steps steps of (3.4445, -4.7750, 2.0315);
// p -= lr * wd * p; p -= lr * sqrt(max(1, outputs / inputs)) * u. The matrix is stored as
// [outputs, inputs] or, if in_out is set, as [inputs, outputs].
typedef struct rlhf_muon {
    uint32_t size;
    int32_t nesterov, ns_steps, in_out;
    double lr, momentum, weight_decay, grad_scale;
} rlhf_muon;

// The tensors of one optimizer step, and the settings of each tensor. Every array has one element
// per tensor, is in host memory, and is borrowed until the call returns.
typedef struct rlhf_tensors {
    uint32_t size, n;
    const uint64_t *len; // elements, f32
    const rlhf_dev *g;   // gradients
    const rlhf_dev *w;   // weights; if an element is NULL, adamw_many only zeroes the gradient
    const rlhf_dev *m, *v;
    const double *lr, *weight_decay;
} rlhf_tensors;

// Written by sumsq_many, read by adamw_many: device memory, 8-byte aligned. Frozen.
typedef struct rlhf_clip {
    double sumsq;     // of all gradients: each tensor's sumsq, added in list order
    double norm;      // the square root of sumsq
    double scale;     // max_norm / norm if max_norm > 0 and norm > max_norm, else 1
    int32_t skip;     // 1: requested by the caller, or norm is not finite
    int32_t reserved; // 0
} rlhf_clip;

// The number of a function of the table: RLHF_COMPUTE_OP(linear).
#define RLHF_COMPUTE_OP(f) ((uint32_t)offsetof(rlhf_compute, f))

// The largest number of workspaces that a backend reports. Frozen.
#define RLHF_WORKSPACES 32

// The largest number of arrays that add_all adds. Frozen.
#define RLHF_ADD_ALL_MAX 32

enum rlhf_call_flag {
    RLHF_CALL_ACCUMULATE = 1, // accumulate is set (linear, linear_dx)
    RLHF_CALL_BIAS = 2,       // bias, or db of linear_dw, is not NULL
    RLHF_CALL_PARAM_GRAD = 4  // a gradient of gamma or beta is not NULL (norm_bwd, rms_norm_bwd,
                              // rope_bwd)
};

// A weight of a call: the arguments it was created with.
typedef struct rlhf_call_weight {
    int32_t k, n, dtype;
    uint32_t flags; // of weight_create; with a rank, RLHF_WEIGHT_OUT_IN is set
    int32_t rank;   // of a block weight, whose k is n_blocks * rank; 0: dense
    int32_t reserved;
    const rlhf_quantised *quantised; // of weight_create_quantised; NULL: not quantised
} rlhf_call_weight;

// Describes a call of one of the table's functions for workspace_bytes and supports: the function
// and the shapes. Members that the function does not use are 0 or NULL. workspace_bytes reads only
// the numbers in the structs that the members point to, and follows no pointer in these structs
// except `dist`, the array `len` of rlhf_tensors and the arrays of rlhf_quantised. It takes the
// shapes of weights from `weight` and `weight2`, not from these structs. It uses a device address
// only to test whether the array is absent (NULL).
typedef struct rlhf_call {
    uint32_t size;
    uint32_t op;               // RLHF_COMPUTE_OP of the function
    uint32_t rows;             // of the call; muon: of the matrix
    int32_t d;                 // width of a row; muon: columns of the matrix
    int32_t dtype;             // of the result, or of dy; muon: of the matrix products, which is
                               // bf16 after a bf16 weight was created
    uint32_t flags;            // bits of enum rlhf_call_flag
    uint64_t n;                // elements (sumsq, adamw, copy, convert, ...)
    rlhf_call_weight weight;   // the weight
    rlhf_call_weight weight2;  // w2 of linear_sum, ref_weight of the LM head
    const rlhf_attn *attn;     // attention, attention_bwd
    const rlhf_ragged *ragged; // attention, attention_bwd, kv_store
    const rlhf_rope *rope;     // rope, rope_bwd
    const rlhf_lm_head *head;  // lm_head, lm_head_bwd
    const rlhf_lm_sample *sample;
    const rlhf_linear_sum *sum;
    const rlhf_muon *muon;
    const rlhf_tensors *tensors;       // sumsq_many, adamw_many
    const rlhf_conv *conv;             // conv, conv_bwd
    const rlhf_delta *delta;           // delta, delta_bwd
    const rlhf_gated_norm *gated_norm; // gated_norm, gated_norm_bwd
    const rlhf_columns *columns;       // multiply, multiply_bwd
} rlhf_call;

enum rlhf_device { RLHF_DEVICE_CPU = 1, RLHF_DEVICE_CUDA = 2 };

enum rlhf_compute_flag {
    RLHF_COMPUTE_ROW_EXACT = 1,  // see the top of this file; without it rows may differ by rounding
    RLHF_COMPUTE_MIN_P = 2,      // supports rlhf_dist.min_p
    RLHF_COMPUTE_DIVERGENCE = 4, // supports rlhf_lm_head.divergence and ref_d
    // Device memory is host memory: an rlhf_dev is an address in host memory, and a call is done
    // when it returns. Between calls the host may read and write device memory itself.
    RLHF_COMPUTE_HOST_MEMORY = 8
};
// All bits defined in this header; others are rejected.
#define RLHF_COMPUTE_KNOWN (2 * RLHF_COMPUTE_HOST_MEMORY - 1)

// What the caller of `record` does next.
enum rlhf_record { RLHF_RECORD_RUN = 0, RLHF_RECORD_CAPTURE = 1, RLHF_RECORD_REPLAY = 2 };

// True if the backend supports the operation `f`, that is, if this member is not NULL and not
// beyond the table's size. `name`, `detail` and the functions up to `sync` are always set. Later
// functions may be missing. So a model checks at open that all operations that it calls are set,
// and names a missing one in its message. The host does the same for the optimizer's operations.
#define RLHF_COMPUTE_HAS(table, f) RLHF_HAS(rlhf_compute, table, f)

typedef struct rlhf_compute {
    uint32_t size;
    int32_t device;   // enum rlhf_device
    uint32_t dtypes;  // bit 1 << dtype for each activation dtype with full speed
    uint32_t threads; // CPU threads in use
    uint32_t flags;   // bits of enum rlhf_compute_flag
    // Recommended values for the device: the number of concurrent rows while sampling, and the
    // tokens per microbatch. 0 = no recommendation. Neither value changes the bits of a row's
    // results.
    uint32_t slots_hint, microbatch_hint, reserved;
    const char *name;   // "cpu", "reference", "cuda"
    const char *detail; // e.g. "avx512_bf16, bf16 products, 2 threads"
    void *ctx;          // first argument of every function

    // ---- memory ----
    // Allocates a buffer, 64-byte aligned and zeroed. The message of RLHF_E_NOMEM names the size.
    // If `bytes` is 0, the buffer is valid and empty.
    rlhf_status (*alloc)(void *ctx, uint64_t bytes, rlhf_dev *out);
    void (*release)(void *ctx, rlhf_dev); // NULL allowed
    uint64_t (*bytes_in_use)(void *ctx);  // buffers, packed weights and workspaces
    // The caller may change or free host_src as soon as this function returns.
    rlhf_status (*upload)(void *ctx, rlhf_dev dst, const void *host_src, uint64_t bytes);
    rlhf_status (*download)(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes);
    rlhf_status (*copy)(void *ctx, rlhf_dev dst, rlhf_dev src, uint64_t bytes);
    rlhf_status (*zero)(void *ctx, rlhf_dev dst, uint64_t bytes);
    rlhf_status (*convert)(void *ctx, rlhf_dev dst, int32_t dst_dtype, rlhf_dev src,
                           int32_t src_dtype, uint64_t n);
    // Waits for all calls issued so far, and reports any failure among them.
    rlhf_status (*sync)(void *ctx);

    // Allocates host memory that the device accesses directly (pinned), 64-byte aligned and zeroed.
    // It may also be passed to upload and download. If `bytes` is 0, the buffer is valid and empty.
    rlhf_status (*alloc_host)(void *ctx, uint64_t bytes, void **out);
    // Waits for pending operations on the buffer. NULL allowed.
    void (*release_host)(void *ctx, void *);
    // Like upload and download, but they do not wait. The host range must be inside one alloc_host
    // buffer. The copy is complete once `sync` returns. To wait for less, call `mark` after this
    // call, and `wait` for its ticket. Until the copy is complete, the caller must not write to the
    // host range or, in the case of download_async, read it.
    rlhf_status (*upload_async)(void *ctx, rlhf_dev dst, const void *host_src, uint64_t bytes);
    rlhf_status (*download_async)(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes);
    // Returns a ticket for all calls issued so far, without waiting. Tickets increase and are never
    // 0.
    rlhf_status (*mark)(void *ctx, uint64_t *ticket);
    // Waits until all calls issued before the ticket's `mark` are done, and reports any failure
    // among them. Later calls may still be running. With ticket 0, returns at once.
    rlhf_status (*wait)(void *ctx, uint64_t ticket);

    // ---- weights and matrix products ----
    rlhf_status (*weight_create)(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                 rlhf_weight **out);
    void (*weight_destroy)(void *ctx, rlhf_weight *); // NULL allowed
    // Creates a block weight. Every function that takes a weight from weight_create also accepts a
    // block weight. The source of weight_pack, and dw of linear_dw, contain only the rows of the
    // blocks, one after the other: f32 [sum of count, rank]. A packed element is `scale` times the
    // source element, in f32, rounded to dtype. linear_dw adds `scale` times its usual sum over
    // rows, which is d(loss)/d(source). A block weight takes as many bytes as a weight with k
    // inputs and n outputs.
    rlhf_status (*weight_create_blocks)(void *ctx, const rlhf_blocks *, rlhf_weight **out);
    // Returns the size in bytes of a packed weight with these arguments; weight_create would add
    // this size to bytes_in_use. Returns 0 if weight_create would reject the arguments. Does not
    // allocate.
    uint64_t (*weight_bytes)(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags);
    rlhf_status (*weight_pack)(void *ctx, rlhf_weight *, rlhf_dev src_f32);
    // out[rows, n] (+)= x[rows, k] W + bias[n]. x has the weight's dtype. out_dtype is f32 or bf16.
    // If `accumulate` is set, the result is added to `out`, which must then be f32. `bias` is f32
    // or NULL.
    rlhf_status (*linear)(void *ctx, rlhf_dev out, int32_t out_dtype, int32_t accumulate,
                          rlhf_dev x, const rlhf_weight *, rlhf_dev bias, uint32_t rows);
    // dx[rows, k] (+)= dy[rows, n] W^T. dy has the weight's dtype.
    rlhf_status (*linear_dx)(void *ctx, rlhf_dev dx, int32_t dx_dtype, int32_t accumulate,
                             rlhf_dev dy, const rlhf_weight *, uint32_t rows);
    // dw += x^T dy, in the layout of the weight's f32 source; db[n] += column sums of dy. db is
    // NULL without a bias. x and dy have the weight's dtype; dw and db are f32.
    rlhf_status (*linear_dw)(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                             const rlhf_weight *, uint32_t rows);

    // out[rows, n] = add[rows, n] + x[rows, k] W + bias[n]; `out` and `add` are f32, and `add` may
    // be `out`. x has the weight's dtype. `bias` is f32 or NULL. The result has the same bits as
    // copying `add` to `out` and then calling linear with `accumulate`. Row exactness is as in
    // linear.
    rlhf_status (*linear_add)(void *ctx, rlhf_dev out, rlhf_dev add, rlhf_dev x,
                              const rlhf_weight *, rlhf_dev bias, uint32_t rows);

    // out[rows, n] (+)= x W + bias + x2 W2, rounded once. The result has the same bits as three
    // calls: linear to f32 with W, linear with W2 and `accumulate`, and `convert`. Row exactness is
    // as in linear.
    rlhf_status (*linear_sum)(void *ctx, const rlhf_linear_sum *);

    // ---- embedding, norm, activation, residual, rows ----
    // out[t, :] = scale * wte[ids[t], :] + wpe[pos[t], :]; tables and out f32. `scale` is rounded
    // to f32, and the sum is rounded once. If wpe and pos are both NULL, positions are not added.
    rlhf_status (*embed)(void *ctx, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte,
                         rlhf_dev wpe, double scale, uint32_t rows, int32_t d);
    // dwte[ids[t], :] += scale * dout[t, :]; dwpe[pos[t], :] += dout[t, :]. Without positions dwpe
    // and pos are NULL and n_pos is 0.
    rlhf_status (*embed_bwd)(void *ctx, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout, rlhf_dev ids,
                             rlhf_dev pos, double scale, uint32_t rows, int32_t d, int32_t vocab,
                             int32_t n_pos);
    // LayerNorm over d, biased variance. x, gamma and beta are f32. `stats`, f32 [rows, 2],
    // receives mean and 1/std; it may be NULL. `out` is in out_dtype.
    rlhf_status (*norm)(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                        rlhf_dev gamma, rlhf_dev beta, double eps, uint32_t rows, int32_t d);
    // Backward pass of norm. Stores the gradient of x in dx (f32) or, if `accumulate` is set, adds
    // it to dx. Adds the gradients of gamma and beta to dgamma and dbeta (f32 [d], may be NULL). dy
    // is in dy_dtype.
    rlhf_status (*norm_bwd)(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                            rlhf_dev dbeta, rlhf_dev dy, int32_t dy_dtype, rlhf_dev x,
                            rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d);
    // RMS norm over d (Zhang and Sennrich 2019): out = (offset + gamma) * x / sqrt(mean(x^2) +
    // eps). x and gamma are f32, and offset + gamma is rounded to f32. The offset is 0 or, if the
    // parameter is the difference from 1, as in Gemma (2024), 1. `stats`, f32 [rows], receives 1 /
    // sqrt(mean(x^2) + eps); it may be NULL. `out` is in out_dtype.
    rlhf_status (*rms_norm)(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                            rlhf_dev gamma, double offset, double eps, uint32_t rows, int32_t d);
    // Backward pass of rms_norm. Stores the gradient of x in dx (f32) or, if `accumulate` is set,
    // adds it to dx. Adds the gradient of gamma to dgamma (f32 [d], may be NULL). dy is in
    // dy_dtype.
    rlhf_status (*rms_norm_bwd)(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                                rlhf_dev dy, int32_t dy_dtype, rlhf_dev x, rlhf_dev stats,
                                rlhf_dev gamma, double offset, uint32_t rows, int32_t d);
    // out = f(x), dx = dy f'(x). `out` may be `x`, and `dx` may be `dy`.
    rlhf_status (*act)(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                       uint64_t n);
    rlhf_status (*act_bwd)(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                           int32_t dtype, uint64_t n);
    // Gated linear unit (Shazeer 2020): out[t, j] = f(x[t, j]) * x[t, inner + j], in f32, rounded
    // once. x [rows, 2 * inner] and out [rows, inner] are in dtype. `kind` is an enum rlhf_act.
    rlhf_status (*gate)(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                        uint32_t rows, int32_t inner);
    // dx [rows, 2 * inner] is overwritten, and may be x; dy is [rows, inner]. Let a be x[t, j], and
    // let b be x[t, inner + j]. Then dx[t, j] = dy[t, j] b f'(a), and dx[t, inner + j] = dy[t, j]
    // f(a).
    rlhf_status (*gate_bwd)(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                            int32_t dtype, uint32_t rows, int32_t inner);
    // Rotates the queries and keys of x in place, after normalizing them if rlhf_rope has gammas.
    rlhf_status (*rope)(void *ctx, const rlhf_rope *, rlhf_dev x, uint32_t rows);
    // dx has the layout of x. On entry it is the gradient of rope's output; on return it is the
    // gradient of rope's input. Adds the gradients of gamma_q and gamma_k to dgamma_q and dgamma_k,
    // f32 of their sizes, in a fixed order over rows and heads. dgamma_q and dgamma_k may be NULL;
    // without norms they must be NULL.
    rlhf_status (*rope_bwd)(void *ctx, const rlhf_rope *, rlhf_dev dx, rlhf_dev dgamma_q,
                            rlhf_dev dgamma_k, uint32_t rows);
    // dst f32 += src in src_dtype.
    rlhf_status (*add)(void *ctx, rlhf_dev dst, rlhf_dev src, int32_t src_dtype, uint64_t n);
    // out[i, :] = x[idx[i], :], same dtype.
    rlhf_status (*gather)(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n, int32_t d,
                          int32_t dtype);
    // dx[idx[i], :] += dy[i, :]; dx f32, idx distinct.
    rlhf_status (*scatter_add)(void *ctx, rlhf_dev dx, rlhf_dev dy, int32_t dy_dtype, rlhf_dev idx,
                               uint32_t n, int32_t d);
    // out[i, :] = mean, first or last of x[offset[i] .. offset[i+1]-1, :]; `offset` is i32, the
    // other arrays are f32.
    rlhf_status (*pool)(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev offset, uint32_t n, int32_t d,
                        int32_t mode);
    // Overwrites dx f32 [total, d].
    rlhf_status (*pool_bwd)(void *ctx, rlhf_dev dx, rlhf_dev dout, rlhf_dev offset, uint32_t n,
                            int32_t d, int32_t mode);

    // ---- attention ----
    // Stores k and v of the `total` new tokens in a cache. Token j of row i is stored in cache row
    // kv_base[i] + start[i] - prefix_len[i] + j. k and v have stride kv_src_stride, the caches
    // stride d; all are in dtype.
    rlhf_status (*kv_store)(void *ctx, rlhf_dev k_cache, rlhf_dev v_cache, rlhf_dev k, rlhf_dev v,
                            int64_t kv_src_stride, const rlhf_ragged *, int32_t d, int32_t dtype);
    // Writes out[t, h * head_dim + c] (stride out_stride) and, unless NULL, lse f32 [total, heads],
    // the log-sum-exp of the scores, for backward.
    rlhf_status (*attention)(void *ctx, const rlhf_attn *, const rlhf_ragged *, rlhf_dev out,
                             rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v);
    // Training layout only: a row's own keys are its tokens (kv_base = offset), and start =
    // prefix_len. A prefix is an entire earlier row p without a prefix (prefix_base = offset[p],
    // prefix_len = its length); the rows that share it follow it directly. dq, dk, dv are
    // overwritten and have the strides of q, k, v; dk and dv of a prefix row are sums over the row
    // itself and all rows that share it, in row order. dout and out have stride out_stride.
    rlhf_status (*attention_bwd)(void *ctx, const rlhf_attn *, const rlhf_ragged *, rlhf_dev dq,
                                 rlhf_dev dk, rlhf_dev dv, rlhf_dev dout, rlhf_dev out,
                                 rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v);

    // ---- language-model head ----
    // Logits are computed in row blocks that fit the workspace budget.
    rlhf_status (*lm_head)(void *ctx, const rlhf_lm_head *);
    // Uses the stored logits if called directly after lm_head with the same arguments; otherwise
    // recomputes them.
    rlhf_status (*lm_head_bwd)(void *ctx, const rlhf_lm_head *);
    rlhf_status (*lm_sample)(void *ctx, const rlhf_lm_sample *);

    // ---- optimizer ----
    // Computes the sum of squares of x, accumulated in f64. If x contains NaN or Inf, the result is
    // NaN or Inf.
    rlhf_status (*sumsq)(void *ctx, rlhf_dev x, uint64_t n, double *host_out);
    // w, m, v f32 [n]; g f32 [n].
    rlhf_status (*adamw)(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n,
                         const rlhf_adamw *);
    // w, g, mom f32 [rows, cols].
    rlhf_status (*muon)(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev mom, int32_t rows, int32_t cols,
                        const rlhf_muon *);
    // sumsq_many and adamw_many work on many tensors without a round trip to the host. sumsq_many
    // computes *clip from all gradients g. *clip is device memory of sizeof(rlhf_clip) bytes.
    // sumsq_many does not read w, m or v (they may be NULL). If max_norm <= 0, the gradients are
    // not clipped. If the argument `skip` is 1, adamw_many will skip the step in any case.
    rlhf_status (*sumsq_many)(void *ctx, const rlhf_tensors *, double max_norm, int32_t skip,
                              rlhf_dev clip);
    // Applies adamw to each tensor and zeroes its gradient. The lr of rlhf_adamw is multiplied by
    // the tensor's lr, weight_decay by the tensor's weight_decay, and grad_scale by the scale of
    // *clip. If the clip's `skip` is set, w, m and v are unchanged and only the gradients are
    // zeroed. If `clip` is NULL, the scale is 1 and nothing is skipped. The result has the same
    // bits as calling adamw with these values, and then `zero`, for each tensor.
    rlhf_status (*adamw_many)(void *ctx, const rlhf_tensors *, const rlhf_adamw *, rlhf_dev clip);

    // ---- recording ----
    // Recording of repeated calls. The calls between `record` and `record_end` are stored under
    // `key`, which is any number except 0. A later `record` with the same key can replay them with
    // less host work. `record` sets *what:
    //   RLHF_RECORD_RUN: issue the calls; they run as usual.
    //   RLHF_RECORD_CAPTURE: issue the calls; they run at record_end.
    //   RLHF_RECORD_REPLAY: do not issue the calls; record_end runs the stored ones.
    //
    // The caller ensures that all calls under one key have the same arguments, including device
    // addresses. Only the contents of device memory and of weights may differ, because a recording
    // stores arguments passed by value and data read from host memory. If memory or a weight that
    // was allocated before the recording is released, the recording is dropped; `record` then sets
    // *what to RUN or CAPTURE again.
    //
    // Between `record` and `record_end`, the following calls fail with RLHF_E_INVALID: alloc,
    // release, alloc_host, release_host, upload, download (async or not), sync, mark, wait,
    // weight_create, weight_destroy, weight_pack, and every call with a host_ output. A failing
    // call ends the recording, and `record_end` returns the status of that call. Recordings do not
    // nest.
    rlhf_status (*record)(void *ctx, uint64_t key, int32_t *what);
    rlhf_status (*record_end)(void *ctx);

    // ---- memory estimate ----
    // Writes to bytes[RLHF_WORKSPACES] how many bytes of each workspace a call needs, 0 for
    // workspaces that the call or the backend does not use. A workspace is memory that the table's
    // functions allocate for themselves. A workspace grows to the largest size that a call has
    // needed and never shrinks. So after some calls, bytes_in_use has grown by the sum of the
    // workspaces' largest sizes (on a GPU possibly by more). Does not allocate. If workspace_bytes
    // is NULL, the workspaces are not known, and the host's memory estimate reports this.
    void (*workspace_bytes)(void *ctx, const rlhf_call *, uint64_t *bytes);

    // ---- arithmetic ----
    // The names of this table's arithmetic, for matrix products in f32 and in bf16, at most 15
    // characters each. Two tables with the same name give the same bits. NULL: the bits may differ
    // from those of any other table. The names are valid as long as the table.
    const char *arithmetic_f32, *arithmetic_bf16;

    // ---- other libraries ----
    // Sets *address to the address of p in the device's own library, and *stream to the stream on
    // which the table's calls run in order. Another library can then queue work on p between two
    // calls. With CUDA, *address is a device pointer and *stream a cudaStream_t, on the calling
    // thread's current device. If native is NULL, the device has no such library.
    rlhf_status (*native)(void *ctx, rlhf_dev p, void **address, void **stream);

    // ---- sums of many arrays ----
    // All arrays are f32 [n]. Adds src[0], then src[1], and so on to x; n_src is from 0 to
    // RLHF_ADD_ALL_MAX. If `to` is not NULL, then moves x to `to`, which leaves 0 in x; `to` may be
    // one of the arrays in src. The result has the same bits as with add, copy and zero, but each
    // array is read once and each result is written once. If add_all is NULL, the host calls those
    // three.
    rlhf_status (*add_all)(void *ctx, rlhf_dev x, const rlhf_dev *src, uint32_t n_src, rlhf_dev to,
                           uint64_t n);

    // ---- limits ----
    // Asks whether the backend accepts calls of this form; a model asks when it is opened. Of
    // attention and attention_bwd, reads `attn` and returns the status and message with which the
    // function would refuse this geometry, or RLHF_OK. Returns RLHF_OK for other functions. Runs
    // and allocates nothing. If supports is NULL, only the calls themselves tell.
    rlhf_status (*supports)(void *ctx, const rlhf_call *);

    // ---- quantised weights ----
    // Creates a weight whose rows stay quantised. linear, linear_add, linear_dx, linear_sum,
    // lm_head, lm_head_bwd and lm_sample accept it. Their results have the bits of the same call
    // with a weight that was packed from the dequantised f32 rows. linear_dw, lm_head_bwd with
    // d_weight, and weight_pack refuse it (RLHF_E_INVALID). NULL: not supported by the backend.
    rlhf_status (*weight_create_quantised)(void *ctx, const rlhf_quantised *, rlhf_weight **out);
    // Copies the blocks of the rows from .. from + rows - 1, all of one part, from host memory:
    // rlhf_format_row_bytes bytes for each row, as they are in a file. The weight can be used after
    // as many rows were put as it has, so first put each row once. Later, rows may be put again.
    // Not between record and record_end.
    rlhf_status (*weight_put)(void *ctx, rlhf_weight *, int32_t from, int32_t rows,
                              const void *host_blocks);
    // As weight_bytes, of weight_create_quantised: 0 if it would reject the arguments.
    uint64_t (*weight_quantised_bytes)(void *ctx, const rlhf_quantised *);
    // out[t, :] = scale * (row ids[t] of the weight, dequantised); out f32 [rows, k]. The result
    // has the bits of `embed` without positions, with the dequantised f32 rows as the table,
    // whatever the dtype of the weight is. The weight must be quantised. ids: i32 [rows].
    rlhf_status (*embed_weight)(void *ctx, rlhf_dev out, rlhf_dev ids, const rlhf_weight *,
                                double scale, uint32_t rows);
    // ---- layers with a state ----
    // Each is NULL if the backend does not have it. supports() tells for conv, delta, gated_norm
    // and multiply whether the backend accepts a call of these sizes.
    rlhf_status (*conv)(void *ctx, const rlhf_conv *, const rlhf_ragged *, const rlhf_states *,
                        rlhf_dev y, rlhf_dev x);
    // Training layout only. Overwrites dx. Adds to dweight and dbias (f32; NULL: not computed), in
    // a fixed order over rows. dx of a prefix row is the sum over the row itself and the rows that
    // share it.
    rlhf_status (*conv_bwd)(void *ctx, const rlhf_conv *, const rlhf_ragged *, rlhf_dev dx,
                            rlhf_dev dweight, rlhf_dev dbias, rlhf_dev dy, rlhf_dev x);
    rlhf_status (*delta)(void *ctx, const rlhf_delta *, const rlhf_ragged *, const rlhf_states *,
                         rlhf_dev out, rlhf_dev x, rlhf_dev beta, rlhf_dev alpha);
    // As conv_bwd: overwrites dx, dbeta and dalpha (layouts of x, beta, alpha); adds to da_log and
    // ddt_bias (f32 [heads]; NULL: not computed). Computes the states again, in memory that does
    // not grow with the number of rows.
    rlhf_status (*delta_bwd)(void *ctx, const rlhf_delta *, const rlhf_ragged *, rlhf_dev dx,
                             rlhf_dev dbeta, rlhf_dev dalpha, rlhf_dev da_log, rlhf_dev ddt_bias,
                             rlhf_dev dout, rlhf_dev x, rlhf_dev beta, rlhf_dev alpha);
    // stats: f32 [rows, heads], 1 / sqrt(mean + eps), or NULL. `out` may be `x`.
    rlhf_status (*gated_norm)(void *ctx, const rlhf_gated_norm *, rlhf_dev out, rlhf_dev stats,
                              rlhf_dev x, rlhf_dev gate, uint32_t rows);
    // Overwrites dx and dgate (layouts of x and gate), adds to dgamma (f32 [head_dim], or NULL) in
    // a fixed order over rows and heads. If stats is NULL, it is computed again. dout has the
    // layout of out; dx may be dout if the strides are equal.
    rlhf_status (*gated_norm_bwd)(void *ctx, const rlhf_gated_norm *, rlhf_dev dx, rlhf_dev dgate,
                                  rlhf_dev dgamma, rlhf_dev dout, rlhf_dev stats, rlhf_dev x,
                                  rlhf_dev gate, uint32_t rows);
    // out = x * f(gate), in f32, rounded once. If `gate` is NULL, copies x. `out` may be `x` if the
    // strides and steps are equal.
    rlhf_status (*multiply)(void *ctx, const rlhf_columns *, rlhf_dev out, rlhf_dev x,
                            rlhf_dev gate, uint32_t rows);
    // dx = dout * f(gate), dgate = dout * x * f'(gate), in the layouts of x and gate, overwritten;
    // dout has the layout of out. dx may be dout if the strides and steps are equal.
    rlhf_status (*multiply_bwd)(void *ctx, const rlhf_columns *, rlhf_dev dx, rlhf_dev dgate,
                                rlhf_dev dout, rlhf_dev x, rlhf_dev gate, uint32_t rows);
} rlhf_compute;

// The properties of a table that the host requests.
typedef struct rlhf_kernels_open {
    uint32_t size;
    uint32_t threads; // 0 = all cores
    uint32_t gpu;     // index of the card; CPU backends accept only 0
    // 1: detect invalid use, if the backend can. reference: buffers are unreadable outside table
    // functions; cuda: every call reports invalid device arrays at once
    uint32_t guard;
    // lm_head's memory budget; results do not depend on it. 0 chooses a default. cuda: 4 GiB, or 8
    // GiB if the card has at least 40 GiB. cpu: 384 MiB, or more if the logits and gradients of
    // 1024 rows need more (6 KiB for each token of the vocabulary)
    uint64_t workspace_bytes;
    // Name of the arithmetic that the table must keep to in every dtype, even if it is slower; NULL
    // or "": whichever is fastest. A backend that cannot keep to it returns RLHF_E_UNSUPPORTED. The
    // host also refuses tables whose arithmetic_f32 and arithmetic_bf16 are not this name
    const char *arithmetic;
} rlhf_kernels_open;

// The ops of a plugin of RLHF_KIND_KERNELS. Each open table is independent of the others.
typedef struct rlhf_kernels_ops {
    uint32_t size, flags;
    uint32_t compute_major, compute_minor; // RLHF_COMPUTE_MAJOR, RLHF_COMPUTE_MINOR
    // The device of the tables, enum rlhf_device.
    int32_t device, reserved;
    // Open a table. Messages of open() and of the table's functions go to the host that create()
    // received. That host outlives the table. [main] [R:kernels-open]
    rlhf_status (*open)(void *self, const rlhf_kernels_open *, rlhf_compute **out);
    void (*close)(void *self, rlhf_compute *); // NULL allowed [main]
    // Describes device `gpu` without opening a table, even if the device cannot be used. Sets *json
    // to a JSON object, valid until the next describe() or destroy(). All members of the object are
    // optional. "devices" is the number of devices, usable or not. "name", "driver", "runtime" and
    // "library" (which computes matrix products) are strings. "capability" is CUDA's compute
    // capability, 10 * major + minor. "memory" and "memory_free" are in bytes. "missing" is one
    // sentence: why open() would fail. "levels" is a list of the instruction sets to choose from,
    // lowest first. Each level has "name", "supported" and "used" (booleans), "loops" (the code for
    // row operations), "f32" and "bf16" (the code for GEMMs of that type), and "why_unused". If
    // describe is NULL, the backend has one device, and open() reports all problems. [main]
    // [R:describe]
    rlhf_status (*describe)(void *self, uint32_t gpu, const char **json);
} rlhf_kernels_ops;

#endif
