// episode_metrics.c: see episode_metrics.h.
#include "episode/episode_metrics.h"

#include <stdio.h>

#include <rlhf/reward.h>

static const char *const ends[] = {"open", "done", "truncated", "turn_length", "turns", "length"};
enum { ENDS = sizeof ends / sizeof *ends };

void rlhf__episode_metrics(const struct rlhf__rows *e, const struct rlhf__episode_counts *replies,
                           void (*metric)(void *ctx, const char *name, double value), void *ctx) {
    double turns = 0, most = 0, given = 0, ended[ENDS] = {0};
    if (!e->turn || e->n == 0) return;
    const double n = (double)e->n;
    for (uint32_t i = 0; i < e->n; i++) {
        int32_t last = -1;
        for (int32_t t = e->offset[i] + e->prompt_len[i]; t < e->offset[i + 1]; t++) {
            given += e->turn[t] < 0;
            if (e->turn[t] > last) last = e->turn[t];
        }
        turns += last + 1;
        if (last + 1 > most) most = last + 1;
        if (e->end[i] < ENDS) ended[e->end[i]]++;
    }
    metric(ctx, "episodes/turns", turns / n);
    metric(ctx, "episodes/turns_max", most);
    metric(ctx, "episodes/policy_tokens", (double)rlhf__rows_response_tokens(e, 0, e->n) / n);
    metric(ctx, "episodes/given_tokens", given / n);
    for (int k = RLHF_EPISODE_DONE; k < ENDS; k++) {
        char name[64];
        snprintf(name, sizeof name, "episodes/ended/%s", ends[k]);
        metric(ctx, name, ended[k] / n);
    }
    if (!replies) return;
    metric(ctx, "episodes/cut_replies", (double)replies->cut);
    metric(ctx, "episodes/special_in_replies", (double)replies->specials);
    metric(ctx, "episodes/forged_turns", (double)replies->forged);
    metric(ctx, "episodes/failures", (double)replies->failures);
    metric(ctx, "episodes/dropped", (double)replies->lost);
    const double past = replies->past > 0 ? (double)replies->past : 1;
    if (replies->chat) metric(ctx, "episodes/rewritten_turns", (double)replies->rewritten / past);
    if (!replies->tools) return;
    const double calls = (double)replies->calls;
    metric(ctx, "tools/call_frequency", calls / n);
    metric(ctx, "tools/failure_frequency", calls > 0 ? (double)replies->faults / calls : 0);
}

const char *rlhf__episode_end_name(uint8_t end) { return end < ENDS ? ends[end] : "other"; }
