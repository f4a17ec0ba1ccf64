// policy_rows.c: see policy_rows.h.
#include "batch/policy_rows.h"

#include "supervise/tail.h"

#include <stdlib.h>
#include <string.h>

// Each copy begins at a multiple of ALIGN. A tail follows it, because algorithms write some of
// them. There are at most COPIES copies.
enum { ALIGN = 8, COPIES = 64 };

void rlhf__policy_rows_finish(struct rlhf__policy_rows *p) {
    free(p->offset);
    free(p->copies);
    memset(p, 0, sizeof *p);
}

static rlhf_status reserve(struct rlhf__policy_rows *p, size_t n, size_t total, size_t per_token,
                           struct rlhf__error *err) {
    rlhf__policy_rows_finish(p);
    p->room = total * per_token + (size_t)(ALIGN + RLHF__TAIL) * COPIES;
    p->offset = malloc((n + 1 + total) * sizeof *p->offset);
    p->copies = malloc(p->room);
    if (!p->offset || !p->copies) {
        rlhf__policy_rows_finish(p);
        return RLHF__NOMEM(err, "out of memory for the policy's part of %zu tokens", total);
    }
    p->at = p->offset + n + 1;
    p->n = (uint32_t)n;
    p->total = (uint32_t)total;
    return RLHF_OK;
}

rlhf_status rlhf__policy_rows_fill(struct rlhf__policy_rows *p, const struct rlhf__rows *e,
                                   uint32_t from, uint32_t to, size_t per_token,
                                   struct rlhf__error *err) {
    const int32_t base = e->offset[from];
    size_t total = (size_t)rlhf__rows_response_tokens(e, from, to);
    for (uint32_t i = from; i < to; i++)
        total += (size_t)e->prompt_len[i];
    RLHF_TRY(reserve(p, to - from, total, per_token, err));
    int32_t k = 0;
    for (uint32_t i = from; i < to; i++) {
        p->offset[i - from] = k;
        for (int32_t t = e->offset[i]; t < e->offset[i + 1]; t++) {
            const int prompt = t - e->offset[i] < e->prompt_len[i];
            if (prompt || rlhf__rows_is_response(e, t)) p->at[k++] = t - base;
        }
    }
    p->offset[p->n] = k;
    return RLHF_OK;
}

void *rlhf__policy_rows_take(struct rlhf__policy_rows *p, const void *full, size_t bytes) {
    const size_t need = (p->total * bytes + ALIGN - 1) / ALIGN * ALIGN + RLHF__TAIL;
    if (!full || p->used + need > p->room) return NULL;
    char *own = p->copies + p->used;
    p->used += need;
    for (uint32_t k = 0; k < p->total; k++)
        memcpy(own + k * bytes, (const char *)full + (size_t)p->at[k] * bytes, bytes);
    return own;
}

void rlhf__policy_rows_put(const struct rlhf__policy_rows *p, void *full, const void *own,
                           size_t bytes) {
    for (uint32_t k = 0; full && own && k < p->total; k++)
        memcpy((char *)full + (size_t)p->at[k] * bytes, (const char *)own + k * bytes, bytes);
}
