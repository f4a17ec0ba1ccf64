// reward_early.c: see reward_early.h.
#include "sample/reward_early.h"

#include "sample/reward_narrow.h"

#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__reward_early_init(struct rlhf__reward_early *e, uint32_t n,
                                    struct rlhf__error *err) {
    e->n = n;
    e->known = calloc((size_t)n + 1, 1);
    e->verdict = calloc((size_t)n + 1, 1);
    e->failed = calloc((size_t)n + 1, 1);
    e->seq = calloc((size_t)n + 1, sizeof *e->seq);
    e->token = calloc((size_t)n + 1, sizeof *e->token);
    if (e->known && e->verdict && e->failed && e->seq && e->token) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for rewards.overlap");
}

void rlhf__reward_early_finish(struct rlhf__reward_early *e) {
    for (uint32_t i = 0; e->token && i < e->n; i++)
        free(e->token[i]);
    rlhf__reward_metrics_finish(&e->metrics);
    free(e->known);
    free(e->verdict);
    free(e->failed);
    free(e->seq);
    free(e->token);
    *e = (struct rlhf__reward_early){0};
}

// Row k of r, which is row i of the batch.
static void keep(struct rlhf__reward_early *e, const struct rlhf__reward_rows *r,
                 const struct rlhf__reward_answer *a, uint32_t k, uint32_t i, int tokens) {
    const size_t len = (size_t)(r->offset[k + 1] - r->offset[k]);
    if (tokens) {
        e->token[i] = malloc((len + 1) * sizeof(float));
        if (!e->token[i]) return; // not known
        memcpy(e->token[i], a->token + r->offset[k], len * sizeof(float));
    }
    e->seq[i] = a->seq[k];
    e->verdict[i] = a->verdict[k];
    e->failed[i] = a->failed[k];
    e->known[i] = 1;
}

void rlhf__reward_ask_early(const struct rlhf__reward_call *q, const struct rlhf__reward_rows *r,
                            const uint32_t *number, struct rlhf__reward_early *e) {
    const int tokens = (q->plugin->plugin->ops.reward.flags & RLHF_REWARD_PER_TOKEN) != 0;
    struct rlhf__reward_answer a = {0};
    struct rlhf__error why, err;
    int32_t whole;
    rlhf_status st = rlhf__reward_answer_init(&a, r, &err);
    if (st == RLHF_OK) st = rlhf__reward_narrow(q, &e->metrics, r, &a, &why, &whole, &err);
    if (st == RLHF_OK && why.code != 0 && e->why.code != 0) // the first one is told with the rows
        rlhf__logf(q->log, RLHF_LOG_WARN, "%s", why.text);
    if (st == RLHF_OK && why.code != 0 && e->why.code == 0) e->why = why;
    for (uint32_t k = 0; st == RLHF_OK && k < r->n; k++)
        keep(e, r, &a, k, number[k], tokens);
    rlhf__reward_answer_finish(&a);
}

int rlhf__reward_early_take(const struct rlhf__reward_early *e, uint32_t i,
                            const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a) {
    if (!e->known[i]) return 0;
    a->seq[i] = e->seq[i];
    a->verdict[i] = e->verdict[i];
    a->failed[i] = e->failed[i];
    if (e->token[i])
        memcpy(a->token + r->offset[i], e->token[i],
               (size_t)(r->offset[i + 1] - r->offset[i]) * sizeof *a->token);
    return 1;
}
