// ahead_phase.c: see ahead_phase.h.
#include "run/ahead_phase.h"

#include "feed/ahead.h"
#include "feed/feed.h"

void rlhf__ahead_phase_rows(const struct rlhf__phase *p) {
    const struct rlhf__rows *e = &p->x.rows;
    const int64_t now = p->learner->optim->count.step;
    int64_t sum = 0, most = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        const int64_t age = now - e->version[i];
        sum += age;
        if (age > most) most = age;
    }
    if (!p->feed->ahead || e->n == 0) return;
    rlhf__metrics_set(p->report->metrics, "sampling/staleness_mean", (double)sum / (double)e->n);
    rlhf__metrics_set(p->report->metrics, "sampling/staleness_max", (double)most);
}

rlhf_status rlhf__ahead_phase_begin(const struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__count *c = p->count;
    if (!p->feed->ahead) return RLHF_OK;
    return rlhf__prompt_feed_ahead(p->feed, c->phase + 1, (uint64_t)c->sequences + p->x.drawn,
                                   p->learner->optim->count.step, err);
}

rlhf_status rlhf__ahead_phase_end(const struct rlhf__phase *p, struct rlhf__error *err) {
    struct rlhf__metrics *m = p->report->metrics;
    struct rlhf__ahead_idle idle;
    if (!p->feed->ahead) return RLHF_OK;
    rlhf__progress_note(p->report->progress, "waiting for responses");
    RLHF_TRY(rlhf__ahead_wait(p->feed->ahead, p->report->times.start, &idle, err));
    rlhf__metrics_set(m, "time/waited_rollout", idle.trainer);
    rlhf__metrics_set(m, "time/waited_update", idle.rollouter);
    if (!(idle.all > 0)) return RLHF_OK;
    rlhf__metrics_set(m, "trainer/idle_ratio", idle.trainer / idle.all);
    rlhf__metrics_set(m, "rollouter/idle_ratio", idle.rollouter / idle.all);
    return RLHF_OK;
}

void rlhf__ahead_say(const struct rlhf__feed *feed, struct rlhf__log *log) {
    if (!feed->ahead) return;
    const struct rlhf__ahead_idle i = rlhf__ahead_idle(feed->ahead);
    if (!(i.all > 0)) return;
    rlhf__logf(log, RLHF_LOG_INFO,
               "rollout.ahead: training waited for responses in %.0f %% of the time "
               "(trainer/idle_ratio), sampling waited for training in %.0f %% "
               "(rollouter/idle_ratio)",
               100 * i.trainer / i.all, 100 * i.rollouter / i.all);
}
