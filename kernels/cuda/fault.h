// fault.h: what kernels find wrong in the contents of device arrays. The first finding stays in one
// word of device memory until the next wait, which makes its sentence.
#ifndef RLHF_CUDA_FAULT_H
#define RLHF_CUDA_FAULT_H

#include "cuda.h"

#include <rlhf/base.h>

// X(name, status, sentence with index, value, limit as three %lld in this order)
#define RLHF__FAULT_MAP(X)                                                                         \
    X(EMBED_ID, RLHF_E_INVALID, "embed: ids[%lld] = %lld, vocabulary %lld")                        \
    X(EMBED_POS, RLHF_E_INVALID, "embed: pos[%lld] = %lld, positions %lld")

enum rlhf__fault_code {
    RLHF__FAULT_NONE,
#define RLHF__FAULT_ENUM(name, status, text) RLHF__FAULT_##name,
    RLHF__FAULT_MAP(RLHF__FAULT_ENUM)
#undef RLHF__FAULT_ENUM
        RLHF__FAULT_COUNT
};

struct rlhf__fault {
    int code, reserved; // enum rlhf__fault_code
    long long index, value, limit;
};

// Keeps the first. The caller goes on without touching what the number would lead to.
static __device__ __forceinline__ void rlhf__fault_raise(struct rlhf__fault *f, int code,
                                                         long long index, long long value,
                                                         long long limit) {
    if (atomicCAS(&f->code, 0, code) != 0) return;
    f->index = index;
    f->value = value;
    f->limit = limit;
}

#endif
