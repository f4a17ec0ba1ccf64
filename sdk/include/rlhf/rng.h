// rlhf/rng.h: counter-based random numbers, Philox 4x32-10 (Salmon et al., SC 2011).
//
// Plugin contract 1.0, frozen: it only grows.
//
// A random number is a pure function of (seed, stream, counter). It is the same on every device and
// for every number of threads. A generator's only state is its counter. A stream is a *name*
// ("rollout"); the host hashes it with rlhf_rng_stream(). Not cryptographically secure. The
// functions below give the same numbers in all of 1.x.
#ifndef RLHF_RNG_H
#define RLHF_RNG_H

#include <stdint.h>

// Usable in device code too, with the same results.
#ifdef __CUDACC__
#define RLHF_RNG_ANYWHERE static __host__ __device__ inline
#else
#define RLHF_RNG_ANYWHERE static inline
#endif

// The layout is frozen. `counter` is the number of a block of four 32-bit words.
typedef struct rlhf_rng {
    uint64_t seed, stream, counter;
} rlhf_rng;

// 64-bit FNV-1a of a NUL-terminated stream name. [any]
static inline uint64_t rlhf_rng_stream(const char *name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    return h;
}

// out[4] = Philox4x32-10 with key = seed and counter words (counter, stream). [any]
RLHF_RNG_ANYWHERE void rlhf_rng_block(const rlhf_rng *r, uint32_t out[4]) {
    uint32_t c0 = (uint32_t)r->counter, c1 = (uint32_t)(r->counter >> 32);
    uint32_t c2 = (uint32_t)r->stream, c3 = (uint32_t)(r->stream >> 32);
    uint32_t k0 = (uint32_t)r->seed, k1 = (uint32_t)(r->seed >> 32);
    for (int i = 0; i < 10; i++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

// A float in [0, 1) with 24 random bits, from one word. [any]
static inline float rlhf_rng_f32(uint32_t word) { return (float)(word >> 8) / 16777216.0F; }

// A double in [0, 1) with 53 random bits, from two words. [any]
static inline double rlhf_rng_f64(uint32_t hi, uint32_t lo) {
    return (double)((((uint64_t)hi << 32) | lo) >> 11) / 9007199254740992.0;
}

// The next block of *r as a double in [0, 1); advances the counter. [any]
static inline double rlhf_rng_next(rlhf_rng *r) {
    uint32_t w[4];
    rlhf_rng_block(r, w);
    r->counter++;
    return rlhf_rng_f64(w[0], w[1]);
}

// A uniform integer in [0, n), 1 <= n <= 2^53. The probability of each integer differs from 1 / n
// by less than 2^-53. For a larger n, only 2^53 different integers occur. [any]
static inline uint64_t rlhf_rng_below(rlhf_rng *r, uint64_t n) {
    uint64_t i = (uint64_t)(rlhf_rng_next(r) * (double)n);
    return i < n ? i : n - 1;
}

#endif
