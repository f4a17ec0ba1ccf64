// judge.c: see judge.h.
#include "run/judge.h"

#include "sample/mixing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// finite[i] = 1 where the judge gave a number.
static rlhf_status check(const struct rlhf__phase *p, uint8_t *finite, struct rlhf__error *err) {
    const float *judged = p->x.judged;
    for (uint32_t i = 0; i < p->x.rows.n; i++) {
        finite[i] = isfinite(judged[i]);
        if (!finite[i] && p->config->mixing.nan_policy == RLHF__NAN_STOP)
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
    struct rlhf__scorer s = {
        .config = p->config, .rules = p->cast->rules, .phase = (uint64_t)p->count->phase};
    if (!p->cast->judge) return RLHF_OK;
    x->judged = calloc(n ? n : 1, sizeof *x->judged);
    uint8_t *finite = calloc(n ? n : 1, 1);
    rlhf_status st = RLHF_OK;
    if (!x->judged || !finite) st = RLHF__NOMEM(err, "out of memory judging %u responses", n);
    if (st == RLHF_OK)
        st = rlhf__score_alone(&s, p->cast->judge, &x->scored, &x->rows, x->judged, err);
    if (st == RLHF_OK) st = check(p, finite, err);
    if (st == RLHF_OK) report(p, finite);
    free(finite);
    return st;
}
