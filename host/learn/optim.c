// optim.c: see optim.h.
#include "learn/optim.h"

#include "model/compute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- schedule ----

double rlhf__schedule_factor(const struct rlhf__optim_config *c, int64_t phase, int64_t horizon) {
    int64_t ahead = c->warmup_from == RLHF__WARMUP_FROM_STEP;
    if (phase < c->warmup) return (double)(phase + ahead) / (double)c->warmup;
    int64_t span = horizon - c->warmup;
    double x = span > 0 ? (double)(phase - c->warmup) / (double)span : 1;
    if (x > 1) x = 1;
    switch (c->schedule) {
    case RLHF__SCHEDULE_LINEAR:
        return 1 - (1 - c->final_scale) * x;
    case RLHF__SCHEDULE_COSINE:
        return c->final_scale + (1 - c->final_scale) * 0.5 * (1 + cos(3.14159265358979323846 * x));
    default:
        return 1;
    }
}

// ---- life ----

// Muon is for hidden matrices; embeddings, heads, vectors and gains stay with AdamW.
static int wants_muon(const struct rlhf__optim_config *c, const rlhf_param *p) {
    return c->kind == RLHF__OPTIM_MUON && p->ndim == 2 && p->group == RLHF_PARAM_TRUNK &&
           !(p->flags & RLHF_PARAM_EMBED);
}

static rlhf_status item_init(struct rlhf__optim *o, struct rlhf__optim_item *it,
                             const rlhf_param *p, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    if (!p->grad) return rlhf__fail(err, RLHF_E_INTERNAL, "parameter %s has no gradient", p->name);
    it->param = *p;
    it->n = 1;
    for (int32_t d = 0; d < p->ndim; d++)
        it->n *= p->shape[d];
    it->muon = wants_muon(&o->config, p);
    if (it->muon) {
        it->rows = (int32_t)p->shape[0];
        it->cols = (int32_t)p->shape[1];
    }
    rlhf_status st = t->alloc(t->ctx, (uint64_t)it->n * 4, &it->m);
    if (st == RLHF_OK && !it->muon) st = t->alloc(t->ctx, (uint64_t)it->n * 4, &it->v);
    return st == RLHF_OK ? st : rlhf__compute_fail(t, st, "optimiser state", err);
}

// The list of all tensors that sumsq_many and adamw_many read, where the backend has both: the
// items and, behind them, room for what else lies in the range of the gradients.
static rlhf_status list_init(struct rlhf__optim *o, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    const size_t n = 2 * (size_t)o->n + 1;
    if (!RLHF_COMPUTE_HAS(t, sumsq_many) || !RLHF_COMPUTE_HAS(t, adamw_many)) return RLHF_OK;
    o->len = calloc(n, sizeof *o->len);
    o->places = calloc(n * 4, sizeof *o->places);
    o->rates = calloc(n * 2, sizeof *o->rates);
    if (!o->len || !o->places || !o->rates)
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the optimiser");
    rlhf_dev *g = o->places, *w = g + n, *m = w + n, *v = m + n;
    for (uint32_t i = 0; i < o->n; i++) {
        const struct rlhf__optim_item *it = &o->items[i];
        o->len[i] = (uint64_t)it->n;
        g[i] = it->param.grad;
        w[i] = it->muon ? NULL : it->param.value;
        m[i] = it->m;
        v[i] = it->v;
    }
    o->list = (rlhf_tensors){sizeof o->list, o->n, o->len, g, w, m, v, o->rates, o->rates + n};
    const rlhf_status st = t->alloc(t->ctx, sizeof(rlhf_clip), &o->clip);
    return st == RLHF_OK ? st : rlhf__compute_fail(t, st, "optimiser state", err);
}

// The name of an op that a step calls and the table lacks, or NULL.
static const char *lacking(const rlhf_compute *t, const struct rlhf__optim_config *c) {
    if (!RLHF_COMPUTE_HAS(t, sumsq)) return "sumsq";
    if (!RLHF_COMPUTE_HAS(t, adamw)) return "adamw";
    return c->kind == RLHF__OPTIM_MUON && !RLHF_COMPUTE_HAS(t, muon) ? "muon" : NULL;
}

rlhf_status rlhf__optim_create(const rlhf_compute *compute, const rlhf_param *params, uint32_t n,
                               const struct rlhf__optim_config *config, double head_lr,
                               struct rlhf__optim **out, struct rlhf__error *err) {
    *out = NULL;
    const char *op = lacking(compute, config);
    if (op)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the compute backend '%s' does not support %s, which training needs",
                          compute->name, op);
    struct rlhf__optim *o = calloc(1, sizeof *o);
    if (o) o->items = calloc(n ? n : 1, sizeof *o->items);
    if (!o || !o->items) {
        free(o);
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the optimiser");
    }
    o->compute = compute;
    o->config = *config;
    o->head_lr = head_lr > 0 ? head_lr : config->lr;
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        if (params[i].flags & RLHF_PARAM_FROZEN) continue;
        st = item_init(o, &o->items[o->n++], &params[i], err);
        o->muon |= o->items[o->n - 1].muon;
    }
    if (st == RLHF_OK && n > 0 && o->n == 0)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "there is nothing to train: the model says of all its %u parameters that "
                        "they are frozen",
                        n);
    if (st == RLHF_OK) st = list_init(o, err);
    if (st != RLHF_OK) {
        rlhf__optim_destroy(o);
        return st;
    }
    *out = o;
    return RLHF_OK;
}

void rlhf__optim_destroy(struct rlhf__optim *o) {
    if (!o) return;
    for (uint32_t i = 0; i < o->n; i++) {
        o->compute->release(o->compute->ctx, o->items[i].m);
        o->compute->release(o->compute->ctx, o->items[i].v);
    }
    o->compute->release(o->compute->ctx, o->clip);
    free(o->rates);
    free(o->places);
    free(o->len);
    free(o->items);
    free(o);
}

void rlhf__optim_range(struct rlhf__optim *o, rlhf_dev base, uint64_t bytes) {
    o->grads = base;
    o->grads_bytes = bytes;
    o->n_between = 0;
    if (!o->list.size || !base) return;
    const uintptr_t from = (uintptr_t)base;
    for (uint64_t at = 0; at < bytes;) {
        uint64_t next = bytes, end = bytes; // the first item at or after `at`
        for (uint32_t i = 0; i < o->n; i++) {
            const uint64_t start = (uintptr_t)o->items[i].param.grad - from;
            if (o->items[i].n == 0 || start < at || start >= next) continue;
            next = start;
            end = start + (uint64_t)o->items[i].n * sizeof(float);
        }
        if (next > at) {
            const uint32_t k = o->n + o->n_between++;
            o->places[k] = rlhf_dev_at(base, at);
            o->len[k] = (next - at) / sizeof(float);
        }
        at = end;
    }
}

rlhf_status rlhf__optim_tensor(const struct rlhf__optim *o, uint32_t i, char *name, size_t cap,
                               rlhf_dev *out, const rlhf_param **param) {
    for (uint32_t k = 0; k < o->n; k++) {
        const struct rlhf__optim_item *it = &o->items[k];
        uint32_t count = it->muon ? 1 : 2;
        if (i >= count) {
            i -= count;
            continue;
        }
        const char *kind = it->muon ? "momentum" : i == 0 ? "m" : "v";
        snprintf(name, cap, "%s.%s", kind, it->param.name);
        *out = i == 0 ? it->m : it->v;
        *param = &it->param;
        return RLHF_OK;
    }
    return RLHF_E_INVALID;
}
