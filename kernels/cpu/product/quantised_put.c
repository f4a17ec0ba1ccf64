// quantised_put.c: see quantised_put.h.
#include "product/quantised_put.h"

#include "product/quantised_layout.h"

#include <string.h>

enum { MOST = 256, GROUP = 8 };

// ---- integers of a block ----

// The integers of a block, without their high bits if they have 5 or 6 bits.
static void low_bits(uint8_t *v, int32_t format, const uint8_t *block) {
    static const uint8_t from[] = {
        [RLHF_FORMAT_Q4_0] = 2, [RLHF_FORMAT_Q4_1] = 4, [RLHF_FORMAT_Q4_K] = 16,
        [RLHF_FORMAT_Q6_K] = 0, [RLHF_FORMAT_Q5_0] = 6, [RLHF_FORMAT_Q5_1] = 8};
    const uint8_t *q = block + from[format];
    // `half` bytes have the low bits of as many elements, then the high bits of the next ones.
    const size_t half = format == RLHF_FORMAT_Q6_K ? 64 : format == RLHF_FORMAT_Q4_K ? 32 : 16;
    const size_t elements = (size_t)rlhf_format_elements(format);
    for (size_t i = 0; i < elements; i += 2 * half, q += half)
        for (size_t j = 0; j < half; j++) {
            v[i + j] = q[j] & 15;
            v[i + half + j] = q[j] >> 4;
        }
}

// The high bits of integers of 5 or 6 bits.
static void high_bits(uint8_t *v, int32_t format, const uint8_t *block) {
    const uint8_t *five = block + (format == RLHF_FORMAT_Q5_1 ? 4 : 2);
    if (format == RLHF_FORMAT_Q6_K)
        for (size_t i = 0; i < 256; i++)
            v[i] = block[128 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
    else
        for (size_t i = 0; i < 32; i++)
            v[i] = five[i / 8] >> i % 8 & 1;
}

// ---- arrays over the columns (unquantise.h) ----

// Puts v[0 .. count - 1], of `bits` bits each, into words that are `stride` bytes apart.
static void put_words(uint8_t *to, size_t stride, const uint8_t *v, size_t count, unsigned bits) {
    const size_t each = 32 / bits;
    for (size_t i = 0; i < count; i += each, to += stride) {
        uint32_t word = 0;
        for (size_t j = 0; j < each; j++)
            word |= (uint32_t)v[i + j] << j * bits;
        memcpy(to, &word, sizeof word);
    }
}

// The scales and minima of a block of Q4_K, 6 bits each.
static void put_q4_k_scales(uint8_t *to, size_t stride, const uint8_t *s) {
    uint8_t low[16], high[16]; // of eight scales, then of eight minima
    for (size_t i = 0; i < 8; i++) {
        const unsigned scale = i < 4 ? s[i] & 63u : (s[4 + i] & 15u) | (unsigned)s[i - 4] >> 6 << 4;
        const unsigned min =
            i < 4 ? s[4 + i] & 63u : (unsigned)s[4 + i] >> 4 | (unsigned)s[i] >> 6 << 4;
        low[i] = (uint8_t)(scale & 15);
        high[i] = (uint8_t)(scale >> 4);
        low[8 + i] = (uint8_t)(min & 15);
        high[8 + i] = (uint8_t)(min >> 4);
    }
    put_words(to, stride, low, 16, 4);
    put_words(to + 2 * stride, stride, high, 16, 2);
}

static void put_scales(uint8_t *unit, size_t w, size_t c, int32_t format, const uint8_t *block) {
    memcpy(unit + 2 * c, block + (format == RLHF_FORMAT_Q6_K ? 208 : 0), 2);
    if (rlhf__quantised_adds(format)) memcpy(unit + 2 * (w + c), block + 2, 2);
    if (format == RLHF_FORMAT_Q4_K)
        put_q4_k_scales(unit + RLHF__Q4_K_SCALES * w + 4 * c, 4 * w, block + 4);
    if (format == RLHF_FORMAT_Q6_K)
        put_words(unit + RLHF__Q6_K_SCALES * w + 4 * c, 4 * w, block + 192, 16, 8);
}

static void put_columns(uint8_t *unit, size_t w, size_t c, int32_t format, const uint8_t *block) {
    const size_t elements = (size_t)rlhf_format_elements(format), stride = 4 * w; // of words
    const unsigned bits = (unsigned)rlhf__quantised_bits(format);
    uint8_t *at = unit + rlhf__quantised_at(format) * w, v[MOST] = {0};
    if (format == RLHF_FORMAT_Q8_0) {
        for (size_t i = 0; i < elements; i++)
            at[i * w + c] = block[2 + i];
        return;
    }
    low_bits(v, format, block);
    put_words(at + 4 * c, stride, v, elements, 4);
    if (bits == 4) return;
    high_bits(v, format, block);
    put_words(unit + rlhf__quantised_high(format) * w + 4 * c, stride, v, elements, bits - 4);
}

// ---- words of pairs (bf16_unpack.h) ----

// The bits of a word where the steps of its pairs begin.
struct order {
    size_t pairs;
    uint8_t at[16];
};

static const struct order nibbles = {8, {0, 16, 4, 20, 8, 24, 12, 28}};
static const struct order bytes = {4, {31, 7, 15, 23}};
static const struct order low = {8, {1, 9, 17, 25, 5, 13, 21, 29}};
static const struct order high_2 = {16,
                                    {5, 13, 21, 29, 7, 15, 23, 31, 9, 17, 25, 1, 11, 19, 27, 3}};
static const struct order high_1[2] = {
    {16, {5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31, 8, 16, 24, 0}},
    {16, {9, 17, 25, 1, 10, 18, 26, 2, 11, 19, 27, 3, 12, 20, 28, 4}}};

static uint32_t rotated(uint32_t v, unsigned bits) { return v << bits | v >> (32 - bits) % 32; }

// Puts v[0 .. count - 1], of `bits` bits each, into words of vectors that are `stride` bytes apart.
// `to` is the word of the first even step. The bits of a word outside of `own` are kept.
static void put_pairs(uint8_t *to, size_t stride, const uint8_t *v, size_t count,
                      const struct order *o, uint32_t own) {
    for (size_t i = 0; i < count; i += 2 * o->pairs, to += stride)
        for (size_t odd = 0; odd < 2; odd++) {
            uint32_t word = 0, old;
            for (size_t p = 0; p < o->pairs; p++)
                word |= rotated(v[i + 2 * p + odd], o->at[p]);
            memcpy(&old, to + 4 * odd, sizeof old);
            word |= old & ~own;
            memcpy(to + 4 * odd, &word, sizeof word);
        }
}

static void put_in_pairs(uint8_t *unit, size_t w, size_t c, int32_t format, const uint8_t *block) {
    const size_t elements = (size_t)rlhf_format_elements(format), group = c / GROUP;
    const size_t vector = 64, stride = w / GROUP * vector, column = c % GROUP * 8;
    const int bits = rlhf__quantised_bits(format);
    uint8_t *at = unit + rlhf__quantised_at(format) * w + group * vector + column;
    uint8_t *high = unit + rlhf__quantised_high(format) * w + column, v[MOST] = {0};
    if (bits == 8) {
        for (size_t i = 0; i < elements; i++)
            v[i] = block[2 + i] ^ 0x80;
        put_pairs(at, stride, v, elements, &bytes, UINT32_MAX);
        return;
    }
    low_bits(v, format, block);
    put_pairs(at, stride, v, elements, bits == 4 ? &nibbles : &low, UINT32_MAX);
    if (bits == 4) return;
    high_bits(v, format, block);
    if (bits == 6)
        put_pairs(high + group * vector, stride, v, elements, &high_2, UINT32_MAX);
    else
        put_pairs(high + group / 2 * vector, stride, v, elements, &high_1[group % 2],
                  group % 2 ? 0x1e1e1e1e : 0xe1e1e1e1);
}

void rlhf__quantised_put(uint8_t *unit, size_t width, size_t c, int32_t format,
                         const uint8_t *block, int in_pairs) {
    put_scales(unit, width, c, format, block);
    if (in_pairs)
        put_in_pairs(unit, width, c, format, block);
    else
        put_columns(unit, width, c, format, block);
}
