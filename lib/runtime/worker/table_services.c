// table_services.c: the host's services for a plugin in a worker. In the worker, an object of a
// service holds a handle for the object in the host, and caches some of the host's answers.
#include "worker/worker_host.h"

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

// Returns the struct that contains the table. Every rlhf_host in a worker is the first member of
// such a struct.
static struct rlhf__worker_host *behind(const rlhf_host *api) {
    return (struct rlhf__worker_host *)(uintptr_t)api;
}

// Begin a call that opens an object. The lock is held until end().
static void begin_open(struct rlhf__worker_host *t, uint32_t kind, const char *path) {
    pthread_mutex_lock(&t->lock);
    rlhf__wire_begin(&t->frame, kind);
    rlhf__wire_u32(&t->frame, path != NULL);
    rlhf__wire_puts(&t->frame, path);
}

static void begin(struct rlhf__worker_host *t, uint32_t kind, uint32_t handle) {
    pthread_mutex_lock(&t->lock);
    rlhf__wire_begin(&t->frame, kind);
    rlhf__wire_u32(&t->frame, handle);
}

static void end(struct rlhf__worker_host *t) { pthread_mutex_unlock(&t->lock); }

static void close_handle(struct rlhf__worker_host *t, uint32_t handle) {
    struct rlhf__wire in;
    begin(t, RLHF__CALL_CLOSE, handle);
    rlhf__table_call(t, &in);
    end(t);
}

// Copy the items of a reply to an array of `n` items. If the reply does not have exactly `n` items,
// returns RLHF_E_INTERNAL and does not change the array.
static rlhf_status take_items(struct rlhf__wire *in, size_t size, size_t n, void *out) {
    size_t got;
    const void *items = rlhf__wire_get_items(in, size, &got);
    if (in->bad || got != n) return RLHF_E_INTERNAL;
    if (n) memcpy(out, items, n * size);
    return RLHF_OK;
}

// ---- classifiers ----

static void classifier_free(struct rlhf_classifier *c) {
    for (uint32_t i = 0; c && c->label && i < c->n_labels; i++)
        free(c->label[i]);
    if (c) free(c->label);
    free(c);
}

static rlhf_status classifier_open(const rlhf_host *host, const char *path, rlhf_classifier **out) {
    struct rlhf__worker_host *t = behind(host);
    struct rlhf__wire in;
    *out = NULL;
    struct rlhf_classifier *c = calloc(1, sizeof *c);
    if (!c) return RLHF_E_NOMEM;
    begin_open(t, RLHF__CALL_CLASSIFIER_OPEN, path);
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
    end(t);
    if (st == RLHF_OK)
        *out = c;
    else
        classifier_free(c);
    return st;
}

static void classifier_close(const rlhf_host *host, rlhf_classifier *c) {
    if (!c) return;
    close_handle(behind(host), c->handle);
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
    struct rlhf__worker_host *t = behind(host);
    struct rlhf__wire in;
    begin(t, RLHF__CALL_CLASSIFIER_LOGITS, c->handle);
    rlhf__wire_u32(&t->frame, n);
    for (uint32_t i = 0; i < n; i++)
        rlhf__wire_text(&t->frame, texts[i].ptr, texts[i].len);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) st = take_items(&in, sizeof *logits, (size_t)n * c->n_labels, logits);
    end(t);
    return st;
}

// ---- tokenizers ----

static rlhf_status tokenizer_open(const rlhf_host *host, const char *path, rlhf_tokenizer **out) {
    struct rlhf__worker_host *t = behind(host);
    struct rlhf__wire in;
    *out = NULL;
    struct rlhf_tokenizer *k = calloc(1, sizeof *k);
    if (!k) return RLHF_E_NOMEM;
    begin_open(t, RLHF__CALL_TOKENIZER_OPEN, path);
    const rlhf_status st = rlhf__table_call(t, &in);
    k->handle = rlhf__wire_get_u32(&in);
    k->n_vocab = (int32_t)rlhf__wire_get_u32(&in);
    end(t);
    if (st == RLHF_OK)
        *out = k;
    else
        free(k);
    return st;
}

static void tokenizer_close(const rlhf_host *host, rlhf_tokenizer *k) {
    if (!k) return;
    close_handle(behind(host), k->handle);
    free(k);
}

static int32_t tokenizer_n_vocab(const rlhf_host *host, const rlhf_tokenizer *k) {
    (void)host;
    return k->n_vocab;
}

static rlhf_status tokenizer_encode(const rlhf_host *host, const rlhf_tokenizer *k, rlhf_str text,
                                    int32_t *ids, uint32_t cap, uint32_t *n) {
    struct rlhf__worker_host *t = behind(host);
    struct rlhf__wire in;
    *n = 0;
    begin(t, RLHF__CALL_TOKENIZER_ENCODE, k->handle);
    rlhf__wire_u32(&t->frame, cap);
    rlhf__wire_text(&t->frame, text.ptr, text.len);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) {
        *n = rlhf__wire_get_u32(&in);
        st = take_items(&in, sizeof *ids, *n < cap ? *n : cap, ids);
    }
    end(t);
    return st;
}

static rlhf_status tokenizer_decode(const rlhf_host *host, const rlhf_tokenizer *k,
                                    const int32_t *ids, uint32_t n, char *utf8, uint64_t cap,
                                    uint64_t *len) {
    struct rlhf__worker_host *t = behind(host);
    struct rlhf__wire in;
    *len = 0;
    begin(t, RLHF__CALL_TOKENIZER_DECODE, k->handle);
    rlhf__wire_u64(&t->frame, cap);
    rlhf__wire_text(&t->frame, ids, (uint64_t)n * sizeof *ids);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) {
        *len = rlhf__wire_get_u64(&in);
        st = take_items(&in, 1, (size_t)(*len < cap ? *len : cap), utf8);
    }
    end(t);
    return st;
}

// ---- reward models ----

static rlhf_status model_open(const rlhf_host *host, const char *path, rlhf_reward_model **out) {
    struct rlhf__worker_host *t = behind(host);
    struct rlhf__wire in;
    *out = NULL;
    struct rlhf_reward_model *m = calloc(1, sizeof *m);
    if (!m) return RLHF_E_NOMEM;
    begin_open(t, RLHF__CALL_MODEL_OPEN, path);
    const rlhf_status st = rlhf__table_call(t, &in);
    m->handle = rlhf__wire_get_u32(&in);
    end(t);
    if (st == RLHF_OK)
        *out = m;
    else
        free(m);
    return st;
}

static void model_close(const rlhf_host *host, rlhf_reward_model *m) {
    if (!m) return;
    close_handle(behind(host), m->handle);
    free(m);
}

static rlhf_status model_score(const rlhf_host *host, rlhf_reward_model *m, uint32_t n,
                               const int32_t *ids, const int32_t *offset, const int32_t *prompt_len,
                               int32_t pooling, float *seq, float *token) {
    struct rlhf__worker_host *t = behind(host);
    struct rlhf__wire in;
    const size_t total = (size_t)offset[n];
    begin(t, RLHF__CALL_MODEL_SCORE, m->handle);
    rlhf__wire_u32(&t->frame, (uint32_t)pooling);
    rlhf__wire_u32(&t->frame, token != NULL);
    rlhf__wire_text(&t->frame, ids, total * sizeof *ids);
    rlhf__wire_text(&t->frame, offset, ((size_t)n + 1) * sizeof *offset);
    rlhf__wire_text(&t->frame, prompt_len, (size_t)n * sizeof *prompt_len);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) st = take_items(&in, sizeof *seq, n, seq);
    if (st == RLHF_OK) st = take_items(&in, sizeof *token, token ? total : 0, token);
    end(t);
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
}
