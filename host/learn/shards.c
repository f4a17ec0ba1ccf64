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

static rlhf_status init(struct rlhf__shards *s, const struct rlhf__learner *l,
                        const struct rlhf__share *share, struct rlhf__error *err) {
    s->first = calloc((size_t)share->shards + 1, sizeof *s->first);
    s->numbers = calloc(share->shards, sizeof *s->numbers);
    s->own = calloc(share->shards, sizeof *s->own);
    if (!s->first || !s->numbers || !s->own)
        return RLHF__NOMEM(err, "out of memory for %u shards", share->shards);
    return rlhf__shard_sums_init(&s->sums, l->model->compute, l->optim, l->critic_optim, share,
                                 err);
}

rlhf_status rlhf__shards_open(struct rlhf__learner *l, const struct rlhf__share *share,
                              struct rlhf__error *err) {
    if (share->shards <= 1) return RLHF_OK;
    struct rlhf__shards *s = calloc(1, sizeof *s);
    if (!s) return RLHF__NOMEM(err, "out of memory for %u shards", share->shards);
    s->share = share;
    l->shards = s;
    return init(s, l, share, err);
}

void rlhf__shards_close(struct rlhf__learner *l) {
    struct rlhf__shards *s = l->shards;
    if (!s) return;
    rlhf__shard_sums_finish(&s->sums);
    free(s->first);
    free(s->numbers);
    free(s->own);
    free(s);
    l->shards = NULL;
}

static rlhf_status failed(const struct rlhf__learner *l, rlhf_status st, struct rlhf__error *err) {
    if (st == RLHF_OK) return st;
    return rlhf__compute_fail(l->optim->kernels, st, "the gradients of shards", err);
}

// ---- numbers ----

// Move the learner's numbers to *n, and reset them to 0.
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

// From here until rlhf__shards_end, this process takes part in summing the gradients even if it
// fails, because the other processes may have begun the sum.
rlhf_status rlhf__shards_meet(struct rlhf__learner *l, struct rlhf__error *err) {
    struct rlhf__shards *s = l->shards;
    const struct rlhf__wish same = {.same = s->n};
    struct rlhf__sum *sum = &s->sums.optim[0]->blocks->over;
    if (s->met || s->share->ranks <= 1 || !rlhf__sum_overlaps(sum)) return RLHF_OK;
    RLHF_TRY(rlhf__team_agree(s->share->team, RLHF__BARRIER_MINIBATCH, &same, RLHF_OK, err));
    s->met = 1;
    rlhf__overlap_reduce(&s->early, sum, s->sums.aside[0]);
    return RLHF_OK;
}

void rlhf__shards_begin(struct rlhf__learner *l, const struct rlhf__rows *e) {
    struct rlhf__shards *s = l->shards;
    s->n = e->n;
    s->met = 0;
    rlhf__shard_sums_begin(&s->sums, s->share);
    memset(s->numbers, 0, s->share->shards * sizeof *s->numbers);
}

static void graded(void *ctx, rlhf_dev grad, uint64_t bytes) {
    struct rlhf__shards *s = ctx;
    if (rlhf__shard_sums_graded(&s->sums, grad, bytes) && s->sums.shard == s->sums.last)
        rlhf__overlap_complete(&s->early, s->sums.complete);
}

void rlhf__shards_watch(struct rlhf__learner *l, rlhf_forward *f) {
    struct rlhf__shards *s = l->shards;
    if (!s || !l->optim->grads || !(l->model->compute->flags & RLHF_COMPUTE_HOST_MEMORY)) return;
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
        if (train) rlhf__shard_sums_shard(&s->sums, k);
        st = run_shard(l, e, k, p, run, err);
        if (st == RLHF_OK && train) st = failed(l, rlhf__shard_sums_end(&s->sums), err);
        take(l, p, &own);
        add(&s->numbers[k], &own);
    }
    give(l, p, &before);
    return st;
}

// ---- new values ----

static void wanted(void *ctx, rlhf_dev value, uint64_t bytes) {
    rlhf__overlap_wait(ctx, value, bytes);
}

void rlhf__shards_want(struct rlhf__learner *l, rlhf_forward *f) {
    if (!l->shards || !l->shards->late.sum) return;
    f->wanted = wanted;
    f->wanted_ctx = &l->shards->late;
}

rlhf_status rlhf__shards_received(struct rlhf__learner *l, struct rlhf__error *err) {
    rlhf_status table;
    if (!l->shards) return RLHF_OK;
    RLHF_TRY(rlhf__overlap_end(&l->shards->late, &table, err));
    return failed(l, table, err);
}

int rlhf__shards_plan_late(struct rlhf__learner *l) {
    const struct rlhf__shards *s = l->shards;
    if (!s || s->share->ranks <= 1) return 0;
    struct rlhf__optim_blocks *b = s->sums.optim[0]->blocks;
    b->is_late = l->more && (l->model->info.caps & RLHF_CAP_WANTED) && rlhf__sum_overlaps(&b->over);
    return b->is_late;
}

rlhf_status rlhf__shards_renew(struct rlhf__learner *l, int now, struct rlhf__error *err) {
    struct rlhf__shards *s = l->shards;
    if (!now) {
        rlhf__overlap_spread(&s->late, &s->sums.optim[0]->blocks->over);
        return RLHF_OK;
    }
    RLHF_TRY(rlhf__optim_blocks_spread(s->sums.optim[0], err));
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
    if (st == RLHF_OK) st = rlhf__shards_meet(l, err); // needed if there was no backward pass
    const int early = s->early.sum != NULL;
    const rlhf_status summed = rlhf__overlap_end(&s->early, &table, &lost);
    if (st == RLHF_OK && summed != RLHF_OK) *err = lost;
    if (st == RLHF_OK) st = summed == RLHF_OK ? failed(l, table, err) : summed;
    RLHF_TRY(rlhf__team_agree(s->share->team, RLHF__BARRIER_MINIBATCH, &same, st, err));
    RLHF_TRY(all_numbers(s, err));
    take(l, p, &all);
    for (uint32_t k = 0; k < s->share->shards; k++)
        add(&all, &s->numbers[k]);
    give(l, p, &all);
    for (int k = 0; k < 2; k++)
        if (s->sums.optim[k] && !(early && k == 0))
            RLHF_TRY(rlhf__optim_blocks_reduce(s->sums.optim[k], s->sums.aside[k], err));
    return RLHF_OK;
}
