// mathf.h: exp, log, tanh, erf and similar functions in f32, built only from + - * / and fmaf, so
// that nvcc (-fmad=false) and a C++ compiler give the same bits. Denormals, infinities and NaN are
// handled as in <math.h>; only the sign and payload of a NaN may differ between devices.
//
// This file uses no math library and no fast intrinsics. sqrtf and division are used directly,
// because both compilers round them correctly.
//
// The largest errors over all finite floats, in units in the last place (ulp) of the exact result:
//   rlhf__expf 1.1   rlhf__exp2f 1.1   rlhf__logf 0.9   rlhf__tanhf 1.4   rlhf__erff 1.5
// tests/cuda/test_mathf.cpp checks a sample of floats against these bounds. The polynomials are
// minimax fits of the relative error, made for this file. The error that a comment gives for a
// polynomial is its largest relative error without f32 rounding.
#ifndef RLHF_CUDA_MACHINE_MATHF_H
#define RLHF_CUDA_MACHINE_MATHF_H

#include "cuda.h"

// 2^n, -126 <= n <= 127.
static __device__ __forceinline__ float rlhf__pow2(int n) {
    return __uint_as_float((unsigned)(n + 127) << 23);
}

// Rounds x to the nearest integer, ties to even; |x| < 2^22.
static __device__ __forceinline__ float rlhf__rintf(float x) {
    return (x + 12582912.0f) - 12582912.0f;
}

// |x| with the sign of s, for x >= 0 or NaN.
static __device__ __forceinline__ float rlhf__with_sign(float x, float s) {
    return __uint_as_float(__float_as_uint(x) | (__float_as_uint(s) & 0x80000000u));
}

// 2^n e^r for |r| <= ln 2 / 2 and -252 <= n <= 254. Error of the polynomial: 3.4e-9. 2^n is applied
// as two factors, so that only the last multiplication rounds to a denormal or overflows.
static __device__ __forceinline__ float rlhf__exp_reduced(float r, int n) {
    float p = 0x1.6a4b98p-10f;
    p = fmaf(p, r, 0x1.123e5cp-7f);
    p = fmaf(p, r, 0x1.5558bap-5f);
    p = fmaf(p, r, 0x1.55548cp-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    p = 1.0f + fmaf(p * r, r, r);
    const int half = n >> 1;
    return p * rlhf__pow2(half) * rlhf__pow2(n - half);
}

// e^x = 2^n e^r with x = n ln 2 + r, where ln 2 is the sum of two constants.
static __device__ __forceinline__ float rlhf__expf(float x) {
    const float c = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x; // beyond: 0, inf; NaN stays
    const float n = rlhf__rintf(c * 0x1.715476p+0f);
    const float r = fmaf(n, 0x1.05c610p-29f, fmaf(n, -0x1.62e430p-1f, c));
    return c == c ? rlhf__exp_reduced(r, (int)n) : c;
}

// 2^x
static __device__ __forceinline__ float rlhf__exp2f(float x) {
    const float c = x < -150.0f ? -150.0f : x > 128.0f ? 128.0f : x;
    const float n = rlhf__rintf(c);
    return c == c ? rlhf__exp_reduced((c - n) * 0x1.62e430p-1f, (int)n) : c;
}

// The natural logarithm: x = 2^e m, m in [2/3, 4/3), f = m - 1. Error of the polynomial: 8.8e-10.
// Returns -inf for 0, NaN for negative x.
static __device__ __forceinline__ float rlhf__logf(float x) {
    if (!(x > 0.0f))
        return x == 0.0f ? -__uint_as_float(0x7f800000u) : __uint_as_float(0x7fc00000u);
    if (x > 0x1.fffffep+127f) return x;
    const bool denormal = x < 0x1p-126f;
    const unsigned u = __float_as_uint(denormal ? x * 0x1p+24f : x);
    const int e = (int)(u - 0x3f2aaaabu) >> 23;
    const float f = __uint_as_float(u - ((unsigned)e << 23)) - 1.0f, s = f * f;
    float p = 0x1.e9d18ap-4f;
    p = fmaf(p, f, -0x1.06c2bap-3f);
    p = fmaf(p, f, 0x1.b91efap-4f);
    p = fmaf(p, f, -0x1.f3b02cp-4f);
    p = fmaf(p, f, 0x1.24eb6ep-3f);
    p = fmaf(p, f, -0x1.55978cp-3f);
    p = fmaf(p, f, 0x1.9997eep-3f);
    p = fmaf(p, f, -0x1.ffff18p-3f);
    p = fmaf(p, f, 0x1.555556p-2f);
    p = f + fmaf(p * f, s, -0.5f * s);
    return fmaf((float)(denormal ? e - 24 : e), 0x1.62e430p-1f, p);
}

// tanh x: up to 0.6 an odd polynomial with an error of 2.8e-9; beyond, 1 - 2 / (e^2|x| + 1).
static __device__ __forceinline__ float rlhf__tanhf(float x) {
    const float a = fabsf(x), s = x * x;
    if (a < 0.6f) {
        float p = -0x1.828776p-8f;
        p = fmaf(p, s, 0x1.54c3c2p-6f);
        p = fmaf(p, s, -0x1.b89abap-5f);
        p = fmaf(p, s, 0x1.1109bep-3f);
        p = fmaf(p, s, -0x1.55553ep-2f);
        return rlhf__with_sign(fmaf(p * s, a, a), x);
    }
    return rlhf__with_sign(1.0f - 2.0f / (rlhf__expf(a + a) + 1.0f), x);
}

// 1 / (1 + e^-x). Sets *rest to 1 minus the result, without cancellation or overflow. The error of
// each is at most 3 ulp.
static __device__ __forceinline__ float rlhf__sigmoidf(float x, float *rest) {
    const float e = rlhf__expf(-fabsf(x)), large = 1.0f / (1.0f + e), small = e * large;
    *rest = x < 0.0f ? large : small;
    return x < 0.0f ? small : large;
}

// e^(z z) erfc z for z >= 0, computed as t Q(t) with t = 1 / (1 + 0.4 z). Up to z = 11, the largest
// relative error is 2.4e-9 without f32 rounding (the error of the polynomial Q) and 3e-7 with it.
static __device__ __forceinline__ float rlhf__erfcxf(float z) {
    const float t = 1.0f / fmaf(z, 0.4f, 1.0f);
    float p = -0x1.484472p-6f;
    p = fmaf(p, t, 0x1.665e7ap-4f);
    p = fmaf(p, t, -0x1.a1e248p-4f);
    p = fmaf(p, t, -0x1.c7e328p-5f);
    p = fmaf(p, t, 0x1.0b0620p-3f);
    p = fmaf(p, t, -0x1.81b248p-6f);
    p = fmaf(p, t, 0x1.4cbd02p-3f);
    p = fmaf(p, t, 0x1.480f56p-3f);
    p = fmaf(p, t, 0x1.ad2482p-3f);
    p = fmaf(p, t, 0x1.cdcf88p-3f);
    p = fmaf(p, t, 0x1.ce3306p-3f);
    return p * t;
}

// exp(-c x^2) for c = 0.5 or 1. Corrects for the rounding error of x * x.
static __device__ __forceinline__ float rlhf__gaussf(float x, float c) {
    const float a = fabsf(x), z = a > 15.0f ? 15.0f : a; // beyond 15, the result is 0
    const float square = z * z, rest = fmaf(z, z, -square), e = rlhf__expf(-c * square);
    return fmaf(-e, c * rest, e);
}

// erf x: up to 0.92 an odd polynomial with an error of 8.9e-10; beyond, 1 - erfc |x|.
static __device__ __forceinline__ float rlhf__erff(float x) {
    const float a = fabsf(x), s = x * x;
    if (a < 0.92f) {
        float p = 0x1.4f2db8p-14f;
        p = fmaf(p, s, -0x1.a5fe4ap-11f);
        p = fmaf(p, s, 0x1.544954p-8f);
        p = fmaf(p, s, -0x1.b80112p-6f);
        p = fmaf(p, s, 0x1.ce2d64p-4f);
        p = fmaf(p, s, -0x1.812740p-2f);
        p = fmaf(p, s, 0x1.06eba8p-3f);
        return rlhf__with_sign(fmaf(p, a, a), x);
    }
    return rlhf__with_sign(1.0f - rlhf__erfcxf(a > 11.0f ? 11.0f : a) * rlhf__gaussf(x, 1.0f), x);
}

// The normal distribution function. Sets *density to the derivative, e^(-x x / 2) / sqrt(2 pi).
// There is no cancellation for x < 0. The error is at most 6 ulp for the result and at most 3 ulp
// for *density.
static __device__ __forceinline__ float rlhf__normal_cdf(float x, float *density) {
    const float e = rlhf__gaussf(x, 0.5f), z = fabsf(x) * 0x1.6a09e6p-1f;
    const float tail = 0.5f * rlhf__erfcxf(z > 11.0f ? 11.0f : z) * e;
    *density = e * 0x1.988454p-2f;
    return x < 0.0f ? tail : 1.0f - tail;
}

#endif
