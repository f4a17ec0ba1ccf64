// closing.c: see closing.h.
#include "report/closing.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/printable.h"
#include "verdict/measures.h"
#include "verdict/reward_parts.h"

#include <math.h>
#include <string.h>

enum { CURVE_COLUMNS = 24 };

// ---- lines ----

static const struct rlhf__series *of(const struct rlhf__closing *c, const char *name) {
    return rlhf__series_of(&c->history->series, name);
}

void rlhf__put_verdict(const struct rlhf__verdict *v, struct rlhf__buf *out) {
    char best[40];
    rlhf__buf_puts(out, v->title);
    if (v->text[0])
        rlhf__buf_printf(out, ". %s", v->text);
    else if (v->kind != RLHF__VERDICT_NONE)
        rlhf__buf_printf(out, "; best %s in phase %lld", rlhf__figure(v->best, best),
                         (long long)v->best_phase);
}

static void put_curve(const struct rlhf__closing *c, const struct rlhf__verdict *v,
                      struct rlhf__buf *out) {
    if (!v->headline.metric || rlhf__terminal_width(fileno(c->log->out), 0) <= 0) return;
    rlhf__buf_puts(out, "  ");
    rlhf__put_sparkline(out, of(c, v->headline.metric), CURVE_COLUMNS);
}

// Append "KL 6.29 nats per sequence (0.131 per token), length 48 tokens (47.2 at first)". Unknown
// numbers are left out.
static void put_price(const struct rlhf__closing *c, struct rlhf__buf *out) {
    const struct rlhf__series *kl = of(c, "objective/kl"), *each = of(c, "objective/kl_per_token"),
                              *length = of(c, "completions/mean_length");
    char a[40], b[40];
    if (kl->n)
        rlhf__buf_printf(out, "KL %s nats per sequence",
                         rlhf__figure(rlhf__trend_ends(kl).last, a));
    if (kl->n && each->n)
        rlhf__buf_printf(out, " (%s per token)", rlhf__figure(rlhf__trend_ends(each).last, a));
    if (!length->n) return;
    const struct rlhf__first_last e = rlhf__trend_ends(length);
    rlhf__buf_printf(out, "%slength %s tokens (%s at first)", out->len ? ", " : "",
                     rlhf__figure(e.last, a), rlhf__figure(e.first, b));
}

// Append "rewards: fmt 0.391 (0.0234 at first), correct 0 (0 at first)", if rewards have parts.
static void put_parts(const struct rlhf__closing *c, struct rlhf__buf *out) {
    const struct rlhf__series_set *set = &c->history->series;
    char first[40], last[40];
    for (size_t i = 0; i < set->n; i++) {
        const struct rlhf__series *s = &set->all[i];
        if (s->n == 0 || !rlhf__reward_part(s->name, NULL, NULL)) continue;
        const struct rlhf__first_last e = rlhf__trend_ends(s);
        rlhf__buf_puts(out, out->len ? ", " : "rewards: ");
        rlhf__reward_part_put(out, s->name, c->history->facts.n_rewards);
        rlhf__buf_printf(out, " %s (%s at first)", rlhf__figure(e.last, last),
                         rlhf__figure(e.first, first));
    }
}

// Append "held out: reward 0.906 (0.182 at first)".
static void put_held_out(const struct rlhf__closing *c, struct rlhf__buf *out) {
    const struct rlhf__series_set *set = &c->history->series;
    const struct rlhf__witness *w;
    char first[40], last[40];
    for (size_t i = 0; (w = rlhf__witness_at(i)); i++) {
        const struct rlhf__series *s = rlhf__series_of(set, w->metric);
        if (strncmp(w->metric, "eval/", 5) != 0 || s->n < 2 || rlhf__witness_repeats(set, i))
            continue;
        rlhf__buf_printf(out, "%s%s %s (%s at first)", out->len ? ", " : "held out: ", w->word,
                         rlhf__figure(s->value[s->n - 1], last), rlhf__figure(s->value[0], first));
    }
}

static void say_line(const struct rlhf__closing *c, struct rlhf__buf *line) {
    if (line->len && !line->bad) rlhf__logf(c->log, RLHF_LOG_INFO, "%s", rlhf__buf_text(line));
    rlhf__buf_finish(line);
}

static void say_found(const struct rlhf__closing *c, const struct rlhf__verdict *v) {
    for (size_t i = 0; i < v->notes.n; i++) {
        const struct rlhf__run_note *n = &v->notes.all[i];
        if (n->level == RLHF__NOTE_INFO) continue;
        rlhf__logf(c->log, RLHF_LOG_INFO, "found: %s%s%s", n->text,
                   n->change ? " What helps: " : "", n->change ? n->change : "");
    }
}

// ---- the same as an object ----

static void put_number(struct rlhf__buf *out, const char *name, double value) {
    char number[40];
    rlhf__buf_printf(out, ", \"%s\": %s", name, rlhf__format_double(value, 0, number));
}

static void say_object(const struct rlhf__closing *c, const struct rlhf__verdict *v) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    rlhf__buf_printf(&b, "\"kind\": \"%s\", \"verdict\": ", rlhf__verdict_kind_name(v->kind));
    rlhf__json_write_string(&b, v->title, strlen(v->title));
    if (v->headline.metric) {
        rlhf__buf_printf(&b, ", \"metric\": \"%s\"", v->headline.metric);
        put_number(&b, "first", v->first);
        put_number(&b, "last", v->last);
        put_number(&b, "best", v->best);
        rlhf__buf_printf(&b, ", \"best_phase\": %lld", (long long)v->best_phase);
    }
    rlhf__buf_puts(&b, ", \"found\": [");
    int n = 0;
    for (size_t i = 0; i < v->notes.n; i++)
        if (v->notes.all[i].level != RLHF__NOTE_INFO)
            rlhf__buf_printf(&b, "%s\"%s\"", n++ ? ", " : "", v->notes.all[i].id);
    rlhf__buf_puts(&b, "]");
    if (!b.bad) rlhf__log_event(c->log, "summary", rlhf__buf_text(&b));
    rlhf__buf_finish(&b);
}

static void say_lines(const struct rlhf__closing *c, const struct rlhf__verdict *v) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__put_verdict(v, &line);
    put_curve(c, v, &line);
    say_line(c, &line);
    put_held_out(c, &line);
    say_line(c, &line);
    put_parts(c, &line);
    say_line(c, &line);
    put_price(c, &line);
    say_line(c, &line);
    say_found(c, v);
}

void rlhf__closing_say(const struct rlhf__closing *c) {
    const struct rlhf__history h = {&c->history->series, &c->history->facts};
    struct rlhf__verdict v;
    struct rlhf__error unsaid;
    if (c->log->level > RLHF_LOG_INFO || !h.series->n) return;
    if (rlhf__verdict_make(&h, &v, &unsaid) != RLHF_OK) return; // the run must not fail for this
    if (c->log->json)
        say_object(c, &v);
    else
        say_lines(c, &v);
    rlhf__verdict_finish(&v);
}
