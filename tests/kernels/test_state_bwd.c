// test_state_bwd.c: the backward ops of layers with a state: compared with the reference backend,
// with any number of threads, and through rows of up to 4,096 tokens with finite differences of a
// forward pass in float64.
#include "kit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The lengths of rows. A negative length is that of a row which shares the last row with a positive
// one.
struct layout {
    uint32_t n;
    int32_t length[8];
};

static const struct layout mixed = {8, {5, -3, -66, 1, 130, 70, -1, -17}}, one = {1, {1}},
                           sixteen = {2, {16, 17}}, span = {3, {64, 65, 128}},
                           tail = {4, {2, -1, -9, 3}}, longest = {1, {4096}};

struct shape {
    const struct layout *rows;
    int32_t heads, key_heads, key_dim, value_dim, dtype;
    int32_t channels, taps, act; // of conv
};

// The rows of a call. tokens: the number of all tokens.
static rlhf_ragged rows_of(struct call *k, const struct layout *l, uint64_t *tokens) {
    int32_t offset[9] = {0}, base[8] = {0}, len[8] = {0};
    uint32_t most = 0, head = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const int32_t n = l->length[i] < 0 ? -l->length[i] : l->length[i];
        offset[i + 1] = offset[i] + n;
        if ((uint32_t)n > most) most = (uint32_t)n;
        if (l->length[i] > 0) head = i;
        if (l->length[i] < 0) base[i] = offset[head], len[i] = l->length[head];
    }
    *tokens = (uint64_t)offset[l->n];
    return (rlhf_ragged){.size = sizeof(rlhf_ragged),
                         .n = l->n,
                         .total = (uint32_t)*tokens,
                         .max_q = most,
                         .max_k = 2 * most,
                         .offset = call_ints(k, offset, l->n + 1),
                         .start = call_ints(k, len, l->n),
                         .kv_base = call_ints(k, offset, l->n),
                         .prefix_base = call_ints(k, base, l->n),
                         .prefix_len = call_ints(k, len, l->n)};
}

// ---- delta ----

static uint64_t width_of(const struct shape *s) {
    return (uint64_t)(2 * s->key_heads * s->key_dim + s->heads * s->value_dim);
}

static rlhf_delta delta_of(const struct shape *s, rlhf_dev params) {
    const int64_t w = (int64_t)width_of(s);
    return (rlhf_delta){.size = sizeof(rlhf_delta),
                        .heads = s->heads,
                        .key_heads = s->key_heads,
                        .key_dim = s->key_dim,
                        .value_dim = s->value_dim,
                        .dtype = s->dtype,
                        .x_stride = w + 3,
                        .gate_stride = 2 * s->heads,
                        .out_stride = s->heads * s->value_dim + 1,
                        .scale = 1.0 / sqrt(s->key_dim),
                        .eps = 1e-6,
                        .a_log = params,
                        .dt_bias = rlhf_dev_at(params, (uint64_t)s->heads * 4)};
}

// The gradients of delta for r, the gradient of its output. x: [tokens, width + 3].
static void delta_gradients(struct call *k, const struct shape *s, const rlhf_ragged *rows,
                            const float *x, const float *gates, const float *params,
                            const float *start, const float *r, uint64_t n, rlhf_dev *dx,
                            rlhf_dev *dgates, rlhf_dev *dparams) {
    const uint64_t h = (uint64_t)s->heads, w = width_of(s) + 3, size = rlhf_dtype_size(s->dtype);
    const uint64_t wo = h * (uint64_t)s->value_dim + 1;
    rlhf_dev p = call_floats(k, params, 2 * h, RLHF_F32),
             g = call_floats(k, gates, n * 2 * h, s->dtype);
    const rlhf_delta v = delta_of(s, p);
    *dx = call_zeros(k, n * w, s->dtype);
    *dgates = call_zeros(k, n * 2 * h, s->dtype);
    *dparams = call_floats(k, start, 2 * h, RLHF_F32); // the gradients are added
    KIT_OK(k->c, k->c->delta_bwd(k->c->ctx, &v, rows, *dx, *dgates, rlhf_dev_at(*dgates, h * size),
                                 *dparams, rlhf_dev_at(*dparams, h * 4),
                                 call_floats(k, r, n * wo, s->dtype),
                                 call_floats(k, x, n * w, s->dtype), g, rlhf_dev_at(g, h * size)));
}

static void op_delta(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    float *params = call_normal(k, 3, 2 * (uint64_t)s->heads, 0.7);
    uint64_t n;
    const rlhf_ragged rows = rows_of(k, s->rows, &n);
    const uint64_t h = (uint64_t)s->heads, w = width_of(s) + 3, wo = h * (uint64_t)s->value_dim + 1;
    rlhf_dev dx, dgates, dparams;
    delta_gradients(k, s, &rows, call_normal(k, 1, n * w, 1.0), call_normal(k, 2, n * 2 * h, 1.0),
                    params, params, call_normal(k, 4, n * wo, 1.0), n, &dx, &dgates, &dparams);
    snprintf(out->label, sizeof out->label, "delta_bwd %u rows, %d heads (%d) %d x %d", rows.n,
             s->heads, s->key_heads, s->key_dim, s->value_dim);
    outputs_add(out, k, "dx", dx, s->dtype, n, w, NULL);
    outputs_add(out, k, "dgates", dgates, s->dtype, n, 2 * h, NULL);
    outputs_add(out, k, "da_log, ddt_bias", dparams, RLHF_F32, 1, 2 * h, NULL);
}

static const struct shape delta_shapes[] = {
    {&mixed, 2, 2, 16, 16, RLHF_F32, 0, 0, 0},   {&mixed, 4, 2, 24, 40, RLHF_F32, 0, 0, 0},
    {&mixed, 1, 1, 128, 128, RLHF_F32, 0, 0, 0}, {&mixed, 6, 2, 13, 7, RLHF_BF16, 0, 0, 0},
    {&span, 2, 1, 64, 128, RLHF_BF16, 0, 0, 0},  {&one, 2, 2, 32, 16, RLHF_F32, 0, 0, 0},
    {&sixteen, 2, 2, 16, 48, RLHF_F32, 0, 0, 0}, {&tail, 3, 1, 8, 80, RLHF_F32, 0, 0, 0},
    {&longest, 1, 1, 16, 16, RLHF_F32, 0, 0, 0}};

static const struct bound f32_bound = {1e-9, 1e-3}, bf16_bound = {2e-5, 1e-1};

static void delta_is_that_of_the_reference(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(delta_shapes); i++) {
        check_match(*state, op_delta, &delta_shapes[i], 1, f32_bound, bf16_bound);
        check_threads(*state, op_delta, &delta_shapes[i], 1);
    }
}

// ---- conv ----

static void op_conv(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    uint64_t n;
    const rlhf_ragged rows = rows_of(k, s->rows, &n);
    const uint64_t c = (uint64_t)s->channels, taps = (uint64_t)s->taps;
    rlhf_dev params =
        call_floats(k, call_normal(k, 3, c * (taps + 1), 0.7), c * (taps + 1), RLHF_F32);
    const rlhf_conv v = {.size = sizeof v,
                         .channels = s->channels,
                         .taps = s->taps,
                         .dtype = s->dtype,
                         .act = s->act,
                         .x_stride = s->channels + 5,
                         .y_stride = s->channels + 2,
                         .weight = params,
                         .bias = rlhf_dev_at(params, c * taps * 4)};
    rlhf_dev dx = call_zeros(k, n * (c + 5), s->dtype),
             dw = call_floats(k, call_normal(k, 6, c * (taps + 1), 1.0), c * (taps + 1), RLHF_F32);
    KIT_OK(k->c, k->c->conv_bwd(
                     k->c->ctx, &v, &rows, dx, dw, rlhf_dev_at(dw, c * taps * 4),
                     call_floats(k, call_normal(k, 1, n * (c + 2), 1.0), n * (c + 2), s->dtype),
                     call_floats(k, call_normal(k, 2, n * (c + 5), 1.0), n * (c + 5), s->dtype)));
    snprintf(out->label, sizeof out->label, "conv_bwd %u rows, %d channels, %d taps", rows.n,
             s->channels, s->taps);
    outputs_add(out, k, "dx", dx, s->dtype, n, c + 5, NULL);
    outputs_add(out, k, "dweight, dbias", dw, RLHF_F32, 1, c * (taps + 1), NULL);
}

static void conv_is_that_of_the_reference(void **state) {
    static const struct shape shapes[] = {
        {&mixed, 0, 0, 0, 0, RLHF_F32, 5, 2, 0},
        {&mixed, 0, 0, 0, 0, RLHF_F32, 70, 4, RLHF_ACT_SILU},
        {&tail, 0, 0, 0, 0, RLHF_F32, 130, 8, RLHF_ACT_SIGMOID},
        {&tail, 0, 0, 0, 0, RLHF_BF16, 64, 4, RLHF_ACT_SILU},
        {&longest, 0, 0, 0, 0, RLHF_BF16, 33, 3, 0},
    };
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_match(*state, op_conv, &shapes[i], 1, f32_bound, bf16_bound);
        check_threads(*state, op_conv, &shapes[i], 1);
    }
}

// ---- gated_norm and multiply, whose rows are independent ----

struct gated {
    int32_t heads, dim, act, dtype, with_stats;
};

static void op_gated(struct call *k, const void *shape, struct outputs *out) {
    const struct gated *s = shape;
    const uint64_t w = (uint64_t)(s->heads * s->dim) + 3, n = k->n_rows, d = (uint64_t)s->dim;
    const rlhf_gated_norm g = {.size = sizeof g,
                               .heads = s->heads,
                               .head_dim = s->dim,
                               .dtype = s->dtype,
                               .act = s->act,
                               .x_stride = (int64_t)w,
                               .gate_stride = (int64_t)w,
                               .out_stride = (int64_t)w,
                               .eps = 1e-5,
                               .gamma = call_floats(k, call_normal(k, 1, d, 1.0), d, RLHF_F32)};
    rlhf_dev x = call_floats(k, call_normal_rows(k, 2, w, 1.0), n * w, s->dtype),
             gate = call_floats(k, call_normal_rows(k, 3, w, 2.0), n * w, s->dtype),
             dx = call_floats(k, call_normal_rows(k, 4, w, 1.0), n * w, s->dtype),
             dgate = call_zeros(k, n * w, s->dtype), y = call_zeros(k, n * w, s->dtype),
             dgamma = call_floats(k, call_normal(k, 5, d, 1.0), d, RLHF_F32),
             stats = call_zeros(k, n * (uint64_t)s->heads, RLHF_F32);
    const uint32_t rows = k->n_rows;
    KIT_OK(k->c, k->c->gated_norm(k->c->ctx, &g, y, stats, x, gate, rows));
    KIT_OK(k->c, k->c->gated_norm_bwd(k->c->ctx, &g, dx, dgate, dgamma, dx,
                                      s->with_stats ? stats : NULL, x, gate, rows));
    KIT_OK(k->c, k->c->gated_norm(k->c->ctx, &g, x, NULL, x, gate, rows));
    snprintf(out->label, sizeof out->label, "gated_norm %d heads of %d, act %d", s->heads, s->dim,
             s->act);
    outputs_add(out, k, "y", y, s->dtype, n, w, k->rows);
    outputs_add(out, k, "y in place", x, s->dtype, n, w, k->rows);
    outputs_add(out, k, "stats", stats, RLHF_F32, n, (uint64_t)s->heads, k->rows);
    outputs_add(out, k, "dx", dx, s->dtype, n, w, k->rows);
    outputs_add(out, k, "dgate", dgate, s->dtype, n, w, k->rows);
    outputs_add(out, k, "dgamma", dgamma, RLHF_F32, 1, d, NULL);
}

static void gated_norm_is_that_of_the_reference(void **state) {
    struct kit *kit = *state;
    static const struct gated shapes[] = {{16, 128, RLHF_ACT_SILU, RLHF_F32, 1},
                                          {3, 7, RLHF_ACT_SIGMOID, RLHF_F32, 0},
                                          {2, 70, RLHF_ACT_SILU, RLHF_BF16, 1},
                                          {1, 33, RLHF_ACT_GELU_TANH, RLHF_F32, 1}};
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_match(kit, op_gated, &shapes[i], 150, f32_bound, bf16_bound);
        check_threads(kit, op_gated, &shapes[i], 150);
        check_rows(kit->cpu2, op_gated, &shapes[i], 150);
    }
}

// x and its gate are adjacent halves of a block, as with attention's queries and their gates.
static void op_multiply(struct call *k, const void *shape, struct outputs *out) {
    const struct gated *s = shape;
    const uint64_t d = (uint64_t)s->dim, w = (uint64_t)s->heads * d, n = k->n_rows;
    const uint64_t half = d * rlhf_dtype_size(s->dtype);
    const rlhf_columns c = {.size = sizeof c,
                            .blocks = s->heads,
                            .width = s->dim,
                            .dtype = s->dtype,
                            .act = s->act,
                            .x_stride = (int64_t)(2 * w),
                            .gate_stride = (int64_t)(2 * w),
                            .out_stride = (int64_t)w,
                            .x_step = 2 * s->dim,
                            .gate_step = 2 * s->dim,
                            .out_step = s->dim};
    rlhf_dev x = call_floats(k, call_normal_rows(k, 2, 2 * w, 1.5), n * 2 * w, s->dtype),
             y = call_zeros(k, n * w, s->dtype), moved = call_zeros(k, n * w, s->dtype),
             dx = call_zeros(k, n * 2 * w, s->dtype),
             dy = call_floats(k, call_normal_rows(k, 3, w, 1.0), n * w, s->dtype);
    KIT_OK(k->c, k->c->multiply(k->c->ctx, &c, y, x, rlhf_dev_at(x, half), k->n_rows));
    KIT_OK(k->c, k->c->multiply(k->c->ctx, &c, moved, x, NULL, k->n_rows));
    KIT_OK(k->c, k->c->multiply_bwd(k->c->ctx, &c, dx, rlhf_dev_at(dx, half), dy, x,
                                    rlhf_dev_at(x, half), k->n_rows));
    snprintf(out->label, sizeof out->label, "multiply %d blocks of %d, act %d", s->heads, s->dim,
             s->act);
    outputs_add(out, k, "y", y, s->dtype, n, w, k->rows);
    outputs_add(out, k, "copy", moved, s->dtype, n, w, k->rows);
    outputs_add(out, k, "dx and dgate", dx, s->dtype, n, 2 * w, k->rows);
}

static void multiply_is_that_of_the_reference(void **state) {
    struct kit *kit = *state;
    static const struct gated shapes[] = {{8, 256, RLHF_ACT_SIGMOID, RLHF_F32, 0},
                                          {3, 7, 0, RLHF_F32, 0},
                                          {1, 100, 0, RLHF_BF16, 0},
                                          {2, 33, RLHF_ACT_SILU, RLHF_BF16, 0}};
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_match(kit, op_multiply, &shapes[i], 70, f32_bound, bf16_bound);
        check_threads(kit, op_multiply, &shapes[i], 70);
        check_rows(kit->cpu2, op_multiply, &shapes[i], 70);
    }
}

// ---- float64 ----

// The sum of r times the output of one row of one head, in float64.
static double loss(const struct shape *s, const double *x, const double *gates,
                   const double *params, const double *r, uint64_t n) {
    const uint64_t kd = (uint64_t)s->key_dim, vd = (uint64_t)s->value_dim, w = 2 * kd + vd + 3;
    double *S = calloc(kd * vd, sizeof *S), sum = 0.0;
    for (uint64_t t = 0; t < n; t++, x += w, r += vd + 1) {
        const double *q = x, *k = x + kd, *v = x + 2 * kd;
        double qq = 1e-6, kk = 1e-6;
        for (uint64_t i = 0; i < kd; i++)
            qq += q[i] * q[i], kk += k[i] * k[i];
        const double b = 1.0 / (1.0 + exp(-gates[2 * t]));
        const double g = exp(-exp(params[0]) * log1p(exp(gates[2 * t + 1] + params[1])));
        for (uint64_t c = 0; c < vd; c++) {
            double read = 0.0, o = 0.0;
            for (uint64_t i = 0; i < kd; i++)
                read += (S[i * vd + c] *= g) * k[i] / sqrt(kk);
            for (uint64_t i = 0; i < kd; i++)
                o += (S[i * vd + c] += k[i] / sqrt(kk) * b * (v[c] - read)) * q[i];
            sum += r[c] * o / sqrt(qq * (double)kd);
        }
    }
    free(S);
    return sum;
}

enum { INPUTS = 3 };

// Moves the inputs by h in a direction and returns the loss. `which` is the input that is moved.
static double moved(const struct shape *s, double *const *in, const double *r,
                    const uint64_t *count, uint64_t n, int which, const float *direction,
                    double h) {
    for (uint64_t i = 0; i < count[which]; i++)
        in[which][i] += h * (double)direction[i];
    const double l = loss(s, in[0], in[1], in[2], r, n);
    for (uint64_t i = 0; i < count[which]; i++)
        in[which][i] -= h * (double)direction[i];
    return l;
}

static double *widened(struct call *k, const float *x, uint64_t n) {
    double *d = call_host(k, n * sizeof *d);
    for (uint64_t i = 0; i < n; i++)
        d[i] = (double)x[i];
    return d;
}

// slow: the state fades slowly, so that gradients pass through all tokens.
static void check_row(rlhf_compute *c, int32_t length, int slow) {
    const struct layout rows_l = {1, {length}};
    const struct shape s = {&rows_l, 1, 1, 12, 9, RLHF_F32, 0, 0, 0};
    struct call k = {.c = c};
    uint64_t n;
    const rlhf_ragged rows = rows_of(&k, &rows_l, &n);
    const uint64_t count[INPUTS] = {n * (width_of(&s) + 3), n * 2, 2};
    float *x = call_normal(&k, 1, count[0], 1.0), *gates = call_normal(&k, 2, count[1], 1.0);
    float *r = call_normal(&k, 4, n * 10, 1.0), params[2] = {0.3f, -0.2f};
    const float zeros[2] = {0};
    if (slow) params[0] = -7.0f;
    rlhf_dev grads[INPUTS];
    delta_gradients(&k, &s, &rows, x, gates, params, zeros, r, n, &grads[0], &grads[1], &grads[2]);
    double *in[INPUTS] = {widened(&k, x, count[0]), widened(&k, gates, count[1]),
                          widened(&k, params, count[2])};
    const double *rd = widened(&k, r, n * 10);
    for (int i = 0; i < INPUTS; i++) {
        float *g = call_host(&k, count[i] * sizeof *g);
        kit_read(c, g, grads[i], count[i], RLHF_F32);
        for (int way = 0; way < 3; way++) {
            float *u = call_normal(&k, (uint64_t)(20 + 3 * i + way), count[i], 1.0);
            if (way == 2) // one element, near the beginning
                for (uint64_t j = 0; j < count[i]; j++)
                    u[j] = j == 1;
            const double h = 1e-4 / sqrt((double)count[i]);
            const double want =
                (moved(&s, in, rd, count, n, i, u, h) - moved(&s, in, rd, count, n, i, u, -h)) /
                (2 * h);
            double got = 0.0, gg = 0.0, uu = 0.0;
            for (uint64_t j = 0; j < count[i]; j++) {
                got += (double)g[j] * (double)u[j];
                gg += (double)g[j] * (double)g[j];
                uu += (double)u[j] * (double)u[j];
            }
            const double error = fabs(got - want) / (sqrt(gg * uu) + 1e-3);
            if (way == 0 || error > 1e-5)
                printf("  %s, %d tokens%s, input %d: %.9g, float64 %.9g (%.1e)\n", c->name, length,
                       slow ? ", slow" : "", i, got, want, error);
            if (!(error < 3e-5)) fail_msg("the gradient of input %d is wrong", i);
        }
    }
    call_finish(&k);
}

static void gradients_are_those_of_float64(void **state) {
    struct kit *kit = *state;
    static const int32_t lengths[] = {1, 2, 15, 16, 17, 64, 100, 1000, 4096};
    for (size_t i = 0; i < CHECK_COUNT(lengths); i++)
        for (int slow = 0; slow < 2; slow++) {
            check_row(kit->ref, lengths[i], slow);
            check_row(kit->cpu1, lengths[i], slow);
        }
}

// ---- limits ----

// Asks whether the backend supports the call. Wrong sizes must be refused with a sentence.
static void wrong_sizes_are_refused(void **state) {
    struct kit *kit = *state;
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(kit, i);
        const struct shape s = {&one, 4, 2, 16, 16, RLHF_F32, 0, 0, 0};
        rlhf_delta d = delta_of(&s, NULL);
        rlhf_conv v = {.size = sizeof v,
                       .channels = 8,
                       .taps = 4,
                       .dtype = RLHF_F32,
                       .x_stride = 8,
                       .y_stride = 8};
        rlhf_gated_norm n = {.size = sizeof n,
                             .heads = 2,
                             .head_dim = 8,
                             .dtype = RLHF_F32,
                             .act = RLHF_ACT_SILU,
                             .x_stride = 16,
                             .gate_stride = 16,
                             .out_stride = 16};
        rlhf_columns m = {.size = sizeof m,
                          .blocks = 2,
                          .width = 8,
                          .dtype = RLHF_F32,
                          .x_stride = 16,
                          .gate_stride = 16,
                          .out_stride = 16,
                          .x_step = 8,
                          .gate_step = 8,
                          .out_step = 8};
        rlhf_call call = {
            .size = sizeof call, .delta = &d, .conv = &v, .gated_norm = &n, .columns = &m};
#define REFUSED(function, change, back, what)                                                      \
    do {                                                                                           \
        call.op = RLHF_COMPUTE_OP(function);                                                       \
        KIT_OK(c, c->supports(c->ctx, &call));                                                     \
        change;                                                                                    \
        kit_refused(c, c->supports(c->ctx, &call), RLHF_E_INVALID, what);                          \
        back;                                                                                      \
    } while (0)
        REFUSED(delta, d.key_heads = 3, d.key_heads = 2, "delta, 3 key heads of 4");
        REFUSED(delta_bwd, d.key_dim = 0, d.key_dim = 16, "delta, no width");
        REFUSED(delta, d.x_stride = 100, d.x_stride = 131, "delta, stride");
        REFUSED(delta_bwd, d.dtype = 3, d.dtype = RLHF_F32, "delta, dtype");
        REFUSED(conv, v.taps = 9, v.taps = 4, "conv, 9 taps");
        REFUSED(conv, v.taps = 1, v.taps = 4, "conv, 1 tap");
        REFUSED(conv_bwd, v.act = 7, v.act = 0, "conv, activation 7");
        REFUSED(conv_bwd, v.y_stride = 7, v.y_stride = 8, "conv, stride");
        REFUSED(gated_norm, n.act = 0, n.act = RLHF_ACT_SILU, "gated_norm, no activation");
        REFUSED(gated_norm_bwd, n.heads = 3, n.heads = 2, "gated_norm, stride");
        REFUSED(multiply, m.out_step = 7, m.out_step = 8, "multiply, step");
        REFUSED(multiply_bwd, m.blocks = 0, m.blocks = 2, "multiply, no blocks");
    }
}

// ---- workspaces ----

// The calls of a new table allocate as much as workspace_bytes has told before.
static void workspaces_are_known(void **state) {
    struct kit *kit = *state;
    rlhf_compute *c = kit_create(kit->kernels_cpu, 3, 0, 0);
    const struct shape s = {&mixed, 4, 2, 24, 40, RLHF_F32, 70, 4, RLHF_ACT_SILU};
    struct call k = {.c = c};
    struct outputs out;
    uint64_t n, most[RLHF_WORKSPACES] = {0}, sum = 0;
    const rlhf_ragged rows = rows_of(&k, s.rows, &n);
    const rlhf_delta d = delta_of(&s, NULL);
    const rlhf_conv v = {.size = sizeof v,
                         .channels = 70,
                         .taps = 4,
                         .dtype = RLHF_F32,
                         .act = s.act,
                         .x_stride = 75,
                         .y_stride = 72};
    const uint32_t ops[] = {RLHF_COMPUTE_OP(delta), RLHF_COMPUTE_OP(delta_bwd),
                            RLHF_COMPUTE_OP(conv), RLHF_COMPUTE_OP(conv_bwd)};
    for (size_t i = 0; i < CHECK_COUNT(ops); i++) {
        uint64_t bytes[RLHF_WORKSPACES];
        const rlhf_call call = {
            .size = sizeof call, .op = ops[i], .ragged = &rows, .delta = &d, .conv = &v};
        c->workspace_bytes(c->ctx, &call, bytes);
        for (int w = 0; w < RLHF_WORKSPACES; w++)
            if (bytes[w] > most[w]) most[w] = bytes[w];
    }
    for (int w = 0; w < RLHF_WORKSPACES; w++)
        sum += most[w];
    call_finish(&k);
    const uint64_t before = c->bytes_in_use(c->ctx);
    op_run(c, op_delta, &s, 1, &out);
    outputs_finish(&out);
    uint64_t grown = c->bytes_in_use(c->ctx) - before;
    op_run(c, op_conv, &s, 1, &out);
    outputs_finish(&out);
    // With guarded memory, a workspace on a GPU also shrinks.
    if (c->bytes_in_use(c->ctx) - before > grown) grown = c->bytes_in_use(c->ctx) - before;
    assert_true(sum > 0);
    assert_true(c->device == RLHF_DEVICE_CPU ? grown == sum : grown >= sum);
    kit_destroy(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(delta_is_that_of_the_reference),
                                       cmocka_unit_test(conv_is_that_of_the_reference),
                                       cmocka_unit_test(gated_norm_is_that_of_the_reference),
                                       cmocka_unit_test(multiply_is_that_of_the_reference),
                                       cmocka_unit_test(gradients_are_those_of_float64),
                                       cmocka_unit_test(wrong_sizes_are_refused),
                                       cmocka_unit_test(workspaces_are_known)};
    return cmocka_run_group_tests_name("kernels: gradients of layers with a state", tests,
                                       kit_setup, kit_teardown);
}
