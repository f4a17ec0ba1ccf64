// weight.cu: weight matrices in the layout of weight.h. weight_pack packs them from the f32 master
// weights once per optimizer step. All GEMMs of that step use the packed weights.
#include "machine/table.h"
#include "product/low_rank.h"
#include "product/lt.h"
#include "product/weight.h"

#include <new>

#define DIM_MAX (1 << 24)

enum { TILE = 64, THREADS = 256 };

// The number of inputs that are stored, including padding. In bf16, lines of more than 64 inputs
// start at multiples of 128 bytes, because cuBLASLt's fastest copies prefer that.
static int32_t padded_k(int32_t k) {
    const int32_t to = k > 64 ? 64 : 8;
    return (k + to - 1) / to * to;
}
static int32_t padded_n(int32_t n) { return (n + TILE - 1) / TILE * TILE; }

struct rlhf_weight rlhf__cuda_weight_shape(const rlhf_call_weight *w) {
    struct rlhf_weight s = {};
    s.k = w->k;
    s.n = w->n;
    s.k_pad = padded_k(w->k);
    s.n_pad = padded_n(w->n);
    s.dtype = w->dtype;
    s.flags = w->flags;
    s.rank = w->rank;
    s.n_parts = w->quantised ? w->quantised->n_parts : 0;
    return s;
}

static uint64_t bytes_of(int32_t k, int32_t n, int32_t dtype) {
    return (uint64_t)padded_n(n) * (uint64_t)padded_k(k) * rlhf_dtype_size(dtype);
}

rlhf_status rlhf__cuda_weight_check(struct rlhf__cuda *cu, int32_t k, int32_t n, int32_t dtype,
                                    uint32_t flags) {
    if (k < 1 || n < 1 || k > DIM_MAX || n > DIM_MAX)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "a weight of %d x %d: both must be 1 to %d", k,
                               n, DIM_MAX);
    if (dtype != RLHF_F32 && dtype != RLHF_BF16)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED, "a weight of dtype %d: f32 or bf16", dtype);
    if (flags & ~(uint32_t)RLHF_WEIGHT_KNOWN)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "a weight with flags 0x%x: allowed bits are 0x%x", flags,
                               (unsigned)RLHF_WEIGHT_KNOWN);
    return RLHF_OK;
}

rlhf_status rlhf__cuda_weight_packed(struct rlhf__cuda *cu, const char *op, const rlhf_weight *w) {
    if (w->packed) return RLHF_OK;
    if (w->n_parts)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: only %d of the weight's %d rows were put",
                               op, w->rows_put, w->n);
    return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: weight_pack was never called", op);
}

static uint64_t weight_bytes(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    return rlhf__cuda_weight_check(cu, k, n, dtype, flags) < 0 ? 0 : bytes_of(k, n, dtype);
}

static rlhf_status weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                 rlhf_weight **out) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "weight_create"));
    RLHF_TRY(rlhf__cuda_weight_check(cu, k, n, dtype, flags));
    rlhf_weight *w = new (std::nothrow) rlhf_weight();
    if (!w) return rlhf__cuda_fail(cu, RLHF_E_NOMEM, "out of memory for a weight");
    w->k = k;
    w->n = n;
    w->k_pad = padded_k(k);
    w->n_pad = padded_n(n);
    w->dtype = dtype;
    w->flags = flags;
    const rlhf_status st = rlhf__cuda_mem_alloc(cu, bytes_of(k, n, dtype), &w->ptr);
    if (st < 0) {
        delete w;
        return st;
    }
    if (dtype == RLHF_BF16) cu->bf16_weights = 1;
    *out = w;
    return RLHF_OK;
}

static void weight_destroy(void *ctx, rlhf_weight *w) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    if (!w || rlhf__cuda_not_recording(cu, "weight_destroy") < 0) return;
    cu->weight_generation++;
    rlhf__cuda_mem_free(cu, w->ptr);
    rlhf__cuda_mem_free(cu, w->in_block);
    rlhf__cuda_mem_free(cu, w->part);
    delete[] w->host_part;
    delete w;
}

// Packs one tile of 64 outputs x 64 inputs. A source [k, n] is transposed in shared memory, so that
// both the source and the result are accessed along their lines.
template <class T>
static __global__ void __launch_bounds__(THREADS)
    pack(T *to, const float *from, unsigned k, unsigned n, unsigned k_pad, int out_in) {
    SHARED(float[TILE][TILE + 1], s); // [output][input]
    const unsigned tiles = (k_pad + TILE - 1) / TILE;
    const unsigned k0 = blockIdx.x % tiles * TILE, n0 = blockIdx.x / tiles * TILE;
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const unsigned high = i / TILE, low = i % TILE;
        const unsigned o = out_in ? high : low, in = out_in ? low : high;
        const uint64_t at =
            out_in ? (uint64_t)(n0 + o) * k + k0 + in : (uint64_t)(k0 + in) * n + n0 + o;
        s[o][in] = n0 + o < n && k0 + in < k ? from[at] : 0.0f;
    }
    __syncthreads();
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < TILE * TILE / 2; i += THREADS) {
        const unsigned o = i / (TILE / 2), in = i % (TILE / 2) * 2;
        if (k0 + in >= k_pad) continue;
        T *p = to + (uint64_t)(n0 + o) * k_pad + k0 + in;
        rlhf__put(p, 0, s[o][in]);
        rlhf__put(p, 1, s[o][in + 1]);
    }
}

static rlhf_status weight_pack(void *ctx, rlhf_weight *w, rlhf_dev src_f32) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "weight_pack"));
    RLHF_TRY(rlhf__cuda_weight_dense(cu, "weight_pack", w));
    const unsigned k = (unsigned)w->k, n = (unsigned)w->n, k_pad = (unsigned)w->k_pad;
    const int out_in = (w->flags & RLHF_WEIGHT_OUT_IN) != 0;
    const uint64_t tiles = (uint64_t)((k_pad + TILE - 1) / TILE) * ((unsigned)w->n_pad / TILE);
    if (tiles > 0x7fffffffu)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "weight_pack of %u x %u: more tiles than a launch can have", k, n);
    const dim3 grid((unsigned)tiles);
    const float *from = rlhf__cuda_f32(src_f32);
    if (w->in_block) RLHF_TRY(rlhf__cuda_blocks_expand(cu, w, &from));
    if (w->dtype == RLHF_BF16)
        RUN(cu, pack<rlhf__bf16>, grid, dim3(THREADS), 0, (rlhf__bf16 *)w->ptr, from, k, n, k_pad,
            out_in);
    else
        RUN(cu, pack<float>, grid, dim3(THREADS), 0, (float *)w->ptr, from, k, n, k_pad, out_in);
    if (!w->packed) RLHF_TRY(rlhf__lt_prepare(cu, w));
    w->packed = 1;
    cu->weight_generation++; // the logits that lm_head kept are from the old weights
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_needs_weight(struct rlhf__cuda *cu, const rlhf_call *c,
                             struct rlhf__cuda_needs *n) {
    const rlhf_weight w = rlhf__cuda_weight_shape(&c->weight);
    (void)cu;
    if (c->op == RLHF_COMPUTE_OP(weight_pack) && w.rank)
        rlhf__cuda_need(n, RLHF__CUDA_WS_SUM, rlhf__cuda_dense_bytes(&w));
}

void rlhf__cuda_fill_weight(rlhf_compute *t) {
    t->weight_create = weight_create;
    t->weight_destroy = weight_destroy;
    t->weight_pack = weight_pack;
    t->weight_bytes = weight_bytes;
}
