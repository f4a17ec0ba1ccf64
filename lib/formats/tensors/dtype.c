// dtype.c: see dtype.h. f16 is IEEE 754 binary16; bf16 is the upper half of binary32.
#include "tensors/dtype.h"

#include <math.h>
#include <string.h>

// ---- names and sizes ----

static const struct {
    const char *name;
    int64_t block;
    uint64_t size;
} dtypes[] = {
#define ROW(name, block, bytes) {#name, block, bytes},
    RLHF__TENSOR_DTYPE_MAP(ROW)
#undef ROW
};

const char *rlhf__tensor_dtype_name(int32_t dtype) {
    return dtype >= 0 && dtype < RLHF__N_TENSOR_DTYPES ? dtypes[dtype].name : "unknown";
}

int rlhf__tensor_is_float(int32_t dtype) {
    return dtype == RLHF__TENSOR_F32 || dtype == RLHF__TENSOR_F16 || dtype == RLHF__TENSOR_BF16 ||
           rlhf__tensor_dtype_block(dtype) > 1;
}

int64_t rlhf__tensor_dtype_block(int32_t dtype) { return dtypes[dtype].block; }

uint64_t rlhf__tensor_dtype_size(int32_t dtype) { return dtypes[dtype].size; }

int32_t rlhf__tensor_dtype_find(const char *name) {
    for (int32_t i = 0; i < RLHF__N_TENSOR_DTYPES; i++)
        if (!strcmp(dtypes[i].name, name)) return dtypes[i].block == 1 ? i : -1;
    return -1;
}

// ---- single numbers ----

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

uint16_t rlhf__f32_to_bf16(float x) {
    uint32_t u = bits_of(x);
    if (isnan(x)) return (uint16_t)((u >> 16) | 0x40); // keep it a NaN when the low bits go
    return (uint16_t)((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}

float rlhf__bf16_to_f32(uint16_t h) { return float_of((uint32_t)h << 16); }

uint16_t rlhf__f32_to_f16(float x) {
    uint32_t u = bits_of(x), sign = (u >> 16) & 0x8000, mag = u & 0x7FFFFFFF;
    if (mag > 0x7F800000) return (uint16_t)(sign | 0x7E00);
    if (mag >= 0x477FF000) return (uint16_t)(sign | 0x7C00); // rounds to 65536 or more
    if (mag < 0x38800000) { // below 2^-14, f16 is a multiple of 2^-24; the addition rounds to it
        uint32_t sub = bits_of(float_of(mag) + 0.5f) - bits_of(0.5f);
        return (uint16_t)(sign | sub);
    }
    uint32_t rounded = mag + 0xFFF + ((mag >> 13) & 1) - (112u << 23);
    return (uint16_t)(sign | (rounded >> 13));
}

float rlhf__f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 0x3FF;
    if (e == 31) return float_of(sign | 0x7F800000 | (m << 13));
    if (e == 0) {
        float x = (float)m * 0x1p-24f;
        return sign ? -x : x;
    }
    return float_of(sign | ((e + 112) << 23) | (m << 13));
}

// ---- many numbers ----

// The loops below are plain, so that the compiler vectorizes them. Memory limits their speed.

void rlhf__widen_bf16(const uint8_t *from, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, from + 2 * i, sizeof h);
        out[i] = float_of((uint32_t)h << 16);
    }
}

// Does what rlhf__f16_to_f32 does, without branches. The exponent grows by 112. A subnormal is
// first computed as a number with exponent 2^-14; then 2^-14 is subtracted. Infinities and NaN keep
// all exponent bits set.
void rlhf__widen_f16(const uint8_t *from, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, from + 2 * i, sizeof h);
        const uint32_t sign = (uint32_t)(h & 0x8000) << 16, mag = (uint32_t)(h & 0x7FFF) << 13;
        const uint32_t endless = mag >= 0x0F800000 ? 112u << 23 : 0, normal = mag + (112u << 23);
        const uint32_t small = bits_of(float_of(mag + (113u << 23)) - 0x1p-14f);
        const uint32_t is_small = 0u - (uint32_t)(mag < 0x00800000);
        out[i] = float_of(sign | (small & is_small) | ((normal + endless) & ~is_small));
    }
}
