// test_optimizer.c: compares AdamW (both places for epsilon) and Muon with torch and float64 NumPy
// (optimizer_vectors.json), and single steps of AdamW with double arithmetic in this file. Also
// tests sums of squares. Compares cpu with the reference, and tests that the number of threads does
// not change the bits.
#include "kit.h"
#include "support/numbers.h"
#include "support/tensor_close.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *vectors;

// The formula of inputs() in make_adamw_vectors.py.
static float input(int64_t tag, int64_t i) {
    return (float)((double)((i * 7919 + tag * 104729 + i * i % 1009) % 2003) / 1001.0 - 1.0);
}

static rlhf_dev inputs(struct call *k, int64_t tag, uint64_t n) {
    float *x = call_host(k, n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i] = input(tag, (int64_t)i);
    return call_floats(k, x, n, RLHF_F32);
}

// ---- vectors ----

enum { ADAMW_N = 11, ADAMW_STEPS = 6, MUON_MAX = 64 };

static int setup(void **state) {
    vectors = numbers_open("kernels/optimizer_vectors.json");
    return kit_setup(state);
}

static int teardown(void **state) {
    json_decref(vectors);
    return kit_teardown(state);
}

// Compares every stride-th of the `total` numbers at p with the numbers `key` of the vector.
static void check_values(struct call *k, rlhf_dev p, const json_t *vector, const char *key,
                         uint64_t stride, uint64_t total, double rtol, double atol,
                         const char *label) {
    float got[MUON_MAX], want[MUON_MAX], *all = call_host(k, total * sizeof *all);
    const size_t n = json_array_size(numbers_get(vector, key));
    assert_true(n > 0 && n <= MUON_MAX && (n - 1) * stride < total);
    numbers_floats(vector, key, want, n);
    kit_read(k->c, all, p, total, RLHF_F32);
    for (uint64_t i = 0; i < n; i++)
        got[i] = all[i * stride];
    assert_tensor_close(got, want, n, rtol, atol, label);
}

static void check_adamw(struct call *k, const json_t *v, size_t i) {
    char label[64];
    rlhf_adamw how = {.size = sizeof how,
                      .epsilon = numbers_int(v, "tf1"),
                      .lr = numbers_one(v, "lr"),
                      .beta1 = numbers_one(v, "beta1"),
                      .beta2 = numbers_one(v, "beta2"),
                      .eps = numbers_one(v, "eps"),
                      .weight_decay = numbers_one(v, "weight_decay"),
                      .grad_scale = numbers_one(v, "grad_scale")};
    rlhf_dev w = inputs(k, 1, ADAMW_N), m = call_zeros(k, ADAMW_N, RLHF_F32);
    rlhf_dev d = call_zeros(k, ADAMW_N, RLHF_F32);
    for (how.step = 1; how.step <= ADAMW_STEPS; how.step++) {
        rlhf_dev g = inputs(k, 100 + how.step, ADAMW_N);
        KIT_OK(k->c, k->c->adamw(k->c->ctx, w, g, m, d, ADAMW_N, &how));
    }
    snprintf(label, sizeof label, "%s, vector %zu", k->c->name, i);
    check_values(k, w, v, "w", 1, ADAMW_N, 2e-6, 2e-7, label);
    check_values(k, m, v, "m", 1, ADAMW_N, 2e-6, 1e-7, label);
    check_values(k, d, v, "v", 1, ADAMW_N, 2e-6, 1e-9, label);
}

static void check_muon(struct call *k, const json_t *v, size_t i) {
    char label[64];
    const int32_t rows = numbers_int(v, "rows"), cols = numbers_int(v, "cols");
    const uint64_t n = (uint64_t)rows * (uint64_t)cols, stride = (uint64_t)numbers_int(v, "stride");
    const rlhf_muon how = {.size = sizeof how,
                           .nesterov = numbers_int(v, "nesterov"),
                           .ns_steps = numbers_int(v, "steps"),
                           .in_out = numbers_int(v, "in_out"),
                           .lr = numbers_one(v, "lr"),
                           .momentum = numbers_one(v, "momentum"),
                           .weight_decay = numbers_one(v, "weight_decay"),
                           .grad_scale = numbers_one(v, "grad_scale")};
    rlhf_dev w = inputs(k, 2, n), g = inputs(k, 3, n), mom = inputs(k, 4, n);
    KIT_OK(k->c, k->c->muon(k->c->ctx, w, g, mom, rows, cols, &how));
    snprintf(label, sizeof label, "%s, vector %zu, %d x %d", k->c->name, i, rows, cols);
    check_values(k, w, v, "w", stride, n, 1e-6, 1e-6, label);
    check_values(k, mom, v, "mom", stride, n, 1e-6, 1e-6, label);
}

static void check_vectors(struct kit *kit, const char *key, size_t n,
                          void (*check)(struct call *, const json_t *, size_t)) {
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    const json_t *list = numbers_list(vectors, key, n);
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        for (size_t i = 0; i < n; i++) {
            struct call k = {.c = backends[b]};
            check(&k, json_array_get(list, i), i);
            call_finish(&k);
        }
    }
}

static void adamw_equals_torch(void **state) { check_vectors(*state, "adamw", 5, check_adamw); }
static void muon_equals_numpy(void **state) { check_vectors(*state, "muon", 11, check_muon); }

// ---- step by step ----

// Takes one AdamW step of one weight in double, as defined in rlhf/compute.h.
static double adamw_step(double w, double g, double *m, double *v, const rlhf_adamw *a) {
    g *= a->grad_scale;
    *m = a->beta1 * *m + (1.0 - a->beta1) * g;
    *v = a->beta2 * *v + (1.0 - a->beta2) * g * g;
    const double c1 = 1.0 - pow(a->beta1, (double)a->step);
    const double c2 = 1.0 - pow(a->beta2, (double)a->step);
    w -= a->lr * a->weight_decay * w;
    if (a->epsilon == RLHF_ADAM_TF1) return w - a->lr * sqrt(c2) / c1 * *m / (sqrt(*v) + a->eps);
    return w - a->lr * (*m / c1) / (sqrt(*v / c2) + a->eps);
}

// 40 steps over 1003 weights. Each step starts from the backend's own f32 state, so that only the
// rounding of one step is compared.
static void adamw_steps(void **state) {
    enum { N = 1003 };
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu2};
    float w[N], m[N], v[N], g[N], want_w[N], want_m[N], want_v[N];
    for (int b = 0; b < 4; b++) {
        struct call k = {.c = backends[b / 2]};
        rlhf_adamw a = {sizeof(rlhf_adamw), b % 2, 3e-3, 0.9, 0.98, 1e-6, 0.02, 0.7, 0};
        rlhf_dev dw = inputs(&k, 1, N), dm = call_zeros(&k, N, RLHF_F32);
        rlhf_dev dv = call_zeros(&k, N, RLHF_F32), dg = call_zeros(&k, N, RLHF_F32);
        for (a.step = 1; a.step <= 40; a.step++) {
            kit_read(k.c, w, dw, N, RLHF_F32);
            kit_read(k.c, m, dm, N, RLHF_F32);
            kit_read(k.c, v, dv, N, RLHF_F32);
            for (int i = 0; i < N; i++) {
                g[i] = i == 0 ? 0.0f : input(a.step, i) * (i % 3 == 0 ? 1e-4f : 1.0f);
                double mi = (double)m[i], vi = (double)v[i];
                want_w[i] = (float)adamw_step((double)w[i], (double)g[i], &mi, &vi, &a);
                want_m[i] = (float)mi;
                want_v[i] = (float)vi;
            }
            KIT_OK(k.c, k.c->upload(k.c->ctx, dg, g, sizeof g));
            KIT_OK(k.c, k.c->adamw(k.c->ctx, dw, dg, dm, dv, N, &a));
            kit_read(k.c, w, dw, N, RLHF_F32);
            kit_read(k.c, m, dm, N, RLHF_F32);
            kit_read(k.c, v, dv, N, RLHF_F32);
            assert_tensor_close(w, want_w, N, 5e-7, 1e-8, "w");
            assert_tensor_close(m, want_m, N, 5e-7, 1e-8, "m");
            assert_tensor_close(v, want_v, N, 5e-7, 1e-12, "v");
        }
        call_finish(&k);
    }
}

// ---- cpu against reference, threads ----

struct shape {
    int32_t rows, cols, epsilon;
};

static const struct shape shapes[] = {{1, 1, 0},    {1, 97, 1},    {33, 65, 0}, {256, 64, 1},
                                      {64, 256, 0}, {100, 303, 0}, {97, 1, 1}};

static void adamw(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t n = (uint64_t)s->rows * (uint64_t)s->cols;
    const rlhf_adamw a = {sizeof(rlhf_adamw), s->epsilon, 1e-3, 0.9, 0.999, 1e-5, 0.01, 0.5, 7};
    snprintf(out->label, sizeof out->label, "adamw %llu", (unsigned long long)n);
    float *v = call_normal(k, 4, n, 0.1);
    for (uint64_t i = 0; i < n; i++)
        v[i] = fabsf(v[i]);
    rlhf_dev dw = call_floats(k, call_normal(k, 1, n, 1.0), n, RLHF_F32);
    rlhf_dev dg = call_floats(k, call_normal(k, 2, n, 1.0), n, RLHF_F32);
    rlhf_dev dm = call_floats(k, call_normal(k, 3, n, 0.1), n, RLHF_F32);
    rlhf_dev dv = call_floats(k, v, n, RLHF_F32);
    KIT_OK(k->c, k->c->adamw(k->c->ctx, dw, dg, dm, dv, n, &a));
    outputs_add(out, k, "w", dw, RLHF_F32, 1, n, NULL);
    outputs_add(out, k, "m", dm, RLHF_F32, 1, n, NULL);
    outputs_add(out, k, "v", dv, RLHF_F32, 1, n, NULL);
}

static void muon(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t n = (uint64_t)s->rows * (uint64_t)s->cols;
    const rlhf_muon a = {sizeof(rlhf_muon), s->epsilon, 5, s->rows % 2, 0.02, 0.95, 0.01, 0.5};
    snprintf(out->label, sizeof out->label, "muon %d x %d", s->rows, s->cols);
    rlhf_dev dw = call_floats(k, call_normal(k, 1, n, 1e-4), n, RLHF_F32); // a visible update
    rlhf_dev dg = call_floats(k, call_normal(k, 2, n, 1.0), n, RLHF_F32);
    rlhf_dev mom = call_floats(k, call_normal(k, 3, n, 1.0), n, RLHF_F32);
    KIT_OK(k->c, k->c->muon(k->c->ctx, dw, dg, mom, s->rows, s->cols, &a));
    outputs_add(out, k, "w", dw, RLHF_F32, 1, n, NULL);
    outputs_add(out, k, "mom", mom, RLHF_F32, 1, n, NULL);
    // If gradient and momentum are zero, only the decay remains. The result must not be NaN.
    rlhf_dev zero = call_zeros(k, n, RLHF_F32), still = call_zeros(k, n, RLHF_F32);
    KIT_OK(k->c, k->c->muon(k->c->ctx, dw, zero, still, s->rows, s->cols, &a));
    outputs_add(out, k, "w decayed", dw, RLHF_F32, 1, n, NULL);
}

static void sumsq(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t n = 37 * (uint64_t)s->rows * (uint64_t)s->cols;
    double sum[2] = {-1.0, -1.0};
    snprintf(out->label, sizeof out->label, "sumsq %llu", (unsigned long long)n);
    rlhf_dev x = call_floats(k, call_normal(k, 1, n, 1.0), n, RLHF_F32);
    KIT_OK(k->c, k->c->sumsq(k->c->ctx, x, n, &sum[0]));
    KIT_OK(k->c, k->c->sumsq(k->c->ctx, x, 0, &sum[1]));
    outputs_add_host(out, "sum", sum, 1, 2, NULL);
}

static void match(void **state) {
    const struct bound tight = {1e-13, 1e-6}, f64 = {1e-24, 1e-11}, newton = {1e-10, 1e-4};
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_match(*state, adamw, &shapes[i], 0, tight, tight);
        check_match(*state, muon, &shapes[i], 0, newton, newton);
        check_match(*state, sumsq, &shapes[i], 0, f64, f64);
    }
}

// Sets `w` to the result of one Muon step on a matrix of 64 x 256.
static void muon_step(rlhf_compute *c, float w[64 * 256]) {
    const rlhf_muon a = {sizeof(rlhf_muon), 1, 5, 0, 0.02, 0.95, 0.0, 1.0};
    const uint64_t n = 64 * 256;
    struct call k = {.c = c};
    rlhf_dev dw = call_zeros(&k, n, RLHF_F32), mom = call_zeros(&k, n, RLHF_F32);
    rlhf_dev dg = call_floats(&k, call_normal(&k, 2, n, 1.0), n, RLHF_F32);
    KIT_OK(c, c->muon(c->ctx, dw, dg, mom, 64, 256, &a));
    kit_read(c, w, dw, n, RLHF_F32);
    call_finish(&k);
}

// Returns the root mean square of the difference from `want`, divided by the root mean square of
// `want`.
static double distance(const float *got, const float *want, size_t n) {
    double diff = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)got[i] - (double)want[i];
        diff += d * d;
        all += (double)want[i] * (double)want[i];
    }
    return sqrt(diff / all);
}

// Muon's GEMMs use f32 until a bf16 weight exists, and bf16 from then on, even if the other dtype
// is faster.
static void muon_takes_the_dtype_of_the_weights(void **state) {
    const struct kit *kit = *state;
    static float want[64 * 256], got[64 * 256];
    rlhf_compute *c = kit_create(kit->kernels_cpu, 1, 0, 0);
    muon_step(kit->ref, want);
    rlhf_weight *f32 = NULL, *bf16 = NULL;
    KIT_OK(c, c->weight_create(c->ctx, 16, 16, RLHF_F32, 0, &f32));
    muon_step(c, got);
    assert_true(distance(got, want, 64 * 256) < 1e-5);
    KIT_OK(c, c->weight_create(c->ctx, 16, 16, RLHF_BF16, 0, &bf16));
    muon_step(c, got);
    const double rounded = distance(got, want, 64 * 256);
    printf("     in bf16 %.1e from the exact step\n", rounded);
    assert_true(rounded > 1e-4 && rounded < 6e-2);
    c->weight_destroy(c->ctx, f32);
    c->weight_destroy(c->ctx, bf16);
    kit_destroy(c);
}

static void threads(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_threads(*state, adamw, &shapes[i], 0);
        check_threads(*state, muon, &shapes[i], 0);
        check_threads(*state, sumsq, &shapes[i], 0);
    }
}

// A plain version of the CPU backend's loops. Each piece has sixteen running sums, which are added
// in order.
static double sumsq_plain(const float *x, size_t n) {
    enum { PIECE = 65536, SUMS = 16 };
    double sum = 0;
    for (size_t at = 0; at < n; at += PIECE) {
        double running[SUMS] = {0}, part = 0;
        for (size_t i = at; i < n && i < at + PIECE; i++)
            running[i % SUMS] += (double)x[i] * (double)x[i];
        for (size_t j = 0; j < SUMS; j++)
            part += running[j];
        sum += part;
    }
    return sum;
}

static void sumsq_adds_in_a_fixed_order(void **state) {
    const struct kit *kit = *state;
    const uint64_t lengths[] = {1, 15, 16, 17, 31, 4099, 65535, 65536, 65553, 200003};
    if (strcmp(kit->cpu1->name, "cpu") != 0) skip(); // other backends sum in another order
    rlhf_compute *backends[] = {kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        for (size_t i = 0; i < CHECK_COUNT(lengths); i++) {
            struct call k = {.c = backends[b]};
            double sum = -1, want;
            float *x = call_normal(&k, 1, lengths[i], 1.0);
            want = sumsq_plain(x, lengths[i]);
            KIT_OK(k.c, k.c->sumsq(k.c->ctx, call_floats(&k, x, lengths[i], RLHF_F32), lengths[i],
                                   &sum));
            call_finish(&k);
            assert_memory_equal(&sum, &want, sizeof sum);
        }
    }
}

static void sumsq_shows_what_is_not_finite(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        for (size_t i = 0; i < CHECK_COUNT(odd); i++) {
            struct call k = {.c = backends[b]};
            double sum = 0.0;
            float *x = call_normal(&k, 1, 10007, 1.0);
            x[10006 - 3333 * i] = odd[i];
            KIT_OK(k.c, k.c->sumsq(k.c->ctx, call_floats(&k, x, 10007, RLHF_F32), 10007, &sum));
            call_finish(&k);
            if (i == 0) assert_true(isnan(sum));
            if (i == 1 || i == 2) assert_true(isinf(sum));
            if (i == 3) assert_true(isfinite(sum) && sum > 8e76); // it fits in f64
        }
    }
}

// ---- many tensors ----

enum { LIST = 5 };
static const uint64_t list_len[LIST] = {1, 97, 70000, 0, 4099};
static const double list_lr[LIST] = {1e-3, 2e-3, 1e-3, 1, 3e-2}, list_decay[LIST] = {0, 0.01, 0.1};

struct many {
    rlhf_dev g[LIST], w[LIST], m[LIST], v[LIST];
};

// In this list, the fourth tensor is empty, and the second lacks a weight.
static rlhf_tensors make_list(struct call *k, struct many *l, float odd) {
    for (uint64_t i = 0; i < LIST; i++) {
        const uint64_t n = list_len[i];
        float *g = call_normal(k, 10 + i, n, 1.0), *v = call_normal(k, 40 + i, n, 0.1);
        for (uint64_t j = 0; j < n; j++)
            v[j] = fabsf(v[j]);
        if (i == 2 && odd != 0) g[69999] = odd;
        l->g[i] = call_floats(k, g, n, RLHF_F32);
        l->w[i] = i == 1 ? NULL : call_floats(k, call_normal(k, 20 + i, n, 1.0), n, RLHF_F32);
        l->m[i] = i == 1 ? NULL : call_floats(k, call_normal(k, 30 + i, n, 0.1), n, RLHF_F32);
        l->v[i] = i == 1 ? NULL : call_floats(k, v, n, RLHF_F32);
    }
    return (rlhf_tensors){
        sizeof(rlhf_tensors), LIST, list_len, l->g, l->w, l->m, l->v, list_lr, list_decay};
}

static void assert_same(rlhf_compute *c, rlhf_dev a, rlhf_dev b, uint64_t n, const char *what) {
    float *x = calloc(2 * n + 1, sizeof *x), *y = x + n;
    kit_read(c, x, a, n, RLHF_F32);
    kit_read(c, y, b, n, RLHF_F32);
    if (memcmp(x, y, n * sizeof *x) != 0) fail_msg("%s: %s differs in its bits", c->name, what);
    free(x);
}

// Takes the same step as sumsq_many and adamw_many, but by sumsq, adamw and zero for each tensor.
static rlhf_clip one_by_one(rlhf_compute *c, const struct many *l, const rlhf_adamw *how,
                            double max_norm, int32_t skip) {
    rlhf_clip clip = {.scale = 1};
    for (int i = 0; i < LIST; i++) {
        double part = 0;
        KIT_OK(c, c->sumsq(c->ctx, l->g[i], list_len[i], &part));
        clip.sumsq += part;
    }
    clip.norm = sqrt(clip.sumsq);
    if (max_norm > 0 && clip.norm > max_norm) clip.scale = max_norm / clip.norm;
    clip.skip = skip || !isfinite(clip.norm);
    for (int i = 0; i < LIST; i++) {
        rlhf_adamw a = *how;
        a.lr *= list_lr[i];
        a.weight_decay *= list_decay[i];
        a.grad_scale *= clip.scale;
        if (!clip.skip && l->w[i])
            KIT_OK(c, c->adamw(c->ctx, l->w[i], l->g[i], l->m[i], l->v[i], list_len[i], &a));
        KIT_OK(c, c->zero(c->ctx, l->g[i], list_len[i] * sizeof(float)));
    }
    return clip;
}

static void check_many(rlhf_compute *c, double max_norm, int32_t skip, float odd) {
    const rlhf_adamw how = {sizeof how, RLHF_ADAM_TORCH, 0.5, 0.9, 0.999, 1e-5, 2, 0.25, 7};
    struct call a = {.c = c}, b = {.c = c};
    struct many many, single;
    const rlhf_tensors list = make_list(&a, &many, odd);
    make_list(&b, &single, odd);
    rlhf_dev at = call_zeros(&a, sizeof(rlhf_clip) / sizeof(float), RLHF_F32);
    rlhf_clip got, want = one_by_one(c, &single, &how, max_norm, skip);
    KIT_OK(c, c->sumsq_many(c->ctx, &list, max_norm, skip, at));
    KIT_OK(c, c->adamw_many(c->ctx, &list, &how, at));
    KIT_OK(c, c->download(c->ctx, &got, at, sizeof got));
    if (isnan(want.norm)) { // for NaN, checks only that it is a NaN
        assert_true(isnan(got.norm) && isnan(got.sumsq));
        got.norm = got.sumsq = want.norm = want.sumsq = 0;
    }
    assert_memory_equal(&got, &want, sizeof got);
    for (int i = 0; i < LIST; i++) {
        assert_same(c, many.g[i], single.g[i], list_len[i], "a gradient");
        if (i == 1) continue;
        assert_same(c, many.w[i], single.w[i], list_len[i], "a weight");
        assert_same(c, many.m[i], single.m[i], list_len[i], "m");
        assert_same(c, many.v[i], single.v[i], list_len[i], "v");
    }
    call_finish(&a);
    call_finish(&b);
}

static void many_tensors_are_one_by_one(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        check_many(backends[b], 0, 0, 0);     // no clipping
        check_many(backends[b], 1e9, 0, 0);   // nothing to clip
        check_many(backends[b], 0.5, 0, 0);   // clipped
        check_many(backends[b], 0.5, 1, 0);   // skipped
        check_many(backends[b], 0.5, 0, NAN); // not finite
        check_many(backends[b], 0.5, 0, INFINITY);
    }
}

static void many_tensors_without_a_clip(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    const rlhf_adamw how = {sizeof how, RLHF_ADAM_TF1, 1, 0.9, 0.999, 1e-5, 1, 1, 3};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        rlhf_compute *c = backends[b];
        struct call a = {.c = c}, s = {.c = c};
        struct many many, single;
        const rlhf_tensors list = make_list(&a, &many, 0);
        make_list(&s, &single, 0);
        one_by_one(c, &single, &how, 0, 0);
        KIT_OK(c, c->adamw_many(c->ctx, &list, &how, NULL));
        for (int i = 0; i < LIST; i++)
            if (i != 1) assert_same(c, many.w[i], single.w[i], list_len[i], "a weight");
        rlhf_adamw bad = how;
        bad.step = 0;
        assert_true(c->adamw_many(c->ctx, &list, &bad, NULL) < 0);
        call_finish(&a);
        call_finish(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(adamw_equals_torch),
                                       cmocka_unit_test(muon_equals_numpy),
                                       cmocka_unit_test(adamw_steps),
                                       cmocka_unit_test(match),
                                       cmocka_unit_test(muon_takes_the_dtype_of_the_weights),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(many_tensors_are_one_by_one),
                                       cmocka_unit_test(many_tensors_without_a_clip),
                                       cmocka_unit_test(sumsq_adds_in_a_fixed_order),
                                       cmocka_unit_test(sumsq_shows_what_is_not_finite)};
    return cmocka_run_group_tests_name("kernels: optimizer", tests, setup, teardown);
}
