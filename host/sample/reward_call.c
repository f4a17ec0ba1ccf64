// reward_call.c: see reward_call.h.
#include "sample/reward_call.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

uint32_t rlhf__marks_count(const uint8_t *marks, uint32_t n) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < n; i++)
        all += marks[i] != 0;
    return all;
}

// A reward that marked rows and gave no reason.
static void say_rows(struct rlhf__error *why, const uint8_t *failed, uint32_t n) {
    const char *text = rlhf__status_text(RLHF_E_IO);
    const size_t all = strlen(why->text), end = strlen(text);
    uint32_t first = 0;
    if (all < end || strcmp(why->text + all - end, text) != 0) return;
    while (first < n && !failed[first])
        first++;
    snprintf(why->text + all - end, sizeof why->text - (all - end), "it could not score row %u",
             first);
}

// score() of r, for which there is room in a; *some = 1 when it returned and marked rows as failed.
// Its status, or RLHF_E_IO with some.
static rlhf_status score(const struct rlhf__reward_call *q, const struct rlhf__reward_rows *r,
                         struct rlhf__reward_answer *a, struct rlhf__error *why, int *some) {
    const struct rlhf__instance *plugin = q->plugin;
    const rlhf_reward_ops *ops = &plugin->plugin->ops.reward;
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = r->n,
                               .phase = q->phase,
                               .prompt = r->prompt,
                               .response = r->response,
                               .meta = r->meta,
                               .ids = r->ids,
                               .offset = r->offset,
                               .prompt_len = r->prompt_len,
                               .finished = r->finished,
                               .group = r->group};
    rlhf_reward_out out = {
        .size = sizeof out, .seq = a->seq, .verdict = a->verdict, .failed = a->failed};
    if (ops->flags & RLHF_REWARD_PER_TOKEN) out.token = a->token;
    rlhf__reward_answer_clear(a, r);
    const double from = rlhf__seconds();
    struct rlhf__call running = rlhf__call_begin(plugin, "score()");
    rlhf_status st = ops->score(plugin->self, &in, &out);
    *some = st == RLHF_OK && rlhf__marks_count(a->failed, r->n) > 0;
    st = rlhf__call_end(&running, *some ? RLHF_E_IO : st, why);
    if (*some) say_rows(why, a->failed, r->n);
    if (q->books) q->books->seconds += rlhf__seconds() - from;
    return st;
}

rlhf_status rlhf__reward_call(const struct rlhf__reward_call *q,
                              struct rlhf__reward_metrics *metrics,
                              const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                              struct rlhf__error *why, int32_t *whole, struct rlhf__error *err) {
    int some = 0;
    *why = (struct rlhf__error){0, ""};
    rlhf__reward_metrics_begin(metrics, q->plugin);
    const rlhf_status st = score(q, r, a, why, &some);
    *whole = st != RLHF_OK && !some;
    if (*whole) memset(a->failed, 1, r->n);
    rlhf__reward_metrics_end(metrics, r->n - rlhf__marks_count(a->failed, r->n));
    if (*whole && (st == RLHF_E_CANCELLED || st == RLHF_E_NOMEM)) {
        *err = *why;
        return st;
    }
    for (uint32_t i = 0; i < r->n; i++)
        if (a->failed[i]) rlhf__reward_answer_void(a, r, i);
    return RLHF_OK;
}
