// pay.c: see pay.h.
#include "run/pay.h"

#include <stdlib.h>

rlhf_status rlhf__phase_pay(const struct rlhf__phase *p, struct rlhf__experience *x, int more,
                            struct rlhf__error *err) {
    struct rlhf__scorer s = {.config = p->config,
                             .rewards = p->cast->rewards,
                             .metric = rlhf__metrics_sink,
                             .metric_ctx = p->report->metrics,
                             .phase = (uint64_t)p->count->phase,
                             .may_drop_all = more,
                             .watch = rlhf__progress_watch(p->report->progress),
                             .log = p->report->log,
                             .books = p->report->rewards.phase,
                             .ahead = x->ahead};
    const struct rlhf__scored_by by = {&p->config->response, p->cast->rules, p->feed->prompts};
    if (!rlhf__cast_pays(p->cast)) return RLHF_OK;
    rlhf__progress_note(p->report->progress, "reward");
    const uint32_t several = p->config->n_reward > 1 ? (uint32_t)p->config->n_reward : 0;
    uint8_t *keep = calloc(x->rows.n ? x->rows.n : 1, 1);
    float *raw = several ? calloc((size_t)x->rows.n * several + 1, sizeof *raw) : NULL;
    if (!keep || (several && !raw)) {
        free(keep);
        free(raw);
        return RLHF__NOMEM(err, "out of memory scoring");
    }
    rlhf_status st = rlhf__scored_init(&x->scored, &by, &x->rows, err);
    if (st == RLHF_OK) st = rlhf__score(&s, &x->scored, &x->rows, keep, raw, err);
    if (st == RLHF_OK && raw) st = rlhf__scored_take_paid(&x->scored, raw, several, err);
    if (st == RLHF_OK) st = rlhf__experience_keep(x, keep, err);
    free(keep);
    free(raw);
    rlhf__ahead_destroy(x->ahead);
    x->ahead = NULL;
    return st;
}
