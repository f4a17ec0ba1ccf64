// trend.c: see trend.h.
#include "verdict/trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double mean(const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n;
}

struct rlhf__first_last rlhf__trend_ends(const struct rlhf__series *s) {
    if (s->n == 0) return (struct rlhf__first_last){NAN, NAN, 0};
    int64_t width = s->n / 10;
    if (width < 1) width = 1;
    if (width > RLHF__TREND_MOST) width = RLHF__TREND_MOST;
    return (struct rlhf__first_last){s->value[0], mean(s->value + s->n - width, width), width};
}

// ---- median ----

static void swap(double *a, double *b) {
    const double x = *a;
    *a = *b;
    *b = x;
}

// Reorder v so that v[k] is the k-th smallest value, with the smaller values before it and the
// larger values after it.
static void select_kth(double *v, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const double pivot = v[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j) swap(&v[i++], &v[j--]);
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return;
    }
}

// Returns the median, and reorders v.
static double median(double *v, int64_t n) {
    const int64_t k = n / 2;
    if (n == 0) return 0;
    select_kth(v, n, k);
    if (n % 2) return v[k];
    double below = v[0];
    for (int64_t i = 1; i < k; i++)
        below = v[i] > below ? v[i] : below;
    return (below + v[k]) / 2;
}

double rlhf__trend_noise(const struct rlhf__series *s) {
    if (s->n < 2) return 0;
    double *step = malloc((size_t)s->n * sizeof *step), squares = 0;
    if (!step) return INFINITY;
    for (int64_t i = 0; i + 1 < s->n; i++)
        step[i] = fabs(s->value[i + 1] - s->value[i]);
    // The first step may be the whole effect of training, so it counts as noise only if it is the
    // only step.
    for (int64_t i = s->n > 2; i + 1 < s->n; i++)
        squares += step[i] * step[i];
    const double middle = median(step, s->n - 1);
    free(step);
    return middle > 0 ? 1.05 * middle : sqrt(squares / (double)(s->n > 2 ? s->n - 2 : 1) / 2);
}

double rlhf__trend_median(const struct rlhf__series *s) {
    double *copy = s->n ? malloc((size_t)s->n * sizeof *copy) : NULL;
    if (!copy) return 0;
    memcpy(copy, s->value, (size_t)s->n * sizeof *copy);
    const double out = median(copy, s->n);
    free(copy);
    return out;
}

// ---- moves and limits ----

int rlhf__trend_moved_by(const struct rlhf__series *s, double noise) {
    if (s->n < RLHF__TREND_FEWEST) return 0;
    const struct rlhf__first_last e = rlhf__trend_ends(s);
    const double bar = 3 * noise * sqrt(1 + 1 / (double)e.width);
    return (e.last - e.first > bar) - (e.first - e.last > bar);
}

int rlhf__trend_moved(const struct rlhf__series *s) {
    return rlhf__trend_moved_by(s, rlhf__trend_noise(s));
}

// Finds the longest run of values at the end of the series that are all above the limit (`sign` is
// 1) or all below it (`sign` is -1).
static struct rlhf__held held(const struct rlhf__series *s, double sign, double limit) {
    int64_t i = s->n;
    while (i > 0 && sign * s->value[i - 1] > sign * limit)
        i--;
    if (i == s->n) return (struct rlhf__held){0, 0};
    return (struct rlhf__held){s->phase[i], s->n - i};
}

struct rlhf__held rlhf__trend_above(const struct rlhf__series *s, double limit) {
    return held(s, 1, limit);
}

struct rlhf__held rlhf__trend_below(const struct rlhf__series *s, double limit) {
    return held(s, -1, limit);
}

double rlhf__trend_sum(const struct rlhf__series *s) {
    return s->n ? mean(s->value, s->n) * (double)s->n : 0;
}

double rlhf__trend_mean_of_first(const struct rlhf__series *s, int64_t n) {
    return s->n ? mean(s->value, n < s->n ? n : s->n) : 0;
}

double rlhf__trend_mean(const struct rlhf__series *s) { return s->n ? mean(s->value, s->n) : 0; }

double rlhf__trend_rms(const struct rlhf__series *s, int64_t n) {
    const int64_t most = n < 0 ? -n : n, used = most < s->n ? most : s->n;
    const double *v = n < 0 ? s->value + s->n - used : s->value;
    double squares = 0;
    for (int64_t i = 0; i < used; i++)
        squares += v[i] * v[i];
    return used ? sqrt(squares / (double)used) : 0;
}
