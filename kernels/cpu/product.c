// product.c: the primitive cache behind every matrix product (product.h).
//
// The own tiles (gemm.h) give a row the same bits whatever the number of rows and threads
// (tests/kernels asserts it), so rows may be cut anywhere. What is cached, of oneDNN's products, is
// keyed by shape, not by weight: all layers of a model share.
#include "product.h"

#include "gemm.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE_SLOTS 8192u // a power of two; emptied when half full
#define ROW_STEP    64u

struct entry {
    struct rlhf__matmul key;
    struct rlhf__dnnl_op *op;
};

struct rlhf__product_cache {
    struct rlhf__dnnl *dnnl;
    uint32_t used;
    struct entry slot[CACHE_SLOTS];
};

void rlhf__cpu_use_threads(const struct rlhf__cpu *cpu) { omp_set_num_threads(cpu->threads); }

rlhf_status rlhf__products_create(struct rlhf__cpu *cpu) {
    struct rlhf__product_cache *c = calloc(1, sizeof *c);
    if (!c) return rlhf__cpu_fail(cpu, RLHF_E_NOMEM, "out of memory for the product cache");
    cpu->products = c;
    if (cpu->isa_capped && rlhf__dnnl_cap(cpu->isa))
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "RLHF_CPU_ISA is \"%s\", but oneDNN runs at a higher level in this "
                              "process already",
                              rlhf__isa_level(cpu->isa)->name);
    int st = rlhf__dnnl_create(&c->dnnl);
    if (st) return rlhf__cpu_fail(cpu, RLHF_E_DEVICE, "oneDNN cannot be started (status %d)", st);
    rlhf__cpu_use_threads(cpu);
    cpu->has_bf16 = cpu->isa >= RLHF__ISA_AVX512_BF16;
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); // 0: not known
    cpu->half_l2 = (l2 > 0 ? l2 : 1 << 20) / 2;
    int v[3];
    rlhf__dnnl_version(v);
    snprintf(cpu->detail, sizeof cpu->detail, "oneDNN %d.%d.%d, %s%s, %d thread%s%s", v[0], v[1],
             v[2], rlhf__isa_level(cpu->isa)->name, cpu->has_bf16 ? ", bf16 products" : "",
             cpu->threads, cpu->threads == 1 ? "" : "s", RLHF__EXACT ? "" : ", rows not exact");
    return RLHF_OK;
}

static void cache_clear(struct rlhf__product_cache *c) {
    for (uint32_t i = 0; i < CACHE_SLOTS; i++)
        rlhf__dnnl_op_destroy(c->slot[i].op);
    memset(c->slot, 0, sizeof c->slot);
    c->used = 0;
}

void rlhf__products_destroy(struct rlhf__cpu *cpu) {
    struct rlhf__product_cache *c = cpu->products;
    if (!c) return;
    cache_clear(c);
    rlhf__dnnl_destroy(c->dnnl);
    free(c);
    cpu->products = NULL;
}

struct rlhf__dnnl *rlhf__products_engine(struct rlhf__cpu *cpu) {
    return ((const struct rlhf__product_cache *)cpu->products)->dnnl;
}

static uint32_t key_hash(const struct rlhf__matmul *s) {
    const unsigned char *p = (const void *)s;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof *s; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 32);
}

// The primitive of shape s, made when it is not there.
static rlhf_status cache_get(struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                             const struct rlhf__packed *wei, struct rlhf__dnnl_op **out) {
    struct rlhf__product_cache *c = cpu->products;
    uint32_t i = key_hash(s) & (CACHE_SLOTS - 1);
    for (; c->slot[i].op; i = (i + 1) & (CACHE_SLOTS - 1))
        if (memcmp(&c->slot[i].key, s, sizeof *s) == 0) {
            *out = c->slot[i].op;
            return RLHF_OK;
        }
    if (c->used >= CACHE_SLOTS / 2) {
        cache_clear(c);
        i = key_hash(s) & (CACHE_SLOTS - 1);
    }
    struct rlhf__dnnl_op *op = NULL;
    int st = rlhf__dnnl_matmul_create(c->dnnl, s, s->wei_packed ? wei->layout : NULL, NULL, &op);
    if (st == RLHF__DNNL_NOMEM)
        return rlhf__cpu_fail(cpu, RLHF_E_NOMEM, "out of memory for a product of oneDNN");
    if (st)
        return rlhf__cpu_fail(
            cpu, RLHF_E_DEVICE, "oneDNN has no product of %lld x %lld by %lld x %lld (status %d)",
            (long long)s->m, (long long)s->k, (long long)s->k, (long long)s->n, st);
    c->slot[i].key = *s;
    c->slot[i].op = op;
    c->used++;
    *out = op;
    return RLHF_OK;
}

// Pairs of dtypes that no primitive takes: bf16 operands without bf16 products, and f32 to bf16.
static int needs_f32(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s) {
    return s->in_dtype == RLHF_BF16 ? !cpu->has_bf16 : s->out_dtype == RLHF_BF16;
}

// Copy n elements as f32 to *ws and move *ws behind them; f32 input stays where it is.
static rlhf_status widen(struct rlhf__cpu *cpu, float **ws, const void **x, int32_t dtype,
                         uint64_t n) {
    if (dtype == RLHF_F32) return RLHF_OK;
    RLHF_TRY(
        cpu->table.convert(cpu, rlhf__cpu_dev(*ws), RLHF_F32, rlhf__cpu_dev(*x), RLHF_BF16, n));
    *x = *ws;
    *ws += n;
    return RLHF_OK;
}

// The product in f32 with operands widened and the result narrowed as s wants.
static rlhf_status product_f32(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                               const struct rlhf__packed *wei, const void *plain_wei,
                               const float *bias, void *dst) {
    uint64_t mk = (uint64_t)(s->m * s->k), mn = (uint64_t)(s->m * s->n);
    uint64_t kn = s->wei_packed ? 0 : (uint64_t)(s->k * s->n);
    void *p = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_WIDEN, (mk + kn + mn) * sizeof(float), &p));
    float *ws = p;
    struct rlhf__matmul f = *s;
    f.in_dtype = f.out_dtype = RLHF_F32;
    RLHF_TRY(widen(cpu, &ws, &src, s->in_dtype, mk));
    if (kn) RLHF_TRY(widen(cpu, &ws, &plain_wei, s->in_dtype, kn));
    if (s->out_dtype == RLHF_F32) return rlhf__product(cpu, &f, src, wei, plain_wei, bias, dst);
    RLHF_TRY(rlhf__product(cpu, &f, src, wei, plain_wei, bias, ws));
    return cpu->table.convert(cpu, rlhf__cpu_dev(dst), RLHF_BF16, rlhf__cpu_dev(ws), RLHF_F32, mn);
}

rlhf_status rlhf__product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                          const struct rlhf__packed *wei, const void *plain_wei, const float *bias,
                          void *dst) {
    if (s->m == 0 || s->n == 0) return RLHF_OK;
    if (needs_f32(cpu, s)) return product_f32(cpu, s, src, wei, plain_wei, bias, dst);
    if (rlhf__gemm_used(cpu, s->in_dtype))
        return rlhf__gemm_product(cpu, s, src, wei ? wei->ptr : NULL, plain_wei, bias, dst);
    struct rlhf__dnnl_op *op = NULL;
    void *scratch = NULL;
    rlhf__cpu_use_threads(cpu);
    RLHF_TRY(cache_get(cpu, s, wei, &op));
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_SCRATCH, rlhf__dnnl_op_scratch(op), &scratch));
    int st = rlhf__dnnl_matmul(rlhf__products_engine(cpu), op, src, wei ? wei->mem : NULL,
                               plain_wei, bias, dst, scratch);
    if (st) return rlhf__cpu_fail(cpu, RLHF_E_DEVICE, "a oneDNN product failed (status %d)", st);
    return RLHF_OK;
}

rlhf_status rlhf__product_rows(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, uint32_t rows,
                               const void *src, const struct rlhf__packed *wei, const float *bias,
                               void *dst) {
    struct rlhf__matmul part = *s;
    // Nothing is kept for a shape, or a number of rows may have a kernel of its own.
    const int any_rows = !RLHF__EXACT || rlhf__gemm_used(cpu, s->in_dtype);
    uint32_t main_rows = rows > ROW_STEP && !any_rows ? rows - rows % ROW_STEP : rows;
    part.m = main_rows;
    RLHF_TRY(rlhf__product(cpu, &part, src, wei, NULL, bias, dst));
    if (main_rows == rows) return RLHF_OK;
    part.m = rows - main_rows;
    uint64_t src_at = (uint64_t)main_rows * (uint64_t)s->k * rlhf_dtype_size(s->in_dtype);
    uint64_t dst_at = (uint64_t)main_rows * (uint64_t)s->n * rlhf_dtype_size(s->out_dtype);
    return rlhf__product(cpu, &part, (const char *)src + src_at, wei, NULL, bias,
                         (char *)dst + dst_at);
}
