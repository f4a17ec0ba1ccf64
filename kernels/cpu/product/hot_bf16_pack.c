// hot_bf16_pack.c: the packing functions of bf16.h and amx.h.
#include "amx.h"
#include "bf16.h"
#include "machine/vec.h"

#define NC ((size_t)RLHF__BF16_NC)
#define MR ((size_t)RLHF__BF16_MR)

#define AHEAD ((size_t)16) // a row is prefetched this many rows before it is used

#define INLINE static inline __attribute__((always_inline))

INLINE __mmask16 mask16(size_t n) { return (__mmask16)(n >= 16 ? 0xffffu : (1u << n) - 1u); }

// Words with low halves lo[0..15] and high halves hi[0..15].
INLINE __m512i interleave(__m256i lo, __m256i hi) {
    return _mm512_or_si512(_mm512_cvtepu16_epi32(lo),
                           _mm512_slli_epi32(_mm512_cvtepu16_epi32(hi), 16));
}

INLINE __m256i narrow(__m512 v) { return (__m256i)_mm512_cvtneps_pbh(v); }

// The loads below read the first n elements. The remaining elements are 0; their memory is not
// accessed.
INLINE __m256i load_f32(const float *p, size_t n) { return narrow(vf_load_n(p, n)); }

#ifdef RLHF_SANITIZED // because the sanitizer does not see masked loads
INLINE __m512i words_bf16(const uint16_t *p, size_t n) {
    uint16_t h[32] = {0};
    memcpy(h, p, n * sizeof *p);
    return _mm512_loadu_si512(h);
}

INLINE __m256i load_bf16(const uint16_t *p, size_t n) {
    return _mm512_castsi512_si256(words_bf16(p, n));
}
#else
INLINE __m512i words_bf16(const uint16_t *p, size_t n) {
    const uint32_t m = n >= 32 ? 0xffffffffu : (1u << n) - 1u;
    return _mm512_maskz_loadu_epi16(m, p);
}

INLINE __m256i load_bf16(const uint16_t *p, size_t n) {
    return _mm256_maskz_loadu_epi16(mask16(n), p);
}
#endif

INLINE size_t part(size_t n, size_t from) {
    return n <= from ? 0 : (n - from < 16 ? n - from : 16);
}

// A non-temporal store. It bypasses the caches, so the line need not be read first.
INLINE void put(uint32_t *p, __m512i v, const int stream) {
    if (stream)
        _mm512_stream_si512((void *)p, v);
    else
        _mm512_storeu_si512(p, v);
}

INLINE void pack_rows_f32(uint32_t *dst, const float *src, size_t k, size_t columns, size_t stride,
                          const int stream) {
    for (size_t i = 0; i < k; i += 2, src += 2 * stride, dst += NC)
        for (size_t c = 0; c < NC; c += 16) {
            const size_t n = part(columns, c);
            const float *next = i + 1 < k ? src + stride + c : src + c;
            _mm_prefetch((const char *)(src + AHEAD * stride + c), _MM_HINT_T0);
            _mm_prefetch((const char *)(src + (AHEAD + 1) * stride + c), _MM_HINT_T0);
            __m256i hi = load_f32(next, i + 1 < k ? n : 0);
            put(dst + c, interleave(load_f32(src + c, n), hi), stream);
        }
}

void rlhf__bf16_pack_rows_f32(uint32_t *dst, const float *src, size_t k, size_t columns,
                              size_t stride, int stream) {
    if (stream)
        pack_rows_f32(dst, src, k, columns, stride, 1);
    else
        pack_rows_f32(dst, src, k, columns, stride, 0);
    if (stream) _mm_sfence();
}

void rlhf__bf16_pack_rows(uint32_t *dst, const uint16_t *src, size_t k, size_t columns,
                          size_t stride) {
    for (size_t i = 0; i < k; i += 2, src += 2 * stride, dst += NC)
        for (size_t c = 0; c < NC; c += 16) {
            const size_t n = part(columns, c);
            const uint16_t *next = i + 1 < k ? src + stride + c : src + c;
            _mm_prefetch((const char *)(src + AHEAD * stride + c), _MM_HINT_T0);
            _mm_prefetch((const char *)(src + (AHEAD + 1) * stride + c), _MM_HINT_T0);
            __m256i hi = load_bf16(next, i + 1 < k ? n : 0);
            _mm512_storeu_si512(dst + c, interleave(load_bf16(src + c, n), hi));
        }
}

void rlhf__bf16_pack_a(uint32_t *dst, const uint16_t *src, size_t m, size_t k, size_t stride) {
    const size_t pairs = (k + 1) / 2;
    for (size_t i = 0; i < pairs; i++, src += 2 * stride, dst += MR) {
        const int whole = 2 * i + 1 < k;
        for (size_t r = 0; r < m; r += MR) {
            const size_t n = m - r < MR ? m - r : MR;
            // The rows are whole pages apart, which hardware prefetchers do not follow.
            _mm_prefetch((const char *)(src + AHEAD * stride + r), _MM_HINT_T0);
            _mm_prefetch((const char *)(src + (AHEAD + 1) * stride + r), _MM_HINT_T0);
            __m256i hi = load_bf16(whole ? src + stride + r : src + r, whole ? n : 0);
            __m512i w = interleave(load_bf16(src + r, n), hi);
            vf_store_n((float *)(void *)(dst + r * pairs), _mm512_castsi512_ps(w), MR);
        }
    }
}

// Transposes 16 vectors of 16 words: out[j] has word j of every in[i].
INLINE void transpose16(__m512i v[16]) {
    __m512i t[16];
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        v[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        v[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        v[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        v[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    // v[4 i + j], lane l: word 4 l + j of inputs 4 i .. 4 i + 3.
    for (int j = 0; j < 4; j++) {
        __m512i a = _mm512_shuffle_i32x4(v[j], v[4 + j], 0x88);
        __m512i b = _mm512_shuffle_i32x4(v[j], v[4 + j], 0xdd);
        __m512i c = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0x88);
        __m512i d = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0xdd);
        t[j] = _mm512_shuffle_i32x4(a, c, 0x88);
        t[8 + j] = _mm512_shuffle_i32x4(a, c, 0xdd);
        t[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
        t[12 + j] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    for (int i = 0; i < 16; i++)
        v[i] = t[i];
}

INLINE __m512i words_f32(const float *p, size_t n) {
    const __m256i lo = load_f32(p, part(n, 0)), hi = load_f32(p + (n > 16 ? 16 : 0), part(n, 16));
    return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
}

// Regroups the words of every two adjacent columns. A word of src has two elements of one column:
// rows 2 j and 2 j + 1. In the result, 32 bits have row 2 j of both columns, and the next 32 bits
// have row 2 j + 1 of both.
INLINE __m512i pairs_of(const uint32_t *src, size_t j, size_t columns) {
    const __m512i swap =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
    if (2 * j >= columns) return _mm512_setzero_si512();
    return _mm512_shuffle_epi8(_mm512_loadu_si512(src + j * NC), swap);
}

// Transposes 8 vectors of 8 times 64 bits: out[j] has part j of every in[i].
INLINE void transpose8(__m512i v[8]) {
    __m512i t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm512_unpacklo_epi64(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi64(v[i], v[i + 1]);
    }
    for (int j = 0; j < 2; j++) { // part 2 l + j of inputs 2 i and 2 i + 1 in lane l of t[2 i + j]
        const __m512i a = _mm512_shuffle_i64x2(t[j], t[2 + j], 0x88);
        const __m512i b = _mm512_shuffle_i64x2(t[j], t[2 + j], 0xdd);
        const __m512i c = _mm512_shuffle_i64x2(t[4 + j], t[6 + j], 0x88);
        const __m512i d = _mm512_shuffle_i64x2(t[4 + j], t[6 + j], 0xdd);
        v[j] = _mm512_shuffle_i64x2(a, c, 0x88);
        v[4 + j] = _mm512_shuffle_i64x2(a, c, 0xdd);
        v[2 + j] = _mm512_shuffle_i64x2(b, d, 0x88);
        v[6 + j] = _mm512_shuffle_i64x2(b, d, 0xdd);
    }
}

void rlhf__bf16_turn_b(uint32_t *dst, const uint32_t *src, size_t rows, size_t columns,
                       size_t next) {
    const size_t pairs = (rows + 1) / 2;
    for (size_t i = 0; i < NC / 2 * NC; i += 16)
        _mm_prefetch((const char *)(src + next + i), _MM_HINT_T0);
    for (size_t i = 0; i < pairs; i += 8)
        for (size_t c = 0; c < NC; c += 16) {
            __m512i v[8];
            for (size_t j = 0; j < 8; j++)
                v[j] = pairs_of(src + 2 * i, c / 2 + j, columns);
            transpose8(v);
            for (size_t j = 0; j < 8 && i + j < pairs; j++)
                _mm512_storeu_si512(dst + (i + j) * NC + c, v[j]);
        }
}

// Packs 16 pairs of k for 16 columns at a time: reads the rows of src along k and transposes them.
#define PACK_COLS(words, stream)                                                                   \
    for (size_t i = 0; i < k; i += 32) {                                                           \
        const size_t n = k - i < 32 ? k - i : 32, pairs = (n + 1) / 2;                             \
        for (size_t c = 0; c < NC; c += 16) {                                                      \
            __m512i v[16];                                                                         \
            for (size_t j = 0; j < 16; j++) {                                                      \
                _mm_prefetch((const char *)(src + (c + j) * stride + i + 64), _MM_HINT_T0);        \
                _mm_prefetch((const char *)(src + (c + j) * stride + i + 80), _MM_HINT_T0);        \
                v[j] = c + j < columns ? words(src + (c + j) * stride + i, n)                      \
                                       : _mm512_setzero_si512();                                   \
            }                                                                                      \
            transpose16(v);                                                                        \
            for (size_t j = 0; j < pairs; j++)                                                     \
                put(dst + (i / 2 + j) * NC + c, v[j], stream);                                     \
        }                                                                                          \
    }

void rlhf__amx_pack_a(uint32_t *dst, const uint16_t *src, size_t m, size_t k, size_t stride) {
    const size_t steps = (k + RLHF__AMX_K - 1) / RLHF__AMX_K;
    // The rows of src are whole pages apart. With k as the outer loop, all rows advance together.
    for (size_t i = 0; i < steps; i++)
        for (size_t r = 0; r < m; r += 16) {
            const size_t n = part(m, r);
            __m512i v[16];
            for (size_t j = 0; j < 16; j++) {
                const size_t at = RLHF__AMX_K * i + 2 * j;
                const uint16_t *lo = src + (at < k ? at : 0) * stride + r;
                const uint16_t *hi = src + (at + 1 < k ? at + 1 : 0) * stride + r;
                v[j] = interleave(load_bf16(lo, at < k ? n : 0), load_bf16(hi, at + 1 < k ? n : 0));
            }
            transpose16(v);
            uint32_t *out = dst + (r / 16 * steps + i) * 256;
            for (size_t j = 0; j < 16; j++)
                _mm512_storeu_si512(out + 16 * j, v[j]);
        }
}

void rlhf__amx_pack_rows(uint32_t *dst, const uint16_t *src, size_t m, size_t k, size_t stride) {
    const size_t step = RLHF__AMX_K, steps = (k + step - 1) / step;
    for (size_t r = 0; r < m; r++) {
        uint16_t *out = (uint16_t *)(void *)dst + (r / 16 * steps * 16 + r % 16) * step;
        const uint16_t *row = src + r * stride;
        for (size_t i = 0; i < k; i += step, out += 16 * step) {
            const size_t n = k - i < step ? k - i : step;
            _mm512_store_si512(out, _mm512_maskz_loadu_epi16(UINT32_MAX >> (step - n), row + i));
        }
    }
}

void rlhf__bf16_pack_cols_f32(uint32_t *dst, const float *src, size_t k, size_t columns,
                              size_t stride, int stream) {
    if (stream) {
        PACK_COLS(words_f32, 1)
        _mm_sfence();
    } else {
        PACK_COLS(words_f32, 0)
    }
}

void rlhf__bf16_pack_cols(uint32_t *dst, const uint16_t *src, size_t k, size_t columns,
                          size_t stride) {
    PACK_COLS(words_bf16, 0)
}
