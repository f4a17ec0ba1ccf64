// scored.c: see scored.h.
#include "sample/scored.h"

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
    for (uint32_t i = 0; ok && i < e->n; i++) {
        const int32_t *ids = e->ids + e->offset[i] + e->prompt_len[i];
        int32_t len = e->offset[i + 1] - e->offset[i] - e->prompt_len[i], cut = len;
        if (by->response->truncate == RLHF__TRUNCATE_PERIOD)
            cut = rlhf__response_period(by->rules, ids, len);
        x->no_period[i] = cut < 0;
        x->scored_len[i] = cut < 0 ? len : cut;
        size_t bytes = 0;
        x->text[i] =
            rlhf__tokenizer_text(rlhf__response_rules_tok(by->rules), ids, (size_t)x->scored_len[i],
                                 RLHF__DECODE_SKIP_SPECIAL, &bytes);
        ok = x->text[i] != NULL;
        if (ok) bytes = rlhf__response_text_end(by->rules, x->text[i], bytes);
        x->response[i] = (rlhf_str){x->text[i], bytes};
        const struct rlhf__prompt prompt = rlhf__prompts_get(by->prompts, e->source[i]);
        x->prompt[i] = prompt.text;
        x->meta[i] = prompt.meta;
    }
    if (ok) return RLHF_OK;
    rlhf__scored_finish(x);
    return RLHF__NOMEM(err, "out of memory for the texts of %u responses", e->n);
}

// *to = a's n elements, then b's.
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
    void *p[8] = {0};
    int ok = joined(&p[0], a->prompt, n, b->prompt, more, sizeof *a->prompt) &&
             joined(&p[1], a->response, n, b->response, more, sizeof *a->response) &&
             joined(&p[2], a->meta, n, b->meta, more, sizeof *a->meta) &&
             joined(&p[3], a->text, n, b->text, more, sizeof *a->text) &&
             joined(&p[4], a->scored_len, n, b->scored_len, more, sizeof *a->scored_len) &&
             joined(&p[5], a->no_period, n, b->no_period, more, 1) &&
             joined(&p[6], a->verdict, n, b->verdict, more, 1) &&
             joined(&p[7], a->paid, n * each, b->paid, more * each, sizeof *a->paid);
    for (int k = 0; !ok && k < 8; k++)
        free(p[k]);
    if (!ok) return RLHF__NOMEM(err, "out of memory for the texts of %zu responses", n + more);
    for (size_t i = 0; i < more; i++)
        b->text[i] = NULL; // moved to a
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
                               .n = (uint32_t)(n + more),
                               .n_rewards = (uint32_t)each};
    if (!each) free(p[7]);
    return RLHF_OK;
}

rlhf_status rlhf__scored_take_paid(struct rlhf__scored *x, const float *raw, uint32_t n_rewards,
                                   struct rlhf__error *err) {
    const size_t n = x->n;
    x->paid = malloc((n * n_rewards + 1) * sizeof *x->paid);
    if (!x->paid) return RLHF__NOMEM(err, "out of memory for what %u rewards pay", n_rewards);
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
            continue;
        }
        x->text[to] = x->text[i];
        x->response[to] = x->response[i];
        x->prompt[to] = x->prompt[i];
        x->meta[to] = x->meta[i];
        x->scored_len[to] = x->scored_len[i];
        x->no_period[to] = x->no_period[i];
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
