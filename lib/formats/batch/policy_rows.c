// policy_rows.c: see policy_rows.h.
#include "batch/policy_rows.h"

#include <stdlib.h>
#include <string.h>

void rlhf__policy_rows_finish(struct rlhf__policy_rows *p) {
    free(p->offset);
    free(p->numbers);
    memset(p, 0, sizeof *p);
}

// Allocate the arrays. All integers are in one block.
static rlhf_status reserve(struct rlhf__policy_rows *p, size_t n, size_t total, size_t arrays,
                           struct rlhf__error *err) {
    rlhf__policy_rows_finish(p);
    p->offset = malloc((n + 1 + 3 * total) * sizeof *p->offset);
    p->numbers = malloc((arrays * total + 1) * sizeof *p->numbers);
    if (!p->offset || !p->numbers) {
        rlhf__policy_rows_finish(p);
        return RLHF__NOMEM(err, "out of memory for the policy's part of %zu tokens", total);
    }
    p->ids = p->offset + n + 1;
    p->turn = p->ids + total;
    p->at = p->turn + total;
    p->n = (uint32_t)n;
    p->total = (uint32_t)total;
    p->room = (uint32_t)arrays;
    return RLHF_OK;
}

rlhf_status rlhf__policy_rows_fill(struct rlhf__policy_rows *p, const struct rlhf__rows *e,
                                   uint32_t from, uint32_t to, uint32_t arrays,
                                   struct rlhf__error *err) {
    const int32_t base = e->offset[from];
    size_t total = (size_t)rlhf__rows_response_tokens(e, from, to);
    for (uint32_t i = from; i < to; i++)
        total += (size_t)e->prompt_len[i];
    RLHF_TRY(reserve(p, to - from, total, arrays, err));
    int32_t k = 0;
    for (uint32_t i = from; i < to; i++) {
        p->offset[i - from] = k;
        for (int32_t t = e->offset[i]; t < e->offset[i + 1]; t++) {
            const int prompt = t - e->offset[i] < e->prompt_len[i];
            if (!prompt && !rlhf__rows_is_response(e, t)) continue;
            p->ids[k] = e->ids[t];
            p->turn[k] = prompt ? -1 : e->turn[t];
            p->at[k++] = t - base;
        }
    }
    p->offset[p->n] = k;
    return RLHF_OK;
}

float *rlhf__policy_rows_take(struct rlhf__policy_rows *p, const float *full) {
    if (!full || p->used == p->room) return NULL;
    float *own = p->numbers + (size_t)p->used++ * p->total;
    for (uint32_t k = 0; k < p->total; k++)
        own[k] = full[p->at[k]];
    return own;
}

uint8_t *rlhf__policy_rows_take_bytes(struct rlhf__policy_rows *p, const uint8_t *full) {
    if (!full || p->used == p->room) return NULL;
    uint8_t *own = (uint8_t *)(p->numbers + (size_t)p->used++ * p->total);
    for (uint32_t k = 0; k < p->total; k++)
        own[k] = full[p->at[k]];
    return own;
}

void rlhf__policy_rows_put(const struct rlhf__policy_rows *p, float *full, const float *own) {
    for (uint32_t k = 0; full && own && k < p->total; k++)
        full[p->at[k]] = own[k];
}
