// any.h: access to an array whose elements are bf16 or f32. The dtype is a constant after
// inlining. Hot sources include this file after vec.h.
#ifndef RLHF_KERNELS_CPU_MACHINE_ANY_H
#define RLHF_KERNELS_CPU_MACHINE_ANY_H

#include "vec.h"

#define INLINE static inline __attribute__((always_inline))

// Load elements i .. i+m-1, m <= VF_LANES. The remaining lanes are 0.
INLINE vf load_any(const void *p, int bf16, size_t i, size_t m) {
    if (bf16)
        return m == VF_LANES ? vf_load_bf16((const uint16_t *)p + i)
                             : vf_load_bf16_n((const uint16_t *)p + i, m);
    return m == VF_LANES ? vf_load((const float *)p + i) : vf_load_n((const float *)p + i, m);
}
INLINE void store_any(void *p, int bf16, size_t i, vf v, size_t m) {
    if (bf16 && m == VF_LANES)
        vf_store_bf16((uint16_t *)p + i, v);
    else if (bf16)
        vf_store_bf16_n((uint16_t *)p + i, v, m);
    else if (m == VF_LANES)
        vf_store((float *)p + i, v);
    else
        vf_store_n((float *)p + i, v, m);
}

#endif
