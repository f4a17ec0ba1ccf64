// verdict.c: see verdict.h.
#include "verdict/verdict.h"

#include "base/buf.h"
#include "verdict/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- checks: can the numbers be trusted? ----

static void check(struct rlhf__verdict *v, int ok, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void check(struct rlhf__verdict *v, int ok, const char *fmt, ...) {
    struct rlhf__verdict_check *c = &v->check[v->n_checks++];
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0) text = NULL;
    va_end(args);
    *c = (struct rlhf__verdict_check){.ok = ok, .text = text};
    if (!text) v->notes.bad = 1;
}

// The last phase in all series.
static int64_t phases_done(const struct rlhf__history *h) {
    int64_t last = 0;
    for (size_t i = 0; i < h->series->n; i++) {
        const struct rlhf__series *s = &h->series->all[i];
        if (s->n > 0 && s->phase[s->n - 1] > last) last = s->phase[s->n - 1];
    }
    return last;
}

static void check_phases(const struct rlhf__history *h, struct rlhf__verdict *v) {
    const int64_t done = phases_done(h), wanted = h->facts->phases;
    if (wanted > 0 && done >= wanted)
        check(v, 1, "all %lld phases", (long long)wanted);
    else if (wanted > 0)
        check(v, 0, "%lld of %lld phases", (long long)done, (long long)wanted);
    else
        check(v, -1, "%lld phases of an unknown number", (long long)done);
}

static void check_log_probs(const struct rlhf__history *h, struct rlhf__verdict *v) {
    const struct rlhf__series *gap = rlhf__measured(h, "sampling/logp_difference/max");
    double worst = 0;
    char by[40];
    for (int64_t i = 0; i < gap->n; i++)
        worst = gap->value[i] > worst ? gap->value[i] : worst;
    if (!gap->n) return;
    if (worst == 0)
        check(v, 1, "sampled and trained log-probs equal");
    else
        check(v, 0, "sampled and trained log-probs differ by up to %s", rlhf__figure(worst, by));
}

static void check_steps(const struct rlhf__history *h, struct rlhf__verdict *v) {
    const struct rlhf__series *s = rlhf__measured(h, "optim/skipped_steps");
    if (!s->n) return;
    const double skipped = s->value[s->n - 1];
    if (skipped == 0)
        check(v, 1, "no step skipped");
    else
        check(v, 0, "%.0f step%s skipped", skipped, skipped == 1 ? "" : "s");
}

static void check_scores(const struct rlhf__history *h, struct rlhf__verdict *v) {
    double lost = 0;
    for (size_t i = 0; i < h->series->n; i++)
        if (rlhf__is_failure_metric(h->series->all[i].name))
            lost += rlhf__trend_sum(&h->series->all[i]);
    if (!rlhf__measured(h, "objective/scores")->n) return;
    if (lost == 0)
        check(v, 1, "every response scored");
    else
        check(v, 0, "%.0f reward%s failed or not finite", lost, lost == 1 ? "" : "s");
}

static void check_witness(const struct rlhf__history *h, struct rlhf__verdict *v) {
    const struct rlhf__witness *w;
    for (size_t i = 0; (w = rlhf__witness_at(i)); i++)
        if (rlhf__measured(h, w->metric)->n > 0) {
            check(v, 1, "a measure that nothing is trained on");
            return;
        }
    check(v, -1, "no held-out measure, no judge");
}

// ---- the headline ----

static void measure(const struct rlhf__history *h, struct rlhf__verdict *v) {
    const struct rlhf__series *s = rlhf__measured(h, v->headline.metric);
    const struct rlhf__first_last e = rlhf__trend_ends(s);
    int64_t best = 0;
    for (int64_t i = 1; i < s->n; i++)
        if (v->headline.better * (s->value[i] - s->value[best]) > 0) best = i;
    v->first = e.first;
    v->last = e.last;
    v->width = e.width;
    v->best = s->value[best];
    v->best_phase = s->phase[best];
    v->noise = rlhf__measure_noise(h->series, v->headline.metric);
    v->moved = v->headline.better * rlhf__measure_moved(h->series, v->headline.metric);
}

// Appends the word with its first letter in lower case.
static void put_lower(struct rlhf__buf *out, const char *word) {
    if (*word >= 'A' && *word <= 'Z')
        rlhf__buf_printf(out, "%c%s", *word - 'A' + 'a', word + 1);
    else
        rlhf__buf_puts(out, word);
}

static void put_short(const struct rlhf__verdict *v, const struct rlhf__series *s,
                      struct rlhf__buf *title, struct rlhf__buf *rule) {
    char first[40], last[40];
    rlhf__buf_puts(title, "Too short to judge: ");
    put_lower(title, v->headline.word);
    rlhf__buf_printf(title, " %s, then %s", rlhf__figure(s->value[0], first),
                     rlhf__figure(s->value[s->n - 1], last));
    rlhf__buf_printf(rule, "%s; fewer than five phases", v->headline.metric);
}

static void put_first(const struct rlhf__history *h, const char *metric, struct rlhf__buf *rule) {
    rlhf__buf_printf(rule, "%s %s, and ", metric,
                     rlhf__series_begins_with_chance(h->series, metric)
                         ? "by chance (in the first phase the policy is its reference, and ties "
                           "count as wrong)"
                         : "in the first phase");
}

static void put_move(const struct rlhf__history *h, struct rlhf__verdict *v,
                     struct rlhf__buf *title, struct rlhf__buf *rule) {
    const int rose = v->moved * v->headline.better > 0;
    char first[40], last[40], noise[40];
    rlhf__figure(v->first, first);
    rlhf__figure(v->last, last);
    rlhf__figure(v->noise, noise);
    const int same = strcmp(first, last) == 0; // equal in the digits shown
    if (same) v->moved = 0;
    if (v->moved)
        rlhf__buf_printf(title, "%s %s from %s to %s", v->headline.word, rose ? "rose" : "fell",
                         first, last);
    else if (!same && fabs(v->last - v->first) > v->noise)
        rlhf__buf_printf(title, "%s went from %s to %s, which may be noise", v->headline.word,
                         first, last);
    else
        rlhf__buf_printf(title, "%s did not move: %s before, %s after", v->headline.word, first,
                         last);
    v->kind = v->moved > 0   ? RLHF__VERDICT_GOOD
              : v->moved < 0 ? RLHF__VERDICT_BAD
                             : RLHF__VERDICT_WARN;
    put_first(h, v->headline.metric, rule);
    if (v->width > 1)
        rlhf__buf_printf(rule, "its mean over the last %lld phases", (long long)v->width);
    else
        rlhf__buf_puts(rule, "in the last");
    rlhf__buf_printf(rule,
                     "; a move counts above three standard errors of the difference, with %s as "
                     "the noise of a phase",
                     noise);
}

// ---- findings that change the sentence ----

static void put_failed(struct rlhf__verdict *v, const struct rlhf__run_note *n, const char *how,
                       struct rlhf__buf *title, struct rlhf__buf *text, struct rlhf__buf *rule) {
    char first[40], last[40], best[40];
    v->kind = RLHF__VERDICT_BAD;
    rlhf__buf_clear(title);
    rlhf__buf_clear(rule);
    rlhf__buf_printf(title, "%s at phase %lld", how, (long long)n->held.phase);
    rlhf__buf_puts(rule, n->rule);
    rlhf__buf_printf(text, "%s went from %s to %s; its best was %s in phase %lld.",
                     v->headline.word, rlhf__figure(v->first, first), rlhf__figure(v->last, last),
                     rlhf__figure(v->best, best), (long long)v->best_phase);
}

static void put_doubt(struct rlhf__verdict *v, const struct rlhf__run_note *n, const char *what,
                      struct rlhf__buf *title, struct rlhf__buf *rule) {
    v->kind = RLHF__VERDICT_WARN;
    rlhf__buf_printf(title, ", but %s", what);
    rlhf__buf_printf(rule, "; %s", n->rule);
}

static void put_signs(struct rlhf__verdict *v, struct rlhf__buf *title, struct rlhf__buf *text,
                      struct rlhf__buf *rule) {
    const struct rlhf__run_note *n;
    if ((n = rlhf__notes_find(&v->notes, "collapsed"))) {
        put_failed(v, n, "Collapsed", title, text, rule);
    } else if ((n = rlhf__notes_find(&v->notes, "fell_apart"))) {
        put_failed(v, n, "Fell apart", title, text, rule);
    } else if ((n = rlhf__notes_find(&v->notes, "diverged"))) {
        put_failed(v, n, "Diverged", title, text, rule);
    } else if ((n = rlhf__notes_find(&v->notes, "hacked"))) {
        put_doubt(v, n, "look at the texts", title, rule);
    } else if ((n = rlhf__notes_find(&v->notes, "measure_worse"))) {
        put_doubt(v, n, "a measure that nothing is trained on got worse", title, rule);
    } else if (v->moved > 0 && strcmp(v->headline.metric, "objective/scores") == 0 &&
               (n = rlhf__notes_find(&v->notes, "silent_reward"))) {
        put_doubt(v, n, "a part of it stayed near 0", title, rule);
    }
}

static void judge(const struct rlhf__history *h, struct rlhf__verdict *v, struct rlhf__buf *title,
                  struct rlhf__buf *text, struct rlhf__buf *rule) {
    v->headline = rlhf__headline_of(h->series);
    if (!v->headline.metric) {
        rlhf__buf_puts(title, h->series->n ? "Too short to judge" : "Nothing to judge yet");
        return;
    }
    const struct rlhf__series *s = rlhf__measured(h, v->headline.metric);
    measure(h, v);
    if (s->n < RLHF__TREND_FEWEST) {
        put_short(v, s, title, rule);
        return;
    }
    put_move(h, v, title, rule);
    put_signs(v, title, text, rule);
}

static void add_trouble(const struct rlhf__run_facts *f, struct rlhf__notes *out) {
    const struct rlhf__run_note form = {.level = RLHF__NOTE_WARN, .id = "unreadable"};
    for (size_t i = 0; i < f->n_trouble; i++)
        rlhf__notes_add(out, &form, "%s.", f->trouble[i]);
}

// Returns the buffer's text, which then belongs to the caller. Returns NULL if memory runs out.
static char *take(struct rlhf__buf *b) {
    char *text = b->bad ? NULL : b->data ? b->data : strdup("");
    if (b->bad || !b->data) rlhf__buf_finish(b);
    return text;
}

rlhf_status rlhf__verdict_make(const struct rlhf__history *h, struct rlhf__verdict *out,
                               struct rlhf__error *err) {
    struct rlhf__buf title = RLHF__BUF_INIT, text = RLHF__BUF_INIT, rule = RLHF__BUF_INIT;
    *out = (struct rlhf__verdict){.first = NAN, .last = NAN, .best = NAN, .noise = NAN};
    check_phases(h, out);
    check_log_probs(h, out);
    check_steps(h, out);
    check_scores(h, out);
    check_witness(h, out);
    rlhf__rules_apply(h, 1, &out->notes);
    judge(h, out, &title, &text, &rule);
    add_trouble(h->facts, &out->notes);
    rlhf__notes_sort(&out->notes);
    out->title = take(&title);
    out->text = take(&text);
    out->rule = take(&rule);
    if (!out->title || !out->text || !out->rule) out->notes.bad = 1;
    const rlhf_status st = rlhf__notes_ok(&out->notes, err);
    if (st != RLHF_OK) rlhf__verdict_finish(out);
    return st;
}

void rlhf__verdict_finish(struct rlhf__verdict *v) {
    for (size_t i = 0; i < v->n_checks; i++)
        free(v->check[i].text);
    rlhf__notes_finish(&v->notes);
    free(v->title);
    free(v->text);
    free(v->rule);
    *v = (struct rlhf__verdict){0};
}

const char *rlhf__verdict_kind_name(int32_t kind) {
    static const char *const name[] = {"none", "good", "warn", "bad"};
    return name[kind];
}

const char *rlhf__note_level_name(int32_t level) {
    static const char *const name[] = {"bad", "warn", "info"};
    return name[level];
}
