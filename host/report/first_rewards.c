// first_rewards.c: rlhf__phase_first_rewards of phase_report.h.
#include "report/phase_report.h"

#include <math.h>
#include <stdio.h>

// Returns the number of groups, of adjacent rows, and how many of them have different rewards.
static uint32_t count_groups(const struct rlhf__rows *e, uint32_t *differ) {
    uint32_t groups = 0, first = 0, counted = 0;
    *differ = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        const int begins = i == 0 || e->group[i] != e->group[i - 1];
        groups += begins != 0;
        if (begins) first = i;
        if (e->reward[i] == e->reward[first] || counted == groups) continue;
        counted = groups;
        ++*differ;
    }
    return groups;
}

void rlhf__phase_first_rewards(const struct rlhf__phase *p) {
    const struct rlhf__rows *e = &p->x.rows;
    struct rlhf__log *log = p->report->log;
    uint32_t differ;
    char in_groups[64] = "";
    if (p->count->phase > 0 || e->n < 2 || !rlhf__cast_has_rewards(p->cast)) return;
    const uint32_t groups = count_groups(e, &differ);
    double least = e->reward[0], most = least, sum = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        least = fmin(least, e->reward[i]);
        most = fmax(most, e->reward[i]);
        sum += e->reward[i];
    }
    if (p->cast->plan.group_size > 1)
        snprintf(in_groups, sizeof in_groups, "; they differ in %u of %u groups", differ, groups);
    if (least == most)
        rlhf__logf(log, RLHF_LOG_INFO,
                   "no reward signal before training: all %u responses have the reward %.4g", e->n,
                   most);
    else
        rlhf__logf(log, RLHF_LOG_INFO, "rewards before training: mean %.4g, from %.4g to %.4g%s",
                   sum / e->n, least, most, in_groups);
}
