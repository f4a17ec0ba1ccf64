// group_end.c: see group_end.h.
#include "history/group_end.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- the end of one run ----

// The end value of a metric that is in the curves but not in the series.
static double end_of_curve(const struct rlhf__judged_run *r, const char *metric) {
    const struct rlhf__curve *c = rlhf__curves_find(&r->curves, metric);
    struct rlhf__series_set set = {0};
    double end = NAN;
    int bad = 0;
    for (int64_t i = 0; c && i < r->curves.range.n_points; i++) {
        const struct rlhf__curve_point *p = &c->point[i];
        if (p->n > 0)
            bad |= rlhf__series_set_put(&set, metric, i, p->sum / (double)p->n, NULL) != RLHF_OK;
    }
    if (c && !bad) end = rlhf__trend_ends(rlhf__series_of(&set, metric)).last;
    rlhf__series_set_finish(&set);
    return end;
}

static double end_of(const struct rlhf__judged_run *r, const char *metric) {
    const struct rlhf__series *s = rlhf__series_of(&r->series, metric);
    if (strcmp(metric, RLHF__END_PHASES) == 0)
        return r->curves.last < 0 ? 0 : (double)r->curves.last;
    if (strcmp(metric, RLHF__END_SECONDS) == 0) {
        const struct rlhf__curve *time = rlhf__curves_find(&r->curves, "time/training");
        return time ? time->sum : NAN;
    }
    return s->n ? rlhf__trend_ends(s).last : end_of_curve(r, metric);
}

// ---- the spread of a run's rows ----

// Returns the mean number of rows in a phase: the number of sampled sequences, divided by the
// number of phases.
static double rows_of(const struct rlhf__judged_run *r) {
    const struct rlhf__curve *c = rlhf__curves_find(&r->curves, "episode");
    const double phases = (double)(r->curves.last - r->curves.first);
    if (!c || !c->n) return NAN;
    return phases > 0 ? (c->last - c->first) / phases : c->first;
}

// Returns the variance of a distribution in spread.jsonl, which has the standard deviation or the
// counts of the values.
static double variance_of(const json_t *d) {
    const json_t *counts = json_object_get(d, "n"), *deviation = json_object_get(d, "s");
    double sum = 0, squares = 0, rows = 0;
    if (json_is_number(deviation))
        return json_number_value(deviation) * json_number_value(deviation);
    for (size_t i = 0; i < json_array_size(counts); i++) {
        const json_t *pair = json_array_get(counts, i);
        const double v = json_number_value(json_array_get(pair, 0)),
                     n = json_number_value(json_array_get(pair, 1));
        rows += n;
        sum += n * v;
        squares += n * v * v;
    }
    if (!(rows > 0)) return NAN;
    return fmax(0, squares / rows - (sum / rows) * (sum / rows));
}

// Returns the mean of the variances in spread.jsonl of all phases whose number is above `after`.
static double spread_variance(const struct rlhf__judged_run *r, const char *of, int64_t after) {
    const json_t *x = json_object_get(r->spread, "x"),
                 *all = json_object_get(json_object_get(r->spread, "of"), of);
    double sum = 0;
    int64_t n = 0;
    for (size_t i = 0; i < json_array_size(x); i++) {
        const double v = json_integer_value(json_array_get(x, i)) > after
                             ? variance_of(json_array_get(all, i))
                             : NAN;
        if (!isfinite(v)) continue;
        sum += v;
        n++;
    }
    return n ? sum / (double)n : NAN;
}

static double mean_square(const struct rlhf__series *s, int64_t width) {
    double sum = 0;
    if (width < 1 || s->n < width) return NAN;
    for (int64_t i = s->n - width; i < s->n; i++)
        sum += s->value[i] * s->value[i];
    return sum / (double)width;
}

// The variance of the metric over the rows of the last `width` phases; NaN if the run did not
// record it.
static double row_variance(const struct rlhf__judged_run *r, const char *metric, double end,
                           int64_t width) {
    static const struct {
        const char *metric, *spread;
    } all[] = {{"objective/scores", "reward"},
               {"objective/kl", "kl"},
               {"completions/mean_length", "length"}};
    if (strcmp(metric, "objective/verifiable_correct_rate") == 0) return end * (1 - end);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(metric, all[i].metric) != 0) continue;
        const double v = spread_variance(r, all[i].spread, r->curves.last - width);
        if (isfinite(v) || i > 0) return v;
    }
    if (strcmp(metric, "objective/scores") == 0)
        return mean_square(rlhf__series_of(&r->series, "reward_std"), width);
    return NAN;
}

static double error_of_rows(const struct rlhf__judged_run *r, const char *metric, double end) {
    const int64_t width = rlhf__trend_ends(rlhf__series_of(&r->series, metric)).width;
    const double rows = rows_of(r) * (double)width;
    return rows > 0 ? sqrt(row_variance(r, metric, end, width) / rows) : NAN;
}

// ---- a group ----

static const json_t *seed_of(const struct rlhf__judged_run *r) {
    return json_object_get(json_object_get(r->files.config, "run"), "seed");
}

static int same_seed(const struct rlhf__judged_run *a, const struct rlhf__judged_run *b) {
    const json_t *x = seed_of(a), *y = seed_of(b);
    return x == y || (x && y && json_equal(x, y));
}

// 1 if no earlier run with this metric has the same seed as run i.
static int is_new_seed(const struct rlhf__judged_run *const *run, size_t i, const char *metric) {
    for (size_t k = 0; k < i; k++)
        if (isfinite(end_of(run[k], metric)) && same_seed(run[k], run[i])) return 0;
    return 1;
}

struct rlhf__group_end rlhf__group_end_of(const struct rlhf__judged_run *const *run, size_t n,
                                          const char *metric) {
    struct rlhf__group_end e = {.mean = 0, .low = NAN, .high = NAN, .error = NAN};
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = end_of(run[i], metric);
        if (!isfinite(v)) continue;
        e.low = fmin(e.low, v);
        e.high = fmax(e.high, v);
        e.mean += v;
        e.n++;
        e.seeds += is_new_seed(run, i, metric);
    }
    e.mean = e.n ? e.mean / (double)e.n : NAN;
    for (size_t i = 0; i < n; i++) {
        const double v = end_of(run[i], metric) - e.mean;
        squares += isfinite(v) ? v * v : 0;
    }
    if (e.seeds > 1)
        e.error = sqrt(squares / (double)(e.n - 1) / (double)e.n);
    else if (n == 1 && e.n == 1)
        e.error = error_of_rows(run[0], metric, e.mean);
    if (isfinite(e.error)) e.error_by = e.seeds > 1 ? RLHF__ERROR_SEEDS : RLHF__ERROR_ROWS;
    return e;
}

int rlhf__group_ends_apart(const struct rlhf__group_end *e, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (e[i].seeds < 2) return 0;
        for (size_t k = 0; k < i; k++)
            if (e[i].low <= e[k].high && e[k].low <= e[i].high) return 0;
    }
    return n > 1;
}
