// compare.c: `rlhf-host runs compare`: shows which settings differ between runs, and the results of
// the runs.
#include "base/json.h"
#include "base/printable.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "history/group_end.h"
#include "runs/columns.h"
#include "runs/compared.h"
#include "runs/name_range.h"
#include "runs/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GROUPS_MAX = 26, CELL_COLUMNS = 44 };

#define RANGE (1u << 31)

struct options {
    struct rlhf__flag_list metrics;
    int32_t json;
};

static const char *letter(size_t group) {
    static const char letters[][2] = {"A", "B", "C", "D", "E", "F", "G", "H", "I",
                                      "J", "K", "L", "M", "N", "O", "P", "Q", "R",
                                      "S", "T", "U", "V", "W", "X", "Y", "Z"};
    return letters[group % GROUPS_MAX];
}

// ---- one row for each metric ----

struct ends {
    struct rlhf__group_end of[GROUPS_MAX];
    size_t n, known; // groups; those that have the metric
};

static struct ends ends_of(const struct rlhf__compared *c, const char *metric) {
    struct ends e = {.n = json_array_size(c->groups)};
    for (size_t g = 0; g < e.n; g++) {
        size_t n;
        const struct rlhf__judged_run **runs = rlhf__compared_group(c, g, &n);
        if (!runs) continue;
        e.of[g] = rlhf__group_end_of(runs, n, metric);
        e.known += e.of[g].n > 0;
        free(runs);
    }
    return e;
}

static int is_listed(const json_t *names, const char *name) {
    for (size_t i = 0; i < json_array_size(names); i++)
        if (strcmp(json_string_value(json_array_get(names, i)), name) == 0) return 1;
    return 0;
}

// The metrics of the table; the headline first. Texts are borrowed.
static json_t *metrics_of(const struct rlhf__compared *c, const struct rlhf__flag_list *more) {
    static const char *const price[] = {"objective/kl", "objective/entropy_per_token",
                                        "completions/mean_length", "completions/distinct_3"};
    const struct rlhf__witness *w;
    json_t *all = json_object(), *names = json_array();
    const char *key;
    json_t *v;
    if (c->headline) json_object_set_new(all, c->headline, json_true());
    for (size_t i = 0; (w = rlhf__witness_at(i)); i++)
        json_object_set_new(all, w->metric, json_true());
    for (size_t i = 0; i < sizeof price / sizeof *price; i++)
        json_object_set_new(all, price[i], json_true());
    json_object_foreach(all, key, v) {
        if (ends_of(c, key).known) json_array_append_new(names, json_string(key));
    }
    for (size_t i = 0; i < more->n; i++)
        if (!is_listed(names, more->item[i]))
            json_array_append_new(names, rlhf__json_text(more->item[i]));
    static const char *const effort[] = {RLHF__END_PHASES, RLHF__END_SECONDS};
    for (size_t i = 0; i < 2; i++)
        if (!is_listed(names, effort[i])) json_array_append_new(names, json_string(effort[i]));
    json_decref(all);
    return names;
}

// ---- as a table ----

// Append a result such as "0.946 ± 0.018 (0.925 .. 0.983)". With `brief`, leaves out the error if
// there is a range. Returns a mask of what was written: for an error, bit 1 << its kind (enum
// rlhf__end_error); for a range, RANGE.
static uint32_t put_end(struct rlhf__buf *out, const struct rlhf__group_end *e, int brief) {
    char a[40], b[40];
    if (!e->n) return 0;
    rlhf__buf_puts(out, rlhf__figure(e->mean, a));
    if (!(e->low < e->high) && e->error_by != RLHF__ERROR_ROWS) return 0; // all values are the same
    const int ranges = e->low < e->high, error = e->error_by && !(brief && ranges);
    if (error) rlhf__buf_printf(out, " ± %s", rlhf__figure(e->error, a));
    if (ranges)
        rlhf__buf_printf(out, " (%s .. %s)", rlhf__figure(e->low, a), rlhf__figure(e->high, b));
    return (error ? 1u << e->error_by : 0) | (ranges ? RANGE : 0);
}

static void put_clipped_cell(struct rlhf__text_table *t, struct rlhf__buf *text) {
    struct rlhf__buf shown = RLHF__BUF_INIT, cut = RLHF__BUF_INIT;
    rlhf__put_printable(&shown, rlhf__buf_text(text), text->len, "");
    const rlhf_str s = {.ptr = rlhf__buf_text(&shown), .len = (uint32_t)shown.len};
    rlhf__put_clipped(&cut, s, CELL_COLUMNS);
    rlhf__text_table_take(t, &cut);
    rlhf__buf_finish(&cut);
    rlhf__buf_finish(&shown);
    rlhf__buf_clear(text);
}

static void put_settings(struct rlhf__text_table *t, const struct rlhf__compared *c) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    const size_t n = json_array_size(c->groups);
    rlhf__text_table_cell(t, "runs");
    for (size_t g = 0; g < n; g++) {
        rlhf__compared_put_names(c, g, &text);
        put_clipped_cell(t, &text);
    }
    rlhf__text_table_cell(t, "");
    for (size_t i = 0; i < json_array_size(c->differ); i++) {
        const json_t *one = json_array_get(c->differ, i), *values = json_object_get(one, "values");
        rlhf__buf_puts(&text, json_string_value(json_object_get(one, "key")));
        put_clipped_cell(t, &text);
        for (size_t g = 0; g < n; g++) {
            rlhf__buf_puts(&text, json_string_value(json_array_get(values, g)));
            put_clipped_cell(t, &text);
        }
        rlhf__text_table_cell(t, "");
    }
    rlhf__buf_finish(&text);
}

// Returns the masks of put_end for all values, combined.
static uint32_t put_metrics(struct rlhf__text_table *t, const struct rlhf__compared *c,
                            const json_t *metrics, int brief) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    uint32_t kinds = 0;
    for (size_t i = 0; i < json_array_size(metrics); i++) {
        const char *metric = json_string_value(json_array_get(metrics, i));
        const struct ends e = ends_of(c, metric);
        rlhf__text_table_cell(t, metric);
        for (size_t g = 0; g < e.n; g++) {
            kinds |= put_end(&text, &e.of[g], brief);
            rlhf__text_table_take(t, &text);
        }
        rlhf__text_table_cell(t, rlhf__group_ends_apart(e.of, e.n) ? "apart" : "");
    }
    rlhf__buf_finish(&text);
    return kinds;
}

static void put_text(struct rlhf__buf *out, const char *text, const char *end, int width) {
    struct rlhf__buf shown = RLHF__BUF_INIT;
    if (!text || !*text) return;
    rlhf__put_printable(&shown, text, strlen(text), "");
    rlhf__buf_puts(&shown, end);
    const rlhf_str s = {.ptr = rlhf__buf_text(&shown), .len = (uint32_t)shown.len};
    rlhf__put_wrapped(out, s, width, 0, 0);
    rlhf__buf_putc(out, '\n');
    rlhf__buf_finish(&shown);
}

static int any_range(const struct rlhf__compared *c) {
    for (size_t g = 0; g < json_array_size(c->groups); g++)
        if (json_array_size(json_object_get(json_array_get(c->groups, g), "runs")) > 1) return 1;
    return 0;
}

static void put_legend(struct rlhf__buf *out, uint32_t kinds, const struct rlhf__compared *c,
                       int width) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    const int seeds = (kinds >> RLHF__ERROR_SEEDS) & 1, rows = (kinds >> RLHF__ERROR_ROWS) & 1;
    rlhf__buf_puts(&text, "Values are means of the last tenth of the phases");
    if (seeds || rows) rlhf__buf_puts(&text, " ± their standard errors ");
    if (seeds) rlhf__buf_puts(&text, "over the runs");
    if (rows)
        rlhf__buf_printf(&text, "%sover the rows of those phases%s",
                         seeds ? ", of a single run " : "", seeds ? "" : ", taken as independent");
    if (kinds & RANGE) rlhf__buf_puts(&text, " (lowest .. highest run)");
    if (any_range(c) && json_array_size(c->groups) > 1)
        rlhf__buf_puts(&text, "; apart: the ranges do not overlap");
    put_text(out, rlhf__buf_text(&text), ".", width);
    rlhf__buf_finish(&text);
}

// Append the table and return 1. If the table is wider than `width` (0: no limit), append nothing
// and return 0.
static int put_table(const struct rlhf__compared *c, const json_t *metrics, int brief, int width,
                     struct rlhf__buf *out, uint32_t *kinds) {
    const size_t n = json_array_size(c->groups), before = out->len;
    struct rlhf__text_table t = {.n_columns = n + 2};
    t.column[0].title = t.column[n + 1].title = "";
    for (size_t g = 0; g < n; g++)
        t.column[g + 1].title = letter(g);
    put_settings(&t, c);
    *kinds = put_metrics(&t, c, metrics, brief);
    const int whole = rlhf__text_table_put(&t, width, out) == t.n_columns;
    rlhf__text_table_finish(&t);
    if (!whole) out->len = before;
    return whole;
}

static rlhf_status print_table(const struct rlhf__compared *c, const json_t *metrics,
                               struct rlhf__error *err) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    const int width = rlhf__terminal_width(STDOUT_FILENO, 0);
    uint32_t kinds;
    if (!put_table(c, metrics, 0, width, &out, &kinds) &&
        !put_table(c, metrics, 1, width, &out, &kinds))
        put_table(c, metrics, 1, 0, &out, &kinds);
    put_text(&out, json_string_value(json_array_get(c->summary, 0)), ".", width);
    put_text(&out, json_string_value(json_array_get(c->summary, 1)), "", width);
    put_legend(&out, kinds, c, width);
    const rlhf_status st = rlhf__buf_ok(&out, err);
    if (st == RLHF_OK) fputs(rlhf__buf_text(&out), stdout);
    rlhf__buf_finish(&out);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

// ---- as an object ----

static json_t *number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *end_object(const struct rlhf__group_end *e) {
    static const char *const by[] = {NULL, "runs", "rows"};
    return json_pack("{so,so,so,so,ss?,sI}", "mean", number(e->mean), "low", number(e->low), "high",
                     number(e->high), "standard_error", number(e->error), "standard_error_over",
                     by[e->error_by], "runs", (json_int_t)e->n);
}

static rlhf_status print_object(const struct rlhf__compared *c, const json_t *metrics,
                                struct rlhf__error *err) {
    json_t *groups = json_array(), *rows = json_array();
    for (size_t g = 0; g < json_array_size(c->groups); g++) {
        const json_t *members = json_object_get(json_array_get(c->groups, g), "runs");
        json_t *names = json_array();
        for (size_t i = 0; i < json_array_size(members); i++) {
            const size_t at = (size_t)json_integer_value(json_array_get(members, i));
            json_array_append_new(names, rlhf__json_text(c->runs[at].files.name));
        }
        json_array_append_new(groups, json_pack("{ss,so}", "label", letter(g), "runs", names));
    }
    for (size_t i = 0; i < json_array_size(metrics); i++) {
        const char *metric = json_string_value(json_array_get(metrics, i));
        const struct ends e = ends_of(c, metric);
        json_t *values = json_array();
        for (size_t g = 0; g < e.n; g++)
            json_array_append_new(values, end_object(&e.of[g]));
        json_array_append_new(rows, json_pack("{ss,so,sb}", "metric", metric, "values", values,
                                              "apart", rlhf__group_ends_apart(e.of, e.n)));
    }
    return rlhf__print_json_new(json_pack("{so,sO,so,sO}", "groups", groups, "differ", c->differ,
                                          "metrics", rows, "summary", c->summary),
                                err);
}

// ---- the command ----

// A metric that the user asked for must exist in at least one run.
static rlhf_status check_metrics(const struct rlhf__compared *c,
                                 const struct rlhf__flag_list *metrics, struct rlhf__error *err) {
    for (size_t i = 0; i < metrics->n; i++)
        if (!ends_of(c, metrics->item[i]).known)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "runs compare: none of the runs has the metric \"%s\"",
                              metrics->item[i]);
    return RLHF_OK;
}

static rlhf_status compare(const struct options *o, const struct rlhf__flag_list *paths,
                           struct rlhf__error *err) {
    struct rlhf__compared c = {0};
    json_t *metrics = NULL;
    rlhf_status st = rlhf__compared_read(paths->item, paths->n, &c, err);
    const size_t n = json_array_size(c.groups);
    if (st == RLHF_OK && n > GROUPS_MAX)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "runs compare: these runs have %zu different settings; at most %d can be "
                        "compared",
                        n, GROUPS_MAX);
    if (st == RLHF_OK) st = rlhf__compared_judge(&c, letter, err);
    if (st == RLHF_OK) st = check_metrics(&c, &o->metrics, err);
    if (st == RLHF_OK) metrics = metrics_of(&c, &o->metrics);
    if (st == RLHF_OK)
        st = o->json ? print_object(&c, metrics, err) : print_table(&c, metrics, err);
    json_decref(metrics);
    rlhf__compared_finish(&c);
    return st;
}

int rlhf__runs_compare(const struct rlhf__env *env, int argc, char **argv) {
    static const struct rlhf__flag flags[] = {
        RLHF__FLAG_SW(struct options, "--json", json, "print one JSON object"),
        RLHF__FLAG_L(struct options, "--metric", metrics, "NAME",
                     "a further metric of the table; repeatable"),
    };
    struct options o = {0};
    struct rlhf__flag_list rest = {0};
    struct rlhf__error err = {0, ""};
    rlhf_status st = rlhf__flags_parse(flags, 2, argc, argv, &o, &rest, &err);
    if (st == RLHF_OK && rest.n < 2)
        st = rlhf__fail(&err, RLHF_E_INVALID,
                        "runs compare: give at least two runs; of one, runs show RUN says what "
                        "happened");
    if (st == RLHF_OK) st = compare(&o, &rest, &err);
    free(o.metrics.item);
    free(rest.item);
    return rlhf__cmd_end(env, st, &err);
}
