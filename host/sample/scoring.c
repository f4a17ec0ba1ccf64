// scoring.c: see scoring.h.
#include "sample/scoring.h"

#include "sample/mixing.h"

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
    free(s->verdict);
    memset(s, 0, sizeof *s);
}

rlhf_status rlhf__scored_init(struct rlhf__scored *x, const struct rlhf__scorer *s,
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
        const struct rlhf__prompt prompt = rlhf__prompts_get(s->prompts, e->source[i]);
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
    void *p[7] = {0};
    int ok = joined(&p[0], a->prompt, n, b->prompt, more, sizeof *a->prompt) &&
             joined(&p[1], a->response, n, b->response, more, sizeof *a->response) &&
             joined(&p[2], a->meta, n, b->meta, more, sizeof *a->meta) &&
             joined(&p[3], a->text, n, b->text, more, sizeof *a->text) &&
             joined(&p[4], a->scored_len, n, b->scored_len, more, sizeof *a->scored_len) &&
             joined(&p[5], a->no_period, n, b->no_period, more, 1) &&
             joined(&p[6], a->verdict, n, b->verdict, more, 1);
    for (int k = 0; !ok && k < 7; k++)
        free(p[k]);
    if (!ok) return RLHF__NOMEM(err, "out of memory for the texts of %zu responses", n + more);
    for (size_t i = 0; i < more; i++)
        b->text[i] = NULL; // a's now
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
                               .n = (uint32_t)(n + more)};
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

// ---- plugins ----

void rlhf__cut_rows_finish(struct rlhf__cut_rows *c) {
    free(c->ids);
    free(c->offset);
    free(c->token);
    free(c->verdict);
    free(c->failed);
    memset(c, 0, sizeof *c);
}

rlhf_status rlhf__cut_rows_init(struct rlhf__cut_rows *c, const struct rlhf__scored *x,
                                const struct rlhf__rows *e, struct rlhf__error *err) {
    c->ids = calloc((size_t)e->total + 1, sizeof *c->ids);
    c->offset = calloc((size_t)e->n + 1, sizeof *c->offset);
    c->token = calloc((size_t)e->total + 1, sizeof *c->token);
    c->verdict = calloc((size_t)e->n + 1, 1);
    c->failed = calloc((size_t)e->n + 1, 1);
    if (!c->ids || !c->offset || !c->token || !c->verdict || !c->failed)
        return RLHF__NOMEM(err, "out of memory scoring %u rows", e->n);
    for (uint32_t i = 0; i < e->n; i++) {
        int32_t len = e->prompt_len[i] + x->scored_len[i];
        memcpy(c->ids + c->offset[i], e->ids + e->offset[i], (size_t)len * sizeof *c->ids);
        c->offset[i + 1] = c->offset[i] + len;
    }
    return RLHF_OK;
}

// What a row that the plugin could not score does: the run ends.
static rlhf_status refuse_failed(const struct rlhf__scorer *s, const struct rlhf__instance *plugin,
                                 const struct rlhf__cut_rows *c, uint32_t n,
                                 struct rlhf__error *err) {
    const uint8_t *row = memchr(c->failed, 1, n);
    if (!row) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INTERNAL, "reward %s, score(), phase %llu: it could not score row %u",
        plugin->plugin->desc.id, (unsigned long long)s->phase + 1, (unsigned)(row - c->failed));
}

// raw[n], c->token [offset[n]] (0 without per-token rewards) and c->verdict[n] of one plugin.
static rlhf_status call(const struct rlhf__scorer *s, const struct rlhf__instance *plugin,
                        const struct rlhf__scored *x, const struct rlhf__rows *e,
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
                         .finished = e->finished,
                         .group = e->group};
    rlhf_reward_out out = {
        .size = sizeof out, .seq = raw, .verdict = c->verdict, .failed = c->failed};
    if (ops->flags & RLHF_REWARD_PER_TOKEN) out.token = c->token;
    memset(c->verdict, 0, e->n);
    memset(c->failed, 0, e->n);
    memset(c->token, 0, (size_t)c->offset[e->n] * sizeof *c->token);
    for (uint32_t i = 0; i < e->n; i++)
        raw[i] = NAN; // a row left unwritten must not pass for 0
    struct rlhf__call running = rlhf__call_begin(plugin, "score()");
    rlhf_status st = rlhf__call_end(&running, ops->score(plugin->self, &in, &out), err);
    return st == RLHF_OK ? refuse_failed(s, plugin, c, e->n, err) : st;
}

// What row i is paid in all: seq and what the plugin pays the response token by token.
static float row_reward(const struct rlhf__cut_rows *c, const struct rlhf__rows *e, uint32_t i,
                        float seq) {
    double sum = (double)seq;
    for (int32_t k = c->offset[i] + e->prompt_len[i]; k < c->offset[i + 1]; k++)
        sum += (double)c->token[k];
    return (float)sum;
}

rlhf_status rlhf__score_alone(const struct rlhf__scorer *s, const struct rlhf__instance *plugin,
                              const struct rlhf__scored *x, const struct rlhf__rows *e, float *raw,
                              struct rlhf__error *err) {
    struct rlhf__cut_rows c = {0};
    rlhf_status st = rlhf__cut_rows_init(&c, x, e, err);
    if (st == RLHF_OK) st = call(s, plugin, x, e, &c, raw, err);
    for (uint32_t i = 0; st == RLHF_OK && i < e->n; i++)
        raw[i] = row_reward(&c, e, i, raw[i]);
    rlhf__cut_rows_finish(&c);
    return st;
}

// ---- values that are not finite ----

static rlhf_status refuse(const struct rlhf__scorer *s, size_t k, const struct rlhf__scored *x,
                          uint32_t i, float value, struct rlhf__error *err) {
    const struct rlhf__instance *p = s->rewards[k];
    int shown = (int)(x->response[i].len < 60 ? x->response[i].len : 60);
    return rlhf__fail(err, RLHF_E_NUMERIC,
                      "reward %s (%s) gave %g for row %u of phase %llu, response \"%.*s\"; "
                      "rewards.nan_policy says stop (zero and drop are allowed too)",
                      s->config->reward[k].name, p->plugin->desc.id,
                      isnan(value) ? (double)NAN : (double)value, i, // no "-nan"
                      (unsigned long long)s->phase + 1, shown, x->response[i].ptr);
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

// ---- all rewards of a run ----

struct ledger {
    struct rlhf__pay *pay; // [n_reward], into numbers (row: or into the caller's raw)
    float *numbers;
    struct rlhf__cut_rows cut;
    uint8_t *keep; // [n]
    int64_t not_finite;
};

static int pays_tokens(const struct rlhf__scorer *s, size_t k) {
    return (s->rewards[k]->plugin->ops.reward.flags & RLHF_REWARD_PER_TOKEN) != 0;
}

static rlhf_status ledger_init(struct ledger *l, const struct rlhf__scorer *s,
                               const struct rlhf__scored *x, const struct rlhf__rows *e, float *raw,
                               struct rlhf__error *err) {
    size_t n_reward = s->config->n_reward, cells = 2 * n_reward * e->n;
    for (size_t k = 0; k < n_reward; k++)
        if (pays_tokens(s, k)) cells += e->total;
    l->pay = calloc(n_reward + 1, sizeof *l->pay);
    l->numbers = calloc(cells + 1, sizeof *l->numbers);
    if (!l->pay || !l->numbers) return RLHF__NOMEM(err, "out of memory scoring %u rows", e->n);
    float *seq = l->numbers, *row = seq + n_reward * e->n, *token = row + n_reward * e->n;
    if (raw) row = raw;
    for (size_t k = 0; k < n_reward; k++) {
        l->pay[k] = (struct rlhf__pay){.seq = seq + k * e->n, .row = row + k * e->n};
        if (!pays_tokens(s, k)) continue;
        l->pay[k].token = token;
        token += e->total;
    }
    return rlhf__cut_rows_init(&l->cut, x, e, err);
}

static void ledger_finish(struct ledger *l) {
    free(l->pay);
    free(l->numbers);
    rlhf__cut_rows_finish(&l->cut);
}

// pay->row, with the NaN policy: a row whose pay is not finite has none of this reward.
static rlhf_status take_rows(const struct rlhf__scorer *s, const struct rlhf__scored *x,
                             const struct rlhf__rows *e, size_t k, struct ledger *l,
                             struct rlhf__error *err) {
    const struct rlhf__pay *pay = &l->pay[k];
    struct rlhf__cut_rows *c = &l->cut;
    for (uint32_t i = 0; i < e->n; i++) {
        pay->row[i] = row_reward(c, e, i, pay->seq[i]);
        if (isfinite(pay->row[i])) continue;
        l->not_finite++;
        if (s->config->mixing.nan_policy == RLHF__NAN_STOP)
            return refuse(s, k, x, i, pay->row[i], err);
        if (s->config->mixing.nan_policy == RLHF__NAN_DROP) l->keep[i] = 0;
        pay->seq[i] = pay->row[i] = 0;
        for (int32_t j = c->offset[i]; j < c->offset[i + 1]; j++)
            c->token[j] = 0;
    }
    return RLHF_OK;
}

// What the reward that was called last finds joins what others did: right is what all that can tell
// find right.
static void take_verdicts(struct rlhf__scored *x, const struct rlhf__cut_rows *c) {
    for (uint32_t i = 0; i < x->n; i++)
        if (c->verdict[i] != RLHF_VERDICT_NONE && x->verdict[i] != RLHF_VERDICT_WRONG)
            x->verdict[i] =
                c->verdict[i] == RLHF_VERDICT_RIGHT ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_WRONG;
}

static rlhf_status score_one(const struct rlhf__scorer *s, struct rlhf__scored *x,
                             const struct rlhf__rows *e, size_t k, struct ledger *l,
                             struct rlhf__error *err) {
    const struct rlhf__pay *pay = &l->pay[k];
    const struct rlhf__cut_rows *c = &l->cut;
    rlhf_status st = call(s, s->rewards[k], x, e, &l->cut, pay->seq, err);
    if (st == RLHF_OK) take_verdicts(x, c);
    if (st == RLHF_OK) st = take_rows(s, x, e, k, l, err);
    for (uint32_t i = 0; st == RLHF_OK && pay->token && i < e->n; i++)
        for (int32_t j = e->prompt_len[i]; j < c->offset[i + 1] - c->offset[i]; j++)
            pay->token[e->offset[i] + j] = c->token[c->offset[i] + j];
    return st;
}

static rlhf_status score_all(const struct rlhf__scorer *s, struct rlhf__scored *x,
                             const struct rlhf__rows *e, struct ledger *l,
                             struct rlhf__error *err) {
    for (size_t k = 0; k < s->config->n_reward; k++) {
        char doing[64];
        snprintf(doing, sizeof doing, "reward %.40s", s->config->reward[k].name);
        rlhf__watch_seen(s->watch, doing, 0, 0);
        rlhf_status st = score_one(s, x, e, k, l, err);
        if (st != RLHF_OK) return st;
    }
    for (size_t k = 0; k < s->config->n_reward; k++)
        report(s, k, l->pay[k].row, l->keep, e->n);
    if (s->metric) s->metric(s->metric_ctx, "rewards/not_finite", (double)l->not_finite);
    const double correct = rlhf__scored_correct(x, l->keep);
    if (s->metric && !isnan(correct))
        s->metric(s->metric_ctx, "objective/verifiable_correct_rate", correct);
    for (uint32_t i = 0; i < e->n; i++)
        if (l->keep[i]) return RLHF_OK;
    if (s->may_drop_all) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_NUMERIC, "every reward of phase %llu was not finite",
                      (unsigned long long)s->phase + 1);
}

rlhf_status rlhf__score(const struct rlhf__scorer *s, struct rlhf__scored *x, struct rlhf__rows *e,
                        uint8_t *keep, float *raw, struct rlhf__error *err) {
    struct ledger l = {.keep = keep};
    memset(keep, 1, e->n);
    rlhf_status st = ledger_init(&l, s, x, e, raw, err);
    if (st == RLHF_OK) st = score_all(s, x, e, &l, err);
    if (st == RLHF_OK) rlhf__mix(s->config, l.pay, keep, x->no_period, e);
    for (uint32_t i = 0; st == RLHF_OK && i < e->n; i++)
        if (!isfinite(e->reward[i]))
            st = rlhf__fail(err, RLHF_E_NUMERIC,
                            "the rewards of row %u of phase %llu add up to %g: the weights are too "
                            "large for them",
                            i, (unsigned long long)s->phase + 1, (double)e->reward[i]);
    ledger_finish(&l);
    return st;
}
