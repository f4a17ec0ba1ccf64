// onednn.c: GEMMs by oneDNN (library.h), with a cache of its primitives. The cache finds primitives
// by shape and not by weight, so all layers of a model share them.
#include "product/onednn.h"

#include "product/dnnl_shim.h"
#include "product/library.h"
#include "product/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_SLOTS 8192u // a power of two; the cache is cleared when it is half full

struct entry {
    struct rlhf__matmul key;
    struct rlhf__dnnl_op *op;
};

// cpu->library_state
struct onednn {
    struct rlhf__dnnl *engine;
    uint32_t used;
    struct entry slot[CACHE_SLOTS];
};

// The library's data of a packed operand.
struct half {
    struct rlhf__dnnl_layout *layout;
    struct rlhf__dnnl_mem *mem, *src;
    struct rlhf__dnnl_op *reorder; // converts the dense src
};

static struct rlhf__dnnl *engine_of(const struct rlhf__cpu *cpu) {
    return ((const struct onednn *)cpu->library_state)->engine;
}

// ---- packed operands ----

// The layout in which oneDNN multiplies a [k, n] operand fastest.
static int layout_of(struct rlhf__dnnl *d, int64_t k, int64_t n, int32_t dtype,
                     struct rlhf__dnnl_layout **out) {
    const struct rlhf__matmul s = {
        .m = 64, .k = k, .n = n, .in_dtype = dtype, .out_dtype = RLHF_F32, .wei_packed = 1};
    struct rlhf__dnnl_op *op = NULL;
    int st = rlhf__dnnl_matmul_create(d, &s, NULL, out, &op);
    rlhf__dnnl_op_destroy(op);
    return st;
}

static void packed_destroy(void *library_half) {
    struct half *p = library_half;
    if (!p) return;
    rlhf__dnnl_mem_destroy(p->mem);
    rlhf__dnnl_mem_destroy(p->src);
    rlhf__dnnl_op_destroy(p->reorder);
    rlhf__dnnl_layout_destroy(p->layout);
    free(p);
}

static int packed_layout(struct rlhf__dnnl *d, struct half *p, int64_t k, int64_t n, int32_t dtype,
                         int src_transposed) {
    int st = layout_of(d, k, n, dtype, &p->layout);
    if (st) return st;
    struct rlhf__dnnl_layout *plain = NULL;
    st = rlhf__dnnl_layout_plain(k, n, RLHF_F32, src_transposed, &plain);
    if (!st) st = rlhf__dnnl_reorder_create(d, plain, p->layout, &p->reorder);
    if (!st) st = rlhf__dnnl_mem_create(d, plain, NULL, &p->src);
    rlhf__dnnl_layout_destroy(plain);
    return st;
}

static rlhf_status packed_create(struct rlhf__cpu *cpu, int64_t k, int64_t n, int32_t dtype,
                                 int src_transposed, struct rlhf__packed *out) {
    struct half *p = calloc(1, sizeof *p);
    if (!p) return rlhf__cpu_fail(cpu, RLHF_E_NOMEM, "out of memory for a weight");
    out->library = p; // *out then owns it, even if a later step fails
    int st = packed_layout(engine_of(cpu), p, k, n, dtype, src_transposed);
    if (!st) RLHF_TRY(rlhf__cpu_mem_alloc(cpu, rlhf__dnnl_layout_bytes(p->layout), &out->ptr));
    if (!st) st = rlhf__dnnl_mem_create(engine_of(cpu), p->layout, out->ptr, &p->mem);
    if (st == RLHF__DNNL_NOMEM)
        return rlhf__cpu_fail(cpu, RLHF_E_NOMEM, "out of memory for a weight of %lld x %lld",
                              (long long)k, (long long)n);
    if (st)
        return rlhf__cpu_fail(cpu, RLHF_E_DEVICE,
                              "oneDNN has no layout for a weight of %lld x %lld (status %d)",
                              (long long)k, (long long)n, st);
    return RLHF_OK;
}

static uint64_t packed_bytes(struct rlhf__cpu *cpu, int64_t k, int64_t n, int32_t dtype) {
    struct rlhf__dnnl_layout *layout = NULL;
    const int st = layout_of(engine_of(cpu), k, n, dtype, &layout);
    const uint64_t bytes = st ? 0 : rlhf__dnnl_layout_bytes(layout);
    rlhf__dnnl_layout_destroy(layout);
    return bytes;
}

static rlhf_status packed_fill(struct rlhf__cpu *cpu, const struct rlhf__packed *p, void *src) {
    const struct half *l = p->library;
    void *scratch = NULL;
    RLHF_TRY(
        rlhf__cpu_workspace(cpu, RLHF__WS_SCRATCH, rlhf__dnnl_op_scratch(l->reorder), &scratch));
    int st = rlhf__dnnl_mem_point(l->src, src);
    if (!st) st = rlhf__dnnl_reorder(engine_of(cpu), l->reorder, l->src, l->mem, scratch);
    if (st) return rlhf__cpu_fail(cpu, RLHF_E_DEVICE, "packing a weight failed (status %d)", st);
    return RLHF_OK;
}

// ---- products ----

static void cache_clear(struct onednn *c) {
    for (uint32_t i = 0; i < CACHE_SLOTS; i++)
        rlhf__dnnl_op_destroy(c->slot[i].op);
    memset(c->slot, 0, sizeof c->slot);
    c->used = 0;
}

static uint32_t key_hash(const struct rlhf__matmul *s) {
    const unsigned char *p = (const void *)s;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof *s; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 32);
}

// Finds the primitive of shape s, creating it if necessary.
static rlhf_status cache_get(struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                             const struct rlhf__packed *wei, struct rlhf__dnnl_op **out) {
    struct onednn *c = cpu->library_state;
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
    const struct half *half = wei && s->wei_packed ? wei->library : NULL;
    int st = rlhf__dnnl_matmul_create(c->engine, s, half ? half->layout : NULL, NULL, &op);
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

static rlhf_status product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const struct rlhf__packed *wei, const void *plain_wei, const float *bias,
                           void *dst) {
    struct rlhf__dnnl_op *op = NULL;
    void *scratch = NULL;
    const struct half *half = wei ? wei->library : NULL;
    rlhf__cpu_use_threads(cpu);
    RLHF_TRY(cache_get(cpu, s, wei, &op));
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_SCRATCH, rlhf__dnnl_op_scratch(op), &scratch));
    int st = rlhf__dnnl_matmul(engine_of(cpu), op, src, half ? half->mem : NULL, plain_wei, bias,
                               dst, scratch);
    if (st) return rlhf__cpu_fail(cpu, RLHF_E_DEVICE, "a oneDNN product failed (status %d)", st);
    return RLHF_OK;
}

// Creates the primitive now. A later product of this shape uses it.
static void product_needs(struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                          struct rlhf__cpu_needs *n) {
    struct half half = {0};
    const struct rlhf__packed wei = {.library = &half};
    struct rlhf__dnnl_op *op = NULL;
    rlhf__cpu_use_threads(cpu);
    if (s->wei_packed && layout_of(engine_of(cpu), s->k, s->n, s->in_dtype, &half.layout)) return;
    if (cache_get(cpu, s, &wei, &op) == RLHF_OK)
        rlhf__cpu_need(n, RLHF__WS_SCRATCH, rlhf__dnnl_op_scratch(op));
    rlhf__dnnl_layout_destroy(half.layout);
}

// ---- open and close ----

static void close_it(struct rlhf__cpu *cpu) {
    struct onednn *c = cpu->library_state;
    cache_clear(c);
    rlhf__dnnl_destroy(c->engine);
    free(c);
}

rlhf_status rlhf__onednn_open(struct rlhf__cpu *cpu) {
    static const struct rlhf__library ops = {.packed_create = packed_create,
                                             .packed_destroy = packed_destroy,
                                             .packed_bytes = packed_bytes,
                                             .packed_fill = packed_fill,
                                             .product = product,
                                             .product_needs = product_needs,
                                             .close = close_it};
    if (cpu->isa_capped && rlhf__dnnl_cap(cpu->isa))
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "RLHF_CPU_ISA is \"%s\", but oneDNN runs at a higher level in this "
                              "process already",
                              rlhf__isa_level(cpu->isa)->name);
    struct onednn *c = calloc(1, sizeof *c);
    if (!c) return rlhf__cpu_fail(cpu, RLHF_E_NOMEM, "out of memory for the primitives of oneDNN");
    const int st = rlhf__dnnl_create(&c->engine);
    if (st) {
        free(c);
        return rlhf__cpu_fail(cpu, RLHF_E_DEVICE, "oneDNN cannot be started (status %d)", st);
    }
    int v[3];
    rlhf__dnnl_version(v);
    snprintf(cpu->library_name, sizeof cpu->library_name, "oneDNN %d.%d.%d, ", v[0], v[1], v[2]);
    cpu->library_state = c;
    cpu->library = &ops;
    return RLHF_OK;
}
