// quantised_weight.c: see quantised_weight.h.
#include "quantised_weight.h"

#include <string.h>

int32_t quantised_outputs(const struct quantised_shape *s) {
    int32_t n = 0;
    for (uint32_t p = 0; p < s->n_parts; p++)
        n += s->count[p];
    return n;
}

rlhf_quantised quantised_arguments(const struct quantised_shape *s, int32_t dtype) {
    return (rlhf_quantised){.size = sizeof(rlhf_quantised),
                            .k = s->k,
                            .n = quantised_outputs(s),
                            .dtype = dtype,
                            .flags = RLHF_WEIGHT_BACKWARD,
                            .n_parts = s->n_parts,
                            .format = s->format,
                            .count = s->count};
}

// Random blocks whose scales are ordinary f16 numbers, or denormal ones in some blocks.
static void fill(uint8_t *to, int32_t format, uint64_t blocks, uint64_t seed) {
    const uint64_t size = (uint64_t)rlhf_format_bytes(format);
    const uint64_t first = format == Q6_K ? 208 : 0;
    const uint64_t halves = format == Q4_1 || format == Q5_1 || format == Q4_K ? 2 : 1;
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    for (uint64_t i = 0; i < blocks * size; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        to[i] = (uint8_t)(x >> 24);
    }
    for (uint64_t b = 0; b < blocks; b++)
        for (uint64_t h = 0; h < halves; h++) { // an exponent from 2^-8 to 2^-5, or a denormal
            uint8_t *high = to + b * size + first + 2 * h + 1;
            *high = b % 11 == 3 ? *high & 0x83 : (uint8_t)((*high & 0x8f) | 0x10) & 0x9f;
        }
}

rlhf_weight *quantised_weight(struct call *k, const struct quantised_shape *s, int32_t dtype) {
    const rlhf_quantised a = quantised_arguments(s, dtype);
    rlhf_weight *w = NULL;
    rlhf_compute *c = k->c;
    KIT_OK(c, c->weight_create_quantised(c->ctx, &a, &w));
    k->weight[k->n_weight++] = w;
    int32_t from = 0;
    for (uint32_t p = 0; p < s->n_parts; p++) {
        const uint64_t row = rlhf_format_row_bytes(s->format[p], s->k);
        const int32_t n = s->count[p], half = n / 2;
        uint8_t *blocks = call_host(k, (uint64_t)n * row);
        const int32_t elements = rlhf_format_elements(s->format[p]);
        const int32_t each = elements ? s->k / elements : 0; // blocks of a row
        fill(blocks, s->format[p], (uint64_t)n * (uint64_t)each, p + 1);
        // in two calls, the later rows first
        KIT_OK(c, c->weight_put(c->ctx, w, from + half, n - half, blocks + (uint64_t)half * row));
        if (half) KIT_OK(c, c->weight_put(c->ctx, w, from, half, blocks));
        memset(blocks, 0xff, (uint64_t)n * row); // because the blocks are copied
        from += n;
    }
    return w;
}
