// rlhf/compute.h: the compute table. One type for every device; kernels/ implements it
// (kernels_cpu.so, kernels_reference.so, later kernels_cuda.so), model plugins call it.
//
// Device memory is opaque: an rlhf_dev is never dereferenced outside a table function. Byte offsets
// into one allocation are allowed (rlhf_dev_at). Everything called `dev` below lives on the device;
// host memory appears only in upload/download and where a parameter is named host_*.
//
// What a backend guarantees, and tests assert:
//   row exactness     with RLHF_COMPUTE_ROW_EXACT: the bits of output row i do not depend on which
//                     other rows are in the call, nor on how many (linear, norm, rms_norm, act,
//                     gate, rope, attention, lm_head, lm_sample, pool);
//   threads           no result depends on the number of threads;
//   reductions        over rows (linear_dw, norm_bwd, rms_norm_bwd, rope_bwd, embed_bwd, sumsq)
//                     have a fixed order.
// So on a row-exact backend the log-prob seen while sampling and the one of the training forward
// are equal bit for bit.
//
// Shapes are in elements, row-major and dense unless a stride is given. `act dtype` is the dtype of
// activations (RLHF_F32 or RLHF_BF16); products accumulate in f32. A bf16 store rounds to nearest
// even. All functions are [step] per table: one call at a time, they may be asynchronous until
// sync, download, or a host_ output. Unless said, outputs must not overlap inputs. What was begun
// is done in the order of the calls. Errors: negative status; last_error() has the text. What a
// backend finds wrong in the contents of device arrays (an id outside the vocabulary, offsets that
// contradict each other) it may report as late as the next sync, download or host_ output; the
// outputs are then undefined. [R:rows] [R:step]
#ifndef RLHF_COMPUTE_H
#define RLHF_COMPUTE_H

#include "base.h"
#include "elf_note.h"

enum rlhf_dtype { RLHF_F32 = 1, RLHF_BF16 = 2, RLHF_I32 = 3 };

static inline uint64_t rlhf_dtype_size(int32_t dtype) { return dtype == RLHF_BF16 ? 2 : 4; }

// A device address. The struct is never completed: code outside a backend that reads through one,
// or computes with it other than by rlhf_dev_at, does not compile.
typedef struct rlhf_dev_mem *rlhf_dev;

// The address `bytes` after base, within base's allocation.
static inline rlhf_dev rlhf_dev_at(rlhf_dev base, uint64_t bytes) {
    return (rlhf_dev)(void *)((char *)base + bytes);
}

// A weight matrix in the layouts the device multiplies fastest with. Made by weight_create.
typedef struct rlhf_weight rlhf_weight;

enum rlhf_weight_flag {
    RLHF_WEIGHT_OUT_IN =
        1, // the f32 source is [n, k] (torch.nn.Linear, tied embeddings), not [k, n]
    RLHF_WEIGHT_BACKWARD = 2 // linear_dx will be called: keep that layout too
};
// All bits of this header; weight_create refuses others (RLHF_E_UNSUPPORTED).
#define RLHF_WEIGHT_KNOWN (RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD)

enum rlhf_act {
    RLHF_ACT_GELU_TANH = 1,
    RLHF_ACT_GELU_ERF = 2,
    RLHF_ACT_RELU = 3,
    RLHF_ACT_SILU = 4 // x / (1 + e^-x) (Elfwing et al. 2017)
};
enum rlhf_pool { RLHF_POOL_MEAN = 1, RLHF_POOL_FIRST = 2, RLHF_POOL_LAST = 3 };

// Where queries and keys of n ragged rows lie. Query token t of row i (offset[i] <= t <
// offset[i+1]) has position start[i] + t - offset[i] and sees the row's keys 0..position (causal)
// or all its keys, start[i] + offset[i+1] - offset[i] of them. Key j of row i is at (kv_base[i] +
// j) * kv_stride elements from k and v.
//
// Rows may share a prefix: the first prefix_len[i] keys of row i are then at (prefix_base[i] + j) *
// kv_stride, key j >= prefix_len[i] at (kv_base[i] + j - prefix_len[i]) * kv_stride. prefix_len[i]
// <= start[i]. What a query computes depends on its keys alone, not on where they lie: same bits
// with a shared prefix and without. The arrays are device memory.
typedef struct rlhf_ragged {
    uint32_t size;
    uint32_t n, total;     // rows; query tokens
    uint32_t max_q, max_k; // at least the longest row's queries and keys (prefix counted)
    uint32_t reserved;
    rlhf_dev offset;      // i32 [n + 1]
    rlhf_dev start;       // i32 [n], tokens before the first query (prefix counted)
    rlhf_dev kv_base;     // i32 [n]
    rlhf_dev prefix_base; // i32 [n], or NULL: no row has a prefix
    rlhf_dev prefix_len;  // i32 [n], 0 = none; NULL with prefix_base
} rlhf_ragged;

// Geometry of an attention call. Strides in elements between consecutive tokens.
typedef struct rlhf_attn {
    uint32_t size;
    int32_t heads, head_dim, causal, dtype, reserved;
    int64_t q_stride, kv_stride, out_stride;
    double scale; // usually 1/sqrt(head_dim)
    // Heads of k and v; 0 = heads. It divides heads: query head h reads key and value head h /
    // (heads / kv_heads), and a row of k, v, dk or dv has kv_heads * head_dim columns.
    int32_t kv_heads, reserved2;
} rlhf_attn;

// Rotary positions (Su et al. 2021), the form that turns the halves of a head: for pair (c, c + h)
// with h = head_dim / 2, y_c = x_c cos - x_{c+h} sin and y_{c+h} = x_{c+h} cos + x_c sin, cos and
// sin from the position's row of turn. They act on rows, `stride` elements apart, that begin with
// the queries, heads * head_dim elements, and the keys, kv_heads * head_dim; what comes after
// stays.
//
// With gamma_q and gamma_k each head is RMS-normalised first: x = gamma * x / sqrt(mean(x^2) +
// eps). Norm and rotation are done in f32 from what is stored, and rounded once.
typedef struct rlhf_rope {
    uint32_t size;
    int32_t heads, kv_heads; // of queries and of keys; 0 keys = as many
    int32_t head_dim;        // even
    int32_t dtype;           // of x, dx and raw
    int32_t n_pos;           // rows of turn
    int64_t stride;          // elements between rows of x, at least those of queries and keys
    double eps;              // of the norms
    rlhf_dev pos;            // i32 [rows], 0 .. n_pos - 1 (others: RLHF_E_INVALID, as with ids)
    rlhf_dev turn; // f32 [n_pos, head_dim]: cosines of the position's h angles, then their sines
    rlhf_dev gamma_q, gamma_k; // f32 [head_dim] each; both NULL: no norms
    // What backward needs with norms, written by rope and read by rope_bwd; NULL without norms, and
    // both NULL in a forward that has no backward.
    rlhf_dev raw;   // dtype [rows, (heads + kv_heads) * head_dim]: what x was before
    rlhf_dev stats; // f32 [rows, heads + kv_heads]: 1 / sqrt(mean(x^2) + eps) of each head
} rlhf_rope;

// The distribution over the vocabulary that is sampled from and scored.
// Order of the rules: logits * inv_temperature, top-k, softmax, top-p, min-p, renormalise.
typedef struct rlhf_dist {
    uint32_t size;
    int32_t greedy;         // sampling only: take the arg max (lowest id on a tie)
    double inv_temperature; // > 0; ignored when greedy
    double top_p;           // (0, 1]; 1 = off
    int32_t top_k;          // 0 = off
    int32_t reserved;
    // [0, 1]; 0 = off: an id whose probability is below min_p times that of the likeliest goes.
    // Only where the table has RLHF_COMPUTE_MIN_P.
    double min_p;
} rlhf_dist;

// Initialisers of a dist: its fields; the whole vocabulary at temperature 1.
#define RLHF_DIST(inv_temperature, top_p, top_k, greedy)                                           \
    { (uint32_t)sizeof(rlhf_dist), greedy, inv_temperature, top_p, top_k, 0, 0.0 }
#define RLHF_DIST_WHOLE RLHF_DIST(1.0, 1.0, 0, 0)

// A support: the ids that a row's distribution is over. Id v is bit v % 32 of word v / 32; bits
// past the vocabulary are 0. Words of a row:
static inline uint32_t rlhf_support_words(int32_t vocab) { return ((uint32_t)vocab + 31) / 32; }

// Arguments of lm_head and lm_head_bwd. rows is the number of scored positions.
typedef struct rlhf_lm_head {
    uint32_t size, rows;
    int32_t d, vocab, dtype, reserved;
    const rlhf_dist *dist;     // top_k, top_p or min_p active: log-probs renormalised over the kept
                               // set, and a target outside it gets -inf
    rlhf_dev hidden;           // act dtype [rows, d], after the final norm
    const rlhf_weight *weight; // k = d, n = vocab
    rlhf_dev target;           // i32 [rows]
    rlhf_dev logp, entropy, kl; // f32 [rows] each; entropy and kl may be NULL
    rlhf_dev ref_hidden;        // act dtype [rows, d]; needed for kl
    const rlhf_weight *ref_weight;
    // backward only: derivatives of the loss, f32 [rows], NULL = zero; results
    rlhf_dev d_logp, d_entropy, d_kl;
    rlhf_dev d_hidden; // act dtype [rows, d], overwritten
    rlhf_dev d_weight; // f32, layout of the weight's source, accumulated; NULL = not wanted
    // u32 [rows, rlhf_support_words(vocab)]: each row's distribution, and the reference's, is over
    // this support, which holds its target, at dist's temperature; dist's top_k, top_p and min_p
    // are off. NULL: over what dist keeps.
    rlhf_dev support;
} rlhf_lm_head;

// Arguments of lm_sample: draws one id a row by inverse CDF in vocabulary order, in the fixed order
// of the backend, with u = first double of block {seed, stream, counter[i]} (rng.h).
typedef struct rlhf_lm_sample {
    uint32_t size, rows;
    int32_t d, vocab, dtype, reserved;
    const rlhf_dist *dist;      // what is sampled from
    const rlhf_dist *logp_dist; // what logp is taken from (may equal dist)
    rlhf_dev hidden;            // act dtype [rows, d]
    const rlhf_weight *weight;
    uint64_t seed, stream;
    const uint64_t *host_counter; // [rows]
    int32_t *host_id;             // out [rows]
    float *host_logp;             // out [rows]; same bits as lm_head's logp for that id
    // out [rows, rlhf_support_words(vocab)]: what dist kept and the id was drawn from (greedy: that
    // id alone); logp is then over it, at logp_dist's temperature, whose top_k, top_p and min_p are
    // off. NULL: not wanted.
    uint32_t *host_support;
    // The same on the device. With id set, counter and logp are too, the host_ arrays are neither
    // read nor written, and the call does not wait for its results.
    rlhf_dev counter; // u64 [rows]
    rlhf_dev id;      // i32 [rows]; NULL: the host_ arrays
    rlhf_dev logp;    // f32 [rows]
    rlhf_dev support; // u32 [rows, rlhf_support_words(vocab)], or NULL
} rlhf_lm_sample;

// A weight in blocks: of its n outputs those of block b, from[b] .. from[b] + count[b] - 1, are
// scale times the sum over the inputs b * rank .. (b + 1) * rank - 1; the other outputs are 0. It
// is the second half of low-rank adapters (rlhf_adapter of model.h) where several layers that are
// adapted one by one are multiplied as one. Blocks ascend and do not overlap; k = n_blocks * rank.
typedef struct rlhf_blocks {
    uint32_t size;
    int32_t n, rank, dtype;
    uint32_t flags; // RLHF_WEIGHT_BACKWARD or 0
    uint32_t n_blocks;
    const int32_t *from, *count; // [n_blocks], host memory, borrowed until the call returns
    double scale;
} rlhf_blocks;

// Arguments of linear_sum. across: the products are those of linear_dx, with W^T and W2^T.
typedef struct rlhf_linear_sum {
    uint32_t size, rows;
    int32_t out_dtype, accumulate; // as in linear
    int32_t across, reserved;
    rlhf_dev out;              // [rows, n]; across [rows, k]
    rlhf_dev x, x2;            // [rows, k], [rows, k2]; across [rows, n], [rows, n2]
    const rlhf_weight *w, *w2; // of one dtype; n = n2, across k = k2
    rlhf_dev bias;             // f32 [n], or NULL; across NULL
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
// p -= lr * wd * p; p -= lr * sqrt(max(1, outputs / inputs)) * u. The matrix is stored [outputs,
// inputs], with in_out [inputs, outputs].
typedef struct rlhf_muon {
    uint32_t size;
    int32_t nesterov, ns_steps, in_out;
    double lr, momentum, weight_decay, grad_scale;
} rlhf_muon;

// The tensors of one optimiser step, and what differs between them: one element a tensor in every
// array. The arrays are host memory, borrowed until the call returns.
typedef struct rlhf_tensors {
    uint32_t size, n;
    const uint64_t *len; // elements, f32
    const rlhf_dev *g;   // gradients
    const rlhf_dev *w;   // weights; one that is NULL: adamw_many only zeroes its gradient
    const rlhf_dev *m, *v;
    const double *lr, *weight_decay;
} rlhf_tensors;

// What sumsq_many found and adamw_many goes by: device memory, 8-byte aligned. Frozen.
typedef struct rlhf_clip {
    double sumsq; // of all gradients: each tensor's as sumsq has it, added in the order of the list
    double norm;  // its square root
    double scale; // max_norm / norm where max_norm > 0 and norm > max_norm, else 1
    int32_t skip; // 1: the caller asked for it, or norm is not finite
    int32_t reserved; // 0
} rlhf_clip;

enum rlhf_device { RLHF_DEVICE_CPU = 1, RLHF_DEVICE_CUDA = 2 };

enum rlhf_compute_flag {
    RLHF_COMPUTE_ROW_EXACT = 1, // see the head of this file; without it rows may differ by rounding
    RLHF_COMPUTE_MIN_P = 2      // knows rlhf_dist.min_p
};
// All bits of this header; others are refused.
#define RLHF_COMPUTE_KNOWN (RLHF_COMPUTE_ROW_EXACT | RLHF_COMPUTE_MIN_P)

// What a caller of record does next.
enum rlhf_record { RLHF_RECORD_RUN = 0, RLHF_RECORD_CAPTURE = 1, RLHF_RECORD_REPLAY = 2 };

// True when a backend has member f of its table. A member that is NULL, or lies past the table's
// size, is an op that the backend does not support; name, detail and the functions up to sync are
// never NULL. Whoever will call a later one asks when it is opened and refuses by name: a model for
// its ops, the host for the optimiser's.
#define RLHF_COMPUTE_HAS(table, f) RLHF_HAS(rlhf_compute, table, f)

typedef struct rlhf_compute {
    uint32_t size;
    int32_t device;   // enum rlhf_device
    uint32_t dtypes;  // bit 1 << dtype for each activation dtype that runs at full speed
    uint32_t threads; // CPU threads in use
    uint32_t flags;   // bits of enum rlhf_compute_flag
    uint32_t reserved;
    const char *name;                     // "cpu", "reference", "cuda"
    const char *detail;                   // e.g. "avx512_bf16, bf16 products, 2 threads"
    void *ctx;                            // first argument of every function
    const char *(*last_error)(void *ctx); // "" when none; borrowed until the next failing call

    // ---- memory ----
    // 64-byte aligned, zeroed. RLHF_E_NOMEM names the size. bytes 0 gives a valid empty buffer.
    rlhf_status (*alloc)(void *ctx, uint64_t bytes, rlhf_dev *out);
    void (*release)(void *ctx, rlhf_dev); // NULL allowed
    uint64_t (*bytes_in_use)(void *ctx);  // buffers, packed weights and workspaces
    // host_src may be changed or freed as soon as upload returns.
    rlhf_status (*upload)(void *ctx, rlhf_dev dst, const void *host_src, uint64_t bytes);
    rlhf_status (*download)(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes);
    rlhf_status (*copy)(void *ctx, rlhf_dev dst, rlhf_dev src, uint64_t bytes);
    rlhf_status (*zero)(void *ctx, rlhf_dev dst, uint64_t bytes);
    rlhf_status (*convert)(void *ctx, rlhf_dev dst, int32_t dst_dtype, rlhf_dev src,
                           int32_t src_dtype, uint64_t n);
    // Waits for all that was begun, and reports what of it failed.
    rlhf_status (*sync)(void *ctx);

    // ---- weights and products ----
    rlhf_status (*weight_create)(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                 rlhf_weight **out);
    void (*weight_destroy)(void *ctx, rlhf_weight *); // NULL allowed
    rlhf_status (*weight_pack)(void *ctx, rlhf_weight *, rlhf_dev src_f32);
    // out[rows, n] (+)= x[rows, k] W + bias[n]. x has the weight's dtype; out_dtype f32 or bf16;
    // accumulate adds to out (f32 only); bias f32 or NULL.
    rlhf_status (*linear)(void *ctx, rlhf_dev out, int32_t out_dtype, int32_t accumulate,
                          rlhf_dev x, const rlhf_weight *, rlhf_dev bias, uint32_t rows);
    // dx[rows, k] (+)= dy[rows, n] W^T. dy has the weight's dtype.
    rlhf_status (*linear_dx)(void *ctx, rlhf_dev dx, int32_t dx_dtype, int32_t accumulate,
                             rlhf_dev dy, const rlhf_weight *, uint32_t rows);
    // dw += x^T dy in the layout of the weight's f32 source; db[n] += column sums of dy (NULL = no
    // bias). x and dy have the weight's dtype; dw and db are f32.
    rlhf_status (*linear_dw)(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                             const rlhf_weight *, uint32_t rows);

    // ---- embedding, norm, activation, residual, rows ----
    // out[t, :] = wte[ids[t], :] + wpe[pos[t], :]; tables and out f32. wpe and pos NULL together:
    // no positions are added.
    rlhf_status (*embed)(void *ctx, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte,
                         rlhf_dev wpe, uint32_t rows, int32_t d);
    // dwte[ids[t], :] += dout[t, :]; dwpe[pos[t], :] += dout[t, :]. Without positions dwpe and pos
    // are NULL and n_pos is 0.
    rlhf_status (*embed_bwd)(void *ctx, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout, rlhf_dev ids,
                             rlhf_dev pos, uint32_t rows, int32_t d, int32_t vocab, int32_t n_pos);
    // LayerNorm over d, biased variance. x, gamma, beta f32; stats f32 [rows, 2] = mean, 1/std, or
    // NULL; out in out_dtype.
    rlhf_status (*norm)(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                        rlhf_dev gamma, rlhf_dev beta, double eps, uint32_t rows, int32_t d);
    // dx f32 (overwritten, or added to when accumulate); dgamma, dbeta f32 [d] accumulated, NULL =
    // not wanted; dy in dy_dtype.
    rlhf_status (*norm_bwd)(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                            rlhf_dev dbeta, rlhf_dev dy, int32_t dy_dtype, rlhf_dev x,
                            rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d);
    // out = f(x), dx = dy f'(x); out may be x, dx may be dy.
    rlhf_status (*act)(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                       uint64_t n);
    rlhf_status (*act_bwd)(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                           int32_t dtype, uint64_t n);
    // dst f32 += src in src_dtype.
    rlhf_status (*add)(void *ctx, rlhf_dev dst, rlhf_dev src, int32_t src_dtype, uint64_t n);
    // out[i, :] = x[idx[i], :], same dtype.
    rlhf_status (*gather)(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n, int32_t d,
                          int32_t dtype);
    // dx[idx[i], :] += dy[i, :]; dx f32, idx distinct.
    rlhf_status (*scatter_add)(void *ctx, rlhf_dev dx, rlhf_dev dy, int32_t dy_dtype, rlhf_dev idx,
                               uint32_t n, int32_t d);
    // out[i, :] = mean, first or last of x[offset[i] .. offset[i+1]-1, :]; all f32, offset i32.
    rlhf_status (*pool)(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev offset, uint32_t n, int32_t d,
                        int32_t mode);
    // dx f32 [total, d] overwritten.
    rlhf_status (*pool_bwd)(void *ctx, rlhf_dev dx, rlhf_dev dout, rlhf_dev offset, uint32_t n,
                            int32_t d, int32_t mode);

    // ---- attention ----
    // Store k and v of total new tokens in a cache: token j of row i goes to cache row kv_base[i] +
    // start[i] - prefix_len[i] + j. k, v: stride kv_src_stride; caches: stride d; all in dtype.
    rlhf_status (*kv_store)(void *ctx, rlhf_dev k_cache, rlhf_dev v_cache, rlhf_dev k, rlhf_dev v,
                            int64_t kv_src_stride, const rlhf_ragged *, int32_t d, int32_t dtype);
    // out[t, h * head_dim + c], stride out_stride. lse f32 [total, heads] (log sum exp of the
    // scaled scores) is kept for backward, or NULL.
    rlhf_status (*attention)(void *ctx, const rlhf_attn *, const rlhf_ragged *, rlhf_dev out,
                             rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v);
    // Training layout only: a row's own keys are its own tokens (kv_base = offset), start =
    // prefix_len. A prefix is a whole earlier row p without a prefix of its own (prefix_base =
    // offset[p], prefix_len = its length), and the rows that share it follow it directly. dq, dk,
    // dv are overwritten, with the strides of q, k, v; dk and dv of a shared row are the sums over
    // it and all rows that share it, in row order. dout and out with out_stride.
    rlhf_status (*attention_bwd)(void *ctx, const rlhf_attn *, const rlhf_ragged *, rlhf_dev dq,
                                 rlhf_dev dk, rlhf_dev dv, rlhf_dev dout, rlhf_dev out,
                                 rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v);

    // ---- language-model head ----
    // Logits are made in row blocks that fit the workspace budget, never [rows, vocab] beyond it.
    rlhf_status (*lm_head)(void *ctx, const rlhf_lm_head *);
    // Right after lm_head with the same arguments, kept logits are used; otherwise recomputed.
    rlhf_status (*lm_head_bwd)(void *ctx, const rlhf_lm_head *);
    rlhf_status (*lm_sample)(void *ctx, const rlhf_lm_sample *);

    // ---- optimiser ----
    // Sum of squares, accumulated in f64; NaN or Inf in x shows in the result.
    rlhf_status (*sumsq)(void *ctx, rlhf_dev x, uint64_t n, double *host_out);
    // w, m, v f32 [n]; g f32 [n].
    rlhf_status (*adamw)(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n,
                         const rlhf_adamw *);
    // w, g, mom f32 [rows, cols].
    rlhf_status (*muon)(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev mom, int32_t rows, int32_t cols,
                        const rlhf_muon *);

    // ---- since 0.5 ----
    // What the device works best with: rows in flight while sampling, tokens of a microbatch. 0 =
    // no wish. No bit of what a row computes depends on either.
    uint32_t slots_hint, microbatch_hint;

    // Host memory that the device reads and writes by itself, 64-byte aligned, zeroed. It may be
    // given to upload and download too. bytes 0 gives a valid empty buffer.
    rlhf_status (*alloc_host)(void *ctx, uint64_t bytes, void **out);
    // Waits for what still uses it. NULL allowed.
    void (*release_host)(void *ctx, void *);
    // upload and download that do not wait. The host range lies in one buffer of alloc_host; until
    // the copy is done (sync, or wait for a later mark) it may be neither written (upload) nor read
    // or written (download).
    rlhf_status (*upload_async)(void *ctx, rlhf_dev dst, const void *host_src, uint64_t bytes);
    rlhf_status (*download_async)(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes);
    // A ticket for all that was begun up to now; it does not wait. Tickets grow and are never 0.
    rlhf_status (*mark)(void *ctx, uint64_t *ticket);
    // Waits until all that was begun before that mark is done, and reports what of it failed. What
    // was begun later may go on. 0 is nothing to wait for.
    rlhf_status (*wait)(void *ctx, uint64_t ticket);

    // out[rows, n] = add[rows, n] + x[rows, k] W + bias[n]; out and add f32, add may be out; x has
    // the weight's dtype; bias f32 or NULL. The bits are those of a copy of add to out and a linear
    // that accumulates; rows are exact as in linear.
    rlhf_status (*linear_add)(void *ctx, rlhf_dev out, rlhf_dev add, rlhf_dev x,
                              const rlhf_weight *, rlhf_dev bias, uint32_t rows);

    // The optimiser over many tensors, without a word to the host. sumsq_many fills *clip, device
    // memory of sizeof(rlhf_clip) bytes, from all gradients g; it reads no w, m or v (they may be
    // NULL). max_norm <= 0 does not clip; skip is 1 when the step must not be taken.
    rlhf_status (*sumsq_many)(void *ctx, const rlhf_tensors *, double max_norm, int32_t skip,
                              rlhf_dev clip);
    // adamw for each tensor, and its gradient is zero afterwards. lr, weight_decay and grad_scale
    // of rlhf_adamw are multiplied by the tensor's lr, its weight_decay and the scale of *clip.
    // Where its skip is set, w, m and v stay and only the gradients are zeroed. Without a clip
    // (NULL): scale 1, no skip. The bits are those of adamw with these numbers, then zero.
    rlhf_status (*adamw_many)(void *ctx, const rlhf_tensors *, const rlhf_adamw *, rlhf_dev clip);

    // Calls that repeat: what is called between record and record_end is kept under key and done
    // again, with less work for the host, when record comes with that key. *what says how:
    // RLHF_RECORD_RUN: issue the calls, they run as ever; RLHF_RECORD_CAPTURE: issue them, they run
    // at record_end; RLHF_RECORD_REPLAY: do not issue them, record_end runs what was kept.
    // The caller sees to it that all calls of one key have the same arguments, device addresses
    // included: only the contents of device memory and of weights may differ (what a call takes by
    // value, or reads from host memory, is kept). What is kept is dropped when memory or a weight
    // that the backend gave out before is released, and record then says RUN or CAPTURE again. In
    // between, alloc, release, alloc_host, release_host, upload, download (async or not), sync,
    // mark, wait, weight_create, weight_destroy, weight_pack and host_ outputs are errors
    // (RLHF_E_INVALID); a failing call ends the recording, and record_end returns its status.
    // Recordings do not nest. key is any number but 0.
    rlhf_status (*record)(void *ctx, uint64_t key, int32_t *what);
    rlhf_status (*record_end)(void *ctx);

    // ---- since 0.6 ----
    // RMS norm over d (Zhang and Sennrich 2019): out = gamma * x / sqrt(mean(x^2) + eps). x, gamma
    // f32; stats f32 [rows] = 1 / sqrt(mean(x^2) + eps), or NULL; out in out_dtype.
    rlhf_status (*rms_norm)(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                            rlhf_dev gamma, double eps, uint32_t rows, int32_t d);
    // dx f32 (overwritten, or added to when accumulate); dgamma f32 [d] accumulated, NULL = not
    // wanted; dy in dy_dtype.
    rlhf_status (*rms_norm_bwd)(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                                rlhf_dev dy, int32_t dy_dtype, rlhf_dev x, rlhf_dev stats,
                                rlhf_dev gamma, uint32_t rows, int32_t d);
    // Gated unit (Shazeer 2020): out[t, j] = f(x[t, j]) * x[t, inner + j], in f32, rounded once; x
    // [rows, 2 * inner] and out [rows, inner] in dtype; kind: enum rlhf_act.
    rlhf_status (*gate)(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                        uint32_t rows, int32_t inner);
    // dx [rows, 2 * inner] overwritten, may be x; dy [rows, inner]. With a = x[t, j], b = x[t,
    // inner
    // + j]: dx[t, j] = dy[t, j] b f'(a), dx[t, inner + j] = dy[t, j] f(a).
    rlhf_status (*gate_bwd)(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                            int32_t dtype, uint32_t rows, int32_t inner);
    // Turns the queries and keys of x in place, and normalises them before where rlhf_rope says so.
    rlhf_status (*rope)(void *ctx, const rlhf_rope *, rlhf_dev x, uint32_t rows);
    // dx in place, laid out as x: the loss's derivatives after what rope stored become those after
    // what x was. dgamma_q and dgamma_k f32 [head_dim] accumulated, in a fixed order over rows and
    // heads; NULL = not wanted, and without norms.
    rlhf_status (*rope_bwd)(void *ctx, const rlhf_rope *, rlhf_dev dx, rlhf_dev dgamma_q,
                            rlhf_dev dgamma_k, uint32_t rows);
    // Bytes that a weight of these arguments takes once packed: what bytes_in_use grows by. It
    // allocates nothing; 0 where weight_create would refuse them.
    uint64_t (*weight_bytes)(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags);

    // ---- since 0.7 ----
    // A weight in blocks, for every op that takes one of weight_create. The source of weight_pack,
    // and dw of linear_dw, have the rows of the blocks alone, one after the other: f32 [sum of
    // count, rank]. A packed number is scale times the source's, in f32, rounded to dtype, and
    // linear_dw adds scale times the sum over rows, which is d(loss)/d(source). It takes the bytes
    // of a weight of k inputs and n outputs.
    rlhf_status (*weight_create_blocks)(void *ctx, const rlhf_blocks *, rlhf_weight **out);
    // out[rows, n] (+)= x W + bias + x2 W2, rounded once. The bits are those of a linear to f32
    // with W, one that accumulates with W2, and a convert; rows are exact as in linear.
    rlhf_status (*linear_sum)(void *ctx, const rlhf_linear_sum *);
} rlhf_compute;

typedef struct rlhf_kernels_options {
    uint32_t size, threads; // threads 0 = all cores
    // lm_head budget; no bit depends on it; 0 = cuda 4 GiB, 8 if the card has 40; cpu 384 MiB, or
    // more where 1024 rows of a vocabulary's logits and derivatives take more (6 KiB a token)
    uint64_t workspace_bytes;
    // reference: buffers are unreadable outside table functions; cuda: every call reports at once
    // what it finds wrong in device arrays
    uint32_t guard, reserved;
    uint32_t gpu, reserved2; // index of the card; backends without one take 0 only
} rlhf_kernels_options;

// One of the instruction sets that a backend chooses among when it is made. Frozen.
typedef struct rlhf_level {
    char name[16];
    uint32_t has, used;                // the processor has it; a table that is made now uses it
    char loops[40], f32[56], bf16[40]; // what does row operations, and products of either dtype
    char why_not[64];                  // above the one that is used: why not; else ""
} rlhf_level;

#define RLHF_LEVELS_MAX 8

// What a backend's describe() finds of one device, without making a table. Texts are NUL-ended;
// "" = there is none, or nobody knows.
typedef struct rlhf_device_info {
    uint32_t size;
    uint32_t devices;   // how many there are, usable or not; 0: `missing` says why
    int32_t capability; // CUDA's, 10 * major + minor; 0: none
    int32_t reserved;
    uint64_t memory, memory_free; // bytes, the host's where the device has none of its own
    char name[128];               // "NVIDIA H100 80GB HBM3"
    char driver[64], runtime[64]; // versions
    char library[128];            // of products
    char missing[512];            // one sentence: why create() would refuse it; "" = it would not
    uint32_t n_levels, reserved2;
    rlhf_level levels[RLHF_LEVELS_MAX]; // lowest first; none where there is nothing to choose
} rlhf_device_info;

// What a kernels_*.so exports: the symbol rlhf_kernels_v0 returning this.
typedef struct rlhf_kernels {
    uint32_t size, abi_major, abi_minor, reserved;
    const char *name, *summary;
    // On failure writes one sentence to err (NUL-ended, at most err_cap bytes). [main]
    rlhf_status (*create)(const rlhf_kernels_options *, rlhf_compute **out, char *err,
                          uint64_t err_cap);
    void (*destroy)(rlhf_compute *); // NULL allowed [main]
    // Answers in *out about device `gpu`, also where it cannot be used (RLHF_OK, `missing` is set).
    // NULL: the backend has one device, which create() knows all about. [main]
    rlhf_status (*describe)(uint32_t gpu, rlhf_device_info *out);
} rlhf_kernels;

typedef const rlhf_kernels *(*rlhf_kernels_entry_fn)(void);
#define RLHF_KERNELS_SYMBOL "rlhf_kernels_v0"
#ifdef __cplusplus
extern "C" {
#endif
RLHF_EXPORT const rlhf_kernels *rlhf_kernels_v0(void);
#ifdef __cplusplus
}
#endif

// Defines the entry of a backend, and its note (elf_note.h): `table` is an rlhf_kernels, static
// const.
#define RLHF_DEFINE_KERNELS(table)                                                                 \
    const rlhf_kernels *rlhf_kernels_v0(void) {                                                    \
        RLHF_ELF_NOTE(RLHF_NOTE_KERNEL, &(table));                                                 \
        return &(table);                                                                           \
    }

#endif
