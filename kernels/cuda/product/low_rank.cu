// low_rank.cu: block-structured weights (rlhf_blocks). The source and the gradient of such a weight
// contain only its blocks. The weight itself is a dense matrix. Its GEMMs are dense too: they
// multiply the zeros like all other numbers.
#include "product/low_rank.h"

#include "machine/table.h"
#include "product/weight.h"

#include <new>

enum { THREADS = 256 };

static unsigned blocks_for(uint64_t n) { return (unsigned)((n + THREADS - 1) / THREADS); }

// ---- block-structured weights ----

static rlhf_status check(struct rlhf__cuda *cu, const rlhf_blocks *a) {
    int64_t end = 0;
    if (a->rank < 1 || !a->n_blocks || a->n_blocks > (uint32_t)(INT32_MAX / a->rank))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "a weight of %u blocks of rank %d: both must be at least 1",
                               a->n_blocks, a->rank);
    if (a->flags & ~(uint32_t)RLHF_WEIGHT_BACKWARD)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "a weight in blocks with flags 0x%x: allowed is 0x%x", a->flags,
                               (unsigned)RLHF_WEIGHT_BACKWARD);
    for (uint32_t i = 0; i < a->n_blocks; i++) {
        if (a->from[i] < end || a->count[i] < 1 || (int64_t)a->from[i] + a->count[i] > a->n)
            return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                                   "a weight in blocks: block %u, outputs %d and %d more, overlaps "
                                   "or is outside %d",
                                   i, a->from[i], a->count[i], a->n);
        end = (int64_t)a->from[i] + a->count[i];
    }
    return RLHF_OK;
}

// Lists the source row of each output, in device memory.
static rlhf_status list(struct rlhf__cuda *cu, const rlhf_blocks *a, rlhf_weight *w) {
    const uint64_t n = (uint64_t)a->n, bytes = n * sizeof(struct rlhf__cuda_in_block);
    struct rlhf__cuda_in_block *host = new (std::nothrow) struct rlhf__cuda_in_block[n];
    if (!host) return rlhf__cuda_fail(cu, RLHF_E_NOMEM, "out of memory for a weight in blocks");
    for (uint64_t j = 0; j < n; j++)
        host[j] = {-1, 0};
    int32_t row = 0;
    for (uint32_t i = 0; i < a->n_blocks; i++)
        for (int32_t j = a->from[i]; j < a->from[i] + a->count[i]; j++)
            host[j] = {row++, (int32_t)i * a->rank};
    void *p = NULL;
    rlhf_status st = rlhf__cuda_mem_alloc(cu, bytes, &p);
    w->in_block = (struct rlhf__cuda_in_block *)p;
    if (st == RLHF_OK) st = cu->table.upload(cu, rlhf__cuda_dev(p), host, bytes);
    delete[] host;
    return st;
}

static rlhf_status weight_create_blocks(void *ctx, const rlhf_blocks *from, rlhf_weight **out) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_blocks a;
    rlhf_weight *w = NULL;
    RLHF_TRY(rlhf__cuda_copy_in(cu, "weight_create_blocks", &a, sizeof a, from,
                                RLHF_SIZE_TO(rlhf_blocks, scale)));
    RLHF_TRY(check(cu, &a));
    RLHF_TRY(cu->table.weight_create(cu, (int32_t)a.n_blocks * a.rank, a.n, a.dtype,
                                     a.flags | RLHF_WEIGHT_OUT_IN, &w));
    w->rank = a.rank;
    w->scale = (float)a.scale;
    const rlhf_status st = list(cu, &a, w);
    if (st < 0) {
        cu->table.weight_destroy(cu, w);
        return st;
    }
    *out = w;
    return RLHF_OK;
}

// Computes to[n, k]. Each thread computes one number.
static __global__ void __launch_bounds__(THREADS)
    expand(float *to, const float *from, const struct rlhf__cuda_in_block *in, unsigned k,
           uint64_t all, int rank, float scale) {
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= all) return;
    const struct rlhf__cuda_in_block b = in[i / k];
    const int c = (int)(i % k) - b.first;
    const bool inside = b.source >= 0 && c >= 0 && c < rank;
    to[i] = inside ? scale * from[(uint64_t)b.source * (unsigned)rank + (unsigned)c] : 0.0f;
}

rlhf_status rlhf__cuda_blocks_expand(struct rlhf__cuda *cu, const rlhf_weight *w,
                                     const float **src) {
    const uint64_t all = (uint64_t)w->k * (uint64_t)w->n;
    void *p = NULL;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_SUM, rlhf__cuda_dense_bytes(w), &p));
    RUN(cu, expand, dim3(blocks_for(all)), dim3(THREADS), 0, (float *)p, *src, w->in_block,
        (unsigned)w->k, all, (int)w->rank, w->scale);
    *src = (const float *)p;
    return RLHF_OK;
}

// dw += scale times the blocks of dense[n, k]. Each thread processes one number of an output.
static __global__ void __launch_bounds__(THREADS)
    add_blocks(float *dw, const float *dense, const struct rlhf__cuda_in_block *in, unsigned k,
               uint64_t all, int rank, float scale) {
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= all) return;
    const uint64_t j = i / (unsigned)rank, c = i % (unsigned)rank;
    const struct rlhf__cuda_in_block b = in[j];
    if (b.source < 0) return;
    dw[(uint64_t)b.source * (unsigned)rank + c] += scale * dense[j * k + (unsigned)b.first + c];
}

rlhf_status rlhf__cuda_blocks_add(struct rlhf__cuda *cu, const rlhf_weight *w, float *dw,
                                  const float *dense) {
    const uint64_t all = (uint64_t)w->rank * (uint64_t)w->n;
    RUN(cu, add_blocks, dim3(blocks_for(all)), dim3(THREADS), 0, dw, dense, w->in_block,
        (unsigned)w->k, all, (int)w->rank, w->scale);
    return RLHF_OK;
}

void rlhf__cuda_fill_low_rank(rlhf_compute *t) { t->weight_create_blocks = weight_create_blocks; }
