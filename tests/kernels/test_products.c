// test_products.c: products have the bits that docs/arithmetic-v1.md defines. Here they are
// computed one multiplication at a time, as the page says.
#include "kit.h"
#include <math.h>
#include <string.h>

// A product [m, n] = a [m, k] b [k, n], to which `bias` and `old` are added unless they are NULL.
struct product {
    const float *a, *b; // a[i * a_row + s * a_step], b[s * b_step + j * b_col]
    size_t a_row, a_step, b_step, b_col;
    size_t m, k, n;
    int32_t dtype, reserved;
    const float *bias, *old; // [n], [m, n]
};

// A denormal becomes a zero of the same sign.
static float flush(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0.0f, x) : x; }

static float multiply_add(float a, float b, float c) {
    return flush(fmaf(flush(a), flush(b), flush(c)));
}

// The chain over the elements from .. to - 1 of k.
static float chain(const struct product *p, size_t i, size_t j, size_t from, size_t to) {
    const float *a = p->a + i * p->a_row, *b = p->b + j * p->b_col;
    float c = 0.0f;
    if (p->dtype == RLHF_F32) {
        for (size_t s = from; s < to; s++)
            c = fmaf(a[s * p->a_step], b[s * p->b_step], c);
        return c;
    }
    for (size_t s = from; s < to; s += 2) {
        const int whole = s + 1 < to;
        c = multiply_add(whole ? a[(s + 1) * p->a_step] : 0.0f,
                         whole ? b[(s + 1) * p->b_step] : 0.0f, c);
        c = multiply_add(a[s * p->a_step], b[s * p->b_step], c);
    }
    return c;
}

// The sum of one pass.
static float pass(const struct product *p, size_t i, size_t j, size_t from, size_t to) {
    const size_t length = p->dtype == RLHF_F32 ? 64 : to - from;
    float sum = 0.0f;
    for (size_t s = from; s < to; s += length) {
        const float c = chain(p, i, j, s, to - s < length ? to : s + length);
        sum = s == from ? c : sum + c;
    }
    return sum;
}

// Element [i, j] of the result.
static float element(const struct product *p, size_t i, size_t j) {
    const size_t length = p->k <= 4096 ? p->k : 2048;
    float sum = p->old ? p->old[i * p->n + j] : 0.0f;
    for (size_t s = 0; s < p->k; s += length) {
        const size_t end = p->k - s < length ? p->k : s + length;
        float part = pass(p, i, j, s, end);
        if (p->bias && end == p->k) part += p->bias[j];
        sum = s == 0 && !p->old ? part : sum + part;
    }
    return sum;
}

// n numbers. Every `step`-th one is small, so that products of two such numbers are denormal.
static float *numbers(struct call *k, uint64_t tag, uint64_t n, uint64_t step, int32_t dtype) {
    float *x = call_normal(k, tag, n, 1.0);
    for (uint64_t i = 0; i < n; i++) {
        if (i % step == 0) x[i] *= 0x1p-66f;
        if (dtype == RLHF_BF16) x[i] = kit_bf16(x[i]);
    }
    return x;
}

// Compares the result `out` with the definition.
static void compare(struct call *k, const char *op, const struct product *p, rlhf_dev out,
                    int32_t out_dtype) {
    float *got = call_host(k, p->m * p->n * sizeof *got);
    kit_read(k->c, got, out, p->m * p->n, out_dtype);
    for (size_t i = 0; i < p->m * p->n; i++) {
        float want = element(p, i / p->n, i % p->n);
        if (out_dtype == RLHF_BF16) want = kit_bf16(flush(want));
        if (memcmp(&got[i], &want, sizeof want) != 0)
            fail_msg("%s, k %zu, %s: element %zu is %a, defined is %a", op, p->k,
                     p->dtype == RLHF_F32 ? "f32" : "bf16", i, (double)got[i], (double)want);
    }
}

// Values to which a result is added. Those of column 0 are 0, so that small sums are seen.
static float *olds(struct call *k, uint64_t tag, size_t m, size_t n) {
    float *x = call_normal(k, tag, m * n, 1.0);
    for (size_t i = 0; i < m; i++)
        x[i * n] = 0.0f;
    return x;
}

static void linear(rlhf_compute *c, size_t m, size_t k, size_t n, int32_t dtype, int adds) {
    struct call call = {.c = c};
    const float *x = numbers(&call, 1, m * k, 2, dtype), *w = numbers(&call, 2, k * n, n, dtype);
    const float *bias = olds(&call, 3, 1, n), *old = olds(&call, 4, m, n);
    const struct product p = {
        x, w, k, 1, n, 1, m, k, n, dtype, 0, adds ? bias : NULL, adds ? old : NULL};
    rlhf_weight *weight =
        call_weight(&call, w, (int32_t)k, (int32_t)n, dtype, RLHF_WEIGHT_BACKWARD);
    rlhf_dev out = call_floats(&call, old, m * n, RLHF_F32);
    KIT_OK(c, c->linear(c->ctx, out, RLHF_F32, adds, call_floats(&call, x, m * k, dtype), weight,
                        adds ? call_floats(&call, bias, n, RLHF_F32) : NULL, (uint32_t)m));
    compare(&call, adds ? "linear, added" : "linear", &p, out, RLHF_F32);
    call_finish(&call);
}

// A linear layer and its dx whose results are bf16.
static void narrowed(rlhf_compute *c, size_t m, size_t k, size_t n) {
    struct call call = {.c = c};
    const float *x = numbers(&call, 11, m * k, 2, RLHF_BF16);
    const float *w = numbers(&call, 12, k * n, n, RLHF_BF16), *bias = olds(&call, 13, 1, n);
    struct product p = {x, w, k, 1, n, 1, m, k, n, RLHF_BF16, 0, bias, NULL};
    rlhf_weight *weight =
        call_weight(&call, w, (int32_t)k, (int32_t)n, RLHF_BF16, RLHF_WEIGHT_BACKWARD);
    rlhf_weight *turned =
        call_weight(&call, w, (int32_t)n, (int32_t)k, RLHF_BF16, RLHF_WEIGHT_BACKWARD);
    rlhf_dev in = call_floats(&call, x, m * k, RLHF_BF16);
    rlhf_dev out = call_zeros(&call, m * n, RLHF_BF16);
    KIT_OK(c, c->linear(c->ctx, out, RLHF_BF16, 0, in, weight,
                        call_floats(&call, bias, n, RLHF_F32), (uint32_t)m));
    compare(&call, "linear to bf16", &p, out, RLHF_BF16);
    KIT_OK(c, c->linear_dx(c->ctx, out, RLHF_BF16, 0, in, turned, (uint32_t)m));
    p.b_step = 1, p.b_col = k, p.bias = NULL; // w as [n, k]
    compare(&call, "linear_dx to bf16", &p, out, RLHF_BF16);
    call_finish(&call);
}

// dx [m, n] = dy w^T, where dy is [m, k] and w is [n, k].
static void linear_dx(rlhf_compute *c, size_t m, size_t k, size_t n, int32_t dtype) {
    struct call call = {.c = c};
    const float *dy = numbers(&call, 9, m * k, 2, dtype), *w = numbers(&call, 10, n * k, n, dtype);
    const struct product p = {dy, w, k, 1, 1, k, m, k, n, dtype, 0, NULL, NULL};
    rlhf_weight *weight =
        call_weight(&call, w, (int32_t)n, (int32_t)k, dtype, RLHF_WEIGHT_BACKWARD);
    rlhf_dev dx = call_zeros(&call, m * n, RLHF_F32);
    KIT_OK(c, c->linear_dx(c->ctx, dx, RLHF_F32, 0, call_floats(&call, dy, m * k, dtype), weight,
                           (uint32_t)m));
    compare(&call, "linear_dx", &p, dx, RLHF_F32);
    call_finish(&call);
}

// dw [m, n] += x^T dy, where x is [k, m] and dy is [k, n].
static void linear_dw(rlhf_compute *c, size_t m, size_t k, size_t n, int32_t dtype) {
    struct call call = {.c = c};
    const float *x = numbers(&call, 5, k * m, m, dtype), *dy = numbers(&call, 6, k * n, n, dtype);
    const float *old = olds(&call, 7, m, n);
    const struct product p = {x, dy, 1, m, n, 1, m, k, n, dtype, 0, NULL, old};
    rlhf_weight *weight = call_weight(&call, call_normal(&call, 8, m * n, 1.0), (int32_t)m,
                                      (int32_t)n, dtype, RLHF_WEIGHT_BACKWARD);
    rlhf_dev dw = call_floats(&call, old, m * n, RLHF_F32);
    KIT_OK(c, c->linear_dw(c->ctx, dw, NULL, call_floats(&call, x, k * m, dtype),
                           call_floats(&call, dy, k * n, dtype), weight, (uint32_t)k));
    compare(&call, "linear_dw", &p, dw, RLHF_F32);
    call_finish(&call);
}

static void all_products(struct kit *kit, size_t m, size_t k, size_t n, int32_t dtype) {
    linear(kit->cpu1, m, k, n, dtype, 0);
    linear(kit->cpu2, m, k, n, dtype, 1);
    linear_dx(kit->cpu2, m, k, n, dtype);
    linear_dw(kit->cpu2, m, k, n, dtype);
    if (dtype == RLHF_BF16) narrowed(kit->cpu2, m, k, n);
}

static void products_are_as_defined(void **state) {
    struct kit *kit = *state;
    static const size_t sizes[] = {1, 2, 63, 64, 65, 130, 1101, 4096, 4097, 6500};
    static const int32_t dtypes[] = {RLHF_F32, RLHF_BF16};
    if (!(kit->cpu1->flags & RLHF_COMPUTE_ROW_EXACT) || kit->cpu1->device != RLHF_DEVICE_CPU)
        skip();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t d = 0; d < 2; d++) {
            const char *name =
                dtypes[d] == RLHF_F32 ? kit->cpu1->arithmetic_f32 : kit->cpu1->arithmetic_bf16;
            if (!name || strcmp(name, "v1") != 0) continue; // with AMX, bf16 has another name
            all_products(kit, 3, sizes[i], 5, dtypes[d]);
            if (sizes[i] == 130) all_products(kit, 27, 130, 130, dtypes[d]); // whole, packed tiles
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_as_defined)};
    return cmocka_run_group_tests_name("kernels: products", tests, kit_setup, kit_teardown);
}
