// test_products.c: products have the bits that docs/arithmetic-v1.md defines. Here they are
// computed one multiplication at a time, as the page says.
#include "kit.h"
#include <math.h>
#include <string.h>

enum { M = 3, N = 5 };

// Numbers of a product [m, n] = a [m, k] b [k, n].
struct product {
    const float *a, *b; // a[i * a_row + s * a_step], b[s * b_step + j * b_col]
    size_t a_row, a_step, b_step, b_col;
    size_t k;
    int32_t dtype;
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

// The sum of one pass. `old` is the value to which it is added; NULL: none.
static float pass(const struct product *p, size_t i, size_t j, size_t from, size_t to) {
    const size_t length = p->dtype == RLHF_F32 ? 64 : to - from;
    float sum = 0.0f;
    for (size_t s = from; s < to; s += length) {
        const float c = chain(p, i, j, s, to - s < length ? to : s + length);
        sum = s == from ? c : sum + c;
    }
    return sum;
}

// Element [i, j] of the product plus `bias`, added to `old`. NULL means that there is none.
static float element(const struct product *p, size_t i, size_t j, const float *bias,
                     const float *old) {
    const size_t length = p->k <= 4096 ? p->k : 2048;
    float sum = old ? *old : 0.0f;
    for (size_t s = 0; s < p->k; s += length) {
        const size_t end = p->k - s < length ? p->k : s + length;
        float part = pass(p, i, j, s, end);
        if (bias && end == p->k) part += *bias;
        sum = s == 0 && !old ? part : sum + part;
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

static void compare(const float *got, const float *want, uint64_t n, const char *op, size_t k,
                    int32_t dtype) {
    if (memcmp(got, want, n * sizeof *got) == 0) return;
    for (uint64_t i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], sizeof *got) != 0)
            fail_msg("%s, k %zu, %s: element %llu is %a, defined is %a", op, k,
                     dtype == RLHF_F32 ? "f32" : "bf16", (unsigned long long)i, (double)got[i],
                     (double)want[i]);
}

static void linear(rlhf_compute *c, size_t k, int32_t dtype, int adds) {
    struct call call = {.c = c};
    const float *x = numbers(&call, 1, M * k, 2, dtype), *w = numbers(&call, 2, k * N, N, dtype);
    const float *bias = call_normal(&call, 3, N, 1.0), *old = call_normal(&call, 4, M * N, 1.0);
    const struct product p = {x, w, k, 1, N, 1, k, dtype};
    float got[M * N], want[M * N];
    for (size_t i = 0; i < M * N; i++)
        want[i] = element(&p, i / N, i % N, adds ? &bias[i % N] : NULL, adds ? &old[i] : NULL);
    rlhf_weight *weight = call_weight(&call, w, (int32_t)k, N, dtype, RLHF_WEIGHT_BACKWARD);
    rlhf_dev out = call_floats(&call, old, M * N, RLHF_F32);
    KIT_OK(c, c->linear(c->ctx, out, RLHF_F32, adds, call_floats(&call, x, M * k, dtype), weight,
                        adds ? call_floats(&call, bias, N, RLHF_F32) : NULL, M));
    kit_read(c, got, out, M * N, RLHF_F32);
    compare(got, want, M * N, adds ? "linear, added" : "linear", k, dtype);
    call_finish(&call);
}

// dw [M, N] += x^T dy, where x is [k, M] and dy is [k, N].
static void linear_dw(rlhf_compute *c, size_t k, int32_t dtype) {
    struct call call = {.c = c};
    const float *x = numbers(&call, 5, k * M, M, dtype), *dy = numbers(&call, 6, k * N, N, dtype);
    const float *old = call_normal(&call, 7, M * N, 1.0);
    const struct product p = {x, dy, 1, M, N, 1, k, dtype};
    float got[M * N], want[M * N];
    for (size_t i = 0; i < M * N; i++)
        want[i] = element(&p, i / N, i % N, NULL, &old[i]);
    rlhf_weight *weight =
        call_weight(&call, call_normal(&call, 8, M * N, 1.0), M, N, dtype, RLHF_WEIGHT_BACKWARD);
    rlhf_dev dw = call_floats(&call, old, M * N, RLHF_F32);
    KIT_OK(c, c->linear_dw(c->ctx, dw, NULL, call_floats(&call, x, k * M, dtype),
                           call_floats(&call, dy, k * N, dtype), weight, (uint32_t)k));
    kit_read(c, got, dw, M * N, RLHF_F32);
    compare(got, want, M * N, "linear_dw", k, dtype);
    call_finish(&call);
}

static void products_are_as_defined(void **state) {
    struct kit *kit = *state;
    static const size_t sizes[] = {1, 2, 63, 64, 65, 130, 1101, 4096, 4097, 6500};
    static const int32_t dtypes[] = {RLHF_F32, RLHF_BF16};
    if (!(kit->cpu1->flags & RLHF_COMPUTE_ROW_EXACT) || kit->cpu1->device != RLHF_DEVICE_CPU)
        skip();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t d = 0; d < 2; d++) {
            linear(kit->cpu1, sizes[i], dtypes[d], 0);
            linear(kit->cpu2, sizes[i], dtypes[d], 1);
            linear_dw(kit->cpu2, sizes[i], dtypes[d]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_as_defined)};
    return cmocka_run_group_tests_name("kernels: products", tests, kit_setup, kit_teardown);
}
