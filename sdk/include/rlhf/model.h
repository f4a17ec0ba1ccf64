// rlhf/model.h: model backends. Token ids in, per-token heads out; derivatives with respect to
// those heads in, parameter gradients out. [n, T, vocab] never crosses this boundary.
//
// The descriptor's option table is read from the checkpoint's config.json (keys as Hugging Face
// writes them; unknown keys are allowed there). The host reads and writes weights through param(),
// so checkpoints, optimisers, "reference := policy" and export are host code written once.
//
// Alignment of per-token arrays [total]: entry t of logp, entropy, kl belongs to predicting ids[t]
// from the tokens before it in its row; value[t] is the value of the state before ids[t] is chosen.
// Only response tokens (index in row >= prompt_len >= 1) are computed; the rest read 0. logp,
// entropy and kl are natural logarithms (nats). [R:log-probs]
#ifndef RLHF_MODEL_H
#define RLHF_MODEL_H

#include "compute.h"
#include "plugin.h"

enum rlhf_head {
    RLHF_HEAD_LOGP = 1,
    RLHF_HEAD_ENTROPY = 2,
    RLHF_HEAD_KL = 4, // full-distribution KL(policy || reference) [R:kl]
    RLHF_HEAD_VALUE = 8,
    RLHF_HEAD_SCORE = 16,        // pooled, [n, n_labels]
    RLHF_HEAD_HIDDEN = 32,       // hidden states after the final norm, to feed another model's kl
    RLHF_HEAD_GENERATE = 64,     // capability only
    RLHF_HEAD_TOKEN_SCORE = 128, // score head (n_labels 1) at each response token
    RLHF_HEAD_PREFIX = 256,      // capability only: rlhf_batch.prefix, rlhf_gen_step.prefix
    RLHF_HEAD_SUPPORT = 512,     // capability only: rlhf_forward.support, rlhf_gen_step.support
    RLHF_HEAD_DEV_HIDDEN = 1024, // capability only: dev_hidden and kl_dev_hidden, on the device
    RLHF_HEAD_ADAPTER = 2048     // capability only: rlhf_model_open.adapter and base
};
// All bits of this header; others are refused.
#define RLHF_HEAD_KNOWN (2 * RLHF_HEAD_ADAPTER - 1)

enum rlhf_value_kind { RLHF_VALUE_NONE = 0, RLHF_VALUE_LINEAR = 1, RLHF_VALUE_MLP = 2 };
enum rlhf_value_init {
    RLHF_VALUE_INIT_ZERO = 0,
    RLHF_VALUE_INIT_ORTHOGONAL = 1,
    RLHF_VALUE_INIT_NORMAL = 2
}; // NORMAL: N(0, 1/sqrt(d + 1))

// How a fresh score head is drawn. REWARD: N(0, 1/sqrt(d + 1)) (Stiennon et al. 2020).
enum rlhf_score_init { RLHF_SCORE_INIT_DEFAULT = 0, RLHF_SCORE_INIT_REWARD = 1 };

// What of the trunk is kept for backward, and what is computed again.
enum rlhf_recompute {
    RLHF_RECOMPUTE_NONE = 0, // what takes a product to compute is kept
    // Of each layer its input alone is kept; the rest is computed again, with the same bits (Chen
    // et al. 2016, "Training Deep Nets with Sublinear Memory Cost").
    RLHF_RECOMPUTE_LAYER = 1
};

// Low-rank adapters (LoRA, Hu et al. 2021): what a linear layer of the trunk gives for x, W x,
// becomes W x + scale * B (A x). A [rank, inputs] starts U(-1/sqrt(inputs), 1/sqrt(inputs)), as
// PEFT draws it, and B [outputs, rank] at 0. Borrowed until open() returns.
//
// target names modules as PEFT matches them: the last components of the name of a linear layer,
// whole ones ("q_proj", "self_attn.q_proj", "c_attn"). "all-linear" alone: every linear layer of
// the trunk, not the LM head, the embeddings, the value or the score head. A target that matches
// nothing is refused (RLHF_E_INVALID) with the nearest name and all there are; one that is given
// twice counts once.
typedef struct rlhf_adapter {
    uint32_t size;
    int32_t rank; // 1 and more; it may exceed the width of a layer
    double scale; // alpha / rank, or alpha / sqrt(rank)
    const char *const *target;
    uint32_t n_targets, reserved;
} rlhf_adapter;

typedef struct rlhf_model_open {
    uint32_t size;
    int32_t dtype;     // act dtype, RLHF_F32 or RLHF_BF16 [R:bf16]
    int32_t trainable; // 0: no gradients are allocated, backward is refused
    int32_t n_labels;  // > 0: a score head with that many outputs exists
    int32_t pooling;   // enum rlhf_pool for the score head; 0 = the architecture's own
    int32_t value_kind, value_init, value_detach; // value head; detach: no gradient to the trunk
    const rlhf_compute *compute;
    int32_t score_init; // enum rlhf_score_init
    // 1: the host writes values before the first refresh() only and reads none after it. The model
    // may release there what it keeps packed as well: param().value reads NULL from then on.
    // refresh() is refused the second time. Not with trainable.
    int32_t frozen;
    int32_t recompute; // enum rlhf_recompute; one the model does not know is refused
    // Ids below it have a token; the rows of the embedding from there on are padding, and the LM
    // head leaves them out: info().n_vocab is this number, and logp, entropy, kl, draws and
    // supports are over so many ids. 0, or no less than the embedding has: all its rows.
    int32_t n_tokens;
    // Models with RLHF_HEAD_ADAPTER only, both; NULL: none.
    //
    // With an adapter the trunk's own parameters and the embeddings are frozen: they are listed
    // with RLHF_PARAM_FROZEN and grad NULL (also those of the LM head), and a value that is kept
    // packed as well is released by the first refresh(), after which it reads NULL as in a `frozen`
    // model (refresh() itself may be called again: it packs what is trained). The adapter's follow
    // all others, in the group RLHF_PARAM_ADAPTER, a pair for each matched layer of the checkpoint
    // (separate ones for q_proj, k_proj and v_proj, however the model fuses them; one for c_attn):
    // the layer's name without ".weight", and ".lora_A.weight" [rank, inputs], ".lora_B.weight"
    // [outputs, rank] behind it, f32. Value and score heads are trained in full.
    const rlhf_adapter *adapter;
    // Another open instance of the same plugin with the same config, compute table and dtype, whose
    // trunk, embeddings and LM head (values and packed) this one reads instead of its own. It was
    // opened with an adapter or as `frozen`, and is trainable where this one is (else the layouts
    // that gradients flow back through would not be there); it has had its first refresh() before
    // this one's, and is destroyed later. It may have a base itself: then that one is meant. What
    // the base gets of its own (adapter, heads) stays its own. n_tokens is the base's; 0 or the
    // same is to be given. param() lists this instance's own parameters alone: heads and adapter.
    // With base and no adapter the trunk is the base's as it is, and the heads alone are trained.
    const void *base;
} rlhf_model_open;

typedef struct rlhf_model_info {
    uint32_t size, heads; // heads: bits of enum rlhf_head that forward can give [R:heads]
    int64_t n_params;     // all elements of param()
    int64_t
        flops_per_token; // forward multiply-adds * 2 a token, LM head included, no attention scores
    int32_t n_vocab, n_ctx, d_model, n_layer, n_tensors, causal;
    // e.g. "transformer.": loaders try names with and without it; lives until destroy()
    const char *base_prefix;
    // All gradients lie in this one range of device memory, in any order, and what is between them
    // reads 0: what workers add up, and what is zeroed, in one go. NULL and 0: each by itself.
    rlhf_dev grad_base;
    uint64_t grad_bytes;
} rlhf_model_info;

enum rlhf_param_group {
    RLHF_PARAM_TRUNK = 0,
    RLHF_PARAM_VALUE = 1,
    RLHF_PARAM_SCORE = 2,
    RLHF_PARAM_ADAPTER = 3
};
enum rlhf_param_flag {
    RLHF_PARAM_DECAY = 1,  // weight decay applies (matrices; not norms, biases)
    RLHF_PARAM_EMBED = 2,  // an embedding table: a matrix, but not one for Muon
    RLHF_PARAM_IN_OUT = 4, // a matrix stored [inputs, outputs]; without it [outputs, inputs]
    // Not trained: no optimiser state, no part in the gradient's norm; grad may be NULL although
    // the model is trainable. Checkpoints hold it like any other.
    RLHF_PARAM_FROZEN = 8
};
// All bits of this header; others are refused.
#define RLHF_PARAM_KNOWN                                                                           \
    (RLHF_PARAM_DECAY | RLHF_PARAM_EMBED | RLHF_PARAM_IN_OUT | RLHF_PARAM_FROZEN)
#define RLHF_PARAM_NAME_MAX 299 // bytes of a parameter's name

// One parameter tensor; the buffers stay where they are for the model's life, or until a model
// opened as frozen, or with an adapter, releases them. Answered in the caller's struct
// (rlhf_copy_out).
typedef struct rlhf_param {
    uint32_t size;
    int32_t ndim; // 1 to 4
    // Hugging Face name, with base_prefix; 1 to RLHF_PARAM_NAME_MAX bytes; lives until destroy()
    const char *name;
    int64_t shape[4]; // as stored in safetensors; each at least 1, unused = 0
    int32_t group;    // enum rlhf_param_group
    uint32_t flags;   // bits of enum rlhf_param_flag
    uint32_t init;    // enum rlhf_init
    uint32_t reserved;
    // for RLHF_INIT_NORMAL; gain for RLHF_INIT_ORTHOGONAL, bound for RLHF_INIT_UNIFORM
    double init_std;
    rlhf_dev value, grad; // f32; value NULL when released, grad NULL when not trainable
} rlhf_param;

// How a fresh parameter is filled (by the host, with its own generator).
enum rlhf_init {
    RLHF_INIT_ZERO = 0,
    RLHF_INIT_ONE = 1,
    RLHF_INIT_NORMAL = 2,
    RLHF_INIT_ORTHOGONAL = 3,
    RLHF_INIT_UNIFORM = 4 // U(-init_std, init_std)
};

enum rlhf_forward_flag {
    // The model without its adapter, e.g. as its own reference. Not with train. A model that has no
    // adapter is its own base: the flag changes nothing. With B = 0 the bits are the same with the
    // flag and without. [R:adapter]
    RLHF_FORWARD_BASE = 1
};

// n ragged rows in host memory. Every row has at least one token.
//
// With prefix, row i continues row prefix[i] (-1: it stands alone): its first token has the
// position after that row's last and its tokens see that row's. Rows that share a prefix follow it
// directly, and a prefix has none of its own. The prefix row is computed once and its gradients are
// summed; every head has the same bits as if the row were written out in full. prompt_len counts
// the row's own tokens, so a row's first own token is always given; a prefix row has prompt_len =
// its length. Causal models with RLHF_HEAD_PREFIX only, and not for RLHF_HEAD_SCORE.
typedef struct rlhf_batch {
    uint32_t size, n, total, reserved;
    const int32_t *ids;        // [total]
    const int32_t *offset;     // [n + 1], offset[0] = 0
    const int32_t *prompt_len; // [n], 1 <= prompt_len <= row length (for score only: ignored)
    const int32_t *prefix;     // [n] row < i, or -1; NULL: no prefixes
} rlhf_batch;

typedef struct rlhf_forward {
    uint32_t size, heads;   // bits wanted
    int32_t train;          // 1: keep what backward needs
    uint32_t flags;         // enum rlhf_forward_flag; a bit the model does not know is refused
    const rlhf_dist *dist;  // temperature and support of log-probs
    const void *kl_self;    // RLHF_HEAD_KL: the reference instance (same plugin, same vocabulary)
    const float *kl_hidden; // its hidden output for this batch, [total, d_model]
    // [response tokens, rlhf_support_words(n_vocab)], rows one after the other: what each response
    // token's distribution is over (and the reference's, for kl), as compute.h has it; dist's top_k
    // and top_p are off then. logp, entropy and kl are over it. NULL: over what dist keeps.
    const uint32_t *support;
    // RLHF_HEAD_KL, instead of kl_hidden: the reference's dev_hidden, which stays as it is until
    // backward is done. kl_dev_row [response tokens]: which of its rows is each response token's;
    // NULL: 0, 1, 2 and on. That the rows are there is the host's care.
    rlhf_dev kl_dev_hidden;
    const int32_t *kl_dev_row;
} rlhf_forward;

// Host arrays, filled by forward or read by backward (then: derivatives of the loss). NULL = not
// wanted / zero. Index [total] unless said.
typedef struct rlhf_heads {
    uint32_t size, reserved;
    float *logp, *entropy, *kl, *value;
    float *score;       // [n, n_labels]
    float *hidden;      // [total, d_model], forward only
    float *token_score; // [total] score head after reading ids[t]; 0 on prompt tokens
    // Device memory, act dtype [response tokens, d_model], rows one after the other: of `hidden`
    // the state that predicts each response token, which is what kl reads. Forward only, with
    // RLHF_HEAD_HIDDEN; models with RLHF_HEAD_DEV_HIDDEN only.
    rlhf_dev dev_hidden;
} rlhf_heads;

// A generation session: n_slots key/value caches of max_len tokens. Private to the model.
typedef struct rlhf_gen rlhf_gen;

// One step of continuous batching: row i appends its new tokens to slot[i] (start[i] = 0 clears the
// slot first; else start[i] is the number of tokens the slot holds) and draws the next token.
// Prefill and decode rows may be mixed. With prefix, the tokens of slot prefix[i] come before those
// of slot[i]: a prompt is stored once (by a silent row, at the latest in the same step) and read by
// all rows that share it. A slot is used as a prefix or as a row's own, not both in one step except
// for the silent row that fills it.
typedef struct rlhf_gen_step {
    uint32_t size, n;
    const int32_t *slot, *start; // [n]
    const int32_t *ids, *offset; // ragged new tokens, at least one a row
    const rlhf_dist *dist, *logp_dist;
    uint64_t seed, stream;
    const uint64_t *counter; // [n] generator counter of each draw
    int32_t *next;           // out [n]
    float *logp;             // out [n]
    const int32_t *prefix;   // [n] slot, or -1; NULL: none
    const uint8_t *silent;   // [n] 1: store the tokens, draw nothing; NULL: every row draws
    // out [n, rlhf_support_words(n_vocab)]: what row i's token was drawn from; logp is over it, at
    // logp_dist's temperature, whose top_k and top_p are off. Silent rows are left alone. NULL: not
    // wanted, logp is under logp_dist.
    uint32_t *support;
} rlhf_gen_step;

typedef struct rlhf_model_ops {
    uint32_t size, flags;
    // Allocate parameters (zero). Called once after create(). [main] [R:open]
    rlhf_status (*open)(void *self, const rlhf_model_open *);
    rlhf_status (*info)(void *self, rlhf_model_info *out); // after open [any]
    // RLHF_E_INVALID past the end. out->size says what the caller knows. [any] [R:param]
    rlhf_status (*param)(void *self, uint32_t i, rlhf_param *out);
    // Parameter values changed: re-pack the weights. [step] [R:forward]
    rlhf_status (*refresh)(void *self);
    rlhf_status (*forward)(void *self, const rlhf_batch *, const rlhf_forward *,
                           const rlhf_heads *out); // [step]
    // Adds to the gradients. Must follow forward(train = 1) of the same batch. [step] [R:gradient]
    rlhf_status (*backward)(void *self, const rlhf_batch *, const rlhf_forward *,
                            const rlhf_heads *grad);
    rlhf_status (*gen_open)(void *self, uint32_t n_slots, uint32_t max_len,
                            rlhf_gen **out);                                // [step]
    rlhf_status (*gen_step)(void *self, rlhf_gen *, const rlhf_gen_step *); // [step]
    void (*gen_close)(void *self, rlhf_gen *);                              // NULL allowed [step]
    // What the model holds for speed alone and would allocate again, activations and scratch, may
    // go: the host is done with it for now, and others compute next. Numbers stay what they are;
    // backward() wants another forward() first. Not while a session is open. What is cheap to hold
    // may stay. NULL: all of it stays. [step]
    void (*trim)(void *self);
} rlhf_model_ops;

#endif
