// norm_row.h: how the norms read a row.
//
// One warp processes one row. Lane l processes columns 128 g + 4 l to 128 g + 4 l + 3 for g = 0, 1,
// ... Kernels with GROUPS > 0 keep the row in registers. Kernels with GROUPS = 0 read the row again
// in each pass; they are for rows that are too wide or misaligned. Both kinds add in the same
// order.
#ifndef RLHF_CUDA_NORM_ROW_H
#define RLHF_CUDA_NORM_ROW_H

#include "row/lanes.h"

enum { RLHF__NORM_N = 4, RLHF__NORM_COLUMNS = 32 * RLHF__NORM_N };

// A row of d numbers. If GROUPS > 0, d is at most GROUPS * RLHF__NORM_COLUMNS.
template <class T, int GROUPS, bool WIDE> struct rlhf__norm_row {
    const T *p;
    uint32_t d, lane;
    float kept[GROUPS ? GROUPS : 1][RLHF__NORM_N];

    __device__ __forceinline__ rlhf__norm_row(const T *row, uint32_t width)
        : p(row), d(width), lane(threadIdx.x % 32) {
        for (int g = 0; g < GROUPS; g++)
            rlhf__load<WIDE>(kept[g], p, at(g), d);
    }
    __device__ __forceinline__ uint32_t at(int g) const {
        return (uint32_t)g * RLHF__NORM_COLUMNS + lane * RLHF__NORM_N;
    }
    __device__ __forceinline__ int groups() const {
        return GROUPS ? GROUPS : (int)((d + RLHF__NORM_COLUMNS - 1) / RLHF__NORM_COLUMNS);
    }
    __device__ __forceinline__ void get(float (&v)[RLHF__NORM_N], int g) const {
        if (GROUPS)
            for (int j = 0; j < RLHF__NORM_N; j++)
                v[j] = kept[GROUPS ? g : 0][j];
        else
            rlhf__load<WIDE>(v, p, at(g), d);
    }
    // True if element j of group g is in the row.
    __device__ __forceinline__ bool has(int g, int j) const {
        return WIDE ? at(g) < d : at(g) + (uint32_t)j < d;
    }
};

#endif
