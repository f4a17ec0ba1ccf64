// judge.c: see judge.h.
#include "run/judge.h"

#include "sample/mixing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// finite[i], 1 where the judge could not score a row, becomes 1 where it gave a number.
static rlhf_status check(const struct rlhf__phase *p, uint8_t *finite, struct rlhf__error *err) {
    const float *judged = p->x.judged;
    for (uint32_t i = 0; i < p->x.rows.n; i++) {
        const int failed = finite[i]; // as rlhf__score_alone left it
        finite[i] = isfinite(judged[i]);
        if (!finite[i] && !failed && p->config->mixing.nan_policy == RLHF__NAN_STOP)
            return rlhf__fail(err, RLHF_E_NUMERIC,
                              "the judge %s gave %g for row %u of phase %lld; rewards.nan_policy "
                              "says stop (with zero or drop its opinion is left out)",
                              p->cast->judge->plugin->desc.id,
                              isnan(judged[i]) ? (double)NAN : (double)judged[i], i,
                              (long long)p->count->phase + 1);
    }
    return RLHF_OK;
}

static void report(const struct rlhf__phase *p, const uint8_t *finite) {
    uint32_t n = p->x.rows.n;
    double mean, std;
    if (n == 0 || !memchr(finite, 1, n)) return;
    rlhf__mean_std(p->x.judged, finite, n, &mean, &std);
    rlhf__metrics_set(p->report->metrics, "judge/mean", mean);
    rlhf__metrics_set(p->report->metrics, "judge/std", std);
}

rlhf_status rlhf__judge(struct rlhf__phase *p, struct rlhf__error *err) {
    struct rlhf__experience *x = &p->x;
    uint32_t n = x->rows.n;
    if (!p->cast->judge) return RLHF_OK;
    const struct rlhf__reward_call q = {.rules = &p->config->mixing,
                                        .plugin = p->cast->judge,
                                        .phase = (uint64_t)p->count->phase,
                                        .log = p->report->log,
                                        .books = &p->report->rewards.phase[p->cast->n_rewards]};
    x->judged = calloc(n ? n : 1, sizeof *x->judged);
    uint8_t *finite = calloc(n ? n : 1, 1);
    rlhf_status st = RLHF_OK;
    if (!x->judged || !finite) st = RLHF__NOMEM(err, "out of memory judging %u responses", n);
    if (st == RLHF_OK) st = rlhf__score_alone(&q, &x->scored, &x->rows, x->judged, finite, err);
    if (st == RLHF_OK) st = check(p, finite, err);
    if (st == RLHF_OK) report(p, finite);
    free(finite);
    return st;
}
