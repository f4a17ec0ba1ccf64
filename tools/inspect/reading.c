// reading.c: see reading.h.
#include "inspect/reading.h"

#include <math.h>
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
    const struct part parts[] = {
        {&r->token, n * d},         {&r->position, n * d},       {&r->in, (layers + 1) * n * d},
        {&r->mid, layers * n * d},  {&r->q, layers * n * q},     {&r->k, layers * n * kv},
        {&r->v, layers * n * kv},   {&r->heads, layers * n * q}, {&r->bias_out, layers * d},
        {&r->bias_mlp, layers * d}, {&r->gain_out, layers * d},  {&r->gain, d},
        {&r->norm_bias, d},         {&r->scale, layers},         {&r->window, layers},
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
    RLHF_TRY(read_if(r, RLHF_TAP_OUT_NORM, l, r->gain_out + at * d, d, &r->out_norm, err));
    return read_if(r, RLHF_TAP_MLP_BIAS, l, r->bias_mlp + at * d, d, &r->mlp_bias, err);
}

// ---- the norm of attention's output ----

rlhf_status rlhf__reading_raw(const struct rlhf__reading *r, int32_t l, float *out,
                              struct rlhf__error *err) {
    const uint64_t d = (uint64_t)r->tap.info.d_model;
    RLHF_TRY(rlhf__tap_project(&r->tap, l, rlhf__reading_heads(r, l), r->n, out, err));
    for (uint64_t i = 0; r->out_bias && i < r->n * d; i++)
        out[i] += r->bias_out[(uint64_t)l * d + i % d];
    return RLHF_OK;
}

// 1 / sqrt(mean(x^2) + eps).
static double shrink_of(const struct rlhf__reading *r, const float *x) {
    const int32_t d = r->tap.info.d_model;
    double square = 0;
    for (int32_t i = 0; i < d; i++)
        square += (double)x[i] * (double)x[i];
    return 1 / sqrt(square / d + r->tap.info.norm_eps);
}

void rlhf__reading_norm(const struct rlhf__reading *r, int32_t l, float *x) {
    const uint64_t d = (uint64_t)r->tap.info.d_model;
    const float *gain = r->gain_out + (uint64_t)l * d;
    for (uint64_t t = 0; t < r->n; t++, x += d) {
        const double shrink = shrink_of(r, x);
        for (uint64_t i = 0; i < d; i++)
            x[i] = (float)((double)x[i] * shrink * (double)gain[i]);
    }
}

void rlhf__reading_direction(const struct rlhf__reading *r, int32_t l, uint32_t t, const double *g,
                             double *out) {
    const uint64_t d = (uint64_t)r->tap.info.d_model;
    const float *gain = r->gain_out + (uint64_t)l * d;
    for (uint64_t i = 0; i < d; i++)
        out[i] = r->out_norm ? g[i] * (double)gain[i] * r->shrink[(uint64_t)l * r->n + t] : g[i];
}

static rlhf_status take_scales(struct rlhf__reading *r, struct rlhf__error *err) {
    const uint64_t layers = (uint64_t)r->tap.info.n_layer, d = (uint64_t)r->tap.info.d_model;
    if (!r->out_norm) return RLHF_OK;
    float *raw = malloc(r->n * d * sizeof *raw);
    r->shrink = calloc(layers * r->n, sizeof *r->shrink);
    rlhf_status st = RLHF_OK;
    if (!raw || !r->shrink) st = RLHF__NOMEM(err, "out of memory for the scales of norms");
    for (int32_t l = 0; st == RLHF_OK && l < r->tap.info.n_layer; l++) {
        st = rlhf__reading_raw(r, l, raw, err);
        for (uint64_t t = 0; st == RLHF_OK && t < r->n; t++)
            r->shrink[(uint64_t)l * r->n + t] = shrink_of(r, raw + t * d);
    }
    free(raw);
    return st;
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
    RLHF_TRY(read_if(r, RLHF_TAP_NORM_BIAS, 0, r->norm_bias, d, &there, err));
    return take_scales(r, err);
}

void rlhf__reading_finish(struct rlhf__reading *r) {
    free(r->own);
    free(r->shrink);
    memset(r, 0, sizeof *r);
}
