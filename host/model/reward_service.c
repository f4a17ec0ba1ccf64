// reward_service.c: see reward_service.h.
#include "model/reward_service.h"

#include "base/file.h"
#include "weights/run_checkpoint.h"

#include <stdlib.h>
#include <string.h>

// A plugin's handle. There is one for each directory.
struct rlhf_reward_model {
    struct rlhf__reward_model *model;
    char *dir; // absolute path of the directory that was asked for
    int64_t users;
    struct rlhf_reward_model *next;
};

struct rlhf__reward_service {
    const struct rlhf__model_env *env;
    char *default_dir;
    const struct rlhf__tokenizer *policy;
    int32_t longest, trainable;
    struct rlhf_reward_model *models; // in the order they were opened
    rlhf_reward_model_service table;
};

// Returns the service that owns the caller's table, or NULL if the caller may not use it now.
static struct rlhf__reward_service *of(const rlhf_host *host) {
    const void *table = host->service(host, RLHF_SVC_REWARD_MODEL);
    const size_t member = offsetof(struct rlhf__reward_service, table);
    return table ? (struct rlhf__reward_service *)((uintptr_t)table - member) : NULL;
}

static rlhf_status open_fresh(const rlhf_host *host, const char *path,
                              struct rlhf_reward_model **out) {
    struct rlhf__reward_service *s = of(host);
    struct rlhf__error err = {0, ""};
    struct rlhf__reward_model_spec spec = {
        .dir = path, .trainable = s->trainable, .longest = s->longest, .policy = s->policy};
    struct rlhf_reward_model *m = calloc(1, sizeof *m), **end = &s->models;
    char real[RLHF__PATH_CAP];
    if (!m) {
        rlhf__fail(&err, RLHF_E_NOMEM, "out of memory opening the reward model '%s'", path);
        return rlhf__service_failed(host, &err);
    }
    m->dir = strdup(rlhf__path_real(path, real) ? real : path);
    rlhf_status st = m->dir ? rlhf__reward_model_open(s->env, &spec, &m->model, &err)
                            : rlhf__fail(&err, RLHF_E_NOMEM,
                                         "out of memory opening the reward model '%s'", path);
    if (st != RLHF_OK) {
        free(m->dir);
        free(m);
        return rlhf__service_failed(host, &err);
    }
    m->users = 1;
    while (*end)
        end = &(*end)->next;
    *end = m;
    *out = m;
    return RLHF_OK;
}

static rlhf_status service_open(const rlhf_host *host, const char *path, rlhf_reward_model **out) {
    struct rlhf__reward_service *s = of(host);
    *out = NULL;
    if (!s) return rlhf__service_beside(host);
    if (!path || strcmp(path, "default") == 0) path = s->default_dir;
    char real[RLHF__PATH_CAP], checkpoint[RLHF__PATH_CAP];
    struct rlhf__error err = {0, ""};
    if (rlhf__run_model("reward model", &path, checkpoint, s->env->services->log, &err) != RLHF_OK)
        return rlhf__service_failed(host, &err);
    struct rlhf_reward_model *m = rlhf__path_real(path, real) ? s->models : NULL;
    for (; m && !*out; m = m->next)
        if (strcmp(m->dir, real) == 0) *out = m;
    if (!*out) return open_fresh(host, path, out);
    (*out)->users++;
    return RLHF_OK;
}

static void service_close(const rlhf_host *host, rlhf_reward_model *m) {
    struct rlhf__reward_service *s = of(host);
    if (!s || !m || --m->users > 0) return; // if s is NULL, the service closes the model later
    struct rlhf_reward_model **at = &s->models;
    while (*at && *at != m)
        at = &(*at)->next;
    if (*at) *at = m->next;
    rlhf__reward_model_close(m->model);
    free(m->dir);
    free(m);
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
    rlhf_status st = rlhf__model_load(m->model->model, &err); // needed if create() computes scores
    if (st == RLHF_OK)
        st = rlhf__reward_model_score(m->model, n, ids, offset, prompt_len, pooling, seq, token,
                                      &err);
    rlhf__model_trim(m->model->model);
    return st == RLHF_OK ? st : rlhf__service_failed(host, &err);
}

rlhf_status rlhf__reward_service_create(const struct rlhf__model_env *env, const char *default_dir,
                                        struct rlhf__reward_service **out,
                                        struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__reward_service *s = calloc(1, sizeof *s);
    if (s) s->default_dir = strdup(default_dir);
    if (!s || !s->default_dir) {
        free(s);
        return RLHF__NOMEM(err, "out of memory for services");
    }
    s->env = env;
    s->table =
        (rlhf_reward_model_service){sizeof s->table, 0, service_open, service_close, service_score};
    rlhf_status st = rlhf__services_offer(env->services, RLHF_SVC_REWARD_MODEL, &s->table, err);
    if (st != RLHF_OK) {
        rlhf__reward_service_destroy(s);
        return st;
    }
    *out = s;
    return RLHF_OK;
}

void rlhf__reward_service_destroy(struct rlhf__reward_service *s) {
    if (!s) return;
    for (struct rlhf_reward_model *m = s->models, *next; m; m = next) {
        next = m->next;
        rlhf__reward_model_close(m->model);
        free(m->dir);
        free(m);
    }
    free(s->default_dir);
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
    const struct rlhf_reward_model *m = s->models;
    while (m && i-- > 0)
        m = m->next;
    if (users) *users = m ? m->users : 0;
    return m ? m->model : NULL;
}
