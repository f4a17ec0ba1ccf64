// kv_store.cu: stores keys and values of new tokens in the KV cache.
#include "attention/ragged.h"
#include "machine/table.h"

enum { THREADS = 128 };

namespace {
// The arguments of a copy of keys and values to the caches. Each row that is copied has `units`
// elements of type U. from_stride, the distance between two tokens, is in elements of U.
template <class U> struct kv_copy {
    U *k_to, *v_to;
    const U *k, *v;
    uint64_t from_stride;
    uint32_t units;
    int64_t limit; // number of rows that fit in the caches
};
} // namespace

// Returns the last row that starts at or before token t, or row 0 if all rows start later.
static __device__ __forceinline__ uint32_t row_of(const rlhf__cuda_rows &r, uint32_t t) {
    uint32_t low = 0, high = r.n;
    while (high - low > 1) {
        const uint32_t mid = low + (high - low) / 2;
        if ((int64_t)r.offset[mid] <= (int64_t)t)
            low = mid;
        else
            high = mid;
    }
    return low;
}

// A block copies token blockIdx.x. It also checks row blockIdx.x. Otherwise an empty row, which has
// no token, would not be checked.
template <class U>
static __global__ void __launch_bounds__(THREADS) kv_store_rows(kv_copy<U> c, rlhf__cuda_rows r) {
    const uint32_t t = blockIdx.x;
    rlhf__cuda_row row;
    if (t < r.n && threadIdx.x == 0) rlhf__cuda_row_check(r, t, &row);
    if (t >= r.total) return;
    const uint32_t i = row_of(r, t);
    if (!rlhf__cuda_row_check(r, i, &row)) return;
    const int64_t j = (int64_t)t - row.t0;
    if (j < 0 || j >= row.nq) return; // the token is not in any row
    const int64_t to = (int64_t)row.k0 + row.start - row.np + j;
    if (to >= c.limit) {
        rlhf__fault_raise(r.fault, RLHF__FAULT_KV_ROW, i, to, c.limit);
        return;
    }
    const U *const k = c.k + (uint64_t)t * c.from_stride, *const v = c.v + (k - c.k);
    U *const k_to = c.k_to + (uint64_t)to * c.units, *const v_to = c.v_to + (k_to - c.k_to);
    for (uint32_t u = threadIdx.x; u < c.units; u += THREADS) {
        const U a = k[u], b = v[u];
        k_to[u] = a;
        v_to[u] = b;
    }
}

template <class U>
static rlhf_status kv_store_as(struct rlhf__cuda *cu, void *const to[2], const void *const from[2],
                               uint64_t stride, uint64_t bytes, int64_t limit,
                               const rlhf__cuda_rows &r) {
    const kv_copy<U> c = {(U *)to[0],
                          (U *)to[1],
                          (const U *)from[0],
                          (const U *)from[1],
                          stride / sizeof(U),
                          (uint32_t)(bytes / sizeof(U)),
                          limit};
    RUN(cu, kv_store_rows<U>, dim3(r.total > r.n ? r.total : r.n), dim3(THREADS), 0, c, r);
    return rlhf__cuda_done(cu);
}

static rlhf_status kv_store(void *ctx, rlhf_dev k_cache, rlhf_dev v_cache, rlhf_dev k, rlhf_dev v,
                            int64_t kv_src_stride, const rlhf_ragged *from_caller, int32_t d,
                            int32_t dtype) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_check_d(cu, "kv_store", d));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "kv_store", dtype));
    rlhf__cuda_rows r;
    RLHF_TRY(rlhf__cuda_read_ragged(cu, "kv_store", &r, from_caller));
    r.window = 1; // only the new tokens need a location
    if (!r.n) return RLHF_OK;
    const uint64_t size = rlhf_dtype_size(dtype), bytes = (uint64_t)d * size;
    const uint64_t stride = (uint64_t)kv_src_stride * size;
    void *const to[2] = {rlhf__cuda_mem(k_cache), rlhf__cuda_mem(v_cache)};
    const void *const from[2] = {rlhf__cuda_mem(k), rlhf__cuda_mem(v)};
    uint64_t extent[2], bits = bytes | stride;
    for (int i = 0; i < 2; i++) {
        extent[i] = rlhf__cuda_extent(cu, to[i]);
        bits |= (uint64_t)(uintptr_t)to[i] | (uint64_t)(uintptr_t)from[i];
        rlhf__cuda_wrote(cu, to[i], extent[i]); // only the device knows which rows were written
    }
    const int64_t limit = (int64_t)((extent[0] < extent[1] ? extent[0] : extent[1]) / bytes);
    if (bits % sizeof(uint4) == 0) return kv_store_as<uint4>(cu, to, from, stride, bytes, limit, r);
    if (bits % sizeof(unsigned) == 0)
        return kv_store_as<unsigned>(cu, to, from, stride, bytes, limit, r);
    return kv_store_as<uint16_t>(cu, to, from, stride, bytes, limit, r);
}

void rlhf__cuda_fill_kv_store(rlhf_compute *t) { t->kv_store = kv_store; }
