// hash.c: see hash.h.
#include "base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

// ---- SHA-256 ----

// FIPS 180-4, sections 4.1.2, 5 and 6.2. The constants come from the roots of the first primes: the
// first 32 bits of the fractional parts of the cube roots (k) and of the square roots (h).
static const uint32_t k_round[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void compress(uint32_t h[8], const uint8_t block[64]) {
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t v[8]; // a .. h of the standard
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
        uint32_t choose = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + s1 + choose + k_round[i] + w[i];
        uint32_t s0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

#ifdef __x86_64__
static int has_instructions(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

// compress(), four rounds at a time. The SHA instructions need the state as two vectors. Written
// from the highest word to the lowest, these are (a, b, e, f) and (c, d, g, h).
__attribute__((target("sha,sse4.1,ssse3"))) static void compress_fast(uint32_t h[8],
                                                                      const uint8_t block[64]) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)h), 0xb1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(h + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
    const __m128i abef_was = abef, cdgh_was = cdgh;
    __m128i w[4];
    for (int i = 0; i < 16; i++) {
        __m128i *now = &w[i & 3];
        if (i < 4) {
            *now = _mm_loadu_si128((const __m128i *)(block + 16 * i));
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
    low = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_was), 0x1b);
    high = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_was), 0xb1);
    _mm_storeu_si128((__m128i *)h, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(high, low, 8));
}
#else
static int has_instructions(void) { return 0; }
static void compress_fast(uint32_t h[8], const uint8_t block[64]) { compress(h, block); }
#endif

void rlhf__sha256_init(struct rlhf__sha256 *s) {
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(s, 0, sizeof *s);
    memcpy(s->h, start, sizeof start);
    s->hardware = has_instructions();
}

static void one_block(struct rlhf__sha256 *s, const uint8_t block[64]) {
    if (s->hardware)
        compress_fast(s->h, block);
    else
        compress(s->h, block);
}

void rlhf__sha256_put(struct rlhf__sha256 *s, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    s->total += n;
    while (n > 0) {
        for (; s->used == 0 && n >= 64; p += 64, n -= 64)
            one_block(s, p);
        size_t take = 64 - s->used;
        if (take > n) take = n;
        memcpy(s->block + s->used, p, take);
        s->used += (uint32_t)take;
        p += take;
        n -= take;
        if (s->used < 64) return;
        one_block(s, s->block);
        s->used = 0;
    }
}

void rlhf__sha256_finish(struct rlhf__sha256 *s, uint8_t digest[32]) {
    uint64_t bits = s->total * 8;
    static const uint8_t pad[64] = {0x80};
    rlhf__sha256_put(s, pad, s->used < 56 ? 56 - s->used : 120 - s->used);
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    rlhf__sha256_put(s, length, 8);
    for (int i = 0; i < 32; i++)
        digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void rlhf__sha256_hex(struct rlhf__sha256 *s, char hex[65]) {
    uint8_t digest[32];
    rlhf__sha256_finish(s, digest);
    for (size_t i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

rlhf_status rlhf__sha256_file(const char *path, char hex[65], struct rlhf__error *err) {
    hex[0] = '\0';
    FILE *f = fopen(path, "rbe");
    if (!f) return rlhf__fail(err, RLHF_E_IO, "%s: cannot open: %s", path, strerror(errno));
    struct rlhf__sha256 s;
    rlhf__sha256_init(&s);
    char chunk[16384];
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        rlhf__sha256_put(&s, chunk, n);
    int bad = ferror(f);
    fclose(f);
    if (bad) return rlhf__fail(err, RLHF_E_IO, "%s: cannot read", path);
    rlhf__sha256_hex(&s, hex);
    return RLHF_OK;
}

// ---- CRC-32C ----

// Processes four bits at a time with a table of 16 entries. That is fast enough, because the event
// and state files are small.
#define POLY      0x82f63b78u
#define STEP(c)   ((c)&1u ? ((c) >> 1) ^ POLY : (c) >> 1)
#define NIBBLE(n) STEP(STEP(STEP(STEP((uint32_t)(n)))))

uint32_t rlhf__crc32c(uint32_t crc, const void *bytes, size_t n) {
    static const uint32_t table[16] = {NIBBLE(0),  NIBBLE(1),  NIBBLE(2),  NIBBLE(3),
                                       NIBBLE(4),  NIBBLE(5),  NIBBLE(6),  NIBBLE(7),
                                       NIBBLE(8),  NIBBLE(9),  NIBBLE(10), NIBBLE(11),
                                       NIBBLE(12), NIBBLE(13), NIBBLE(14), NIBBLE(15)};
    const uint8_t *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

uint32_t rlhf__crc32c_mask(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }
