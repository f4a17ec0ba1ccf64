// tap.h: the tap of a model (rlhf/draft/tap.h), with failures as struct rlhf__error.
#ifndef RLHF_TOOLS_INSPECT_TAP_H
#define RLHF_TOOLS_INSPECT_TAP_H

#include "model/model.h"

#include <rlhf/draft/tap.h>

struct rlhf__tap {
    const struct rlhf__model *model;
    rlhf_tap_ops ops;
    rlhf_tap_info info;
};

// Get the tap of an open model. Errors: RLHF_E_UNSUPPORTED (the model's plugin lacks a tap, or has
// an invalid one). [main]
rlhf_status rlhf__tap_open(const struct rlhf__model *, struct rlhf__tap *out,
                           struct rlhf__error *err);

// These functions call the functions of rlhf_tap_ops. Errors: those of the plugin, and
// RLHF_E_INVALID if the plugin did not write all numbers, or wrote one that is not finite. [step]
rlhf_status rlhf__tap_read(const struct rlhf__tap *, int32_t point, int32_t layer, float *out,
                           uint64_t count, struct rlhf__error *err);
rlhf_status rlhf__tap_project(const struct rlhf__tap *, int32_t layer, const float *x,
                              uint32_t rows, float *out, struct rlhf__error *err);
rlhf_status rlhf__tap_head(const struct rlhf__tap *, int32_t head, const int32_t *row, uint32_t n,
                           float *out, float *bias, struct rlhf__error *err);
rlhf_status rlhf__tap_logits(const struct rlhf__tap *, uint32_t first, uint32_t n, float *out,
                             struct rlhf__error *err);

// Run n tokens from the embeddings, and keep everything. [step]
rlhf_status rlhf__tap_run(const struct rlhf__tap *, const int32_t *ids, uint32_t n,
                          struct rlhf__error *err);

// Run `rows` rows of the same n tokens from a point of the model onward, where the stream is
// `stream` [rows * n, d]. Writes the stream after the last layer to `end` [rows * n, d]. [step]
rlhf_status rlhf__tap_run_from(const struct rlhf__tap *, const int32_t *ids, uint32_t n,
                               uint32_t rows, int32_t point, int32_t layer, const float *stream,
                               float *end, struct rlhf__error *err);

// out [heads * width, d] = the matrix of project(). [step]
rlhf_status rlhf__tap_matrix(const struct rlhf__tap *, int32_t layer, float *out,
                             struct rlhf__error *err);

// Returns cap * tanh(x / cap) or, if cap is 0, x. [any]
double rlhf__capped(double x, double cap);

static inline uint64_t rlhf__tap_width(const struct rlhf__tap *t) { // of all heads
    return (uint64_t)t->info.n_head * (uint64_t)t->info.head_dim;
}

#endif
