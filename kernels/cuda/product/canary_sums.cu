// canary_sums.cu: proves that a library GEMM which may split its sums (split-k) is repeatable on
// this card. The same data must give the same bits if the GEMM is repeated immediately, and if it
// is repeated after other GEMMs of the plan. Only a hash of all bits is stored and compared.
#include "product/canary.h"
#include "product/lt_plan.h"

enum { THREADS = RLHF__CANARY_THREADS, HASHES = 5, LEAST = 513, SHORT = RLHF__LT_ROWS_SMALL };
#ifdef __CUDACC__
enum { MOST = 8192 };
#else
enum { MOST = LEAST };
#endif
static const uint64_t operand_bytes_most = (uint64_t)64 << 20;

namespace {
struct sums {
    void *a, *b, *d;
    void *bias;
    const rlhf__lt_algo *algo;
    unsigned long long *hash; // [HASHES]
    uint32_t depth, other;    // depth of the GEMM, and of the GEMMs between its repetitions
};
} // namespace

// Adds to *hash a number for every 2-byte word, computed from its bits and its position. The order
// of the additions does not matter.
static __global__ void __launch_bounds__(THREADS)
    canary_hash(unsigned long long *hash, const unsigned short *d, uint64_t ld, uint64_t width,
                uint64_t n) {
    unsigned long long sum = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n * width;
         i += (uint64_t)gridDim.x * THREADS) {
        uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull ^ d[i / width * ld + i % width];
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        sum += z ^ z >> 29;
    }
    atomicAdd(hash, sum);
}

// A depth that allows many splits but keeps the operands small.
static uint32_t depth_of(const struct rlhf__lt_shape *s) {
    const uint64_t line = (uint64_t)(s->lda + s->ldb) * rlhf_dtype_size(s->dtype);
    const uint64_t most = operand_bytes_most / line / 16 * 16;
    if (s->k) return (uint32_t)s->k;
    const uint64_t least = LEAST, longest = MOST;
    return (uint32_t)(most < least ? least : most > longest ? longest : most);
}

// Makes one allocation for all buffers. *base is the address to free.
static rlhf_status sums_make(struct rlhf__cuda *cu, const struct rlhf__lt_shape *s, struct sums *o,
                             void **base) {
    const uint64_t k = o->depth, lda = (uint64_t)s->lda, ldb = (uint64_t)s->ldb;
    const uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n;
    const uint64_t a_n = lda * (s->trans_a ? m : k), b_n = ldb * (s->trans_b ? k : n);
    const uint64_t size = rlhf_dtype_size(s->dtype);
    const uint64_t bytes[5] = {a_n * size, b_n * size,
                               (uint64_t)s->ldd * n * rlhf_dtype_size(s->out_dtype), m * 4,
                               HASHES * sizeof *o->hash};
    uint64_t total = 0;
    char *at[5];
    for (uint64_t b : bytes)
        total += (b + 255) / 256 * 256;
    RLHF_TRY(rlhf__cuda_mem_alloc(cu, total, base));
    for (int i = 0; i < 5; i++)
        at[i] = i ? at[i - 1] + (bytes[i - 1] + 255) / 256 * 256 : (char *)*base;
    o->a = at[0];
    o->b = at[1];
    o->d = at[2];
    o->bias = at[3];
    o->hash = (unsigned long long *)at[4];
    RLHF_TRY(rlhf__canary_fill(cu, o->a, s->dtype, {a_n, lda, k, !s->trans_a, -1, 1}));
    RLHF_TRY(rlhf__canary_fill(cu, o->b, s->dtype, {b_n, ldb, k, s->trans_b, 1, 2}));
    RLHF_TRY(rlhf__canary_fill(cu, o->bias, s->out_dtype, {m, m, m, 0, 0, 4}));
    return rlhf__cuda_check(cu, "cudaMemset", cudaMemsetAsync(o->hash, 0, bytes[4], cu->stream));
}

// Run the GEMM and hash the result. With `add`, the old contents of d are added to the result. If
// the library refuses the GEMM, *runs becomes 0.
static rlhf_status once(struct rlhf__cuda *cu, struct rlhf__lt_plan *p, const struct sums *o,
                        int add, int which, int *runs) {
    const struct rlhf__lt_shape *s = &p->shape;
    const uint64_t half = rlhf_dtype_size(s->out_dtype) / 2, ldd = (uint64_t)s->ldd;
    const uint64_t n = (uint64_t)s->n, width = (uint64_t)s->m * half;
    const struct rlhf__lt_operands operands = {o->a, o->b, add ? o->d : NULL, o->d, o->bias};
    RLHF_TRY(rlhf__canary_fill(cu, o->d, s->out_dtype, {ldd * n, ldd, ldd, 0, 0, 3}));
    *runs = *runs && rlhf__lt_run_as(cu, p, o->algo, &operands, o->depth) == RLHF__LT_SUCCESS;
    RUN(cu, canary_hash, rlhf__canary_blocks(n * width), dim3(THREADS), 0, o->hash + which,
        (const unsigned short *)o->d, ldd * half, width, n);
    return RLHF_OK;
}

// Runs another GEMM of the plan, so that the workspace contains arbitrary data.
static void between(struct rlhf__cuda *cu, struct rlhf__lt_plan *p, const struct sums *o,
                    int *runs) {
    const struct rlhf__lt_operands operands = {o->a, o->b, NULL, o->d, o->bias};
    *runs = *runs && rlhf__lt_run_as(cu, p, o->algo, &operands, o->other) == RLHF__LT_SUCCESS;
}

static rlhf_status run_all(struct rlhf__cuda *cu, struct rlhf__lt_plan *p, const struct sums *o,
                           int *runs) {
    const int add = p->shape.out_dtype == RLHF_F32;
    RLHF_TRY(once(cu, p, o, add, 0, runs));
    RLHF_TRY(once(cu, p, o, add, 1, runs));
    between(cu, p, o, runs);
    RLHF_TRY(once(cu, p, o, add, 2, runs));
    RLHF_TRY(once(cu, p, o, 0, 3, runs));
    between(cu, p, o, runs);
    return once(cu, p, o, 0, 4, runs);
}

rlhf_status rlhf__lt_canary_sums(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                 const rlhf__lt_algo *algo, int *same) {
    const struct rlhf__lt_shape *s = &p->shape;
    struct sums o = {};
    void *base = NULL;
    unsigned long long hash[HASHES] = {};
    int runs = 1;
    o.algo = algo;
    o.depth = depth_of(s);
    o.other = s->k ? o.depth : (uint32_t)SHORT;
    rlhf_status st = sums_make(cu, s, &o, &base);
    void *ws = NULL; // allocate here, so that a lack of memory is not taken for a refusal
    if (st == RLHF_OK && p->workspace)
        st = rlhf__cuda_workspace(cu, RLHF__CUDA_WS_LIBRARY, p->workspace, &ws);
    if (st == RLHF_OK) st = run_all(cu, p, &o, &runs);
    if (st == RLHF_OK)
        st = rlhf__cuda_check(
            cu, "reading what the canary found",
            cudaMemcpyAsync(hash, o.hash, sizeof hash, cudaMemcpyDeviceToHost, cu->stream));
    if (st == RLHF_OK) st = rlhf__cuda_wait(cu);
    rlhf__cuda_mem_free(cu, base);
    *same = runs && hash[0] == hash[1] && hash[1] == hash[2] && hash[3] == hash[4];
    return st;
}
