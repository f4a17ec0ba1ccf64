// fresh_groups.c: see fresh_groups.h.
#include "run/fresh_groups.h"

#include "base/clock.h"
#include "run/pay.h"

#include <stdlib.h>

// Of a phase.
struct books {
    int64_t rounds, prompts, flat; // of fresh prompts; drawn in all; groups without spread
    uint32_t live, reserved;       // groups with spread of the newest round
};

// keep[i] = 1 for the rows of groups with spread; the number of groups, and of those with it.
static uint32_t mark_live(const struct rlhf__rows *e, uint8_t *keep, uint32_t *groups) {
    uint32_t live = 0;
    *groups = 0;
    for (uint32_t i = 0, end; i < e->n; i = end) {
        end = rlhf__rows_group_end(e, i);
        const int spread = !rlhf__rows_flat(e, i, end);
        live += spread != 0;
        ++*groups;
        for (uint32_t k = i; k < end; k++)
            keep[k] = spread != 0;
    }
    return live;
}

// The first groups that are not kept are, until `room` of them are.
static void keep_flat(const struct rlhf__rows *e, uint8_t *keep, uint32_t room) {
    for (uint32_t i = 0, end; i < e->n && room > 0; i = end) {
        end = rlhf__rows_group_end(e, i);
        if (keep[i]) continue;
        for (uint32_t k = i; k < end; k++)
            keep[k] = 1;
        room--;
    }
}

// Live groups of y take the place of x's flat ones; y's others are left out.
static rlhf_status take(struct rlhf__experience *x, struct rlhf__experience *y, uint32_t want,
                        struct books *b, struct rlhf__error *err) {
    uint32_t groups, more;
    uint8_t *keep = calloc((size_t)x->rows.n + y->rows.n + 1, 1);
    if (!keep) return RLHF__NOMEM(err, "out of memory for %u rows", x->rows.n + y->rows.n);
    more = mark_live(&y->rows, keep, &groups);
    b->live = more;
    rlhf_status st = rlhf__experience_keep(y, keep, err);
    const uint32_t live = mark_live(&x->rows, keep, &groups);
    keep_flat(&x->rows, keep, live + more < want ? want - live - more : 0);
    if (st == RLHF_OK) st = rlhf__experience_keep(x, keep, err);
    if (st == RLHF_OK) st = rlhf__experience_join(x, y, err);
    free(keep);
    return st;
}

static rlhf_status draw_and_pay(struct rlhf__phase *p, uint32_t groups, struct rlhf__experience *y,
                                struct rlhf__error *err) {
    struct rlhf__phase_times *times = &p->report->times;
    const double from = rlhf__seconds();
    rlhf_status st = p->feed->ops->more(p->feed, groups, (uint64_t)p->count->sequences + p->x.drawn,
                                        p->learner->optim->count.step, y, err);
    p->x.drawn += y->drawn;
    const double drawn = rlhf__seconds();
    if (st == RLHF_OK) st = rlhf__phase_pay(p, y, 1, err);
    times->rollout += drawn - from;
    times->reward += rlhf__seconds() - drawn;
    return st;
}

static rlhf_status round_of(struct rlhf__phase *p, uint32_t want, uint32_t missing, struct books *b,
                            struct rlhf__error *err) {
    struct rlhf__experience y = {.phase = p->x.phase};
    rlhf__metrics_mute(p->report->metrics, 1);
    rlhf_status st = draw_and_pay(p, missing, &y, err);
    rlhf__metrics_mute(p->report->metrics, 0);
    b->rounds++;
    b->prompts += missing;
    if (st == RLHF_OK) st = take(&p->x, &y, want, b, err);
    rlhf__experience_finish(&y);
    return st;
}

static void report(const struct rlhf__phase *p, const struct books *b, uint32_t left) {
    struct rlhf__metrics *m = p->report->metrics;
    rlhf__metrics_set(m, "sampling/fresh_rounds", (double)b->rounds);
    rlhf__metrics_set(m, "sampling/prompts", (double)b->prompts);
    rlhf__metrics_set(m, "sampling/flat_ratio", (double)b->flat / (double)b->prompts);
    rlhf__metrics_set(m, "sampling/flat_left", (double)left);
    if (left == 0 || p->report->said_left) return;
    p->report->said_left = 1;
    rlhf__logf(
        p->report->log, RLHF_LOG_WARN,
        "phase %lld: after %lld rounds of fresh prompts %u groups have no spread and stay in "
        "the batch; sampling/flat_left counts them",
        (long long)p->count->phase + 1, (long long)b->rounds, left);
}

rlhf_status rlhf__fresh_groups(struct rlhf__phase *p, struct rlhf__error *err) {
    const rlhf_plan *plan = &p->cast->plan;
    if (plan->fresh_rounds <= 0) return RLHF_OK;
    const uint32_t want = p->x.drawn / (uint32_t)plan->group_size;
    uint32_t groups, live;
    struct books b = {.prompts = want};
    uint8_t *keep = calloc((size_t)p->x.rows.n + 1, 1);
    if (!keep) return RLHF__NOMEM(err, "out of memory for %u rows", p->x.rows.n);
    live = mark_live(&p->x.rows, keep, &groups);
    free(keep);
    b.flat = want - live;
    rlhf_status st = RLHF_OK;
    while (st == RLHF_OK && live < want && b.rounds < plan->fresh_rounds) {
        const uint32_t missing = want - live;
        st = round_of(p, want, missing, &b, err);
        b.flat += missing - b.live; // one that was dropped whole is none with spread
        live += b.live;
    }
    if (st == RLHF_OK) report(p, &b, want - live);
    return st;
}
