// gguf_blocks.c: see gguf_blocks.h. The whole program is compiled with -ffp-contract=off, so the
// compiler fuses no multiply-adds, which would change the bits.
#include "tensors/gguf_blocks.h"

#include <math.h>
#include <string.h>

enum { SMALL = 32, LARGE = 256 }; // elements of a block

static float half_at(const uint8_t *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h); // files and hosts are little-endian
    return rlhf__f16_to_f32(h);
}

// ---- blocks of 32 ----

// Element i < 16 of a block is in the low half of byte i, element 16 + i in the high half.
static int32_t nibble(const uint8_t *q, int32_t i) { return q[i % 16] >> (i < 16 ? 0 : 4) & 15; }

static int32_t bit(const uint8_t *bits, int32_t i) { return bits[i / 8] >> i % 8 & 1; }

static void q8_0(const uint8_t *b, float *out) {
    const float d = half_at(b);
    for (int32_t i = 0; i < SMALL; i++)
        out[i] = (float)(int8_t)b[2 + i] * d;
}

static void q4_0(const uint8_t *b, float *out) {
    const float d = half_at(b);
    for (int32_t i = 0; i < SMALL; i++)
        out[i] = d * (float)(nibble(b + 2, i) - 8);
}

static void q4_1(const uint8_t *b, float *out) {
    const float d = half_at(b), m = half_at(b + 2);
    for (int32_t i = 0; i < SMALL; i++)
        out[i] = d * (float)nibble(b + 4, i) + m;
}

static void q5_0(const uint8_t *b, float *out) {
    const float d = half_at(b);
    for (int32_t i = 0; i < SMALL; i++)
        out[i] = d * (float)((nibble(b + 6, i) | bit(b + 2, i) << 4) - 16);
}

static void q5_1(const uint8_t *b, float *out) {
    const float d = half_at(b), m = half_at(b + 2);
    for (int32_t i = 0; i < SMALL; i++)
        out[i] = d * (float)(nibble(b + 8, i) | bit(b + 4, i) << 4) + m;
}

// ---- blocks of 256 ----

// Scale j < 8 of the 12 bytes `s` of Q4_K and Q5_K, and its minimum. Both have 6 bits. The first
// four have the low bits of bytes j and 4 + j; the last four have their low 4 bits in byte 4 + j
// and their high 2 bits on top of bytes j - 4 and j.
static void scale_at(const uint8_t *s, int32_t j, float *scale, float *min) {
    const int32_t low = j < 4;
    *scale = (float)(low ? s[j] & 63 : (s[4 + j] & 15) | (s[j - 4] >> 6) << 4);
    *min = (float)(low ? s[4 + j] & 63 : s[4 + j] >> 4 | (s[j] >> 6) << 4);
}

// Element i of part j of Q4_K and Q5_K: the parts 2 k and 2 k + 1 share 32 bytes.
static int32_t part_nibble(const uint8_t *q, int32_t j, int32_t i) {
    return q[j / 2 * 32 + i] >> j % 2 * 4 & 15;
}

static void q4_k(const uint8_t *b, float *out) {
    const float d = half_at(b), e = half_at(b + 2);
    for (int32_t j = 0; j < LARGE / 32; j++) {
        float scale, min;
        scale_at(b + 4, j, &scale, &min);
        const float ds = d * scale, et = e * min;
        for (int32_t i = 0; i < 32; i++)
            out[32 * j + i] = ds * (float)part_nibble(b + 16, j, i) - et;
    }
}

static void q5_k(const uint8_t *b, float *out) {
    const float d = half_at(b), e = half_at(b + 2);
    const uint8_t *high = b + 16, *low = b + 48;
    for (int32_t j = 0; j < LARGE / 32; j++) {
        float scale, min;
        scale_at(b + 4, j, &scale, &min);
        const float ds = d * scale, et = e * min;
        for (int32_t i = 0; i < 32; i++) {
            const int32_t q = part_nibble(low, j, i) | (high[i] >> j & 1) << 4;
            out[32 * j + i] = ds * (float)q - et;
        }
    }
}

// Each half of the block has 64 bytes of low bits and 32 bytes of high bits. Part p < 4 of a half
// has the elements 32 p to 32 p + 31.
static void q6_k(const uint8_t *b, float *out) {
    const uint8_t *low = b, *high = b + 128, *scale = b + 192;
    const float d = half_at(b + 208);
    for (int32_t at = 0; at < LARGE; at++) {
        const int32_t h = at / 128, p = at / 32 % 4, i = at % 32;
        const int32_t l = low[64 * h + 32 * (p % 2) + i] >> p / 2 * 4 & 15;
        const int32_t q = l | (high[32 * h + i] >> 2 * p & 3) << 4;
        const float ds = d * (float)(int8_t)scale[at / 16];
        out[at] = ds * (float)(q - 32);
    }
}

void rlhf__blocks_decode(int32_t dtype, const uint8_t *blocks, int64_t n, float *out) {
    const int64_t block = rlhf__tensor_dtype_block(dtype);
    const int64_t bytes = (int64_t)rlhf__tensor_dtype_size(dtype);
    for (int64_t i = 0; i < n; i++, blocks += bytes, out += block)
        switch (dtype) {
        case RLHF__TENSOR_Q8_0:
            q8_0(blocks, out);
            break;
        case RLHF__TENSOR_Q4_0:
            q4_0(blocks, out);
            break;
        case RLHF__TENSOR_Q4_1:
            q4_1(blocks, out);
            break;
        case RLHF__TENSOR_Q5_0:
            q5_0(blocks, out);
            break;
        case RLHF__TENSOR_Q5_1:
            q5_1(blocks, out);
            break;
        case RLHF__TENSOR_Q4_K:
            q4_k(blocks, out);
            break;
        case RLHF__TENSOR_Q5_K:
            q5_k(blocks, out);
            break;
        case RLHF__TENSOR_Q6_K:
            q6_k(blocks, out);
            break;
        default:
            break;
        }
}

int64_t rlhf__blocks_not_finite(int32_t dtype, const uint8_t *blocks, int64_t n) {
    const int64_t bytes = (int64_t)rlhf__tensor_dtype_size(dtype);
    const int two = dtype == RLHF__TENSOR_Q4_1 || dtype == RLHF__TENSOR_Q5_1 ||
                    dtype == RLHF__TENSOR_Q4_K || dtype == RLHF__TENSOR_Q5_K;
    const int64_t first = dtype == RLHF__TENSOR_Q6_K ? 208 : 0;
    for (int64_t i = 0; i < n; i++, blocks += bytes) {
        const float d = half_at(blocks + first), e = two ? half_at(blocks + 2) : 0;
        if (!isfinite(d) || !isfinite(e)) return i;
    }
    return n;
}
