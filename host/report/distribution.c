// distribution.c: see distribution.h.
#include "report/distribution.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Count how often each of the sorted values occurs. Returns 0 if there are too many distinct
// values.
static int32_t count_values(const double *x, size_t n, struct rlhf__distribution *out) {
    int32_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (k > 0 && x[i] == out->value[k - 1]) {
            out->count[k - 1]++;
            continue;
        }
        if (k == RLHF__DISTRIBUTION_FEW) return 0;
        out->value[k] = x[i];
        out->count[k++] = 1;
    }
    return k;
}

void rlhf__distribution_of(double *x, size_t n, struct rlhf__distribution *out) {
    enum { Q = RLHF__DISTRIBUTION_QUANTILES };
    double sum = 0, squares = 0;
    *out = (struct rlhf__distribution){0};
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            sum += x[i];
            x[out->n++] = x[i];
        }
    if (out->n == 0) return;
    out->mean = sum / (double)out->n;
    for (size_t i = 0; i < out->n; i++)
        squares += (x[i] - out->mean) * (x[i] - out->mean);
    out->deviation = sqrt(squares / (double)out->n);
    qsort(x, out->n, sizeof *x, compare);
    out->counted = count_values(x, out->n, out);
    for (size_t i = 0; !out->counted && i <= Q; i++)
        out->value[i] = x[(i * (out->n - 1) + Q / 2) / Q]; // the nearest position
}

void rlhf__distribution_json(const struct rlhf__distribution *d, struct rlhf__buf *out) {
    if (d->n == 0) {
        rlhf__buf_puts(out, "null");
        return;
    }
    rlhf__buf_printf(out, "{\"m\": %.5g, ", d->mean);
    if (!d->counted) rlhf__buf_printf(out, "\"s\": %.5g, \"c\": %zu, ", d->deviation, d->n);
    rlhf__buf_puts(out, d->counted ? "\"n\": [" : "\"q\": [");
    const int32_t n = d->counted ? d->counted : RLHF__DISTRIBUTION_QUANTILES + 1;
    for (int32_t i = 0; i < n; i++) {
        if (i) rlhf__buf_puts(out, ", ");
        if (d->counted)
            rlhf__buf_printf(out, "[%.5g, %lld]", d->value[i], (long long)d->count[i]);
        else
            rlhf__buf_printf(out, "%.5g", d->value[i]);
    }
    rlhf__buf_puts(out, "]}");
}
