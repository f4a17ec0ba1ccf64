// reward_narrow.c: see reward_narrow.h.
#include "sample/reward_narrow.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ENDED = 16 };

struct narrowing {
    const struct rlhf__reward_call *q;
    struct rlhf__reward_metrics *metrics;
    const struct rlhf__reward_rows *r;
    struct rlhf__reward_answer *a;
    uint32_t *pick; // [n]
    uint32_t ended; // how often its process was
    int32_t trust;  // 1: the row that it is said to have ended at has been the one so far
    double until;   // 0: for ever
};

int rlhf__reward_narrows(const struct rlhf__mixing_config *rules) {
    return rules->on_failure == RLHF__FAILURE_ZERO || rules->on_failure == RLHF__FAILURE_DROP;
}

// The row of the last call at which its process ended; -1: it did not.
static int64_t ended_at(const struct rlhf__instance *reward) {
    const struct rlhf__outside *o = reward->plugin->outside;
    return o && o->ended_at ? o->ended_at(reward->self) : -1;
}

// ---- rows that are asked about together ----

static int parted(const struct narrowing *s, uint32_t i) {
    const int alone = (s->q->plugin->plugin->ops.reward.flags & RLHF_REWARD_ROW_ALONE) != 0;
    return alone || s->r->group[i] != s->r->group[i - 1];
}

static uint32_t first_with(const struct narrowing *s, uint32_t i, uint32_t from) {
    while (i > from && !parted(s, i))
        i--;
    return i;
}

static uint32_t behind(const struct narrowing *s, uint32_t i, uint32_t to) {
    do
        i++;
    while (i < to && !parted(s, i));
    return i;
}

// ---- parts ----

static void fail_rows(const struct narrowing *s, uint32_t from, uint32_t to) {
    memset(s->a->failed + from, 1, to - from);
    for (uint32_t i = from; i < to; i++)
        rlhf__reward_answer_void(s->a, s->r, i);
}

// Ask about rows [from, to); *row = the one at which the process ended, -1: it did not, and what
// was said is taken.
static rlhf_status ask(struct narrowing *s, uint32_t from, uint32_t to, int64_t *row,
                       struct rlhf__error *err) {
    struct rlhf__reward_rows some = {0};
    struct rlhf__reward_answer part = {0};
    struct rlhf__error why;
    int32_t whole = 0;
    *row = -1;
    for (uint32_t i = from; i < to; i++)
        s->pick[i - from] = i;
    rlhf_status st = rlhf__reward_rows_pick(&some, s->r, s->pick, to - from, err);
    if (st == RLHF_OK) st = rlhf__reward_answer_init(&part, &some, err);
    if (st == RLHF_OK) st = rlhf__reward_call(s->q, s->metrics, &some, &part, &why, &whole, err);
    if (st == RLHF_OK && s->q->books) s->q->books->retries += to - from;
    const int64_t at = st == RLHF_OK ? ended_at(s->q->plugin) : -1;
    for (uint32_t k = 0; st == RLHF_OK && at < 0 && k < some.n; k++)
        rlhf__reward_answer_take(s->a, s->r, from + k, &part, &some, k);
    if (at >= 0) *row = (int64_t)from + at;
    rlhf__reward_answer_finish(&part);
    rlhf__reward_rows_finish(&some);
    return st;
}

static rlhf_status split(struct narrowing *s, uint32_t from, uint32_t to, int64_t row,
                         struct rlhf__error *err);

static rlhf_status part(struct narrowing *s, uint32_t from, uint32_t to, struct rlhf__error *err) {
    int64_t row;
    if (from == to) return RLHF_OK;
    if (s->ended >= MOST_ENDED || (s->until > 0 && rlhf__seconds() > s->until)) {
        fail_rows(s, from, to);
        return RLHF_OK;
    }
    RLHF_TRY(ask(s, from, to, &row, err));
    if (row < 0) return RLHF_OK;
    s->ended++;
    return split(s, from, to, row, err);
}

// Rows [from, to) ended it, at `row` as it seems.
static rlhf_status split(struct narrowing *s, uint32_t from, uint32_t to, int64_t row,
                         struct rlhf__error *err) {
    const uint32_t guess = s->trust && row < to ? (uint32_t)row : from + (to - from) / 2;
    const uint32_t at = first_with(s, guess, from), end = behind(s, at, to);
    if (at == from && end == to) {
        fail_rows(s, from, to);
        return RLHF_OK;
    }
    if (!s->trust || row >= to) {
        const uint32_t half = at > from ? at : end;
        RLHF_TRY(part(s, from, half, err));
        return part(s, half, to, err);
    }
    RLHF_TRY(part(s, from, at, err));
    const uint32_t before = s->ended;
    RLHF_TRY(part(s, at, end, err));
    if (s->ended == before) s->trust = 0;
    return part(s, end, to, err);
}

rlhf_status rlhf__reward_narrow(const struct rlhf__reward_call *q,
                                struct rlhf__reward_metrics *metrics,
                                const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                                struct rlhf__error *why, int32_t *whole, struct rlhf__error *err) {
    struct narrowing s = {.q = q, .metrics = metrics, .r = r, .a = a, .ended = 1, .trust = 1};
    RLHF_TRY(rlhf__reward_call(q, metrics, r, a, why, whole, err));
    const int64_t row = *whole && q->narrows ? ended_at(q->plugin) : -1;
    if (row < 0 || q->plugin->plugin->desc.state_version != 0) return RLHF_OK;
    if (behind(&s, 0, r->n) == r->n) return RLHF_OK;
    rlhf__logf(q->log, RLHF_LOG_WARN, "%.1600s; asked again in parts", why->text);
    if (q->rules->timeout_s > 0) s.until = rlhf__seconds() + 4 * q->rules->timeout_s;
    s.pick = calloc((size_t)r->n + 1, sizeof *s.pick);
    if (!s.pick) return RLHF__NOMEM(err, "out of memory scoring %u rows", r->n);
    const rlhf_status st = split(&s, 0, r->n, row, err);
    free(s.pick);
    *whole = 0;
    if (rlhf__marks_count(a->failed, r->n) == 0) *why = (struct rlhf__error){0, ""};
    return st;
}
