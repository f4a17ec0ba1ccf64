// scoring.c: see scoring.h.
#include "train/scoring.h"

#include "train/mixing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- texts ----

void rlhf__scored_finish(struct rlhf__scored *s) {
    for (uint32_t i = 0; s->text && i < s->n; i++)
        free(s->text[i]);
    free(s->text);
    free(s->prompt);
    free(s->response);
    free(s->meta);
    free(s->scored_len);
    free(s->no_period);
    memset(s, 0, sizeof *s);
}

rlhf_status rlhf__scored_init(struct rlhf__scored *x, const struct rlhf__scorer *s,
                              const struct rlhf__episodes *e, const struct rlhf__prompt *prompt,
                              struct rlhf__error *err) {
    size_t n = e->n ? e->n : 1;
    memset(x, 0, sizeof *x);
    x->n = e->n;
    x->prompt = calloc(n, sizeof *x->prompt);
    x->response = calloc(n, sizeof *x->response);
    x->meta = calloc(n, sizeof *x->meta);
    x->text = calloc(n, sizeof *x->text);
    x->scored_len = calloc(n, sizeof *x->scored_len);
    x->no_period = calloc(n, 1);
    int ok = x->prompt && x->response && x->meta && x->text && x->scored_len && x->no_period;
    for (uint32_t i = 0; ok && i < e->n; i++) {
        const int32_t *ids = e->ids + e->offset[i] + e->prompt_len[i];
        int32_t len = e->offset[i + 1] - e->offset[i] - e->prompt_len[i], cut = len;
        if (s->config->response.truncate == RLHF__TRUNCATE_PERIOD)
            cut = rlhf__response_period(s->rules, ids, len);
        x->no_period[i] = cut < 0;
        x->scored_len[i] = cut < 0 ? len : cut;
        size_t bytes = 0;
        x->text[i] =
            rlhf__tokenizer_text(rlhf__response_rules_tok(s->rules), ids, (size_t)x->scored_len[i],
                                 RLHF__DECODE_SKIP_SPECIAL, &bytes);
        ok = x->text[i] != NULL;
        if (ok) bytes = rlhf__response_text_end(s->rules, x->text[i], bytes);
        x->response[i] = (rlhf_str){x->text[i], bytes};
        x->prompt[i] = prompt[i].text;
        x->meta[i] = prompt[i].meta;
    }
    if (ok) return RLHF_OK;
    rlhf__scored_finish(x);
    return RLHF__NOMEM(err, "out of memory for the texts of %u responses", e->n);
}

// ---- plugins ----

void rlhf__cut_rows_finish(struct rlhf__cut_rows *c) {
    free(c->ids);
    free(c->offset);
    free(c->token);
    memset(c, 0, sizeof *c);
}

rlhf_status rlhf__cut_rows_init(struct rlhf__cut_rows *c, const struct rlhf__scored *x,
                                const struct rlhf__episodes *e, struct rlhf__error *err) {
    c->ids = calloc((size_t)e->total + 1, sizeof *c->ids);
    c->offset = calloc((size_t)e->n + 1, sizeof *c->offset);
    c->token = calloc((size_t)e->total + 1, sizeof *c->token);
    if (!c->ids || !c->offset || !c->token)
        return RLHF__NOMEM(err, "out of memory scoring %u rows", e->n);
    for (uint32_t i = 0; i < e->n; i++) {
        int32_t len = e->prompt_len[i] + x->scored_len[i];
        memcpy(c->ids + c->offset[i], e->ids + e->offset[i], (size_t)len * sizeof *c->ids);
        c->offset[i + 1] = c->offset[i] + len;
    }
    return RLHF_OK;
}

// raw[n] and c->token [offset[n]] (0 without per-token rewards) of one plugin.
static rlhf_status call(const struct rlhf__scorer *s, const struct rlhf__instance *plugin,
                        const struct rlhf__scored *x, const struct rlhf__episodes *e,
                        struct rlhf__cut_rows *c, float *raw, struct rlhf__error *err) {
    const rlhf_reward_ops *ops = &plugin->plugin->ops.reward;
    rlhf_reward_in in = {.size = sizeof in,
                         .n = e->n,
                         .phase = s->phase,
                         .prompt = x->prompt,
                         .response = x->response,
                         .meta = x->meta,
                         .ids = c->ids,
                         .offset = c->offset,
                         .prompt_len = e->prompt_len,
                         .finished = e->finished};
    int per_token = (ops->flags & RLHF_REWARD_PER_TOKEN) != 0;
    rlhf_reward_out out = {sizeof out, 0, raw, per_token ? c->token : NULL};
    memset(c->token, 0, (size_t)c->offset[e->n] * sizeof *c->token);
    for (uint32_t i = 0; i < e->n; i++)
        raw[i] = NAN; // a row left unwritten must not pass for 0
    rlhf_status st = ops->score(plugin->self, &in, &out);
    return st == RLHF_OK ? RLHF_OK : rlhf__plugin_call_failed(plugin, "score()", st, err);
}

// raw[i] += what the plugin pays row i token by token.
static void add_tokens(const struct rlhf__cut_rows *c, uint32_t n, float *raw) {
    for (uint32_t i = 0; i < n; i++) {
        double sum = (double)raw[i];
        for (int32_t k = c->offset[i]; k < c->offset[i + 1]; k++)
            sum += (double)c->token[k];
        raw[i] = (float)sum;
    }
}

rlhf_status rlhf__score_alone(const struct rlhf__scorer *s, const struct rlhf__instance *plugin,
                              const struct rlhf__scored *x, const struct rlhf__episodes *e,
                              float *raw, struct rlhf__error *err) {
    struct rlhf__cut_rows c = {0};
    rlhf_status st = rlhf__cut_rows_init(&c, x, e, err);
    if (st == RLHF_OK) st = call(s, plugin, x, e, &c, raw, err);
    if (st == RLHF_OK) add_tokens(&c, e->n, raw);
    rlhf__cut_rows_finish(&c);
    return st;
}

// Reward k of the run, its per-token rewards added to the batch's.
static rlhf_status call_reward(const struct rlhf__scorer *s, size_t k, const struct rlhf__scored *x,
                               struct rlhf__episodes *e, struct rlhf__cut_rows *c, float *raw,
                               struct rlhf__error *err) {
    rlhf_status st = call(s, s->rewards[k], x, e, c, raw, err);
    int per_token = (s->rewards[k]->plugin->ops.reward.flags & RLHF_REWARD_PER_TOKEN) != 0;
    if (st != RLHF_OK || !per_token) return st;
    double weight = s->config->reward[k].weight;
    float *sum = e->token[RLHF__TOKEN_REWARD];
    for (uint32_t i = 0; i < e->n; i++)
        for (int32_t j = e->prompt_len[i]; j < c->offset[i + 1] - c->offset[i]; j++)
            sum[e->offset[i] + j] += (float)(weight * (double)c->token[c->offset[i] + j]);
    return RLHF_OK;
}

// ---- values that are not finite ----

static int row_is_finite(const struct rlhf__episodes *e, uint32_t i, float value) {
    if (!isfinite(value)) return 0;
    for (int32_t j = e->offset[i]; j < e->offset[i + 1]; j++)
        if (!isfinite(e->token[RLHF__TOKEN_REWARD][j])) return 0;
    return 1;
}

static rlhf_status refuse(const struct rlhf__scorer *s, size_t k, const struct rlhf__scored *x,
                          uint32_t i, float value, struct rlhf__error *err) {
    const struct rlhf__instance *p = s->rewards[k];
    int shown = (int)(x->response[i].len < 60 ? x->response[i].len : 60);
    return rlhf__fail(err, RLHF_E_NUMERIC,
                      "reward %s (%s) gave %g for row %u of phase %llu, response \"%.*s\"; "
                      "rewards.nan_policy says stop (zero and drop are allowed too)",
                      s->config->reward[k].name, p->plugin->desc.id, (double)value, i,
                      (unsigned long long)s->phase + 1, shown, x->response[i].ptr);
}

static rlhf_status handle_not_finite(const struct rlhf__scorer *s, const struct rlhf__scored *x,
                                     struct rlhf__episodes *e, size_t k, uint8_t *keep, float *raw,
                                     int64_t *count, struct rlhf__error *err) {
    for (uint32_t i = 0; i < e->n; i++) {
        if (row_is_finite(e, i, raw[i])) continue;
        ++*count;
        if (s->config->rewards.nan_policy == RLHF__NAN_STOP) return refuse(s, k, x, i, raw[i], err);
        if (s->config->rewards.nan_policy == RLHF__NAN_DROP) keep[i] = 0;
        raw[i] = 0;
        for (int32_t j = e->offset[i]; j < e->offset[i + 1]; j++)
            e->token[RLHF__TOKEN_REWARD][j] = 0;
    }
    return RLHF_OK;
}

static void report(const struct rlhf__scorer *s, size_t k, const float *raw, const uint8_t *keep,
                   uint32_t n) {
    if (!s->metric) return;
    double mean, std;
    char name[192];
    rlhf__mean_std(raw, keep, n, &mean, &std);
    snprintf(name, sizeof name, "rewards/%s/mean", s->config->reward[k].name);
    s->metric(s->metric_ctx, name, mean);
    snprintf(name, sizeof name, "rewards/%s/std", s->config->reward[k].name);
    s->metric(s->metric_ctx, name, std);
}

// seq: what plugins pay at the end of a row; raw: that and what they pay token by token.
static rlhf_status score_all(const struct rlhf__scorer *s, const struct rlhf__scored *x,
                             struct rlhf__episodes *e, struct rlhf__cut_rows *c, uint8_t *keep,
                             float *seq, float *raw, struct rlhf__error *err) {
    int64_t not_finite = 0;
    for (size_t k = 0; k < s->config->n_reward; k++) {
        float *own = seq + k * e->n, *all = raw + k * e->n;
        rlhf_status st = call_reward(s, k, x, e, c, own, err);
        if (st == RLHF_OK) st = handle_not_finite(s, x, e, k, keep, own, &not_finite, err);
        if (st != RLHF_OK) return st;
        memcpy(all, own, e->n * sizeof *all);
        add_tokens(c, e->n, all);
        for (uint32_t i = 0; i < e->n; i++)
            if (!isfinite(all[i])) all[i] = own[i]; // its token rewards were not finite
    }
    for (size_t k = 0; k < s->config->n_reward; k++)
        report(s, k, raw + k * e->n, keep, e->n);
    if (s->metric) s->metric(s->metric_ctx, "rewards/not_finite", (double)not_finite);
    for (uint32_t i = 0; i < e->n; i++)
        if (keep[i]) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_NUMERIC, "every reward of phase %llu was not finite",
                      (unsigned long long)s->phase + 1);
}

rlhf_status rlhf__score(const struct rlhf__scorer *s, const struct rlhf__scored *x,
                        struct rlhf__episodes *e, uint8_t *keep, float *raw,
                        struct rlhf__error *err) {
    size_t cells = s->config->n_reward * e->n;
    float *own = calloc(2 * cells + 1, sizeof *own);
    struct rlhf__cut_rows c = {0};
    memset(keep, 1, e->n);
    rlhf_status st = RLHF_OK;
    if (!own) st = RLHF__NOMEM(err, "out of memory scoring %u rows", e->n);
    if (!raw && own) raw = own + cells;
    if (st == RLHF_OK) st = rlhf__cut_rows_init(&c, x, e, err);
    if (st == RLHF_OK) st = score_all(s, x, e, &c, keep, own, raw, err);
    if (st == RLHF_OK) rlhf__mix(s->config, own, keep, e->finished, x->no_period, e->n, e->score);
    rlhf__cut_rows_finish(&c);
    free(own);
    return st;
}
