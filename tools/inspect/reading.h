// reading.h: the intermediate values of one model on one prompt, copied from its tap.
#ifndef RLHF_TOOLS_INSPECT_READING_H
#define RLHF_TOOLS_INSPECT_READING_H

#include "inspect/tap.h"

// The arrays that rlhf/draft/tap.h describes. Where tap.h has the values of one layer, this struct
// has the values of all layers. Zero-initialize; release with rlhf__reading_finish, even after a
// failure.
struct rlhf__reading {
    struct rlhf__tap tap;
    const int32_t *ids;              // [n], borrowed
    uint32_t n;                      // tokens
    int32_t position_there;          // 1: `position` was read; 0: it is all zeros
    int32_t out_bias, mlp_bias;      // 1: layers have that bias
    int32_t out_norm;                // 1: layers have a norm of attention's output
    float *token, *position;         // [n, d]
    float *in;                       // [layers + 1, n, d]: before each layer; after the last
    float *mid;                      // [layers, n, d]
    float *q, *k, *v, *heads;        // [layers, n, heads or kv heads, width]
    float *bias_out, *bias_mlp;      // [layers, d], zeros for a layer without it
    float *gain_out;                 // [layers, d] of the norm of attention's output, or zeros
    float *gain, *norm_bias;         // [d]; norm_bias: zeros for an RMS norm
    float *scale, *window, *softcap; // [layers] each
    double *shrink;                  // [layers, n] 1 / scale of that norm; NULL without it
    float *own;                      // one allocation for all the arrays of floats
};

// Run the prompt and read everything. `ids` must outlive *out. [step]
rlhf_status rlhf__reading_take(struct rlhf__reading *out, const struct rlhf__model *m,
                               const int32_t *ids, uint32_t n, struct rlhf__error *err);

void rlhf__reading_finish(struct rlhf__reading *); // accepts a zeroed one [any]

// Computes what project() and the bias make of the heads of layer `l`: out [n, d], before a norm.
// [step]
rlhf_status rlhf__reading_raw(const struct rlhf__reading *, int32_t l, float *out,
                              struct rlhf__error *err);

// Applies the norm of attention's output, which the model must have, to each row of x [n, d]. [any]
void rlhf__reading_norm(const struct rlhf__reading *, int32_t l, float *x);

// From `g` [d], the direction of the stream at token `t`, sets `out` [d] to the direction of what
// project() and the bias give in layer `l`. It is g or, if a norm follows, g times its gain and
// over its scale at that token. [any]
void rlhf__reading_direction(const struct rlhf__reading *, int32_t l, uint32_t t, const double *g,
                             double *out);

// Returns the stream [n, d] before layer `l`. If `l` is the number of layers, this is the stream
// after the last layer. [any]
static inline const float *rlhf__reading_in(const struct rlhf__reading *r, int32_t l) {
    return r->in + (uint64_t)l * r->n * (uint64_t)r->tap.info.d_model;
}

static inline const float *rlhf__reading_mid(const struct rlhf__reading *r, int32_t l) {
    return r->mid + (uint64_t)l * r->n * (uint64_t)r->tap.info.d_model;
}

static inline const float *rlhf__reading_heads(const struct rlhf__reading *r, int32_t l) {
    return r->heads + (uint64_t)l * r->n * rlhf__tap_width(&r->tap);
}

#endif
