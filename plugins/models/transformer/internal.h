// transformer/internal.h: the instance behind the ops table, shared by the core's files.
// What it is not: an interface for plugins; that is core.h.
#ifndef RLHF_MODELS_TRANSFORMER_INTERNAL_H
#define RLHF_MODELS_TRANSFORMER_INTERNAL_H

#include "core.h"

// A device buffer that only grows, by a quarter or more. Contents are lost when it grows.
struct rlhf__tf_buf {
    rlhf_dev p;
    uint64_t bytes;
};

// Where a tensor's values lie: in m->values; in m->passing, only read to be packed, and NULL once
// that is done; in the base's memory.
enum rlhf__tf_place { TF_STAYS, TF_PASSES, TF_BORROWED };

// A parameter tensor: values and, where it is trained, gradients; f32.
struct rlhf__tf_tensor {
    rlhf_dev value, grad;
    uint64_t n;
    int32_t place, trained; // enum rlhf__tf_place; 1: it has a gradient
};

// The products of a layer, from its entry to its end.
enum rlhf__tf_site { TF_SITE_QKV, TF_SITE_PROJ, TF_SITE_FC, TF_SITE_OUT, TF_N_SITE };

struct rlhf__tf_span {
    int32_t from, count;
};

// The adapter of one product: n_blocks (0: none) layers of the checkpoint have one, which add to
// these outputs.
enum { TF_MAX_PIECES = 3 };
struct rlhf__tf_low {
    int32_t n_blocks, reserved;
    struct rlhf__tf_span block[TF_MAX_PIECES];
    struct rlhf__tf_tensor a, b; // [n_blocks * rank, inputs], [outputs of the blocks, rank]
    rlhf_weight *down, *up;      // A, and scale times B
};
struct rlhf__tf_layer_low {
    struct rlhf__tf_low of[TF_N_SITE];
};

// A ragged batch on the device. resp are the n_resp positions whose state predicts a response
// token, target the tokens they predict, read where those tokens are; pool the position each row's
// score is read at.
struct rlhf__tf_rows {
    uint32_t n, total, n_resp, resp_is_all; // resp_is_all: resp is 0 .. total-1
    rlhf_ragged ragged;
    rlhf_dev ids, pos, resp, target, read, pool;
    rlhf_dev ref; // rows of the reference's states, NULL: not given
};

// What the device's rows are made from: a batch, or with gen the step of that session (then start,
// slot and silent are the step's, prefix counts slots and each row that draws is read at its last
// token). NULL prompt_len: no response positions; NULL prefix: none; NULL silent: every row draws.
struct rlhf__tf_layout {
    uint32_t n, total;
    const int32_t *ids, *offset, *prompt_len, *prefix;
    const struct rlhf_gen *gen;
    const int32_t *slot, *start;
    const uint8_t *silent;
    int32_t pooling, reserved;
    const struct rlhf__tf_recorded *recorded; // NULL; or the block lies there, at fixed addresses
    const int32_t *ref; // [response tokens] rows of the reference's states on the device, or NULL
};

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

// What one layer computes from T tokens. `in` is the stream at its entry and `out` at its end,
// which is the next layer's `in`; mid lies between attention and MLP. h1, h2, stats1, stats2 belong
// to the block of attention and the block of the MLP.
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
    struct rlhf__tf_buf v1, v1a;          // f32 [R, 4 d] before and after ReLU
    struct rlhf__tf_scored pooled, token; // score head: one state a row; each response token
    struct rlhf__tf_buf full, fstats;     // final norm of every token (hidden output, mean pooling)
    rlhf_dev x; // borrowed: the residual stream after the last layer, f32 [total, d]
    rlhf_dev rf_p, rh_p, ref_p, full_p; // borrowed: where rf, rh, ref, full really lie
    rlhf_dev support_p;                 // borrowed: support, or NULL when the last forward had none
    uint32_t heads;                     // what the last forward made
    int32_t train, valid;               // valid: backward may read this
    int32_t keep, plain; // the trunk keeps what its backward reads; it leaves out the adapter
    int32_t reserved;
};

struct rlhf__tf_scratch {            // backward only; d of what is named in rlhf__tf_acts and above
    struct rlhf__tf_buf ds, ds2, dy; // the stream: f32 [T, d], spare, in the act dtype
    struct rlhf__tf_buf dinner, dqkv, datt, dh; // act dtype [T, inner], [T, qkv], [T, q], [T, d]
    struct rlhf__tf_buf dfc;                    // act dtype [T, fc], where the MLP is gated
    struct rlhf__tf_buf dlow;                   // act dtype [T, blocks * rank]
    struct rlhf__tf_buf dres;                   // derivatives, laid out as the work's result
    struct rlhf__tf_buf drh, drf, drx;          // act dtype [R, d]; f32 [R, d], [R, d]
    struct rlhf__tf_buf dv1;                    // f32 [R, 4 d]
    struct rlhf__tf_buf dscore, dp1, dpf, dpx;  // f32 [P, n_labels], [P, d] each
    struct rlhf__tf_buf dfull;                  // f32 [T, d]
};

struct rlhf__tf_layer_weights {
    rlhf_weight *of[TF_N_SITE];
};

struct rlhf__tf {
    const void *magic; // tells an instance of this plugin from anything else (kl_self)
    const rlhf_host *host;
    const rlhf_compute *c;
    struct rlhf_tf_arch arch;
    rlhf_model_open open;
    int32_t dtype, failed;     // act dtype; failed: host->fail has the text already
    uint32_t n_tensors, n_all; // n_all: those that are absent too
    struct rlhf__tf_tensor
        *tensors;       // [n_all] RLHF_TF_N_GLOBAL, then RLHF_TF_N_LAYER a layer; absent: n = 0
    rlhf_param *params; // [n_tensors]
    char *names;
    struct rlhf__tf_buf values, grads;
    struct rlhf__tf_buf *passing; // [n_layer + 1] values that pass: of what exists once, of layers
    struct rlhf__tf_buf turn; // rotary: f32 [turn_rows, head_dim]; grows with the positions seen
    uint32_t turn_rows, reserved2;
    struct rlhf__tf *base;          // whose trunk and LM head this one reads, or NULL
    struct rlhf__tf_layer_low *low; // [n_layer], NULL: no adapter
    int32_t rank, reserved3;        // of the adapter
    double scale;
    struct rlhf__tf_layer_weights *w; // [n_layer], the base's where there is one
    rlhf_weight *lm, *pool, *score, *v1, *v2;
    int32_t lm_fresh, opened;  // lm_fresh: the LM head is packed from the present values
    int32_t settled, reserved; // what passes is packed and gone
    struct rlhf__tf_work train, infer;
    struct rlhf__tf_scratch bwd;
    void *host_tmp; // host scratch that only grows
    uint64_t host_tmp_bytes;
    uint64_t sessions; // opened up to now
};

// One slot of the cache. after: tokens once the present step is done. stamp counts the steps that
// wrote to the slot: a row goes on only on the prefix that it was begun on.
struct rlhf__gen_slot {
    int32_t held, after; // tokens of its own
    int32_t prefix;      // slot that its tokens follow, or -1
    int32_t use;         // enum rlhf__tf_use, of the present step
    uint64_t stamp, prefix_stamp;
};

enum rlhf__tf_use { TF_UNUSED = 0, TF_WRITTEN = 1, TF_FILLED = 2 }; // FILLED: silently, no prefix

// What a session decodes with on a backend that records calls: everything at fixed addresses, for
// as many rows as the largest bucket. A step is padded to a bucket of rows; the padding is in the
// spare slot. Sessions of other backends have none of it.
struct rlhf__tf_recorded {
    uint32_t max_rows, words;  // words of a support, 0: none yet
    uint64_t session;          // tells sessions apart
    void *host;                // alloc_host: the step's integers, then its counters u64 [rows]
    void *host_drawn;          // alloc_host: what was drawn
    struct rlhf__tf_buf ints;  // what host holds, on the device
    struct rlhf__tf_buf drawn; // i32 [rows] ids, f32 [rows] log-probs, u32 [rows, words] supports
    int32_t *slot, *start, *offset, *ids, *prefix; // the padded step; one allocation
};

struct rlhf_gen {
    uint32_t n_slots, max_len;
    uint32_t cache_slots, reserved; // n_slots, and the spare one where calls are recorded
    struct rlhf__tf_buf k, v;       // act dtype [n_layer, cache_slots * max_len, kv]
    struct rlhf__gen_slot *slots;
    struct rlhf__tf_recorded *recorded; // NULL: calls are not recorded
};

// ---- small helpers ----

static inline uint64_t rlhf__tf_esz(const struct rlhf__tf *m) { return rlhf_dtype_size(m->dtype); }

static inline struct rlhf__tf_tensor *rlhf__tf_global(struct rlhf__tf *m, int32_t slot) {
    return &m->tensors[slot];
}

static inline struct rlhf__tf_tensor *rlhf__tf_layer(struct rlhf__tf *m, int32_t layer,
                                                     int32_t slot) {
    return &m->tensors[RLHF_TF_N_GLOBAL + layer * RLHF_TF_N_LAYER + slot];
}

static inline struct rlhf__tf_tensor *rlhf__tf_tensor(struct rlhf__tf *m, int32_t layer,
                                                      int32_t slot) {
    return layer < 0 ? rlhf__tf_global(m, slot) : rlhf__tf_layer(m, layer, slot);
}

static inline struct rlhf_tf_widths rlhf_tf_widths(const struct rlhf_tf_arch *a) {
    const int32_t q = a->n_head * a->head_dim, kv = a->n_kv_head * a->head_dim;
    return (struct rlhf_tf_widths){a->d,       q,          kv,
                                   q + 2 * kv, a->d_inner, a->gated ? 2 * a->d_inner : a->d_inner};
}

// Ids that the LM head has a logit for: its rows are the first of the embedding's.
static inline int32_t rlhf__tf_outputs(const struct rlhf__tf *m) {
    const int32_t n = m->open.n_tokens;
    return n > 0 && n < m->arch.n_vocab ? n : m->arch.n_vocab;
}

static inline struct rlhf__tf_qkv rlhf__tf_qkv(const struct rlhf__tf *m, rlhf_dev qkv) {
    const struct rlhf_tf_widths n = rlhf_tf_widths(&m->arch);
    const uint64_t q = (uint64_t)n.q * rlhf__tf_esz(m), kv = (uint64_t)n.kv * rlhf__tf_esz(m);
    return (struct rlhf__tf_qkv){qkv, rlhf_dev_at(qkv, q), rlhf_dev_at(qkv, q + kv)};
}

// Floats that a norm keeps of a row for backward.
static inline uint64_t rlhf__tf_stats(const struct rlhf__tf *m) {
    return m->arch.norm == RLHF_TF_NORM_RMS ? 1 : 2;
}

// Bytes of the keys, or the values, of one layer of n_slots slots of a session.
static inline uint64_t rlhf__tf_cache_bytes(const struct rlhf__tf *m, uint32_t n_slots,
                                            uint32_t max_len) {
    return (uint64_t)n_slots * max_len * (uint64_t)rlhf_tf_widths(&m->arch).kv * rlhf__tf_esz(m);
}

// Heads of a response token, in the order in which they lie in result and dres.
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

// 1 when there is an LM head: an encoder has none, nor has a classifier whose head is not the
// embedding (its checkpoints do not have the matrix).
static inline int32_t rlhf__tf_has_lm(const struct rlhf__tf *m) {
    return m->arch.causal && (m->arch.tied || m->open.n_labels == 0);
}

// 1 when the trunk's own parameters do not change: they are behind an adapter, or the base's.
static inline int32_t rlhf__tf_trunk_frozen(const struct rlhf__tf *m) { return m->base || m->low; }

// 1 when backward goes on into the trunk.
static inline int32_t rlhf__tf_trunk_learns(const struct rlhf__tf *m) {
    return m->open.trainable && (m->low || !m->base);
}

static inline int32_t rlhf__tf_has_value(const struct rlhf__tf *m) {
    return m->open.value_kind != RLHF_VALUE_NONE;
}

// ---- internal.c ----
// Record a failure once; returns code.
__attribute__((format(printf, 3, 4))) rlhf_status
rlhf__tf_fail(struct rlhf__tf *m, rlhf_status code, const char *fmt, ...);

// rlhf_copy_in with a sentence that names the struct.
rlhf_status rlhf__tf_copy_in(struct rlhf__tf *m, const char *what, void *dst, uint32_t own,
                             const void *src, uint32_t first);
// Ends an ops function: reports the device's own text when the failure has none yet.
rlhf_status rlhf__tf_done(struct rlhf__tf *m, rlhf_status st, const char *what);
// The distribution to score with: d, or temperature 1 over the whole vocabulary.
const rlhf_dist *rlhf__tf_dist(const rlhf_dist *d);

// ---- slots.c: shapes ----
struct rlhf__tf_shape {
    int32_t rows, cols; // cols 0: a vector of rows elements. Absent slots: rows 0
    uint32_t flags, init;
    int32_t group, reserved;
    double init_std;
};
// Shape of a global (layer < 0) or layer slot under m's arch and open arguments.
struct rlhf__tf_shape rlhf__tf_slot_shape(const struct rlhf__tf *m, int32_t layer, int32_t slot);
// Rows of its slot that a name stands for.
struct rlhf__tf_span rlhf__tf_piece_rows(const struct rlhf__tf *m, int32_t layer,
                                         const struct rlhf_tf_name *name);
// 1 when refresh() packs the slot's values and nothing else reads them.
int32_t rlhf__tf_slot_only_packed(int32_t layer, int32_t slot);

// ---- adapter.c ----
// The product whose matrix a layer slot is, or -1; and back.
int32_t rlhf__tf_site_of(int32_t slot);
int32_t rlhf__tf_site_slot(enum rlhf__tf_site site);
int32_t rlhf__tf_site_inputs(const struct rlhf__tf *m, enum rlhf__tf_site site);
// Columns that A x of a product has at most, 0 where no layer has an adapter there.
uint64_t rlhf__tf_low_width(const struct rlhf__tf *m, enum rlhf__tf_site site);
// Finds the products that a names, NULL: none; their tensors are params.c's to make.
rlhf_status rlhf__tf_adapter_create(struct rlhf__tf *m, const rlhf_adapter *a);
rlhf_status rlhf__tf_adapter_weights(struct rlhf__tf *m);
rlhf_status rlhf__tf_adapter_pack(struct rlhf__tf *m);
void rlhf__tf_adapter_destroy(struct rlhf__tf *m);
// Outputs of the first `blocks` blocks.
uint64_t rlhf__tf_low_outputs(const struct rlhf__tf_low *low, int32_t blocks);
// The adapter of a product, or NULL.
const struct rlhf__tf_low *rlhf__tf_low_of(const struct rlhf__tf *m, int32_t layer,
                                           enum rlhf__tf_site site);
// u = A x.
rlhf_status rlhf__tf_low_in(const struct rlhf__tf *m, const struct rlhf__tf_low *low, rlhf_dev u,
                            rlhf_dev x, uint32_t rows);
// Gradients of A and B from u, x and dy, the derivative of the product's result; leaves that of u
// in bwd.dlow.
rlhf_status rlhf__tf_low_bwd(struct rlhf__tf *m, const struct rlhf__tf_low *low, rlhf_dev x,
                             rlhf_dev u, rlhf_dev dy, uint32_t rows);

int64_t rlhf__tf_adapter_size(const struct rlhf__tf *m); // its elements

// ---- base.c ----
// Sets m->base, and what of *o follows from it.
rlhf_status rlhf__tf_base_open(struct rlhf__tf *m, rlhf_model_open *o);

// ---- params.c ----
// A name in full, with its layer (-1: global); returns its length without the NUL. out NULL: only
// that.
size_t rlhf__tf_full_name(const struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer,
                          char *out, size_t cap);
rlhf_status rlhf__tf_params_create(struct rlhf__tf *m);
void rlhf__tf_params_destroy(struct rlhf__tf *m);
// Let go of what passes of a layer (-1: of what exists once), when the device is done with it.
rlhf_status rlhf__tf_params_release(struct rlhf__tf *m, int32_t layer);

// ---- weights.c ----
rlhf_status rlhf__tf_weights_create(struct rlhf__tf *m);
void rlhf__tf_weights_destroy(struct rlhf__tf *m);
// Packs what may have changed, and lets go of what passes.
rlhf_status rlhf__tf_weights_pack(struct rlhf__tf *m);
rlhf_status rlhf__tf_lm_ready(struct rlhf__tf *m); // pack the LM head if it is stale or absent

// ---- buffers.c ----
rlhf_status rlhf__tf_reserve(struct rlhf__tf *m, struct rlhf__tf_buf *b, uint64_t bytes);
void rlhf__tf_buf_finish(struct rlhf__tf *m, struct rlhf__tf_buf *b);
void rlhf__tf_work_finish(struct rlhf__tf *m, struct rlhf__tf_work *w);
void rlhf__tf_scratch_finish(struct rlhf__tf *m);
rlhf_status rlhf__tf_host_tmp(struct rlhf__tf *m, uint64_t bytes, void **out);

// ---- check.c ----
rlhf_status rlhf__tf_batch_check(struct rlhf__tf *m, const rlhf_batch *b, int32_t want_resp);
int32_t rlhf__tf_has_prefix(const int32_t *prefix, uint32_t n); // is any entry not -1
// ---- rows.c ----
rlhf_status rlhf__tf_rows_upload(struct rlhf__tf *m, struct rlhf__tf_work *w,
                                 const struct rlhf__tf_layout *l);
// Integers of a step of n rows of one token each.
uint64_t rlhf__tf_rows_ints(uint64_t n);

// ---- trunk.c, trunk_bwd.c ----
// Embedding and all layers over w->rows; sets w->x. gen NULL: keys are the rows' own tokens.
rlhf_status rlhf__tf_trunk(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_gen *gen);
// The activations of layer of w that backward reads, computed again from the layer's input.
rlhf_status rlhf__tf_layer_again(struct rlhf__tf *m, const struct rlhf__tf_work *w, int32_t layer);
// Makes room for what the trunk computes from w->rows, so that it allocates nothing.
rlhf_status rlhf__tf_trunk_reserve(struct rlhf__tf *m, struct rlhf__tf_work *w);
// Where a layer's activations of w lie, once the trunk has run.
struct rlhf__tf_acts rlhf__tf_acts(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                                   int32_t layer);
rlhf_attn rlhf__tf_attn_geometry(const struct rlhf__tf *m, int32_t layer, int32_t cached);
// From d(loss)/d(w->x) in m->bwd.ds, f32 [total, d], to every trunk gradient.
rlhf_status rlhf__tf_trunk_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w);

// ---- rotary.c ----
// Sees to it that m->turn has the first `positions` positions. Before anything is recorded.
rlhf_status rlhf__tf_turn_reserve(struct rlhf__tf *m, uint32_t positions);
// Arguments of rope and rope_bwd for layer; raw, stats: struct rlhf__tf_acts.
rlhf_rope rlhf__tf_rope_args(const struct rlhf__tf *m, const struct rlhf__tf_rows *rows,
                             int32_t layer, rlhf_dev raw, rlhf_dev stats);

// ---- norm.c ----
// The architecture's norm of x, f32 [rows, d], with the gain at gamma (and what follows it). out in
// dtype; stats f32 [rows, rlhf__tf_stats()] for backward, or NULL.
rlhf_status rlhf__tf_norm(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                          rlhf_dev out, int32_t dtype, rlhf_dev stats, rlhf_dev x, uint32_t rows);
// Gradients of the gain, and of x in dx, f32 (added to it when accumulate), from dy in dy_dtype.
rlhf_status rlhf__tf_norm_bwd(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                              rlhf_dev dx, int32_t accumulate, rlhf_dev dy, int32_t dy_dtype,
                              rlhf_dev x, rlhf_dev stats, uint32_t rows);

// ---- heads.c, heads_bwd.c, small_heads.c ----
// Gather w->rows.resp from w->x, final norm in f32 (w->rf_p), copy in the act dtype (w->rh_p).
rlhf_status rlhf__tf_resp_state(struct rlhf__tf *m, struct rlhf__tf_work *w);
rlhf_status rlhf__tf_resp_reserve(struct rlhf__tf *m, struct rlhf__tf_work *w); // as trunk_reserve
rlhf_status rlhf__tf_heads(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                           const rlhf_forward *f, const rlhf_heads *out);
rlhf_status rlhf__tf_heads_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                               const rlhf_forward *f, const rlhf_heads *grad);
// Arguments of lm_head for w as heads.c left it; heads: bits of enum rlhf_head to compute.
void rlhf__tf_lm_args(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                      const rlhf_forward *f, rlhf_lm_head *out);
rlhf_status rlhf__tf_value(struct rlhf__tf *m, struct rlhf__tf_work *w);
// d_rf f32 [n_resp, d] is overwritten with the gradient of w->rf, unless NULL (detached).
rlhf_status rlhf__tf_value_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d_value,
                               rlhf_dev d_rf);
rlhf_status rlhf__tf_full_norm(struct rlhf__tf *m, struct rlhf__tf_work *w);
rlhf_status rlhf__tf_score(struct rlhf__tf *m, struct rlhf__tf_work *w, float *host_out);
// The score head at each response token, in w->result.
rlhf_status rlhf__tf_token_score(struct rlhf__tf *m, struct rlhf__tf_work *w);
// Add the gradient of the score head to m->bwd.ds. host_d [n, n_labels]; d device f32 [n_resp].
rlhf_status rlhf__tf_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const float *host_d);
rlhf_status rlhf__tf_token_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d);
int32_t rlhf__tf_pooling(const struct rlhf__tf *m);

// 1 when a forward for these heads fills out->dev_hidden.
int32_t rlhf__tf_gives_dev_hidden(uint32_t heads, const rlhf_heads *out);
// f->kl_dev_row where f reads it, else NULL.
const int32_t *rlhf__tf_reference_rows(const rlhf_forward *f);

// ---- gen.c ----
rlhf_status rlhf__tf_gen_open(void *self, uint32_t n_slots, uint32_t max_len, rlhf_gen **out);
rlhf_status rlhf__tf_gen_step(void *self, rlhf_gen *, const rlhf_gen_step *);
void rlhf__tf_gen_close(void *self, rlhf_gen *);

// Refuse a step that does not fit the session; fills `use` and `after` of its slots.
rlhf_status rlhf__tf_step_check(struct rlhf__tf *m, rlhf_gen *, const rlhf_gen_step *);
void rlhf__tf_step_commit(rlhf_gen *, const rlhf_gen_step *); // the step is done

// ---- gen_record.c ----
// What a session of n_slots needs to record its steps; *out NULL where the backend does not record.
rlhf_status rlhf__tf_recorded_create(struct rlhf__tf *m, uint32_t n_slots,
                                     struct rlhf__tf_recorded **out);
void rlhf__tf_recorded_destroy(struct rlhf__tf *m, struct rlhf__tf_recorded *r); // NULL allowed
// 1 when the checked step s is one that the session records: a token a row, and every row draws.
int32_t rlhf__tf_is_recorded(const rlhf_gen *g, const rlhf_gen_step *s);
// Such a step, checked, up to what it draws.
rlhf_status rlhf__tf_gen_recorded(struct rlhf__tf *m, rlhf_gen *g, const rlhf_gen_step *s);

#endif
