// reward_service.c: see reward_service.h.
#include "service/reward_service.h"

#include <stdlib.h>

// A plugin's handle. There is one for each directory.
struct rlhf_reward_model {
    struct rlhf__served served;
    struct rlhf__reward_model *own; // NULL until it is open
};

struct rlhf__reward_service {
    struct rlhf__served_list models;
    const struct rlhf__tokenizer *policy;
    int32_t longest, trainable;
    rlhf_reward_model_service table;
};

// Returns the service that owns the caller's table, or NULL if the caller may not use it now.
static struct rlhf__reward_service *of(const rlhf_host *host) {
    const void *table = host->service(host, RLHF_SVC_REWARD_MODEL);
    const size_t member = offsetof(struct rlhf__reward_service, table);
    return table ? (struct rlhf__reward_service *)((uintptr_t)table - member) : NULL;
}

static struct rlhf_reward_model *handle(const struct rlhf__served *o) {
    return (struct rlhf_reward_model *)(uintptr_t)o;
}

// ---- the models ----

static rlhf_status model_open(struct rlhf__served *o, const char *dir, const void *how,
                              struct rlhf__error *err) {
    const struct rlhf__reward_service *s = how;
    const struct rlhf__reward_model_spec spec = {
        .dir = dir, .trainable = s->trainable, .longest = s->longest, .policy = s->policy};
    RLHF_TRY(rlhf__reward_model_open(o->list->env, &spec, &handle(o)->own, err));
    o->model = handle(o)->own->model;
    return RLHF_OK;
}

static void model_close(struct rlhf__served *o) { rlhf__reward_model_close(handle(o)->own); }

static rlhf_status model_largest(const struct rlhf__served *o, const struct rlhf__model *m,
                                 const struct rlhf__rows *e, struct rlhf__error *err) {
    struct rlhf__reward_model rm = *handle(o)->own;
    float *seq = calloc((size_t)e->n + 1, sizeof *seq);
    if (!seq) return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    rm.model = (struct rlhf__model *)(uintptr_t)m;
    const rlhf_status st =
        rlhf__reward_model_score(&rm, e->n, e->ids, e->offset, e->prompt_len, 0, seq, NULL, err);
    rlhf__model_trim(m);
    free(seq);
    return st;
}

static const struct rlhf__served_kind reward_kind = {.id = RLHF_SVC_REWARD_MODEL,
                                                     .name = "reward model",
                                                     .size = sizeof(struct rlhf_reward_model),
                                                     .open = model_open,
                                                     .close = model_close,
                                                     .largest = model_largest};

// ---- the service ----

static rlhf_status service_open(const rlhf_host *host, const char *path, rlhf_reward_model **out) {
    struct rlhf__reward_service *s = of(host);
    struct rlhf__served *o = NULL;
    *out = NULL;
    if (!s) return rlhf__service_beside(host);
    RLHF_TRY(rlhf__served_open(&s->models, host, path, s, &o));
    *out = handle(o);
    return RLHF_OK;
}

static void service_close(const rlhf_host *host, rlhf_reward_model *m) {
    struct rlhf__reward_service *s = of(host);
    if (s && m) rlhf__served_close(&s->models, &m->served); // else the service closes it later
}

static rlhf_status service_score(const rlhf_host *host, rlhf_reward_model *m, uint32_t n,
                                 const int32_t *ids, const int32_t *offset,
                                 const int32_t *prompt_len, int32_t pooling, float *seq,
                                 float *token) {
    struct rlhf__error err = {0, ""};
    if (!of(host)) return rlhf__service_beside(host);
    if (pooling != 0 && pooling != RLHF_POOL_MEAN && pooling != RLHF_POOL_LAST) {
        rlhf__fail(&err, RLHF_E_INVALID, "a reward model pools mean or last");
        return rlhf__service_failed(host, &err);
    }
    rlhf_status st = rlhf__model_load(m->own->model, &err); // needed if create() computes scores
    if (st == RLHF_OK)
        st =
            rlhf__reward_model_score(m->own, n, ids, offset, prompt_len, pooling, seq, token, &err);
    rlhf__model_trim(m->own->model);
    return st == RLHF_OK ? st : rlhf__service_failed(host, &err);
}

rlhf_status rlhf__reward_service_open(const struct rlhf__model_env *env, const char *default_dir,
                                      struct rlhf__reward_service **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__reward_service *s = calloc(1, sizeof *s);
    if (!s) return RLHF__NOMEM(err, "out of memory for services");
    s->table =
        (rlhf_reward_model_service){sizeof s->table, 0, service_open, service_close, service_score};
    rlhf_status st = rlhf__served_init(&s->models, &reward_kind, env, default_dir, err);
    if (st == RLHF_OK)
        st = rlhf__services_offer(env->services, RLHF_SVC_REWARD_MODEL,
                                  RLHF__STRUCT_rlhf_reward_model_service, &s->table, err);
    if (st != RLHF_OK) {
        rlhf__reward_service_close(s);
        return st;
    }
    *out = s;
    return RLHF_OK;
}

void rlhf__reward_service_close(struct rlhf__reward_service *s) {
    if (!s) return;
    rlhf__served_finish(&s->models);
    free(s);
}

void rlhf__reward_service_policy(struct rlhf__reward_service *s,
                                 const struct rlhf__tokenizer *tok) {
    s->policy = tok;
}

void rlhf__reward_service_longest(struct rlhf__reward_service *s, int32_t longest) {
    s->longest = longest;
}

void rlhf__reward_service_trainable(struct rlhf__reward_service *s, int32_t trainable) {
    s->trainable = trainable;
}

struct rlhf__reward_model *rlhf__reward_service_at(const struct rlhf__reward_service *s, size_t i,
                                                   int64_t *users) {
    const struct rlhf__served *o = rlhf__served_at(&s->models, i);
    if (users) *users = o ? o->users : 0;
    return o ? handle(o)->own : NULL;
}

const struct rlhf__served_list *rlhf__reward_service_list(const struct rlhf__reward_service *s) {
    return &s->models;
}
