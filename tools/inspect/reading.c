// reading.c: see reading.h.
#include "inspect/reading.h"

#include <stdlib.h>
#include <string.h>

struct part {
    float **to;
    uint64_t n;
};

static rlhf_status make_room(struct rlhf__reading *r, struct rlhf__error *err) {
    const rlhf_tap_info *i = &r->tap.info;
    const uint64_t layers = (uint64_t)i->n_layer, d = (uint64_t)i->d_model, n = r->n;
    const uint64_t q = rlhf__tap_width(&r->tap);
    const uint64_t kv = (uint64_t)i->n_kv_head * (uint64_t)i->head_dim;
    const struct part parts[] = {{&r->token, n * d},
                                 {&r->position, n * d},
                                 {&r->in, (layers + 1) * n * d},
                                 {&r->mid, layers * n * d},
                                 {&r->q, layers * n * q},
                                 {&r->k, layers * n * kv},
                                 {&r->v, layers * n * kv},
                                 {&r->heads, layers * n * q},
                                 {&r->bias_out, layers * d},
                                 {&r->bias_mlp, layers * d},
                                 {&r->gain, d},
                                 {&r->norm_bias, d},
                                 {&r->scale, layers},
                                 {&r->window, layers},
                                 {&r->softcap, layers}};
    const size_t count = sizeof parts / sizeof *parts;
    uint64_t all = 0;
    for (size_t k = 0; k < count; k++)
        all += parts[k].n;
    r->own = calloc(all, sizeof *r->own);
    if (!r->own)
        return RLHF__NOMEM(err, "out of memory for the values a model computes on %u tokens", r->n);
    float *at = r->own;
    for (size_t k = 0; k < count; k++) {
        *parts[k].to = at;
        at += parts[k].n;
    }
    return RLHF_OK;
}

// Read a point that the model may lack. Sets *there to 1 if the model has the point.
static rlhf_status read_if(struct rlhf__reading *r, int32_t point, int32_t layer, float *out,
                           uint64_t n, int32_t *there, struct rlhf__error *err) {
    const rlhf_status st = rlhf__tap_read(&r->tap, point, layer, out, n, err);
    *there = st == RLHF_OK;
    if (st != RLHF_E_UNSUPPORTED) return st;
    memset(out, 0, n * sizeof *out);
    return RLHF_OK;
}

static rlhf_status read_layer(struct rlhf__reading *r, int32_t l, struct rlhf__error *err) {
    const rlhf_tap_info *i = &r->tap.info;
    const uint64_t d = (uint64_t)i->d_model, stream = r->n * d, at = (uint64_t)l;
    const uint64_t q = r->n * rlhf__tap_width(&r->tap);
    const uint64_t kv = r->n * (uint64_t)i->n_kv_head * (uint64_t)i->head_dim;
    const struct {
        float *to;
        uint64_t n;
        int32_t point;
    } points[] = {{r->in + at * stream, stream, RLHF_TAP_IN},
                  {r->mid + at * stream, stream, RLHF_TAP_MID},
                  {r->q + at * q, q, RLHF_TAP_Q},
                  {r->k + at * kv, kv, RLHF_TAP_K},
                  {r->v + at * kv, kv, RLHF_TAP_V},
                  {r->heads + at * q, q, RLHF_TAP_HEADS},
                  {r->scale + at, 1, RLHF_TAP_SCALE},
                  {r->window + at, 1, RLHF_TAP_WINDOW},
                  {r->softcap + at, 1, RLHF_TAP_SOFTCAP}};
    for (size_t k = 0; k < sizeof points / sizeof *points; k++)
        RLHF_TRY(rlhf__tap_read(&r->tap, points[k].point, l, points[k].to, points[k].n, err));
    RLHF_TRY(read_if(r, RLHF_TAP_OUT_BIAS, l, r->bias_out + at * d, d, &r->out_bias, err));
    return read_if(r, RLHF_TAP_MLP_BIAS, l, r->bias_mlp + at * d, d, &r->mlp_bias, err);
}

rlhf_status rlhf__reading_take(struct rlhf__reading *r, const struct rlhf__model *m,
                               const int32_t *ids, uint32_t n, struct rlhf__error *err) {
    int32_t there;
    RLHF_TRY(rlhf__tap_open(m, &r->tap, err));
    r->ids = ids;
    r->n = n;
    const uint64_t d = (uint64_t)r->tap.info.d_model;
    RLHF_TRY(make_room(r, err));
    RLHF_TRY(rlhf__tap_run(&r->tap, ids, n, err));
    RLHF_TRY(rlhf__tap_read(&r->tap, RLHF_TAP_TOKEN, 0, r->token, n * d, err));
    RLHF_TRY(read_if(r, RLHF_TAP_POSITION, 0, r->position, n * d, &r->position_there, err));
    for (int32_t l = 0; l < r->tap.info.n_layer; l++)
        RLHF_TRY(read_layer(r, l, err));
    RLHF_TRY(rlhf__tap_read(&r->tap, RLHF_TAP_END, 0, r->in + (uint64_t)r->tap.info.n_layer * n * d,
                            n * d, err));
    RLHF_TRY(rlhf__tap_read(&r->tap, RLHF_TAP_NORM_GAIN, 0, r->gain, d, err));
    return read_if(r, RLHF_TAP_NORM_BIAS, 0, r->norm_bias, d, &there, err);
}

void rlhf__reading_finish(struct rlhf__reading *r) {
    free(r->own);
    memset(r, 0, sizeof *r);
}
