// elementwise.cu: copy, zero and convert (act, act_bwd and add follow).
#include "table.h"

enum { THREADS = 256 };

static dim3 blocks_for(uint64_t n) { return dim3((unsigned)((n + THREADS - 1) / THREADS)); }

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

template <class To, class From>
static __global__ void __launch_bounds__(THREADS)
    convert_all(To *to, const From *from, uint64_t n) {
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n) rlhf__put(to, i, rlhf__get(from, i));
}

static rlhf_status convert(void *ctx, rlhf_dev dst, int32_t dst_dtype, rlhf_dev src,
                           int32_t src_dtype, uint64_t n) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    if (dst_dtype == src_dtype) return copy(ctx, dst, src, n * rlhf_dtype_size(src_dtype));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "convert", dst_dtype));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "convert", src_dtype));
    if (!n) return RLHF_OK;
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(dst), n * rlhf_dtype_size(dst_dtype));
    if (dst_dtype == RLHF_BF16)
        RUN(cu, (convert_all<rlhf__bf16, float>), blocks_for(n), dim3(THREADS), 0,
            rlhf__cuda_mem<rlhf__bf16>(dst), rlhf__cuda_f32(src), n);
    else
        RUN(cu, (convert_all<float, rlhf__bf16>), blocks_for(n), dim3(THREADS), 0,
            rlhf__cuda_f32(dst), rlhf__cuda_mem<rlhf__bf16>(src), n);
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_fill_elementwise(rlhf_compute *t) {
    t->copy = copy;
    t->zero = zero;
    t->convert = convert;
}
