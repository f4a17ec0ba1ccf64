// experience.c: see experience.h.
#include "sample/experience.h"

#include <stdlib.h>
#include <string.h>

void rlhf__episode_counts_add(struct rlhf__episode_counts *x,
                              const struct rlhf__episode_counts *y) {
    x->cut += y->cut;
    x->specials += y->specials;
    x->forged += y->forged;
    x->failures += y->failures;
    x->lost += y->lost;
    x->calls += y->calls;
    x->faults += y->faults;
    x->seconds += y->seconds;
    x->past += y->past;
    x->rewritten += y->rewritten;
    x->tools |= y->tools;
    x->chat |= y->chat;
}

void rlhf__experience_finish(struct rlhf__experience *x) {
    rlhf__rows_finish(&x->rows);
    rlhf__scored_finish(&x->scored);
    rlhf__overlap_close(x->overlap);
    free(x->judged);
    if (x->ref_hidden) x->compute->release(x->compute->ctx, x->ref_hidden);
    memset(x, 0, sizeof *x);
}

// Keep only the rows pick[0..n), ascending, with all their data.
static rlhf_status pick_rows(struct rlhf__experience *x, const uint32_t *pick, uint32_t n,
                             struct rlhf__error *err) {
    struct rlhf__rows left = {0};
    RLHF_TRY(rlhf__rows_pick(&left, &x->rows, pick, n, err));
    rlhf__rows_finish(&x->rows);
    x->rows = left;
    if (x->scored.n) rlhf__scored_pick(&x->scored, pick, n);
    for (uint32_t i = 0; x->judged && i < n; i++)
        x->judged[i] = x->judged[pick[i]];
    return RLHF_OK;
}

rlhf_status rlhf__experience_keep(struct rlhf__experience *x, const uint8_t *keep,
                                  struct rlhf__error *err) {
    uint32_t n = 0, *pick = calloc(x->rows.n ? x->rows.n : 1, sizeof *pick);
    if (!pick) return RLHF__NOMEM(err, "out of memory dropping rows");
    for (uint32_t i = 0; i < x->rows.n; i++)
        if (keep[i]) pick[n++] = i;
    rlhf_status st = n < x->rows.n ? pick_rows(x, pick, n, err) : RLHF_OK;
    free(pick);
    return st;
}

rlhf_status rlhf__experience_join(struct rlhf__experience *x, struct rlhf__experience *y,
                                  struct rlhf__error *err) {
    struct rlhf__rows both = {0};
    RLHF_TRY(rlhf__rows_join(&both, &x->rows, &y->rows, err));
    rlhf_status st = rlhf__scored_join(&x->scored, &y->scored, err);
    if (st != RLHF_OK) {
        rlhf__rows_finish(&both);
        return st;
    }
    rlhf__rows_finish(&x->rows);
    x->rows = both;
    x->sampled += y->sampled;
    x->tokens += y->tokens;
    rlhf__episode_counts_add(&x->replies, &y->replies);
    rlhf__experience_finish(y);
    return RLHF_OK;
}
