// product.c: see product.h. Widens the operands of GEMMs that lack a native implementation.
//
// On our own tiles (gemm.h), the bits of a row do not depend on the number of rows or threads
// (tests/kernels checks this). So a GEMM may be divided between any two rows.
#include "product/product.h"

#include "machine/split.h"
#include "product/gemm.h"

#include <string.h>

// True for GEMMs that lack a native implementation: bf16 operands on a CPU without bf16 GEMMs, and
// f32 operands with a bf16 result.
static int needs_f32(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s) {
    return s->in_dtype == RLHF_BF16 ? !cpu->bf16 : s->out_dtype == RLHF_BF16;
}

// Widen the n elements at *x to f32 in *ws, point *x at the result, and advance *ws. An f32 input
// is used in place.
static rlhf_status widen(struct rlhf__cpu *cpu, float **ws, const void **x, int32_t dtype,
                         uint64_t n) {
    if (dtype == RLHF_F32) return RLHF_OK;
    RLHF_TRY(
        cpu->table.convert(cpu, rlhf__cpu_dev(*ws), RLHF_F32, rlhf__cpu_dev(*x), RLHF_BF16, n));
    *x = *ws;
    *ws += n;
    return RLHF_OK;
}

struct widen {
    const struct rlhf__cpu *cpu;
    float *dst;
    const uint16_t *src;
    int64_t k, even, others; // even: k rounded up
};

static void widen_other(const void *job, int64_t i) {
    const struct widen *w = job;
    w->cpu->hot.to_f32_pairs(w->dst + i * w->even, w->src + i * w->k, (size_t)w->k);
}

static void widen_step(const void *job, int64_t i) {
    const struct widen *w = job;
    float *to = w->dst + (i ^ 1) * w->others;
    if (i < w->k)
        w->cpu->hot.to_f32(to, w->src + i * w->others, (size_t)w->others);
    else
        memset(to, 0, (size_t)w->others * sizeof *to);
}

void rlhf__widen_pairs(const struct rlhf__cpu *cpu, float *dst, const uint16_t *src, int64_t k,
                       int64_t others, int k_is_rows) {
    const struct widen w = {cpu, dst, src, k, rlhf__pairs_k(k), others};
    rlhf__split_run(cpu, cpu->threads, k_is_rows ? w.even : others,
                    k_is_rows ? widen_step : widen_other, &w);
}

// The GEMM s with all dtypes f32, for widened operands.
static struct rlhf__matmul as_f32(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s) {
    struct rlhf__matmul f = *s;
    f.pairs = rlhf__cpu_pairs(cpu, s->in_dtype) != 0;
    f.k = rlhf__packed_k(cpu, s->in_dtype, s->k);
    f.in_dtype = f.out_dtype = RLHF_F32;
    return f;
}

// The number of elements of the right operand that must be widened. A packed operand is f32
// already.
static uint64_t plain_elements(const struct rlhf__matmul *f) {
    return f->wei_packed ? 0 : (uint64_t)(f->k * f->n);
}

// The memory for widening. `f` is what as_f32 returned for a GEMM whose output dtype is out_dtype.
static uint64_t widen_bytes(const struct rlhf__matmul *f, int32_t out_dtype) {
    const uint64_t result = out_dtype == RLHF_F32 ? 0 : (uint64_t)(f->m * f->n);
    return ((uint64_t)(f->m * f->k) + plain_elements(f) + result) * sizeof(float);
}

// Widens the operands of s into the memory at *ws, for the GEMM f.
static rlhf_status widen_operands(struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                                  const struct rlhf__matmul *f, float **ws, const void **src,
                                  const void **plain_wei) {
    const uint64_t a = (uint64_t)(f->m * f->k), b = plain_elements(f);
    if (!f->pairs) {
        RLHF_TRY(widen(cpu, ws, src, s->in_dtype, a));
        return b ? widen(cpu, ws, plain_wei, s->in_dtype, b) : RLHF_OK;
    }
    rlhf__widen_pairs(cpu, *ws, *src, s->k, s->m, s->src_transposed);
    *src = *ws;
    *ws += a;
    if (!b) return RLHF_OK;
    rlhf__widen_pairs(cpu, *ws, *plain_wei, s->k, s->n, !s->wei_transposed);
    *plain_wei = *ws;
    *ws += b;
    return RLHF_OK;
}

// Runs the GEMM in f32 with widened operands, and converts the result to the dtype of s.
static rlhf_status product_f32(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                               const void *wei, const void *plain_wei, const float *bias,
                               void *dst) {
    const struct rlhf__matmul f = as_f32(cpu, s);
    void *p = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_WIDEN, widen_bytes(&f, s->out_dtype), &p));
    float *ws = p;
    RLHF_TRY(widen_operands(cpu, s, &f, &ws, &src, &plain_wei));
    if (s->out_dtype == RLHF_F32) return rlhf__product(cpu, &f, src, wei, plain_wei, bias, dst);
    RLHF_TRY(rlhf__product(cpu, &f, src, wei, plain_wei, bias, ws));
    return cpu->table.convert(cpu, rlhf__cpu_dev(dst), RLHF_BF16, rlhf__cpu_dev(ws), RLHF_F32,
                              (uint64_t)(s->m * s->n));
}

rlhf_status rlhf__product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                          const void *wei, const void *plain_wei, const float *bias, void *dst) {
    if (s->m == 0 || s->n == 0) return RLHF_OK;
    if (needs_f32(cpu, s)) return product_f32(cpu, s, src, wei, plain_wei, bias, dst);
    return rlhf__gemm_product(cpu, s, src, wei, plain_wei, bias, dst);
}

void rlhf__product_needs(struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                         struct rlhf__cpu_needs *n) {
    if (s->m == 0 || s->n == 0) return;
    if (needs_f32(cpu, s)) {
        const struct rlhf__matmul f = as_f32(cpu, s);
        rlhf__cpu_need(n, RLHF__WS_WIDEN, widen_bytes(&f, s->out_dtype));
        rlhf__product_needs(cpu, &f, n);
    } else {
        rlhf__gemm_needs(cpu, s, NULL, n);
    }
}
