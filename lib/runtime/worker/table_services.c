// table_services.c: see table_services.h.
#include "worker/table_services.h"

#include "worker/table_language.h"

#include <stdlib.h>
#include <string.h>

struct rlhf_classifier {
    uint32_t handle, n_labels;
    char **label;
};

struct rlhf_tokenizer {
    uint32_t handle;
    int32_t n_vocab;
};

struct rlhf_reward_model {
    uint32_t handle;
};

// ---- classifiers ----

static void classifier_free(struct rlhf_classifier *c) {
    for (uint32_t i = 0; c && c->label && i < c->n_labels; i++)
        free(c->label[i]);
    if (c) free(c->label);
    free(c);
}

static rlhf_status classifier_open(const rlhf_host *host, const char *path, rlhf_classifier **out) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    *out = NULL;
    struct rlhf_classifier *c = calloc(1, sizeof *c);
    if (!c) return RLHF_E_NOMEM;
    rlhf__table_begin_open(t, RLHF__CALL_CLASSIFIER_OPEN, path);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) {
        c->handle = rlhf__wire_get_u32(&in);
        c->n_labels = rlhf__wire_get_u32(&in);
        c->label = calloc((size_t)c->n_labels + 1, sizeof *c->label);
        if (!c->label) st = RLHF_E_NOMEM;
    }
    for (uint32_t i = 0; st == RLHF_OK && i < c->n_labels; i++) {
        const rlhf_str s = rlhf__wire_get_text(&in);
        c->label[i] = strndup(s.ptr, (size_t)s.len);
        if (!c->label[i]) st = RLHF_E_NOMEM;
    }
    rlhf__table_end(t);
    if (st == RLHF_OK)
        *out = c;
    else
        classifier_free(c);
    return st;
}

static void classifier_close(const rlhf_host *host, rlhf_classifier *c) {
    if (!c) return;
    rlhf__table_close(rlhf__table_behind(host), c->handle);
    classifier_free(c);
}

static int32_t classifier_n_labels(const rlhf_host *host, const rlhf_classifier *c) {
    (void)host;
    return (int32_t)c->n_labels;
}

static const char *classifier_label(const rlhf_host *host, const rlhf_classifier *c, int32_t i) {
    (void)host;
    return i >= 0 && (uint32_t)i < c->n_labels ? c->label[i] : NULL;
}

static rlhf_status classifier_logits(const rlhf_host *host, rlhf_classifier *c, uint32_t n,
                                     const rlhf_str *texts, float *logits) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    rlhf__table_begin(t, RLHF__CALL_CLASSIFIER_LOGITS, c->handle);
    rlhf__wire_u32(&t->frame, n);
    for (uint32_t i = 0; i < n; i++)
        rlhf__wire_text(&t->frame, texts[i].ptr, texts[i].len);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) st = rlhf__table_items(&in, sizeof *logits, (size_t)n * c->n_labels, logits);
    rlhf__table_end(t);
    return st;
}

// ---- tokenizers ----

static rlhf_status tokenizer_open(const rlhf_host *host, const char *path, rlhf_tokenizer **out) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    *out = NULL;
    struct rlhf_tokenizer *k = calloc(1, sizeof *k);
    if (!k) return RLHF_E_NOMEM;
    rlhf__table_begin_open(t, RLHF__CALL_TOKENIZER_OPEN, path);
    const rlhf_status st = rlhf__table_call(t, &in);
    k->handle = rlhf__wire_get_u32(&in);
    k->n_vocab = (int32_t)rlhf__wire_get_u32(&in);
    rlhf__table_end(t);
    if (st == RLHF_OK)
        *out = k;
    else
        free(k);
    return st;
}

static void tokenizer_close(const rlhf_host *host, rlhf_tokenizer *k) {
    if (!k) return;
    rlhf__table_close(rlhf__table_behind(host), k->handle);
    free(k);
}

static int32_t tokenizer_n_vocab(const rlhf_host *host, const rlhf_tokenizer *k) {
    (void)host;
    return k->n_vocab;
}

static rlhf_status tokenizer_encode(const rlhf_host *host, const rlhf_tokenizer *k, rlhf_str text,
                                    int32_t *ids, uint32_t cap, uint32_t *n) {
    return rlhf__table_encode(host, k->handle, text, ids, cap, n);
}

static rlhf_status tokenizer_decode(const rlhf_host *host, const rlhf_tokenizer *k,
                                    const int32_t *ids, uint32_t n, char *utf8, uint64_t cap,
                                    uint64_t *len) {
    return rlhf__table_decode(host, k->handle, ids, n, utf8, cap, len);
}

// ---- reward models ----

static rlhf_status model_open(const rlhf_host *host, const char *path, rlhf_reward_model **out) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    *out = NULL;
    struct rlhf_reward_model *m = calloc(1, sizeof *m);
    if (!m) return RLHF_E_NOMEM;
    rlhf__table_begin_open(t, RLHF__CALL_MODEL_OPEN, path);
    const rlhf_status st = rlhf__table_call(t, &in);
    m->handle = rlhf__wire_get_u32(&in);
    rlhf__table_end(t);
    if (st == RLHF_OK)
        *out = m;
    else
        free(m);
    return st;
}

static void model_close(const rlhf_host *host, rlhf_reward_model *m) {
    if (!m) return;
    rlhf__table_close(rlhf__table_behind(host), m->handle);
    free(m);
}

static rlhf_status model_score(const rlhf_host *host, rlhf_reward_model *m, uint32_t n,
                               const int32_t *ids, const int32_t *offset, const int32_t *prompt_len,
                               int32_t pooling, float *seq, float *token) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    const size_t total = (size_t)offset[n];
    rlhf__table_begin(t, RLHF__CALL_MODEL_SCORE, m->handle);
    rlhf__wire_u32(&t->frame, (uint32_t)pooling);
    rlhf__wire_u32(&t->frame, token != NULL);
    rlhf__table_rows(t, n, ids, offset, prompt_len);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) st = rlhf__table_items(&in, sizeof *seq, n, seq);
    if (st == RLHF_OK) st = rlhf__table_items(&in, sizeof *token, token ? total : 0, token);
    rlhf__table_end(t);
    return st;
}

// ---- the tables ----

void rlhf__table_services(struct rlhf__worker_host *t) {
    t->classifier = (rlhf_classifier_service){sizeof t->classifier, 0,
                                              classifier_open,      classifier_close,
                                              classifier_n_labels,  classifier_label,
                                              classifier_logits};
    t->tokenizer = (rlhf_tokenizer_service){sizeof t->tokenizer, 0,
                                            tokenizer_open,      tokenizer_close,
                                            tokenizer_n_vocab,   tokenizer_encode,
                                            tokenizer_decode};
    t->model =
        (rlhf_reward_model_service){sizeof t->model, 0, model_open, model_close, model_score};
    rlhf__table_language(&t->language);
}
