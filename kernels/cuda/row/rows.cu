// rows.cu: operations that move rows: gather and scatter_add.
#include "machine/table.h"
#include "row/lanes.h"

enum { N = 4, THREADS = 256 };

static dim3 grid_for(uint64_t items) { return dim3((unsigned)((items + THREADS - 1) / THREADS)); }

// A thread moves one element of type U. A row has `units` such elements.
template <class U>
static __global__ void __launch_bounds__(THREADS)
    gather_rows(U *out, const U *x, const int32_t *idx, uint32_t n, uint32_t units, int64_t limit,
                struct rlhf__fault *fault) {
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    const uint64_t row = i / units, c = i % units;
    if (row >= n) return;
    const int32_t from = idx[row];
    if (from < 0 || from >= limit) {
        rlhf__fault_raise(fault, RLHF__FAULT_GATHER_ROW, (long long)row, from, limit);
        return;
    }
    out[i] = x[(uint64_t)from * units + c];
}

template <class U>
static rlhf_status gather_as(struct rlhf__cuda *cu, void *out, const void *x, const int32_t *idx,
                             uint32_t n, uint64_t bytes) {
    const uint32_t units = (uint32_t)(bytes / sizeof(U));
    RUN(cu, gather_rows<U>, grid_for((uint64_t)n * units), dim3(THREADS), 0, (U *)out, (const U *)x,
        idx, n, units, (int64_t)(rlhf__cuda_extent(cu, x) / bytes), cu->fault);
    return rlhf__cuda_done(cu);
}

static rlhf_status gather(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n, int32_t d,
                          int32_t dtype) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_check_d(cu, "gather", d));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "gather", dtype));
    if (!n) return RLHF_OK;
    const uint64_t bytes = (uint64_t)d * rlhf_dtype_size(dtype);
    void *const o = rlhf__cuda_mem(out);
    const void *const from = rlhf__cuda_mem(x);
    const uintptr_t bits = (uintptr_t)o | (uintptr_t)from | bytes;
    rlhf__cuda_wrote(cu, o, n * bytes);
    if (bits % sizeof(uint4) == 0)
        return gather_as<uint4>(cu, o, from, rlhf__cuda_i32(idx), n, bytes);
    if (bits % sizeof(unsigned) == 0)
        return gather_as<unsigned>(cu, o, from, rlhf__cuda_i32(idx), n, bytes);
    return gather_as<uint16_t>(cu, o, from, rlhf__cuda_i32(idx), n, bytes);
}

// A thread adds 4 columns of one row. All indices in idx are different, so threads do not conflict.
template <class T, bool WIDE>
static __global__ void __launch_bounds__(THREADS)
    scatter_rows(float *dx, const T *dy, const int32_t *idx, uint32_t n, uint32_t d,
                 uint32_t groups, int64_t limit, struct rlhf__fault *fault) {
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    const uint64_t row = i / groups, c = i % groups * N;
    if (row >= n) return;
    const int32_t to = idx[row];
    if (to < 0 || to >= limit) {
        rlhf__fault_raise(fault, RLHF__FAULT_SCATTER_ROW, (long long)row, to, limit);
        return;
    }
    float v[N], sum[N];
    rlhf__load<WIDE>(v, dy + row * d, c, d);
    rlhf__load<WIDE>(sum, dx + (uint64_t)to * d, c, d);
    for (int j = 0; j < N; j++)
        sum[j] += v[j];
    rlhf__store<WIDE>(dx + (uint64_t)to * d, sum, c, d);
}

template <class T>
static rlhf_status scatter_as(struct rlhf__cuda *cu, float *dx, const T *dy, const int32_t *idx,
                              uint32_t n, uint32_t d) {
    const bool wide = rlhf__aligned<N>(dx, d) && rlhf__aligned<N>(dy, d);
    const uint32_t groups = (d + N - 1) / N;
    const uint64_t extent = rlhf__cuda_extent(cu, dx);
    rlhf__cuda_wrote(cu, dx, extent); // only the device knows which rows were written
    RUN(cu, (wide ? scatter_rows<T, true> : scatter_rows<T, false>), grid_for((uint64_t)n * groups),
        dim3(THREADS), 0, dx, dy, idx, n, d, groups, (int64_t)(extent / (d * sizeof *dx)),
        cu->fault);
    return rlhf__cuda_done(cu);
}

static rlhf_status scatter_add(void *ctx, rlhf_dev dx, rlhf_dev dy, int32_t dy_dtype, rlhf_dev idx,
                               uint32_t n, int32_t d) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_check_d(cu, "scatter_add", d));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "scatter_add", dy_dtype));
    if (!n) return RLHF_OK;
    if (dy_dtype == RLHF_BF16)
        return scatter_as(cu, rlhf__cuda_f32(dx), rlhf__cuda_mem<rlhf__bf16>(dy),
                          rlhf__cuda_i32(idx), n, (uint32_t)d);
    return scatter_as(cu, rlhf__cuda_f32(dx), rlhf__cuda_f32(dy), rlhf__cuda_i32(idx), n,
                      (uint32_t)d);
}

void rlhf__cuda_fill_rows(rlhf_compute *t) {
    t->gather = gather;
    t->scatter_add = scatter_add;
}
