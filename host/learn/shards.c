// shards.c: see shards.h.
#include "learn/shards.h"

#include "batch/deal.h"
#include "learn/optim_blocks.h"
#include "model/compute.h"
#include "team/agree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- life ----

// Returns the bytes of an optimizer's gradients.
static uint64_t grads_bytes(const struct rlhf__optim *o) {
    uint64_t bytes = 0;
    if (o->grads) return o->grads_bytes;
    for (uint32_t i = 0; i < o->n; i++)
        bytes += (uint64_t)o->items[i].n * sizeof(float);
    return bytes;
}

static rlhf_status init(struct rlhf__shards *s, struct rlhf__error *err) {
    const struct rlhf__share *share = s->share;
    const rlhf_compute *t = s->compute;
    s->first = calloc((size_t)share->shards + 1, sizeof *s->first);
    s->numbers = calloc(share->shards, sizeof *s->numbers);
    s->own = calloc(share->shards, sizeof *s->own);
    if (!s->first || !s->numbers || !s->own)
        return RLHF__NOMEM(err, "out of memory for %u shards", share->shards);
    s->n_aside = rlhf__tree_asides(share->shards, rlhf__share_from(share, share->rank),
                                   rlhf__share_to(share, share->rank));
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; s->optim[k] && i < s->n_aside; i++) {
            const rlhf_status st = t->alloc(t->ctx, grads_bytes(s->optim[k]), &s->aside[k][i]);
            if (st != RLHF_OK)
                return rlhf__compute_fail(s->optim[k]->kernels, st, "the gradients of shards", err);
        }
    return RLHF_OK;
}

rlhf_status rlhf__shards_create(struct rlhf__learner *l, const struct rlhf__share *share,
                                struct rlhf__error *err) {
    if (share->shards <= 1) return RLHF_OK;
    struct rlhf__shards *s = calloc(1, sizeof *s);
    if (!s) return RLHF__NOMEM(err, "out of memory for %u shards", share->shards);
    s->share = share;
    s->compute = l->model->compute;
    s->optim[0] = l->optim;
    s->optim[1] = l->critic_optim;
    l->shards = s;
    return init(s, err);
}

void rlhf__shards_destroy(struct rlhf__shards *s) {
    if (!s) return;
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < s->n_aside; i++)
            s->compute->release(s->compute->ctx, s->aside[k][i]);
    free(s->first);
    free(s->numbers);
    free(s->own);
    free(s);
}

// ---- gradients ----

// The gradients of an optimizer are one range, or one range for each parameter.
struct part {
    rlhf_dev grad, aside;
    uint64_t bytes;
};

static uint32_t parts(const struct rlhf__optim *o) { return o->grads ? 1 : o->n; }

// Returns part i. *at is the part's offset in the buffer and is moved past the part.
static struct part part_of(const struct rlhf__optim *o, rlhf_dev aside, uint32_t i, uint64_t *at) {
    if (o->grads) return (struct part){o->grads, aside, o->grads_bytes};
    const struct rlhf__optim_item *it = &o->items[i];
    const struct part p = {it->param.grad, rlhf_dev_at(aside, *at),
                           (uint64_t)it->n * sizeof(float)};
    *at += p.bytes;
    return p;
}

// Move the sum that is last in the tree from the gradients to its buffer.
static rlhf_status put_aside(struct rlhf__shards *s) {
    const rlhf_compute *t = s->compute;
    for (int k = 0; k < 2; k++) {
        const struct rlhf__optim *o = s->optim[k];
        uint64_t at = 0;
        for (uint32_t i = 0; o && i < parts(o); i++) {
            const struct part p = part_of(o, s->aside[k][s->tree.n - 1], i, &at);
            RLHF_TRY(t->copy(t->ctx, p.aside, p.grad, p.bytes));
            RLHF_TRY(t->zero(t->ctx, p.grad, p.bytes));
        }
    }
    return RLHF_OK;
}

// Add the sum in aside[n] to the gradients, except where this was done during the backward pass.
// f32 addition is commutative, so it makes no difference which of the two is added to the other.
static rlhf_status add_aside(struct rlhf__shards *s, uint32_t n) {
    const rlhf_compute *t = s->compute;
    for (int k = 0; k < 2; k++) {
        const struct rlhf__optim *o = s->optim[k];
        uint64_t at = 0;
        for (uint32_t i = 0; o && i < parts(o); i++) {
            struct part p = part_of(o, s->aside[k][n], i, &at);
            if (k == 0 && o->grads) p.bytes = s->complete;
            RLHF_TRY(t->add(t->ctx, p.grad, p.aside, RLHF_F32, p.bytes / sizeof(float)));
        }
    }
    return RLHF_OK;
}

// Push the shard whose gradient has just been computed.
static rlhf_status push(struct rlhf__shards *s, uint32_t shard) {
    const uint32_t was = s->tree.n;
    const uint32_t adds = rlhf__tree_push(&s->tree, (struct rlhf__tree_node){0, shard});
    for (uint32_t i = 0; i < adds; i++)
        RLHF_TRY(add_aside(s, was - 1 - i));
    return RLHF_OK;
}

static rlhf_status failed(const struct rlhf__learner *l, rlhf_status st, struct rlhf__error *err) {
    if (st == RLHF_OK) return st;
    return rlhf__compute_fail(l->optim->kernels, st, "the gradients of shards", err);
}

// ---- numbers ----

// Move what the learner has counted to *n, and begin again from 0.
static void take(struct rlhf__learner *l, struct rlhf__place *p, struct rlhf__shard_numbers *n) {
    *n = (struct rlhf__shard_numbers){.loss = p->loss,
                                      .difference_sum = l->difference_sum,
                                      .difference_max = l->difference_max,
                                      .compared = (double)l->compared,
                                      .fall_sum = l->fall_sum,
                                      .fall_tokens = (double)l->fall_tokens,
                                      .tokens = (double)l->tokens,
                                      .flops = l->flops,
                                      .asked = l->asked};
    for (int k = 0; k < RLHF__LEARNER_SUMS && l->sums[k]; k++) {
        n->sums[k] = *l->sums[k];
        *l->sums[k] = 0;
    }
    p->loss = l->difference_sum = l->difference_max = l->fall_sum = l->flops = 0;
    l->compared = l->fall_tokens = l->tokens = 0;
    l->asked = 0;
}

static void add(struct rlhf__shard_numbers *to, const struct rlhf__shard_numbers *n) {
    to->loss += n->loss;
    to->difference_sum += n->difference_sum;
    if (n->difference_max > to->difference_max || isnan(n->difference_max))
        to->difference_max = n->difference_max;
    to->compared += n->compared;
    to->fall_sum += n->fall_sum;
    to->fall_tokens += n->fall_tokens;
    to->tokens += n->tokens;
    to->flops += n->flops;
    to->asked += n->asked;
    for (int k = 0; k < RLHF__LEARNER_SUMS; k++)
        to->sums[k] += n->sums[k];
}

static void give(struct rlhf__learner *l, struct rlhf__place *p,
                 const struct rlhf__shard_numbers *n) {
    p->loss = n->loss;
    l->difference_sum = n->difference_sum;
    l->difference_max = n->difference_max;
    l->compared = (int64_t)n->compared;
    l->fall_sum = n->fall_sum;
    l->fall_tokens = (int64_t)n->fall_tokens;
    l->tokens = (int64_t)n->tokens;
    l->flops = n->flops;
    l->asked = n->asked > 0;
    for (int k = 0; k < RLHF__LEARNER_SUMS && l->sums[k]; k++)
        *l->sums[k] = n->sums[k];
}

// ---- a minibatch ----

// From here on until rlhf__shards_end, this process takes part in the sum even if it fails, because
// the other processes may have begun the sum.
rlhf_status rlhf__shards_meet(struct rlhf__learner *l, struct rlhf__error *err) {
    struct rlhf__shards *s = l->shards;
    const struct rlhf__wish same = {.same = s->n};
    struct rlhf__sum *sum = &s->optim[0]->blocks->over;
    if (s->met || s->share->ranks <= 1 || !rlhf__sum_overlaps(sum)) return RLHF_OK;
    RLHF_TRY(rlhf__team_agree(s->share->team, RLHF__DOOR_MINIBATCH, &same, RLHF_OK, err));
    s->met = 1;
    rlhf__early_begin(&s->early, sum, s->aside[0]);
    return RLHF_OK;
}

void rlhf__shards_begin(struct rlhf__learner *l, const struct rlhf__rows *e) {
    struct rlhf__shards *s = l->shards;
    s->n = e->n;
    s->met = 0;
    s->tree = (struct rlhf__tree){.shards = s->share->shards};
    s->complete = s->optim[0]->grads_bytes;
    s->table = RLHF_OK;
    s->last = rlhf__share_to(s->share, s->share->rank) - 1;
    memset(s->numbers, 0, s->share->shards * sizeof *s->numbers);
}

// The gradients below s->complete, from `grad` on, are complete: add what waits in the tree.
static rlhf_status complete(struct rlhf__shards *s, rlhf_dev grad, uint64_t bytes) {
    const rlhf_compute *t = s->compute;
    const uint64_t from = (uintptr_t)grad - (uintptr_t)s->optim[0]->grads;
    struct rlhf__tree tree = s->tree;
    const uint32_t was = tree.n;
    const uint32_t adds = rlhf__tree_push(&tree, (struct rlhf__tree_node){0, s->last});
    for (uint32_t i = 0; i < adds; i++)
        RLHF_TRY(t->add(t->ctx, grad, rlhf_dev_at(s->aside[0][was - 1 - i], from), RLHF_F32,
                        bytes / sizeof(float)));
    return RLHF_OK;
}

// Ranges that do not continue the last one downwards are left for later.
static void graded(void *ctx, rlhf_dev grad, uint64_t bytes) {
    struct rlhf__shards *s = ctx;
    const struct rlhf__optim *o = s->optim[0];
    if (rlhf_dev_at(grad, bytes) != rlhf_dev_at(o->grads, s->complete)) return;
    if (s->table == RLHF_OK) s->table = complete(s, grad, bytes);
    s->complete = (uintptr_t)grad - (uintptr_t)o->grads;
    rlhf__early_complete(&s->early, s->complete);
}

void rlhf__shards_watch(struct rlhf__learner *l, rlhf_forward *f) {
    struct rlhf__shards *s = l->shards;
    if (!s->early.sum || !s->optim[0]->grads) return;
    f->graded = graded;
    f->graded_ctx = s;
}

static rlhf_status run_shard(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t shard,
                             struct rlhf__place *p, rlhf__shards_run_fn run,
                             struct rlhf__error *err) {
    struct rlhf__shards *s = l->shards;
    const uint32_t from = s->first[shard], n = s->first[shard + 1] - from;
    struct rlhf__rows part = {0};
    uint32_t *pick = n ? calloc(n, sizeof *pick) : NULL;
    if (n && !pick) return RLHF__NOMEM(err, "out of memory for %u rows", n);
    for (uint32_t i = 0; i < n; i++)
        pick[i] = from + i;
    p->shard = shard;
    rlhf_status st = n ? rlhf__rows_pick(&part, e, pick, n, err) : RLHF_OK;
    if (st == RLHF_OK && n) st = run(l, &part, p, err);
    free(pick);
    rlhf__rows_finish(&part);
    return st;
}

rlhf_status rlhf__shards_rows(struct rlhf__learner *l, const struct rlhf__rows *e,
                              int share_prompts, struct rlhf__place *p, rlhf__shards_run_fn run,
                              struct rlhf__error *err) {
    struct rlhf__shards *s = l->shards;
    const struct rlhf__share *share = s->share;
    struct rlhf__shard_numbers before, own;
    rlhf_status st = RLHF_OK;
    rlhf__deal(e, share->shards, share_prompts, s->first);
    take(l, p, &before);
    for (uint32_t k = rlhf__share_from(share, share->rank);
         st == RLHF_OK && k < rlhf__share_to(share, share->rank); k++) {
        const int train = p->train && !p->only_compares;
        if (train && s->tree.n > 0) st = failed(l, put_aside(s), err);
        p->ends_sum = train && k == s->last;
        if (st == RLHF_OK) st = run_shard(l, e, k, p, run, err);
        p->ends_sum = 0;
        if (st == RLHF_OK && train) st = failed(l, s->table, err);
        if (st == RLHF_OK && train) st = failed(l, push(s, k), err);
        take(l, p, &own);
        add(&s->numbers[k], &own);
    }
    give(l, p, &before);
    return st;
}

// ---- new values ----

static void wanted(void *ctx, rlhf_dev value, uint64_t bytes) {
    rlhf__late_wait(ctx, value, bytes);
}

void rlhf__shards_want(struct rlhf__learner *l, rlhf_forward *f) {
    if (!l->shards || !l->shards->late.sum) return;
    f->wanted = wanted;
    f->wanted_ctx = &l->shards->late;
}

rlhf_status rlhf__shards_received(struct rlhf__learner *l, struct rlhf__error *err) {
    rlhf_status table;
    if (!l->shards) return RLHF_OK;
    RLHF_TRY(rlhf__late_end(&l->shards->late, &table, err));
    return failed(l, table, err);
}

int rlhf__shards_plan_late(struct rlhf__learner *l) {
    const struct rlhf__shards *s = l->shards;
    if (!s || s->share->ranks <= 1) return 0;
    struct rlhf__optim_blocks *b = s->optim[0]->blocks;
    b->is_late = l->more && (l->model->info.caps & RLHF_CAP_WANTED) && rlhf__sum_overlaps(&b->over);
    return b->is_late;
}

rlhf_status rlhf__shards_renew(struct rlhf__learner *l, int now, struct rlhf__error *err) {
    struct rlhf__shards *s = l->shards;
    if (!now) {
        rlhf__late_begin(&s->late, &s->optim[0]->blocks->over);
        return RLHF_OK;
    }
    RLHF_TRY(rlhf__optim_blocks_spread(s->optim[0], err));
    return rlhf__model_refresh(l->model, err);
}

rlhf_status rlhf__shards_settle(struct rlhf__learner *l, struct rlhf__error *err) {
    if (!l->shards || !l->shards->late.sum) return RLHF_OK;
    RLHF_TRY(rlhf__shards_received(l, err));
    return rlhf__model_refresh(l->model, err);
}

// ---- the end of a minibatch ----

// Exchange the shards' numbers. Like the shards, they are stored in rank order.
static rlhf_status all_numbers(struct rlhf__shards *s, struct rlhf__error *err) {
    const struct rlhf__share *share = s->share;
    const uint32_t from = rlhf__share_from(share, share->rank);
    const uint64_t own = rlhf__share_to(share, share->rank) - from;
    if (!share->team || share->ranks <= 1) return RLHF_OK;
    memcpy(s->own, s->numbers + from, own * sizeof *s->own);
    return rlhf__team_gather(share->team, s->own, own * sizeof *s->own, s->numbers, err);
}

rlhf_status rlhf__shards_end(struct rlhf__learner *l, const struct rlhf__rows *e,
                             struct rlhf__place *p, rlhf_status st, struct rlhf__error *err) {
    struct rlhf__shards *s = l->shards;
    struct rlhf__shard_numbers all;
    const struct rlhf__wish same = {.same = e->n};
    rlhf_status table;
    struct rlhf__error lost;
    const rlhf_status settled = rlhf__shards_settle(l, st == RLHF_OK ? err : &lost);
    if (st == RLHF_OK) st = settled;
    if (st == RLHF_OK) st = rlhf__shards_meet(l, err); // without a backward pass
    const int early = s->early.sum != NULL;
    const rlhf_status summed = rlhf__early_end(&s->early, &table, &lost);
    if (st == RLHF_OK && summed != RLHF_OK) *err = lost;
    if (st == RLHF_OK) st = summed == RLHF_OK ? failed(l, table, err) : summed;
    RLHF_TRY(rlhf__team_agree(s->share->team, RLHF__DOOR_MINIBATCH, &same, st, err));
    RLHF_TRY(all_numbers(s, err));
    take(l, p, &all);
    for (uint32_t k = 0; k < s->share->shards; k++)
        add(&all, &s->numbers[k]);
    give(l, p, &all);
    for (int k = 0; k < 2; k++)
        if (s->optim[k] && !(early && k == 0))
            RLHF_TRY(rlhf__optim_blocks_reduce(s->optim[k], s->aside[k], err));
    return RLHF_OK;
}
