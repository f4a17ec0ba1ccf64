// types.h: CUDA's types and function qualifiers: vector types, dim3.
#ifndef RLHF_TESTS_CUDA_EMU_TYPES_H
#define RLHF_TESTS_CUDA_EMU_TYPES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

#define EMU_VECTORS(T, type)                                                                       \
    struct __align__(2 * sizeof(type)) T##2 {                                                      \
        type x, y;                                                                                 \
    };                                                                                             \
    struct __align__(16) T##4 {                                                                    \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    inline T##2 make_##T##2(type x, type y) { return {x, y}; }                                     \
    inline T##4 make_##T##4(type x, type y, type z, type w) { return {x, y, z, w}; }
EMU_VECTORS(float, float)
EMU_VECTORS(int, int)
EMU_VECTORS(uint, unsigned)
#undef EMU_VECTORS
struct __align__(16) double2 {
    double x, y;
};
inline double2 make_double2(double x, double y) { return {x, y}; }
struct __align__(16) ulonglong2 {
    unsigned long long x, y;
};
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

#endif
