// text_services.c: see text_services.h.
#include "model/text_services.h"

#include "base/file.h"
#include "model/classifier.h"
#include "weights/run_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A plugin's handle of a tokenizer. `owned` is NULL if the tokenizer is borrowed.
struct rlhf_tokenizer {
    const struct rlhf__tokenizer *tok;
    struct rlhf__tokenizer *owned;
    struct rlhf_tokenizer *next;
};

struct rlhf_classifier {
    struct rlhf__classifier *model;
    int64_t users;
    struct rlhf_classifier *next;
};

struct rlhf__text_services {
    const struct rlhf__model_env *env;
    char *default_classifier;
    const struct rlhf__tokenizer *policy;
    struct rlhf_classifier *classifiers;
    struct rlhf_tokenizer *tokenizers;
    struct rlhf__reward_service *reward;
    rlhf_classifier_service classifier;
    rlhf_tokenizer_service tokenizer;
};

// Returns the services that own the caller's table, or NULL if the caller may not use it now.
static struct rlhf__text_services *of(const rlhf_host *host, const char *id, size_t member) {
    const void *table = host->service(host, id);
    return table ? (struct rlhf__text_services *)((uintptr_t)table - member) : NULL;
}

#define CLASSIFIERS(host)                                                                          \
    of(host, RLHF_SVC_CLASSIFIER, offsetof(struct rlhf__text_services, classifier))
#define TOKENIZERS(host)                                                                           \
    of(host, RLHF_SVC_TOKENIZER, offsetof(struct rlhf__text_services, tokenizer))

// ---- classifiers ----

static rlhf_status classifier_open(const rlhf_host *host, const char *path, rlhf_classifier **out) {
    struct rlhf__text_services *s = CLASSIFIERS(host);
    *out = NULL;
    if (!s) return rlhf__service_beside(host);
    if (!path || strcmp(path, "default") == 0) path = s->default_classifier;
    char real[RLHF__PATH_CAP], checkpoint[RLHF__PATH_CAP];
    struct rlhf__error err = {0, ""};
    if (rlhf__run_model("classifier", &path, checkpoint, s->env->services->log, &err) != RLHF_OK)
        return rlhf__service_failed(host, &err);
    struct rlhf_classifier *c = rlhf__path_real(path, real) ? s->classifiers : NULL;
    for (; c; c = c->next)
        if (strcmp(rlhf__classifier_dir(c->model), real) == 0) {
            c->users++;
            *out = c;
            return RLHF_OK;
        }
    c = calloc(1, sizeof *c);
    if (!c) {
        rlhf__fail(&err, RLHF_E_NOMEM, "out of memory opening the classifier '%s'", path);
        return rlhf__service_failed(host, &err);
    }
    rlhf_status st = rlhf__classifier_open(s->env, path, NULL, &c->model, &err);
    if (st != RLHF_OK) {
        free(c);
        return rlhf__service_failed(host, &err);
    }
    c->users = 1;
    c->next = s->classifiers;
    s->classifiers = c;
    *out = c;
    return RLHF_OK;
}

static void classifier_close(const rlhf_host *host, rlhf_classifier *c) {
    struct rlhf__text_services *s = CLASSIFIERS(host);
    if (!s || !c || --c->users > 0) return; // if s is NULL, the services close it later
    struct rlhf_classifier **at = &s->classifiers;
    while (*at && *at != c)
        at = &(*at)->next;
    if (*at) *at = c->next;
    rlhf__classifier_close(c->model);
    free(c);
}

static int32_t classifier_n_labels(const rlhf_host *host, const rlhf_classifier *c) {
    (void)host;
    return rlhf__classifier_labels(c->model)->n;
}

static const char *classifier_label(const rlhf_host *host, const rlhf_classifier *c, int32_t i) {
    (void)host;
    const struct rlhf__labels *l = rlhf__classifier_labels(c->model);
    return i >= 0 && i < l->n ? l->name[i] : NULL;
}

static rlhf_status classifier_logits(const rlhf_host *host, rlhf_classifier *c, uint32_t n,
                                     const rlhf_str *texts, float *logits) {
    struct rlhf__error err = {0, ""};
    if (!CLASSIFIERS(host)) return rlhf__service_beside(host);
    rlhf_status st = rlhf__classifier_load(c->model, &err); // needed if create() already uses it
    if (st == RLHF_OK) st = rlhf__classifier_logits(c->model, n, texts, NULL, logits, &err);
    return st == RLHF_OK ? st : rlhf__service_failed(host, &err);
}

// ---- tokenizers ----

static rlhf_status tokenizer_open(const rlhf_host *host, const char *path, rlhf_tokenizer **out) {
    struct rlhf__text_services *s = TOKENIZERS(host);
    *out = NULL;
    struct rlhf__error err = {0, ""};
    char checkpoint[RLHF__PATH_CAP];
    struct rlhf_tokenizer *t = calloc(1, sizeof *t);
    if (!t) {
        rlhf__fail(&err, RLHF_E_NOMEM, "out of memory opening a tokenizer");
        return rlhf__service_failed(host, &err);
    }
    rlhf_status st = RLHF_OK;
    if (path) st = rlhf__run_model("tokenizer", &path, checkpoint, s->env->services->log, &err);
    if (st == RLHF_OK && path)
        st = rlhf__tokenizer_open(path, &t->owned, &err);
    else if (st == RLHF_OK && !s->policy)
        st = rlhf__fail(&err, RLHF_E_INVALID,
                        "this command has no policy and so no policy tokenizer");
    if (t->owned) rlhf__tokenizer_set_log(t->owned, s->env->services->log);
    t->tok = path ? t->owned : s->policy;
    if (st != RLHF_OK) {
        free(t);
        return rlhf__service_failed(host, &err);
    }
    t->next = s->tokenizers;
    s->tokenizers = t;
    *out = t;
    return RLHF_OK;
}

static void tokenizer_close(const rlhf_host *host, rlhf_tokenizer *t) {
    struct rlhf__text_services *s = TOKENIZERS(host);
    if (!t) return;
    struct rlhf_tokenizer **at = &s->tokenizers;
    while (*at && *at != t)
        at = &(*at)->next;
    if (*at) *at = t->next;
    rlhf__tokenizer_close(t->owned);
    free(t);
}

static int32_t tokenizer_n_vocab(const rlhf_host *host, const rlhf_tokenizer *t) {
    (void)host;
    return rlhf__tokenizer_info(t->tok)->n_vocab;
}

static rlhf_status tokenizer_encode(const rlhf_host *host, const rlhf_tokenizer *t, rlhf_str text,
                                    int32_t *ids, uint32_t cap, uint32_t *n) {
    struct rlhf__ids found = {0};
    struct rlhf__error err = {0, ""};
    *n = 0;
    rlhf_status st = rlhf__tokenizer_encode(t->tok, text, 0, 0, &found, &err);
    if (st == RLHF_OK) {
        *n = (uint32_t)found.n;
        size_t fit = found.n < cap ? found.n : cap;
        if (fit) memcpy(ids, found.data, fit * sizeof *ids);
    }
    rlhf__ids_finish(&found);
    return st == RLHF_OK ? st : rlhf__service_failed(host, &err);
}

static rlhf_status tokenizer_decode(const rlhf_host *host, const rlhf_tokenizer *t,
                                    const int32_t *ids, uint32_t n, char *utf8, uint64_t cap,
                                    uint64_t *len) {
    size_t found = 0;
    char *text = rlhf__tokenizer_text(t->tok, ids, n, 0, &found);
    if (!text) {
        struct rlhf__error err = {0, ""};
        rlhf__fail(&err, RLHF_E_NOMEM, "out of memory for the text of %u tokens", n);
        return rlhf__service_failed(host, &err);
    }
    size_t fit = found < cap ? found : (size_t)cap;
    if (fit) memcpy(utf8, text, fit);
    *len = found;
    free(text);
    return RLHF_OK;
}

// ---- the services ----

rlhf_status rlhf__text_services_create(const struct rlhf__model_env *env,
                                       const char *default_classifier, const char *default_reward,
                                       struct rlhf__text_services **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__text_services *s = calloc(1, sizeof *s);
    if (s) s->default_classifier = strdup(default_classifier);
    if (!s || !s->default_classifier) {
        free(s);
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for services");
    }
    s->env = env;
    s->classifier = (rlhf_classifier_service){sizeof s->classifier, 0,
                                              classifier_open,      classifier_close,
                                              classifier_n_labels,  classifier_label,
                                              classifier_logits};
    s->tokenizer = (rlhf_tokenizer_service){sizeof s->tokenizer, 0,
                                            tokenizer_open,      tokenizer_close,
                                            tokenizer_n_vocab,   tokenizer_encode,
                                            tokenizer_decode};
    rlhf_status st = rlhf__reward_service_create(env, default_reward, &s->reward, err);
    if (st == RLHF_OK)
        st = rlhf__services_offer(env->services, RLHF_SVC_CLASSIFIER, &s->classifier, err);
    if (st == RLHF_OK)
        st = rlhf__services_offer(env->services, RLHF_SVC_TOKENIZER, &s->tokenizer, err);
    if (st != RLHF_OK) {
        rlhf__text_services_destroy(s);
        return st;
    }
    *out = s;
    return RLHF_OK;
}

void rlhf__text_services_destroy(struct rlhf__text_services *s) {
    if (!s) return;
    for (struct rlhf_classifier *c = s->classifiers, *next; c; c = next) {
        next = c->next;
        rlhf__classifier_close(c->model);
        free(c);
    }
    for (struct rlhf_tokenizer *t = s->tokenizers, *next; t; t = next) {
        next = t->next;
        rlhf__tokenizer_close(t->owned);
        free(t);
    }
    rlhf__reward_service_destroy(s->reward);
    free(s->default_classifier);
    free(s);
}

void rlhf__text_services_policy(struct rlhf__text_services *s, const struct rlhf__tokenizer *tok) {
    s->policy = tok;
    rlhf__reward_service_policy(s->reward, tok);
}

rlhf_status rlhf__text_services_load(struct rlhf__text_services *s, struct rlhf__error *err) {
    for (struct rlhf_classifier *c = s->classifiers; c; c = c->next)
        RLHF_TRY(rlhf__classifier_load(c->model, err));
    struct rlhf__reward_model *rm;
    for (size_t i = 0; (rm = rlhf__reward_service_at(s->reward, i, NULL)) != NULL; i++)
        RLHF_TRY(rlhf__model_load(rm->model, err));
    return RLHF_OK;
}

const struct rlhf__model *rlhf__text_services_classifier(const struct rlhf__text_services *s,
                                                         size_t i) {
    const struct rlhf_classifier *c = s->classifiers;
    while (c && i-- > 0)
        c = c->next;
    return c ? rlhf__classifier_model(c->model) : NULL;
}

struct rlhf__reward_service *rlhf__text_services_reward(const struct rlhf__text_services *s) {
    return s->reward;
}
