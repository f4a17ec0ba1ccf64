// optim_step.c: one step of the optimiser: the norm of the gradients, clipping, skipping, updates.
// See optim.h.
#include "learn/optim.h"

#include "model/compute.h"

#include <math.h>

static double lr_of(const struct rlhf__optim *o, const struct rlhf__optim_item *it) {
    return it->param.group == RLHF_PARAM_VALUE ? o->head_lr : o->config.lr;
}

static double decay_of(const struct rlhf__optim *o, const struct rlhf__optim_item *it) {
    return it->param.flags & RLHF_PARAM_DECAY ? o->config.weight_decay : 0;
}

static rlhf_status muon(const struct rlhf__optim *o, const struct rlhf__optim_item *it,
                        double factor, double grad_scale, struct rlhf__error *err) {
    const struct rlhf__optim_config *c = &o->config;
    const rlhf_compute *t = o->compute;
    const int32_t in_out = (it->param.flags & RLHF_PARAM_IN_OUT) != 0;
    const rlhf_muon a = {
        sizeof(rlhf_muon), 1,         5, in_out, c->muon_lr * factor, c->muon_momentum,
        decay_of(o, it),   grad_scale};
    const rlhf_status st =
        t->muon(t->ctx, it->param.value, it->param.grad, it->m, it->rows, it->cols, &a);
    return st == RLHF_OK ? st : rlhf__compute_fail(t, st, it->param.name, err);
}

static rlhf_status muon_all(const struct rlhf__optim *o, double factor, double grad_scale,
                            struct rlhf__error *err) {
    for (uint32_t i = 0; i < o->n; i++)
        if (o->items[i].muon) RLHF_TRY(muon(o, &o->items[i], factor, grad_scale, err));
    return RLHF_OK;
}

static rlhf_status zero_grads(const struct rlhf__optim *o, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    rlhf_status st = o->grads ? t->zero(t->ctx, o->grads, o->grads_bytes) : RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && !o->grads && i < o->n; i++)
        st = t->zero(t->ctx, o->items[i].param.grad, (uint64_t)o->items[i].n * 4);
    return st == RLHF_OK ? st : rlhf__compute_fail(t, st, "zeroing the gradients", err);
}

// AdamW with the numbers that no tensor has of its own; step is the one that is being taken.
static rlhf_adamw adamw_of(const struct rlhf__optim *o, double lr, double decay, double scale) {
    const struct rlhf__optim_config *c = &o->config;
    return (rlhf_adamw){sizeof(rlhf_adamw), c->epsilon, lr,    c->beta1,
                        c->beta2,           c->eps,     decay, scale,
                        o->count.step + 1};
}

// ---- a tensor a call ----

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

static rlhf_status adamw(const struct rlhf__optim *o, const struct rlhf__optim_item *it,
                         double factor, double grad_scale, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    const rlhf_adamw a = adamw_of(o, lr_of(o, it) * factor, decay_of(o, it), grad_scale);
    const rlhf_status st =
        t->adamw(t->ctx, it->param.value, it->param.grad, it->m, it->v, (uint64_t)it->n, &a);
    return st == RLHF_OK ? st : rlhf__compute_fail(t, st, it->param.name, err);
}

static rlhf_status step_singly(const struct rlhf__optim *o, double factor, int32_t loss_ok,
                               rlhf_clip *clip, struct rlhf__error *err) {
    const double max = o->config.max_grad_norm;
    *clip = (rlhf_clip){.scale = 1};
    RLHF_TRY(grad_norm(o, &clip->norm, err));
    if (max > 0 && clip->norm > max) clip->scale = max / clip->norm;
    clip->skip = !loss_ok || !isfinite(clip->norm);
    if (clip->skip) return zero_grads(o, err);
    RLHF_TRY(muon_all(o, factor, clip->scale, err));
    for (uint32_t i = 0; i < o->n; i++)
        if (!o->items[i].muon) RLHF_TRY(adamw(o, &o->items[i], factor, clip->scale, err));
    return zero_grads(o, err);
}

// ---- all in a few calls ----

static rlhf_status read_clip(const struct rlhf__optim *o, rlhf_clip *clip,
                             struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    const rlhf_status st = t->download(t->ctx, clip, o->clip, sizeof *clip);
    return st == RLHF_OK ? st : rlhf__compute_fail(t, st, "gradient norm", err);
}

// The clip factor and what is skipped are decided on the device. The host reads them once: last, or
// before Muon, which takes the factor from the host. What lies between the gradients counts nowhere
// and is zeroed with them.
static rlhf_status step_as_list(const struct rlhf__optim *o, double factor, int32_t loss_ok,
                                rlhf_clip *clip, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    const rlhf_adamw a = adamw_of(o, factor, 1, 1);
    rlhf_tensors all = o->list;
    all.n += o->n_between;
    for (uint32_t i = 0; i < o->n; i++) {
        o->rates[i] = lr_of(o, &o->items[i]);
        o->rates[2 * o->n + 1 + i] = decay_of(o, &o->items[i]);
    }
    rlhf_status st = t->sumsq_many(t->ctx, &o->list, o->config.max_grad_norm, !loss_ok, o->clip);
    if (st != RLHF_OK) return rlhf__compute_fail(t, st, "gradient norm", err);
    if (o->muon) {
        RLHF_TRY(read_clip(o, clip, err));
        if (!clip->skip) RLHF_TRY(muon_all(o, factor, clip->scale, err));
    }
    st = t->adamw_many(t->ctx, &all, &a, o->clip);
    if (st != RLHF_OK) return rlhf__compute_fail(t, st, "the optimiser's step", err);
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
    RLHF_TRY(o->list.size ? step_as_list(o, factor, loss_ok, &clip, err)
                          : step_singly(o, factor, loss_ok, &clip, err));
    *report = (struct rlhf__optim_report){clip.norm, clip.norm * clip.scale, clip.skip, 0};
    if (!clip.skip) {
        o->count.step++;
        o->count.skipped_row = 0;
        return RLHF_OK;
    }
    report->grad_norm_clipped = 0;
    return count_skipped(o, err);
}
