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

// Returns the service that owns the caller's table.
static struct rlhf__reward_service *of(const rlhf_host *host) {
    const rlhf_reward_model_service *table = host->service(host, RLHF_SVC_REWARD_MODEL);
    return table ? table->self : NULL;
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

static rlhf_status service_open(const rlhf_host *host, const rlhf_reward_model_open *how,
                                rlhf_reward_model **out) {
    struct rlhf__reward_service *s = of(host);
    struct rlhf__served *o = NULL;
    rlhf_reward_model_open q;
    *out = NULL;
    RLHF_TRY(rlhf__service_may(host, RLHF__SERVICE_OPENS_MODEL));
    RLHF_TRY(RLHF__TAKE(host, rlhf_reward_model_open, &q, how, path));
    RLHF_TRY(rlhf__served_open(&s->models, host, q.path, s, &o));
    *out = handle(o);
    return RLHF_OK;
}

static void service_close(const rlhf_host *host, rlhf_reward_model *m) {
    struct rlhf__reward_service *s = of(host);
    if (m && rlhf__service_may(host, RLHF__SERVICE_CLOSES) == RLHF_OK)
        rlhf__served_close(&s->models, &m->served);
}

static rlhf_status score(const struct rlhf_reward_model *m, const rlhf_reward_model_in *q,
                         const rlhf_reward_model_out *out, struct rlhf__error *err) {
    if (q->pooling != 0 && q->pooling != RLHF_POOL_MEAN && q->pooling != RLHF_POOL_LAST)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "a reward model pools mean (%d), last (%d) or as it was trained (0), not "
                          "%d",
                          RLHF_POOL_MEAN, RLHF_POOL_LAST, q->pooling);
    RLHF_TRY(rlhf__served_check_ids(&m->served, q->n, q->ids, q->offset, err));
    RLHF_TRY(rlhf__model_load(m->own->model, err)); // needed if create() computes scores
    return rlhf__reward_model_score(m->own, q->n, q->ids, q->offset, q->prompt_len, q->pooling,
                                    out->seq, out->token, err);
}

static rlhf_status service_score(const rlhf_host *host, rlhf_reward_model *m,
                                 const rlhf_reward_model_in *how, const rlhf_reward_model_out *to) {
    struct rlhf__error err = {0, ""};
    rlhf_reward_model_in q;
    rlhf_reward_model_out out;
    RLHF_TRY(rlhf__service_may(host, RLHF__SERVICE_COMPUTES));
    RLHF_TRY(RLHF__TAKE(host, rlhf_reward_model_in, &q, how, reserved));
    RLHF_TRY(RLHF__TAKE(host, rlhf_reward_model_out, &out, to, token));
    if (q.n == 0) return RLHF_OK;
    RLHF_TRY(rlhf__service_needs(host, q.ids && q.offset && q.prompt_len && out.seq, "score()",
                                 "ids, offset, prompt_len and seq"));
    RLHF_TRY(rlhf__service_rows(host, q.n, q.offset, q.prompt_len));
    const rlhf_status st = score(m, &q, &out, &err);
    rlhf__model_trim(m->own->model);
    return st == RLHF_OK ? st : rlhf__service_failed(host, &err);
}

rlhf_status rlhf__reward_service_open(const struct rlhf__model_env *env, const char *default_dir,
                                      struct rlhf__reward_service **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__reward_service *s = calloc(1, sizeof *s);
    if (!s) return RLHF__NOMEM(err, "out of memory for services");
    s->table = (rlhf_reward_model_service){.size = sizeof s->table,
                                           .self = s,
                                           .open = service_open,
                                           .close = service_close,
                                           .score = service_score};
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
