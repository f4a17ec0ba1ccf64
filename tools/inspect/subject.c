// subject.c: see subject.h.
#include "inspect/subject.h"

#include "inspect/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Attention is kept for FEW to TOP heads. Between these limits, all heads together have at most
// PAIRS pairs of tokens, so a long prompt gets fewer heads. For prompts of more than
// RLHF__ATTENTION_TOKENS tokens, no attention is kept.
enum { TOP = 32, PAIRS = 60000, FEW = 4 };

#define WRONG 1e-2 // relative to the largest number; rounding in f32 is far smaller

// ---- checks ----

static rlhf_status check_pair(const struct rlhf__subject *s, struct rlhf__error *err) {
    const struct rlhf__model *a = s->of[0].model, *b = s->of[1].model;
    const rlhf_tap_info *i = &s->reading[0].tap.info, *k = &s->reading[1].tap.info;
    if (i->n_layer != k->n_layer || i->n_head != k->n_head || i->n_kv_head != k->n_kv_head ||
        i->head_dim != k->head_dim || i->d_model != k->d_model || i->norm != k->norm ||
        i->positions != k->positions)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the models have different shapes: '%s' has %d layers of %d heads and "
                          "width %d, '%s' has %d of %d and width %d; base and tuned must be of one "
                          "architecture",
                          a->dir, i->n_layer, i->n_head, i->d_model, b->dir, k->n_layer, k->n_head,
                          k->d_model);
    return RLHF_OK;
}

static rlhf_status check_texts(const struct rlhf__subject *s, struct rlhf__error *err) {
    if (s->n_models < 2) return RLHF_OK;
    const struct rlhf__model *a = s->of[0].model, *b = s->of[1].model;
    if (a->info.n_vocab == b->info.n_vocab && rlhf__tokenizer_equal(a->tok, b->tok)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the models have different tokenizers: the tokens of '%s' are not those of "
                      "'%s'",
                      a->dir, b->dir);
}

static rlhf_status encode(struct rlhf__subject *s, int bos, struct rlhf__error *err) {
    const struct rlhf__model *m = s->of[0].model;
    const rlhf_str text = {s->prompt, strlen(s->prompt)};
    uint32_t flags = RLHF__ENCODE_TEMPLATE;
    if (bos && !rlhf__tokenizer_has_bos(m->tok)) flags |= RLHF__ENCODE_BOS;
    rlhf_status st = rlhf__tokenizer_encode(m->tok, text, flags, 0, &s->ids, err);
    if (st == RLHF_E_INVALID && bos) return rlhf__error_context(err, "--bos");
    if (st != RLHF_OK) return st;
    const size_t most = (size_t)m->info.n_ctx - (s->explained == RLHF__EXPLAINED_VALUE);
    if (s->ids.n == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--prompt is empty; at least one token is needed (--bos gives one)");
    if (s->ids.n > most)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--prompt has %zu tokens, more than the %zu that fit the context of '%s'",
                          s->ids.n, most, m->dir);
    return RLHF_OK;
}

// ---- one model ----

static rlhf_status direct(struct rlhf__subject *s, uint32_t k, struct rlhf__error *err) {
    const struct rlhf__sides sides = rlhf__words_sides(&s->words);
    const struct rlhf__reading *r = &s->reading[k];
    struct rlhf__direction *dir = &s->direction[k];
    if (s->explained == RLHF__EXPLAINED_WORDS) return rlhf__direction_words(dir, r, &sides, err);
    if (s->explained == RLHF__EXPLAINED_VALUE) return rlhf__direction_value(dir, r, err);
    return rlhf__direction_score(dir, r, s->of[k].gain, s->of[k].bias, err);
}

static rlhf_status measure_head(struct rlhf__subject *s, uint32_t k, struct rlhf__error *err) {
    const uint32_t n = (uint32_t)s->ids.n;
    const struct rlhf__subject_model *of = &s->of[k];
    float *raw = malloc(n * sizeof *raw);
    s->measured[k] = malloc(n * sizeof **s->measured);
    rlhf_status st = RLHF_OK;
    if (!raw || !s->measured[k]) st = RLHF__NOMEM(err, "out of memory for scores");
    if (st == RLHF_OK)
        st = s->explained == RLHF__EXPLAINED_VALUE
                 ? rlhf__measure_value(of->model, s->ids.data, n, raw, err)
                 : rlhf__measure_score(of->model, s->ids.data, n, raw, err);
    for (uint32_t t = 0; st == RLHF_OK && t < n; t++)
        s->measured[k][t] = s->explained == RLHF__EXPLAINED_VALUE
                                ? (double)raw[t]
                                : of->gain * (double)raw[t] + of->bias;
    free(raw);
    return st;
}

// Sets the numbers that the models themselves compute. If the user explains words, these are the
// logit differences of the next-token predictions.
static rlhf_status measure(struct rlhf__subject *s, struct rlhf__error *err) {
    if (s->explained == RLHF__EXPLAINED_WORDS) {
        const struct rlhf__sides sides = rlhf__words_sides(&s->words);
        const struct rlhf__reading *const pair[] = {&s->reading[0], &s->reading[s->n_models - 1]};
        RLHF_TRY(rlhf__next_tokens_take(&s->next, pair, &sides, err));
        for (uint32_t k = 0; k < s->n_models; k++)
            s->measured[k] = s->next.difference[k];
        return RLHF_OK;
    }
    for (uint32_t k = 0; k < s->n_models; k++)
        RLHF_TRY(measure_head(s, k, err));
    return RLHF_OK;
}

// Check that contributions add up to the numbers that the models compute, up to rounding.
static rlhf_status compare_sums(struct rlhf__subject *s, struct rlhf__error *err) {
    double most = 1;
    for (uint32_t k = 0; k < s->n_models; k++)
        for (size_t t = 0; t < s->ids.n; t++) {
            const double wrong = fabs(s->attribution[k].sum[t] - s->measured[k][t]);
            most = fmax(most, fabs(s->measured[k][t]));
            if (!(wrong <= s->error)) s->error = wrong;
        }
    if (s->error <= WRONG * most) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the contributions do not add up to what the models compute: they differ by "
                      "%.2g, so the tap of '%s' or of '%s' is wrong (model plugin, %s)",
                      s->error, s->of[0].model->dir, s->of[s->n_models - 1].model->dir,
                      RLHF_EXT_TAP);
}

// ---- the heads whose attention is kept ----

// Returns how much a head matters: over all tokens of the prompt, the largest change of its
// contribution between the two models. With only one model, returns the head's largest
// contribution.
static double size_of(const struct rlhf__subject *s, size_t layer, size_t h) {
    const size_t heads = (size_t)s->attribution[0].heads, n = s->ids.n;
    double most = 0;
    for (size_t t = 0; t < n; t++) {
        const size_t at = (layer * n + t) * heads + h;
        const double was = s->attribution[0].head[at];
        const double size = fabs(s->n_models < 2 ? was : s->attribution[1].head[at] - was);
        if (size > most) most = size;
    }
    return most;
}

static rlhf_status choose_heads(struct rlhf__subject *s, struct rlhf__error *err) {
    const size_t heads = (size_t)s->attribution[0].heads, layers = (size_t)s->attribution[0].layers;
    const size_t n = s->ids.n, fit = PAIRS / (n * n);
    size_t most = fit < FEW ? FEW : fit < TOP ? fit : TOP;
    if (most > heads * layers) most = heads * layers;
    double *key = calloc(most + 1, sizeof *key);
    s->top = malloc(2 * most * sizeof *s->top);
    if (!key || !s->top) {
        free(key);
        return RLHF__NOMEM(err, "out of memory for the list of heads");
    }
    for (size_t i = 0; i < layers * heads; i++) {
        const double size = size_of(s, i / heads, i % heads);
        size_t at = s->n_top < most ? s->n_top++ : most;
        if (at == most && !(size > key[--at])) continue;
        for (; at > 0 && size > key[at - 1]; at--) {
            key[at] = key[at - 1];
            memcpy(s->top + 2 * at, s->top + 2 * at - 2, 2 * sizeof *s->top);
        }
        key[at] = size;
        s->top[2 * at] = (int32_t)(i / heads);
        s->top[2 * at + 1] = (int32_t)(i % heads);
    }
    free(key);
    return RLHF_OK;
}

static rlhf_status attend(struct rlhf__subject *s, struct rlhf__error *err) {
    RLHF_TRY(choose_heads(s, err));
    if (s->ids.n > RLHF__ATTENTION_TOKENS) return RLHF_OK;
    for (uint32_t k = 0; k < s->n_models; k++) {
        RLHF_TRY(rlhf__attention_take(&s->attention[k], &s->reading[k], &s->attribution[k], s->top,
                                      s->n_top, err));
        if (!(s->attention[k].error <= s->source_error)) s->source_error = s->attention[k].error;
    }
    return RLHF_OK;
}

// ---- all ----

struct ticking {
    const struct rlhf__subject_how *how;
    int32_t layers;
};

static int tick(void *ctx, int32_t layer) {
    const struct ticking *k = ctx;
    rlhf__watch_seen(k->how->watch, "patching layers", layer, k->layers);
    return k->how->cancelled && *k->how->cancelled;
}

static rlhf_status patch(struct rlhf__subject *s, const struct rlhf__subject_how *how,
                         struct rlhf__error *err) {
    struct ticking k = {how, s->attribution[0].layers};
    const struct rlhf__patched_model of[] = {{&s->reading[0], &s->direction[0]},
                                             {&s->reading[1], &s->direction[1]}};
    RLHF_TRY(rlhf__patching_take(&s->patching, &of[0], &of[1], &s->attribution[0], tick, &k, err));
    s->patched = 1;
    return RLHF_OK;
}

static rlhf_status read_models(struct rlhf__subject *s, struct rlhf__error *err) {
    for (uint32_t k = 0; k < s->n_models; k++)
        RLHF_TRY(rlhf__reading_take(&s->reading[k], s->of[k].model, s->ids.data, (uint32_t)s->ids.n,
                                    err));
    return RLHF_OK;
}

rlhf_status rlhf__subject_compute(struct rlhf__subject *s, const struct rlhf__subject_how *how,
                                  struct rlhf__error *err) {
    for (uint32_t k = 0; k < s->n_models; k++) // before any work
        RLHF_TRY(rlhf__tap_open(s->of[k].model, &s->reading[k].tap, err));
    if (s->n_models == 2) RLHF_TRY(check_pair(s, err));
    RLHF_TRY(check_texts(s, err));
    RLHF_TRY(encode(s, how->bos, err));
    if (s->explained == RLHF__EXPLAINED_WORDS)
        RLHF_TRY(rlhf__words_find(&s->words, s->of[0].model->tok, s->prompt, err));
    RLHF_TRY(read_models(s, err));
    RLHF_TRY(measure(s, err));
    for (uint32_t k = 0; k < s->n_models; k++) {
        RLHF_TRY(direct(s, k, err));
        RLHF_TRY(rlhf__attribution_make(&s->attribution[k], &s->reading[k], &s->direction[k], err));
    }
    RLHF_TRY(compare_sums(s, err));
    RLHF_TRY(attend(s, err));
    return s->n_models == 2 && how->patch ? patch(s, how, err) : RLHF_OK;
}

void rlhf__subject_finish(struct rlhf__subject *s) {
    for (uint32_t k = 0; k < 2; k++) {
        if (s->explained != RLHF__EXPLAINED_WORDS) free(s->measured[k]);
        rlhf__attention_finish(&s->attention[k]);
        rlhf__attribution_finish(&s->attribution[k]);
        rlhf__direction_finish(&s->direction[k]);
        rlhf__reading_finish(&s->reading[k]);
    }
    rlhf__patching_finish(&s->patching);
    rlhf__next_tokens_finish(&s->next);
    rlhf__words_finish(&s->words);
    rlhf__ids_finish(&s->ids);
    free(s->top);
    memset(s, 0, sizeof *s);
}
