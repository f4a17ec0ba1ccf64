// checked_model.c: see checked_model.h.
#include "check/checked_model.h"

#include "check/guard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 2000000, LEAST_VOCAB = 8 };

const rlhf_model_ops *rlhf__checked_ops(const struct rlhf__checked_model *m) {
    return &m->t.check->plugin->ops.model;
}

int rlhf__checked_fine(struct rlhf__checked_model *m, int32_t rule, rlhf_status st) {
    struct rlhf__error err;
    if (rlhf__probe_end(&m->t, st, &err) == RLHF_OK) return 1;
    rlhf__child_log_found(m->t.check->log, rule, "%s", err.text);
    return 0;
}

void rlhf__checked_close(struct rlhf__checked_model *m) {
    rlhf__probe_finish(&m->t);
    rlhf__memory_plan_close(m->memory_plan);
    rlhf__compute_close(m->compute);
}

static int open_it(struct rlhf__checked_model *m, const rlhf_model_open *how) {
    rlhf_model_open full = *how;
    struct rlhf__error err;
    full.size = sizeof full;
    full.compute = m->table;
    if (!full.dtype) full.dtype = RLHF_F32;
    rlhf__probe_begin(&m->t, "open()");
    const rlhf_status st = rlhf__checked_ops(m)->open(m->t.self, &full);
    if (st == RLHF_OK || !m->may_refuse) return rlhf__checked_fine(m, RLHF__CHECK_OPEN, st);
    rlhf__probe_end(&m->t, st, &err);
    rlhf__child_log_fact(m->t.check->log, "%s: not tried: %s", m->t.check->log->doing, err.text);
    return 0;
}

static int get_info(struct rlhf__checked_model *m) {
    const uint32_t minor = m->t.check->plugin->abi_minor;
    struct rlhf__guards *guards = rlhf__guards_open(m->t.check->log);
    rlhf_model_info *info = RLHF__GUARDED(rlhf_model_info, guards, minor);
    if (!info) return 0;
    rlhf__probe_begin(&m->t, "info()");
    const rlhf_status st = rlhf__checked_ops(m)->info(m->t.self, info);
    rlhf__guard_struct_end(RLHF__STRUCT_rlhf_model_info, info, &m->info, minor, m->t.check->log);
    rlhf__guards_close(guards);
    return rlhf__checked_fine(m, RLHF__CHECK_OPEN, st);
}

rlhf_status rlhf__checked_param(struct rlhf__checked_model *m, uint32_t i, rlhf_param *out) {
    const uint32_t minor = m->t.check->plugin->abi_minor;
    struct rlhf__guards *guards = rlhf__guards_open(m->t.check->log);
    rlhf_param *param = RLHF__GUARDED(rlhf_param, guards, minor);
    if (!param) return RLHF_E_NOMEM;
    const rlhf_status st = rlhf__checked_ops(m)->param(m->t.self, i, param);
    rlhf__guard_struct_end(RLHF__STRUCT_rlhf_param, param, out, minor, m->t.check->log);
    rlhf__guards_close(guards);
    return st;
}

int rlhf__checked_open(struct rlhf__check *c, struct rlhf__checked_model *m, int on_plan,
                       const rlhf_model_open *how) {
    const struct rlhf__compute_spec spec = {.dirs = c->dirs, .backend = "reference"};
    struct rlhf__error err;
    *m = (struct rlhf__checked_model){.trainable = how->trainable, .may_refuse = m->may_refuse};
    m->t.check = c;
    if (rlhf__compute_open(&spec, &m->compute, &err) < 0) {
        rlhf__child_log_fact(c->log, "numbers were not tried: %s", err.text);
        return 0;
    }
    m->table = m->compute->table;
    const struct rlhf__instance *kernels = m->compute->kernels.instance;
    if (on_plan && rlhf__memory_plan_open(m->table, &m->memory_plan, &err) < 0) return 0;
    if (on_plan) m->table = rlhf__memory_plan_table(m->memory_plan);
    if (rlhf__probe_init(c, NULL, 0, &m->t, &err) < 0) return 0;
    m->t.kernels = kernels;
    if (!open_it(m, how)) return 0;
    return get_info(m);
}

int rlhf__checked_is_small(struct rlhf__check *c, uint32_t heads, rlhf_model_info *info) {
    struct rlhf__checked_model m = {0};
    int small = rlhf__checked_open(c, &m, 1, &(rlhf_model_open){0});
    *info = m.info;
    if (small && (m.info.n_params > MOST || m.info.n_vocab < LEAST_VOCAB ||
                  m.info.n_ctx < RLHF__CHECKED_LONGEST)) {
        rlhf__child_log_fact(c->log,
                             "numbers were not tried: %lld parameters, a vocabulary of %d and a "
                             "context of %d; at most %d, at least %d and %d are (--set)",
                             (long long)m.info.n_params, m.info.n_vocab, m.info.n_ctx, MOST,
                             LEAST_VOCAB, RLHF__CHECKED_LONGEST);
        small = 0;
    } else if (small && heads && !(m.info.heads & heads)) {
        rlhf__child_log_fact(c->log, "log-probs were not tried: it gives none");
        small = 0;
    }
    rlhf__checked_close(&m);
    return small;
}

static float number(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

// Set *p to parameter i. Returns the parameter's number of elements, or 0 if param() fails.
static int64_t get(struct rlhf__checked_model *m, int32_t i, rlhf_param *p) {
    int64_t n = 1;
    if (rlhf__checked_param(m, (uint32_t)i, p) < 0) return 0;
    for (int32_t k = 0; k < p->ndim; k++)
        n *= p->shape[k];
    return n;
}

static int is_b(const rlhf_param *p) {
    static const char end[] = ".lora_B.weight";
    const size_t n = strlen(p->name);
    return n >= sizeof end - 1 && strcmp(p->name + n - (sizeof end - 1), end) == 0;
}

// Writes the values of parameter i. Returns 0 if that fails.
static int put(struct rlhf__checked_model *m, uint32_t i, const rlhf_param *p, const float *x,
               uint64_t bytes) {
    const rlhf_model_ops *ops = rlhf__checked_ops(m);
    rlhf_dev to = p->value;
    if (!to && !ops->fill_begin) return 1; // check_model.c reports it
    rlhf__probe_begin(&m->t, "fill_begin()");
    if (!to && !rlhf__checked_fine(m, RLHF__CHECK_FORWARD, ops->fill_begin(m->t.self, i, &to)))
        return 0;
    if (m->table->upload(m->table->ctx, to, x, bytes) < 0) return 0;
    if (p->value) return 1;
    rlhf__probe_begin(&m->t, "fill_end()");
    return rlhf__checked_fine(m, RLHF__CHECK_FORWARD, ops->fill_end(m->t.self, i));
}

int rlhf__checked_fill(struct rlhf__checked_model *m, uint32_t seed, float eps, int flags) {
    for (int32_t i = 0; i < m->info.n_tensors; i++) {
        rlhf_param p;
        uint32_t state = seed + 11u + (uint32_t)i, way = 77u + (uint32_t)i;
        const int64_t n = get(m, i, &p);
        const float scale = is_b(&p) && (flags & RLHF__CHECKED_ZERO_B) ? 0 : 0.15f;
        if (!n) return 0;
        if (!p.value && m->filled) continue; // only the packed copy is left
        float *x = malloc((size_t)n * sizeof *x);
        if (!x) return 0;
        for (int64_t k = 0; k < n; k++)
            x[k] = (p.init == RLHF_INIT_ONE ? 1.0f : 0.0f) + scale * number(&state) +
                   (p.grad ? eps * number(&way) : 0);
        const int fine = put(m, (uint32_t)i, &p, x, (uint64_t)n * sizeof *x);
        free(x);
        if (!fine) return 0;
    }
    m->filled = 1;
    rlhf__probe_begin(&m->t, "refresh()");
    return rlhf__checked_fine(m, RLHF__CHECK_FORWARD, rlhf__checked_ops(m)->refresh(m->t.self));
}

// Copy the gradient of parameter i to host memory, which the caller frees, and set *p and *n.
// Returns NULL if the parameter has no gradient, or if the gradient cannot be read.
static float *gradient(struct rlhf__checked_model *m, int32_t i, rlhf_param *p, int64_t *n) {
    *n = get(m, i, p);
    float *g = *n && p->grad ? calloc((size_t)*n, sizeof *g) : NULL;
    if (!g || m->table->download(m->table->ctx, g, p->grad, (uint64_t)*n * sizeof *g) == RLHF_OK)
        return g;
    free(g);
    return NULL;
}

double rlhf__checked_along(struct rlhf__checked_model *m) {
    double sum = 0;
    for (int32_t i = 0; i < m->info.n_tensors; i++) {
        rlhf_param p;
        int64_t n;
        uint32_t way = 77u + (uint32_t)i;
        float *g = gradient(m, i, &p, &n);
        if (!n || (p.grad && !g)) return NAN;
        for (int64_t k = 0; g && k < n; k++)
            sum += (double)g[k] * (double)number(&way);
        free(g);
    }
    return sum;
}

void rlhf__checked_rows_make(const struct rlhf__checked_model *m, struct rlhf__checked_rows *r) {
    static const int32_t length[RLHF__CHECKED_ROWS] = {5, RLHF__CHECKED_LONGEST, 3};
    static const int32_t prompt[RLHF__CHECKED_ROWS] = {2, 4, 1};
    uint32_t state = 3;
    *r = (struct rlhf__checked_rows){0};
    for (int32_t i = 0; i < RLHF__CHECKED_ROWS; i++) {
        r->offset[i + 1] = r->offset[i] + length[i];
        r->prompt_len[i] = prompt[i];
    }
    for (int32_t t = 0; t < r->offset[RLHF__CHECKED_ROWS]; t++)
        r->ids[t] = (int32_t)((number(&state) + 1) / 2 * (float)m->info.n_vocab) % m->info.n_vocab;
}

rlhf_batch rlhf__checked_batch(const struct rlhf__checked_rows *r, int32_t from, int32_t to,
                               int32_t *offset) {
    const int32_t base = r->offset[from];
    for (int32_t i = from; i <= to; i++)
        offset[i - from] = r->offset[i] - base;
    return (rlhf_batch){.size = sizeof(rlhf_batch),
                        .n = (uint32_t)(to - from),
                        .total = (uint32_t)(r->offset[to] - base),
                        .ids = r->ids + base,
                        .offset = offset,
                        .prompt_len = r->prompt_len + from};
}

void rlhf__checked_weights(const struct rlhf__checked_rows *r, uint32_t seed, float *d) {
    uint32_t state = 5 + seed;
    memset(d, 0, RLHF__CHECKED_TOKENS * sizeof *d);
    for (int32_t i = 0; i < RLHF__CHECKED_ROWS; i++)
        for (int32_t t = r->offset[i] + r->prompt_len[i]; t < r->offset[i + 1]; t++)
            d[t] = number(&state);
}

int rlhf__checked_same(float a, float b) {
    uint32_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}
