// optim.c: see optim.h.
#include "learn/optim.h"

#include "learn/optim_blocks.h"
#include "model/compute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- life ----

// Muon is for hidden matrices. Embeddings, heads, vectors and gains use AdamW.
static int wants_muon(const struct rlhf__optim_config *c, const rlhf_param *p) {
    return c->kind == RLHF__OPTIM_MUON && p->ndim == 2 && p->group == RLHF_PARAM_TRUNK &&
           !(p->flags & RLHF_PARAM_EMBED);
}

uint64_t rlhf__optim_state_bytes(const struct rlhf__optim_config *c, const rlhf_param *params,
                                 uint32_t n) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t each = sizeof(float) * (wants_muon(c, &params[i]) ? 1 : 2);
        for (int32_t d = 0; d < params[i].ndim; d++)
            each *= (uint64_t)params[i].shape[d];
        if (!(params[i].flags & RLHF_PARAM_FROZEN)) bytes += each;
    }
    return bytes;
}

static rlhf_status item_init(struct rlhf__optim *o, struct rlhf__optim_item *it,
                             const rlhf_param *p, struct rlhf__error *err) {
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
    return RLHF_OK;
}

// If the backend has sumsq_many and adamw_many, build the list of tensors for these functions. The
// parameters come first. The entries after them are for the parts of the gradient buffer that
// belong to no parameter.
static rlhf_status list_init(struct rlhf__optim *o, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    const size_t n = 2 * (size_t)o->n + 1;
    if (!RLHF_COMPUTE_HAS(t, sumsq_many) || !RLHF_COMPUTE_HAS(t, adamw_many)) return RLHF_OK;
    o->len = calloc(n, sizeof *o->len);
    o->places = calloc(n * 4, sizeof *o->places);
    o->rates = calloc(n * 2, sizeof *o->rates);
    if (!o->len || !o->places || !o->rates)
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the optimizer");
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
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, "optimizer state", err);
}

// Returns the name of an op that a step needs and the table lacks, or NULL.
static const char *lacking(const rlhf_compute *t, const struct rlhf__optim_config *c) {
    if (!RLHF_COMPUTE_HAS(t, sumsq)) return "sumsq";
    if (!RLHF_COMPUTE_HAS(t, adamw)) return "adamw";
    return c->kind == RLHF__OPTIM_MUON && !RLHF_COMPUTE_HAS(t, muon) ? "muon" : NULL;
}

// Record the range of all gradients, and the parts of this range that belong to no parameter.
static void find_between(struct rlhf__optim *o, const struct rlhf__optim_spec *spec) {
    const rlhf_dev base = spec->grads;
    const uint64_t bytes = spec->grads_bytes;
    o->grads = base;
    o->grads_bytes = bytes;
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

static rlhf_status items_init(struct rlhf__optim *o, const struct rlhf__optim_spec *spec,
                              struct rlhf__error *err) {
    for (uint32_t i = 0; i < spec->n; i++) {
        if (spec->params[i].flags & RLHF_PARAM_FROZEN) continue;
        RLHF_TRY(item_init(o, &o->items[o->n++], &spec->params[i], err));
        o->muon |= o->items[o->n - 1].muon;
    }
    if (o->n > 0 || spec->n == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "there is nothing to train: the model says of all its %u parameters that "
                      "they are frozen",
                      spec->n);
}

// Allocate the moments of all parameters, for a process that keeps the whole state.
static rlhf_status moments_init(struct rlhf__optim *o, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && i < o->n; i++) {
        struct rlhf__optim_item *it = &o->items[i];
        st = t->alloc(t->ctx, (uint64_t)it->n * 4, &it->m);
        if (st == RLHF_OK && !it->muon) st = t->alloc(t->ctx, (uint64_t)it->n * 4, &it->v);
    }
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, "optimizer state", err);
}

static rlhf_status init(struct rlhf__optim *o, const struct rlhf__optim_spec *spec,
                        struct rlhf__error *err) {
    const struct rlhf__share *share = spec->share;
    RLHF_TRY(items_init(o, spec, err));
    if (!share || share->ranks <= 1) RLHF_TRY(moments_init(o, err));
    RLHF_TRY(list_init(o, err));
    find_between(o, spec);
    return share && share->shards > 1 ? rlhf__optim_blocks_init(o, share, err) : RLHF_OK;
}

rlhf_status rlhf__optim_open(const rlhf_compute *compute, const struct rlhf__optim_spec *spec,
                             struct rlhf__optim **out, struct rlhf__error *err) {
    *out = NULL;
    const char *op = lacking(compute, spec->config);
    if (op)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the compute backend '%s' does not support %s, which training needs",
                          compute->name, op);
    struct rlhf__optim *o = calloc(1, sizeof *o);
    if (o) o->items = calloc(spec->n ? spec->n : 1, sizeof *o->items);
    if (!o || !o->items) {
        free(o);
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the optimizer");
    }
    o->compute = compute;
    o->kernels = spec->kernels;
    o->config = *spec->config;
    o->head_lr = spec->head_lr > 0 ? spec->head_lr : spec->config->lr;
    const rlhf_status st = init(o, spec, err);
    if (st != RLHF_OK) {
        rlhf__optim_close(o);
        return st;
    }
    *out = o;
    return RLHF_OK;
}

int rlhf__optim_divided(const struct rlhf__optim *o) { return o->blocks && o->blocks->moments; }

void rlhf__optim_close(struct rlhf__optim *o) {
    if (!o) return;
    for (uint32_t i = 0; i < o->n && rlhf__optim_divided(o); i++)
        o->items[i].m = NULL; // a part of the blocks' buffer
    rlhf__optim_blocks_finish(o);
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

// Returns the item to which tensor i of the state belongs, or NULL past the end. *v is 1 if the
// tensor is the item's second moment, otherwise 0.
static const struct rlhf__optim_item *state_item(const struct rlhf__optim *o, uint32_t i, int *v) {
    *v = 0;
    for (uint32_t k = 0; k < o->n; k++) {
        const uint32_t count = o->items[k].muon ? 1 : 2;
        *v = i == 1;
        if (i < count) return &o->items[k];
        i -= count;
    }
    return NULL;
}

rlhf_status rlhf__optim_tensor(const struct rlhf__optim *o, uint32_t i, char *name, size_t cap,
                               rlhf_dev *out, const rlhf_param **param) {
    int v;
    const struct rlhf__optim_item *it = state_item(o, i, &v);
    if (!it) return RLHF_E_INVALID;
    snprintf(name, cap, "%s.%s", it->muon ? "momentum" : v ? "v" : "m", it->param.name);
    *out = rlhf__optim_divided(o) ? NULL : v ? it->v : it->m;
    *param = &it->param;
    return RLHF_OK;
}

uint64_t rlhf__optim_elements(const struct rlhf__optim *o, uint32_t i) {
    int v;
    const struct rlhf__optim_item *it = state_item(o, i, &v);
    return it ? (uint64_t)it->n : 0;
}

rlhf_status rlhf__optim_get(const struct rlhf__optim *o, uint32_t i, uint64_t from, uint64_t n,
                            float *host, struct rlhf__error *err) {
    int v;
    const rlhf_compute *t = o->compute;
    const struct rlhf__optim_item *it = state_item(o, i, &v);
    if (rlhf__optim_divided(o))
        return rlhf__optim_blocks_get(o, (uint32_t)(it - o->items), v, from, n, host, err);
    const rlhf_dev at = rlhf_dev_at(v ? it->v : it->m, from * sizeof *host);
    const rlhf_status st = t->download(t->ctx, host, at, n * sizeof *host);
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, it->param.name, err);
}

rlhf_status rlhf__optim_put(struct rlhf__optim *o, uint32_t i, uint64_t from, uint64_t n,
                            const float *host, struct rlhf__error *err) {
    int v;
    const rlhf_compute *t = o->compute;
    const struct rlhf__optim_item *it = state_item(o, i, &v);
    if (rlhf__optim_divided(o))
        return rlhf__optim_blocks_put(o, (uint32_t)(it - o->items), v, from, n, host, err);
    const rlhf_dev at = rlhf_dev_at(v ? it->v : it->m, from * sizeof *host);
    const rlhf_status st = t->upload(t->ctx, at, host, n * sizeof *host);
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, it->param.name, err);
}

int rlhf__optim_memory(const struct rlhf__optim *o, uint32_t k, rlhf_dev *out, uint64_t *bytes) {
    int v;
    const struct rlhf__optim_item *it = state_item(o, k, &v);
    if (rlhf__optim_divided(o)) {
        *out = o->blocks->moments;
        *bytes = o->blocks->moments_bytes;
        return k == 0;
    }
    if (!it) return 0;
    *out = v ? it->v : it->m;
    *bytes = (uint64_t)it->n * sizeof(float);
    return 1;
}

// ---- one step ----

double rlhf__optim_lr(const struct rlhf__optim *o, const struct rlhf__optim_item *it) {
    return it->param.group == RLHF_PARAM_VALUE ? o->head_lr : o->config.lr;
}

double rlhf__optim_decay(const struct rlhf__optim *o, const struct rlhf__optim_item *it) {
    return it->param.flags & RLHF_PARAM_DECAY ? o->config.weight_decay : 0;
}

rlhf_status rlhf__optim_muon(const struct rlhf__optim *o, const struct rlhf__optim_item *it,
                             double factor, double grad_scale, struct rlhf__error *err) {
    const struct rlhf__optim_config *c = &o->config;
    const rlhf_compute *t = o->compute;
    const int32_t in_out = (it->param.flags & RLHF_PARAM_IN_OUT) != 0;
    const rlhf_muon a = {
        sizeof(rlhf_muon),        1,         5, in_out, c->muon_lr * factor, c->muon_momentum,
        rlhf__optim_decay(o, it), grad_scale};
    const rlhf_status st =
        t->muon(t->ctx, it->param.value, it->param.grad, it->m, it->rows, it->cols, &a);
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, it->param.name, err);
}

static rlhf_status muon_all(const struct rlhf__optim *o, double factor, double grad_scale,
                            struct rlhf__error *err) {
    for (uint32_t i = 0; i < o->n; i++)
        if (o->items[i].muon) RLHF_TRY(rlhf__optim_muon(o, &o->items[i], factor, grad_scale, err));
    return RLHF_OK;
}

rlhf_status rlhf__optim_zero(const struct rlhf__optim *o, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    rlhf_status st = o->grads ? t->zero(t->ctx, o->grads, o->grads_bytes) : RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && !o->grads && i < o->n; i++)
        st = t->zero(t->ctx, o->items[i].param.grad, (uint64_t)o->items[i].n * 4);
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, "zeroing the gradients", err);
}

rlhf_adamw rlhf__optim_adamw(const struct rlhf__optim *o, double lr, double decay, double scale) {
    const struct rlhf__optim_config *c = &o->config;
    return (rlhf_adamw){sizeof(rlhf_adamw), c->epsilon, lr,    c->beta1,
                        c->beta2,           c->eps,     decay, scale,
                        o->count.step + 1};
}

// ---- one tensor per call ----

// The sum runs in parameter order, so that the norm has the same bits in every run.
static rlhf_status grad_norm(const struct rlhf__optim *o, double *norm, struct rlhf__error *err) {
    double sum = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        double part = 0;
        rlhf_status st = o->compute->sumsq(o->compute->ctx, o->items[i].param.grad,
                                           (uint64_t)o->items[i].n, &part);
        if (st != RLHF_OK) return rlhf__compute_fail(o->kernels, st, "gradient norm", err);
        sum += part;
    }
    *norm = sqrt(sum);
    return RLHF_OK;
}

static rlhf_status adamw(const struct rlhf__optim *o, const struct rlhf__optim_item *it,
                         double factor, double grad_scale, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    const rlhf_adamw a =
        rlhf__optim_adamw(o, rlhf__optim_lr(o, it) * factor, rlhf__optim_decay(o, it), grad_scale);
    const rlhf_status st =
        t->adamw(t->ctx, it->param.value, it->param.grad, it->m, it->v, (uint64_t)it->n, &a);
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, it->param.name, err);
}

static rlhf_status step_singly(const struct rlhf__optim *o, double factor, int32_t loss_ok,
                               rlhf_clip *clip, struct rlhf__error *err) {
    const double max = o->config.max_grad_norm;
    *clip = (rlhf_clip){.scale = 1};
    RLHF_TRY(grad_norm(o, &clip->norm, err));
    if (max > 0 && clip->norm > max) clip->scale = max / clip->norm;
    clip->skip = !loss_ok || !isfinite(clip->norm);
    if (clip->skip) return rlhf__optim_zero(o, err);
    RLHF_TRY(muon_all(o, factor, clip->scale, err));
    for (uint32_t i = 0; i < o->n; i++)
        if (!o->items[i].muon) RLHF_TRY(adamw(o, &o->items[i], factor, clip->scale, err));
    return rlhf__optim_zero(o, err);
}

// ---- all tensors in a few calls ----

static rlhf_status read_clip(const struct rlhf__optim *o, rlhf_clip *clip,
                             struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    const rlhf_status st = t->download(t->ctx, clip, o->clip, sizeof *clip);
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, "gradient norm", err);
}

// Take a step on the list of all tensors. The device computes the clip factor and decides whether
// to skip the step. The host downloads both results together, at the end of the step. With Muon,
// which needs the factor on the host, it downloads them earlier. The parts between the gradients
// are not in the norm, but must be zeroed too.
static rlhf_status step_as_list(const struct rlhf__optim *o, double factor, int32_t loss_ok,
                                rlhf_clip *clip, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    const rlhf_adamw a = rlhf__optim_adamw(o, factor, 1, 1);
    rlhf_tensors all = o->list;
    all.n += o->n_between;
    for (uint32_t i = 0; i < o->n; i++) {
        o->rates[i] = rlhf__optim_lr(o, &o->items[i]);
        o->rates[2 * o->n + 1 + i] = rlhf__optim_decay(o, &o->items[i]);
    }
    rlhf_status st = t->sumsq_many(t->ctx, &o->list, o->config.max_grad_norm, !loss_ok, o->clip);
    if (st != RLHF_OK) return rlhf__compute_fail(o->kernels, st, "gradient norm", err);
    if (o->muon) {
        RLHF_TRY(read_clip(o, clip, err));
        if (!clip->skip) RLHF_TRY(muon_all(o, factor, clip->scale, err));
    }
    st = t->adamw_many(t->ctx, &all, &a, o->clip);
    if (st != RLHF_OK) return rlhf__compute_fail(o->kernels, st, "the optimizer's step", err);
    return o->muon ? RLHF_OK : read_clip(o, clip, err);
}

static rlhf_status count_skipped(struct rlhf__optim *o, struct rlhf__error *err) {
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
    rlhf_clip clip = {0};
    RLHF_TRY(o->blocks      ? rlhf__optim_blocks_step(o, factor, loss_ok, &clip, err)
             : o->list.size ? step_as_list(o, factor, loss_ok, &clip, err)
                            : step_singly(o, factor, loss_ok, &clip, err));
    *report = (struct rlhf__optim_report){clip.norm, clip.norm * clip.scale, clip.skip};
    if (!clip.skip) {
        o->count.step++;
        o->count.skipped_row = 0;
        return RLHF_OK;
    }
    report->grad_norm_clipped = 0;
    return count_skipped(o, err);
}
