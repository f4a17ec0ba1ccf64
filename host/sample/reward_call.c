// reward_call.c: see reward_call.h.
#include "sample/reward_call.h"

#include "base/clock.h"
#include "sample/reward_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- tally ----

void rlhf__reward_tally_add(struct rlhf__reward_tally *to, const struct rlhf__reward_tally *b) {
    to->seconds += b->seconds;
    to->failures += b->failures;
    to->retries += b->retries;
    to->unscored += b->unscored;
    to->not_finite += b->not_finite;
}

void rlhf__reward_tally_report(const struct rlhf__reward_tally *b, const char *owner,
                               void (*metric)(void *ctx, const char *name, double value),
                               void *ctx) {
    char name[256];
    snprintf(name, sizeof name, "%s/time", owner);
    metric(ctx, name, b->seconds);
    snprintf(name, sizeof name, "%s/failures", owner);
    metric(ctx, name, (double)b->failures);
    snprintf(name, sizeof name, "%s/retries", owner);
    metric(ctx, name, (double)b->retries);
}

void rlhf__reward_tally_say(const struct rlhf__reward_tally *b, const char *name,
                            struct rlhf__log *log) {
    char rows[64] = "in the end, every row has a score";
    if (b->unscored)
        snprintf(rows, sizeof rows, "%lld row%s no score", (long long)b->unscored,
                 b->unscored == 1 ? " has" : "s have");
    if (b->failures)
        rlhf__logf(log, RLHF_LOG_WARN, "%s: %s (failures: %lld, retries: %lld)", name, rows,
                   (long long)b->failures, (long long)b->retries);
    if (b->not_finite)
        rlhf__logf(log, RLHF_LOG_INFO, "%s: %lld row%s got no finite number (rewards.nan_policy)",
                   name, (long long)b->not_finite, b->not_finite == 1 ? "" : "s");
}

// ---- metrics ----

static void left_out(struct rlhf__reward_metrics *m) {
    const rlhf_host *host = m->reward->host;
    char text[96];
    if (m->warned || !host) return;
    m->warned = 1;
    snprintf(text, sizeof text,
             "it reports more than %d metrics in a phase; the others are left out",
             RLHF__MOST_METRICS);
    host->log(host, RLHF_LOG_WARN, text);
}

// Find or add a metric. Returns NULL if the table is full or memory runs out; the metric's value is
// then lost.
static struct rlhf__reward_metric *find(struct rlhf__reward_metrics *m, const char *name) {
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->item[i].name, name) == 0) return &m->item[i];
    if (m->n == RLHF__MOST_METRICS) {
        left_out(m);
        return NULL;
    }
    if (m->n == m->cap) {
        const size_t cap = m->cap ? 2 * m->cap : 8;
        struct rlhf__reward_metric *more = realloc(m->item, cap * sizeof *more);
        if (!more) return NULL;
        m->item = more;
        m->cap = cap;
    }
    struct rlhf__reward_metric *one = &m->item[m->n++];
    *one = (struct rlhf__reward_metric){0};
    snprintf(one->name, sizeof one->name, "%s", name);
    return one;
}

static void mixed(struct rlhf__reward_metrics *m, const char *name) {
    const rlhf_host *host = m->reward->host;
    char text[320];
    if (m->warned_mixed || !host) return;
    m->warned_mixed = 1;
    snprintf(text, sizeof text,
             "the metric \"%.200s\" is combined in two ways (enum rlhf_combine) in one phase; the "
             "first counts",
             name);
    host->log(host, RLHF_LOG_WARN, text);
}

static void keep(void *arg, const char *name, double value, double weight, int32_t combine) {
    struct rlhf__reward_metrics *m = arg;
    struct rlhf__reward_metric *one = find(m, name);
    if (one && !rlhf__combine_add(&one->now, value, weight, combine)) mixed(m, name);
}

// Call this before a call of the reward. From then on, *m stores the metrics that the reward
// reports.
static void metrics_begin(struct rlhf__reward_metrics *m, const struct rlhf__instance *reward) {
    m->reward = reward;
    rlhf__instance_metrics_to(reward, keep, m);
}

// Call this after a call of the reward. `rows` is the number of rows that it scored. If that is 0,
// the metrics that were reported are dropped.
static void metrics_end(struct rlhf__reward_metrics *m, uint32_t rows) {
    rlhf__instance_metrics_to(m->reward, NULL, NULL);
    for (size_t i = 0; i < m->n; i++) {
        struct rlhf__reward_metric *one = &m->item[i];
        if (rows > 0 && !rlhf__combine_merge(&one->pending, &one->now)) mixed(m, one->name);
        one->now = (struct rlhf__combined){0};
    }
}

void rlhf__reward_metrics_accept(struct rlhf__reward_metrics *m) {
    for (size_t i = 0; i < m->n; i++) {
        struct rlhf__reward_metric *one = &m->item[i];
        if (!rlhf__combine_merge(&one->all, &one->pending)) mixed(m, one->name);
        one->pending = (struct rlhf__combined){0};
    }
}

int rlhf__reward_metrics_drop(struct rlhf__reward_metrics *m) {
    int any = 0;
    for (size_t i = 0; i < m->n; i++) {
        any |= m->item[i].pending.n > 0;
        m->item[i].pending = (struct rlhf__combined){0};
    }
    return any;
}

void rlhf__reward_metrics_flush(struct rlhf__reward_metrics *m, rlhf__metric_fn *metric,
                                void *ctx) {
    for (size_t i = 0; i < m->n; i++) {
        const struct rlhf__combined *all = &m->item[i].all;
        const double weight = all->combine == RLHF_COMBINE_MEAN ? all->weight : 1;
        if (all->n > 0 && metric) metric(ctx, m->item[i].name, all->value, weight, all->combine);
    }
    m->n = 0;
}

void rlhf__reward_metrics_finish(struct rlhf__reward_metrics *m) {
    free(m->item);
    *m = (struct rlhf__reward_metrics){0};
}

// ---- one call ----

uint32_t rlhf__marks_count(const uint8_t *marks, uint32_t n) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < n; i++)
        all += marks[i] != 0;
    return all;
}

// If the reward failed, or marked rows as failed, but gave no reason, name the first of these rows
// in the message, and the limits of a confined process.
static void say_rows(const struct rlhf__plugin *plugin, struct rlhf__error *why,
                     const uint8_t *failed, uint32_t n) {
    const char *text = rlhf__status_text(RLHF_E_IO);
    const size_t all = strlen(why->text), end = strlen(text);
    uint32_t first = 0;
    if (all < end || strcmp(why->text + all - end, text) != 0) return;
    char *at = why->text + all - end;
    const size_t room = sizeof why->text - (all - end);
    while (first < n && !failed[first])
        first++;
    if (first < n)
        snprintf(at, room, "it could not score row %u%s", first, rlhf__confined_hint(plugin));
    else
        snprintf(at, room, "%s%s", text, rlhf__confined_hint(plugin));
}

// Check the marks of rows. The other results of a failed row are ignored.
static rlhf_status check_marks(const struct rlhf__call *call, const struct rlhf__reward_answer *a,
                               uint32_t n) {
    char why[96];
    for (uint32_t i = 0; i < n; i++) {
        if (a->failed[i] <= 1 && (a->failed[i] || a->verdict[i] <= RLHF_VERDICT_WRONG)) continue;
        if (a->failed[i] > 1)
            snprintf(why, sizeof why, "out->failed[%u] is %u; it must be 0 or 1", i, a->failed[i]);
        else
            snprintf(why, sizeof why,
                     "out->verdict[%u] is %u; it must be from 0 to %d (enum rlhf_verdict)", i,
                     a->verdict[i], RLHF_VERDICT_WRONG);
        return rlhf__call_fault(call, why);
    }
    return RLHF_OK;
}

// Call score() for r and return its status. If score() succeeds but marks rows as failed, set *some
// to 1 and return RLHF_E_IO.
static rlhf_status score(const struct rlhf__reward_call *q, const struct rlhf__reward_rows *r,
                         struct rlhf__reward_answer *a, struct rlhf__error *why, int *some) {
    const struct rlhf__instance *plugin = q->plugin;
    const rlhf_reward_ops *ops = &plugin->plugin->ops.reward;
    struct rlhf__reward_view view = {0};
    *some = 0;
    rlhf_status st = rlhf__reward_view_init(&view, r, ops->flags, q->phase, why);
    if (st != RLHF_OK) {
        rlhf__reward_view_finish(&view);
        return st;
    }
    rlhf_reward_out out = {.seq = a->seq, .verdict = a->verdict, .failed = a->failed};
    if (ops->flags & RLHF_REWARD_PER_TOKEN) out.token = a->token;
    rlhf__reward_answer_clear(a, r);
    const double from = rlhf__seconds();
    struct rlhf__call running = rlhf__call_begin(plugin, "score()");
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_reward_in, &view.in, plugin->plugin->abi_minor, &tails);
    RLHF__LEND(rlhf_reward_out, &out, plugin->plugin->abi_minor, &tails);
    rlhf__tails_mark(&tails, "out->seq", out.seq, r->n * sizeof *out.seq);
    rlhf__tails_mark(&tails, "out->token", out.token, (size_t)r->offset[r->n] * sizeof *out.token);
    rlhf__tails_mark(&tails, "out->verdict", out.verdict, r->n);
    rlhf__tails_mark(&tails, "out->failed", out.failed, r->n);
    st = rlhf__call_kept(&running, &tails, ops->score(plugin->self, &view.in, &out));
    if (st == RLHF_OK) st = check_marks(&running, a, r->n);
    rlhf__reward_view_keep(&view, r, a->token);
    rlhf__reward_view_finish(&view);
    *some = st == RLHF_OK && rlhf__marks_count(a->failed, r->n) > 0;
    st = rlhf__call_end(&running, *some ? RLHF_E_IO : st, why);
    if (st == RLHF_E_IO) say_rows(plugin->plugin, why, a->failed, r->n);
    if (q->tally) q->tally->seconds += rlhf__seconds() - from;
    return st;
}

static rlhf_status call(const struct rlhf__reward_call *q, struct rlhf__reward_metrics *metrics,
                        const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                        struct rlhf__error *why, int32_t *whole, struct rlhf__error *err) {
    int some = 0;
    *why = (struct rlhf__error){0, ""};
    metrics_begin(metrics, q->plugin);
    const rlhf_status st = score(q, r, a, why, &some);
    *whole = st != RLHF_OK && !some;
    if (*whole) memset(a->failed, 1, r->n);
    metrics_end(metrics, r->n - rlhf__marks_count(a->failed, r->n));
    if (*whole && (st == RLHF_E_CANCELLED || st == RLHF_E_NOMEM)) {
        *err = *why;
        return st;
    }
    for (uint32_t i = 0; i < r->n; i++)
        if (a->failed[i]) rlhf__reward_answer_void(a, r, i);
    return RLHF_OK;
}

// ---- repeating a call in parts ----

enum { MOST_ENDED = 16 };

struct bisection {
    const struct rlhf__reward_call *q;
    struct rlhf__reward_metrics *metrics;
    const struct rlhf__reward_rows *r;
    struct rlhf__reward_answer *a;
    uint32_t *pick; // [n]
    uint32_t ended; // number of times the process ended
    int32_t trust;  // 1: so far the process always ended because of the row at which it ended
    double until;   // deadline as in rlhf__seconds(); 0: none
};

int rlhf__reward_bisects(const struct rlhf__mixing_config *rules) {
    return rules->on_failure == RLHF__FAILURE_ZERO || rules->on_failure == RLHF__FAILURE_DROP;
}

// Returns the row at which the reward's process terminated in the last call, or -1 if the process
// did not terminate.
static int64_t ended_at(const struct rlhf__instance *reward) {
    const struct rlhf__outside *o = reward->plugin->outside;
    return o && o->ended_at ? o->ended_at(reward->self) : -1;
}

// ---- rows of one call that must stay together ----

static int parted(const struct bisection *s, uint32_t i) {
    const int alone = (s->q->plugin->plugin->ops.reward.flags & RLHF_REWARD_ROW_ALONE) != 0;
    return alone || s->r->group[i] != s->r->group[i - 1];
}

static uint32_t first_with(const struct bisection *s, uint32_t i, uint32_t from) {
    while (i > from && !parted(s, i))
        i--;
    return i;
}

static uint32_t after(const struct bisection *s, uint32_t i, uint32_t to) {
    do
        i++;
    while (i < to && !parted(s, i));
    return i;
}

// ---- parts ----

static void fail_rows(const struct bisection *s, uint32_t from, uint32_t to) {
    memset(s->a->failed + from, 1, to - from);
    for (uint32_t i = from; i < to; i++)
        rlhf__reward_answer_void(s->a, s->r, i);
}

// Call the reward for rows [from, to). If the reward's process terminated, *row is the row at which
// it terminated. Otherwise the answers are stored in s->a, and *row is -1.
static rlhf_status ask(struct bisection *s, uint32_t from, uint32_t to, int64_t *row,
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
    if (st == RLHF_OK) st = call(s->q, s->metrics, &some, &part, &why, &whole, err);
    if (st == RLHF_OK && s->q->tally) s->q->tally->retries += to - from;
    const int64_t at = st == RLHF_OK ? ended_at(s->q->plugin) : -1;
    for (uint32_t k = 0; st == RLHF_OK && at < 0 && k < some.n; k++)
        rlhf__reward_answer_take(s->a, s->r, from + k, &part, &some, k);
    if (at >= 0) *row = (int64_t)from + at;
    rlhf__reward_answer_finish(&part);
    rlhf__reward_rows_finish(&some);
    return st;
}

static rlhf_status split(struct bisection *s, uint32_t from, uint32_t to, int64_t row,
                         struct rlhf__error *err);

static rlhf_status part(struct bisection *s, uint32_t from, uint32_t to, struct rlhf__error *err) {
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

// Rows [from, to) made the process terminate, apparently at `row`. Score them in smaller parts.
static rlhf_status split(struct bisection *s, uint32_t from, uint32_t to, int64_t row,
                         struct rlhf__error *err) {
    const uint32_t guess = s->trust && row < to ? (uint32_t)row : from + (to - from) / 2;
    const uint32_t at = first_with(s, guess, from), end = after(s, at, to);
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

rlhf_status rlhf__reward_bisect(const struct rlhf__reward_call *q,
                                struct rlhf__reward_metrics *metrics,
                                const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                                struct rlhf__error *why, int32_t *whole, struct rlhf__error *err) {
    struct bisection s = {.q = q, .metrics = metrics, .r = r, .a = a, .ended = 1, .trust = 1};
    RLHF_TRY(call(q, metrics, r, a, why, whole, err));
    const int64_t row = *whole && q->bisects ? ended_at(q->plugin) : -1;
    if (row < 0 || q->plugin->plugin->desc.state_version != 0) return RLHF_OK;
    if (after(&s, 0, r->n) == r->n) return RLHF_OK;
    rlhf__logf(q->log, RLHF_LOG_WARN, "%.1600s; scoring again in parts", why->text);
    if (q->rules->timeout_s > 0) s.until = rlhf__seconds() + 4 * q->rules->timeout_s;
    s.pick = calloc((size_t)r->n + 1, sizeof *s.pick);
    if (!s.pick) return RLHF__NOMEM(err, "out of memory scoring %u rows", r->n);
    const rlhf_status st = split(&s, 0, r->n, row, err);
    free(s.pick);
    *whole = 0;
    if (rlhf__marks_count(a->failed, r->n) == 0) *why = (struct rlhf__error){0, ""};
    return st;
}
