// convert.c: f32 <-> bf16, and f32 or bf16 to itself.
#include "number.h"
#include "ops.h"

rlhf_status rlhf__ref_convert(void *ctx, rlhf_dev dst, int32_t dst_dtype, rlhf_dev src,
                              int32_t src_dtype, uint64_t n) {
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "convert", dst_dtype));
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "convert", src_dtype));
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(dst, n, rlhf_dtype_size(dst_dtype)),
                                         rlhf__ref_range(src, n, rlhf_dtype_size(src_dtype))};
    RLHF_TRY(rlhf__ref_enter(ctx, "convert", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t i = 0; i < n; i++)
        rlhf__ref_put(dst, dst_dtype, i, rlhf__ref_get(src, src_dtype, i));
    return rlhf__ref_leave(ctx, RLHF_OK);
}
