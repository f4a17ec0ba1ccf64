// rlhf/draft/tap.h: DRAFT, not in plugin contract 1.0: it may change in any minor. The
// intermediate values of a transformer: its residual stream, its attention, and the output of each
// part. `rlhf-host inspect` reads models through this interface.
//
// A transformer has a stream x of width d for each token. The stream begins with the embeddings.
// Each layer adds the output of its attention to the stream, and then the output of its MLP:
//
//   IN(0) = TOKEN + POSITION        MID(l) = IN(l) + attention(l)
//   IN(l + 1) = MID(l) + mlp(l)     END = IN(layers)
//
// A model may keep its stream in another unit: then all these values, project() and the biases are
// divided by one factor, and norm_eps by its square (Granite's residual_multiplier).
//
// attention(l) is project(l, HEADS(l)) + OUT_BIAS(l) or, in a model that has the point OUT_NORM,
// the RMS norm of that sum, with the gain OUT_NORM(l) and norm_eps (Gemma 3). The LM head, the
// score head and the value head read the final norm of END. Models whose norms come after the sums,
// such as BERT, do not fit this scheme.
//
// All arrays are host memory, f32. Nothing is trained; the model's forward(), backward() and
// sessions are not affected.
#ifndef RLHF_DRAFT_TAP_H
#define RLHF_DRAFT_TAP_H

#include "../model.h"

// The extension (rlhf_plugin.extension, with self) of a model plugin: rlhf_tap_ops.
#define RLHF_EXT_TAP "rlhf.tap/1"

enum rlhf_tap_norm { RLHF_TAP_NORM_LAYER = 0, RLHF_TAP_NORM_RMS = 1 };

// The values that read() copies, for the `total` tokens of the last run. Layers are counted from 0;
// for points without (l), pass layer 0.
enum rlhf_tap_point {
    RLHF_TAP_TOKEN = 1,    // [total, d] the token embedding
    RLHF_TAP_POSITION = 2, // [total, d] the position embedding; not with rotary positions
    RLHF_TAP_IN = 3,       // (l) [total, d] the stream before the layer
    RLHF_TAP_MID = 4,      // (l) [total, d] the stream between attention and MLP
    RLHF_TAP_END = 5,      // [total, d] the stream after the last layer
    RLHF_TAP_Q = 6,        // (l) [total, heads, width] queries as attention reads them
    RLHF_TAP_K = 7,        // (l) [total, kv heads, width] keys
    RLHF_TAP_V = 8,        // (l) [total, kv heads, width] values
    RLHF_TAP_HEADS = 9,    // (l) [total, heads, width] each head's output, before project()
    // Weights and constants, which need no run:
    RLHF_TAP_OUT_BIAS = 10,  // (l) [d] bias after project()
    RLHF_TAP_MLP_BIAS = 11,  // (l) [d] bias of the MLP's last matrix product; not before a norm
    RLHF_TAP_NORM_GAIN = 12, // [d] of the final norm: its factor, so 1 + w where w is stored
    RLHF_TAP_NORM_BIAS = 13, // [d]
    RLHF_TAP_SCALE = 14,     // (l) [1] factor of query-key products
    RLHF_TAP_WINDOW = 15,    // (l) [1] a token sees the last so many tokens up to itself; 0: all
    RLHF_TAP_SOFTCAP = 16,   // (l) [1] score s becomes cap * tanh(s / cap); 0: it stays s
    RLHF_TAP_OUT_NORM = 17   // (l) [d] gain of a norm of attention's output; most models have none
};

// The linear maps of the heads. They read the final norm's output, with one exception: if the value
// head has a hidden layer, RLHF_TAP_VALUE reads that layer's output.
enum rlhf_tap_head {
    RLHF_TAP_LM = 1,          // a row for each token of the vocabulary [n_vocab, d], times the
                              // model's factor of its logits
    RLHF_TAP_SCORE = 2,       // a row for each label [n_labels, d]
    RLHF_TAP_VALUE = 3,       // one row [1, d]; after a hidden layer [1, value_hidden]
    RLHF_TAP_VALUE_HIDDEN = 4 // [value_hidden, d]; ReLU follows
};

typedef struct rlhf_tap_info {
    uint32_t size;
    int32_t norm;    // enum rlhf_tap_norm, of the final norm
    double norm_eps; // added to the variance, or to the mean square
    int32_t n_layer, n_head, n_kv_head, head_dim, d_model, n_vocab;
    int32_t positions;    // 1: RLHF_TAP_POSITION exists
    int32_t n_labels;     // rows of RLHF_TAP_SCORE; 0: no score head
    int32_t value_kind;   // enum rlhf_value_kind
    int32_t value_hidden; // rows of RLHF_TAP_VALUE_HIDDEN; 0: no hidden layer
    double logit_softcap; // the model's logits are cap * tanh(z / cap) of those of logits(); 0: z
} rlhf_tap_info;

// A pass over a batch, from the embeddings or from a stream that the caller provides.
typedef struct rlhf_tap_run {
    uint32_t size;
    // 1: keep the values of all computed layers for read(). 0: keep only END.
    int32_t keep;
    // Where the pass begins. RLHF_TAP_IN, RLHF_TAP_MID or RLHF_TAP_END: at this point of `layer`,
    // with the values in `stream`. 0: at the embeddings.
    int32_t point, layer;
    const float *stream; // [total, d]
} rlhf_tap_run;

typedef struct rlhf_tap_ops {
    uint32_t size, reserved;
    // Allowed after open(). [any]
    rlhf_status (*info)(void *self, rlhf_tap_info *out);
    // Runs the batch; its prompt_len is ignored, and its prefix and turn must be NULL. From then
    // on, read() copies the values of this run. [step]
    rlhf_status (*run)(void *self, const rlhf_batch *, const rlhf_tap_run *);
    // Copy `count` values, which must be all values of the point. Returns RLHF_E_UNSUPPORTED if the
    // model does not have the point, and RLHF_E_INVALID if `count` is wrong or the last run has not
    // computed the point. [step]
    rlhf_status (*read)(void *self, int32_t point, int32_t layer, float *out, uint64_t count);
    // Computes out [rows, d] = x W. x [rows, heads * width] are outputs of the heads; W is the
    // layer's attention output matrix, adapter included. The bias is not added. [step]
    rlhf_status (*project)(void *self, int32_t layer, const float *x, uint32_t rows, float *out);
    // Copies n rows of a head (enum rlhf_tap_head) and, unless bias is NULL, their biases [n],
    // which are 0 if the head has none. Returns RLHF_E_UNSUPPORTED if the model does not have the
    // head. [step]
    rlhf_status (*head)(void *self, int32_t head, const int32_t *row, uint32_t n, float *out,
                        float *bias);
    // The logits of `n` tokens of the last run, from token `first` onward, before logit_softcap.
    // out [n, n_vocab]. [step]
    rlhf_status (*logits)(void *self, uint32_t first, uint32_t n, float *out);
} rlhf_tap_ops;

#endif
