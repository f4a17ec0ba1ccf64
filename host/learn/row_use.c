// row_use.c: see row_use.h.
#include "learn/row_use.h"

#include <stdlib.h>

uint32_t rlhf__row_use_count(const struct rlhf__rows *e, int use) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n; i++)
        n += e->use[i] == use;
    return n;
}

int64_t rlhf__row_use_tokens(const struct rlhf__rows *e) {
    int64_t tokens = 0;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->use[i] != RLHF_ROW_EXCLUDED) tokens += rlhf__rows_loss_tokens(e, i, i + 1);
    return tokens;
}

rlhf_status rlhf__row_use_pick(const struct rlhf__rows *e, int use, struct rlhf__rows *part,
                               struct rlhf__error *err) {
    uint32_t n = 0, *pick = calloc((size_t)e->n + 1, sizeof *pick);
    if (!pick) return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    for (uint32_t i = 0; i < e->n; i++)
        if (e->use[i] == use) pick[n++] = i;
    rlhf_status st = rlhf__rows_pick(part, e, pick, n, err);
    free(pick);
    return st;
}

rlhf_status rlhf__row_use_check(const rlhf_heads *d, uint32_t total, struct rlhf__error *err) {
    const float *const heads[] = {d->logp, d->entropy, d->kl, d->value};
    for (size_t k = 0; k < sizeof heads / sizeof *heads; k++)
        for (uint32_t t = 0; heads[k] && t < total; t++)
            if (!(heads[k][t] == 0))
                return rlhf__fail(err, RLHF_E_INTERNAL,
                                  "loss() gives the derivative %g to a row that advantages() "
                                  "called RLHF_ROW_NO_GRADIENT",
                                  (double)heads[k][t]);
    return RLHF_OK;
}

double rlhf__row_tally_saved(const struct rlhf__row_tally *b) {
    const double still = (double)b->tokens[RLHF_ROW_NO_GRADIENT];
    const double masked = (double)b->tokens[RLHF_ROW_EXCLUDED];
    double forward; // seconds per token
    if (still > 0)
        forward = b->seconds[RLHF_ROW_NO_GRADIENT] / still;
    else if (b->timed > 0)
        forward = b->seconds[RLHF_ROW_TRAINS] / (3 * (double)b->timed);
    else
        return -1;
    return forward * (2 * still + 3 * masked);
}
