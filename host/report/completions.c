// completions.c: see completions.h.
#include "report/completions.h"

#include "batch/rows.h"
#include "learn/plan.h"
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
    free(s->paid);
    *s = (struct rlhf__shown){0};
}

// Whether row i has the same group or prompt as one of these rows.
static int is_repeated(const struct rlhf__phase *p, uint32_t i, const uint32_t *seen, uint32_t n) {
    const int32_t *group = p->x.rows.group;
    const rlhf_str *prompt = p->x.scored.prompt;
    for (uint32_t k = 0; k < n; k++) {
        const rlhf_str other = prompt[seen[k]];
        if (group[seen[k]] == group[i]) return 1;
        if (other.len != prompt[i].len) continue;
        if (!other.len || !memcmp(other.ptr, prompt[i].ptr, (size_t)other.len)) return 1;
    }
    return 0;
}

static int compare_rows(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Pick n rows to show, ascending: the first of each prompt, then, if these are too few, others from
// the front.
static void choose(const struct rlhf__phase *p, uint32_t *pick, uint32_t n) {
    const uint32_t rows = p->x.rows.n;
    uint32_t firsts = 0;
    for (uint32_t i = 0; i < rows && firsts < n; i++)
        if (!is_repeated(p, i, pick, firsts)) pick[firsts++] = i;
    uint32_t at = firsts, next = 0;
    for (uint32_t i = 0; i < rows && at < n; i++) {
        if (next < firsts && pick[next] == i)
            next++;
        else
            pick[at++] = i;
    }
    qsort(pick, n, sizeof *pick, compare_rows);
}

static char *keep_text(char *at, rlhf_str from, rlhf_str *to) {
    *to = (rlhf_str){at, from.len};
    if (from.len) memcpy(at, from.ptr, (size_t)from.len);
    return at + from.len;
}

// Copy the texts of these rows, and several rewards' scores of each, to *s.
static rlhf_status keep_texts(struct rlhf__shown *s, const struct rlhf__scored *x,
                              const uint32_t *pick, uint32_t n, struct rlhf__error *err) {
    const size_t each = x->paid ? x->n_rewards : 0;
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += (size_t)x->prompt[pick[i]].len + (size_t)x->response[pick[i]].len;
    s->rows = calloc(n, sizeof *s->rows);
    s->bytes = malloc(bytes + 1);
    s->paid = each ? calloc(n * each, sizeof *s->paid) : NULL;
    if (!s->rows || !s->bytes || (each && !s->paid))
        return RLHF__NOMEM(err, "out of memory for samples");
    char *at = s->bytes;
    for (uint32_t i = 0; i < n; i++) {
        at = keep_text(at, x->prompt[pick[i]], &s->rows[i].prompt);
        at = keep_text(at, x->response[pick[i]], &s->rows[i].response);
        if (!each) continue;
        s->rows[i].paid = s->paid + i * each;
        memcpy(s->paid + i * each, x->paid + pick[i] * each, each * sizeof *s->paid);
    }
    s->n = n;
    return RLHF_OK;
}

// Whether they are shown is decided only at the end of the phase: it may be the last one.
rlhf_status rlhf__completions_take(const struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__log_config *c = &p->config->log;
    const struct rlhf__rows *e = &p->x.rows;
    struct rlhf__shown *s = &p->report->shown;
    const uint32_t n = c->samples < e->n ? (uint32_t)c->samples : e->n;
    int compares = rlhf__plan_wants_reference(&p->cast->plan);
    rlhf__shown_finish(s);
    if (c->samples_every == 0 || n == 0) return RLHF_OK;
    uint32_t *pick = calloc(n, sizeof *pick);
    if (!pick) return RLHF__NOMEM(err, "out of memory for samples");
    choose(p, pick, n);
    rlhf_status st = keep_texts(s, &p->x.scored, pick, n, err);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        s->rows[i].reward = (double)e->reward[pick[i]];
        s->rows[i].logp = response_sum(e, pick[i], e->token[RLHF__LOGP_OLD]);
        s->rows[i].ref_logp = compares ? response_sum(e, pick[i], e->token[RLHF__LOGP_REF]) : NAN;
    }
    free(pick);
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
    const char *names[RLHF__SAMPLE_REWARDS];
    size_t several = s->paid ? p->config->n_reward : 0;
    if (several > RLHF__SAMPLE_REWARDS) several = RLHF__SAMPLE_REWARDS;
    for (size_t k = 0; k < several; k++)
        names[k] = p->config->reward[k].name;
    const struct rlhf__sample_table table = {
        .phase = phase, .rewards = names, .n_rewards = several, .boxed = isatty(STDOUT_FILENO)};
    rlhf__progress_hide(r->progress);
    rlhf__samples_table(stdout, &table, s->rows, s->n);
    rlhf__progress_show(r->progress);
    return RLHF_OK;
}
