// product.c: see product.h. Widens the operands of GEMMs without a native implementation.
//
// On own tiles (gemm.h), the bits of a row do not depend on the number of rows or threads
// (tests/kernels assert this). So rows may be split anywhere.
#include "product.h"

#include "gemm.h"

#include <omp.h>

void rlhf__cpu_use_threads(const struct rlhf__cpu *cpu) { omp_set_num_threads(cpu->threads); }

// The dtype combinations without a native GEMM: bf16 operands on a CPU without bf16 GEMMs, and f32
// to bf16.
static int needs_f32(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s) {
    return s->in_dtype == RLHF_BF16 ? !cpu->has_bf16 : s->out_dtype == RLHF_BF16;
}

// Copy n elements as f32 to *ws and advance *ws. Input that is f32 is used in place.
static rlhf_status widen(struct rlhf__cpu *cpu, float **ws, const void **x, int32_t dtype,
                         uint64_t n) {
    if (dtype == RLHF_F32) return RLHF_OK;
    RLHF_TRY(
        cpu->table.convert(cpu, rlhf__cpu_dev(*ws), RLHF_F32, rlhf__cpu_dev(*x), RLHF_BF16, n));
    *x = *ws;
    *ws += n;
    return RLHF_OK;
}

// s in f32 throughout, for widened operands.
static struct rlhf__matmul as_f32(const struct rlhf__matmul *s) {
    struct rlhf__matmul f = *s;
    f.in_dtype = f.out_dtype = RLHF_F32;
    return f;
}

// The number of elements of the right operand that are widened. A packed one already holds f32.
static uint64_t plain_elements(const struct rlhf__matmul *s) {
    return s->wei_packed ? 0 : (uint64_t)(s->k * s->n);
}

static uint64_t widen_bytes(const struct rlhf__matmul *s) {
    const uint64_t result = s->out_dtype == RLHF_F32 ? 0 : (uint64_t)(s->m * s->n);
    return ((uint64_t)(s->m * s->k) + plain_elements(s) + result) * sizeof(float);
}

// Runs the GEMM in f32 with widened operands and converts the result as s asks.
static rlhf_status product_f32(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                               const struct rlhf__packed *wei, const void *plain_wei,
                               const float *bias, void *dst) {
    const uint64_t kn = plain_elements(s);
    const struct rlhf__matmul f = as_f32(s);
    void *p = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_WIDEN, widen_bytes(s), &p));
    float *ws = p;
    RLHF_TRY(widen(cpu, &ws, &src, s->in_dtype, (uint64_t)(s->m * s->k)));
    if (kn) RLHF_TRY(widen(cpu, &ws, &plain_wei, s->in_dtype, kn));
    if (s->out_dtype == RLHF_F32) return rlhf__product(cpu, &f, src, wei, plain_wei, bias, dst);
    RLHF_TRY(rlhf__product(cpu, &f, src, wei, plain_wei, bias, ws));
    return cpu->table.convert(cpu, rlhf__cpu_dev(dst), RLHF_BF16, rlhf__cpu_dev(ws), RLHF_F32,
                              (uint64_t)(s->m * s->n));
}

rlhf_status rlhf__product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                          const struct rlhf__packed *wei, const void *plain_wei, const float *bias,
                          void *dst) {
    if (s->m == 0 || s->n == 0) return RLHF_OK;
    if (needs_f32(cpu, s)) return product_f32(cpu, s, src, wei, plain_wei, bias, dst);
    if (cpu->library) return rlhf__library(cpu)->product(cpu, s, src, wei, plain_wei, bias, dst);
    return rlhf__gemm_product(cpu, s, src, wei ? wei->ptr : NULL, plain_wei, bias, dst);
}

void rlhf__product_needs(struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                         struct rlhf__cpu_needs *n) {
    if (s->m == 0 || s->n == 0) return;
    if (needs_f32(cpu, s)) {
        const struct rlhf__matmul f = as_f32(s);
        rlhf__cpu_need(n, RLHF__WS_WIDEN, widen_bytes(s));
        rlhf__product_needs(cpu, &f, n);
    } else if (cpu->library)
        rlhf__library(cpu)->product_needs(cpu, s, n);
    else
        rlhf__gemm_needs(cpu, s, NULL, n);
}
