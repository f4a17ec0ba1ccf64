// weight.c: weight matrices in packed layouts (product.h). weight_pack packs them from the f32
// master weights once per optimizer step. All GEMMs of that step use the packed weights.
#include "gemm_pack.h"
#include "machine/table.h"
#include "product.h"

#include <stdlib.h>

#define DIM_MAX (1 << 24)

// Own panels up to this size are packed for both directions. Converting them in each backward GEMM
// took 1 % of the time of a PPO phase of the default model with four shards.
#define SMALL_BYTES ((uint64_t)6 << 20)

static void weight_destroy(void *ctx, rlhf_weight *w) {
    if (!w) return;
    ((struct rlhf__cpu *)ctx)->weight_generation++;
    rlhf__cpu_mem_free(ctx, w->fwd);
    rlhf__cpu_mem_free(ctx, w->bwd);
    rlhf__weight_blocks_close(w->blocks);
    free(w->quantised.panel);
    free(w);
}

int rlhf__cpu_keeps_both(const struct rlhf__cpu *cpu, const rlhf_weight *w) {
    if (!(w->flags & RLHF_WEIGHT_BACKWARD) || w->quantised.panels) return 0;
    return !rlhf__cpu_pairs(cpu, w->dtype) &&
           rlhf__gemm_packed_bytes(cpu, w->exec_dtype, w->k, w->n) <= SMALL_BYTES;
}

static rlhf_status packed_create(struct rlhf__cpu *cpu, void **out, int64_t k, int64_t n,
                                 int32_t dtype) {
    return rlhf__cpu_mem_alloc(cpu, rlhf__gemm_packed_bytes(cpu, dtype, k, n), out);
}

rlhf_status rlhf__cpu_weight_check(struct rlhf__cpu *cpu, int32_t k, int32_t n, int32_t dtype,
                                   uint32_t flags) {
    if (k < 1 || n < 1 || k > DIM_MAX || n > DIM_MAX)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "a weight of %d x %d: both must be 1 to %d", k,
                              n, DIM_MAX);
    if (dtype != RLHF_F32 && dtype != RLHF_BF16)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED, "a weight of dtype %d: f32 or bf16", dtype);
    if (flags & ~(uint32_t)RLHF_WEIGHT_KNOWN)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "a weight with flags 0x%x: allowed bits are 0x%x", flags,
                              (unsigned)RLHF_WEIGHT_KNOWN);
    return RLHF_OK;
}

rlhf_status rlhf__cpu_weight_packed(struct rlhf__cpu *cpu, const char *op, const rlhf_weight *w) {
    if (w->packed) return RLHF_OK;
    if (w->quantised.panels)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: only %d of the weight's %d rows were put",
                              op, w->rows_put, w->n);
    return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: weight_pack was never called", op);
}

rlhf_status rlhf__cpu_weight_dense(struct rlhf__cpu *cpu, const char *op, const rlhf_weight *w) {
    if (!w->quantised.panels) return RLHF_OK;
    return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                          "%s: the weight is quantised: it is filled by weight_put and has no "
                          "gradient",
                          op);
}

static rlhf_status weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                 rlhf_weight **out) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_weight_check(cpu, k, n, dtype, flags));
    rlhf_weight *w = calloc(1, sizeof *w);
    if (!w) return rlhf__cpu_fail(cpu, RLHF_E_NOMEM, "out of memory for a weight");
    if (dtype == RLHF_BF16) cpu->bf16_weights = 1;
    w->k = k;
    w->n = n;
    w->dtype = dtype;
    w->exec_dtype = rlhf__cpu_exec_dtype(cpu, dtype);
    w->flags = flags;
    const int64_t steps = rlhf__packed_k(cpu, dtype, k);
    rlhf_status st = packed_create(cpu, &w->fwd, steps, n, w->exec_dtype);
    if (st == RLHF_OK && rlhf__cpu_keeps_both(cpu, w))
        st = packed_create(cpu, &w->bwd, n, k, w->exec_dtype);
    if (st < 0) {
        weight_destroy(cpu, w);
        return st;
    }
    *out = w;
    return RLHF_OK;
}

static uint64_t weight_bytes(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags) {
    struct rlhf__cpu *cpu = ctx;
    if (rlhf__cpu_weight_check(cpu, k, n, dtype, flags) < 0) return 0;
    const rlhf_weight w = rlhf__weight_shape(
        cpu, &(const rlhf_call_weight){.k = k, .n = n, .dtype = dtype, .flags = flags});
    const uint64_t fwd =
        rlhf__gemm_packed_bytes(cpu, w.exec_dtype, rlhf__packed_k(cpu, dtype, k), n);
    return rlhf__cpu_keeps_both(cpu, &w) ? fwd + rlhf__gemm_packed_bytes(cpu, w.exec_dtype, n, k)
                                         : fwd;
}

static uint64_t rounded_bytes(const struct rlhf__cpu *cpu, const rlhf_weight *w) {
    const uint64_t k = (uint64_t)rlhf__packed_k(cpu, w->dtype, w->k), n = (uint64_t)w->n;
    return k * n * sizeof(float) + (uint64_t)w->k * n * sizeof(uint16_t);
}

// On a CPU without bf16 GEMMs, a bf16 weight is stored as f32 values that are rounded to bf16, in
// the layout `pairs` of matmul.h.
static rlhf_status round_to_bf16(struct rlhf__cpu *cpu, const rlhf_weight *w, void *src,
                                 void **out) {
    const uint64_t n = (uint64_t)w->k * (uint64_t)w->n;
    const uint64_t wide_bytes = rounded_bytes(cpu, w) - n * sizeof(uint16_t);
    void *p = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_PRODUCT, rounded_bytes(cpu, w), &p));
    rlhf_dev wide = rlhf__cpu_dev(p), half = rlhf_dev_at(wide, wide_bytes);
    RLHF_TRY(cpu->table.convert(cpu, half, RLHF_BF16, rlhf__cpu_dev(src), RLHF_F32, n));
    *out = p;
    rlhf__widen_pairs(cpu, p, rlhf__cpu_mem(half), w->k, w->n, !(w->flags & RLHF_WEIGHT_OUT_IN));
    return RLHF_OK;
}

static rlhf_status weight_pack(void *ctx, rlhf_weight *w, rlhf_dev src_f32) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_weight_dense(cpu, "weight_pack", w));
    int out_in = (w->flags & RLHF_WEIGHT_OUT_IN) != 0;
    const int64_t k = rlhf__packed_k(cpu, w->dtype, w->k);
    void *src = rlhf__cpu_mem(src_f32);
    if (w->blocks) RLHF_TRY(rlhf__blocks_expand(cpu, w, &src));
    if (w->exec_dtype != w->dtype) RLHF_TRY(round_to_bf16(cpu, w, src, &src));
    rlhf__gemm_pack(cpu, w->fwd, w->exec_dtype, src, RLHF_F32, k, w->n, out_in, 1);
    if (w->bwd) rlhf__gemm_pack(cpu, w->bwd, w->exec_dtype, src, RLHF_F32, w->n, w->k, !out_in, 1);
    w->packed = 1;
    cpu->weight_generation++; // the logits that lm_head kept are from the old weights
    return RLHF_OK;
}

void rlhf__cpu_needs_weight(struct rlhf__cpu *cpu, const rlhf_call *c, struct rlhf__cpu_needs *n) {
    const rlhf_weight w = rlhf__weight_shape(cpu, &c->weight);
    if (c->op != RLHF_COMPUTE_OP(weight_pack)) return;
    if (c->weight.rank) rlhf__cpu_need(n, RLHF__WS_SUM, rlhf__blocks_dense_bytes(&w));
    if (w.exec_dtype != w.dtype) rlhf__cpu_need(n, RLHF__WS_PRODUCT, rounded_bytes(cpu, &w));
}

void rlhf__cpu_fill_weight(rlhf_compute *t) {
    t->weight_create = weight_create;
    t->weight_destroy = weight_destroy;
    t->weight_pack = weight_pack;
    t->weight_bytes = weight_bytes;
    t->weight_create_blocks = rlhf__cpu_weight_create_blocks;
}
