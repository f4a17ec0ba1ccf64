// test_state.c: conv and delta give a token the same bits in every layout: a sequence alone, packed
// with others, after others, divided into calls at any token, with a shared prefix, and with any
// number of threads. Also compares the outputs with a forward pass in float64.
#include "kit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Sequences 1 to 3 share their first PREFIX tokens, in some layouts.
enum { SEQUENCES = 6, LONGEST = 150, PREFIX = 37, SLOTS = 9 };
static const int32_t lengths[SEQUENCES] = {1, 40, 38, 150, 17, 66};

struct shape {
    int32_t delta;                                // 1: delta, 0: conv
    int32_t heads, key_heads, key_dim, value_dim; // of delta
    int32_t channels, taps, act;                  // of conv
    int32_t dtype;
};

static const struct shape shapes[] = {
    {1, 2, 2, 16, 16, 0, 0, 0, RLHF_F32},
    {1, 4, 2, 24, 40, 0, 0, 0, RLHF_F32},
    {1, 1, 1, 128, 128, 0, 0, 0, RLHF_F32},
    {1, 3, 1, 13, 7, 0, 0, 0, RLHF_BF16},
    {1, 2, 1, 64, 128, 0, 0, 0, RLHF_BF16},
    {0, 0, 0, 0, 0, 5, 2, 0, RLHF_F32},
    {0, 0, 0, 0, 0, 70, 4, RLHF_ACT_SILU, RLHF_F32},
    {0, 0, 0, 0, 0, 200, 3, RLHF_ACT_SIGMOID, RLHF_BF16},
    {0, 0, 0, 0, 0, 64, 8, RLHF_ACT_SILU, RLHF_BF16},
};

static uint64_t width_in(const struct shape *s) {
    return (uint64_t)(s->delta ? 2 * s->key_heads * s->key_dim + s->heads * s->value_dim
                               : s->channels);
}
static uint64_t width_out(const struct shape *s) {
    return (uint64_t)(s->delta ? s->heads * s->value_dim : s->channels);
}
static uint64_t state_bytes(const struct shape *s) {
    return s->delta ? (uint64_t)(s->heads * s->key_dim * s->value_dim) * sizeof(float)
                    : (uint64_t)((s->taps - 1) * s->channels) * rlhf_dtype_size(s->dtype);
}
static int64_t slot_stride(const struct shape *s) {
    return (int64_t)((state_bytes(s) + 63) / 64 * 64 + 64);
}

// The inputs of all sequences, and parameters. Rows of x and of the gates of a token are adjacent.
struct data {
    float *x;      // [SEQUENCES, LONGEST, width_in + 2 * heads]
    float *params; // conv: weight, bias; delta: a_log, dt_bias
    uint64_t n_params, width;
};

static void data_init(struct call *k, const struct shape *s, struct data *d) {
    d->width = width_in(s) + (uint64_t)(2 * s->heads);
    d->x = call_normal(k, 3, SEQUENCES * LONGEST * d->width, 1.0);
    for (int seq = 2; seq <= 3; seq++)
        memcpy(d->x + (uint64_t)seq * LONGEST * d->width, d->x + LONGEST * d->width,
               PREFIX * d->width * sizeof(float));
    d->n_params = (uint64_t)(s->delta ? 2 * s->heads : (s->taps + 1) * s->channels);
    d->params = call_normal(k, 5, d->n_params, 0.7);
}

// A row of a call: the tokens t0 .. t1-1 of a sequence. With states, `from` and `to` are its slots.
struct piece {
    int seq, t0, t1, from, to;
};

// Calls conv or delta of table `c` on n rows, with states or in the training layout. There, a row
// with t0 > 0 shares the row before it with t0 = 0. Stores the outputs in out[seq, t, width_out].
static void run_pieces(rlhf_compute *c, const struct shape *s, const struct data *d,
                       const struct piece *p, uint32_t n, rlhf_dev slots, float *out) {
    struct call k = {.c = c};
    int32_t offset[64] = {0}, base[64] = {0}, len[64] = {0}, from[64], to[64];
    uint32_t most = 0, head = 0;
    assert_true(n < 64);
    for (uint32_t i = 0; i < n; i++) {
        const int32_t tokens = p[i].t1 - p[i].t0;
        offset[i + 1] = offset[i] + tokens;
        from[i] = p[i].from;
        to[i] = p[i].to;
        if ((uint32_t)tokens > most) most = (uint32_t)tokens;
        if (!slots && p[i].t0) {
            base[i] = offset[head];
            len[i] = offset[head + 1] - offset[head];
            assert_int_equal(len[i], p[i].t0);
        } else {
            head = i;
        }
    }
    const uint64_t total = (uint64_t)offset[n], w = d->width, wo = width_out(s);
    float *x = call_host(&k, (total + 1) * w * sizeof *x), *y = call_host(&k, total * wo * 4 + 4);
    for (uint32_t i = 0; i < n; i++)
        memcpy(x + (uint64_t)offset[i] * w,
               d->x + ((uint64_t)p[i].seq * LONGEST + (uint64_t)p[i].t0) * w,
               (uint64_t)(p[i].t1 - p[i].t0) * w * sizeof *x);
    const rlhf_ragged rows = {.size = sizeof rows,
                              .n = n,
                              .total = (uint32_t)total,
                              .max_q = most,
                              .max_k = LONGEST,
                              .offset = call_ints(&k, offset, n + 1),
                              .start = call_ints(&k, len, n),
                              .kv_base = call_ints(&k, offset, n),
                              .prefix_base = slots ? NULL : call_ints(&k, base, n),
                              .prefix_len = slots ? NULL : call_ints(&k, len, n)};
    const rlhf_states states = {.size = sizeof states,
                                .state = slots,
                                .stride = slot_stride(s),
                                .from = call_ints(&k, from, n),
                                .to = call_ints(&k, to, n)};
    rlhf_dev xd = call_floats(&k, x, (total + 1) * w, s->dtype),
             yd = call_zeros(&k, total * wo + 1, s->dtype),
             params = call_floats(&k, d->params, d->n_params, RLHF_F32);
    if (s->delta) {
        const uint64_t size = rlhf_dtype_size(s->dtype), h = (uint64_t)s->heads;
        const rlhf_delta v = {.size = sizeof v,
                              .heads = s->heads,
                              .key_heads = s->key_heads,
                              .key_dim = s->key_dim,
                              .value_dim = s->value_dim,
                              .dtype = s->dtype,
                              .x_stride = (int64_t)w,
                              .gate_stride = (int64_t)w,
                              .out_stride = (int64_t)wo,
                              .scale = 1.0 / sqrt(s->key_dim),
                              .eps = 1e-6,
                              .a_log = params,
                              .dt_bias = rlhf_dev_at(params, h * 4)};
        KIT_OK(c, c->delta(c->ctx, &v, &rows, slots ? &states : NULL, yd, xd,
                           rlhf_dev_at(xd, width_in(s) * size),
                           rlhf_dev_at(xd, (width_in(s) + h) * size)));
    } else {
        const rlhf_conv v = {.size = sizeof v,
                             .channels = s->channels,
                             .taps = s->taps,
                             .dtype = s->dtype,
                             .act = s->act,
                             .x_stride = (int64_t)w,
                             .y_stride = (int64_t)wo,
                             .weight = params,
                             .bias = rlhf_dev_at(params, (uint64_t)(s->taps * s->channels) * 4)};
        KIT_OK(c, c->conv(c->ctx, &v, &rows, slots ? &states : NULL, yd, xd));
    }
    kit_read(c, y, yd, total * wo, s->dtype);
    for (uint32_t i = 0; i < n; i++)
        memcpy(out + ((uint64_t)p[i].seq * LONGEST + (uint64_t)p[i].t0) * wo,
               y + (uint64_t)offset[i] * wo, (uint64_t)(p[i].t1 - p[i].t0) * wo * sizeof *y);
    call_finish(&k);
}

// ---- float64 ----

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static double as_read(const struct shape *s, float x) {
    return (double)(s->dtype == RLHF_BF16 ? kit_bf16(x) : x);
}

static double inverse_length(const struct shape *s, const float *x) {
    double sum = 1e-6;
    for (int i = 0; i < s->key_dim; i++)
        sum += as_read(s, x[i]) * as_read(s, x[i]);
    return 1.0 / sqrt(sum);
}

// One token of value head h. S is [key_dim, value_dim]. The key and query are divided by their
// lengths, and everything else follows the formulas of compute.h, one element at a time.
static void delta_token(const struct shape *s, const struct data *d, const float *x, int h,
                        double *S, double *out) {
    const int kd = s->key_dim, vd = s->value_dim, kh = h / (s->heads / s->key_heads);
    const float *q = x + kh * kd, *k = x + (s->key_heads + kh) * kd;
    const float *v = x + 2 * s->key_heads * kd + h * vd;
    const double qi = inverse_length(s, q) / sqrt(kd), ki = inverse_length(s, k);
    const double b = sigmoid(as_read(s, x[width_in(s) + (uint64_t)h]));
    const double z =
        as_read(s, x[width_in(s) + (uint64_t)(s->heads + h)]) + (double)d->params[s->heads + h];
    const double g = exp(-exp((double)d->params[h]) * log1p(exp(z)));
    for (int i = 0; i < kd * vd; i++)
        S[i] *= g;
    for (int c = 0; c < vd; c++) {
        double read = 0.0, o = 0.0;
        for (int i = 0; i < kd; i++)
            read += S[i * vd + c] * as_read(s, k[i]) * ki;
        for (int i = 0; i < kd; i++)
            S[i * vd + c] += as_read(s, k[i]) * ki * b * (as_read(s, v[c]) - read);
        for (int i = 0; i < kd; i++)
            o += S[i * vd + c] * as_read(s, q[i]) * qi;
        out[h * vd + c] = o;
    }
}

static double conv_at(const struct shape *s, const struct data *d, const float *x, int t, int c) {
    double z = (double)d->params[s->taps * s->channels + c];
    for (int j = 0; j < s->taps; j++) {
        const int at = t - s->taps + 1 + j;
        if (at >= 0)
            z += (double)d->params[c * s->taps + j] *
                 as_read(s, x[(uint64_t)at * d->width + (uint64_t)c]);
    }
    return s->act == RLHF_ACT_SILU ? z * sigmoid(z) : s->act ? sigmoid(z) : z;
}

// The outputs of a sequence, [tokens, width_out].
static void in_float64(const struct shape *s, const struct data *d, int seq, double *out) {
    const float *x = d->x + (uint64_t)seq * LONGEST * d->width;
    double *S = calloc((size_t)(s->heads * s->key_dim * s->value_dim) + 1, sizeof *S);
    for (int t = 0; t < lengths[seq]; t++, out += width_out(s)) {
        for (int h = 0; h < s->heads; h++)
            delta_token(s, d, x + (uint64_t)t * d->width, h, S + h * s->key_dim * s->value_dim,
                        out);
        for (int c = 0; c < s->channels; c++)
            out[c] = conv_at(s, d, x, t, c);
    }
    free(S);
}

static void check_float64(rlhf_compute *c, const struct shape *s, const struct data *d,
                          const float *out) {
    const double bound = s->dtype == RLHF_BF16 ? 5e-3 : 2e-5;
    double *want = malloc(LONGEST * width_out(s) * sizeof *want), worst = 0.0, size = 0.0;
    for (int seq = 0; seq < SEQUENCES; seq++) {
        const uint64_t n = (uint64_t)lengths[seq] * width_out(s);
        in_float64(s, d, seq, want);
        for (uint64_t i = 0; i < n; i++) {
            const double e =
                fabs(want[i] - (double)out[(uint64_t)seq * LONGEST * width_out(s) + i]);
            if (!(e <= worst)) worst = e;
            if (fabs(want[i]) > size) size = fabs(want[i]);
        }
    }
    free(want);
    printf("  %s %s %s: largest error %.1e of %.2g\n", c->name, s->delta ? "delta" : "conv",
           s->dtype == RLHF_BF16 ? "bf16" : "f32", worst, size);
    if (!(worst <= bound * size)) fail_msg("differs from float64 by %g of %g", worst, size);
}

// ---- layouts ----

// Rows in the training layout: every sequence alone, all in one call, and with a shared prefix.
static void run_alone(rlhf_compute *c, const struct shape *s, const struct data *d, float *out) {
    for (int seq = 0; seq < SEQUENCES; seq++) {
        const struct piece p = {seq, 0, lengths[seq], -1, -1};
        run_pieces(c, s, d, &p, 1, NULL, out);
    }
}
static void run_packed(rlhf_compute *c, const struct shape *s, const struct data *d, float *out) {
    struct piece p[SEQUENCES];
    for (int seq = 0; seq < SEQUENCES; seq++)
        p[SEQUENCES - 1 - seq] = (struct piece){seq, 0, lengths[seq], -1, -1};
    run_pieces(c, s, d, p, SEQUENCES, NULL, out);
}
static void run_shared(rlhf_compute *c, const struct shape *s, const struct data *d, float *out) {
    const struct piece p[] = {{0, 0, 1, 0, 0},       {1, 0, PREFIX, 0, 0},   {1, PREFIX, 40, 0, 0},
                              {2, PREFIX, 38, 0, 0}, {3, PREFIX, 150, 0, 0}, {4, 0, 17, 0, 0},
                              {5, 0, 66, 0, 0}};
    run_pieces(c, s, d, p, CHECK_COUNT(p), NULL, out);
    for (int seq = 2; seq <= 3; seq++) // their prefixes are those of sequence 1
        memcpy(out + (uint64_t)seq * LONGEST * width_out(s), out + LONGEST * width_out(s),
               PREFIX * width_out(s) * sizeof *out);
}

// Every sequence has a slot, and gets `step` tokens in each call; 0: different numbers.
static void run_steps(rlhf_compute *c, const struct shape *s, const struct data *d, float *out,
                      int step, rlhf_dev slots) {
    int at[SEQUENCES] = {0};
    for (int round = 0, left = 1; left; round++) {
        struct piece p[SEQUENCES];
        uint32_t n = 0;
        for (int seq = 0; seq < SEQUENCES; seq++) {
            if (at[seq] == lengths[seq]) continue;
            int end = at[seq] + (step ? step : (seq * 5 + round * 7) % 23);
            if (end > lengths[seq]) end = lengths[seq];
            p[n++] = (struct piece){seq, at[seq], end, at[seq] ? seq : -1, seq};
            if (!at[seq] && end == 0) p[n - 1].to = -1; // an empty row
            at[seq] = end;
        }
        left = n > 0;
        if (n) run_pieces(c, s, d, p, n, slots, out);
    }
}

// A row continues a row of the same call; sequences 1 to 3 continue the state of one prefix.
static void run_chained(rlhf_compute *c, const struct shape *s, const struct data *d, float *out,
                        rlhf_dev slots) {
    const struct piece p[] = {{0, 0, 1, -1, 0},      {1, 0, PREFIX, -1, 7}, {1, PREFIX, 40, 7, 1},
                              {2, PREFIX, 38, 7, 2}, {3, PREFIX, 39, 7, 3}, {3, 39, 41, 3, 3},
                              {4, 0, 3, -1, 4},      {3, 41, 100, 3, 3},    {4, 3, 3, 4, 8},
                              {4, 3, 17, 8, 4},      {5, 0, 1, -1, 5},      {5, 1, 66, 5, 5},
                              {3, 100, 150, 3, 3}};
    run_pieces(c, s, d, p, CHECK_COUNT(p), slots, out);
    for (int seq = 2; seq <= 3; seq++)
        memcpy(out + (uint64_t)seq * LONGEST * width_out(s), out + LONGEST * width_out(s),
               PREFIX * width_out(s) * sizeof *out);
}

static void same(const struct shape *s, const float *got, const float *want, const char *what) {
    const uint64_t w = width_out(s);
    for (int seq = 0; seq < SEQUENCES; seq++)
        for (int t = 0; t < lengths[seq]; t++) {
            const uint64_t at = ((uint64_t)seq * LONGEST + (uint64_t)t) * w;
            if (memcmp(got + at, want + at, w * sizeof *got) == 0) continue;
            fail_msg("%s: sequence %d differs at token %d: %.9g, want %.9g, ...", what, seq, t,
                     (double)got[at], (double)want[at]);
        }
}

// Checks that the states of the sequences' slots are those in `want`, or stores them there.
static void same_states(rlhf_compute *c, const struct shape *s, rlhf_dev slots, char *want,
                        int store, const char *what) {
    const uint64_t n = state_bytes(s), stride = (uint64_t)slot_stride(s);
    char *got = malloc(SLOTS * stride);
    KIT_OK(c, c->download(c->ctx, got, slots, SLOTS * stride));
    for (uint64_t seq = 0; seq < SEQUENCES; seq++) {
        if (store) memcpy(want + seq * n, got + seq * stride, n);
        if (memcmp(want + seq * n, got + seq * stride, n))
            fail_msg("%s: the last state of sequence %d differs", what, (int)seq);
    }
    free(got);
}

static void check_layouts(rlhf_compute *c, const struct shape *s, const struct data *d) {
    struct call k = {.c = c};
    const uint64_t n = SEQUENCES * LONGEST * width_out(s);
    float *want = call_host(&k, n * 4), *got = call_host(&k, n * 4);
    char *last = call_host(&k, SEQUENCES * state_bytes(s));
    rlhf_dev slots = call_zeros(&k, SLOTS * (uint64_t)slot_stride(s) / 4, RLHF_F32);
    run_alone(c, s, d, want);
    check_float64(c, s, d, want);
#define LAYOUT(call, what)                                                                         \
    do {                                                                                           \
        memset(got, 0, n * 4);                                                                     \
        call;                                                                                      \
        same(s, got, want, what);                                                                  \
    } while (0)
    LAYOUT(run_packed(c, s, d, got), "packed");
    LAYOUT(run_shared(c, s, d, got), "with a shared prefix");
    LAYOUT(run_steps(c, s, d, got, LONGEST, slots), "with states");
    same_states(c, s, slots, last, 1, "with states");
    LAYOUT(run_steps(c, s, d, got, 1, slots), "one token a call");
    same_states(c, s, slots, last, 0, "one token a call");
    LAYOUT(run_steps(c, s, d, got, 16, slots), "16 tokens a call");
    same_states(c, s, slots, last, 0, "16 tokens a call");
    LAYOUT(run_steps(c, s, d, got, 0, slots), "divided anywhere");
    same_states(c, s, slots, last, 0, "divided anywhere");
    LAYOUT(run_chained(c, s, d, got, slots), "rows that continue rows");
    same_states(c, s, slots, last, 0, "rows that continue rows");
    call_finish(&k);
}

static void layouts_give_the_same_bits(void **state) {
    struct kit *kit = *state;
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        struct call k = {.c = kit->ref};
        struct data d;
        data_init(&k, &shapes[i], &d);
        check_layouts(kit->ref, &shapes[i], &d);
        check_layouts(kit->cpu1, &shapes[i], &d);
        check_layouts(kit->cpu2, &shapes[i], &d);
        call_finish(&k);
    }
}

static void threads_give_the_same_bits(void **state) {
    struct kit *kit = *state;
    rlhf_compute *tables[] = {kit->cpu2, kit->more[0], kit->more[1], kit->more[2]};
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        const struct shape *s = &shapes[i];
        const uint64_t n = SEQUENCES * LONGEST * width_out(s);
        struct call k = {.c = kit->cpu1};
        struct data d;
        data_init(&k, s, &d);
        float *want = call_host(&k, n * 4), *got = call_host(&k, n * 4);
        run_packed(kit->cpu1, s, &d, want);
        for (size_t t = 0; t < CHECK_COUNT(tables) && tables[t]; t++) {
            memset(got, 0, n * 4);
            run_shared(tables[t], s, &d, got);
            same(s, got, want, "more threads");
        }
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(layouts_give_the_same_bits),
                                       cmocka_unit_test(threads_give_the_same_bits)};
    return cmocka_run_group_tests_name("kernels: layers with a state", tests, kit_setup,
                                       kit_teardown);
}
