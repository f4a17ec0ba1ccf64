// classifier.c: see classifier.h.
#include "model/classifier.h"

#include "tensors/gguf_file.h"
#include "weights/wrong_dir.h"

#include <stdlib.h>

struct rlhf__classifier {
    struct rlhf__model *model;
};

rlhf_status rlhf__classifier_open(const struct rlhf__model_env *env, const char *dir,
                                  const struct rlhf__model_adapter *adapter,
                                  struct rlhf__classifier **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__classifier *c = calloc(1, sizeof *c);
    if (!c) return RLHF__NOMEM(err, "out of memory opening a classifier");
    struct rlhf__model_spec spec = {.dir = dir, .role = "classifier", .n_labels = -1, .frozen = 1};
    if (adapter) spec.adapter = *adapter;
    rlhf_status st = rlhf__model_open(env, &spec, &c->model, err);
    if (st == RLHF_OK && c->model->n_labels == 0)
        st = rlhf__gguf_is(c->model->dir)
                 ? rlhf__wrong_head(c->model->dir, "classifier", err)
                 : rlhf__fail(err, RLHF_E_INVALID,
                              "%s/config.json: the model is not a classifier (architectures has no "
                              "...ForSequenceClassification)",
                              c->model->dir);
    if (st != RLHF_OK) {
        rlhf__classifier_close(c);
        return st;
    }
    *out = c;
    return RLHF_OK;
}

void rlhf__classifier_close(struct rlhf__classifier *c) {
    if (!c) return;
    rlhf__model_close(c->model);
    free(c);
}

rlhf_status rlhf__classifier_load(struct rlhf__classifier *c, struct rlhf__error *err) {
    return rlhf__model_load(c->model, err);
}

struct rlhf__model *rlhf__classifier_model(const struct rlhf__classifier *c) {
    return c->model;
}

const struct rlhf__labels *rlhf__classifier_labels(const struct rlhf__classifier *c) {
    return &c->model->labels;
}

// Encode texts[i..) into `ids` and `offset` until the microbatch is full. Returns the index of the
// next text, or n + 1 after a failure.
static uint32_t encode(const struct rlhf__classifier *c, uint32_t i, uint32_t n,
                       const rlhf_str *texts, const uint8_t *rendered, struct rlhf__ids *ids,
                       int32_t *offset, struct rlhf__error *err) {
    const struct rlhf__tokenizer *tok = c->model->tok;
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    size_t n_ctx = (size_t)c->model->info.n_ctx;
    uint32_t rows = 0;
    ids->n = 0;
    for (; i < n && (rows == 0 || ids->n + n_ctx <= RLHF__MICROBATCH_TOKENS); i++, rows++) {
        size_t before = ids->n;
        const uint32_t flags =
            rendered && rendered[i] ? RLHF__ENCODE_SPECIAL : RLHF__ENCODE_TEMPLATE;
        rlhf_status st = rlhf__tokenizer_encode(tok, texts[i], flags, n_ctx, ids, err);
        // The model needs at least one token, even for an empty text.
        if (st == RLHF_OK && ids->n == before)
            st = rlhf__ids_push(ids, info->eos >= 0 ? info->eos : 0, err);
        if (st != RLHF_OK) return n + 1;
        offset[rows + 1] = (int32_t)ids->n;
    }
    return i;
}

rlhf_status rlhf__classifier_logits(struct rlhf__classifier *c, uint32_t n, const rlhf_str *texts,
                                    const uint8_t *rendered, float *logits,
                                    struct rlhf__error *err) {
    struct rlhf__ids ids = {0};
    int32_t *offset = calloc((size_t)n + 1, sizeof *offset);
    int32_t *ones = calloc((size_t)n + 1, sizeof *ones);
    rlhf_status st = RLHF_OK;
    if (!offset || !ones) st = RLHF__NOMEM(err, "out of memory for %u texts", n);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++)
        ones[i] = 1;
    rlhf_dist dist = RLHF_DIST_WHOLE;
    rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_SCORE, .dist = &dist};
    for (uint32_t from = 0, to; st == RLHF_OK && from < n; from = to) {
        to = encode(c, from, n, texts, rendered, &ids, offset, err);
        if (to > n) {
            st = err ? err->code : RLHF_E_NOMEM;
            break;
        }
        rlhf_batch b = {.size = sizeof b,
                        .n = to - from,
                        .total = (uint32_t)ids.n,
                        .ids = ids.data,
                        .offset = offset,
                        .prompt_len = ones};
        rlhf_heads h = {.size = sizeof h,
                        .score = logits + (size_t)from * (size_t)c->model->n_labels};
        st = rlhf__model_forward(c->model, &b, &f, &h, err);
    }
    rlhf__model_trim(c->model);
    rlhf__ids_finish(&ids);
    free(offset);
    free(ones);
    return st;
}

rlhf_status rlhf__classifier_largest(const struct rlhf__model *m, const struct rlhf__rows *e,
                                     struct rlhf__error *err) {
    const int32_t n_ctx = m->info.n_ctx;
    int32_t *ids = calloc((size_t)RLHF__MICROBATCH_TOKENS + (size_t)n_ctx, sizeof *ids);
    int32_t *offset = calloc((size_t)e->n + 1, sizeof *offset);
    int32_t *ones = calloc((size_t)e->n + 1, sizeof *ones);
    float *score = calloc((size_t)e->n + 1, (size_t)m->n_labels * sizeof *score);
    uint32_t n = 0;
    rlhf_status st = RLHF_OK;
    if (!ids || !offset || !ones || !score)
        st = RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    for (; st == RLHF_OK && n < e->n; n++) {
        const int32_t len = e->offset[n + 1] - e->offset[n];
        if (n && offset[n] + n_ctx > RLHF__MICROBATCH_TOKENS) break;
        offset[n + 1] = offset[n] + (len < n_ctx ? len : n_ctx);
        ones[n] = 1;
    }
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_SCORE, .dist = &dist};
    const rlhf_heads h = {.size = sizeof h, .score = score};
    const rlhf_batch b = {.size = sizeof b,
                          .n = n,
                          .total = n ? (uint32_t)offset[n] : 0,
                          .ids = ids,
                          .offset = offset,
                          .prompt_len = ones};
    if (st == RLHF_OK && n) st = rlhf__model_forward(m, &b, &f, &h, err);
    rlhf__model_trim(m);
    free(ids);
    free(offset);
    free(ones);
    free(score);
    return st;
}
