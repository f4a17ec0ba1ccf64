// sha256_blocks.c: see sha256_blocks.h.
#include "base/sha256_blocks.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON) && !defined(__AARCH64EB__) &&                    \
    (!defined(__clang__) || __clang_major__ >= 16 || defined(__ARM_FEATURE_SHA2))
#define HAS_ARMV8 1 // older versions of clang hide the intrinsics from a function of another target
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

// FIPS 180-4, sections 4.1.2 and 4.2.2: the first 32 bits of the fractional parts of the cube roots
// of the first 64 primes.
static const uint32_t k_round[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// ---- plain C ----

static inline uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

// Replaces the schedule's word for round i - 16 with the word for round `i`, which is at least 16.
// `w` has the words of the last 16 rounds.
static inline uint32_t next_word(uint32_t w[16], size_t i) {
    const uint32_t a = w[(i + 1) & 15], b = w[(i + 14) & 15];
    const uint32_t s0 = rotr(a, 7) ^ rotr(a, 18) ^ a >> 3;
    const uint32_t s1 = rotr(b, 17) ^ rotr(b, 19) ^ b >> 10;
    return w[i & 15] += s0 + w[(i + 9) & 15] + s1;
}

// One round. The eight variables are not moved: the caller renames them instead.
#define ROUND(a, b, c, d, e, f, g, h, kw)                                                          \
    do {                                                                                           \
        const uint32_t t_ =                                                                        \
            (h) + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((((f) ^ (g)) & (e)) ^ (g)) + (kw);   \
        (d) += t_;                                                                                 \
        (h) = t_ + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((((a) | (b)) & (c)) | ((a) & (b))); \
    } while (0)
#define EIGHT(word)                                                                                \
    do {                                                                                           \
        ROUND(a, b, c, d, e, f, g, h, k_round[i] + word(0));                                       \
        ROUND(h, a, b, c, d, e, f, g, k_round[i + 1] + word(1));                                   \
        ROUND(g, h, a, b, c, d, e, f, k_round[i + 2] + word(2));                                   \
        ROUND(f, g, h, a, b, c, d, e, k_round[i + 3] + word(3));                                   \
        ROUND(e, f, g, h, a, b, c, d, k_round[i + 4] + word(4));                                   \
        ROUND(d, e, f, g, h, a, b, c, k_round[i + 5] + word(5));                                   \
        ROUND(c, d, e, f, g, h, a, b, k_round[i + 6] + word(6));                                   \
        ROUND(b, c, d, e, f, g, h, a, k_round[i + 7] + word(7));                                   \
    } while (0)
#define FIRST(j) w[i + (j)]
#define LATER(j) next_word(w, i + (j))

static void plain(uint32_t state[8], const uint8_t *block) {
    uint32_t w[16];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
    for (size_t i = 0; i < 16; i += 8)
        EIGHT(FIRST);
    for (size_t i = 16; i < 64; i += 8)
        EIGHT(LATER);
    const uint32_t v[8] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; i++)
        state[i] += v[i];
}

// ---- the CPU's instructions ----

#if defined(__x86_64__)
// This function is called for every hash, so it must be fast, but CPUID takes up to 100 us on a
// virtual machine. libgcc calls CPUID only once, before main(), and __builtin_cpu_supports() reads
// the result. In clang, and in GCC before version 11, that builtin does not know "sha", so this
// code calls CPUID itself.
#if defined(__clang__) || __GNUC__ < 11
int rlhf__sha256_has_instructions(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}
#else
int rlhf__sha256_has_instructions(void) {
    return __builtin_cpu_supports("sha") && __builtin_cpu_supports("sse4.1") &&
           __builtin_cpu_supports("ssse3");
}
#endif

// Computes four rounds at a time. The instructions need the state as the vectors (a, b, e, f) and
// (c, d, g, h), which are written here from the highest word to the lowest.
__attribute__((target("sha,sse4.1,ssse3"))) static void
by_instructions(uint32_t h[8], const uint8_t *blocks, size_t n) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)h), 0xb1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(h + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
    for (; n > 0; n--, blocks += 64) {
        const __m128i abef_was = abef, cdgh_was = cdgh;
        __m128i w[4];
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i *now = &w[i & 3];
            if (i < 4) {
                *now = _mm_loadu_si128((const __m128i *)(blocks + 16 * i));
                *now = _mm_shuffle_epi8(*now, big_endian);
            } else {
                const __m128i one = w[(i + 1) & 3], two = w[(i + 2) & 3], three = w[(i + 3) & 3];
                __m128i sum = _mm_sha256msg1_epu32(*now, one);
                sum = _mm_add_epi32(sum, _mm_alignr_epi8(three, two, 4));
                *now = _mm_sha256msg2_epu32(sum, three);
            }
            const __m128i k = _mm_loadu_si128((const __m128i *)(k_round + (ptrdiff_t)4 * i));
            const __m128i wk = _mm_add_epi32(*now, k);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_was);
        cdgh = _mm_add_epi32(cdgh, cdgh_was);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)h, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(high, low, 8));
}
#elif defined(HAS_ARMV8)
int rlhf__sha256_has_instructions(void) { return (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0; }

// Computes four rounds at a time, with the state as the vectors (a, b, c, d) and (e, f, g, h).
__attribute__((target("+crypto"))) static void by_instructions(uint32_t h[8], const uint8_t *blocks,
                                                               size_t n) {
    uint32x4_t abcd = vld1q_u32(h), efgh = vld1q_u32(h + 4);
    for (; n > 0; n--, blocks += 64) {
        const uint32x4_t abcd_was = abcd, efgh_was = efgh;
        uint32x4_t w[4];
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            uint32x4_t *now = &w[i & 3];
            if (i < 4) {
                *now = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(blocks + 16 * i)));
            } else {
                const uint32x4_t one = w[(i + 1) & 3], two = w[(i + 2) & 3], three = w[(i + 3) & 3];
                *now = vsha256su1q_u32(vsha256su0q_u32(*now, one), two, three);
            }
            const uint32x4_t wk = vaddq_u32(*now, vld1q_u32(k_round + (ptrdiff_t)4 * i));
            const uint32x4_t before = abcd;
            abcd = vsha256hq_u32(abcd, efgh, wk);
            efgh = vsha256h2q_u32(efgh, before, wk);
        }
        abcd = vaddq_u32(abcd, abcd_was);
        efgh = vaddq_u32(efgh, efgh_was);
    }
    vst1q_u32(h, abcd);
    vst1q_u32(h + 4, efgh);
}
#else
int rlhf__sha256_has_instructions(void) { return 0; }

static void by_instructions(uint32_t h[8], const uint8_t *blocks, size_t n) {
    for (; n > 0; n--, blocks += 64)
        plain(h, blocks);
}
#endif

void rlhf__sha256_blocks(uint32_t h[8], const uint8_t *blocks, size_t n, int hardware) {
    if (hardware) {
        by_instructions(h, blocks, n);
        return;
    }
    for (; n > 0; n--, blocks += 64)
        plain(h, blocks);
}
