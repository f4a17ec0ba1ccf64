// forecast.c: see forecast.h.
#include "scale/forecast.h"

#include "runs/table.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#define GAIN   1.3 // smallest speed-up at which twice the ranks help
#define WANTED 0.9 // efficiency

// ---- the parts of a phase ----

struct part {
    const char *name;
    size_t at;
};

#define C struct rlhf__scale_cost
static const struct part parts[] = {
    {"draw", offsetof(C, draw)},     {"reward", offsetof(C, reward)},
    {"passes", offsetof(C, passes)}, {"compute", offsetof(C, compute)},
    {"tree", offsetof(C, tree)},     {"reduce", offsetof(C, reduce)},
    {"step", offsetof(C, step)},     {"spread", offsetof(C, spread)},
    {"gather", offsetof(C, gather)}, {"other", offsetof(C, other)},
    {"hidden", offsetof(C, hidden)},
};
#undef C
enum { PARTS = sizeof parts / sizeof *parts };

static double part_of(const struct rlhf__scale_cost *c, size_t k) {
    return *(const double *)(const void *)((const char *)c + parts[k].at);
}

static struct rlhf__scale_layout layout(const struct rlhf__scale_figures *f,
                                        const struct rlhf__scale_question *q, double ranks) {
    return (struct rlhf__scale_layout){ranks, q->per_host, f->plan.rows * (q->grows ? ranks : 1)};
}

// The run is compared with one separate process per machine (or device). Returns the rows of a
// phase in such a process: all rows of the run or, if plan.rows counts the rows of one rank, the
// rows of all ranks that share the machine.
static double rows_alone(const struct rlhf__scale_figures *f, const struct rlhf__scale_question *q,
                         double ranks) {
    if (!q->grows) return f->plan.rows;
    return f->plan.rows * (f->machine.shared != 0 ? fmin(ranks, q->per_host) : 1);
}

// ---- one line ----

// Everything about one number of ranks.
struct line {
    struct rlhf__scale_layout layout;
    struct rlhf__scale_cost cost;
    double efficiency, rows_for;
    int refusal;
};

static struct line line_of(const struct rlhf__scale_figures *f,
                           const struct rlhf__scale_question *q, double ranks) {
    struct line x = {.layout = layout(f, q, ranks)};
    x.refusal = rlhf__scale_refuses(f, &x.layout);
    if (x.refusal != RLHF__SCALE_FITS) return x;
    x.cost = rlhf__scale_cost(f, &x.layout);
    x.efficiency = rlhf__scale_efficiency(f, &x.layout, rows_alone(f, q, ranks));
    x.rows_for = rlhf__scale_rows_for(f, ranks, q->per_host, WANTED);
    return x;
}

static void put_refusal(const struct rlhf__scale_figures *f, const struct line *x,
                        struct rlhf__buf *out) {
    if (x->refusal == RLHF__SCALE_SHARDS)
        rlhf__buf_printf(out, "parallel.shards is %.0f, which %.0f ranks do not divide",
                         f->plan.shards, x->layout.ranks);
    else
        rlhf__buf_printf(out, "a phase has %.0f group%s of rows, fewer than %.0f ranks",
                         floor(x->layout.rows / f->plan.group),
                         floor(x->layout.rows / f->plan.group) == 1 ? "" : "s", x->layout.ranks);
}

// ---- what was measured ----

// A number with a prefix of its unit: 1.25 G.
static void put_scaled(struct rlhf__buf *out, double x, const char *unit) {
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P"};
    size_t k = 0;
    for (; x >= 999.5 && k + 1 < sizeof prefix / sizeof *prefix; k++)
        x /= 1000;
    rlhf__buf_printf(out, "%.3g %s%s", x, prefix[k], unit);
}

// Seconds as milliseconds or microseconds.
static void put_short_time(struct rlhf__buf *out, double s) {
    rlhf__buf_printf(out, s >= 0.0009995 ? "%.3g ms" : "%.3g us",
                     s >= 0.0009995 ? s * 1e3 : s * 1e6);
}

static void put_sampling(const struct rlhf__scale_machine *m, struct rlhf__buf *out) {
    const struct rlhf__scale_curve *c = &m->draw;
    const double each = m->tokens / m->rows * m->decode_flops;
    if (c->n == 0) return;
    rlhf__buf_puts(out, "  sampling    ");
    for (uint32_t i = 0; i < c->n; i++) {
        if (i != 0 && i != c->n / 2 && i + 1 != c->n) continue;
        put_scaled(out, c->at[i].x * each / c->at[i].seconds, "FLOP/s");
        rlhf__buf_printf(out, " with %.0f row%s%s", c->at[i].x, c->at[i].x == 1 ? "" : "s",
                         i + 1 == c->n ? "\n" : ", ");
    }
}

static void put_run(const struct rlhf__scale_plan *p, int grows, struct rlhf__buf *out) {
    rlhf__buf_printf(out, "run           %.0f rows %s, %.0f minibatch%s in %.0f epoch%s, ", p->rows,
                     grows ? "a phase and rank" : "a phase", p->minibatches,
                     p->minibatches == 1 ? "" : "es", p->epochs, p->epochs == 1 ? "" : "s");
    put_scaled(out, p->parameters, "");
    rlhf__buf_puts(out, " parameters are trained");
    if (p->shards > 0) rlhf__buf_printf(out, ", %.0f shards", p->shards);
}

static void put_measured(const struct rlhf__scale_figures *f, const struct rlhf__scale_question *q,
                         struct rlhf__buf *out) {
    const struct rlhf__scale_machine *m = &f->machine;
    put_run(&f->plan, q->grows, out);
    rlhf__buf_printf(out, "\nmachine       %s\n  measured    with %.0f rows of %.0f tokens\n",
                     m->compute, m->rows, m->tokens / m->rows);
    rlhf__buf_puts(out, "  learning    ");
    put_scaled(out, m->products, "FLOP/s\n");
    put_sampling(m, out);
    rlhf__buf_puts(out, "  step        ");
    put_short_time(out, m->step);
    rlhf__buf_puts(out, ", and ");
    put_short_time(out, m->pack);
    rlhf__buf_puts(out, " to pack the weights\n  copies      ");
    put_scaled(out, m->copy, "B/s\n");
    rlhf__buf_puts(out, "network       ");
    put_scaled(out, 8 * f->line.bytes, "bit/s each way, ");
    put_short_time(out, f->line.latency);
    if (f->line.detail[0]) rlhf__buf_printf(out, ", %s", f->line.detail);
    if (q->per_host > 1) rlhf__buf_printf(out, "; %.0f ranks a machine", q->per_host);
    rlhf__buf_puts(out, "\n\n");
}

// ---- the table ----

// A part gets a column, unless the column would have 0.000 on all lines.
static uint32_t shown_parts(const struct line *x, size_t n) {
    uint32_t shown = 0;
    for (size_t k = 0; k < PARTS; k++)
        for (size_t i = 0; i < n; i++)
            if (part_of(&x[i].cost, k) > 0.0005) shown |= 1u << k;
    return shown;
}

static void put_titles(struct rlhf__text_table *t, uint32_t shown) {
    static const char *const last[] = {"phase s", "rows/s", "efficiency", "GiB/rank",
                                       "rows for 0.9"};
    t->column[t->n_columns++] = (struct rlhf__text_table_column){"ranks", 1, 0};
    for (size_t k = 0; k < PARTS; k++)
        if (shown & 1u << k)
            t->column[t->n_columns++] = (struct rlhf__text_table_column){parts[k].name, 1, 0};
    for (size_t k = 0; k < sizeof last / sizeof *last; k++)
        t->column[t->n_columns++] = (struct rlhf__text_table_column){last[k], 1, 0};
}

// Three significant digits, without an exponent.
static void cell(struct rlhf__text_table *t, double x) {
    char text[64];
    const int digits = x > 0 ? (int)floor(log10(x)) : 0;
    const int after = digits >= 2 ? 0 : 2 - digits;
    snprintf(text, sizeof text, "%.*f", after > 3 ? 3 : after, x);
    rlhf__text_table_cell(t, text);
}

static void put_line(struct rlhf__text_table *t, uint32_t shown, const struct line *x) {
    char text[64];
    snprintf(text, sizeof text, "%.0f", x->layout.ranks);
    rlhf__text_table_cell(t, text);
    for (size_t k = 0; k < PARTS; k++)
        if (shown & 1u << k) cell(t, part_of(&x->cost, k));
    cell(t, x->cost.total);
    cell(t, x->cost.rows_per_s);
    snprintf(text, sizeof text, "%.2f", x->efficiency);
    rlhf__text_table_cell(t, text);
    cell(t, x->cost.memory / 1073741824);
    snprintf(text, sizeof text, "%.0f", x->rows_for);
    rlhf__text_table_cell(t, x->layout.ranks > 1 && x->rows_for > 0 ? text : "-");
}

static void put_stops(const struct rlhf__scale_figures *f, const struct rlhf__scale_question *q,
                      struct rlhf__buf *out) {
    int few;
    if (q->grows) return;
    const double rows = f->plan.rows;
    const double n = rlhf__scale_stops(f, q->per_host, rows, GAIN, RLHF__SCALE_MOST_RANKS, &few);
    rlhf__buf_printf(out, "With %.0f rows a phase, ", rows);
    if (n == 0)
        rlhf__buf_printf(
            out, "each doubling up to %d ranks gives at least %.1f times the rows a second.\n",
            RLHF__SCALE_MOST_RANKS, GAIN);
    else if (few)
        rlhf__buf_printf(out,
                         "each doubling up to %.0f ranks gives at least %.1f times the rows a "
                         "second; there are too few groups of rows for more.\n",
                         n, GAIN);
    else
        rlhf__buf_printf(out, "%.0f ranks give less than %.1f times the rows a second of %.0f.\n",
                         2 * n, GAIN, n);
}

void rlhf__scale_table(const struct rlhf__scale_figures *f, const struct rlhf__scale_question *q,
                       struct rlhf__buf *out) {
    struct line x[RLHF__SCALE_RANKS];
    struct rlhf__text_table t = {.n_columns = 0};
    int said = 0;
    for (uint32_t i = 0; i < q->n; i++)
        x[i] = line_of(f, q, q->ranks[i]);
    put_measured(f, q, out);
    const uint32_t shown = shown_parts(x, q->n);
    put_titles(&t, shown);
    for (uint32_t i = 0; i < q->n; i++)
        if (x[i].refusal == RLHF__SCALE_FITS) put_line(&t, shown, &x[i]);
    if (t.n_cells) rlhf__text_table_put(&t, 0, out);
    if (t.text.bad) out->bad = 1;
    rlhf__text_table_finish(&t);
    for (uint32_t i = 0; i < q->n; i++) {
        if (x[i].refusal == RLHF__SCALE_FITS) continue;
        if (!said++) rlhf__buf_putc(out, '\n');
        rlhf__buf_printf(out, "%.0f rank%s: ", x[i].layout.ranks, x[i].layout.ranks > 1 ? "s" : "");
        put_refusal(f, &x[i], out);
        rlhf__buf_puts(out, "\n");
        if (!q->chosen) break;
    }
    if (!said && !q->grows) rlhf__buf_putc(out, '\n');
    put_stops(f, q, out);
}

// ---- JSON ----

static json_t *line_json(const struct rlhf__scale_figures *f, const struct line *x) {
    struct rlhf__buf why = RLHF__BUF_INIT;
    json_t *seconds = json_object();
    if (x->refusal != RLHF__SCALE_FITS) {
        put_refusal(f, x, &why);
        json_t *refused = json_pack("{s:I, s:s}", "ranks", (json_int_t)x->layout.ranks, "refused",
                                    rlhf__buf_text(&why));
        rlhf__buf_free(&why);
        json_decref(seconds);
        return refused;
    }
    for (size_t k = 0; k < PARTS; k++)
        json_object_set_new(seconds, parts[k].name, json_real(part_of(&x->cost, k)));
    return json_pack("{s:I, s:I, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "ranks",
                     (json_int_t)x->layout.ranks, "rows", (json_int_t)x->layout.rows, "seconds",
                     seconds, "phase_seconds", x->cost.total, "rows_per_second", x->cost.rows_per_s,
                     "efficiency", x->efficiency, "imbalance", x->cost.imbalance, "memory_bytes",
                     x->cost.memory, "sent_bytes", x->cost.sent, "rows_for_0.9",
                     x->rows_for > 0 ? json_integer((json_int_t)x->rows_for) : json_null());
}

json_t *rlhf__scale_json(const struct rlhf__scale_figures *f,
                         const struct rlhf__scale_question *q) {
    json_t *list = json_array();
    int few;
    for (uint32_t i = 0; i < q->n; i++) {
        const struct line x = line_of(f, q, q->ranks[i]);
        json_array_append_new(list, line_json(f, &x));
    }
    const double n =
        rlhf__scale_stops(f, q->per_host, f->plan.rows, GAIN, RLHF__SCALE_MOST_RANKS, &few);
    return json_pack("{s:o, s:I, s:b, s:o, s:o, s:b}", "figures", rlhf__scale_figures_json(f),
                     "ranks_per_host", (json_int_t)q->per_host, "rows_per_rank", q->grows,
                     "forecast", list, "stops_helping_at",
                     n > 0 ? json_integer((json_int_t)n) : json_null(), "too_few_rows", few);
}
