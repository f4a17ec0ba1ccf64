// beside.c: see beside.h.
#include "weights/beside.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK ((int64_t)1 << 18) // floats that are read at once

static const char *const buffers[] = {"attn.bias", "attn.masked_bias", "rotary_emb.inv_freq",
                                      "embeddings.position_ids"};

int rlhf__tensor_is_buffer(const char *name) {
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        const size_t m = strlen(buffers[i]);
        if (n >= m && !strcmp(name + n - m, buffers[i]) && (n == m || name[n - m - 1] == '.'))
            return 1;
    }
    return 0;
}

int rlhf__tensor_is_value_head(const char *name) { return strncmp(name, "v_head.", 7) == 0; }

rlhf_status rlhf__tensor_same(const struct rlhf__tensor *a, const struct rlhf__tensor *b, int *same,
                              struct rlhf__error *err) {
    float *x = malloc(2 * CHUNK * sizeof *x), *y = x ? x + CHUNK : NULL;
    rlhf_status st = x ? RLHF_OK : RLHF__NOMEM(err, "out of memory comparing %s", a->name);
    *same = a->ndim == b->ndim && !memcmp(a->shape, b->shape, sizeof a->shape);
    for (int64_t at = 0; st == RLHF_OK && *same && at < a->count; at += CHUNK) {
        const int64_t left = a->count - at, n = left < CHUNK ? left : CHUNK;
        st = rlhf__tensor_read_f32(a, at, n, x, err);
        if (st == RLHF_OK) st = rlhf__tensor_read_f32(b, at, n, y, err);
        if (st == RLHF_OK) *same = !memcmp(x, y, (size_t)n * sizeof *x);
    }
    free(x);
    return st;
}
