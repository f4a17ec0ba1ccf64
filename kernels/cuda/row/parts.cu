// parts.cu: see parts.h.
#include "row/parts.h"

enum { WARPS = 8 };

// Warp w adds chunks w, w + 8, ... of 32 columns. Then the sums of the warps are added in order.
static __global__ void __launch_bounds__(32 * WARPS)
    add_parts(float *first, float *second, const float *part, uint32_t chunks, uint32_t d) {
    SHARED(float[WARPS][32], of_warps);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, c = blockIdx.x * 32 + lane;
    float *const to = blockIdx.y ? second : first;
    if (!to) return; // the whole block returns
    float s = 0.0f;
    for (uint32_t i = warp; c < d && i < chunks; i += WARPS)
        s += part[((uint64_t)i * gridDim.y + blockIdx.y) * d + c];
    of_warps[warp][lane] = s;
    __syncthreads();
    if (warp || c >= d) return;
    for (int w = 1; w < WARPS; w++)
        s += of_warps[w][lane];
    to[c] += s;
}

rlhf_status rlhf__cuda_add_parts(struct rlhf__cuda *cu, float *const to[2], const float *part,
                                 uint32_t chunks, uint32_t lists, uint32_t d) {
    for (uint32_t l = 0; l < lists; l++)
        if (to[l]) rlhf__cuda_wrote(cu, to[l], d * sizeof *to[l]);
    RUN(cu, add_parts, dim3((d + 31) / 32, lists), dim3(32 * WARPS), 0, to[0],
        lists > 1 ? to[1] : NULL, part, chunks, d);
    return RLHF_OK;
}
