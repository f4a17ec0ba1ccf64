// reward_rows.c: see reward_rows.h.
#include "sample/reward_rows.h"

#include <stdlib.h>
#include <string.h>

#define UNWRITTEN 0x7fc0b1a7u // a NaN that no reward computes; 0 would be a valid score

// ---- rows ----

static rlhf_status make_room(struct rlhf__reward_rows *r, uint32_t n, size_t total,
                             struct rlhf__error *err) {
    *r = (struct rlhf__reward_rows){.n = n};
    r->prompt = calloc((size_t)n + 1, sizeof *r->prompt);
    r->response = calloc((size_t)n + 1, sizeof *r->response);
    r->meta = calloc((size_t)n + 1, sizeof *r->meta);
    r->ids = calloc(total + 1, sizeof *r->ids);
    r->offset = calloc((size_t)n + 1, sizeof *r->offset);
    r->prompt_len = calloc((size_t)n + 1, sizeof *r->prompt_len);
    r->group = calloc((size_t)n + 1, sizeof *r->group);
    r->source = calloc((size_t)n + 1, sizeof *r->source);
    r->finished = calloc((size_t)n + 1, 1);
    if (r->source && r->prompt && r->response && r->meta && r->ids && r->offset && r->prompt_len &&
        r->group && r->finished)
        return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory scoring %u rows", n);
}

void rlhf__reward_rows_finish(struct rlhf__reward_rows *r) {
    free(r->prompt);
    free(r->response);
    free(r->meta);
    free(r->ids);
    free(r->offset);
    free(r->prompt_len);
    free(r->group);
    free(r->source);
    free(r->logp_sampled);
    free(r->logp_ref);
    free(r->finished);
    *r = (struct rlhf__reward_rows){0};
}

rlhf_status rlhf__reward_rows_init(struct rlhf__reward_rows *r, const struct rlhf__scored *x,
                                   const struct rlhf__rows *e, struct rlhf__error *err) {
    RLHF_TRY(make_room(r, e->n, e->total, err));
    for (uint32_t i = 0; i < e->n; i++) {
        const int32_t len = e->prompt_len[i] + x->scored_len[i];
        memcpy(r->ids + r->offset[i], e->ids + e->offset[i], (size_t)len * sizeof *r->ids);
        r->offset[i + 1] = r->offset[i] + len;
        r->prompt[i] = x->prompt[i];
        r->response[i] = x->response[i];
        r->meta[i] = x->meta[i];
        r->prompt_len[i] = e->prompt_len[i];
        r->group[i] = e->group[i];
        r->source[i] = e->source[i];
        r->finished[i] = e->finished[i];
    }
    return RLHF_OK;
}

rlhf_status rlhf__reward_rows_pick(struct rlhf__reward_rows *r, const struct rlhf__reward_rows *all,
                                   const uint32_t *pick, uint32_t n, struct rlhf__error *err) {
    size_t total = 0;
    for (uint32_t k = 0; k < n; k++)
        total += (size_t)(all->offset[pick[k] + 1] - all->offset[pick[k]]);
    RLHF_TRY(make_room(r, n, total, err));
    if (all->logp_sampled) r->logp_sampled = calloc(total + 1, sizeof *r->logp_sampled);
    if (all->logp_ref) r->logp_ref = calloc(total + 1, sizeof *r->logp_ref);
    if ((all->logp_sampled && !r->logp_sampled) || (all->logp_ref && !r->logp_ref))
        return RLHF__NOMEM(err, "out of memory scoring %u rows", n);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = pick[k];
        const int32_t len = all->offset[i + 1] - all->offset[i];
        memcpy(r->ids + r->offset[k], all->ids + all->offset[i], (size_t)len * sizeof *r->ids);
        r->offset[k + 1] = r->offset[k] + len;
        r->prompt[k] = all->prompt[i];
        r->response[k] = all->response[i];
        r->meta[k] = all->meta[i];
        r->prompt_len[k] = all->prompt_len[i];
        r->group[k] = all->group[i];
        r->source[k] = all->source[i];
        if (r->logp_sampled)
            memcpy(r->logp_sampled + r->offset[k], all->logp_sampled + all->offset[i],
                   (size_t)len * sizeof *r->logp_sampled);
        if (r->logp_ref)
            memcpy(r->logp_ref + r->offset[k], all->logp_ref + all->offset[i],
                   (size_t)len * sizeof *r->logp_ref);
        r->finished[k] = all->finished[i];
    }
    return RLHF_OK;
}

// ---- answers ----

rlhf_status rlhf__reward_answer_init(struct rlhf__reward_answer *a,
                                     const struct rlhf__reward_rows *r, struct rlhf__error *err) {
    a->seq = calloc((size_t)r->n + 1, sizeof *a->seq);
    a->token = calloc((size_t)r->offset[r->n] + 1, sizeof *a->token);
    a->verdict = calloc((size_t)r->n + 1, 1);
    a->failed = calloc((size_t)r->n + 1, 1);
    if (!a->seq || !a->token || !a->verdict || !a->failed)
        return RLHF__NOMEM(err, "out of memory scoring %u rows", r->n);
    rlhf__reward_answer_clear(a, r);
    return RLHF_OK;
}

void rlhf__reward_answer_finish(struct rlhf__reward_answer *a) {
    free(a->seq);
    free(a->token);
    free(a->verdict);
    free(a->failed);
    *a = (struct rlhf__reward_answer){0};
}

void rlhf__reward_answer_clear(struct rlhf__reward_answer *a, const struct rlhf__reward_rows *r) {
    memset(a->token, 0, (size_t)r->offset[r->n] * sizeof *a->token);
    memset(a->verdict, 0, r->n);
    memset(a->failed, 0, r->n);
    const uint32_t unwritten = UNWRITTEN;
    for (uint32_t i = 0; i < r->n; i++)
        memcpy(&a->seq[i], &unwritten, sizeof unwritten);
}

int rlhf__reward_answer_unwritten(const struct rlhf__reward_answer *a, uint32_t i) {
    uint32_t bits;
    memcpy(&bits, &a->seq[i], sizeof bits);
    return bits == UNWRITTEN;
}

void rlhf__reward_answer_void(struct rlhf__reward_answer *a, const struct rlhf__reward_rows *r,
                              uint32_t i) {
    a->seq[i] = 0;
    a->verdict[i] = RLHF_VERDICT_NONE;
    for (int32_t k = r->offset[i]; k < r->offset[i + 1]; k++)
        a->token[k] = 0;
}

void rlhf__reward_answer_take(struct rlhf__reward_answer *a, const struct rlhf__reward_rows *r,
                              uint32_t i, const struct rlhf__reward_answer *part,
                              const struct rlhf__reward_rows *of, uint32_t k) {
    a->seq[i] = part->seq[k];
    a->verdict[i] = part->verdict[k];
    a->failed[i] = part->failed[k];
    memcpy(a->token + r->offset[i], part->token + of->offset[k],
           (size_t)(r->offset[i + 1] - r->offset[i]) * sizeof *a->token);
}

float rlhf__reward_answer_paid(const struct rlhf__reward_answer *a,
                               const struct rlhf__reward_rows *r, uint32_t i) {
    double sum = (double)a->seq[i];
    for (int32_t k = r->offset[i] + r->prompt_len[i]; k < r->offset[i + 1]; k++)
        sum += (double)a->token[k];
    return (float)sum;
}
