// rounding.h: numbers of a weight file in a narrower dtype, and what does not fit there.
//
// What it is not: kernels; this runs once per export.
#ifndef RLHF_HOST_WEIGHTS_ROUNDING_H
#define RLHF_HOST_WEIGHTS_ROUNDING_H

#include "weights/tensor.h"

// Where numbers are from, for messages.
struct rlhf__rounding {
    const char *file, *tensor;
    int64_t first; // index of the first number in the tensor
};

// 1 for the dtypes that can be read as floats: F32, F16, BF16. [any]
int rlhf__tensor_is_float(int32_t dtype);

// RLHF_E_UNSUPPORTED, with file, tensor and dtype, unless it can be read as floats. [any]
rlhf_status rlhf__tensor_check_float(const struct rlhf__tensor *, struct rlhf__error *err);

// Round n floats to dtype F32, F16 or BF16, nearest even, little-endian, into `out` (n elements). A
// finite number that would become infinite is RLHF_E_INVALID with tensor, place and number. [any]
rlhf_status rlhf__round_f32(const float *in, size_t n, int32_t dtype, void *out,
                            const struct rlhf__rounding *from, struct rlhf__error *err);

#endif
