// rlhf/model.h: model plugins. A forward pass turns token ids into per-token heads. A backward pass
// turns gradients with respect to the heads into parameter gradients. Full [n, T, vocab] logits
// never cross this boundary.
//
// Compute contract 0.14, a draft: it may change in any minor.
//
// The descriptor's options are read from the checkpoint's config.json (with Hugging Face's key
// names; unknown keys are allowed there). The host reads and writes weights through param(), so the
// host implements checkpoints, optimizers, "reference := policy" and export for all models.
//
// heads.h has the heads that an algorithm sees, and says which token each number belongs to. A
// response token is one that the policy wrote: a token with turn[t] >= 0 or, without turns, one
// whose index in its row is at least prompt_len.
#ifndef RLHF_MODEL_H
#define RLHF_MODEL_H

#include "compute.h"
#include "heads.h"
#include "plugin.h"

// Outputs of a forward pass that only the host sees; the others are those of enum rlhf_head.
enum rlhf_model_head {
    RLHF_HEAD_HIDDEN = 32,     // hidden states after the final norm, to feed another model's kl
    RLHF_HEAD_TOKEN_SCORE = 64 // score head (n_labels 1) at each response token
};
// All bits of both enums; others are refused.
#define RLHF_HEAD_KNOWN (2 * RLHF_HEAD_TOKEN_SCORE - 1)

// What a model can do in addition (rlhf_model_info.caps).
enum rlhf_cap {
    RLHF_CAP_GENERATE = 1,    // gen_open, gen_step, gen_close
    RLHF_CAP_PREFIX = 2,      // rlhf_batch.prefix, rlhf_gen_step.prefix
    RLHF_CAP_SUPPORT = 4,     // rlhf_forward.support, rlhf_gen_step.support
    RLHF_CAP_DEV_HIDDEN = 8,  // rlhf_heads.dev_hidden, rlhf_forward.kl_dev_hidden
    RLHF_CAP_ADAPTER = 16,    // rlhf_model_open.adapter and base
    RLHF_CAP_TURNS = 32,      // rlhf_batch.turn
    RLHF_CAP_DIVERGENCE = 64, // rlhf_forward.divergence, and a kl_self of another width
    RLHF_CAP_WANTED = 128     // rlhf_forward.wanted
};
#define RLHF_CAP_KNOWN (2 * RLHF_CAP_WANTED - 1)

enum rlhf_value_kind { RLHF_VALUE_NONE = 0, RLHF_VALUE_LINEAR = 1, RLHF_VALUE_MLP = 2 };
enum rlhf_value_init {
    RLHF_VALUE_INIT_ZERO = 0,
    RLHF_VALUE_INIT_ORTHOGONAL = 1,
    RLHF_VALUE_INIT_NORMAL = 2
}; // NORMAL: N(0, 1/sqrt(d + 1))

// How a new score head is initialized. REWARD: N(0, 1/sqrt(d + 1)) (Stiennon et al. 2020).
enum rlhf_score_init { RLHF_SCORE_INIT_DEFAULT = 0, RLHF_SCORE_INIT_REWARD = 1 };

// Which of the trunk's activations are kept for the backward pass, and which are recomputed.
enum rlhf_recompute {
    RLHF_RECOMPUTE_NONE = 0, // keep everything that needs a GEMM
    // Keep only each layer's input and recompute the rest, with the same bits (Chen et al. 2016,
    // "Training Deep Nets with Sublinear Memory Cost").
    RLHF_RECOMPUTE_LAYER = 1
};

// Low-rank adapters (LoRA, Hu et al. 2021): a linear layer of the trunk that has the weights W
// computes W x + scale * B (A x). A [rank, inputs] is initialized from U(-1/sqrt(inputs),
// 1/sqrt(inputs)), as in PEFT, and B [outputs, rank] with 0. The struct is borrowed until open()
// returns.
//
// Each string of `target` names modules as in PEFT: by the last whole components of a linear
// layer's name ("q_proj", "self_attn.q_proj", "c_attn"). "all-linear", as the only target, means
// every linear layer of the trunk, but not the LM head, the embeddings, the value head or the score
// head. A target without a match is rejected (RLHF_E_INVALID); the message lists the nearest name
// and all valid ones. A repeated target counts once.
typedef struct rlhf_adapter {
    uint32_t size;
    int32_t rank; // at least 1; may exceed the width of a layer
    double scale; // alpha / rank, or alpha / sqrt(rank)
    const char *const *target;
    uint32_t n_targets, reserved;
} rlhf_adapter;

typedef struct rlhf_model_open {
    uint32_t size;
    int32_t dtype;     // act dtype, RLHF_F32 or RLHF_BF16 [R:bf16]
    int32_t trainable; // 0: gradients are not allocated and backward fails
    int32_t n_labels;  // > 0: create a score head with that many outputs
    int32_t pooling;   // enum rlhf_pool for the score head; 0 = the architecture's default
    int32_t value_kind, value_init, value_detach; // value head; detach: no gradient to the trunk
    const rlhf_compute *compute;
    int32_t score_init; // enum rlhf_score_init
    // 1: the host fills every parameter once, before the first refresh(), and never reads a value
    // afterwards. The model need not keep values of which it has a packed copy (fill_begin). A
    // second refresh() fails. Not together with `trainable`.
    int32_t frozen;
    int32_t recompute; // enum rlhf_recompute; the model must reject unknown values
    // Number of ids that have a token. Embedding rows of higher ids are padding, and the LM head
    // ignores them: info().n_vocab is this number, and logp, entropy, kl, sampling and supports
    // cover only these ids. If n_tokens is 0 or not less than the number of embedding rows, every
    // row has a token.
    int32_t n_tokens;
    // `adapter` and `base` need a model with RLHF_CAP_ADAPTER; both may be NULL.
    //
    // With an adapter, the trunk's own parameters, the embeddings and the LM head are frozen:
    // param() lists them with RLHF_PARAM_FROZEN and grad NULL. As in a `frozen` model, the host
    // fills them once, and the model need not keep their values. Unlike in a `frozen` model,
    // refresh() may be called again, to pack the trained parameters.
    //
    // The adapter's parameters come after all others, in the group RLHF_PARAM_ADAPTER, as f32.
    // Each matched layer of the checkpoint has one pair of A and B: q_proj, k_proj and v_proj have
    // separate pairs even if the model fuses them, and c_attn has a single pair. A parameter's name
    // is the layer's name without ".weight", followed by ".lora_A.weight" [rank, inputs] or
    // ".lora_B.weight" [outputs, rank]. Value and score heads are trained in full.
    const rlhf_adapter *adapter;
    // Another open instance of the same plugin with the same config, compute table and dtype. This
    // instance uses the base's trunk, embeddings and LM head (values and packed weights) instead of
    // copies. The base must have been opened with an adapter or as `frozen`. If this instance is
    // trainable, the base must be trainable too, because only a trainable base has the weight
    // layouts that the backward pass needs. The base's first refresh() must come before this
    // instance's first refresh(), and the base must be destroyed after this instance. If the base
    // itself has a base, this instance uses that one. The base's adapter and heads are not shared.
    // n_tokens must be 0 or equal to the base's. param() lists only this instance's heads and
    // adapter. Without an adapter, only the heads are trained, on the base's unchanged trunk.
    const void *base;
    // Returns in which format (enum rlhf_format in compute.h) the host can give the values of the
    // trunk's parameter `name`, which is the parameter's full name. For each matrix that is not
    // trained, the model may choose to keep this format (rlhf_param.format) instead of f32. NULL:
    // all values are f32. Call it only in open().
    int32_t (*format_of)(void *format_ctx, const char *name);
    void *format_ctx;
} rlhf_model_open;

typedef struct rlhf_model_info {
    uint32_t size;
    uint32_t heads;    // bits of enum rlhf_head that forward can give [R:heads]
    uint32_t caps;     // bits of enum rlhf_cap
    uint32_t reserved; // 0
    int64_t n_params;  // all elements of param()
    // floating-point operations of one token's forward pass (2 for each multiply-add), including
    // the LM head but not the attention scores
    int64_t flops_per_token;
    int32_t n_vocab, n_ctx, d_model, n_layer, n_tensors, causal;
    // e.g. "transformer.": loaders try names with and without it; valid until destroy()
    const char *base_prefix;
    // One range of device memory that contains all gradients, in any order, with zeros between
    // them, so that one call can zero the gradients or sum them over workers. If there is no such
    // range, the two members are NULL and 0.
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
    // Not trained: the parameter has no optimizer state and does not count in the gradient norm.
    // `grad` may be NULL even in a trainable model. Checkpoints contain the parameter like any
    // other.
    RLHF_PARAM_FROZEN = 8
};
// All bits of this header; others are refused.
#define RLHF_PARAM_KNOWN                                                                           \
    (RLHF_PARAM_DECAY | RLHF_PARAM_EMBED | RLHF_PARAM_IN_OUT | RLHF_PARAM_FROZEN)
#define RLHF_PARAM_NAME_MAX 299 // bytes of a parameter's name

// One parameter tensor, written to the caller's struct with rlhf_copy_out. Buffers neither move nor
// disappear before destroy().
typedef struct rlhf_param {
    uint32_t size;
    int32_t ndim; // 1 to 4
    // Hugging Face name, with base_prefix; 1 to RLHF_PARAM_NAME_MAX bytes; valid until destroy()
    const char *name;
    int64_t shape[4]; // as stored in safetensors; each at least 1, unused = 0
    int32_t group;    // enum rlhf_param_group
    uint32_t flags;   // bits of enum rlhf_param_flag
    uint32_t init;    // enum rlhf_init
    // enum rlhf_format: how the host fills a parameter without a value. RLHF_FORMAT_F32: with
    // fill_begin. Others: with fill_blocks. They are only for matrices [outputs, inputs] for which
    // rlhf_model_open.format_of returned this format.
    int32_t format;
    // standard deviation for RLHF_INIT_NORMAL, gain for RLHF_INIT_ORTHOGONAL, bound for
    // RLHF_INIT_UNIFORM and RLHF_INIT_LOG_UNIFORM
    double init_std;
    // f32. value: NULL if the model does not keep the values (fill_begin). grad: NULL if the
    // parameter is not trained.
    rlhf_dev value, grad;
} rlhf_param;

// How the host initializes a new parameter (with its own generator).
enum rlhf_init {
    RLHF_INIT_ZERO = 0,
    RLHF_INIT_ONE = 1,
    RLHF_INIT_NORMAL = 2,
    RLHF_INIT_ORTHOGONAL = 3,
    RLHF_INIT_UNIFORM = 4,    // U(-init_std, init_std)
    RLHF_INIT_LOG_UNIFORM = 5 // the logarithm of U(0.01, init_std)
};

enum rlhf_forward_flag {
    // Run the model without its adapter, e.g. to use it as its own reference. Not with train = 1.
    // In a model without an adapter, the flag has no effect. With B = 0 the bits are the same with
    // the flag and without it. [R:adapter]
    RLHF_FORWARD_BASE = 1
};

// n ragged rows in host memory. Every row has at least one token.
//
// If `prefix` is set, row i continues row prefix[i] (-1: row i has no prefix). The first token of
// row i has the position after the prefix row's last token, and all tokens of row i attend to the
// prefix row's tokens. Rows that share a prefix row follow it directly; a prefix row must not have
// a prefix. The prefix row is computed once, and its gradients from all these rows are summed.
// Every head has the same bits as if each row were written out in full. prompt_len counts only the
// row's own tokens and is at least 1, so a row's first own token is never scored; a prefix row has
// prompt_len = its length. Only for causal models with RLHF_CAP_PREFIX; not for RLHF_HEAD_SCORE.
typedef struct rlhf_batch {
    uint32_t size, n, total, reserved;
    const int32_t *ids;        // [total]
    const int32_t *offset;     // [n + 1], offset[0] = 0
    const int32_t *prompt_len; // [n], 1 <= prompt_len <= row length (for score only: ignored)
    const int32_t *prefix;     // [n] row < i, or -1; NULL: no prefixes
    // [total] who wrote the token. k >= 0: the policy, in turn k (the first turn is 0); -1: the
    // token was given (prompt, or text of an environment). In each row, turn is -1 before index
    // prompt_len and 0 at that index. NULL: every token from prompt_len onward belongs to turn 0.
    // Only for models with RLHF_CAP_TURNS. [R:turns]
    const int32_t *turn;
} rlhf_batch;

typedef struct rlhf_forward {
    uint32_t size, heads;   // bits wanted
    int32_t train;          // 1: keep activations for the backward pass
    uint32_t flags;         // enum rlhf_forward_flag; the model must reject unknown bits
    const rlhf_dist *dist;  // temperature and support of log-probs
    const void *kl_self;    // RLHF_HEAD_KL: the other instance (same plugin, same vocabulary)
    const float *kl_hidden; // its hidden output for this batch, [total, its d_model]
    // [response tokens, rlhf_support_words(n_vocab)], row after row: one support (compute.h) for
    // each response token. The policy's distribution and, for kl, the reference's are restricted to
    // it. logp, entropy and kl then cover this support, and dist's top_k and top_p are ignored.
    // NULL: logp, entropy and kl cover the ids that dist keeps.
    const uint32_t *support;
    // For RLHF_HEAD_KL, instead of kl_hidden: the reference's dev_hidden, which must not change
    // until backward() returns. kl_dev_row [response tokens] has the index of each response token's
    // row in dev_hidden; if kl_dev_row is NULL, the rows are 0, 1, 2, ... The host ensures that
    // these rows exist.
    rlhf_dev kl_dev_hidden;
    const int32_t *kl_dev_row;
    // The divergence that RLHF_HEAD_KL computes (rlhf_divergence in heads.h), and its beta.
    // Divergences other than REVERSE need RLHF_CAP_DIVERGENCE.
    int32_t divergence, reserved;
    double divergence_beta;
    // backward() calls `graded` when a range of gradients is complete: the `bytes` bytes from
    // `grad` onward. The calls come from the thread of backward(), for ranges in any order.
    // Gradients outside of these ranges are complete when backward() returns. A model need not call
    // `graded`. `graded` is NULL if the host does not ask for these calls.
    void (*graded)(void *graded_ctx, rlhf_dev grad, uint64_t bytes);
    void *graded_ctx;
    // The host sets `wanted` if parameter values have changed and the host is still receiving some
    // of them. Before forward() first reads a range of values, it must call `wanted` with this
    // range: the `bytes` bytes from `value` onward. When `wanted` returns, the values in this range
    // are complete. The calls come from the thread of forward(), for ranges in any order, and must
    // cover all trained values before forward() returns. forward() then also does what refresh()
    // does. Only for models with RLHF_CAP_WANTED. If `wanted` is NULL, the host has called
    // refresh().
    void (*wanted)(void *wanted_ctx, rlhf_dev value, uint64_t bytes);
    void *wanted_ctx;
} rlhf_forward;

// Host arrays, [total] unless stated otherwise. forward() fills them with outputs; an array that is
// NULL is not requested. backward() reads them as gradients of the loss; an array that is NULL
// means zeros.
typedef struct rlhf_heads {
    uint32_t size, reserved;
    float *logp, *entropy, *kl, *value;
    float *score;       // [n, n_labels]
    float *hidden;      // [total, d_model], forward only
    float *token_score; // [total] score head after reading ids[t]; 0 on prompt tokens
    // Device memory, act dtype [response tokens, d_model], row after row: for each response token,
    // a copy of the state in `hidden` that predicts the token. kl reads these states. Forward only,
    // with RLHF_HEAD_HIDDEN; only for models with RLHF_CAP_DEV_HIDDEN.
    rlhf_dev dev_hidden;
} rlhf_heads;

// A generation session: n_slots key/value caches of max_len tokens. Private to the model.
typedef struct rlhf_gen rlhf_gen;

// One step of continuous batching: row i appends its new tokens to slot[i] and samples the next
// token. A silent row only appends. start[i] is the number of tokens in the slot; if it is 0, the
// slot is cleared first. Prefill and decode rows may be mixed. If `prefix` is set, the tokens of
// slot prefix[i] come before those of slot[i]. Rows that share a prompt can then read the prompt
// from one slot, which a silent row of this step or an earlier one has filled. Within one step, a
// slot must not be both a prefix and a row's own slot, except for the silent row that fills it.
typedef struct rlhf_gen_step {
    uint32_t size, n;
    const int32_t *slot, *start; // [n]
    const int32_t *ids, *offset; // ragged new tokens, at least one per row
    const rlhf_dist *dist, *logp_dist;
    uint64_t seed, stream;
    const uint64_t *counter; // [n] generator counter for each sample
    int32_t *next;           // out [n]
    float *logp;             // out [n]
    const int32_t *prefix;   // [n] slot, or -1; NULL: all -1
    const uint8_t *silent;   // [n] 1: only store the tokens; NULL: every row samples
    // out [n, rlhf_support_words(n_vocab)]: receives the support from which row i's token was
    // sampled; not written for silent rows. logp then covers this support, at logp_dist's
    // temperature and without its top_k and top_p. If `support` is NULL, logp is the log-prob under
    // logp_dist.
    uint32_t *support;
} rlhf_gen_step;

typedef struct rlhf_model_ops {
    uint32_t size, flags;
    uint32_t compute_major, compute_minor; // RLHF_COMPUTE_MAJOR, RLHF_COMPUTE_MINOR
    // Allocates the parameters, all zero. Called once after create(). [main] [R:open]
    rlhf_status (*open)(void *self, const rlhf_model_open *);
    rlhf_status (*info)(void *self, rlhf_model_info *out); // after open [any]
    // Describes parameter i. Returns RLHF_E_INVALID past the end. out->size is the size of the
    // caller's struct. [any] [R:param]
    rlhf_status (*param)(void *self, uint32_t i, rlhf_param *out);
    // Packs the weights again after parameter values have changed. Fails if a parameter without
    // values has not been filled. [step] [R:forward]
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
    // Called when other models compute next and the host does not need this model for some time.
    // The model may release memory that it can allocate again (activations, scratch); it may keep
    // small buffers. Results do not change, but backward() needs another forward() first. Not
    // called while a session is open. If `trim` is NULL, nothing is released. [step]
    void (*trim)(void *self);
    // For parameters whose param().value is NULL: those that are frozen or in a `frozen` model, and
    // of which the model keeps only a packed copy. Before the first refresh(), the host fills each
    // of them once, in ascending order, and only one at a time:
    // - fill_begin() sets *value to device memory, f32, with room for the values of parameter i.
    // - The host writes all values.
    // - fill_end() may pack the values and release the memory. A model that packs several
    //   parameters as one matrix can keep them until it has the last of them.
    // So a model's values never need to be in memory all at once. Both are NULL if every parameter
    // has a value. [step]
    rlhf_status (*fill_begin)(void *self, uint32_t i, rlhf_dev *value);
    rlhf_status (*fill_end)(void *self, uint32_t i);
    // Instead of fill_begin(), for a parameter with a format other than f32: takes the rows from ..
    // from + rows - 1 from host memory, rlhf_format_row_bytes() bytes each. The host calls it for
    // all rows in ascending order, and then fill_end(). NULL if the model keeps no format. [step]
    rlhf_status (*fill_blocks)(void *self, uint32_t i, int64_t from, int64_t rows,
                               const void *blocks);
} rlhf_model_ops;

#endif
