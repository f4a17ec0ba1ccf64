// test_gradient_state.c: tests by finite differences (diff.h) that the backward ops of layers with
// a state, in the reference backend, are the derivatives of their forward ops. The rows are a
// prefix and two rows that share it, and a row alone.
#include "diff.h"

enum { ROWS = 4, TOKENS = 5 + 2 + 7 + 4 };

static const int32_t offsets[ROWS + 1] = {0, 5, 7, 14, 18};
static const int32_t prefix_base[ROWS] = {0, 0, 0, 0}, prefix_len[ROWS] = {0, 5, 5, 0};

static rlhf_dev up(struct call *k, const float *x, uint64_t n) {
    return call_floats(k, x, n, RLHF_F32);
}

static rlhf_dev zeros(struct call *k, uint64_t n) { return call_zeros(k, n, RLHF_F32); }

static void down(struct call *k, float *to, rlhf_dev p, uint64_t n) {
    kit_read(k->c, to, p, n, RLHF_F32);
}

static rlhf_ragged rows_of(struct call *k) {
    return (rlhf_ragged){.size = sizeof(rlhf_ragged),
                         .n = ROWS,
                         .total = TOKENS,
                         .max_q = 7,
                         .max_k = 12,
                         .offset = call_ints(k, offsets, ROWS + 1),
                         .start = call_ints(k, prefix_len, ROWS),
                         .kv_base = call_ints(k, offsets, ROWS),
                         .prefix_base = call_ints(k, prefix_base, ROWS),
                         .prefix_len = call_ints(k, prefix_len, ROWS)};
}

// ---- conv: inputs x, weight, bias ----

enum { CHANNELS = 5, CONV_N = TOKENS * CHANNELS };

static rlhf_conv conv_of(struct call *k, const struct diff *d) {
    const int32_t *shape = d->shape;
    return (rlhf_conv){.size = sizeof(rlhf_conv),
                       .channels = CHANNELS,
                       .taps = shape[0],
                       .dtype = RLHF_F32,
                       .act = shape[1],
                       .x_stride = CHANNELS,
                       .y_stride = CHANNELS,
                       .weight = up(k, d->in[1], d->in_n[1]),
                       .bias = up(k, d->in[2], CHANNELS)};
}

static void conv_forward(struct call *k, struct diff *d) {
    const rlhf_ragged rows = rows_of(k);
    const rlhf_conv v = conv_of(k, d);
    rlhf_dev y = zeros(k, CONV_N);
    KIT_OK(k->c, k->c->conv(k->c->ctx, &v, &rows, NULL, y, up(k, d->in[0], CONV_N)));
    down(k, d->out[0], y, CONV_N);
}

static void conv_backward(struct call *k, struct diff *d) {
    const rlhf_ragged rows = rows_of(k);
    const rlhf_conv v = conv_of(k, d);
    rlhf_dev dx = zeros(k, CONV_N), dw = zeros(k, d->in_n[1]), db = zeros(k, CHANNELS);
    KIT_OK(k->c, k->c->conv_bwd(k->c->ctx, &v, &rows, dx, dw, db, up(k, d->r[0], CONV_N),
                                up(k, d->in[0], CONV_N)));
    down(k, d->grad[0], dx, CONV_N);
    down(k, d->grad[1], dw, d->in_n[1]);
    down(k, d->grad[2], db, CHANNELS);
}

static void conv_is_differentiated(void **state) {
    struct kit *kit = *state;
    static const int32_t shapes[][2] = {{4, RLHF_ACT_SILU}, {3, 0}, {8, RLHF_ACT_SIGMOID}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct call k = {.c = kit->ref};
        struct diff d = {.name = "conv",
                         .shape = shapes[i],
                         .n_in = 3,
                         .n_out = 1,
                         .in_n = {CONV_N, (uint64_t)(CHANNELS * shapes[i][0]), CHANNELS},
                         .out_n = {CONV_N},
                         .forward = conv_forward,
                         .backward = conv_backward};
        diff_init(&k, &d, 1.0);
        diff_check(kit->ref, &d, 2e-3, 2e-3);
        call_finish(&k);
    }
}

// ---- delta: inputs x, beta and alpha, a_log and dt_bias ----

struct delta_shape {
    int32_t heads, key_heads, key_dim, value_dim;
};

static uint64_t width_of(const struct delta_shape *s) {
    return (uint64_t)(2 * s->key_heads * s->key_dim + s->heads * s->value_dim);
}

static rlhf_delta delta_of(struct call *k, const struct diff *d) {
    const struct delta_shape *s = d->shape;
    const uint64_t h = (uint64_t)s->heads;
    return (rlhf_delta){.size = sizeof(rlhf_delta),
                        .heads = s->heads,
                        .key_heads = s->key_heads,
                        .key_dim = s->key_dim,
                        .value_dim = s->value_dim,
                        .dtype = RLHF_F32,
                        .x_stride = (int64_t)width_of(s),
                        .gate_stride = 2 * s->heads,
                        .out_stride = s->heads * s->value_dim,
                        .scale = 0.7,
                        .eps = 0.1,
                        .a_log = up(k, d->in[2], h),
                        .dt_bias = up(k, d->in[2] + h, h)};
}

static void delta_forward(struct call *k, struct diff *d) {
    const rlhf_ragged rows = rows_of(k);
    const rlhf_delta v = delta_of(k, d);
    const uint64_t h = (uint64_t)v.heads;
    rlhf_dev out = zeros(k, d->out_n[0]), gates = up(k, d->in[1], d->in_n[1]);
    KIT_OK(k->c, k->c->delta(k->c->ctx, &v, &rows, NULL, out, up(k, d->in[0], d->in_n[0]), gates,
                             rlhf_dev_at(gates, h * sizeof(float))));
    down(k, d->out[0], out, d->out_n[0]);
}

static void delta_backward(struct call *k, struct diff *d) {
    const rlhf_ragged rows = rows_of(k);
    const rlhf_delta v = delta_of(k, d);
    const uint64_t h = (uint64_t)v.heads;
    rlhf_dev dx = zeros(k, d->in_n[0]), dgates = zeros(k, d->in_n[1]), da = zeros(k, h),
             dt = zeros(k, h), gates = up(k, d->in[1], d->in_n[1]);
    KIT_OK(k->c,
           k->c->delta_bwd(k->c->ctx, &v, &rows, dx, dgates, rlhf_dev_at(dgates, h * sizeof(float)),
                           da, dt, up(k, d->r[0], d->out_n[0]), up(k, d->in[0], d->in_n[0]), gates,
                           rlhf_dev_at(gates, h * sizeof(float))));
    down(k, d->grad[0], dx, d->in_n[0]);
    down(k, d->grad[1], dgates, d->in_n[1]);
    down(k, d->grad[2], da, h);
    down(k, d->grad[2] + h, dt, h);
}

static void delta_is_differentiated(void **state) {
    struct kit *kit = *state;
    static const struct delta_shape shapes[] = {{2, 2, 4, 3}, {4, 2, 3, 5}, {1, 1, 1, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct delta_shape *s = &shapes[i];
        struct call k = {.c = kit->ref};
        struct diff d = {.name = "delta",
                         .shape = s,
                         .n_in = 3,
                         .n_out = 1,
                         .in_n = {TOKENS * width_of(s), (uint64_t)(TOKENS * 2 * s->heads),
                                  (uint64_t)(2 * s->heads)},
                         .out_n = {(uint64_t)(TOKENS * s->heads * s->value_dim)},
                         .forward = delta_forward,
                         .backward = delta_backward};
        diff_init(&k, &d, 1.0);
        diff_check(kit->ref, &d, 2e-3, 2e-3);
        call_finish(&k);
    }
}

// ---- gated_norm: inputs x, gate, gamma ----

enum { HEADS = 3, DIM = 7, NORM_ROWS = 4, NORM_N = NORM_ROWS * HEADS * DIM };

static rlhf_gated_norm norm_of(struct call *k, const struct diff *d) {
    return (rlhf_gated_norm){.size = sizeof(rlhf_gated_norm),
                             .heads = HEADS,
                             .head_dim = DIM,
                             .dtype = RLHF_F32,
                             .act = *(const int32_t *)d->shape,
                             .x_stride = HEADS * DIM,
                             .gate_stride = HEADS * DIM,
                             .out_stride = HEADS * DIM,
                             .eps = 0.3,
                             .gamma = up(k, d->in[2], DIM)};
}

static void norm_forward(struct call *k, struct diff *d) {
    const rlhf_gated_norm n = norm_of(k, d);
    rlhf_dev x = up(k, d->in[0], NORM_N);
    KIT_OK(k->c, k->c->gated_norm(k->c->ctx, &n, x, NULL, x, up(k, d->in[1], NORM_N), NORM_ROWS));
    down(k, d->out[0], x, NORM_N);
}

static void norm_backward(struct call *k, struct diff *d) {
    const rlhf_gated_norm n = norm_of(k, d);
    rlhf_dev dx = up(k, d->r[0], NORM_N), dgate = zeros(k, NORM_N), dgamma = zeros(k, DIM),
             stats = zeros(k, NORM_ROWS * HEADS), y = zeros(k, NORM_N), x = up(k, d->in[0], NORM_N),
             gate = up(k, d->in[1], NORM_N);
    KIT_OK(k->c, k->c->gated_norm(k->c->ctx, &n, y, stats, x, gate, NORM_ROWS));
    KIT_OK(k->c,
           k->c->gated_norm_bwd(k->c->ctx, &n, dx, dgate, dgamma, dx, stats, x, gate, NORM_ROWS));
    down(k, d->grad[0], dx, NORM_N);
    down(k, d->grad[1], dgate, NORM_N);
    down(k, d->grad[2], dgamma, DIM);
}

static void gated_norm_is_differentiated(void **state) {
    struct kit *kit = *state;
    static const int32_t kinds[] = {RLHF_ACT_SILU, RLHF_ACT_SIGMOID};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct call k = {.c = kit->ref};
        struct diff d = {.name = "gated_norm",
                         .shape = &kinds[i],
                         .n_in = 3,
                         .n_out = 1,
                         .in_n = {NORM_N, NORM_N, DIM},
                         .out_n = {NORM_N},
                         .forward = norm_forward,
                         .backward = norm_backward};
        diff_init(&k, &d, 1.0);
        diff_check(kit->ref, &d, 2e-3, 2e-3);
        call_finish(&k);
    }
}

// ---- multiply: inputs x, gate ----

enum { BLOCKS = 3, WIDTH = 5, MUL_ROWS = 4, MUL_N = MUL_ROWS * BLOCKS * WIDTH };

// x and its gradient are in the first half of each block of 2 * WIDTH columns.
static rlhf_columns columns_of(const struct diff *d) {
    return (rlhf_columns){.size = sizeof(rlhf_columns),
                          .blocks = BLOCKS,
                          .width = WIDTH,
                          .dtype = RLHF_F32,
                          .act = *(const int32_t *)d->shape,
                          .x_stride = 2 * BLOCKS * WIDTH,
                          .gate_stride = 2 * BLOCKS * WIDTH,
                          .out_stride = BLOCKS * WIDTH,
                          .x_step = 2 * WIDTH,
                          .gate_step = 2 * WIDTH,
                          .out_step = WIDTH};
}

static void mul_forward(struct call *k, struct diff *d) {
    const rlhf_columns c = columns_of(d);
    rlhf_dev y = zeros(k, MUL_N), x = up(k, d->in[0], 2 * MUL_N);
    KIT_OK(k->c, k->c->multiply(k->c->ctx, &c, y, x, rlhf_dev_at(x, WIDTH * 4), MUL_ROWS));
    down(k, d->out[0], y, MUL_N);
}

static void mul_backward(struct call *k, struct diff *d) {
    const rlhf_columns c = columns_of(d);
    rlhf_dev dx = zeros(k, 2 * MUL_N), x = up(k, d->in[0], 2 * MUL_N);
    KIT_OK(k->c, k->c->multiply_bwd(k->c->ctx, &c, dx, rlhf_dev_at(dx, WIDTH * 4),
                                    up(k, d->r[0], MUL_N), x, rlhf_dev_at(x, WIDTH * 4), MUL_ROWS));
    down(k, d->grad[0], dx, 2 * MUL_N);
}

static void multiply_is_differentiated(void **state) {
    struct kit *kit = *state;
    static const int32_t kinds[] = {0, RLHF_ACT_SILU, RLHF_ACT_SIGMOID};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct call k = {.c = kit->ref};
        struct diff d = {.name = "multiply",
                         .shape = &kinds[i],
                         .n_in = 1,
                         .n_out = 1,
                         .in_n = {2 * MUL_N},
                         .out_n = {MUL_N},
                         .forward = mul_forward,
                         .backward = mul_backward};
        diff_init(&k, &d, 1.0);
        diff_check(kit->ref, &d, 2e-3, 2e-3);
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(conv_is_differentiated),
                                       cmocka_unit_test(delta_is_differentiated),
                                       cmocka_unit_test(gated_norm_is_differentiated),
                                       cmocka_unit_test(multiply_is_differentiated)};
    return cmocka_run_group_tests_name("kernels: gradient of layers with a state", tests, kit_setup,
                                       kit_teardown);
}
