// learner.c: see learner.h.
#include "learn/learner.h"

#include "supervise/tail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t rlhf__row_use_count(const struct rlhf__rows *e, int use) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n; i++)
        n += e->use[i] == use;
    return n;
}

enum { TOKEN_HEADS = 4 };
static const char *const head_names[TOKEN_HEADS] = {"d_heads->logp", "d_heads->entropy",
                                                    "d_heads->kl", "d_heads->value"};

static void token_heads(const rlhf_head_gradients *d, float *head[TOKEN_HEADS]) {
    head[0] = d->logp;
    head[1] = d->entropy;
    head[2] = d->kl;
    head[3] = d->value;
}

rlhf_status rlhf__row_use_check(const rlhf_head_gradients *d, const struct rlhf__rows *e,
                                uint32_t from, uint32_t to, const char *who,
                                struct rlhf__error *err) {
    float *head[TOKEN_HEADS];
    const int32_t base = e->offset[from];
    token_heads(d, head);
    for (uint32_t i = from; i < to; i++) {
        if (e->use[i] != RLHF_USE_NO_GRADIENT) continue;
        const int32_t first = e->offset[i] - base;
        for (size_t k = 0; k < TOKEN_HEADS; k++)
            for (int32_t t = first; head[k] && t < e->offset[i + 1] - base; t++)
                if (!(head[k][t] == 0))
                    return rlhf__fail(err, RLHF_E_INTERNAL,
                                      "algorithm %s, loss(): %s of row %u, token %d, is %g; it "
                                      "must be 0, because advantages() called the row "
                                      "RLHF_USE_NO_GRADIENT",
                                      who, head_names[k], e->row[i], t - first, (double)head[k][t]);
    }
    return RLHF_OK;
}

void rlhf__prompts_clear(const rlhf_loss_in *in, const rlhf_head_gradients *d) {
    float *head[TOKEN_HEADS];
    token_heads(d, head);
    for (size_t k = 0; k < TOKEN_HEADS; k++)
        for (uint32_t i = 0; head[k] && i < in->n; i++)
            memset(head[k] + in->offset[i], 0, (size_t)in->prompt_len[i] * sizeof(float));
}

static void set_odd(struct rlhf__odd_loss *odd, const char *array, uint32_t row, size_t at,
                    double value) {
    if (!odd->array) *odd = (struct rlhf__odd_loss){array, row, (uint32_t)at, value};
}

void rlhf__odd_loss_find(const rlhf_loss_in *in, const rlhf_loss_out *out,
                         struct rlhf__odd_loss *odd) {
    float *head[TOKEN_HEADS];
    const float *score = out->d_heads->score;
    token_heads(out->d_heads, head);
    for (uint32_t i = 0; i < in->n && !odd->array; i++) {
        for (size_t k = 0; k < TOKEN_HEADS; k++)
            for (int32_t t = in->offset[i]; head[k] && t < in->offset[i + 1]; t++)
                if (!isfinite(head[k][t]))
                    set_odd(odd, head_names[k], in->row[i], (size_t)(t - in->offset[i]),
                            (double)head[k][t]);
        for (size_t k = 0; score && k < in->n_labels; k++)
            if (!isfinite(score[i * (size_t)in->n_labels + k]))
                set_odd(odd, "d_heads->score", in->row[i], k,
                        (double)score[i * (size_t)in->n_labels + k]);
    }
    if (!isfinite(out->loss)) set_odd(odd, "loss", 0, 0, out->loss);
}

double rlhf__row_tally_saved(const struct rlhf__row_tally *b) {
    const double still = (double)b->tokens[RLHF_USE_NO_GRADIENT];
    const double masked = (double)b->tokens[RLHF_USE_EXCLUDED];
    double forward; // seconds per token
    if (still > 0)
        forward = b->seconds[RLHF_USE_NO_GRADIENT] / still;
    else if (b->timed > 0)
        forward = b->seconds[RLHF_USE_TRAINS] / (3 * (double)b->timed);
    else
        return -1;
    return forward * (2 * still + 3 * masked);
}

static int grow(float **p, size_t n, int wanted) {
    if (!wanted) return 1;
    float *q = realloc(*p, n * sizeof *q + RLHF__TAIL);
    if (!q) return 0;
    *p = q;
    return 1;
}

rlhf_status rlhf__head_store_reserve(struct rlhf__head_store *s, uint32_t heads, size_t rows,
                                     size_t tokens, int32_t n_labels, struct rlhf__error *err) {
    s->heads.size = sizeof s->heads;
    if (s->tokens >= tokens && s->rows >= rows) return RLHF_OK;
    if (tokens < s->tokens) tokens = s->tokens;
    if (rows < s->rows) rows = s->rows;
    if (!grow(&s->heads.logp, tokens, heads & RLHF_HEAD_LOGP) ||
        !grow(&s->heads.entropy, tokens, heads & RLHF_HEAD_ENTROPY) ||
        !grow(&s->heads.kl, tokens, heads & RLHF_HEAD_KL) ||
        !grow(&s->heads.value, tokens, heads & RLHF_HEAD_VALUE) ||
        !grow(&s->heads.token_score, tokens, heads & RLHF_HEAD_TOKEN_SCORE) ||
        !grow(&s->heads.score, rows * (size_t)n_labels, heads & RLHF_HEAD_SCORE))
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu tokens", tokens);
    s->tokens = tokens;
    s->rows = rows;
    return RLHF_OK;
}

rlhf_head_values rlhf__head_store_values(const struct rlhf__head_store *s) {
    return (rlhf_head_values){.logp = s->heads.logp,
                              .entropy = s->heads.entropy,
                              .kl = s->heads.kl,
                              .value = s->heads.value,
                              .score = s->heads.score};
}

rlhf_head_gradients rlhf__head_store_gradients(const struct rlhf__head_store *s) {
    return (rlhf_head_gradients){.logp = s->heads.logp,
                                 .entropy = s->heads.entropy,
                                 .kl = s->heads.kl,
                                 .value = s->heads.value,
                                 .score = s->heads.score};
}

void rlhf__head_store_clear(struct rlhf__head_store *s, size_t rows, size_t tokens,
                            int32_t n_labels) {
    if (s->heads.logp) memset(s->heads.logp, 0, tokens * sizeof(float));
    if (s->heads.entropy) memset(s->heads.entropy, 0, tokens * sizeof(float));
    if (s->heads.kl) memset(s->heads.kl, 0, tokens * sizeof(float));
    if (s->heads.value) memset(s->heads.value, 0, tokens * sizeof(float));
    if (s->heads.token_score) memset(s->heads.token_score, 0, tokens * sizeof(float));
    if (s->heads.score) memset(s->heads.score, 0, rows * (size_t)n_labels * sizeof(float));
}

static void head_store_finish(struct rlhf__head_store *s) {
    free(s->heads.logp);
    free(s->heads.entropy);
    free(s->heads.kl);
    free(s->heads.value);
    free(s->heads.token_score);
    free(s->heads.score);
    memset(s, 0, sizeof *s);
}

void rlhf__learner_finish(struct rlhf__learner *l) {
    head_store_finish(&l->out);
    head_store_finish(&l->grad);
    head_store_finish(&l->compact);
    rlhf__shared_batch_finish(&l->batch);
    free(l->hidden);
    l->hidden = NULL;
    l->hidden_cap = 0;
}

void rlhf__learner_begin(struct rlhf__learner *l) {
    l->loss_sum = l->norm_sum = l->clipped_sum = 0;
    l->norm_first = l->norm_max = 0;
    l->minibatches = l->steps = l->tokens = l->compared = 0;
    l->asked = 0;
    l->fall_sum = 0;
    l->fall_tokens = 0;
    l->more = 0;
    l->flops = l->difference_sum = l->difference_max = 0;
    l->tally = (struct rlhf__row_tally){0};
    l->odd = (struct rlhf__odd_rows){0};
    l->odd_loss = (struct rlhf__odd_loss){0};
}

void rlhf__learner_expect(struct rlhf__learner *l, uint32_t minibatches, int64_t rows,
                          int compare) {
    l->epoch_minibatches = minibatches;
    l->rows = 0;
    l->rows_all = rows;
    l->comparing = compare;
}

// Returns 1 unless row i was sampled with weights that are older than the current ones.
static int is_own(const struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t i) {
    return !(e->flags & RLHF__DRAWN) || e->version[i] == l->optim->count.step;
}

void rlhf__learner_compare(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t from,
                           uint32_t to, const float *sampled, const float *again) {
    int32_t base = e->offset[from];
    for (uint32_t i = from; i < to; i++)
        for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++) {
            if (!rlhf__rows_is_response(e, k) || !is_own(l, e, i)) continue;
            double d = fabs((double)sampled[k - base] - (double)again[k - base]);
            l->difference_sum += d;
            if (d > l->difference_max || isnan(d)) l->difference_max = d;
            l->compared++;
        }
}
