// eval_episodes.c: see eval_episodes.h.
#include "eval/eval_episodes.h"

#include <stdlib.h>

double rlhf__episode_paid(const struct rlhf__rows *e, uint32_t i) {
    return rlhf__rows_response_sum(e, i, e->paid, NULL);
}

double rlhf__episode_turns(const struct rlhf__rows *e, uint32_t i) {
    int32_t last = -1;
    for (int32_t t = e->offset[i]; t < e->offset[i + 1]; t++)
        if (e->turn[t] > last) last = e->turn[t];
    return last + 1;
}

rlhf_status rlhf__episode_tasks(const struct rlhf__eval_setup *t, uint32_t n, int per_prompt,
                                int64_t **task, struct rlhf__error *err) {
    free(*task);
    *task = NULL;
    if (!t->environment || !t->episodes.alone) return RLHF_OK;
    if (per_prompt)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "eval: --per-prompt has no effect here: %s states its own tasks, "
                          "one for each episode; --n N plays N",
                          t->environment->plugin->file);
    *task = calloc((size_t)n + 1, sizeof **task);
    if (!*task) return RLHF__NOMEM(err, "out of memory for %u episodes", n);
    for (uint32_t i = 0; i < n; i++)
        (*task)[i] = i;
    return RLHF_OK;
}
