// test_lm_head.c: compares the language-model head and its derivative with the reference, with
// temperature, top-k and top-p. Also tests that other rows, the number of threads, and a small
// workspace (which leads to many blocks of rows) do not change the bits.
#include "kit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    uint32_t rows;
    int32_t d, vocab, dtype, top_k, support; // support: one per row, nothing truncated
    double top_p, inv_temperature;
    int32_t kl, flags;
    double logit_scale, softcap;
};

static const struct bound value_bound = {1e-10, 5e-5};
// Bounds of gradients. A few rows of the weight's gradient are much larger than the others, and
// their errors are larger, too. So the largest error, divided by the root mean square of the
// gradient, may be larger than value_bound allows.
static const struct bound f32_bound = {1e-10, 5e-4}, bf16_bound = {1e-6, 2e-2};

enum { OI = RLHF_WEIGHT_OUT_IN };

static const struct shape shapes[] = {
    {5, 16, 97, RLHF_F32, 0, 0, 1.0, 1.0, 1, OI, 0.0, 0.0},
    {33, 64, 1000, RLHF_F32, 0, 0, 1.0, 1.4, 1, OI, 0.0, 0.0},
    {20, 256, 8192, RLHF_F32, 0, 0, 1.0, 1.0, 1, OI, 0.0, 0.0},
    {9, 64, 1000, RLHF_F32, 20, 0, 1.0, 1.0, 1, 0, 0.0, 0.0},
    {9, 64, 1000, RLHF_F32, 0, 0, 0.8, 0.7, 1, OI, 0.0, 0.0},
    {9, 64, 1000, RLHF_F32, 50, 0, 0.9, 1.0, 0, 0, 0.0, 0.0},
    {9, 64, 1000, RLHF_F32, 1, 0, 1.0, 1.0, 0, OI, 0.0, 0.0},
    {3, 64, 50257, RLHF_F32, 0, 0, 1.0, 1.0, 0, OI, 0.0, 0.0},
    {5, 16, 97, RLHF_BF16, 0, 0, 1.0, 1.0, 1, OI, 0.0, 0.0},
    {33, 64, 1000, RLHF_BF16, 0, 0, 1.0, 1.4, 1, OI, 0.0, 0.0},
    {20, 256, 8192, RLHF_BF16, 0, 0, 1.0, 1.0, 1, OI, 0.0, 0.0},
    {9, 64, 1000, RLHF_BF16, 20, 0, 1.0, 1.0, 1, 0, 0.0, 0.0},
    {9, 64, 1000, RLHF_BF16, 0, 0, 0.8, 0.7, 1, OI, 0.0, 0.0},
    {9, 64, 1000, RLHF_BF16, 50, 0, 0.9, 1.0, 0, 0, 0.0, 0.0},
    {2, 96, 50257, RLHF_BF16, 0, 0, 1.0, 1.0, 0, OI, 0.0, 0.0},
    {9, 64, 1000, RLHF_F32, 0, 1, 1.0, 1.0, 1, 0, 0.0, 0.0},
    {33, 64, 1000, RLHF_F32, 0, 1, 1.0, 1.4, 1, OI, 0.0, 0.0},
    {9, 64, 97, RLHF_BF16, 0, 1, 1.0, 1.0, 0, OI, 0.0, 0.0},
    {9, 64, 1000, RLHF_BF16, 0, 1, 1.0, 0.7, 1, OI, 0.0, 0.0},
    {9, 64, 1003, RLHF_F32, 0, 0, 1.0, 1.4, 1, OI, 0.125, 0.0},
    {33, 64, 1003, RLHF_F32, 0, 0, 1.0, 0.7, 1, 0, 0.0, 2.0},
    {9, 64, 1000, RLHF_F32, 20, 0, 0.9, 1.0, 1, OI, 0.5, 5.0},
    {9, 64, 1000, RLHF_F32, 0, 1, 1.0, 1.4, 0, OI, 0.0, 2.0},
    {33, 64, 1003, RLHF_BF16, 0, 0, 1.0, 0.7, 1, 0, 0.0, 2.0},
    {9, 64, 1000, RLHF_BF16, 0, 1, 1.0, 1.0, 1, OI, 0.125, 30.0},
    {9, 64, 1000, RLHF_BF16, 20, 0, 0.9, 1.0, 1, OI, 0.5, 5.0},
};

static void label(struct outputs *out, const char *op, const struct shape *s) {
    snprintf(out->label, sizeof out->label,
             "%s %u x %d x %d %s%s%s%s T %.2f k %d p %.2f scale %g cap %g", op, s->rows, s->d,
             s->vocab, s->dtype == RLHF_BF16 ? "bf16" : "f32", s->kl ? " kl" : "",
             s->flags & OI ? " [n,k]" : "", s->support ? " support" : "", 1.0 / s->inv_temperature,
             s->top_k, s->top_p, s->logit_scale, s->softcap);
}

// Returns the rows' supports as bits. Each support holds the target and other ids. Some of the
// 32-bit words are all zeros, some all ones, and some have single bits.
static rlhf_dev make_support(struct call *k, int32_t vocab, const int32_t *target) {
    const uint64_t words = rlhf_support_words(vocab);
    int32_t *host = call_host(k, k->n_rows * words * sizeof *host);
    uint32_t *bits = (uint32_t *)host;
    memset(bits, 0, k->n_rows * words * sizeof *bits);
    for (uint32_t i = 0; i < k->n_rows; i++)
        for (int32_t v = 0; v < vocab; v++) {
            const uint32_t w = (uint32_t)v / 32 + k->rows[i];
            const int in = w % 4 == 0 || (w % 4 == 1 && (v * 7 + (int32_t)k->rows[i]) % 3 == 0);
            if (in || v == target[i]) bits[i * words + (uint32_t)v / 32] |= 1u << v % 32;
        }
    return call_ints(k, host, k->n_rows * words);
}

// Inputs of a call. The reference model is a slightly changed policy, as in training. In even rows,
// the targets are likely tokens, as from sampling, so that truncated supports contain them.
static rlhf_lm_head make_head(struct call *k, const struct shape *s, rlhf_dist *dist) {
    const uint64_t d = (uint64_t)s->d, vocab = (uint64_t)s->vocab, n = k->n_rows;
    *dist = (rlhf_dist)RLHF_DIST(s->inv_temperature, s->top_p, s->top_k, 0);
    rlhf_lm_head a = {.size = sizeof a,
                      .rows = k->n_rows,
                      .d = s->d,
                      .vocab = s->vocab,
                      .dtype = s->dtype,
                      .dist = dist,
                      .logit_scale = s->logit_scale,
                      .softcap = s->softcap,
                      .ref_logit_scale = 2.0 * s->logit_scale,
                      .ref_softcap = 1.5 * s->softcap};
    float *w = call_normal(k, 1, vocab * d, 0.2), *x = call_normal_rows(k, 2, d, 1.0);
    a.weight =
        call_weight(k, w, s->d, s->vocab, s->dtype, (uint32_t)s->flags | RLHF_WEIGHT_BACKWARD);
    int32_t *target = call_host(k, n * sizeof *target);
    for (uint32_t i = 0; i < n; i++) {
        target[i] = (int32_t)(k->rows[i] * 7919u % (uint32_t)s->vocab);
        if (k->rows[i] % 2) continue;
        for (uint64_t c = 0; c < d; c++) {
            const uint64_t at =
                s->flags & OI ? (uint64_t)target[i] * d + c : c * vocab + (uint64_t)target[i];
            x[i * d + c] += 5.0f * w[at];
        }
    }
    a.hidden = call_floats(k, x, n * d, s->dtype);
    a.target = call_ints(k, target, n);
    a.logp = call_zeros(k, n, RLHF_F32);
    a.entropy = call_zeros(k, n, RLHF_F32);
    if (s->support) a.support = make_support(k, s->vocab, target);
    if (!s->kl) return a;
    float *dx = call_normal_rows(k, 3, d, 0.3), *dw = call_normal(k, 4, vocab * d, 0.05);
    for (uint64_t i = 0; i < n * d; i++)
        dx[i] += x[i];
    for (uint64_t i = 0; i < vocab * d; i++)
        dw[i] += w[i];
    a.kl = call_zeros(k, n, RLHF_F32);
    a.ref_hidden = call_floats(k, dx, n * d, s->dtype);
    a.ref_weight = call_weight(k, dw, s->d, s->vocab, s->dtype, (uint32_t)s->flags);
    return a;
}

static void lm_head(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    rlhf_dist dist;
    label(out, "lm_head", s);
    const rlhf_lm_head a = make_head(k, s, &dist);
    KIT_OK(k->c, k->c->lm_head(k->c->ctx, &a));
    outputs_add(out, k, "logp", a.logp, RLHF_F32, k->n_rows, 1, k->rows);
    outputs_add(out, k, "entropy", a.entropy, RLHF_F32, k->n_rows, 1, k->rows);
    if (a.kl) outputs_add(out, k, "kl", a.kl, RLHF_F32, k->n_rows, 1, k->rows);
    // The log-probs do not change if neither `entropy` nor `kl` is requested.
    rlhf_lm_head b = a;
    b.entropy = b.kl = NULL;
    b.logp = call_zeros(k, k->n_rows, RLHF_F32);
    KIT_OK(k->c, k->c->lm_head(k->c->ctx, &b));
    outputs_add(out, k, "logp alone", b.logp, RLHF_F32, k->n_rows, 1, k->rows);
}

// If `forward` is 1, runs right after lm_head with the same arguments. If it is 0, runs without
// lm_head.
static void backward(struct call *k, const struct shape *s, struct outputs *out, int forward) {
    const uint64_t d = (uint64_t)s->d, n = k->n_rows, weights = d * (uint64_t)s->vocab;
    rlhf_dist dist;
    label(out, forward ? "lm_head + bwd" : "lm_head_bwd", s);
    rlhf_lm_head a = make_head(k, s, &dist);
    a.d_logp = call_floats(k, call_normal_rows(k, 5, 1, 1.0), n, RLHF_F32);
    a.d_entropy = call_floats(k, call_normal_rows(k, 6, 1, 1.0), n, RLHF_F32);
    if (s->kl) a.d_kl = call_floats(k, call_normal_rows(k, 7, 1, 1.0), n, RLHF_F32);
    a.d_hidden = call_zeros(k, n * d, s->dtype);
    a.d_weight = call_floats(k, call_normal(k, 8, weights, 0.1), weights, RLHF_F32);
    if (forward) KIT_OK(k->c, k->c->lm_head(k->c->ctx, &a));
    KIT_OK(k->c, k->c->lm_head_bwd(k->c->ctx, &a));
    outputs_add(out, k, "d_hidden", a.d_hidden, s->dtype, n, d, k->rows);
    outputs_add(out, k, "d_weight", a.d_weight, RLHF_F32, (uint64_t)s->vocab, d, NULL);
    out->o[out->n - 1].dtype = s->dtype; // compared with the bound of the GEMM's dtype
}

static void lm_head_bwd(struct call *k, const void *shape, struct outputs *out) {
    backward(k, shape, out, 0);
}

static void lm_head_then_bwd(struct call *k, const void *shape, struct outputs *out) {
    backward(k, shape, out, 1);
}

static void match(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++)
        check_match(*state, lm_head, &shapes[i], shapes[i].rows, value_bound, value_bound);
}

static void backward_matches(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        if (shapes[i].vocab > 10000) continue;
        check_match(*state, lm_head_bwd, &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
        check_match(*state, lm_head_then_bwd, &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
    }
}

// The logits of this reference are hundreds apart. The KL to it must not overflow.
static void loud(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    rlhf_dist dist;
    label(out, "lm_head, loud reference", s);
    rlhf_lm_head a = make_head(k, s, &dist);
    a.ref_hidden = call_floats(k, call_normal_rows(k, 9, (uint64_t)s->d, 100.0),
                               k->n_rows * (uint64_t)s->d, s->dtype);
    KIT_OK(k->c, k->c->lm_head(k->c->ctx, &a));
    outputs_add(out, k, "kl", a.kl, RLHF_F32, k->n_rows, 1, k->rows);
}

static void loud_reference(void **state) {
    const struct shape s[] = {{9, 64, 1000, RLHF_F32, 0, 0, 1.0, 1.0, 1, OI, 0.0, 0.0},
                              {9, 64, 1000, RLHF_BF16, 0, 0, 1.0, 1.0, 1, OI, 0.0, 0.0}};
    for (size_t i = 0; i < CHECK_COUNT(s); i++)
        check_match(*state, loud, &s[i], s[i].rows, value_bound, value_bound);
}

// The targets have a logit of -inf, as with an overflowed column of the weight. The gradient of
// their log-prob is zero with respect to all logits.
static void impossible(struct call *k, const void *shape, struct outputs *out) {
    enum { GONE = 40, D = 16, VOCAB = 97 };
    const int32_t dtype = *(const int32_t *)shape;
    const uint32_t n = k->n_rows;
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    snprintf(out->label, sizeof out->label, "lm_head_bwd of targets at -inf, %s",
             dtype == RLHF_BF16 ? "bf16" : "f32");
    rlhf_lm_head a = {
        .size = sizeof a, .rows = n, .d = D, .vocab = VOCAB, .dtype = dtype, .dist = &dist};
    float *w = call_normal(k, 1, VOCAB * D, 0.2), *x = call_normal_rows(k, 2, D, 1.0);
    int32_t *target = call_host(k, n * sizeof *target);
    for (int c = 0; c < D; c++)
        w[GONE * D + c] = -INFINITY;
    for (uint32_t i = 0; i < n * D; i++)
        x[i] = fabsf(x[i]) + 0.1f;
    for (uint32_t i = 0; i < n; i++)
        target[i] = i % 2 ? GONE : 7;
    a.weight = call_weight(k, w, D, VOCAB, dtype, OI | RLHF_WEIGHT_BACKWARD);
    a.hidden = call_floats(k, x, n * D, dtype);
    a.target = call_ints(k, target, n);
    a.logp = call_zeros(k, n, RLHF_F32);
    a.d_logp = call_floats(k, call_normal_rows(k, 5, 1, 1.0), n, RLHF_F32);
    a.d_weight = call_zeros(k, VOCAB * D, RLHF_F32);
    KIT_OK(k->c, k->c->lm_head(k->c->ctx, &a));
    KIT_OK(k->c, k->c->lm_head_bwd(k->c->ctx, &a));
    outputs_add(out, k, "d_weight", a.d_weight, RLHF_F32, VOCAB, D, NULL);
    out->o[out->n - 1].dtype = dtype;
}

static void impossible_targets(void **state) {
    const int32_t dtypes[] = {RLHF_F32, RLHF_BF16};
    for (size_t i = 0; i < CHECK_COUNT(dtypes); i++)
        check_match(*state, impossible, &dtypes[i], 6, f32_bound, bf16_bound);
}

static void rows(void **state) {
    struct kit *k = *state;
    rlhf_compute *backends[] = {k->cpu1, k->cpu2, k->ref};
    const struct shape many[] = {{70, 64, 1000, RLHF_F32, 0, 0, 1.0, 1.0, 1, OI, 0.0, 0.0},
                                 {70, 64, 1000, RLHF_BF16, 0, 0, 1.0, 1.4, 1, OI, 0.0, 0.0},
                                 {40, 64, 97, RLHF_F32, 10, 0, 0.9, 1.0, 1, 0, 0.0, 0.0},
                                 {40, 64, 97, RLHF_BF16, 10, 0, 0.9, 1.0, 1, 0, 0.0, 0.0},
                                 {40, 64, 8192, RLHF_BF16, 0, 0, 1.0, 1.0, 0, OI, 0.0, 0.0},
                                 {40, 64, 97, RLHF_F32, 0, 1, 1.0, 1.0, 1, 0, 0.0, 0.0},
                                 {40, 64, 1000, RLHF_BF16, 0, 1, 1.0, 1.4, 1, OI, 0.0, 0.0}};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(many); i++)
            if (backends[b] != k->ref || i == 2)
                check_rows(backends[b], lm_head, &many[i], many[i].rows);
}

static void threads(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_threads(*state, lm_head, &shapes[i], shapes[i].rows);
        if (shapes[i].vocab > 10000) continue;
        check_threads(*state, lm_head_bwd, &shapes[i], shapes[i].rows);
        check_threads(*state, lm_head_then_bwd, &shapes[i], shapes[i].rows);
    }
}

// A workspace of 1 MiB leads to many row blocks, which do not affect any bit.
static void small_workspace(void **state) {
    struct kit *k = *state;
    struct kit small = *k;
    const struct shape s[] = {{70, 64, 8192, RLHF_F32, 0, 0, 1.0, 1.0, 1, OI, 0.0, 0.0},
                              {70, 64, 8192, RLHF_BF16, 0, 0, 1.0, 1.0, 1, OI, 0.0, 0.0},
                              {70, 64, 8192, RLHF_BF16, 0, 1, 1.0, 1.0, 1, OI, 0.0, 0.0}};
    small.cpu2 = kit_create(k->kernels_cpu, 1, 0, 1 << 20);
    for (size_t i = 0; i < CHECK_COUNT(s); i++) {
        check_threads(&small, lm_head, &s[i], s[i].rows);
        check_threads(&small, lm_head_bwd, &s[i], s[i].rows);
        check_threads(&small, lm_head_then_bwd, &s[i], s[i].rows);
    }
    kit_destroy(small.cpu2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(match),
                                       cmocka_unit_test(backward_matches),
                                       cmocka_unit_test(impossible_targets),
                                       cmocka_unit_test(loud_reference),
                                       cmocka_unit_test(rows),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(small_workspace)};
    return cmocka_run_group_tests_name("kernels: lm_head", tests, kit_setup, kit_teardown);
}
