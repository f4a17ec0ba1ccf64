// row_stats.c: see row_stats.h.
#include "batch/row_stats.h"

#include <math.h>
#include <string.h>

double rlhf__rows_error(const struct rlhf__rows *e, const float *x, const uint8_t *keep) {
    double mean = 0, n = 0, squares = 0, prompts = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        if (keep && !keep[i]) continue;
        mean += (double)x[i];
        n++;
    }
    mean /= n;
    for (uint32_t i = 0, end; i < e->n; i = end) {
        double residual = 0;
        int any = 0;
        for (end = i; end < e->n && e->source[end] == e->source[i]; end++) {
            if (keep && !keep[end]) continue;
            residual += (double)x[end] - mean;
            any = 1;
        }
        squares += residual * residual;
        prompts += any;
    }
    return prompts > 1 ? sqrt(squares * prompts / (prompts - 1)) / n : NAN;
}

double rlhf__rows_length_correlation(const struct rlhf__rows *e, const float *x) {
    double mean_x = 0, mean_l = 0, xx = 0, ll = 0, xl = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        mean_x += (double)x[i] / (double)e->n;
        mean_l += (double)rlhf__rows_response_tokens(e, i, i + 1) / (double)e->n;
    }
    for (uint32_t i = 0; i < e->n; i++) {
        const double a = (double)x[i] - mean_x,
                     b = (double)rlhf__rows_response_tokens(e, i, i + 1) - mean_l;
        xx += a * a;
        ll += b * b;
        xl += a * b;
    }
    return xx > 0 && ll > 0 ? xl / sqrt(xx * ll) : NAN;
}

static int is_equal(const struct rlhf__rows *e, uint32_t i, uint32_t k) {
    const int32_t n = e->offset[i + 1] - e->offset[i];
    return e->offset[k + 1] - e->offset[k] == n &&
           memcmp(e->ids + e->offset[i], e->ids + e->offset[k], (size_t)n * sizeof *e->ids) == 0;
}

double rlhf__rows_noise(const struct rlhf__rows *e, const float *x) {
    enum { FEWEST = 8 };
    double sum = 0, all = 0, squares = 0;
    int64_t pairs = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        const double off = (double)x[i] - (double)x[0];
        sum += off;
        all += off * off;
        for (uint32_t k = i + 1; k < e->n && e->source[k] == e->source[i]; k++) {
            const double d = (double)x[k] - (double)x[i];
            if (!is_equal(e, i, k)) continue;
            squares += d * d;
            pairs++;
        }
    }
    const double variance = all / e->n - sum / e->n * (sum / e->n);
    return pairs >= FEWEST && variance > 0 ? squares / (double)pairs / 2 / variance : NAN;
}
