// elementwise.cu: copy, zero, convert and add.
#include "machine/table.h"
#include "row/lanes.h"

enum { N = 4, GROUPS = RLHF__FLAT_EACH / N };

static rlhf_status copy(void *ctx, rlhf_dev dst, rlhf_dev src, uint64_t bytes) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    if (!bytes) return RLHF_OK;
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(dst), bytes);
    return rlhf__cuda_check(cu, "copy",
                            cudaMemcpyAsync(rlhf__cuda_mem(dst), rlhf__cuda_mem(src), bytes,
                                            cudaMemcpyDeviceToDevice, cu->stream));
}

static rlhf_status zero(void *ctx, rlhf_dev dst, uint64_t bytes) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    if (!bytes) return RLHF_OK;
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(dst), bytes);
    return rlhf__cuda_check(cu, "zero", cudaMemsetAsync(rlhf__cuda_mem(dst), 0, bytes, cu->stream));
}

template <class To, class From, bool WIDE>
static __global__ void __launch_bounds__(RLHF__FLAT_THREADS)
    convert_all(To *to, const From *from, uint64_t n) {
    float v[GROUPS][N];
    for (int g = 0; g < GROUPS; g++)
        rlhf__load<WIDE>(v[g], from, rlhf__flat_at<N>(g), n);
    for (int g = 0; g < GROUPS; g++)
        rlhf__store<WIDE>(to, v[g], rlhf__flat_at<N>(g), n);
}

template <class To, class From>
static rlhf_status convert_as(struct rlhf__cuda *cu, To *to, const From *from, uint64_t n) {
    rlhf__cuda_wrote(cu, to, n * sizeof *to);
    if (rlhf__aligned<N>(to, 0) && rlhf__aligned<N>(from, 0))
        RUN(cu, (convert_all<To, From, true>), rlhf__flat_grid(n), dim3(RLHF__FLAT_THREADS), 0, to,
            from, n);
    else
        RUN(cu, (convert_all<To, From, false>), rlhf__flat_grid(n), dim3(RLHF__FLAT_THREADS), 0, to,
            from, n);
    return rlhf__cuda_done(cu);
}

static rlhf_status convert(void *ctx, rlhf_dev dst, int32_t dst_dtype, rlhf_dev src,
                           int32_t src_dtype, uint64_t n) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    if (dst_dtype == src_dtype) return copy(ctx, dst, src, n * rlhf_dtype_size(src_dtype));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "convert", dst_dtype));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "convert", src_dtype));
    if (!n) return RLHF_OK;
    if (dst_dtype == RLHF_BF16)
        return convert_as(cu, rlhf__cuda_mem<rlhf__bf16>(dst), rlhf__cuda_f32(src), n);
    return convert_as(cu, rlhf__cuda_f32(dst), rlhf__cuda_mem<rlhf__bf16>(src), n);
}

template <class From, bool WIDE>
static __global__ void __launch_bounds__(RLHF__FLAT_THREADS)
    add_all(float *to, const From *from, uint64_t n) {
    float v[GROUPS][N], sum[GROUPS][N];
    for (int g = 0; g < GROUPS; g++) {
        rlhf__load<WIDE>(v[g], from, rlhf__flat_at<N>(g), n);
        rlhf__load<WIDE>(sum[g], to, rlhf__flat_at<N>(g), n);
    }
    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < N; i++)
            sum[g][i] += v[g][i];
        rlhf__store<WIDE>(to, sum[g], rlhf__flat_at<N>(g), n);
    }
}

template <class From>
static rlhf_status add_as(struct rlhf__cuda *cu, float *to, const From *from, uint64_t n) {
    rlhf__cuda_wrote(cu, to, n * sizeof *to);
    if (rlhf__aligned<N>(to, 0) && rlhf__aligned<N>(from, 0))
        RUN(cu, (add_all<From, true>), rlhf__flat_grid(n), dim3(RLHF__FLAT_THREADS), 0, to, from,
            n);
    else
        RUN(cu, (add_all<From, false>), rlhf__flat_grid(n), dim3(RLHF__FLAT_THREADS), 0, to, from,
            n);
    return rlhf__cuda_done(cu);
}

static rlhf_status add(void *ctx, rlhf_dev dst, rlhf_dev src, int32_t src_dtype, uint64_t n) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "add", src_dtype));
    if (!n) return RLHF_OK;
    if (src_dtype == RLHF_BF16)
        return add_as(cu, rlhf__cuda_f32(dst), rlhf__cuda_mem<rlhf__bf16>(src), n);
    return add_as(cu, rlhf__cuda_f32(dst), rlhf__cuda_f32(src), n);
}

void rlhf__cuda_fill_elementwise(rlhf_compute *t) {
    t->copy = copy;
    t->zero = zero;
    t->convert = convert;
    t->add = add;
}
