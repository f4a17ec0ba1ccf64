// test_races.c: runs every family of kernels on small shapes that together use each variant. With
// -fsanitize=thread, the race detector treats every CUDA thread as a thread, and ends the program
// with a report. With other sanitizers, the same shapes check memory accesses. Results are not
// checked here; the kernel suite does that.
#include "kernels/kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
    const rlhf_plugin *kernels;
    void *so;
    int emulated;
    rlhf_compute *c;
};

static int setup(void **state) {
    struct world *w = calloc(1, sizeof *w);
    const char *backend = getenv("RLHF_TEST_BACKEND");
    w->kernels = kit_load(backend ? backend : "cuda_emu", &w->so);
    w->emulated = !backend || strcmp(backend, "cuda_emu") == 0;
    w->c = kit_create(w->kernels, 1, 0, 0);
    *state = w;
    return 0;
}

static int teardown(void **state) {
    struct world *w = *state;
    kit_destroy(w->c);
    free(w);
    return 0;
}

static struct call begin(void **state) { return (struct call){.c = ((struct world *)*state)->c}; }

// Waits for the queued work and frees the call's buffers.
static void end(struct call *k) {
    KIT_OK(k->c, k->c->sync(k->c->ctx));
    call_finish(k);
    *k = (struct call){.c = k->c};
}
#define OK(k, f, ...) KIT_OK((k)->c, (k)->c->f((k)->c->ctx, __VA_ARGS__))

// Returns n normal numbers that start `off` elements into a buffer.
static rlhf_dev numbers(struct call *k, uint64_t n, int32_t dtype, uint64_t off) {
    rlhf_dev p = call_floats(k, call_normal(k, n, n + off, 1.0), n + off, dtype);
    return rlhf_dev_at(p, off * rlhf_dtype_size(dtype));
}

static const int32_t dtypes[] = {RLHF_F32, RLHF_BF16};

// ---- rows ----

static void elementwise_of(struct call *k, uint64_t n, int32_t dtype, uint64_t off) {
    rlhf_dev x = numbers(k, n, dtype, off), y = numbers(k, n, dtype, off);
    rlhf_dev f = numbers(k, n, RLHF_F32, off), b = numbers(k, n, RLHF_BF16, off);
    OK(k, convert, b, RLHF_BF16, f, RLHF_F32, n);
    OK(k, convert, f, RLHF_F32, b, RLHF_BF16, n);
    OK(k, add, f, x, dtype, n);
    for (int32_t kind = RLHF_ACT_GELU_TANH; kind <= RLHF_ACT_SIGMOID; kind++) {
        OK(k, act, y, x, kind, dtype, n);
        OK(k, act_bwd, y, y, x, kind, dtype, n);
    }
    OK(k, copy, y, x, n * rlhf_dtype_size(dtype));
    OK(k, zero, y, n * rlhf_dtype_size(dtype));
    end(k);
}

static void elementwise(void **state) {
    struct call k = begin(state);
    for (int i = 0; i < 2; i++)
        for (uint64_t off = 0; off < 2; off++)
            elementwise_of(&k, 301, dtypes[i], off);
}

static void norm_of(struct call *k, uint32_t rows, int32_t d, int32_t dtype, uint64_t off) {
    const uint64_t w = (uint64_t)d, n = rows * w;
    rlhf_dev x = numbers(k, n, RLHF_F32, off), y = numbers(k, n, dtype, off);
    rlhf_dev gamma = numbers(k, w, RLHF_F32, off), beta = numbers(k, w, RLHF_F32, off);
    rlhf_dev dx = numbers(k, n, RLHF_F32, off), stats = call_zeros(k, 2ull * rows, RLHF_F32);
    rlhf_dev dgamma = numbers(k, w, RLHF_F32, off), dbeta = numbers(k, w, RLHF_F32, off);
    OK(k, norm, y, dtype, stats, x, gamma, beta, 1e-5, rows, d);
    OK(k, norm_bwd, dx, 0, dgamma, dbeta, y, dtype, x, stats, gamma, rows, d);
    OK(k, norm_bwd, dx, 1, NULL, NULL, y, dtype, x, stats, gamma, rows, d);
    end(k);
}

// Widths for every norm kernel: a few columns, as many as a block keeps in registers, and more.
static void norms(void **state) {
    static const int32_t widths[] = {1, 33, 64, 512, 768, 1024, 1200};
    struct call k = begin(state);
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < sizeof widths / sizeof *widths; j++)
            norm_of(&k, 3, widths[j], dtypes[i], 0);
        norm_of(&k, 70, 36, dtypes[i], 0);
        norm_of(&k, 5, 260, dtypes[i], 1);
    }
}

static void rms_norm_of(struct call *k, uint32_t rows, int32_t d, int32_t dtype, uint64_t off) {
    const uint64_t w = (uint64_t)d, n = rows * w;
    rlhf_dev x = numbers(k, n, RLHF_F32, off), y = numbers(k, n, dtype, off);
    rlhf_dev gamma = numbers(k, w, RLHF_F32, off), dx = numbers(k, n, RLHF_F32, off);
    rlhf_dev dgamma = numbers(k, w, RLHF_F32, off), stats = call_zeros(k, rows, RLHF_F32);
    OK(k, rms_norm, y, dtype, stats, x, gamma, 0.0, 1e-6, rows, d);
    OK(k, rms_norm_bwd, dx, 0, dgamma, y, dtype, x, stats, gamma, 1.0, rows, d);
    OK(k, rms_norm_bwd, dx, 1, NULL, y, dtype, x, stats, gamma, 0.0, rows, d);
    end(k);
}

static void rms_norms(void **state) {
    static const int32_t widths[] = {1, 33, 64, 896, 1200, 2100};
    struct call k = begin(state);
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < sizeof widths / sizeof *widths; j++)
            rms_norm_of(&k, 3, widths[j], dtypes[i], 0);
        rms_norm_of(&k, 70, 36, dtypes[i], 0);
        rms_norm_of(&k, 5, 260, dtypes[i], 1);
    }
}

static void gate_of(struct call *k, uint32_t rows, int32_t inner, int32_t dtype) {
    const uint64_t n = rows * (uint64_t)inner;
    rlhf_dev x = numbers(k, 2 * n, dtype, 0), y = numbers(k, n, dtype, 0);
    for (int32_t kind = RLHF_ACT_GELU_TANH; kind <= RLHF_ACT_SIGMOID; kind++) {
        OK(k, gate, y, x, kind, dtype, rows, inner);
        OK(k, gate_bwd, x, y, x, kind, dtype, rows, inner);
    }
    end(k);
}

static void gates(void **state) {
    struct call k = begin(state);
    for (int i = 0; i < 2; i++) {
        gate_of(&k, 9, 24, dtypes[i]);
        gate_of(&k, 5, 33, dtypes[i]);
    }
}

// ---- layers with a state: a row that two rows share, and a row alone ----

enum { S_ROWS = 4, S_TOKENS = 24 };

static rlhf_ragged state_rows(struct call *k) {
    static const int32_t offset[] = {0, 3, 20, 21, S_TOKENS}, base[S_ROWS] = {0},
                         len[] = {0, 3, 3, 0};
    return (rlhf_ragged){.size = sizeof(rlhf_ragged),
                         .n = S_ROWS,
                         .total = S_TOKENS,
                         .max_q = 17,
                         .max_k = 20,
                         .offset = call_ints(k, offset, S_ROWS + 1),
                         .start = call_ints(k, len, S_ROWS),
                         .kv_base = call_ints(k, offset, S_ROWS),
                         .prefix_base = call_ints(k, base, S_ROWS),
                         .prefix_len = call_ints(k, len, S_ROWS)};
}

// Row 1 continues row 0, and row 3 row 2.
static rlhf_states state_slots(struct call *k, int64_t stride) {
    static const int32_t from[] = {-1, 0, -1, 1}, to[] = {0, 0, 1, -1};
    return (rlhf_states){.size = sizeof(rlhf_states),
                         .state = call_zeros(k, 2 * (uint64_t)stride / 4, RLHF_F32),
                         .stride = stride,
                         .from = call_ints(k, from, S_ROWS),
                         .to = call_ints(k, to, S_ROWS)};
}

static void delta_of(struct call *k, int32_t key_dim, int32_t value_dim, int32_t dtype) {
    const uint64_t w = (uint64_t)(2 * key_dim + 2 * value_dim), wo = 2 * (uint64_t)value_dim;
    const rlhf_ragged rows = state_rows(k);
    const rlhf_states s = state_slots(k, (2 * key_dim * value_dim * 4 + 63) / 64 * 64);
    const rlhf_delta d = {.size = sizeof d,
                          .heads = 2,
                          .key_heads = 1,
                          .key_dim = key_dim,
                          .value_dim = value_dim,
                          .dtype = dtype,
                          .x_stride = (int64_t)w,
                          .gate_stride = 2,
                          .out_stride = (int64_t)wo,
                          .scale = 0.25,
                          .eps = 1e-6,
                          .a_log = numbers(k, 2, RLHF_F32, 0),
                          .dt_bias = numbers(k, 2, RLHF_F32, 0)};
    rlhf_dev x = numbers(k, S_TOKENS * w, dtype, 0), out = numbers(k, S_TOKENS * wo, dtype, 0);
    rlhf_dev dx = numbers(k, S_TOKENS * w, dtype, 0), g = numbers(k, S_TOKENS * 2, dtype, 0);
    rlhf_dev dg[2] = {numbers(k, S_TOKENS * 2, dtype, 0), numbers(k, S_TOKENS * 2, dtype, 0)};
    rlhf_dev da = numbers(k, 2, RLHF_F32, 0);
    OK(k, delta, &d, &rows, NULL, out, x, g, g);
    OK(k, delta, &d, &rows, &s, out, x, g, g);
    OK(k, delta_bwd, &d, &rows, dx, dg[0], dg[1], da, NULL, out, x, g, g);
    end(k);
}

static void conv_of(struct call *k, int32_t channels, int32_t taps, int32_t dtype) {
    const uint64_t c = (uint64_t)channels;
    const rlhf_ragged rows = state_rows(k);
    const rlhf_states s = state_slots(k, (taps * channels * 4 + 63) / 64 * 64);
    const rlhf_conv v = {.size = sizeof v,
                         .channels = channels,
                         .taps = taps,
                         .dtype = dtype,
                         .act = RLHF_ACT_SILU,
                         .x_stride = channels,
                         .y_stride = channels,
                         .weight = numbers(k, c * (uint64_t)taps, RLHF_F32, 0),
                         .bias = numbers(k, c, RLHF_F32, 0)};
    rlhf_dev x = numbers(k, S_TOKENS * c, dtype, 0), y = numbers(k, S_TOKENS * c, dtype, 0);
    rlhf_dev dx = numbers(k, S_TOKENS * c, dtype, 0), dw = numbers(k, c * 8, RLHF_F32, 0);
    OK(k, conv, &v, &rows, NULL, y, x);
    OK(k, conv, &v, &rows, &s, y, x);
    OK(k, conv_bwd, &v, &rows, dx, dw, dw, y, x);
    end(k);
}

static void gated_of(struct call *k, int32_t dim, int32_t dtype) {
    const uint64_t w = 2 * (uint64_t)dim, n = 70 * w;
    const rlhf_gated_norm g = {.size = sizeof g,
                               .heads = 2,
                               .head_dim = dim,
                               .dtype = dtype,
                               .act = RLHF_ACT_SILU,
                               .x_stride = (int64_t)w,
                               .gate_stride = (int64_t)w,
                               .out_stride = (int64_t)w,
                               .eps = 1e-6,
                               .gamma = numbers(k, (uint64_t)dim, RLHF_F32, 0)};
    const rlhf_columns m = {.size = sizeof m,
                            .blocks = 2,
                            .width = dim,
                            .dtype = dtype,
                            .act = RLHF_ACT_SIGMOID,
                            .x_stride = (int64_t)w,
                            .gate_stride = (int64_t)w,
                            .out_stride = (int64_t)w,
                            .x_step = dim,
                            .gate_step = dim,
                            .out_step = dim};
    rlhf_dev x = numbers(k, n, dtype, 0), gate = numbers(k, n, dtype, 0);
    rlhf_dev y = numbers(k, n, dtype, 0), d = numbers(k, n, dtype, 0);
    rlhf_dev dgamma = numbers(k, (uint64_t)dim, RLHF_F32, 0), dg = numbers(k, n, dtype, 0);
    OK(k, gated_norm, &g, y, NULL, x, gate, 70);
    OK(k, gated_norm_bwd, &g, d, dg, dgamma, d, NULL, x, gate, 70);
    OK(k, multiply, &m, y, x, gate, 70);
    OK(k, multiply, &m, y, x, NULL, 70);
    OK(k, multiply_bwd, &m, d, dg, d, x, gate, 70);
    end(k);
}

static void states(void **state) {
    struct call k = begin(state);
    for (int i = 0; i < 2; i++) {
        delta_of(&k, 16, 16, dtypes[i]);
        delta_of(&k, 40, 20, dtypes[i]);
        delta_of(&k, 70, 7, dtypes[i]);
        conv_of(&k, 130, 4, dtypes[i]);
        conv_of(&k, 5, 2, dtypes[i]);
        gated_of(&k, 33, dtypes[i]);
    }
}

// 2 query heads and 1 key head. The sums of 21 rows take more than one chunk.
static void rope_of(struct call *k, int32_t head_dim, int32_t dtype, int norms) {
    enum { ROWS = 21, HEADS = 3 };
    const uint64_t w = (uint64_t)head_dim, stride = HEADS * w + 4;
    int32_t at[ROWS];
    for (int32_t i = 0; i < ROWS; i++)
        at[i] = i % 5;
    rlhf_rope g = {.size = sizeof g, .heads = 2, .kv_heads = 1, .head_dim = head_dim, .n_pos = 5};
    g.dtype = dtype, g.stride = (int64_t)stride, g.eps = 1e-6;
    g.pos = call_ints(k, at, ROWS), g.turn = numbers(k, 5 * w, RLHF_F32, 0);
    rlhf_dev x = numbers(k, ROWS * stride, dtype, 0), dq = NULL, dk = NULL;
    if (norms) {
        g.gamma_q = numbers(k, w, RLHF_F32, 0), g.gamma_k = numbers(k, w, RLHF_F32, 0);
        g.raw = call_zeros(k, ROWS * HEADS * w, dtype);
        g.stats = call_zeros(k, ROWS * HEADS, RLHF_F32);
        dq = call_zeros(k, w, RLHF_F32), dk = call_zeros(k, w, RLHF_F32);
    }
    OK(k, rope, &g, x, ROWS);
    OK(k, rope_bwd, &g, x, dq, dk, ROWS);
    end(k);
}

static void ropes(void **state) {
    static const int32_t dims[] = {2, 18, 64, 264};
    struct call k = begin(state);
    for (int i = 0; i < 2; i++)
        for (size_t j = 0; j < sizeof dims / sizeof *dims; j++) {
            rope_of(&k, dims[j], dtypes[i], 0);
            rope_of(&k, dims[j], dtypes[i], 1);
        }
}

static void embed_of(struct call *k, int32_t d) {
    static const int32_t ids[] = {3, 1, 3, 3, 0, 8, 1, 3, 7}, pos[] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
    const uint64_t w = (uint64_t)d;
    rlhf_dev id = call_ints(k, ids, 9), po = call_ints(k, pos, 9),
             y = numbers(k, 9 * w, RLHF_F32, 0);
    rlhf_dev wte = numbers(k, 9 * w, RLHF_F32, 0), wpe = numbers(k, 3 * w, RLHF_F32, 0);
    OK(k, embed, y, id, po, wte, wpe, 1.0, 9, d);
    OK(k, embed_bwd, wte, wpe, y, id, po, 2.0, 9, d, 9, 3);
    OK(k, embed, y, id, NULL, wte, NULL, 2.5, 9, d);
    OK(k, embed_bwd, wte, NULL, y, id, NULL, 1.0, 9, d, 9, 0);
    end(k);
}

static void move_of(struct call *k, int32_t d, int32_t dtype) {
    static const int32_t at[] = {4, 0, 2, 1, 3}, ends[] = {0, 1, 4, 9};
    const uint64_t w = (uint64_t)d;
    rlhf_dev idx = call_ints(k, at, 5), x = numbers(k, 9 * w, dtype, 0),
             y = numbers(k, 9 * w, dtype, 0);
    rlhf_dev f = numbers(k, 9 * w, RLHF_F32, 0), g = numbers(k, 9 * w, RLHF_F32, 0);
    rlhf_dev offset = call_ints(k, ends, 4);
    OK(k, gather, y, x, idx, 5, d, dtype);
    OK(k, scatter_add, f, x, dtype, idx, 5, d);
    for (int32_t mode = RLHF_POOL_MEAN; mode <= RLHF_POOL_LAST; mode++) {
        OK(k, pool, g, f, offset, 3, d, mode);
        OK(k, pool_bwd, f, g, offset, 3, d, mode);
    }
    end(k);
}

static void rows(void **state) {
    static const int32_t widths[] = {1, 36, 133};
    struct call k = begin(state);
    for (int i = 0; i < 3; i++) {
        embed_of(&k, widths[i]);
        move_of(&k, widths[i], RLHF_F32);
        move_of(&k, widths[i], RLHF_BF16);
    }
}

// ---- optimizers ----

static void adam(void **state) {
    const rlhf_adamw a = {sizeof a, RLHF_ADAM_TORCH, 1e-3, 0.9, 0.99, 1e-8, 0.1, 1.0, 1};
    const uint64_t len[] = {5000, 1, 0, 333};
    const double one[] = {1, 1, 1, 1};
    struct call k = begin(state);
    rlhf_dev w[4], g[4], m[4], v[4], clip = call_zeros(&k, sizeof(rlhf_clip) / 4, RLHF_F32);
    for (int i = 0; i < 4; i++) {
        w[i] = numbers(&k, len[i], RLHF_F32, 0), g[i] = numbers(&k, len[i], RLHF_F32, 0);
        m[i] = call_zeros(&k, len[i], RLHF_F32), v[i] = call_zeros(&k, len[i], RLHF_F32);
    }
    const rlhf_tensors t = {sizeof t, 4, len, g, w, m, v, one, one};
    double sum = 0.0;
    OK(&k, sumsq, g[0], len[0], &sum);
    OK(&k, adamw, w[0], g[0], m[0], v[0], len[0], &a);
    OK(&k, sumsq_many, &t, 1.0, 0, clip);
    OK(&k, adamw_many, &t, &a, clip);
    end(&k);
}

static void muon_of(struct call *k, int32_t high, int32_t wide, int32_t in_out) {
    const rlhf_muon a = {sizeof a, 1, 2, in_out, 0.02, 0.95, 0.1, 1.0};
    const uint64_t n = (uint64_t)high * (uint64_t)wide;
    OK(k, muon, numbers(k, n, RLHF_F32, 0), numbers(k, n, RLHF_F32, 0), numbers(k, n, RLHF_F32, 0),
       high, wide, &a);
    end(k);
}

// GEMMs in f32, and in bf16 once a bf16 weight exists.
static void muon(void **state) {
    struct call k = begin(state);
    rlhf_weight *bf16 = NULL;
    for (int i = 0; i < 2; i++) {
        muon_of(&k, 20, 37, 0);
        muon_of(&k, 37, 20, 1);
        if (i == 0) OK(&k, weight_create, 8, 8, RLHF_BF16, 0, &bf16);
    }
    k.c->weight_destroy(k.c->ctx, bf16);
}

// ---- GEMMs; test_product.cpp covers every tile ----

static void linear_of(struct call *k, uint32_t n_rows, int32_t in, int32_t out, int32_t dtype,
                      uint32_t flags) {
    const uint64_t n = n_rows * (uint64_t)out, nx = n_rows * (uint64_t)in;
    const uint64_t nw = (uint64_t)in * (uint64_t)out;
    rlhf_weight *w =
        call_weight(k, call_normal(k, 1, nw, 1.0), in, out, dtype, flags | RLHF_WEIGHT_BACKWARD);
    rlhf_dev x = numbers(k, nx, dtype, 0), dy = numbers(k, n, dtype, 0),
             y = numbers(k, n, RLHF_F32, 0);
    rlhf_dev bias = numbers(k, (uint64_t)out, RLHF_F32, 0), dx = numbers(k, nx, RLHF_F32, 0);
    rlhf_dev dw = numbers(k, nw, RLHF_F32, 0), db = numbers(k, (uint64_t)out, RLHF_F32, 0);
    OK(k, linear, y, RLHF_F32, 1, x, w, bias, n_rows);
    OK(k, linear, dy, dtype, 0, x, w, NULL, n_rows);
    OK(k, linear_add, y, y, x, w, bias, n_rows);
    OK(k, linear_dx, dx, RLHF_F32, 1, dy, w, n_rows);
    OK(k, linear_dw, dw, db, x, dy, w, n_rows);
    end(k);
}

static void products(void **state) {
    struct call k = begin(state);
    for (int i = 0; i < 2; i++) {
        linear_of(&k, 18, 70, 40, dtypes[i], 0);
        linear_of(&k, 3, 24, 67, dtypes[i], RLHF_WEIGHT_OUT_IN);
        linear_of(&k, 5, 33, 1, dtypes[i], RLHF_WEIGHT_OUT_IN);
        linear_of(&k, 2, 8, 3, dtypes[i], 0);
        linear_of(&k, 1, 300, 16, dtypes[i], 0);
    }
}

// To make a plan, the backend compares rows that the library computed. The race detector does not
// see the library's own work.
static void canary(void **state) {
    struct world *w = *state;
    char lt[4096];
    snprintf(lt, sizeof lt, "%s/tests/cuda/fake_cublaslt.so", getenv("RLHF_BUILD_DIR"));
    if (w->emulated) {
        setenv("RLHF_CUBLASLT", lt, 1);
        setenv("FAKE_LT", "honest", 1);
    }
    struct call k = {.c = kit_create(w->kernels, 1, 0, 0)};
    if (w->emulated) unsetenv("RLHF_CUBLASLT");
    rlhf_compute *c = k.c;
    assert_non_null(strstr(c->detail, "cuBLASLt"));
    rlhf_weight *weight =
        call_weight(&k, call_normal(&k, 1, 8 * 24, 1.0), 8, 24, RLHF_BF16, RLHF_WEIGHT_BACKWARD);
    rlhf_dev x = numbers(&k, 16, RLHF_BF16, 0), y = numbers(&k, 48, RLHF_F32, 0);
    OK(&k, linear, y, RLHF_F32, 1, x, weight, NULL, 2);
    end(&k);
    kit_destroy(c);
}

// ---- attention ----

enum { MOST = 4 };

// n rows with q queries each. If `prefix` is 0, each row has `start` cached keys before its own
// keys. If `prefix` is 1, rows 1 .. n - 2 continue row 0, and the last row does not.
static rlhf_ragged ragged(struct call *k, int n, const int32_t *q, int32_t start, int prefix) {
    int32_t offset[MOST + 1] = {0}, from[MOST] = {0}, base[MOST] = {0}, len[MOST] = {0};
    int32_t zero[MOST] = {0};
    rlhf_ragged r = {.size = sizeof r, .n = (uint32_t)n};
    int32_t keys = 0;
    for (int i = 0; i < n; i++) {
        offset[i + 1] = offset[i] + q[i];
        if (prefix && i && i < n - 1) len[i] = q[0];
        from[i] = prefix ? len[i] : start;
        base[i] = prefix ? offset[i] : keys;
        keys += from[i] + q[i];
        if ((uint32_t)q[i] > r.max_q) r.max_q = (uint32_t)q[i];
        if ((uint32_t)(from[i] + q[i]) > r.max_k) r.max_k = (uint32_t)(from[i] + q[i]);
    }
    r.total = (uint32_t)offset[n];
    r.offset = call_ints(k, offset, (uint64_t)n + 1);
    r.start = call_ints(k, from, (uint64_t)n);
    r.kv_base = call_ints(k, base, (uint64_t)n);
    if (prefix) {
        r.prefix_base = call_ints(k, zero, (uint64_t)n);
        r.prefix_len = call_ints(k, len, (uint64_t)n);
    }
    return r;
}

static rlhf_attn geometry(int32_t heads, int32_t kv_heads, int32_t head_dim, int32_t dtype) {
    const int64_t w = (int64_t)heads * head_dim, kv = (int64_t)kv_heads * head_dim;
    return (rlhf_attn){sizeof(rlhf_attn),
                       heads,
                       kv_heads,
                       head_dim,
                       1,
                       dtype,
                       w,
                       kv,
                       w,
                       .scale = 1.0 / sqrt(head_dim)};
}

// Forward and backward of rows that share a prefix, with two query heads per key head.
static void train(struct call *k, int32_t head_dim, int32_t dtype) {
    static const int32_t q[] = {18, 5, 3, 2};
    const rlhf_attn a = geometry(2, 1, head_dim, dtype);
    const rlhf_ragged r = ragged(k, 4, q, 0, 1);
    const uint64_t n = r.total * (uint64_t)a.q_stride, kv = r.total * (uint64_t)a.kv_stride;
    rlhf_dev x = numbers(k, n, dtype, 0), key = numbers(k, kv, dtype, 0),
             v = numbers(k, kv, dtype, 0);
    rlhf_dev out = call_zeros(k, n, dtype), lse = call_zeros(k, 2ull * r.total, RLHF_F32);
    rlhf_dev dout = numbers(k, n, dtype, 0), dq = call_zeros(k, n, dtype);
    rlhf_dev dk = call_zeros(k, kv, dtype), dv = call_zeros(k, kv, dtype);
    OK(k, attention, &a, &r, out, lse, x, key, v);
    OK(k, attention_bwd, &a, &r, dq, dk, dv, dout, out, lse, x, key, v);
    end(k);
}

// n rows of q queries each after `start` keys.
static void decode(struct call *k, int n, int32_t q, int32_t start, int32_t head_dim,
                   int32_t dtype) {
    const int32_t each[MOST] = {q, q, q, q};
    const rlhf_attn a = geometry(2, 2, head_dim, dtype);
    const rlhf_ragged r = ragged(k, n, each, start, 0);
    const uint64_t nq = r.total * (uint64_t)a.q_stride;
    const uint64_t kv = (uint64_t)n * r.max_k * (uint64_t)a.kv_stride;
    rlhf_dev x = numbers(k, nq, dtype, 0), key = numbers(k, kv, dtype, 0),
             v = numbers(k, kv, dtype, 0);
    OK(k, kv_store, key, v, x, x, a.q_stride, &r, (int32_t)a.kv_stride, dtype);
    OK(k, attention, &a, &r, call_zeros(k, nq, dtype), NULL, x, key, v);
    end(k);
}

// Head widths of every kernel, with and without accesses of 16 bytes.
static void attention_bf16(void **state) {
    static const int32_t dims[] = {7, 16, 24, 64, 80, 96, 128, 256};
    struct call k = begin(state);
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        train(&k, dims[i], RLHF_BF16);
        decode(&k, 2, 1, 20, dims[i], RLHF_BF16);
    }
}

static void attention_f32(void **state) {
    static const int32_t dims[] = {7, 32, 64, 96, 128, 256};
    struct call k = begin(state);
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        train(&k, dims[i], RLHF_F32);
        decode(&k, 2, 1, 20, dims[i], RLHF_F32);
    }
}

// There are more keys than a segment can hold: the row is split, and one block merges the parts.
static void attention_long(void **state) {
    struct call k = begin(state);
    for (int i = 0; i < 2; i++) {
        decode(&k, 1, 1, 520, 16, dtypes[i]);
        decode(&k, 1, 17, 505, 16, dtypes[i]);
    }
}

// ---- head ----

static rlhf_dev targets(struct call *k, int32_t vocab, uint32_t n) {
    int32_t ids[8];
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)(i * 31) % vocab;
    return call_ints(k, ids, n);
}

// What lm_head computes in addition to log-probs.
enum { PLAIN, REFERENCE, SUPPORT };

static void head_of(struct call *k, int32_t vocab, int32_t dtype, rlhf_dist dist, int what) {
    enum { D = 8, ROWS = 2 };
    const uint64_t words = ROWS * rlhf_support_words(vocab);
    const float *x = call_normal(k, 5, (uint64_t)vocab * D, 1.0);
    rlhf_lm_head a = {.size = sizeof a, .rows = ROWS, .d = D, .vocab = vocab, .dtype = dtype};
    a.dist = &dist;
    a.hidden = numbers(k, ROWS * D, dtype, 0);
    a.weight = call_weight(k, x, D, vocab, dtype, RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
    a.target = targets(k, vocab, ROWS);
    a.logp = call_zeros(k, ROWS, RLHF_F32), a.entropy = call_zeros(k, ROWS, RLHF_F32);
    if (what == REFERENCE) {
        a.kl = call_zeros(k, ROWS, RLHF_F32);
        a.ref_hidden = numbers(k, ROWS * D, dtype, 0);
        a.ref_weight = a.weight;
        a.d_kl = numbers(k, ROWS, RLHF_F32, 0);
    }
    if (what == SUPPORT) {
        int32_t *all = call_host(k, words * sizeof *all);
        for (uint64_t i = 0; i < words; i++)
            all[i] = (i + 1) % (words / ROWS) || vocab % 32 == 0 ? -1 : (1 << vocab % 32) - 1;
        a.support = call_ints(k, all, words);
    }
    a.d_logp = numbers(k, ROWS, RLHF_F32, 0), a.d_entropy = numbers(k, ROWS, RLHF_F32, 0);
    a.d_hidden = call_zeros(k, ROWS * D, dtype);
    a.d_weight = call_zeros(k, (uint64_t)vocab * D, RLHF_F32);
    OK(k, lm_head, &a);
    OK(k, lm_head_bwd, &a);
    end(k);
}

static void sample_of(struct call *k, int32_t vocab, int32_t dtype, rlhf_dist dist, int support) {
    enum { D = 8, ROWS = 2 };
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    const float *x = call_normal(k, 5, (uint64_t)vocab * D, 1.0);
    rlhf_lm_sample a = {.size = sizeof a, .rows = ROWS, .d = D, .vocab = vocab, .dtype = dtype};
    a.dist = &dist;
    a.logp_dist = support ? &whole : &dist;
    a.hidden = numbers(k, ROWS * D, dtype, 0);
    a.weight = call_weight(k, x, D, vocab, dtype, RLHF_WEIGHT_OUT_IN);
    a.counter = call_zeros(k, 2 * ROWS, RLHF_I32);
    a.id = call_zeros(k, ROWS, RLHF_I32), a.logp = call_zeros(k, ROWS, RLHF_F32);
    if (support) a.support = call_zeros(k, ROWS * rlhf_support_words(vocab), RLHF_I32);
    OK(k, lm_sample, &a);
    end(k);
}

// Vocabularies for one warp, four warps and the largest block.
static const int32_t vocabs[] = {97, 300, 4099};

static void head(void **state) {
    const rlhf_dist whole = RLHF_DIST_WHOLE, k_first = RLHF_DIST(0.8, 1.0, 20, 0),
                    p_first = RLHF_DIST(1.2, 0.9, 0, 0);
    struct call k = begin(state);
    for (int i = 0; i < 3; i++) {
        const int32_t dtype = dtypes[i % 2];
        head_of(&k, vocabs[i], dtype, whole, REFERENCE);
        head_of(&k, vocabs[i], dtype, whole, SUPPORT);
        head_of(&k, vocabs[i], dtype, k_first, REFERENCE);
        head_of(&k, vocabs[i], dtype, p_first, PLAIN);
    }
    head_of(&k, 97, RLHF_BF16, whole, PLAIN);
}

static void sampling(void **state) {
    const rlhf_dist whole = RLHF_DIST_WHOLE, greedy = RLHF_DIST(1.0, 1.0, 0, 1),
                    both = RLHF_DIST(0.8, 0.9, 20, 0);
    struct call k = begin(state);
    for (int i = 0; i < 3; i++) {
        const int32_t dtype = dtypes[i % 2];
        sample_of(&k, vocabs[i], dtype, whole, 0);
        sample_of(&k, vocabs[i], dtype, greedy, 1);
        sample_of(&k, vocabs[i], dtype, both, 0);
        sample_of(&k, vocabs[i], dtype, both, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise),   cmocka_unit_test(norms),
        cmocka_unit_test(rms_norms),     cmocka_unit_test(gates),
        cmocka_unit_test(states),        cmocka_unit_test(ropes),
        cmocka_unit_test(rows),          cmocka_unit_test(adam),
        cmocka_unit_test(muon),          cmocka_unit_test(products),
        cmocka_unit_test(canary),        cmocka_unit_test(attention_bf16),
        cmocka_unit_test(attention_f32), cmocka_unit_test(attention_long),
        cmocka_unit_test(head),          cmocka_unit_test(sampling),
    };
    return cmocka_run_group_tests_name("cuda: races", tests, setup, teardown);
}
