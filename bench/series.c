// series.c: see series.h.
#include "series.h"

#include <stdlib.h>
#include <string.h>

void series_add(struct series *s, double seconds) {
    if (s->n < SERIES_MOST) s->at[s->n++] = seconds;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double series_least(const struct series *s) {
    double least = s->n > 0 ? s->at[0] : 0;
    for (int i = 1; i < s->n; i++)
        if (s->at[i] < least) least = s->at[i];
    return least;
}

double series_median(const struct series *s) {
    if (s->n == 0) return 0;
    double sorted[SERIES_MOST];
    memcpy(sorted, s->at, (size_t)s->n * sizeof *sorted);
    qsort(sorted, (size_t)s->n, sizeof *sorted, by_size);
    return (sorted[(s->n - 1) / 2] + sorted[s->n / 2]) / 2;
}
