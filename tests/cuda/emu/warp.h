// warp.h: barriers, shuffles, votes and reductions under CUDA's names.
#ifndef RLHF_TESTS_CUDA_EMU_WARP_H
#define RLHF_TESTS_CUDA_EMU_WARP_H

#include "barrier.h"

namespace emu {

template <class T> EMU_UNSEEN inline T shuffle(unsigned mask, T v, unsigned from, int line) {
    const uint64_t(*s)[4] = exchange(mask, v, line);
    if (!(mask >> from & 1)) die("shuffle from a lane outside the mask", line);
    T r;
    __builtin_memcpy(&r, s[from], sizeof r);
    return r;
}

// Combines the values of the mask's lanes by f, in lane order.
template <class T, class F> EMU_UNSEEN inline T fold(unsigned mask, T v, int line, F f) {
    const uint64_t(*s)[4] = exchange(mask, v, line);
    T r = 0, x;
    bool any = false;
    for (unsigned l = 0; l < LANES; l++) {
        if (!(mask >> l & 1)) continue;
        __builtin_memcpy(&x, s[l], sizeof x);
        r = any ? f(r, x) : x;
        any = true;
    }
    return r;
}

} // namespace emu

#define EMU_LINE int line = __builtin_LINE()

inline void __syncthreads(EMU_LINE) { emu::block_barrier(line); }
inline void __syncwarp(unsigned mask = ~0u, EMU_LINE) { emu::warp_barrier(mask, line); }

template <class T> inline T __shfl_sync(unsigned m, T v, int from, int w = 32, EMU_LINE) {
    const unsigned lane = emu::self->lane, width = (unsigned)w;
    return emu::shuffle(m, v, lane / width * width + (unsigned)from % width, line);
}
template <class T> inline T __shfl_xor_sync(unsigned m, T v, int x, int w = 32, EMU_LINE) {
    const unsigned lane = emu::self->lane, width = (unsigned)w, to = lane ^ (unsigned)x;
    return emu::shuffle(m, v, to / width <= lane / width ? to : lane, line);
}
template <class T> inline T __shfl_down_sync(unsigned m, T v, unsigned d, int w = 32, EMU_LINE) {
    const unsigned lane = emu::self->lane, to = lane % (unsigned)w + d;
    return emu::shuffle(m, v, to < (unsigned)w ? lane + d : lane, line);
}
template <class T> inline T __shfl_up_sync(unsigned m, T v, unsigned d, int w = 32, EMU_LINE) {
    const unsigned lane = emu::self->lane;
    return emu::shuffle(m, v, lane % (unsigned)w >= d ? lane - d : lane, line);
}

inline unsigned __ballot_sync(unsigned m, int p, EMU_LINE) {
    const unsigned bit = p ? 1u << emu::self->lane : 0;
    return emu::fold(m, bit, line, [](unsigned a, unsigned b) { return a | b; });
}
inline int __any_sync(unsigned m, int p, EMU_LINE) { return __ballot_sync(m, p, line) != 0; }
inline int __all_sync(unsigned m, int p, EMU_LINE) { return __ballot_sync(m, p, line) == m; }
template <class T> inline unsigned __match_any_sync(unsigned m, T v, EMU_LINE) {
    const uint64_t(*s)[4] = emu::exchange(m, v, line);
    unsigned r = 0;
    for (unsigned l = 0; l < emu::LANES; l++)
        if (m >> l & 1 && !memcmp(s[l], &v, sizeof v)) r |= 1u << l;
    return r;
}

#define EMU_REDUCE(name, T, expr)                                                                  \
    inline T __reduce_##name##_sync(unsigned m, T v, EMU_LINE) {                                   \
        return emu::fold(m, v, line, [](T a, T b) { return (T)(expr); });                          \
    }
EMU_REDUCE(add, unsigned, a + b)
EMU_REDUCE(add, int, (unsigned)a + (unsigned)b)
EMU_REDUCE(min, unsigned, a < b ? a : b)
EMU_REDUCE(min, int, a < b ? a : b)
EMU_REDUCE(max, unsigned, a > b ? a : b)
EMU_REDUCE(max, int, a > b ? a : b)
EMU_REDUCE(and, unsigned, a &b)
EMU_REDUCE(or, unsigned, a | b)
EMU_REDUCE(xor, unsigned, a ^ b)
#undef EMU_REDUCE

#endif
