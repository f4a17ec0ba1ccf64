// sampler.c: see sampler.h.
#include "sample/sampler.h"

#include "base/clock.h"
#include "base/signals.h"
#include "model/compute.h"
#include "model/parameters.h"

#include <pthread.h>
#include <stdlib.h>

struct rlhf__sampler {
    struct rlhf__sampler_request from;
    struct rlhf__services services; // a copy of the run's, with this sampler's backend
    struct rlhf__model_env env;     // likewise a copy
    struct rlhf__compute *compute;
    struct rlhf__model *model;
    // The sampler's own rules. It cannot share those of the run, because rules contain scratch
    // memory, which two threads must not use at the same time.
    struct rlhf__response_rules *rules;
    rlhf_gen *cache; // NULL: each batch opens and closes a cache
    // The batch that the thread samples. While `drawing` is set, only the thread uses these.
    struct rlhf__rollout_request q;
    int64_t *row;
    struct rlhf__sampled out;
    struct rlhf__error err;
    rlhf_status status;
    int32_t drawing;
    pthread_t thread;
    volatile sig_atomic_t stop; // 1: the thread ends early
};

// ---- opening ----

static rlhf_status open_table(struct rlhf__sampler *s, struct rlhf__error *err) {
    const struct rlhf__sampler_request *f = &s->from;
    struct rlhf__compute_spec spec =
        rlhf__session_compute(f->dirs, &f->config->compute, f->threads, NULL);
    spec.gpu = f->session->compute->gpu;
    RLHF_TRY(rlhf__compute_open(&spec, &s->compute, err));
    s->services.kernels = s->compute->kernels.instance;
    s->env.compute = s->compute->table;
    return RLHF_OK;
}

// Returns the spec of the policy, without the parts that only training needs.
static struct rlhf__model_spec spec_of(const struct rlhf__model *policy) {
    struct rlhf__model_spec spec = policy->spec;
    spec.role = "sampler";
    spec.start = policy->peft.rank > 0 ? RLHF__START_WEIGHTS : RLHF__START_EMPTY;
    spec.trainable = spec.moments = 0;
    spec.value_kind = RLHF_VALUE_NONE;
    spec.value_init = spec.value_detach = 0;
    return spec;
}

static rlhf_status open_model(struct rlhf__sampler *s, struct rlhf__error *err) {
    const struct rlhf__config *c = s->from.config;
    const struct rlhf__model_spec spec = spec_of(s->from.policy);
    RLHF_TRY(open_table(s, err));
    RLHF_TRY(rlhf__model_open(&s->env, &spec, &s->model, err));
    return rlhf__response_rules_open(&c->sampling, &c->response, s->model->tok, &s->rules, err);
}

rlhf_status rlhf__sampler_open(const struct rlhf__sampler_request *from, struct rlhf__sampler **out,
                               struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__sampler *s = calloc(1, sizeof *s);
    if (!s) return RLHF__NOMEM(err, "out of memory for the sampler");
    s->from = *from;
    s->services = from->session->services;
    s->services.metric = NULL;
    s->env = from->session->models;
    s->env.services = &s->services;
    s->env.shared = NULL; // a base must be on the same table
    const rlhf_status st = open_model(s, err);
    if (st == RLHF_OK)
        *out = s;
    else
        rlhf__sampler_close(s);
    return st;
}

rlhf_status rlhf__sampler_load(struct rlhf__sampler *s, struct rlhf__error *err) {
    s->env.memory_plan = NULL;
    return rlhf__model_load(s->model, err);
}

void rlhf__sampler_close(struct rlhf__sampler *s) {
    struct rlhf__sampled unused = {.tokens = 0};
    struct rlhf__error unsaid;
    if (!s) return;
    __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
    if (s->drawing) rlhf__sampler_wait(s, &unused, &unsaid);
    rlhf__rows_finish(&unused.rows);
    if (s->model) rlhf__model_gen_close(s->model, s->cache);
    rlhf__response_rules_close(s->rules);
    rlhf__model_close(s->model);
    rlhf__compute_close(s->compute);
    free(s);
}

const struct rlhf__model *rlhf__sampler_model(const struct rlhf__sampler *s) { return s->model; }

const rlhf_compute *rlhf__sampler_table(const struct rlhf__sampler *s) { return s->compute->table; }

// ---- a batch ----

static void *work(void *arg) {
    struct rlhf__sampler *s = arg;
    const double from = rlhf__seconds();
    s->status = rlhf__rollout(&s->q, s->row, &s->out.rows, &s->out.tokens, &s->err);
    s->out.seconds = rlhf__seconds() - from;
    return NULL;
}

// On a backend that records calls, one cache is kept for all batches, as for the policy.
static rlhf_status open_cache(struct rlhf__sampler *s, struct rlhf__error *err) {
    const struct rlhf__rollout_request *q = &s->q;
    if (s->cache || !RLHF_COMPUTE_HAS(s->model->compute, record)) return RLHF_OK;
    const uint32_t longest = (uint32_t)(rlhf__prompts_longest(q->prompts) + q->max_new);
    return rlhf__model_gen_open(s->model, q->slots + q->prefix_slots, longest, &s->cache, err);
}

rlhf_status rlhf__sampler_begin(struct rlhf__sampler *s, const struct rlhf__rollout_request *q,
                                int64_t *row, struct rlhf__error *err) {
    s->q = *q;
    s->row = row;
    s->out = (struct rlhf__sampled){.tokens = 0};
    rlhf_status st = rlhf__params_copy(s->model, s->from.policy, err);
    if (st == RLHF_OK) st = open_cache(s, err);
    s->q.model = s->model;
    s->q.cache = s->cache;
    s->q.rules = s->rules;
    s->q.watch = NULL; // only the main thread shows progress
    s->q.overlap = NULL;
    s->q.cancelled = &s->stop;
    if (st == RLHF_OK && !(s->drawing = rlhf__signals_thread(&s->thread, work, s)))
        st = RLHF__NOMEM(err, "no thread for rollout.ahead");
    if (st == RLHF_OK) return RLHF_OK;
    free(s->row);
    s->row = NULL;
    return st;
}

rlhf_status rlhf__sampler_wait(struct rlhf__sampler *s, struct rlhf__sampled *out,
                               struct rlhf__error *err) {
    if (!s->drawing) return rlhf__fail(err, RLHF_E_INTERNAL, "there is no batch to wait for");
    pthread_join(s->thread, NULL);
    s->drawing = 0;
    free(s->row);
    s->row = NULL;
    if (s->status != RLHF_OK) {
        *err = s->err;
        return s->status;
    }
    *out = s->out;
    return RLHF_OK;
}
