// test_levels_state.c: the loops of layers with a state give the same bits at every instruction-set
// level, for awkward lengths. If a function lacks a case, the test fails.
#include "levels.h"
#include "support/check.h"

#include <rlhf/compute.h>

#include <stdlib.h>
#include <string.h>

struct args {
    uint32_t n; // tokens
    int32_t key_dim, value_dim, taps;
    int32_t bf16, kind;
};

static const char *at(const void *p, size_t elements, int bf16) {
    return (const char *)p + elements * (bf16 ? 2 : 4);
}

// ---- conv ----

static struct rlhf__conv_item conv_item(const struct levels *l, const struct args *g) {
    struct rlhf__conv_item it = {.x = levels_in(l, 'a', g->bf16),
                                 .weight = l->b,
                                 .bias = l->c,
                                 .dy = levels_in(l, 'd', g->bf16),
                                 .x_stride = 70,
                                 .y_stride = 70,
                                 .n = g->n,
                                 .channels = (uint32_t)g->value_dim,
                                 .taps = g->taps,
                                 .act = g->kind,
                                 .bf16 = g->bf16,
                                 .scratch = l->scratch};
    for (int32_t j = 1; j < g->taps - 1; j++)
        it.before[j] = at(levels_in(l, 'c', g->bf16), 100 * (size_t)j, g->bf16);
    return it;
}

static void call_conv(const struct levels *l, const struct rlhf__hot *t, char *out,
                      const void *args) {
    struct rlhf__conv_item it = conv_item(l, args);
    it.y = out;
    t->conv(&it);
}

static void call_conv_bwd(const struct levels *l, const struct rlhf__hot *t, char *out,
                          const void *args) {
    struct rlhf__conv_item it = conv_item(l, args);
    float *sums = (float *)(void *)out;
    it.sums = sums;
    it.earlier = sums + 640;
    it.later = l->c;
    it.dx = sums + 1280;
    t->conv_bwd(&it);
}

static void convolutions(void **state) {
    struct levels *l = *state;
    for (uint32_t n = 1; n < 20; n += 3)
        for (int32_t taps = 2; taps <= 8; taps += 2)
            for (int32_t bf16 = 0; bf16 < 2; bf16++) {
                const struct args g = {n,    0,    n * 7 % 64 + 1,
                                       taps, bf16, (int32_t)(n % 2 ? RLHF_ACT_SILU : 0)};
                levels_fill(l, 8192, 2.0f);
                levels_compare(l, "conv", call_conv, &g, n * 70 * 4);
                levels_compare(l, "conv_bwd", call_conv_bwd, &g, 1280 * 4 + n * 70 * 4);
            }
}

// ---- delta ----

// The rows of x are 600 elements apart, those of the gates 3, those of out and dout 300.
static struct rlhf__delta_item delta_item(const struct levels *l, const struct args *g) {
    const size_t kd = (size_t)g->key_dim;
    return (struct rlhf__delta_item){.q = levels_in(l, 'a', g->bf16),
                                     .k = at(levels_in(l, 'a', g->bf16), kd, g->bf16),
                                     .v = at(levels_in(l, 'a', g->bf16), 2 * kd, g->bf16),
                                     .beta = levels_in(l, 'b', g->bf16),
                                     .alpha = at(levels_in(l, 'b', g->bf16), 1, g->bf16),
                                     .from = g->kind ? l->c : NULL,
                                     .dout = levels_in(l, 'd', g->bf16),
                                     .x_stride = 600,
                                     .gate_stride = 3,
                                     .out_stride = 300,
                                     .n = g->n,
                                     .key_dim = g->key_dim,
                                     .value_dim = g->value_dim,
                                     .bf16 = g->bf16,
                                     .scale = 0.125f,
                                     .eps = 1e-6f,
                                     .a_log = 0.4f,
                                     .dt_bias = -0.3f,
                                     .scratch = l->scratch};
}

enum { STATE = 144 * 144, LONG = 90 };

static void call_delta(const struct levels *l, const struct rlhf__hot *t, char *out,
                       const void *args) {
    struct rlhf__delta_item it = delta_item(l, args);
    it.to = (float *)(void *)out;
    it.out = out + STATE * 4;
    t->delta(&it);
}

static void call_delta_bwd(const struct levels *l, const struct rlhf__hot *t, char *out,
                           const void *args) {
    const struct args *g = args;
    struct rlhf__delta_item it = delta_item(l, args);
    float *f = (float *)(void *)out;
    char *dx = out + (2 * STATE + LONG * 300 + 16) * 4;
    it.grad = f;
    it.dqk = f + STATE;
    it.sums = f + STATE + LONG * 300;
    memcpy(it.grad, l->c + 7, STATE * sizeof *it.grad);
    it.dq = dx;
    it.dk = dx + (size_t)g->key_dim * (g->bf16 ? 2 : 4);
    it.dv = dx + 2 * (size_t)g->key_dim * (g->bf16 ? 2 : 4);
    it.dbeta = dx + LONG * 600 * 4;
    it.dalpha = dx + LONG * 604 * 4;
    it.first = 1;
    it.last = 1;
    t->delta_bwd(&it);
    it.first = 0;
    t->delta_bwd(&it);
}

static void deltas(void **state) {
    struct levels *l = *state;
    static const struct args cases[] = {{1, 16, 16, 0, 0, 0},    {16, 13, 7, 0, 0, 1},
                                        {17, 64, 48, 0, 0, 0},   {33, 24, 130, 0, 0, 1},
                                        {64, 128, 128, 0, 0, 1}, {70, 128, 72, 0, 0, 0},
                                        {LONG, 5, 80, 0, 0, 1}};
    for (size_t i = 0; i < CHECK_COUNT(cases); i++)
        for (int32_t bf16 = 0; bf16 < 2; bf16++) {
            struct args g = cases[i];
            g.bf16 = bf16;
            levels_fill(l, 70000, 1.0f);
            levels_compare(l, "delta", call_delta, &g, (STATE + g.n * 300) * 4);
            levels_compare(l, "delta_bwd", call_delta_bwd, &g,
                           (2 * STATE + LONG * (300 + 608) + 16) * 4);
        }
}

// ---- gated norm, sigmoid, product ----

static struct rlhf__gated_row row_of(const struct levels *l, const struct args *g) {
    return (struct rlhf__gated_row){.x = levels_in(l, 'a', g->bf16),
                                    .gate = levels_in(l, 'b', g->bf16),
                                    .dout = levels_in(l, 'd', g->bf16),
                                    .gamma = l->c,
                                    .heads = 3,
                                    .head_dim = (size_t)g->value_dim,
                                    .eps = 1e-6f,
                                    .act = g->kind,
                                    .bf16 = g->bf16};
}

static void call_gated_norm(const struct levels *l, const struct rlhf__hot *t, char *out,
                            const void *args) {
    struct rlhf__gated_row r = row_of(l, args);
    r.stats = (float *)(void *)out;
    r.out = out + 64;
    t->gated_norm(&r);
}

static void call_gated_norm_bwd(const struct levels *l, const struct rlhf__hot *t, char *out,
                                const void *args) {
    struct rlhf__gated_row r = row_of(l, args);
    r.part = (float *)(void *)out;
    r.dx = out + 4096;
    r.dgate = out + 8192;
    t->gated_norm_bwd(&r);
}

static void call_act_sigmoid(const struct levels *l, const struct rlhf__hot *t, char *out,
                             const void *args) {
    const struct args *g = args;
    const void *a = levels_in(l, 'a', g->bf16), *b = levels_in(l, 'b', g->bf16),
               *c = levels_in(l, 'c', g->bf16);
    const size_t n = (size_t)g->value_dim;
    t->act(out, a, RLHF_ACT_SIGMOID, g->bf16, n);
    t->act_bwd(out + 2048, b, a, RLHF_ACT_SIGMOID, g->bf16, n);
    for (int32_t i = 0; i < 2; i++) {
        const int32_t kind = i ? RLHF_ACT_SIGMOID : 0;
        t->gate(out + 4096 + i * 8192, a, b, kind, g->bf16, n);
        t->gate_bwd(out + 6144 + i * 8192, out + 8192 + i * 8192, c, a, b, kind, g->bf16, n);
    }
}

static void gates(void **state) {
    struct levels *l = *state;
    for (int32_t n = 1; n < 300; n += 37)
        for (int32_t bf16 = 0; bf16 < 2; bf16++) {
            struct args g = {0, 0, n, 0, bf16, n % 2 ? RLHF_ACT_SILU : RLHF_ACT_SIGMOID};
            levels_fill(l, 4096, 3.0f);
            levels_compare(l, "gated_norm", call_gated_norm, &g, 64 + 4096);
            levels_compare(l, "gated_norm_bwd", call_gated_norm_bwd, &g, 12288);
            levels_compare(l, "act_sigmoid", call_act_sigmoid, &g, 20480);
        }
}

static void all_functions(void **state) {
#define NAME(name, args) #name,
    static const char *const names[] = {RLHF__HOT_STATE(NAME) "act_sigmoid"};
    levels_all_called(*state, names, sizeof names / sizeof *names);
}

static int setup(void **state) {
    static struct levels l;
    levels_open(&l);
    *state = &l;
    return 0;
}

static int teardown(void **state) {
    levels_close(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions), cmocka_unit_test(deltas),
                                       cmocka_unit_test(gates), cmocka_unit_test(all_functions)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
