// tensor.c: see tensor.h. IEEE 754 binary16 and the upper half of binary32.
#include "weights/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint64_t size;
} dtypes[] = {
#define ROW(name, bytes) {#name, bytes},
    RLHF__TENSOR_DTYPE_MAP(ROW)
#undef ROW
};

const char *rlhf__tensor_dtype_name(int32_t dtype) {
    return dtype >= 0 && dtype < RLHF__N_TENSOR_DTYPES ? dtypes[dtype].name : "unknown";
}

uint64_t rlhf__tensor_dtype_size(int32_t dtype) { return dtypes[dtype].size; }

int32_t rlhf__tensor_dtype_find(const char *name) {
    for (int32_t i = 0; i < RLHF__N_TENSOR_DTYPES; i++)
        if (!strcmp(dtypes[i].name, name)) return i;
    return -1;
}

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
    if (mag < 0x38800000) { // below 2^-14: a multiple of 2^-24; the addition rounds to it
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

const char *rlhf__tensor_shape_text(const int64_t *shape, int32_t ndim, char *out, size_t cap) {
    size_t len = 0;
    if (cap) out[0] = '\0';
    for (int32_t i = 0; i <= ndim && len < cap; i++) {
        const char *open = i ? "" : "[", *sep = i && i < ndim ? ", " : "";
        int n = i < ndim
                    ? snprintf(out + len, cap - len, "%s%s%lld", open, sep, (long long)shape[i])
                    : snprintf(out + len, cap - len, "%s]", open);
        len += n > 0 ? (size_t)n : 0;
    }
    return out;
}

static uint16_t load16(const uint8_t *p) { return (uint16_t)(p[0] | (p[1] << 8)); }

rlhf_status rlhf__tensor_read_f32(const struct rlhf__tensor *t, float *out,
                                  struct rlhf__error *err) {
    const uint8_t *p = t->data;
    switch (t->dtype) {
    case RLHF__TENSOR_F32:
        if (t->count) memcpy(out, p, (size_t)t->n_bytes); // files and hosts are little-endian
        return RLHF_OK;
    case RLHF__TENSOR_BF16:
        for (int64_t i = 0; i < t->count; i++, p += 2)
            out[i] = rlhf__bf16_to_f32(load16(p));
        return RLHF_OK;
    case RLHF__TENSOR_F16:
        for (int64_t i = 0; i < t->count; i++, p += 2)
            out[i] = rlhf__f16_to_f32(load16(p));
        return RLHF_OK;
    default:
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: tensor '%s' is %s; weights must be F32, F16 or BF16", t->file,
                          t->name, rlhf__tensor_dtype_name(t->dtype));
    }
}
