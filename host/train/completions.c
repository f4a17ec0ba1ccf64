// completions.c: see completions.h.
#include "train/completions.h"

#include "train/mixing.h"
#include "train/rollout_source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- distinct n-grams ----

struct gram {
    const int32_t *ids;
    int32_t n, reserved;
};

static int compare_grams(const void *a, const void *b) {
    const struct gram *x = a, *y = b;
    for (int32_t k = 0; k < x->n; k++)
        if (x->ids[k] != y->ids[k]) return x->ids[k] < y->ids[k] ? -1 : 1;
    return 0;
}

rlhf_status rlhf__distinct_n(const int32_t *ids, const int32_t *begin, const int32_t *end,
                             uint32_t rows, int32_t n, double *out, struct rlhf__error *err) {
    size_t count = 0, distinct = 0;
    for (uint32_t i = 0; i < rows; i++)
        if (end[i] - begin[i] >= n) count += (size_t)(end[i] - begin[i] - n + 1);
    *out = 1;
    if (count == 0) return RLHF_OK;
    struct gram *g = calloc(count, sizeof *g);
    if (!g) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu n-grams", count);
    size_t at = 0;
    for (uint32_t i = 0; i < rows; i++)
        for (int32_t k = begin[i]; k + n <= end[i]; k++)
            g[at++] = (struct gram){ids + k, n, 0};
    qsort(g, count, sizeof *g, compare_grams);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_grams(&g[i - 1], &g[i]) != 0) distinct++;
    free(g);
    *out = (double)distinct / (double)count;
    return RLHF_OK;
}

rlhf_status rlhf__episodes_distinct3(const struct rlhf__episodes *e, double *out,
                                     struct rlhf__error *err) {
    int32_t *begin = calloc(e->n ? e->n : 1, sizeof *begin);
    if (!begin) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for n-grams");
    for (uint32_t i = 0; i < e->n; i++)
        begin[i] = e->offset[i] + e->prompt_len[i];
    rlhf_status st = rlhf__distinct_n(e->ids, begin, e->offset + 1, e->n, 3, out, err);
    free(begin);
    return st;
}

// ---- metrics ----

static rlhf_status set_metrics(struct rlhf__trainer *t, const struct rlhf__episodes *e,
                               struct rlhf__error *err) {
    double n = (double)e->n, mean, std, distinct = 0, stopped = 0;
    rlhf__mean_std(e->reward, NULL, e->n, &mean, &std);
    for (uint32_t i = 0; i < e->n; i++)
        stopped += e->finished[i];
    double length = (double)rlhf__episodes_response_tokens(e, 0, e->n) / n;
    rlhf_status st = rlhf__episodes_distinct3(e, &distinct, err);
    if (st != RLHF_OK) return st;
    rlhf__metrics_set(t->metrics, "objective/scores", mean);
    rlhf__metrics_set(t->metrics, "completions/mean_length", length);
    rlhf__metrics_set(t->metrics, "completions/clipped_ratio", 1 - stopped / n);
    rlhf__metrics_set(t->metrics, "completions/distinct_3", distinct);
    rlhf__metrics_set(t->metrics, "val/sequence_lengths", (double)e->total / n);
    rlhf__metrics_set(t->metrics, "val/num_stop_token_ids", stopped);
    rlhf__metrics_set(t->metrics, "epoch",
                      rlhf__order_epoch(rlhf__rollout_source_order(t->rollout)));
    return RLHF_OK;
}

// ---- samples ----

static double response_sum(const struct rlhf__episodes *e, uint32_t i, const float *x) {
    double sum = 0;
    for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++)
        sum += (double)x[k];
    return sum;
}

static rlhf_status show_samples(struct rlhf__trainer *t, const struct rlhf__episodes *e,
                                const struct rlhf__scored *x, struct rlhf__error *err) {
    const struct rlhf__log_config *c = &t->config->log;
    int64_t every = c->samples_every;
    size_t n = (size_t)(c->samples < e->n ? c->samples : e->n);
    int due = every > 0 && ((t->phase + 1) % every == 0 || t->phase == 0);
    if (!due || n == 0) return RLHF_OK;
    struct rlhf__sample *s = calloc(n, sizeof *s);
    if (!s) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for samples");
    for (uint32_t i = 0; i < n; i++) {
        s[i].prompt = x->prompt[i];
        s[i].response = x->response[i];
        s[i].reward = (double)e->reward[i];
        s[i].logp = response_sum(e, i, e->token[RLHF__LOGP_OLD]);
        s[i].ref_logp =
            rlhf__trainer_compares(t) ? response_sum(e, i, e->token[RLHF__LOGP_REF]) : NAN;
    }
    rlhf_status st = rlhf__samples_write(t->samples, t->phase + 1, s, n, t->metrics, err);
    if (st == RLHF_OK && c->progress != RLHF__PROGRESS_OFF) {
        rlhf__progress_hide(t->progress);
        rlhf__samples_table(stdout, t->phase + 1, s, n, 0, isatty(STDOUT_FILENO));
        rlhf__progress_show(t->progress);
    }
    free(s);
    return st;
}

rlhf_status rlhf__completions_report(struct rlhf__trainer *t, const struct rlhf__episodes *e,
                                     const struct rlhf__scored *x, struct rlhf__error *err) {
    rlhf_status st = set_metrics(t, e, err);
    return st == RLHF_OK ? show_samples(t, e, x, err) : st;
}
