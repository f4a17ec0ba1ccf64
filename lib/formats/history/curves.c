// curves.c: see curves.h.
#include "history/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX  400    // points of a curve; twice as many if each point is one phase
#define POINTS_MIN  60     // the least number of points, however many metrics there are
#define BUDGET      150000 // maximal count of numbers in all curves together
#define METRICS_MAX 2000   // metrics of a run
#define NAME_BYTES  200    // bytes of a metric's name

// ---- the range ----

static int64_t count_metrics(const json_t *row) {
    const char *name;
    json_t *v;
    int64_t n = 0;
    json_object_foreach((json_t *)(uintptr_t)row, name, v) n += json_is_number(v) != 0;
    return n > METRICS_MAX ? METRICS_MAX : n;
}

void rlhf__curve_range_add(struct rlhf__curve_range *range, struct rlhf__run_files *run) {
    json_t *first, *last;
    rlhf__run_lines_ends(run, "metrics.jsonl", &first, &last);
    if (first && last) {
        const int64_t a = rlhf__run_row_phase(first), z = rlhf__run_row_phase(last);
        const int none = range->last < range->first;
        const int64_t m = count_metrics(first), n = count_metrics(last);
        if (none || a < range->first) range->first = a;
        if (none || z > range->last) range->last = z;
        range->n_metrics += m > n ? m : n;
    }
    json_decref(first);
    json_decref(last);
}

void rlhf__curve_range_divide(struct rlhf__curve_range *range) {
    const int64_t phases = range->last - range->first + 1;
    int64_t points = BUDGET / (3 * (range->n_metrics > 0 ? range->n_metrics : 1));
    if (points > POINTS_MAX) points = POINTS_MAX;
    if (points < POINTS_MIN) points = POINTS_MIN;
    range->exact = phases <= 2 * points;
    range->n_points = phases < 1 ? 0 : range->exact ? phases : points;
}

static int64_t bucket_of(const struct rlhf__curve_range *r, int64_t phase) {
    if (r->exact) return phase - r->first;
    const double share = (double)(phase - r->first) / (double)(r->last - r->first + 1);
    const int64_t at = (int64_t)(share * (double)r->n_points);
    return at < r->n_points ? at : r->n_points - 1;
}

// ---- curves ----

void rlhf__curves_finish(struct rlhf__curves *c) {
    for (size_t i = 0; i < c->n; i++) {
        free(c->all[i].name);
        free(c->all[i].point);
    }
    free(c->all);
    *c = (struct rlhf__curves){0};
}

const struct rlhf__curve *rlhf__curves_find(const struct rlhf__curves *c, const char *name) {
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->all[i].name, name) == 0) return &c->all[i];
    return NULL;
}

static struct rlhf__curve *append(struct rlhf__curves *c, const char *name) {
    if (!c->all || c->n == c->cap) {
        const size_t cap = c->cap ? 2 * c->cap : 64;
        struct rlhf__curve *all = realloc(c->all, cap * sizeof *all);
        if (!all) return NULL;
        c->all = all;
        c->cap = cap;
    }
    struct rlhf__curve *one = &c->all[c->n];
    *one = (struct rlhf__curve){.name = strdup(name),
                                .point = calloc((size_t)c->range.n_points, sizeof *one->point)};
    if (one->name && one->point) {
        c->n++;
        return one;
    }
    free(one->name);
    free(one->point);
    return NULL;
}

static void put(const struct rlhf__curve_range *r, struct rlhf__curve *one, int64_t phase,
                double v) {
    struct rlhf__curve_point *p = &one->point[bucket_of(r, phase)];
    if (!p->n || v < p->lo) p->lo = v;
    if (!p->n || v > p->hi) p->hi = v;
    p->sum += v;
    p->last = phase;
    p->n++;
    if (!one->n++) one->first = v;
    one->last = v;
    one->sum += v;
}

struct reading {
    struct rlhf__curves *c;
    json_t *at;   // {name: index of its curve}
    size_t guess; // the expected next curve: every line has the same order
    int64_t dropped;
};

// Finds the curve with this name. Uses a hash table, because a line may have any number of names.
static struct rlhf__curve *find(struct reading *r, const char *name) {
    struct rlhf__curves *c = r->c;
    if (r->guess < c->n && strcmp(c->all[r->guess].name, name) == 0) return &c->all[r->guess++];
    const json_t *at = json_object_get(r->at, name);
    if (!at) return NULL;
    r->guess = (size_t)json_integer_value(at) + 1;
    return &c->all[r->guess - 1];
}

static rlhf_status put_metric(struct reading *r, const char *name, int64_t phase, double v,
                              struct rlhf__error *err) {
    struct rlhf__curves *c = r->c;
    struct rlhf__curve *one = find(r, name);
    if (!one && (c->n == METRICS_MAX || strlen(name) > NAME_BYTES)) {
        r->dropped++;
        return RLHF_OK;
    }
    if (!one && (one = append(c, name)) != NULL) {
        r->guess = c->n;
        if (json_object_set_new_nocheck(r->at, name, json_integer((json_int_t)c->n - 1)) != 0)
            one = NULL;
    }
    if (!one) return RLHF__NOMEM(err, "out of memory for curves");
    put(&c->range, one, phase, v);
    return RLHF_OK;
}

static rlhf_status put_row(struct reading *r, const json_t *row, int64_t phase,
                           struct rlhf__error *err) {
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)row, name, v) {
        if (!json_is_number(v) || strcmp(name, "phase") == 0) continue;
        if (isfinite(json_number_value(v)))
            RLHF_TRY(put_metric(r, name, phase, json_number_value(v), err));
    }
    return RLHF_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct rlhf__curve *)a)->name, ((const struct rlhf__curve *)b)->name);
}

static rlhf_status read_rows(struct rlhf__run_lines *l, struct reading *r,
                             struct rlhf__series_set *series, struct rlhf__error *err) {
    struct rlhf__curves *c = r->c;
    int64_t before = -1, out_of_order = 0;
    while (rlhf__run_lines_next(l)) {
        if (l->phase > c->range.last && l->phase > before)
            continue; // the program wrote this line after the range was read
        if (l->phase <= before || l->phase < c->range.first) {
            out_of_order++;
            continue;
        }
        json_t *row = rlhf__run_lines_row(l);
        if (!row) continue;
        before = l->phase;
        if (c->first < 0) c->first = l->phase;
        c->last = l->phase;
        RLHF_TRY(put_row(r, row, l->phase, err));
        RLHF_TRY(rlhf__series_set_row(series, row, l->phase, err));
    }
    if (out_of_order)
        rlhf__run_files_trouble(l->run, "%s: %lld line%s out of order, skipped", l->name,
                                (long long)out_of_order, out_of_order == 1 ? "" : "s");
    if (r->dropped)
        rlhf__run_files_trouble(l->run,
                                "%s: metrics beyond %d, or with a name longer than %d "
                                "bytes, were left out",
                                l->name, METRICS_MAX, NAME_BYTES);
    return RLHF_OK;
}

rlhf_status rlhf__curves_read(struct rlhf__run_files *run, const struct rlhf__curve_range *range,
                              struct rlhf__curves *out, struct rlhf__series_set *series,
                              struct rlhf__error *err) {
    struct rlhf__run_lines l;
    struct reading r = {.c = out, .at = json_object()};
    *out = (struct rlhf__curves){.range = *range, .first = -1, .last = -1};
    rlhf_status st = rlhf__run_lines_open(run, "metrics.jsonl", &l, err);
    if (st == RLHF_OK && !r.at) st = RLHF__NOMEM(err, "out of memory for curves");
    if (st == RLHF_OK) st = read_rows(&l, &r, series, err);
    json_decref(r.at);
    rlhf__run_lines_close(&l);
    if (out->n) qsort(out->all, out->n, sizeof *out->all, by_name);
    return st;
}
