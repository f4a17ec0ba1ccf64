// table_services.c: see table_services.h.
#include "worker/table_services.h"

#include "worker/table_language.h"

#include <stdlib.h>
#include <string.h>

struct rlhf_classifier {
    uint32_t handle, n_labels;
    const char **label; // its texts are owned
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
        free((void *)(uintptr_t)c->label[i]);
    if (c) free((void *)c->label);
    free(c);
}

static rlhf_status classifier_open(const rlhf_host *host, const rlhf_classifier_open *how,
                                   rlhf_classifier **out) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    rlhf_classifier_open q;
    *out = NULL;
    RLHF_TRY(rlhf__table_here(t));
    RLHF_TRY(RLHF__TAKE(host, rlhf_classifier_open, &q, how, path));
    struct rlhf_classifier *c = calloc(1, sizeof *c);
    if (!c) return RLHF_E_NOMEM;
    rlhf__table_begin_open(t, RLHF__CALL_CLASSIFIER_OPEN, q.path);
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

static rlhf_status classifier_info(const rlhf_host *host, const rlhf_classifier *c,
                                   rlhf_classifier_info *out) {
    const rlhf_classifier_info info = {
        .size = sizeof info, .n_labels = c->n_labels, .label = c->label};
    return RLHF__GIVE(host, rlhf_classifier_info, out, &info, label);
}

static rlhf_status classifier_logits(const rlhf_host *host, rlhf_classifier *c,
                                     const rlhf_classifier_in *how, const rlhf_classifier_out *to) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    rlhf_classifier_in q;
    rlhf_classifier_out out;
    RLHF_TRY(rlhf__table_here(t));
    RLHF_TRY(RLHF__TAKE(host, rlhf_classifier_in, &q, how, text));
    RLHF_TRY(RLHF__TAKE(host, rlhf_classifier_out, &out, to, logits));
    if (q.n == 0) return RLHF_OK;
    RLHF_TRY(rlhf__service_needs(host, q.text && out.logits, "logits()", "text and logits"));
    rlhf__table_begin(t, RLHF__CALL_CLASSIFIER_LOGITS, c->handle);
    rlhf__wire_u32(&t->frame, q.n);
    for (uint32_t i = 0; i < q.n; i++)
        rlhf__wire_text(&t->frame, q.text[i].ptr, q.text[i].len);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK)
        st = rlhf__table_items(&in, sizeof *out.logits, (size_t)q.n * c->n_labels, out.logits);
    rlhf__table_end(t);
    return st;
}

// ---- tokenizers ----

static rlhf_status tokenizer_open(const rlhf_host *host, const rlhf_tokenizer_open *how,
                                  rlhf_tokenizer **out) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    rlhf_tokenizer_open q;
    *out = NULL;
    RLHF_TRY(rlhf__table_here(t));
    RLHF_TRY(RLHF__TAKE(host, rlhf_tokenizer_open, &q, how, path));
    struct rlhf_tokenizer *k = calloc(1, sizeof *k);
    if (!k) return RLHF_E_NOMEM;
    rlhf__table_begin_open(t, RLHF__CALL_TOKENIZER_OPEN, q.path);
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

static rlhf_status tokenizer_info(const rlhf_host *host, const rlhf_tokenizer *k,
                                  rlhf_tokenizer_info *out) {
    const rlhf_tokenizer_info info = {.size = sizeof info, .n_vocab = k->n_vocab};
    return RLHF__GIVE(host, rlhf_tokenizer_info, out, &info, n_vocab);
}

static rlhf_status tokenizer_encode(const rlhf_host *host, const rlhf_tokenizer *k,
                                    const rlhf_encode_in *how, rlhf_encode_out *to) {
    return rlhf__table_encode(host, k->handle, how, to);
}

static rlhf_status tokenizer_decode(const rlhf_host *host, const rlhf_tokenizer *k,
                                    const rlhf_decode_in *how, rlhf_decode_out *to) {
    return rlhf__table_decode(host, k->handle, how, to);
}

// ---- reward models ----

static rlhf_status model_open(const rlhf_host *host, const rlhf_reward_model_open *how,
                              rlhf_reward_model **out) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    rlhf_reward_model_open q;
    *out = NULL;
    RLHF_TRY(rlhf__table_here(t));
    RLHF_TRY(RLHF__TAKE(host, rlhf_reward_model_open, &q, how, path));
    struct rlhf_reward_model *m = calloc(1, sizeof *m);
    if (!m) return RLHF_E_NOMEM;
    rlhf__table_begin_open(t, RLHF__CALL_MODEL_OPEN, q.path);
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

static rlhf_status model_score(const rlhf_host *host, rlhf_reward_model *m,
                               const rlhf_reward_model_in *how, const rlhf_reward_model_out *to) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    rlhf_reward_model_in q;
    rlhf_reward_model_out out;
    RLHF_TRY(rlhf__table_here(t));
    RLHF_TRY(RLHF__TAKE(host, rlhf_reward_model_in, &q, how, reserved));
    RLHF_TRY(RLHF__TAKE(host, rlhf_reward_model_out, &out, to, token));
    if (q.n == 0) return RLHF_OK;
    RLHF_TRY(rlhf__service_needs(host, q.ids && q.offset && q.prompt_len && out.seq, "score()",
                                 "ids, offset, prompt_len and seq"));
    RLHF_TRY(rlhf__service_rows(host, q.n, q.offset, q.prompt_len));
    const size_t total = (size_t)q.offset[q.n];
    rlhf__table_begin(t, RLHF__CALL_MODEL_SCORE, m->handle);
    rlhf__wire_u32(&t->frame, (uint32_t)q.pooling);
    rlhf__wire_u32(&t->frame, out.token != NULL);
    rlhf__table_rows(t, q.n, q.ids, q.offset, q.prompt_len);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) st = rlhf__table_items(&in, sizeof *out.seq, q.n, out.seq);
    if (st == RLHF_OK)
        st = rlhf__table_items(&in, sizeof *out.token, out.token ? total : 0, out.token);
    rlhf__table_end(t);
    return st;
}

// ---- the tables ----

void rlhf__table_services(struct rlhf__worker_host *t) {
    t->classifier = (rlhf_classifier_service){.size = sizeof t->classifier,
                                              .open = classifier_open,
                                              .close = classifier_close,
                                              .info = classifier_info,
                                              .logits = classifier_logits};
    t->tokenizer = (rlhf_tokenizer_service){.size = sizeof t->tokenizer,
                                            .open = tokenizer_open,
                                            .close = tokenizer_close,
                                            .info = tokenizer_info,
                                            .encode = tokenizer_encode,
                                            .decode = tokenizer_decode};
    t->model = (rlhf_reward_model_service){
        .size = sizeof t->model, .open = model_open, .close = model_close, .score = model_score};
    rlhf__table_language(&t->language);
}
