// barrier.h: barriers of a block and of a warp, and the exchange of values between lanes.
#ifndef RLHF_TESTS_CUDA_EMU_BARRIER_H
#define RLHF_TESTS_CUDA_EMU_BARRIER_H

#include "fiber.h"

namespace emu {

struct warp {
    unsigned arrived, mask, round;
    int line;
    char token[2];              // represents the barrier to the race detector
    uint64_t slot[2][LANES][4]; // 32 bytes per lane: enough for the operands of mma
    uint64_t out[2][LANES][2];  // results of mma and ldmatrix; the last lane computes them all
};
inline warp warps[MAX_THREADS / LANES];
inline char block_token[2]; // two barriers, used alternately
inline unsigned block_round;
inline int block_line;

EMU_UNSEEN inline void block_barrier(int line) {
    if (at_block == 0) block_line = line;
    if (line != block_line) die("meets a barrier of another line", line);
    self->line = line;
    EMU_TSAN(char *t = &block_token[block_round & 1]; __tsan_release(t);)
    if (++at_block < n_live) {
        self->state = AT_BLOCK;
        yield();
    } else {
        if (n_live < n_threads) die("a barrier that some threads have already left", line);
        at_block = 0;
        block_round++;
        for (unsigned i = 0; i < n_threads; i++)
            if (fibers[i].state == AT_BLOCK) fibers[i].state = RUN;
    }
    EMU_TSAN(__tsan_acquire(t);)
}

// `finish` is run by the last lane to arrive, before any other lane continues.
struct nothing {
    void operator()(warp &) const {}
};
template <class F = nothing>
EMU_UNSEEN inline void warp_barrier(unsigned mask, int line, F finish = {}) {
    warp &w = warps[self->linear / LANES];
    const unsigned bit = 1u << self->lane;
    if (!(mask & bit)) die("a lane outside the mask takes part", line);
    if (w.arrived == 0) w.mask = mask, w.line = line;
    if (w.mask != mask || w.line != line) die("lanes meet in different warp operations", line);
    self->line = line;
    EMU_TSAN(char *t = &w.token[w.round & 1]; __tsan_release(t);)
    w.arrived |= bit;
    if (w.arrived != mask) {
        self->state = AT_WARP;
        yield();
    } else {
        EMU_TSAN(__tsan_acquire(t);)
        finish(w);
        EMU_TSAN(__tsan_release(t);)
        w.arrived = 0;
        w.round++;
        const unsigned base = self->linear / LANES * LANES;
        for (unsigned l = 0; l < LANES; l++)
            if (base + l < n_threads && fibers[base + l].state == AT_WARP)
                fibers[base + l].state = RUN;
    }
    EMU_TSAN(__tsan_acquire(t);)
}

// Every lane contributes a value of at most 32 bytes. Returns the array of all lanes' values. Two
// buffers suffice, used alternately, because no lane can be two exchanges ahead of another.
template <class T, class F = nothing>
EMU_UNSEEN inline unsigned put(unsigned mask, const T &v, int line, F finish = {}) {
    static_assert(sizeof(T) <= 32, "a lane hands over at most 32 bytes");
    const unsigned p = self->phase ^= 1;
    __builtin_memcpy(warps[self->linear / LANES].slot[p][self->lane], &v, sizeof v);
    warp_barrier(mask, line, finish);
    return p;
}
template <class T>
EMU_UNSEEN inline const uint64_t (*exchange(unsigned mask, const T &v, int line))[4] {
    const unsigned p = put(mask, v, line);
    return warps[self->linear / LANES].slot[p];
}

} // namespace emu
#endif
