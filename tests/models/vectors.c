// tests/models/vectors.c: see vectors.h.
#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int32_t vec_ids[VEC_TOTAL] = {5,  17, 60, 3, 3,  41, 9,  12, 58, 1, 0,  33,
                                    20, 7,  7,  8, 50, 2,  11, 29, 44, 6, 19, 23};
const int32_t vec_offset[VEC_ROWS + 1] = {0, 7, 8, 20, 24};
const int32_t vec_prompt_len[VEC_ROWS] = {2, 1, 5, 1};

float vec_weight(uint64_t i) { return (float)((int)(i * 7 % 11) - 3) / 8; }

struct vectors vectors_open(const char *name) {
    struct vectors v = {NULL, 0};
    char path[1024];
    const char *dir = getenv("RLHF_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/models/vectors/%s", dir ? dir : "../..", name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s cannot be opened", path);
    fseek(f, 0, SEEK_END);
    v.len = (uint64_t)ftell(f);
    rewind(f);
    v.bytes = malloc(v.len);
    if (!v.bytes || fread(v.bytes, 1, v.len, f) != v.len) fail_msg("%s cannot be read", path);
    fclose(f);
    return v;
}

void vectors_close(struct vectors *v) {
    free(v->bytes);
    v->bytes = NULL;
}

float *vectors_get(const struct vectors *v, const char *name, uint64_t *n) {
    for (uint64_t at = 0; at + 8 <= v->len;) {
        uint32_t len, count;
        memcpy(&len, v->bytes + at, 4);
        memcpy(&count, v->bytes + at + 4 + len, 4);
        const char *key = v->bytes + at + 4, *data = key + len + 4;
        if (len == strlen(name) && !memcmp(key, name, len)) {
            float *out = test_malloc((uint64_t)count * sizeof *out + 1);
            memcpy(out, data, (uint64_t)count * sizeof *out);
            *n = count;
            return out;
        }
        at += 8 + len + (uint64_t)count * 4;
    }
    return NULL;
}

float *vectors_need(const struct vectors *v, const char *name, uint64_t n) {
    uint64_t count = 0;
    float *x = vectors_get(v, name, &count);
    if (!x || count != n)
        fail_msg("vector %s: %llu values, expected %llu", name, (unsigned long long)count,
                 (unsigned long long)n);
    return x;
}
