// word.h: integer atomics, and CUDA's functions on the bits of one word.
//
// Float atomics are left out: a GPU does not fix their order, so kernels must not use them.
#ifndef RLHF_TESTS_CUDA_EMU_WORD_H
#define RLHF_TESTS_CUDA_EMU_WORD_H

#include "types.h"

#define EMU_ATOMIC(T)                                                                              \
    inline T atomicAdd(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }           \
    inline T atomicExch(T *p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_RELAXED); }         \
    inline T atomicAnd(T *p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }           \
    inline T atomicOr(T *p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }             \
    inline T atomicXor(T *p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); }           \
    inline T atomicCAS(T *p, T old, T v) {                                                         \
        __atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);        \
        return old;                                                                                \
    }
#define EMU_ATOMIC_ORDER(T)                                                                        \
    inline T atomicMin(T *p, T v) {                                                                \
        T o = __atomic_load_n(p, __ATOMIC_RELAXED);                                                \
        if (v < o) __atomic_store_n(p, v, __ATOMIC_RELAXED);                                       \
        return o;                                                                                  \
    }                                                                                              \
    inline T atomicMax(T *p, T v) {                                                                \
        T o = __atomic_load_n(p, __ATOMIC_RELAXED);                                                \
        if (v > o) __atomic_store_n(p, v, __ATOMIC_RELAXED);                                       \
        return o;                                                                                  \
    }
EMU_ATOMIC(int)
EMU_ATOMIC(unsigned)
EMU_ATOMIC(unsigned long long)
EMU_ATOMIC_ORDER(int)
EMU_ATOMIC_ORDER(unsigned)
EMU_ATOMIC_ORDER(long long)
EMU_ATOMIC_ORDER(unsigned long long)
#undef EMU_ATOMIC
#undef EMU_ATOMIC_ORDER

#define EMU_BITS(name, To, From)                                                                   \
    inline To name(From f) {                                                                       \
        To t;                                                                                      \
        static_assert(sizeof t == sizeof f, "");                                                   \
        memcpy(&t, &f, sizeof t);                                                                  \
        return t;                                                                                  \
    }
EMU_BITS(__uint_as_float, float, unsigned)
EMU_BITS(__float_as_uint, unsigned, float)
EMU_BITS(__int_as_float, float, int)
EMU_BITS(__float_as_int, int, float)
EMU_BITS(__longlong_as_double, double, long long)
EMU_BITS(__double_as_longlong, long long, double)
#undef EMU_BITS

inline int __popc(unsigned u) { return __builtin_popcount(u); }
inline int __popcll(unsigned long long u) { return __builtin_popcountll(u); }
inline int __ffs(int i) { return __builtin_ffs(i); }
inline int __ffsll(long long i) { return __builtin_ffsll(i); }
inline int __clz(int i) { return i ? __builtin_clz((unsigned)i) : 32; }
inline int __clzll(long long i) { return i ? __builtin_clzll((unsigned long long)i) : 64; }
inline unsigned __brev(unsigned u) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        r |= (u >> i & 1u) << (31 - i);
    return r;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

// Loads with a cache hint are plain loads.
template <class T> inline T __ldg(const T *p) { return *p; }
template <class T> inline T __ldcg(const T *p) { return *p; }
template <class T> inline T __ldcs(const T *p) { return *p; }
template <class T> inline void __stcs(T *p, T v) { *p = v; }

#define EMU_ORDER(T)                                                                               \
    inline T min(T a, T b) { return a < b ? a : b; }                                               \
    inline T max(T a, T b) { return a > b ? a : b; }
EMU_ORDER(int)
EMU_ORDER(unsigned)
EMU_ORDER(long)
EMU_ORDER(unsigned long)
EMU_ORDER(long long)
EMU_ORDER(unsigned long long)
#undef EMU_ORDER

// ex2.approx.ftz.f32. The result of a card may differ from this one by up to two ulp.
inline float emu_ex2(float x) {
    const float y = fabsf(x) < 0x1p-126f ? 1.0f : (float)exp2((double)x);
    return y < 0x1p-126f ? 0.0f : y;
}

#endif
