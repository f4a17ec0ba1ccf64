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

// ---- steps ----

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
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++)
        if (!(params[i].flags & RLHF_PARAM_FROZEN))
            st = item_init(o, &o->items[o->n++], &params[i], err);
    if (st == RLHF_OK && n > 0 && o->n == 0)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "there is nothing to train: the model says of all its %u parameters that "
                        "they are frozen",
                        n);
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
    free(o->items);
    free(o);
}

void rlhf__optim_range(struct rlhf__optim *o, rlhf_dev base, uint64_t bytes) {
    o->grads = base;
    o->grads_bytes = bytes;
}

static rlhf_status zero_grads(const struct rlhf__optim *o, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    rlhf_status st = o->grads ? t->zero(t->ctx, o->grads, o->grads_bytes) : RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && !o->grads && i < o->n; i++)
        st = t->zero(t->ctx, o->items[i].param.grad, (uint64_t)o->items[i].n * 4);
    return st == RLHF_OK ? st : rlhf__compute_fail(t, st, "zeroing the gradients", err);
}

// Sum in parameter order, so that the norm has the same bits on every run.
static rlhf_status grad_norm(const struct rlhf__optim *o, double *norm, struct rlhf__error *err) {
    double sum = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        double part = 0;
        rlhf_status st = o->compute->sumsq(o->compute->ctx, o->items[i].param.grad,
                                           (uint64_t)o->items[i].n, &part);
        if (st != RLHF_OK) return rlhf__compute_fail(o->compute, st, "gradient norm", err);
        sum += part;
    }
    *norm = sqrt(sum);
    return RLHF_OK;
}

static rlhf_status update_item(const struct rlhf__optim *o, const struct rlhf__optim_item *it,
                               double factor, double grad_scale) {
    const struct rlhf__optim_config *c = &o->config;
    const rlhf_compute *t = o->compute;
    double decay = it->param.flags & RLHF_PARAM_DECAY ? c->weight_decay : 0;
    if (it->muon) {
        const int32_t in_out = (it->param.flags & RLHF_PARAM_IN_OUT) != 0;
        rlhf_muon a = {sizeof(rlhf_muon), 1,     5,         in_out, c->muon_lr * factor,
                       c->muon_momentum,  decay, grad_scale};
        return t->muon(t->ctx, it->param.value, it->param.grad, it->m, it->rows, it->cols, &a);
    }
    double lr = (it->param.group == RLHF_PARAM_VALUE ? o->head_lr : c->lr) * factor;
    rlhf_adamw a = {sizeof(rlhf_adamw), c->epsilon,   lr, c->beta1, c->beta2, c->eps, decay,
                    grad_scale,         o->count.step};
    return t->adamw(t->ctx, it->param.value, it->param.grad, it->m, it->v, (uint64_t)it->n, &a);
}

static rlhf_status skip_step(struct rlhf__optim *o, struct rlhf__error *err) {
    o->count.skipped++;
    o->count.skipped_row++;
    if (o->config.max_skipped > 0 && o->count.skipped_row >= o->config.max_skipped)
        return rlhf__fail(err, RLHF_E_NUMERIC,
                          "the loss or its gradient was not finite in %lld steps in a row "
                          "(optim.max_skipped)",
                          (long long)o->count.skipped_row);
    return RLHF_OK;
}

rlhf_status rlhf__optim_step(struct rlhf__optim *o, double factor, int32_t loss_ok,
                             struct rlhf__optim_report *report, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    double norm = 0, scale = 1, max = o->config.max_grad_norm;
    rlhf_status st = grad_norm(o, &norm, err);
    if (st != RLHF_OK) return st;
    if (max > 0 && norm > max) scale = max / norm;
    *report = (struct rlhf__optim_report){norm, norm * scale, !loss_ok || !isfinite(norm), 0};
    if (!report->skipped) {
        o->count.step++;
        o->count.skipped_row = 0;
    } else {
        report->grad_norm_clipped = 0;
        st = skip_step(o, err);
        if (st != RLHF_OK) return st;
    }
    for (uint32_t i = 0; !report->skipped && i < o->n; i++) {
        const struct rlhf__optim_item *it = &o->items[i];
        st = update_item(o, it, factor, scale);
        if (st != RLHF_OK) return rlhf__compute_fail(t, st, it->param.name, err);
    }
    return zero_grads(o, err);
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
