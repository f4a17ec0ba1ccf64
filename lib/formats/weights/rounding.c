// rounding.c: see rounding.h.
#include "weights/rounding.h"

#include <math.h>
#include <string.h>

int rlhf__tensor_is_float(int32_t dtype) {
    return dtype == RLHF__TENSOR_F32 || dtype == RLHF__TENSOR_F16 || dtype == RLHF__TENSOR_BF16;
}

rlhf_status rlhf__tensor_check_float(const struct rlhf__tensor *t, struct rlhf__error *err) {
    if (rlhf__tensor_is_float(t->dtype)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s: tensor %s is of dtype %s; of numbers F32, F16 and BF16 are taken",
                      t->file, t->name, rlhf__tensor_dtype_name(t->dtype));
}

static rlhf_status too_large(const struct rlhf__rounding *from, int64_t at, float x, int32_t dtype,
                             struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: element %lld of tensor %s is %.9g, which is more than %s holds (%s); "
                      "choose %s",
                      from->file, (long long)at, from->tensor, (double)x,
                      dtype == RLHF__TENSOR_F16 ? "f16" : "bf16",
                      dtype == RLHF__TENSOR_F16 ? "65504" : "3.39e38",
                      dtype == RLHF__TENSOR_F16 ? "bf16 or f32" : "f32");
}

rlhf_status rlhf__round_f32(const float *in, size_t n, int32_t dtype, void *out,
                            const struct rlhf__rounding *from, struct rlhf__error *err) {
    if (dtype == RLHF__TENSOR_F32) {
        if (n) memcpy(out, in, n * sizeof *in); // files and hosts are little-endian
        return RLHF_OK;
    }
    const int half = dtype == RLHF__TENSOR_F16;
    const uint16_t infinity = half ? 0x7C00 : 0x7F80;
    uint16_t *to = out;
    for (size_t i = 0; i < n; i++) {
        to[i] = half ? rlhf__f32_to_f16(in[i]) : rlhf__f32_to_bf16(in[i]);
        if ((to[i] & 0x7FFF) == infinity && isfinite(in[i]))
            return too_large(from, from->first + (int64_t)i, in[i], dtype, err);
    }
    return RLHF_OK;
}
