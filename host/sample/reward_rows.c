// reward_rows.c: see reward_rows.h.
#include "sample/reward_rows.h"

#include "supervise/tail.h"

#include <rlhf/reward.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

void rlhf__scored_finish(struct rlhf__scored *s) {
    for (uint32_t i = 0; s->text && i < s->n; i++)
        free(s->text[i]);
    free(s->text);
    free(s->prompt);
    free(s->response);
    free(s->meta);
    free(s->scored_len);
    free(s->no_period);
    free(s->verdict);
    free(s->paid);
    for (uint32_t i = 0; s->turns && i < s->n; i++)
        rlhf__turn_texts_finish(&s->turns[i]);
    free(s->turns);
    memset(s, 0, sizeof *s);
}

rlhf_status rlhf__scored_init(struct rlhf__scored *x, const struct rlhf__scored_by *by,
                              const struct rlhf__rows *e, struct rlhf__error *err) {
    size_t n = e->n ? e->n : 1;
    memset(x, 0, sizeof *x);
    x->n = e->n;
    x->prompt = calloc(n, sizeof *x->prompt);
    x->response = calloc(n, sizeof *x->response);
    x->meta = calloc(n, sizeof *x->meta);
    x->text = calloc(n, sizeof *x->text);
    x->scored_len = calloc(n, sizeof *x->scored_len);
    x->no_period = calloc(n, 1);
    x->verdict = calloc(n, 1);
    int ok = x->prompt && x->response && x->meta && x->text && x->scored_len && x->no_period &&
             x->verdict;
    if (e->turn) ok = ok && (x->turns = calloc(n, sizeof *x->turns)) != NULL;
    for (uint32_t i = 0; ok && i < e->n; i++) {
        int32_t end;
        const int32_t last = rlhf__rows_last_turn(e, i, &end);
        const int32_t *ids = e->ids + e->offset[i] + last;
        int32_t len = end - last, cut = len;
        if (by->response->truncate == RLHF__TRUNCATE_PERIOD)
            cut = rlhf__response_period(by->rules, ids, len);
        x->no_period[i] = cut < 0;
        if (cut < 0) cut = len;
        x->scored_len[i] = last - e->prompt_len[i] + cut;
        size_t bytes = 0;
        x->text[i] = rlhf__tokenizer_text(rlhf__response_rules_tok(by->rules), ids, (size_t)cut,
                                          RLHF__DECODE_SKIP_SPECIAL, &bytes);
        ok = x->text[i] != NULL;
        if (ok) bytes = rlhf__response_text_end(by->rules, x->text[i], bytes);
        x->response[i] = (rlhf_str){x->text[i], bytes};
        const struct rlhf__prompt prompt = rlhf__prompts_get(by->prompts, e->source[i]);
        x->prompt[i] = prompt.text;
        x->meta[i] = prompt.meta;
        if (ok && x->turns)
            ok = rlhf__turn_texts_init(&x->turns[i], rlhf__response_rules_tok(by->rules), e, i,
                                       last + cut, prompt.text, x->response[i], err) == RLHF_OK;
    }
    if (ok) return RLHF_OK;
    rlhf__scored_finish(x);
    return RLHF__NOMEM(err, "out of memory for the texts of %u responses", e->n);
}

// Set *to to a new array: the n elements of a, then those of b.
static int joined(void **to, const void *a, size_t n, const void *b, size_t more, size_t size) {
    char *both = *to = calloc(n + more + 1, size);
    if (!both) return 0;
    if (n) memcpy(both, a, n * size);
    if (more) memcpy(both + n * size, b, more * size);
    return 1;
}

rlhf_status rlhf__scored_join(struct rlhf__scored *a, struct rlhf__scored *b,
                              struct rlhf__error *err) {
    const size_t n = a->n, more = b->n;
    const size_t each = a->paid && b->paid ? a->n_rewards : 0;
    // either all rows of a run have turns, or none of them
    const size_t turns = a->turns && b->turns ? 1 : 0;
    void *p[9] = {0};
    int ok = joined(&p[0], a->prompt, n, b->prompt, more, sizeof *a->prompt) &&
             joined(&p[1], a->response, n, b->response, more, sizeof *a->response) &&
             joined(&p[2], a->meta, n, b->meta, more, sizeof *a->meta) &&
             joined(&p[3], a->text, n, b->text, more, sizeof *a->text) &&
             joined(&p[4], a->scored_len, n, b->scored_len, more, sizeof *a->scored_len) &&
             joined(&p[5], a->no_period, n, b->no_period, more, 1) &&
             joined(&p[6], a->verdict, n, b->verdict, more, 1) &&
             joined(&p[7], a->paid, n * each, b->paid, more * each, sizeof *a->paid) &&
             joined(&p[8], a->turns, n * turns, b->turns, more * turns, sizeof *a->turns);
    for (int k = 0; !ok && k < 9; k++)
        free(p[k]);
    if (!ok) return RLHF__NOMEM(err, "out of memory for the texts of %zu responses", n + more);
    for (size_t i = 0; i < more; i++)
        b->text[i] = NULL; // moved to a
    for (size_t i = 0; turns && i < more; i++)
        b->turns[i] = (struct rlhf__turn_texts){0};
    a->n = 0;
    rlhf__scored_finish(a);
    rlhf__scored_finish(b);
    *a = (struct rlhf__scored){.prompt = p[0],
                               .response = p[1],
                               .meta = p[2],
                               .text = p[3],
                               .scored_len = p[4],
                               .no_period = p[5],
                               .verdict = p[6],
                               .paid = each ? p[7] : NULL,
                               .turns = turns ? p[8] : NULL,
                               .n = (uint32_t)(n + more),
                               .n_rewards = (uint32_t)each};
    if (!each) free(p[7]);
    if (!turns) free(p[8]);
    return RLHF_OK;
}

rlhf_status rlhf__scored_take_paid(struct rlhf__scored *x, const float *raw, uint32_t n_rewards,
                                   struct rlhf__error *err) {
    const size_t n = x->n;
    x->paid = malloc((n * n_rewards + 1) * sizeof *x->paid);
    if (!x->paid) return RLHF__NOMEM(err, "out of memory for the scores of %u rewards", n_rewards);
    x->n_rewards = n_rewards;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_rewards; k++)
            x->paid[i * n_rewards + k] = raw[k * n + i];
    return RLHF_OK;
}

void rlhf__scored_pick(struct rlhf__scored *x, const uint32_t *pick, uint32_t n) {
    uint32_t to = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        if (to == n || pick[to] != i) {
            free(x->text[i]);
            if (x->turns) rlhf__turn_texts_finish(&x->turns[i]);
            continue;
        }
        x->text[to] = x->text[i];
        x->response[to] = x->response[i];
        x->prompt[to] = x->prompt[i];
        x->meta[to] = x->meta[i];
        x->scored_len[to] = x->scored_len[i];
        x->no_period[to] = x->no_period[i];
        if (x->turns) x->turns[to] = x->turns[i];
        x->verdict[to] = x->verdict[i];
        for (uint32_t k = 0; x->paid && k < x->n_rewards; k++)
            x->paid[to * x->n_rewards + k] = x->paid[i * x->n_rewards + k];
        to++;
    }
    x->n = n;
}

double rlhf__scored_correct(const struct rlhf__scored *x, const uint8_t *keep) {
    uint32_t known = 0, right = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        if (!keep[i]) continue;
        known += x->verdict[i] != RLHF_VERDICT_NONE;
        right += x->verdict[i] == RLHF_VERDICT_RIGHT;
    }
    return known ? (double)right / known : (double)NAN;
}

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

static rlhf_status make_logps(struct rlhf__reward_rows *r, size_t total, int sampled, int ref,
                              struct rlhf__error *err) {
    if (sampled) r->logp_sampled = calloc(total + 1, sizeof *r->logp_sampled);
    if (ref) r->logp_ref = calloc(total + 1, sizeof *r->logp_ref);
    if ((!sampled || r->logp_sampled) && (!ref || r->logp_ref)) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for the log-probs of %u rows", r->n);
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
    free(r->turn);
    free(r->end);
    free(r->texts);
    *r = (struct rlhf__reward_rows){0};
}

static rlhf_status make_turns(struct rlhf__reward_rows *r, uint32_t n, size_t total,
                              struct rlhf__error *err) {
    r->turn = calloc(total + 1, sizeof *r->turn);
    r->end = calloc((size_t)n + 1, 1);
    r->texts = calloc((size_t)n + 1, sizeof *r->texts);
    if (r->turn && r->end && r->texts) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory scoring %u rows", n);
}

rlhf_status rlhf__reward_rows_init(struct rlhf__reward_rows *r, const struct rlhf__scored *x,
                                   const struct rlhf__rows *e, uint32_t flags,
                                   struct rlhf__error *err) {
    RLHF_TRY(make_room(r, e->n, e->total, err));
    RLHF_TRY(make_logps(r, e->total, flags & RLHF_REWARD_LOGP_SAMPLED, flags & RLHF_REWARD_LOGP_REF,
                        err));
    if (e->turn) RLHF_TRY(make_turns(r, e->n, e->total, err));
    for (uint32_t i = 0; i < e->n; i++) {
        const int32_t len = e->prompt_len[i] + x->scored_len[i];
        memcpy(r->ids + r->offset[i], e->ids + e->offset[i], (size_t)len * sizeof *r->ids);
        r->offset[i + 1] = r->offset[i] + len;
        if (r->logp_sampled)
            memcpy(r->logp_sampled + r->offset[i], e->token[RLHF__LOGP_SAMPLED] + e->offset[i],
                   (size_t)len * sizeof *r->logp_sampled);
        if (r->logp_ref)
            memcpy(r->logp_ref + r->offset[i], e->token[RLHF__LOGP_REF] + e->offset[i],
                   (size_t)len * sizeof *r->logp_ref);
        r->prompt[i] = x->prompt[i];
        r->response[i] = x->response[i];
        r->meta[i] = x->meta[i];
        r->prompt_len[i] = e->prompt_len[i];
        r->group[i] = e->group[i];
        r->source[i] = e->source[i];
        r->finished[i] = e->finished[i];
        if (!e->turn) continue;
        memcpy(r->turn + r->offset[i], e->turn + e->offset[i], (size_t)len * sizeof *r->turn);
        r->end[i] = e->end[i];
        r->texts[i] = &x->turns[i];
    }
    return RLHF_OK;
}

rlhf_status rlhf__reward_rows_pick(struct rlhf__reward_rows *r, const struct rlhf__reward_rows *all,
                                   const uint32_t *pick, uint32_t n, struct rlhf__error *err) {
    size_t total = 0;
    for (uint32_t k = 0; k < n; k++)
        total += (size_t)(all->offset[pick[k] + 1] - all->offset[pick[k]]);
    RLHF_TRY(make_room(r, n, total, err));
    RLHF_TRY(make_logps(r, total, all->logp_sampled != NULL, all->logp_ref != NULL, err));
    if (all->turn) RLHF_TRY(make_turns(r, n, total, err));
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
        if (!all->turn) continue;
        memcpy(r->turn + r->offset[k], all->turn + all->offset[i], (size_t)len * sizeof *r->turn);
        r->end[k] = all->end[i];
        r->texts[k] = all->texts[i];
    }
    return RLHF_OK;
}

// ---- answers ----

rlhf_status rlhf__reward_answer_init(struct rlhf__reward_answer *a,
                                     const struct rlhf__reward_rows *r, struct rlhf__error *err) {
    a->seq = rlhf__tail_alloc(r->n, sizeof *a->seq);
    a->token = rlhf__tail_alloc((size_t)r->offset[r->n], sizeof *a->token);
    a->verdict = rlhf__tail_alloc(r->n, 1);
    a->failed = rlhf__tail_alloc(r->n, 1);
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
