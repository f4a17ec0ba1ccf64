// text_services.c: see text_services.h.
#include "service/text_services.h"

#include "base/file.h"
#include "model/classifier.h"
#include "model/session.h"
#include "service/language_service.h"
#include "weights/run_checkpoint.h"

#include <pthread.h>
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
    struct rlhf__served served;
    struct rlhf__classifier *own; // NULL until it is open
};

struct rlhf__text_services {
    const struct rlhf__model_env *env;
    const struct rlhf__tokenizer *policy;
    struct rlhf__served_list classifiers;
    // With rewards.overlap a reward opens tokenizers on another thread. The lock guards the list.
    pthread_mutex_t lock;
    struct rlhf_tokenizer *tokenizers;
    struct rlhf__reward_service *reward;
    struct rlhf__language_service *language;
    rlhf_classifier_service classifier;
    rlhf_tokenizer_service tokenizer;
};

// Returns the services that own the caller's table.
static struct rlhf__text_services *classifiers_of(const rlhf_host *host) {
    const rlhf_classifier_service *table = host->service(host, RLHF_SVC_CLASSIFIER);
    return table ? table->self : NULL;
}

static struct rlhf__text_services *tokenizers_of(const rlhf_host *host) {
    const rlhf_tokenizer_service *table = host->service(host, RLHF_SVC_TOKENIZER);
    return table ? table->self : NULL;
}

// ---- classifiers ----

static struct rlhf_classifier *handle(struct rlhf__served *o) { return (void *)o; }

static rlhf_status model_open(struct rlhf__served *o, const char *dir, const void *how,
                              struct rlhf__error *err) {
    (void)how;
    RLHF_TRY(rlhf__classifier_open(o->list->env, dir, NULL, &handle(o)->own, err));
    o->model = rlhf__classifier_model(handle(o)->own);
    return RLHF_OK;
}

static void model_close(struct rlhf__served *o) { rlhf__classifier_close(handle(o)->own); }

static rlhf_status model_largest(const struct rlhf__served *o, const struct rlhf__model *m,
                                 const struct rlhf__rows *e, struct rlhf__error *err) {
    (void)o;
    return rlhf__classifier_largest(m, e, err);
}

static const struct rlhf__served_kind classifier_kind = {.id = RLHF_SVC_CLASSIFIER,
                                                         .name = "classifier",
                                                         .size = sizeof(struct rlhf_classifier),
                                                         .open = model_open,
                                                         .close = model_close,
                                                         .largest = model_largest};

static rlhf_status classifier_open(const rlhf_host *host, const rlhf_classifier_open *how,
                                   rlhf_classifier **out) {
    struct rlhf__text_services *s = classifiers_of(host);
    struct rlhf__served *o = NULL;
    rlhf_classifier_open q;
    *out = NULL;
    RLHF_TRY(rlhf__service_may(host, RLHF__SERVICE_OPENS_MODEL));
    RLHF_TRY(RLHF__TAKE(host, rlhf_classifier_open, &q, how, path));
    RLHF_TRY(rlhf__served_open(&s->classifiers, host, q.path, NULL, &o));
    *out = handle(o);
    return RLHF_OK;
}

static void classifier_close(const rlhf_host *host, rlhf_classifier *c) {
    struct rlhf__text_services *s = classifiers_of(host);
    if (c && rlhf__service_may(host, RLHF__SERVICE_CLOSES) == RLHF_OK)
        rlhf__served_close(&s->classifiers, &c->served);
}

static rlhf_status classifier_info(const rlhf_host *host, const rlhf_classifier *c,
                                   rlhf_classifier_info *out) {
    const struct rlhf__labels *l = rlhf__classifier_labels(c->own);
    const rlhf_classifier_info info = {
        .size = sizeof info, .n_labels = (uint32_t)l->n, .label = (const char *const *)l->name};
    return RLHF__GIVE(host, rlhf_classifier_info, out, &info, label);
}

static rlhf_status classifier_logits(const rlhf_host *host, rlhf_classifier *c,
                                     const rlhf_classifier_in *how, const rlhf_classifier_out *to) {
    struct rlhf__error err = {0, ""};
    rlhf_classifier_in q;
    rlhf_classifier_out out;
    RLHF_TRY(rlhf__service_may(host, RLHF__SERVICE_COMPUTES));
    RLHF_TRY(RLHF__TAKE(host, rlhf_classifier_in, &q, how, text));
    RLHF_TRY(RLHF__TAKE(host, rlhf_classifier_out, &out, to, logits));
    if (q.n == 0) return RLHF_OK;
    RLHF_TRY(rlhf__service_needs(host, q.text && out.logits, "logits()", "text and logits"));
    rlhf_status st = rlhf__classifier_load(c->own, &err); // needed if create() already uses it
    if (st == RLHF_OK) st = rlhf__classifier_logits(c->own, q.n, q.text, NULL, out.logits, &err);
    return st == RLHF_OK ? st : rlhf__service_failed(host, &err);
}

// ---- tokenizers ----

static rlhf_status open_tokenizer(const struct rlhf__text_services *s, const char *path,
                                  struct rlhf_tokenizer *t, struct rlhf__error *err) {
    char checkpoint[RLHF__PATH_CAP];
    if (!path && !s->policy)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "this command has no policy and so no policy tokenizer");
    if (path) {
        RLHF_TRY(rlhf__run_model("tokenizer", &path, checkpoint, s->env->services->log, err));
        RLHF_TRY(rlhf__tokenizer_open(path, &t->owned, err));
        rlhf__tokenizer_set_log(t->owned, s->env->services->log);
    }
    t->tok = path ? t->owned : s->policy;
    return RLHF_OK;
}

static rlhf_status tokenizer_open(const rlhf_host *host, const rlhf_tokenizer_open *how,
                                  rlhf_tokenizer **out) {
    struct rlhf__text_services *s = tokenizers_of(host);
    struct rlhf__error err = {0, ""};
    rlhf_tokenizer_open q;
    *out = NULL;
    RLHF_TRY(rlhf__service_may(host, RLHF__SERVICE_OPENS));
    RLHF_TRY(RLHF__TAKE(host, rlhf_tokenizer_open, &q, how, path));
    struct rlhf_tokenizer *t = calloc(1, sizeof *t);
    const rlhf_status st = t ? open_tokenizer(s, q.path, t, &err)
                             : RLHF__NOMEM(&err, "out of memory opening a tokenizer");
    if (st != RLHF_OK) {
        free(t);
        return rlhf__service_failed(host, &err);
    }
    pthread_mutex_lock(&s->lock);
    t->next = s->tokenizers;
    s->tokenizers = t;
    pthread_mutex_unlock(&s->lock);
    *out = t;
    return RLHF_OK;
}

static void tokenizer_close(const rlhf_host *host, rlhf_tokenizer *t) {
    struct rlhf__text_services *s = tokenizers_of(host);
    if (!t) return;
    pthread_mutex_lock(&s->lock);
    struct rlhf_tokenizer **at = &s->tokenizers;
    while (*at && *at != t)
        at = &(*at)->next;
    if (*at) *at = t->next;
    pthread_mutex_unlock(&s->lock);
    rlhf__tokenizer_close(t->owned);
    free(t);
}

static rlhf_status tokenizer_info(const rlhf_host *host, const rlhf_tokenizer *t,
                                  rlhf_tokenizer_info *out) {
    const rlhf_tokenizer_info info = {.size = sizeof info,
                                      .n_vocab = rlhf__tokenizer_info(t->tok)->n_vocab};
    return RLHF__GIVE(host, rlhf_tokenizer_info, out, &info, n_vocab);
}

static rlhf_status tokenizer_encode(const rlhf_host *host, const rlhf_tokenizer *t,
                                    const rlhf_encode_in *how, rlhf_encode_out *to) {
    rlhf_encode_in q;
    RLHF_TRY(RLHF__TAKE(host, rlhf_encode_in, &q, how, text));
    return rlhf__served_encode(host, t->tok, q.text, 0, to);
}

static rlhf_status tokenizer_decode(const rlhf_host *host, const rlhf_tokenizer *t,
                                    const rlhf_decode_in *how, rlhf_decode_out *to) {
    return rlhf__served_decode(host, t->tok, how, to);
}

// ---- the services ----

static rlhf_status create(struct rlhf__text_services *s, const struct rlhf__dirs *dirs,
                          struct rlhf__error *err) {
    char dir[RLHF__PATH_CAP];
    rlhf__default_model(dirs, "classifier", dir);
    RLHF_TRY(rlhf__served_init(&s->classifiers, &classifier_kind, s->env, dir, err));
    rlhf__default_model(dirs, "reward_model", dir);
    RLHF_TRY(rlhf__reward_service_open(s->env, dir, &s->reward, err));
    rlhf__default_model(dirs, "policy", dir);
    RLHF_TRY(rlhf__language_service_open(s->env, dir, &s->language, err));
    RLHF_TRY(rlhf__services_offer(s->env->services, RLHF_SVC_CLASSIFIER,
                                  RLHF__STRUCT_rlhf_classifier_service, &s->classifier, err));
    return rlhf__services_offer(s->env->services, RLHF_SVC_TOKENIZER,
                                RLHF__STRUCT_rlhf_tokenizer_service, &s->tokenizer, err);
}

rlhf_status rlhf__text_services_open(const struct rlhf__model_env *env,
                                     const struct rlhf__dirs *dirs,
                                     struct rlhf__text_services **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__text_services *s = calloc(1, sizeof *s);
    if (!s || pthread_mutex_init(&s->lock, NULL)) {
        free(s);
        return RLHF__NOMEM(err, "out of memory for services");
    }
    s->env = env;
    s->classifier = (rlhf_classifier_service){.size = sizeof s->classifier,
                                              .self = s,
                                              .open = classifier_open,
                                              .close = classifier_close,
                                              .info = classifier_info,
                                              .logits = classifier_logits};
    s->tokenizer = (rlhf_tokenizer_service){.size = sizeof s->tokenizer,
                                            .self = s,
                                            .open = tokenizer_open,
                                            .close = tokenizer_close,
                                            .info = tokenizer_info,
                                            .encode = tokenizer_encode,
                                            .decode = tokenizer_decode};
    const rlhf_status st = create(s, dirs, err);
    if (st == RLHF_OK)
        *out = s;
    else
        rlhf__text_services_close(s);
    return st;
}

void rlhf__text_services_close(struct rlhf__text_services *s) {
    if (!s) return;
    for (struct rlhf_tokenizer *t = s->tokenizers, *next; t; t = next) {
        next = t->next;
        rlhf__tokenizer_close(t->owned);
        free(t);
    }
    rlhf__served_finish(&s->classifiers);
    rlhf__reward_service_close(s->reward);
    rlhf__language_service_close(s->language);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void rlhf__text_services_policy(struct rlhf__text_services *s, const struct rlhf__tokenizer *tok) {
    s->policy = tok;
    rlhf__reward_service_policy(s->reward, tok);
}

struct rlhf__served *rlhf__text_services_at(const struct rlhf__text_services *s, size_t i) {
    const struct rlhf__served_list *const lists[] = {&s->classifiers,
                                                     rlhf__reward_service_list(s->reward),
                                                     rlhf__language_service_list(s->language)};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (struct rlhf__served *o = lists[k]->first; o; o = o->next)
            if (i-- == 0) return o;
    return NULL;
}

rlhf_status rlhf__text_services_load(struct rlhf__text_services *s, struct rlhf__error *err) {
    struct rlhf__served *o;
    for (size_t i = 0; (o = rlhf__text_services_at(s, i)); i++)
        RLHF_TRY(rlhf__model_load(o->model, err));
    return RLHF_OK;
}

struct rlhf__reward_service *rlhf__text_services_reward(const struct rlhf__text_services *s) {
    return s->reward;
}
