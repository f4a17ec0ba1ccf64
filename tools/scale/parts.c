// parts.c: see parts.h.
#include "scale/parts.h"

#include "base/clock.h"
#include "learn/microbatch.h"
#include "learn/optim.h"
#include "learn/pass.h"
#include "run/phase_passes.h"

#include <stdlib.h>

// Each size is timed repeatedly until ENOUGH_S seconds have passed, but at least twice and at most
// TIMES times.
#define ENOUGH_S 0.3
enum { TIMES = 8 };

struct timer {
    double began, best;
    int n;
};

static int again(const struct timer *t) {
    return t->n < 2 || (t->n < TIMES && rlhf__seconds() - t->began < ENOUGH_S);
}

static void take(struct timer *t, double from) {
    const double s = rlhf__seconds() - from;
    if (t->n == 0 || s < t->best) t->best = s;
    t->n++;
}

static rlhf_status sync_all(const struct rlhf__run *r, struct rlhf__error *err) {
    const rlhf_compute *c = r->session.compute->table;
    const rlhf_status st = c->sync(c->ctx);
    if (st == RLHF_OK) return RLHF_OK;
    return rlhf__compute_fail(rlhf__model_kernels(r->cast.policy), st, "measuring", err);
}

// List the sizes n, n / 2, .., 1, the smallest first. If there are more sizes than a curve can have
// points, list only the largest ones. Returns how many are listed.
static uint32_t sizes(uint32_t n, uint32_t out[RLHF__SCALE_POINTS]) {
    uint32_t k = 0, first;
    for (uint32_t x = n; x > 0 && k < RLHF__SCALE_POINTS; x /= 2)
        k++;
    first = k;
    for (uint32_t x = n; first > 0; x /= 2)
        out[--first] = x;
    return k;
}

// Other work on the machine can only lengthen a time. So if a size took longer than the next larger
// size, give it the time of the larger one.
static void smooth(struct rlhf__scale_curve *c) {
    for (uint32_t i = c->n; i-- > 1;)
        if (c->at[i - 1].seconds > c->at[i].seconds) c->at[i - 1].seconds = c->at[i].seconds;
}

// ---- drawing ----

static rlhf_status draw(struct rlhf__run *r, uint32_t groups, struct rlhf__experience *x,
                        struct rlhf__error *err) {
    const int64_t version = r->learner.optim->count.step;
    x->phase = r->count.phase;
    const rlhf_status st =
        r->feed->ops->more(r->feed, groups, (uint64_t)r->count.sequences, version, x, err);
    r->count.sequences += x->drawn;
    return st;
}

static rlhf_status time_draws(struct rlhf__run *r, uint32_t groups, double group,
                              struct rlhf__scale_curve *c, struct rlhf__error *err) {
    uint32_t size[RLHF__SCALE_POINTS];
    const uint32_t n = sizes(groups, size);
    for (c->n = 0; c->n < n; c->n++) {
        struct timer t = {.began = rlhf__seconds()};
        while (again(&t)) {
            struct rlhf__experience x = {0};
            const double from = rlhf__seconds();
            const rlhf_status st = draw(r, size[c->n], &x, err);
            take(&t, from);
            rlhf__experience_finish(&x);
            RLHF_TRY(st);
        }
        c->at[c->n] = (struct rlhf__scale_point){size[c->n] * group, t.best};
    }
    smooth(c);
    return RLHF_OK;
}

// ---- learning ----

// A loss with a derivative for every planned number. The loss's value does not matter.
static rlhf_status flat_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                             struct rlhf__error *err) {
    const rlhf_heads *d = out->d_heads;
    float *const each[] = {d->logp, d->entropy, d->kl, d->value};
    (void)self;
    (void)err;
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        for (uint32_t i = 0; each[k] && i < in->n; i++)
            for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++)
                each[k][t] = 1e-6f;
    for (uint32_t i = 0; d->score && i < in->n * in->n_labels; i++)
        d->score[i] = 1e-6f;
    return RLHF_OK;
}

static rlhf_status gradients(struct rlhf__learner *l, const struct rlhf__rows *e,
                             struct rlhf__error *err) {
    struct rlhf__place p = {.train = 1};
    RLHF_TRY(rlhf__microbatch_reserve(l, e, err));
    const int share = rlhf__microbatch_shares(l, e);
    for (uint32_t from = 0, to; from < e->n; from = to) {
        to = rlhf__rows_slice_end(e, from, l->microbatch_tokens, share);
        RLHF_TRY(rlhf__microbatch(l, e, from, to, &p, err));
    }
    return RLHF_OK;
}

// *products receives the matrix products (FLOP) of one minibatch.
static rlhf_status time_rows(struct rlhf__run *r, const struct rlhf__rows *e, uint32_t n,
                             double *seconds, double *products, struct rlhf__error *err) {
    struct timer t = {.began = rlhf__seconds()};
    struct rlhf__rows part = {0};
    uint32_t *pick = calloc(n, sizeof *pick);
    if (!pick) return RLHF__NOMEM(err, "out of memory for %u rows", n);
    for (uint32_t i = 0; i < n; i++)
        pick[i] = i;
    rlhf_status st = rlhf__rows_pick(&part, e, pick, n, err);
    while (st == RLHF_OK && again(&t)) {
        const double from = rlhf__seconds(), before = r->learner.flops;
        st = gradients(&r->learner, &part, err);
        if (st == RLHF_OK) st = sync_all(r, err);
        take(&t, from);
        *products = r->learner.flops - before;
    }
    rlhf__rows_finish(&part);
    free(pick);
    *seconds = t.best;
    return st;
}

// Time minibatches that consist of the first rows of `e`: one of `most` rows, and smaller ones.
static rlhf_status time_learning(struct rlhf__run *r, const struct rlhf__rows *e, uint32_t most,
                                 struct rlhf__scale_machine *m, struct rlhf__error *err) {
    uint32_t size[RLHF__SCALE_POINTS];
    const uint32_t n = sizes(most, size);
    struct rlhf__learner *l = &r->learner;
    struct rlhf__scale_curve *c = &m->learn;
    const struct rlhf__objective own = l->objective;
    rlhf_status st = RLHF_OK;
    l->objective = (struct rlhf__objective){.loss = flat_loss};
    l->comparing = 0;
    for (c->n = 0; st == RLHF_OK && c->n < n; c->n++) {
        struct rlhf__scale_point *at = &c->at[c->n];
        at->x = e->offset[size[c->n]];
        st = time_rows(r, e, size[c->n], &at->seconds, &m->products, err);
    }
    l->objective = own;
    if (st == RLHF_OK) smooth(c);
    if (st == RLHF_OK) m->products /= c->at[n - 1].seconds; // of the largest minibatch
    return st;
}

// ---- a step ----

static rlhf_status time_steps(struct rlhf__run *r, struct rlhf__scale_machine *m,
                              struct rlhf__error *err) {
    struct timer step = {.began = rlhf__seconds()}, pack = step;
    struct rlhf__optim *const own[] = {r->optim, r->critic_optim};
    const struct rlhf__model *const model[] = {r->cast.policy, r->cast.critic};
    while (again(&step)) {
        struct rlhf__optim_report report;
        const double from = rlhf__seconds();
        for (int i = 0; i < 2; i++)
            if (own[i]) RLHF_TRY(rlhf__optim_step(own[i], 0, 1, &report, err));
        RLHF_TRY(sync_all(r, err));
        take(&step, from);
        const double packs = rlhf__seconds();
        for (int i = 0; i < 2; i++)
            if (model[i]) RLHF_TRY(rlhf__model_refresh(model[i], err));
        RLHF_TRY(sync_all(r, err));
        take(&pack, packs);
    }
    m->step = step.best;
    m->pack = pack.best;
    return RLHF_OK;
}

#define COPY_BYTES ((uint64_t)64 << 20)

static rlhf_status time_copies(struct rlhf__run *r, struct rlhf__scale_machine *m,
                               struct rlhf__error *err) {
    const rlhf_compute *c = r->session.compute->table;
    struct timer t = {.began = rlhf__seconds()};
    rlhf_dev a = NULL, b = NULL;
    rlhf_status st = c->alloc(c->ctx, COPY_BYTES, &a);
    if (st == RLHF_OK) st = c->alloc(c->ctx, COPY_BYTES, &b);
    while (st == RLHF_OK && again(&t)) {
        const double from = rlhf__seconds();
        st = c->copy(c->ctx, b, a, COPY_BYTES);
        if (st == RLHF_OK) st = c->sync(c->ctx);
        take(&t, from);
    }
    c->release(c->ctx, a);
    c->release(c->ctx, b);
    if (st != RLHF_OK)
        return rlhf__compute_fail(rlhf__model_kernels(r->cast.policy), st, "copies", err);
    m->copy = 2 * (double)COPY_BYTES / t.best; // read and written
    return RLHF_OK;
}

// ---- all of them ----

static void note_rows(const struct rlhf__rows *e, struct rlhf__scale_machine *m) {
    m->rows = e->n;
    m->tokens = e->total;
    m->n_lengths = e->n < RLHF__SCALE_LENGTHS ? e->n : RLHF__SCALE_LENGTHS;
    for (uint32_t i = 0; i < m->n_lengths; i++)
        m->length[i] = e->offset[i + 1] - e->offset[i];
}

// Make the rows of a phase, and time the passes without gradients over these rows.
static rlhf_status take_rows(struct rlhf__run *r, struct rlhf__phase *p, struct timer *t,
                             struct rlhf__scale_machine *m, struct rlhf__error *err) {
    const int64_t version = r->learner.optim->count.step;
    p->x.phase = r->count.phase;
    RLHF_TRY(r->feed->ops->next(r->feed, (uint64_t)r->count.sequences, version, &p->x, err));
    r->count.sequences += p->x.drawn;
    const double from = rlhf__seconds();
    RLHF_TRY(rlhf__phase_passes(p, err));
    RLHF_TRY(sync_all(r, err));
    take(t, from);
    note_rows(&p->x.rows, m);
    return RLHF_OK;
}

static rlhf_status time_parts(struct rlhf__run *r, const struct rlhf__scale_plan *plan,
                              struct rlhf__phase *p, struct rlhf__scale_machine *m,
                              struct rlhf__error *err) {
    struct timer passes = {.began = rlhf__seconds()};
    while (again(&passes)) {
        rlhf__experience_finish(&p->x);
        p->x = (struct rlhf__experience){0};
        RLHF_TRY(take_rows(r, p, &passes, m, err));
    }
    m->passes = passes.best;
    m->decode_flops = 2 * (double)r->cast.policy->info.n_params;
    const struct rlhf__rows *e = &p->x.rows;
    const uint32_t groups = e->n / (uint32_t)plan->group;
    if (r->feed->ops->more) RLHF_TRY(time_draws(r, groups, plan->group, &m->draw, err));
    // In a run, the backward pass leaves out rows that the algorithm marks. Here it includes all
    // rows.
    RLHF_TRY(time_learning(r, e, e->n / (uint32_t)plan->minibatches, m, err));
    RLHF_TRY(time_steps(r, m, err));
    return time_copies(r, m, err);
}

rlhf_status rlhf__scale_parts(struct rlhf__run *r, const struct rlhf__scale_plan *plan,
                              struct rlhf__scale_machine *m, struct rlhf__error *err) {
    struct rlhf__phase p = {.config = r->config,
                            .cast = &r->cast,
                            .count = &r->count,
                            .feed = r->feed,
                            .learner = &r->learner,
                            .report = &r->report};
    const rlhf_status st = time_parts(r, plan, &p, m, err);
    rlhf__experience_finish(&p.x);
    return st;
}
