// completions.c: see completions.h.
#include "run/completions.h"

#include "run/plan.h"
#include "sample/diversity.h"
#include "sample/mixing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- metrics ----

rlhf_status rlhf__completions_measure(const struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__rows *e = &p->x.rows;
    struct rlhf__metrics *m = p->report->metrics;
    double n = (double)e->n, mean, std, distinct = 0, stopped = 0;
    rlhf__mean_std(e->reward, NULL, e->n, &mean, &std);
    for (uint32_t i = 0; i < e->n; i++)
        stopped += e->finished[i];
    double length = (double)rlhf__rows_response_tokens(e, 0, e->n) / n;
    rlhf_status st = rlhf__rows_distinct3(e, &distinct, err);
    if (st != RLHF_OK) return st;
    rlhf__metrics_set(m, "objective/scores", mean);
    rlhf__metrics_set(m, "completions/mean_length", length);
    rlhf__metrics_set(m, "completions/clipped_ratio", 1 - stopped / n);
    rlhf__metrics_set(m, "completions/distinct_3", distinct);
    rlhf__metrics_set(m, "val/sequence_lengths", length);
    rlhf__metrics_set(m, "val/num_stop_token_ids", stopped);
    return RLHF_OK;
}

// ---- samples ----

static double response_sum(const struct rlhf__rows *e, uint32_t i, const float *x) {
    double sum = 0;
    for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++)
        sum += (double)x[k];
    return sum;
}

void rlhf__shown_finish(struct rlhf__shown *s) {
    free(s->rows);
    free(s->bytes);
    *s = (struct rlhf__shown){0};
}

// The texts of the first n rows go on living in s->bytes.
static rlhf_status keep_texts(struct rlhf__shown *s, const struct rlhf__scored *x, size_t n,
                              struct rlhf__error *err) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += (size_t)x->prompt[i].len + (size_t)x->response[i].len;
    s->rows = calloc(n, sizeof *s->rows);
    s->bytes = malloc(bytes + 1);
    if (!s->rows || !s->bytes) return RLHF__NOMEM(err, "out of memory for samples");
    char *at = s->bytes;
    for (size_t i = 0; i < n; i++) {
        s->rows[i].prompt = (rlhf_str){at, x->prompt[i].len};
        if (x->prompt[i].len) memcpy(at, x->prompt[i].ptr, (size_t)x->prompt[i].len);
        at += x->prompt[i].len;
        s->rows[i].response = (rlhf_str){at, x->response[i].len};
        if (x->response[i].len) memcpy(at, x->response[i].ptr, (size_t)x->response[i].len);
        at += x->response[i].len;
    }
    s->n = n;
    return RLHF_OK;
}

// Whether they are shown is known at the phase's end only: it may be the last one.
rlhf_status rlhf__completions_take(const struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__log_config *c = &p->config->log;
    const struct rlhf__rows *e = &p->x.rows;
    struct rlhf__shown *s = &p->report->shown;
    size_t n = (size_t)(c->samples < e->n ? c->samples : e->n);
    int compares = rlhf__plan_wants_reference(&p->cast->plan);
    rlhf__shown_finish(s);
    if (c->samples_every == 0 || n == 0) return RLHF_OK;
    rlhf_status st = keep_texts(s, &p->x.scored, n, err);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        s->rows[i].reward = (double)e->reward[i];
        s->rows[i].logp = response_sum(e, i, e->token[RLHF__LOGP_OLD]);
        s->rows[i].ref_logp = compares ? response_sum(e, i, e->token[RLHF__LOGP_REF]) : NAN;
    }
    return st;
}

rlhf_status rlhf__completions_show(const struct rlhf__phase *p, int is_last,
                                   struct rlhf__error *err) {
    const struct rlhf__log_config *c = &p->config->log;
    const struct rlhf__report *r = p->report;
    const struct rlhf__shown *s = &r->shown;
    int64_t phase = p->count->phase + 1;
    if (s->n == 0) return RLHF_OK;
    int due = phase % c->samples_every == 0 || phase == 1 || phase == p->count->phases || is_last;
    if (!due) return RLHF_OK;
    rlhf_status st = rlhf__samples_write(r->samples, phase, s->rows, s->n, r->metrics, err);
    if (st != RLHF_OK || c->progress == RLHF__PROGRESS_OFF) return st;
    if (r->log->json) {
        for (size_t i = 0; i < s->n; i++)
            rlhf__samples_event(r->log, phase, &s->rows[i]);
        return RLHF_OK;
    }
    rlhf__progress_hide(r->progress);
    rlhf__samples_table(stdout, phase, s->rows, s->n, 0, isatty(STDOUT_FILENO));
    rlhf__progress_show(r->progress);
    return RLHF_OK;
}
