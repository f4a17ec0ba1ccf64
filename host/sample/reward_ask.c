// reward_ask.c: see reward_ask.h.
#include "sample/reward_ask.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- before the batch ----

rlhf_status rlhf__overlap_answers_init(struct rlhf__overlap_answers *e, uint32_t n,
                                       struct rlhf__error *err) {
    e->n = n;
    e->known = calloc((size_t)n + 1, 1);
    e->verdict = calloc((size_t)n + 1, 1);
    e->failed = calloc((size_t)n + 1, 1);
    e->again = calloc((size_t)n + 1, 1);
    e->seq = calloc((size_t)n + 1, sizeof *e->seq);
    e->token = calloc((size_t)n + 1, sizeof *e->token);
    if (e->known && e->verdict && e->failed && e->again && e->seq && e->token) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for rewards.overlap");
}

void rlhf__overlap_answers_finish(struct rlhf__overlap_answers *e) {
    for (uint32_t i = 0; e->token && i < e->n; i++)
        free(e->token[i]);
    rlhf__reward_metrics_finish(&e->metrics);
    free(e->known);
    free(e->verdict);
    free(e->failed);
    free(e->again);
    free(e->seq);
    free(e->token);
    *e = (struct rlhf__overlap_answers){0};
}

// Store the answer for row k of r as the answer for row i of the batch.
static void keep(struct rlhf__overlap_answers *e, const struct rlhf__reward_rows *r,
                 const struct rlhf__reward_answer *a, uint32_t k, uint32_t i, int tokens) {
    const size_t len = (size_t)(r->offset[k + 1] - r->offset[k]);
    if (tokens) {
        e->token[i] = malloc((len + 1) * sizeof(float));
        if (!e->token[i]) return; // out of memory: the row stays unanswered for now
        memcpy(e->token[i], a->token + r->offset[k], len * sizeof(float));
    }
    e->seq[i] = a->seq[k];
    e->verdict[i] = a->verdict[k];
    e->failed[i] = a->failed[k];
    e->known[i] = 1;
}

// ---- reports: values that a reward reported during a call, and whether they count ----

// Returns 1 if row i must be scored again because its reward is not finite and would end the run.
static int is_odd(const struct rlhf__mixing_config *rules, const struct rlhf__reward_answer *a,
                  const struct rlhf__reward_rows *r, uint32_t i) {
    const int numbers =
        rules->on_failure == RLHF__FAILURE_RETRY && rules->nan_policy == RLHF__NAN_STOP;
    return numbers && !isfinite(rlhf__reward_answer_paid(a, r, i));
}

// Whether the metrics that the reward reported in a call are kept. COUNTED: the metrics are kept.
// NONE: the reward reported no metrics. AGAIN: the metrics are dropped, and all rows of the call
// must be scored again.
enum reports { COUNTED, NONE, AGAIN };

// Decide whether the metrics that the reward reported in a call are kept. `failed` is the number of
// rows of the call that failed. `odd` is the number of rows of the call whose rewards are not
// finite and would end the run.
static enum reports count_reports(const struct rlhf__reward_call *q, struct rlhf__reward_metrics *m,
                                  uint32_t failed, uint32_t odd) {
    const int alone = (q->plugin->plugin->ops.reward.flags & RLHF_REWARD_ROW_ALONE) != 0;
    const int repeats = q->rules->on_failure == RLHF__FAILURE_RETRY && failed + odd > 0;
    if (repeats && !(alone && odd == 0)) return rlhf__reward_metrics_drop(m) ? AGAIN : NONE;
    rlhf__reward_metrics_accept(m);
    return COUNTED;
}

static enum reports count_early(const struct rlhf__reward_call *q,
                                const struct rlhf__reward_rows *r,
                                const struct rlhf__reward_answer *a,
                                struct rlhf__overlap_answers *e) {
    uint32_t odd = 0;
    for (uint32_t k = 0; k < r->n; k++)
        odd += !a->failed[k] && is_odd(q->rules, a, r, k);
    return count_reports(q, &e->metrics, rlhf__marks_count(a->failed, r->n), odd);
}

void rlhf__reward_ask_overlapped(const struct rlhf__reward_call *q,
                                 const struct rlhf__reward_rows *r, const uint32_t *number,
                                 struct rlhf__overlap_answers *e) {
    const int tokens = (q->plugin->plugin->ops.reward.flags & RLHF_REWARD_PER_TOKEN) != 0;
    struct rlhf__reward_answer a = {0};
    struct rlhf__error why, err;
    int32_t whole;
    rlhf_status st = rlhf__reward_answer_init(&a, r, &err);
    if (st == RLHF_OK) st = rlhf__reward_bisect(q, &e->metrics, r, &a, &why, &whole, &err);
    if (st == RLHF_OK && why.code != 0 &&
        e->why.code != 0) // the first failure is reported with the rows
        rlhf__logf(q->log, RLHF_LOG_WARN, "%s", why.text);
    if (st == RLHF_OK && why.code != 0 && e->why.code == 0) e->why = why;
    const int again = st == RLHF_OK && count_early(q, r, &a, e) == AGAIN;
    for (uint32_t k = 0; st == RLHF_OK && k < r->n; k++) {
        keep(e, r, &a, k, number[k], tokens);
        e->again[number[k]] = again != 0;
    }
    rlhf__reward_answer_finish(&a);
}

// Copy the early answer for row i. Returns 0 if none exists.
static int take_answer(const struct rlhf__overlap_answers *e, uint32_t i,
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

enum { SHOWN_ROWS = 4 }; // row numbers in a message about failures

// The state of scoring a batch with one reward.
struct asking {
    struct rlhf__reward_call *q;
    struct rlhf__overlap_answers *early;
    const struct rlhf__reward_rows *r; // all rows
    struct rlhf__reward_answer *a;     // answers for all rows
    uint8_t *open;                     // [n] 1 = no valid answer yet
    uint8_t *again; // [n] 1 = the row has a score, but must be scored again for its reports
    uint32_t *pick; // [n] rows of the next try
    uint32_t n_open, n_pick;
    uint32_t odd;            // open rows whose score is not finite
    int32_t whole;           // 1: the last call failed as a whole
    struct rlhf__error why;  // reason for the last failure of rows; code 0: none
    struct rlhf__buf before; // the reward's state before the call; empty without state
    struct rlhf__reward_metrics metrics;
};

static int policy_is(const struct asking *s, int32_t policy) {
    return s->q->rules->on_failure == policy;
}

// ---- tries ----

static void say_no_number(struct asking *s, uint32_t i) {
    const float paid = rlhf__reward_answer_paid(s->a, s->r, i);
    char what[48];
    // Print nan, not -nan.
    snprintf(what, sizeof what, "it gave %g", isnan(paid) ? (double)NAN : (double)paid);
    rlhf__fail(&s->why, RLHF_E_NUMERIC, "reward %s, score(), phase %llu: %s",
               rlhf__plugin_name(s->q->plugin->plugin), (unsigned long long)s->q->phase + 1,
               rlhf__reward_answer_unwritten(s->a, i) ? "it wrote no result" : what);
}

// Close the open rows that now have a valid answer.
static void close_rows(struct asking *s) {
    s->odd = 0;
    for (uint32_t i = 0; i < s->r->n; i++) {
        if (!s->open[i]) continue;
        const int odd = is_odd(s->q->rules, s->a, s->r, i);
        if (odd && s->why.code == 0) say_no_number(s, i);
        s->odd += odd != 0;
        s->open[i] = s->a->failed[i] || odd;
    }
    s->n_open = rlhf__marks_count(s->open, s->r->n);
}

// Pick the rows to score in the next call: rows without a valid answer, and rows that must be
// scored again. Unless the reward scores rows alone, the whole group of such a row is picked.
static void pick_rows(struct asking *s) {
    const int alone = (s->q->plugin->plugin->ops.reward.flags & RLHF_REWARD_ROW_ALONE) != 0;
    const struct rlhf__reward_rows *r = s->r;
    s->n_pick = 0;
    for (uint32_t from = 0, to; from < r->n; from = to) {
        to = from + 1;
        while (!alone && to < r->n && r->group[to] == r->group[from])
            to++;
        if (rlhf__marks_count(s->open + from, to - from) == 0 &&
            rlhf__marks_count(s->again + from, to - from) == 0)
            continue;
        for (uint32_t i = from; i < to; i++)
            s->pick[s->n_pick++] = i;
    }
}

static rlhf_status ask_some(struct asking *s, struct rlhf__error *err) {
    struct rlhf__reward_rows some = {0};
    struct rlhf__reward_answer part = {0};
    rlhf_status st = rlhf__reward_rows_pick(&some, s->r, s->pick, s->n_pick, err);
    if (st == RLHF_OK) st = rlhf__reward_answer_init(&part, &some, err);
    if (st == RLHF_OK)
        st = rlhf__reward_bisect(s->q, &s->metrics, &some, &part, &s->why, &s->whole, err);
    for (uint32_t k = 0; st == RLHF_OK && k < some.n; k++)
        if (s->open[s->pick[k]]) rlhf__reward_answer_take(s->a, s->r, s->pick[k], &part, &some, k);
    rlhf__reward_answer_finish(&part);
    rlhf__reward_rows_finish(&some);
    return st;
}

static rlhf_status ask_picked(struct asking *s, struct rlhf__error *err) {
    if (s->n_pick < s->r->n) return ask_some(s, err);
    for (uint32_t i = 0; i < s->r->n; i++)
        if (!s->open[i]) return ask_some(s, err); // some rows keep their answers
    return rlhf__reward_bisect(s->q, &s->metrics, s->r, s->a, &s->why, &s->whole, err);
}

// Called after the picked rows were scored: decides whether the metrics that the call reported are
// kept.
static void note_reports(struct asking *s) {
    if (s->whole) return; // a call that failed as a whole reports nothing
    const enum reports what = count_reports(s->q, &s->metrics, s->n_open - s->odd, s->odd);
    for (uint32_t k = 0; k < s->n_pick; k++)
        if (what == AGAIN || (what == COUNTED && !s->open[s->pick[k]]))
            s->again[s->pick[k]] = what == AGAIN;
}

// Call the reward for the picked rows.
static rlhf_status ask(struct asking *s, struct rlhf__error *err) {
    rlhf__buf_clear(&s->before);
    if (policy_is(s, RLHF__FAILURE_RETRY))
        RLHF_TRY(rlhf__instance_save(s->q->plugin, &s->before, err));
    RLHF_TRY(ask_picked(s, err));
    close_rows(s);
    note_reports(s);
    pick_rows(s);
    if (s->q->tally) s->q->tally->failures += s->n_open;
    return RLHF_OK;
}

// Take the early answers. Rows without an early answer are scored next. After that, check_early
// decides which rows with an early answer must be scored again.
static void take_early(struct asking *s) {
    struct rlhf__overlap_answers *early = s->early;
    if (!early) return;
    s->metrics = early->metrics;
    early->metrics = (struct rlhf__reward_metrics){0};
    if (s->q->tally) rlhf__reward_tally_add(s->q->tally, &early->tally);
    for (uint32_t i = 0; i < s->r->n; i++)
        if (take_answer(early, i, s->r, s->a)) s->open[i] = 0;
    s->n_open = rlhf__marks_count(s->open, s->r->n);
}

static void check_early(struct asking *s) {
    const uint32_t counted = s->n_open;
    if (!s->early) return;
    if (s->why.code == 0) s->why = s->early->why;
    for (uint32_t i = 0; i < s->r->n; i++)
        if (s->early->known[i]) s->open[i] = 1;
    for (uint32_t i = 0; i < s->r->n; i++)
        s->again[i] |= s->early->again[i];
    close_rows(s);
    pick_rows(s);
    if (s->q->tally) s->q->tally->failures += s->n_open - counted;
}

// The first try scores all rows that lack an early answer.
static rlhf_status ask_first(struct asking *s, struct rlhf__error *err) {
    s->n_open = s->r->n;
    take_early(s);
    pick_rows(s);
    if (s->n_open > 0) RLHF_TRY(ask(s, err));
    check_early(s);
    return RLHF_OK;
}

// ---- sentences about failures ----

// Write "row 3 of 8", "rows 3, 7, 9, 11 and 2 more of 8" or "all 8 rows".
static void put_rows(const struct asking *s, char *out, size_t cap) {
    uint32_t shown = 0;
    const uint32_t all = s->q->row_all ? s->q->row_all : s->r->n;
    if (s->n_open == all && s->n_open > 1) {
        snprintf(out, cap, "all %u rows", s->n_open);
        return;
    }
    size_t at = (size_t)snprintf(out, cap, "row%s", s->n_open == 1 ? "" : "s");
    for (uint32_t i = 0; i < s->r->n && shown < SHOWN_ROWS; i++)
        if (s->open[i])
            at += (size_t)snprintf(out + at, cap - at, "%s %u", shown++ ? "," : "",
                                   s->q->row_from + i);
    if (s->n_open > shown)
        at += (size_t)snprintf(out + at, cap - at, " and %u more", s->n_open - shown);
    snprintf(out + at, cap - at, " of %u", all);
}

static rlhf_status give_up(const struct asking *s, const char *policy, struct rlhf__error *err) {
    char rows[160];
    put_rows(s, rows, sizeof rows);
    return rlhf__fail(err, RLHF_E_IO, "%.1600s (%s); rewards.on_failure says %s", s->why.text, rows,
                      policy);
}

static void go_on(const struct asking *s, const char *policy) {
    char rows[160];
    put_rows(s, rows, sizeof rows);
    rlhf__logf(s->q->log, RLHF_LOG_WARN, "%.1600s (%s); rewards.on_failure says %s", s->why.text,
               rows, policy);
}

// ---- policies ----

static rlhf_status try_again(struct asking *s, int64_t times, struct rlhf__error *err) {
    const rlhf_host *host = s->q->plugin->host;
    char policy[64];
    if (host && host->cancelled(host)) return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
    snprintf(policy, sizeof policy, "retry: scoring again, %lld of %lld", (long long)times + 1,
             (long long)s->q->rules->retries);
    go_on(s, policy);
    // the last try isolates rows that end the process
    s->q->bisects = times + 1 == s->q->rules->retries;
    if (s->q->tally) s->q->tally->retries += s->n_open;
    if (s->whole && s->before.len > 0)
        RLHF_TRY(rlhf__instance_load(s->q->plugin, s->before.data, s->before.len, err));
    return ask(s, err);
}

static rlhf_status retry(struct asking *s, struct rlhf__error *err) {
    char policy[160];
    for (int64_t k = 0; s->n_open > 0 && k < s->q->rules->retries; k++)
        RLHF_TRY(try_again(s, k, err));
    if (s->n_open == 0) return RLHF_OK;
    snprintf(policy, sizeof policy, "retry, rewards.retries %lld%s (zero and drop go on)",
             (long long)s->q->rules->retries,
             s->odd == s->n_open ? " and rewards.nan_policy stop" : "");
    return give_up(s, policy, err);
}

static rlhf_status settle(struct asking *s, struct rlhf__error *err) {
    const int trains = s->q->trains;
    if (s->n_open == 0) return RLHF_OK;
    if (policy_is(s, RLHF__FAILURE_RETRY)) return retry(s, err);
    if (policy_is(s, RLHF__FAILURE_STOP))
        return give_up(s, "stop (retry, zero and drop are allowed too)", err);
    if (policy_is(s, RLHF__FAILURE_ZERO))
        go_on(s, trains ? "zero: their reward is 0" : "zero: they get no score");
    else
        go_on(s, trains ? "drop: they are left out" : "drop: they get no score");
    return RLHF_OK;
}

static rlhf_status prepare(struct asking *s, struct rlhf__error *err) {
    const size_t n = (size_t)s->r->n + 1;
    s->pick = calloc(n, sizeof *s->pick);
    s->open = calloc(n, 1);
    s->again = calloc(n, 1);
    if (!s->pick || !s->open || !s->again)
        return RLHF__NOMEM(err, "out of memory scoring %u rows", s->r->n);
    memset(s->open, 1, s->r->n);
    return RLHF_OK;
}

rlhf_status rlhf__reward_ask(const struct rlhf__reward_call *q, struct rlhf__overlap_answers *early,
                             const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                             struct rlhf__error *err) {
    struct rlhf__reward_call call = *q;
    struct asking s = {.q = &call, .early = early, .r = r, .a = a, .before = RLHF__BUF_INIT};
    call.bisects = rlhf__reward_bisects(q->rules);
    rlhf_status st = prepare(&s, err);
    if (st == RLHF_OK) st = ask_first(&s, err);
    if (st == RLHF_OK) {
        st = settle(&s, err);
        const int settled = st == RLHF_OK || st == RLHF_E_IO;
        if (q->tally && settled) q->tally->unscored += s.n_open;
    }
    rlhf__reward_metrics_flush(&s.metrics, q->metric, q->metric_ctx);
    rlhf__reward_metrics_finish(&s.metrics);
    rlhf__buf_finish(&s.before);
    free(s.open);
    free(s.again);
    free(s.pick);
    return st;
}
