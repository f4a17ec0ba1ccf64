// stats.c: see stats.h.
#include "eval/stats.h"

#include <math.h>
#include <stdlib.h>

static int counts(const struct rlhf__answers *a, uint32_t i) { return !a->keep || a->keep[i]; }

rlhf_status rlhf__estimate_mean(const struct rlhf__answers *a, const double *x,
                                struct rlhf__estimate *out, struct rlhf__error *err) {
    double *residual = calloc((size_t)a->n_prompts + 1, sizeof *residual); // sum per prompt
    uint8_t *seen = calloc((size_t)a->n_prompts + 1, 1);
    double sum = 0, squares = 0, prompts = 0;
    uint32_t n = 0;
    if (!residual || !seen) {
        free(residual);
        free(seen);
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for standard errors");
    }
    for (uint32_t i = 0; i < a->n; i++) {
        if (!counts(a, i)) continue;
        sum += x[i];
        n++;
    }
    out->mean = n ? sum / n : NAN;
    for (uint32_t i = 0; i < a->n; i++)
        if (counts(a, i)) {
            residual[a->prompt[i]] += x[i] - out->mean;
            seen[a->prompt[i]] = 1;
        }
    for (int64_t p = 0; p < a->n_prompts; p++) {
        squares += residual[p] * residual[p];
        prompts += seen[p];
    }
    out->error = prompts > 1 ? sqrt(squares * prompts / (prompts - 1)) / n : NAN;
    free(residual);
    free(seen);
    return RLHF_OK;
}

// Compute pass@k as 1 - prod over i in (n - c, n] of (1 - k / i), because the binomials of large n
// would overflow.
double rlhf__pass_at(uint32_t n, uint32_t c, uint32_t k) {
    double none = 1;
    if (n < k) return NAN;
    if (n - c < k) return 1;
    for (uint32_t i = n - c + 1; i <= n; i++)
        none *= 1 - (double)k / i;
    return 1 - none;
}

rlhf_status rlhf__pass_by_prompt(const struct rlhf__answers *a, const uint8_t *right, uint32_t k,
                                 double *pass, struct rlhf__error *err) {
    // Two counts per prompt: its responses, and its right responses.
    uint32_t *of = calloc((size_t)a->n_prompts * 2 + 1, sizeof *of);
    if (!of) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for pass@k");
    for (uint32_t i = 0; i < a->n; i++) {
        if (!counts(a, i)) continue;
        of[2 * a->prompt[i]]++;
        of[2 * a->prompt[i] + 1] += right[i] != 0;
    }
    for (int64_t p = 0; p < a->n_prompts; p++)
        pass[p] = rlhf__pass_at(of[2 * p], of[2 * p + 1], k);
    free(of);
    return RLHF_OK;
}

double rlhf__share_error(double p, int64_t n) {
    return n > 0 ? sqrt(p * (1 - p) / (double)n) : NAN;
}

rlhf_status rlhf__estimate_prompts(double *x, int64_t n, struct rlhf__estimate *out,
                                   struct rlhf__error *err) {
    int64_t *prompt = calloc((size_t)n + 1, sizeof *prompt);
    uint8_t *keep = calloc((size_t)n + 1, 1);
    rlhf_status st = RLHF_OK;
    if (!prompt || !keep) st = RLHF__NOMEM(err, "out of memory for pass@k");
    for (int64_t p = 0; st == RLHF_OK && p < n; p++) {
        prompt[p] = p;
        if (isnan(x[p]))
            x[p] = 0;
        else
            keep[p] = 1;
    }
    const struct rlhf__answers a = {
        .prompt = prompt, .keep = keep, .n = (uint32_t)n, .n_prompts = n};
    if (st == RLHF_OK) st = rlhf__estimate_mean(&a, x, out, err);
    free(prompt);
    free(keep);
    return st;
}
