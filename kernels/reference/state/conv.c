// conv.c: causal convolution of each channel over the tokens of a row, and its derivative.
//
// z[t] = bias + sum_j weight[j] x[t - taps + 1 + j], y = f(z).
// dz = dy f'(z), dx[s] = sum_j weight[j] dz[s + taps - 1 - j],
// dweight[j] = sum_t dz[t] x[t - taps + 1 + j], dbias = sum_t dz[t].
#include "act.h"
#include "number.h"
#include "ops.h"
#include "state.h"
#include <stdlib.h>
#include <string.h>

static rlhf_status read_conv(struct rlhf__ref *r, const char *op, rlhf_conv *v,
                             const rlhf_conv *from) {
    RLHF_TRY(rlhf__ref_copy_in(r, op, v, sizeof *v, from, RLHF_SIZE_TO(rlhf_conv, bias)));
    RLHF_TRY(rlhf__ref_check_dtype(r, op, v->dtype));
    RLHF_TRY(rlhf__ref_check_width(r, op, v->channels));
    RLHF_TRY(rlhf__ref_check_act(r, op, v->act, 1));
    if (v->taps < 2 || v->taps > 8)
        return rlhf__ref_fail(r, RLHF_E_UNSUPPORTED, "taps is %d, allowed are 2 to 8", v->taps);
    if (v->x_stride < v->channels || v->y_stride < v->channels)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "%d channels do not fit strides x %lld, y %lld",
                              v->channels, (long long)v->x_stride, (long long)v->y_stride);
    return RLHF_OK;
}

static uint64_t state_bytes(const rlhf_conv *v) {
    return (uint64_t)(v->taps - 1) * (uint64_t)v->channels * rlhf_dtype_size(v->dtype);
}

// The element of x that is `k` tokens after the row's first, in channel c. Sets *at to its index in
// x, or to -1 if it is not in x. A negative k is in the state or in the prefix.
static double input(const rlhf_conv *v, const struct rlhf__ref_row *row, rlhf_dev x,
                    const void *state, int64_t k, uint64_t c, int64_t *at) {
    const int64_t tail = v->taps - 1;
    *at = -1;
    if (k < 0 && state)
        return rlhf__ref_get(rlhf__ref_dev((void *)(uintptr_t)state), v->dtype,
                             (uint64_t)(tail + k) * (uint64_t)v->channels + c);
    if (k < 0 && (int64_t)row->np + k < 0) return 0.0;
    const int64_t t = k < 0 ? (int64_t)(row->p0 + row->np) + k : (int64_t)row->t0 + k;
    *at = t * v->x_stride + (int64_t)c;
    return rlhf__ref_get(x, v->dtype, (uint64_t)*at);
}

// z of token t of the row, in channel c.
static double sum_at(const rlhf_conv *v, const struct rlhf__ref_row *row, rlhf_dev x,
                     const void *state, uint64_t t, uint64_t c) {
    double z = v->bias ? (double)rlhf__ref_f32(v->bias)[c] : 0.0;
    int64_t at;
    for (int64_t j = 0; j < v->taps; j++)
        z += (double)rlhf__ref_f32(v->weight)[c * (uint64_t)v->taps + (uint64_t)j] *
             input(v, row, x, state, (int64_t)t - v->taps + 1 + j, c, &at);
    return z;
}

// Stores the row's last tokens as its state. `to` may be `from`: an element is read before it is
// overwritten, because elements move to the front.
static void store_state(const rlhf_conv *v, const struct rlhf__ref_row *row, rlhf_dev x,
                        const void *from, void *to) {
    const uint64_t size = rlhf_dtype_size(v->dtype);
    for (int64_t j = 0; j < v->taps - 1; j++)
        for (uint64_t c = 0; c < (uint64_t)v->channels; c++) {
            int64_t at;
            const double e = input(v, row, x, from, (int64_t)row->n - v->taps + 1 + j, c, &at);
            rlhf__ref_put(rlhf__ref_dev((char *)to + (uint64_t)j * (uint64_t)v->channels * size),
                          v->dtype, c, e);
        }
}

static rlhf_status conv(void *ctx, const rlhf_conv *from, const rlhf_ragged *rows,
                        const rlhf_states *states, rlhf_dev y, rlhf_dev x) {
    rlhf_conv own;
    struct rlhf__ref_rows own_rows;
    const rlhf_conv *v = &own;
    const struct rlhf__ref_rows *w = &own_rows;
    RLHF_TRY(read_conv(ctx, "conv", &own, from));
    RLHF_TRY(rlhf__ref_rows_read(ctx, "conv", &own_rows, rows, states, state_bytes(v)));
    const uint64_t n = (uint64_t)v->channels, total = w->g.total;
    const struct rlhf__ref_use uses[] = {{y, rlhf__ref_strided(total, v->y_stride, n, v->dtype)},
                                         {x, rlhf__ref_strided(total, v->x_stride, n, v->dtype)},
                                         rlhf__ref_range(v->weight, n * (uint64_t)v->taps, 4),
                                         rlhf__ref_optional(v->bias, n, 4),
                                         RLHF__REF_ROWS_USES(w)};
    RLHF_TRY(rlhf__ref_enter(ctx, "conv", uses, RLHF__REF_COUNT(uses)));
    rlhf_status st = rlhf__ref_rows_check(ctx, w);
    for (uint32_t i = 0; st == RLHF_OK && i < w->g.n; i++) {
        const struct rlhf__ref_row row = rlhf__ref_row_at(w, i);
        const void *state = rlhf__ref_state_from(w, i);
        for (uint64_t t = 0; t < row.n; t++)
            for (uint64_t c = 0; c < n; c++) {
                const double z = sum_at(v, &row, x, state, t, c);
                rlhf__ref_put(y, v->dtype, (row.t0 + t) * (uint64_t)v->y_stride + c,
                              v->act ? rlhf__ref_act_value(v->act, z) : z);
            }
        if (rlhf__ref_state_to(w, i)) store_state(v, &row, x, state, rlhf__ref_state_to(w, i));
    }
    return rlhf__ref_leave(ctx, st);
}

// Processes channel c of all rows. dxs has a number for each token.
static void channel_bwd(const rlhf_conv *v, const struct rlhf__ref_rows *w, uint64_t c, double *dxs,
                        rlhf_dev dx, rlhf_dev dweight, rlhf_dev dbias, rlhf_dev dy, rlhf_dev x) {
    const float *weight = rlhf__ref_f32(v->weight) + c * (uint64_t)v->taps;
    double sums[8] = {0.0}, bias = 0.0;
    memset(dxs, 0, w->g.total * sizeof *dxs);
    for (uint32_t i = 0; i < w->g.n; i++) {
        const struct rlhf__ref_row row = rlhf__ref_row_at(w, i);
        for (uint64_t t = 0; t < row.n; t++) {
            double dz = rlhf__ref_get(dy, v->dtype, (row.t0 + t) * (uint64_t)v->y_stride + c);
            if (v->act) dz *= rlhf__ref_act_slope(v->act, sum_at(v, &row, x, NULL, t, c));
            bias += dz;
            for (int64_t j = 0; j < v->taps; j++) {
                int64_t at;
                sums[j] += dz * input(v, &row, x, NULL, (int64_t)t - v->taps + 1 + j, c, &at);
                if (at >= 0) dxs[at / v->x_stride] += (double)weight[j] * dz;
            }
        }
    }
    for (uint64_t t = 0; t < w->g.total; t++)
        rlhf__ref_put(dx, v->dtype, t * (uint64_t)v->x_stride + c, dxs[t]);
    for (uint64_t j = 0; dweight && j < (uint64_t)v->taps; j++) {
        float *d = rlhf__ref_f32(dweight) + c * (uint64_t)v->taps + j;
        *d = (float)((double)*d + sums[j]);
    }
    if (dbias) rlhf__ref_f32(dbias)[c] = (float)((double)rlhf__ref_f32(dbias)[c] + bias);
}

static rlhf_status conv_bwd(void *ctx, const rlhf_conv *from, const rlhf_ragged *rows, rlhf_dev dx,
                            rlhf_dev dweight, rlhf_dev dbias, rlhf_dev dy, rlhf_dev x) {
    rlhf_conv own;
    struct rlhf__ref_rows own_rows;
    const rlhf_conv *v = &own;
    const struct rlhf__ref_rows *w = &own_rows;
    RLHF_TRY(read_conv(ctx, "conv_bwd", &own, from));
    RLHF_TRY(rlhf__ref_rows_read(ctx, "conv_bwd", &own_rows, rows, NULL, 0));
    const uint64_t n = (uint64_t)v->channels, total = w->g.total;
    const struct rlhf__ref_use uses[] = {{dx, rlhf__ref_strided(total, v->x_stride, n, v->dtype)},
                                         rlhf__ref_optional(dweight, n * (uint64_t)v->taps, 4),
                                         rlhf__ref_optional(dbias, n, 4),
                                         {dy, rlhf__ref_strided(total, v->y_stride, n, v->dtype)},
                                         {x, rlhf__ref_strided(total, v->x_stride, n, v->dtype)},
                                         rlhf__ref_range(v->weight, n * (uint64_t)v->taps, 4),
                                         rlhf__ref_optional(v->bias, n, 4),
                                         RLHF__REF_ROWS_USES(w)};
    double *dxs;
    RLHF_TRY(rlhf__ref_scratch(ctx, total, sizeof *dxs, &dxs));
    rlhf_status st = rlhf__ref_enter(ctx, "conv_bwd", uses, RLHF__REF_COUNT(uses));
    if (st == RLHF_OK) st = rlhf__ref_rows_check(ctx, w);
    for (uint64_t c = 0; st == RLHF_OK && c < n; c++)
        channel_bwd(v, w, c, dxs, dx, dweight, dbias, dy, x);
    free(dxs);
    return rlhf__ref_leave(ctx, st);
}

rlhf_status rlhf__ref_supports_conv(struct rlhf__ref *r, const char *op, const rlhf_conv *from) {
    rlhf_conv v;
    return read_conv(r, op, &v, from);
}

void rlhf__ref_fill_conv(rlhf_compute *t) {
    t->conv = conv;
    t->conv_bwd = conv_bwd;
}
