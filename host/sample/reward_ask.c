// reward_ask.c: see reward_ask.h.
#include "sample/reward_ask.h"

#include "sample/reward_narrow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_ROWS = 4 }; // numbers of failed rows in a sentence

// Rows that are asked about, and what came of it.
struct asking {
    struct rlhf__reward_call *q;
    struct rlhf__reward_early *early;
    const struct rlhf__reward_rows *r; // all
    struct rlhf__reward_answer *a;     // about all
    uint8_t *open;                     // [n] 1 = nothing that counts is said of it yet
    uint32_t *pick;                    // [n] rows of the next try
    uint32_t n_open, n_pick;
    uint32_t odd;            // of the open ones, those that were paid no finite number
    int32_t whole;           // 1: the last try failed whole
    struct rlhf__error why;  // of what failed in it; code 0: nothing
    struct rlhf__buf before; // the reward's state before it; empty: it keeps none
    struct rlhf__reward_metrics metrics;
};

static int policy_is(const struct asking *s, int32_t policy) {
    return s->q->rules->on_failure == policy;
}

// ---- tries ----

static void say_no_number(struct asking *s, uint32_t i) {
    const float paid = rlhf__reward_answer_paid(s->a, s->r, i);
    char what[48];
    snprintf(what, sizeof what, "it gave %g", isnan(paid) ? (double)NAN : (double)paid); // no -nan
    rlhf__fail(&s->why, RLHF_E_NUMERIC, "reward %s, score(), phase %llu: %s",
               s->q->plugin->plugin->desc.id, (unsigned long long)s->q->phase + 1,
               rlhf__reward_answer_unwritten(s->a, i) ? "it wrote no result" : what);
}

// Which of the open rows stay open.
static void close_rows(struct asking *s) {
    const int numbers =
        policy_is(s, RLHF__FAILURE_RETRY) && s->q->rules->nan_policy == RLHF__NAN_STOP;
    s->odd = 0;
    for (uint32_t i = 0; i < s->r->n; i++) {
        if (!s->open[i]) continue;
        const int odd = numbers && !isfinite(rlhf__reward_answer_paid(s->a, s->r, i));
        if (odd && s->why.code == 0) say_no_number(s, i);
        s->odd += odd != 0;
        s->open[i] = s->a->failed[i] || odd;
    }
    s->n_open = rlhf__marks_count(s->open, s->r->n);
}

// The rows that the open ones have to be asked about with: their groups, unless each is scored for
// itself.
static void pick_rows(struct asking *s) {
    const int alone = (s->q->plugin->plugin->ops.reward.flags & RLHF_REWARD_ROW_ALONE) != 0;
    const struct rlhf__reward_rows *r = s->r;
    s->n_pick = 0;
    for (uint32_t from = 0, to; from < r->n; from = to) {
        to = from + 1;
        while (!alone && to < r->n && r->group[to] == r->group[from])
            to++;
        if (rlhf__marks_count(s->open + from, to - from) == 0) continue;
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
        st = rlhf__reward_narrow(s->q, &s->metrics, &some, &part, &s->why, &s->whole, err);
    for (uint32_t k = 0; st == RLHF_OK && k < some.n; k++)
        if (s->open[s->pick[k]]) rlhf__reward_answer_take(s->a, s->r, s->pick[k], &part, &some, k);
    rlhf__reward_answer_finish(&part);
    rlhf__reward_rows_finish(&some);
    return st;
}

static rlhf_status ask_picked(struct asking *s, struct rlhf__error *err) {
    if (s->n_pick < s->r->n) return ask_some(s, err);
    for (uint32_t i = 0; i < s->r->n; i++)
        if (!s->open[i]) return ask_some(s, err); // of which some keep what was said of them
    return rlhf__reward_narrow(s->q, &s->metrics, s->r, s->a, &s->why, &s->whole, err);
}

// Ask about the rows that were picked.
static rlhf_status ask(struct asking *s, struct rlhf__error *err) {
    rlhf__buf_clear(&s->before);
    if (policy_is(s, RLHF__FAILURE_RETRY))
        RLHF_TRY(rlhf__instance_save(s->q->plugin, &s->before, err));
    RLHF_TRY(ask_picked(s, err));
    close_rows(s);
    pick_rows(s);
    if (s->q->books) s->q->books->failures += s->n_open;
    return RLHF_OK;
}

// What was said of rows before now: those of which nothing was are open; the others are looked at
// when these have been asked about.
static void take_early(struct asking *s) {
    struct rlhf__reward_early *early = s->early;
    if (!early) return;
    s->metrics = early->metrics;
    early->metrics = (struct rlhf__reward_metrics){0};
    if (s->q->books) rlhf__reward_books_add(s->q->books, &early->books);
    for (uint32_t i = 0; i < s->r->n; i++)
        if (rlhf__reward_early_take(early, i, s->r, s->a)) s->open[i] = 0;
    s->n_open = rlhf__marks_count(s->open, s->r->n);
}

static void look_at_early(struct asking *s) {
    const uint32_t counted = s->n_open;
    if (!s->early) return;
    if (s->why.code == 0) s->why = s->early->why;
    for (uint32_t i = 0; i < s->r->n; i++)
        if (s->early->known[i]) s->open[i] = 1;
    close_rows(s);
    pick_rows(s);
    if (s->q->books) s->q->books->failures += s->n_open - counted;
}

// The first try: all that nothing was said of yet.
static rlhf_status ask_first(struct asking *s, struct rlhf__error *err) {
    s->n_open = s->r->n;
    take_early(s);
    pick_rows(s);
    if (s->n_open > 0) RLHF_TRY(ask(s, err));
    look_at_early(s);
    return RLHF_OK;
}

// ---- what is said of failures ----

// "row 3 of 8", "rows 3, 7, 9, 11 and 2 more of 8", "all 8 rows".
static void put_rows(const struct asking *s, char *out, size_t cap) {
    uint32_t shown = 0;
    if (s->n_open == s->r->n && s->n_open > 1) {
        snprintf(out, cap, "all %u rows", s->n_open);
        return;
    }
    size_t at = (size_t)snprintf(out, cap, "row%s", s->n_open == 1 ? "" : "s");
    for (uint32_t i = 0; i < s->r->n && shown < SHOWN_ROWS; i++)
        if (s->open[i]) at += (size_t)snprintf(out + at, cap - at, "%s %u", shown++ ? "," : "", i);
    if (s->n_open > shown)
        at += (size_t)snprintf(out + at, cap - at, " and %u more", s->n_open - shown);
    snprintf(out + at, cap - at, " of %u", s->r->n);
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
    snprintf(policy, sizeof policy, "retry: asked again, %lld of %lld", (long long)times + 1,
             (long long)s->q->rules->retries);
    go_on(s, policy);
    s->q->narrows = times + 1 == s->q->rules->retries; // the last time only what fails is to fail
    if (s->q->books) s->q->books->retries += s->n_open;
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
    const int pays = s->q->pays;
    if (s->n_open == 0) return RLHF_OK;
    if (policy_is(s, RLHF__FAILURE_RETRY)) return retry(s, err);
    if (policy_is(s, RLHF__FAILURE_STOP))
        return give_up(s, "stop (retry, zero and drop are allowed too)", err);
    if (policy_is(s, RLHF__FAILURE_ZERO))
        go_on(s, pays ? "zero: it pays them nothing" : "zero: it has no opinion of them");
    else
        go_on(s, pays ? "drop: they are left out" : "drop: it has no opinion of them");
    return RLHF_OK;
}

static rlhf_status prepare(struct asking *s, struct rlhf__error *err) {
    const size_t n = (size_t)s->r->n + 1;
    s->pick = calloc(n, sizeof *s->pick);
    s->open = calloc(n, 1);
    if (!s->pick || !s->open) return RLHF__NOMEM(err, "out of memory scoring %u rows", s->r->n);
    memset(s->open, 1, s->r->n);
    return RLHF_OK;
}

rlhf_status rlhf__reward_ask(const struct rlhf__reward_call *q, struct rlhf__reward_early *early,
                             const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                             struct rlhf__error *err) {
    struct rlhf__reward_call call = *q;
    struct asking s = {.q = &call, .early = early, .r = r, .a = a, .before = RLHF__BUF_INIT};
    call.narrows = rlhf__reward_narrows(q->rules);
    rlhf_status st = prepare(&s, err);
    if (st == RLHF_OK) st = ask_first(&s, err);
    if (st == RLHF_OK) {
        st = settle(&s, err);
        const int settled = st == RLHF_OK || st == RLHF_E_IO;
        if (q->books && settled) q->books->unscored += s.n_open;
    }
    rlhf__reward_metrics_flush(&s.metrics);
    rlhf__reward_metrics_finish(&s.metrics);
    rlhf__buf_free(&s.before);
    free(s.open);
    free(s.pick);
    return st;
}
