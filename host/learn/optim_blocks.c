// optim_blocks.c: see optim_blocks.h.
#include "learn/optim_blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- life ----

// Divide the tensors into blocks. If all gradients are one range, a gradient's position is its
// offset in that range. Otherwise it is its offset in the sequence of all tensors.
static rlhf_status cut(const struct rlhf__optim *o, struct rlhf__blocks *blocks,
                       struct rlhf__error *err) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        const struct rlhf__optim_item *it = &o->items[i];
        const rlhf_param *p = &it->param;
        if (o->grads) at = (uintptr_t)p->grad - (uintptr_t)o->grads;
        const struct rlhf__piece whole = {
            .grad = p->grad, .value = p->value, .len = (uint64_t)it->n, .at = at, .tensor = i};
        RLHF_TRY(rlhf__blocks_add(blocks, &whole, it->muon, err));
        at += (uint64_t)it->n * sizeof(float);
    }
    return RLHF_OK;
}

static int is_divided(const struct rlhf__optim_blocks *b) { return b->share->ranks > 1; }

static uint64_t moment_bytes(const struct rlhf__piece *p) {
    return (p->len * sizeof(float) + 63) / 64 * 64;
}

static int is_own(const struct rlhf__optim_blocks *b, uint32_t block) {
    return b->cut.block[block].owner == b->share->rank;
}

// Reserve one buffer for the moments of this process's blocks. In the buffer, each moment is
// 64-byte aligned. offset[k] receives the offset of piece k's first moment.
static rlhf_status reserve_moments(const struct rlhf__optim *o, struct rlhf__optim_blocks *b,
                                   uint64_t *offset, struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < b->cut.n; i++)
        for (uint32_t k = b->cut.block[i].first; is_own(b, i) && k < b->cut.block[i].end; k++) {
            const struct rlhf__piece *p = &b->cut.piece[k];
            offset[k] = bytes;
            bytes += moment_bytes(p) * (o->items[p->tensor].muon ? 1 : 2);
        }
    b->moments_bytes = bytes;
    const rlhf_status st = t->alloc(t->ctx, bytes, &b->moments);
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, "optimizer state", err);
}

// Assign a place in the buffer to every piece and to every item that uses Muon.
static void place_moments(struct rlhf__optim *o, struct rlhf__optim_blocks *b,
                          const uint64_t *offset) {
    const size_t n = b->n_list;
    rlhf_dev *m = b->places + 2 * n, *v = m + n;
    for (uint32_t i = 0; i < b->cut.n; i++)
        for (uint32_t k = b->cut.block[i].first; is_own(b, i) && k < b->cut.block[i].end; k++) {
            const struct rlhf__piece *p = &b->cut.piece[k];
            struct rlhf__optim_item *it = &o->items[p->tensor];
            m[k] = rlhf_dev_at(b->moments, offset[k]);
            if (it->muon)
                it->m = m[k];
            else
                v[k] = rlhf_dev_at(m[k], moment_bytes(p));
        }
}

static rlhf_status divide_moments(struct rlhf__optim *o, struct rlhf__optim_blocks *b,
                                  struct rlhf__error *err) {
    uint64_t *offset = calloc((size_t)b->cut.n_pieces + 1, sizeof *offset);
    if (!offset) return RLHF__NOMEM(err, "out of memory for the optimizer");
    const rlhf_status st = reserve_moments(o, b, offset, err);
    if (st == RLHF_OK) place_moments(o, b, offset);
    free(offset);
    return st;
}

// List the pieces of a block.
static void list_block(const struct rlhf__optim *o, struct rlhf__optim_blocks *b, uint32_t block) {
    const size_t n = b->n_list;
    rlhf_dev *g = b->places, *w = g + n, *m = w + n, *v = m + n;
    for (uint32_t k = b->cut.block[block].first; k < b->cut.block[block].end; k++) {
        const struct rlhf__piece *p = &b->cut.piece[k];
        const struct rlhf__optim_item *it = &o->items[p->tensor];
        b->len[k] = p->len;
        g[k] = p->grad;
        if (!is_own(b, block) || it->muon) continue;
        w[k] = p->value;
        if (is_divided(b)) continue;
        m[k] = rlhf_dev_at(it->m, p->from * sizeof(float));
        v[k] = rlhf_dev_at(it->v, p->from * sizeof(float));
    }
}

static rlhf_status list(const struct rlhf__optim *o, struct rlhf__optim_blocks *b,
                        struct rlhf__error *err) {
    const size_t n = (size_t)b->cut.n_pieces + o->n_between;
    b->n_list = (uint32_t)n;
    b->len = calloc(n + 1, sizeof *b->len);
    b->places = calloc(4 * n + 1, sizeof *b->places);
    b->rates = calloc(2 * n + 1, sizeof *b->rates);
    if (!b->len || !b->places || !b->rates)
        return RLHF__NOMEM(err, "out of memory for the optimizer");
    for (uint32_t i = 0; i < b->cut.n; i++)
        list_block(o, b, i);
    for (uint32_t i = 0; i < o->n_between; i++) {
        b->len[b->cut.n_pieces + i] = o->len[o->n + i];
        b->places[b->cut.n_pieces + i] = o->places[o->n + i];
    }
    return RLHF_OK;
}

static rlhf_status make_clips(const struct rlhf__optim *o, struct rlhf__optim_blocks *b,
                              struct rlhf__error *err) {
    const rlhf_compute *t = o->compute;
    for (uint32_t i = 0; i < b->cut.n; i++)
        b->n_own += is_own(b, i) != 0;
    b->sum = calloc((size_t)b->cut.n + 1, sizeof *b->sum);
    b->is_summed = calloc((size_t)b->cut.n + 1, sizeof *b->is_summed);
    b->clip = calloc((size_t)b->n_own + 1, sizeof *b->clip);
    if (!b->sum || !b->is_summed || !b->clip)
        return RLHF__NOMEM(err, "out of memory for the optimizer");
    if (is_divided(b)) {
        const size_t each = (b->cut.n + b->share->ranks - 1) / b->share->ranks;
        b->sent = calloc(each + 1, sizeof *b->sent);
        b->received = calloc(each * b->share->ranks + 1, sizeof *b->received);
        if (!b->sent || !b->received) return RLHF__NOMEM(err, "out of memory for the optimizer");
    }
    const rlhf_status st = t->alloc(t->ctx, b->n_own * sizeof *b->clip, &b->dev_clip);
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, "optimizer state", err);
}

rlhf_status rlhf__optim_blocks_init(struct rlhf__optim *o, const struct rlhf__share *share,
                                    struct rlhf__error *err) {
    struct rlhf__optim_blocks *b = calloc(1, sizeof *b);
    if (!b) return RLHF__NOMEM(err, "out of memory for the optimizer");
    o->blocks = b;
    b->share = share;
    b->cut.limit = share->block;
    RLHF_TRY(cut(o, &b->cut, err));
    if (is_divided(b)) RLHF_TRY(rlhf__blocks_deal(&b->cut, share->ranks, err));
    RLHF_TRY(make_clips(o, b, err));
    RLHF_TRY(list(o, b, err));
    if (!is_divided(b)) return RLHF_OK;
    RLHF_TRY(divide_moments(o, b, err));
    return rlhf__sum_init(&b->over, o->compute, &b->cut, share, err);
}

void rlhf__optim_blocks_finish(struct rlhf__optim *o) {
    struct rlhf__optim_blocks *b = o->blocks;
    if (!b) return;
    rlhf__sum_finish(&b->over);
    o->compute->release(o->compute->ctx, b->moments);
    o->compute->release(o->compute->ctx, b->dev_clip);
    free(b->sent);
    free(b->received);
    rlhf__blocks_finish(&b->cut);
    free(b->sum);
    free(b->is_summed);
    free(b->clip);
    free(b->len);
    free(b->places);
    free(b->rates);
    free(b);
    o->blocks = NULL;
}

// ---- the norm ----

// Compute the sum of squares of one block, for backends that take one tensor per call.
static rlhf_status sum_singly(const struct rlhf__optim *o, uint32_t block) {
    const struct rlhf__optim_blocks *b = o->blocks;
    double sum = 0;
    for (uint32_t k = b->cut.block[block].first; k < b->cut.block[block].end; k++) {
        double part = 0;
        RLHF_TRY(o->compute->sumsq(o->compute->ctx, b->places[k], b->len[k], &part));
        sum += part;
    }
    b->sum[block] = sum;
    return RLHF_OK;
}

// Compute the sum of squares of one block. `own` is the block's index among this process's blocks.
// The sums of a backend with sumsq_many stay on the device.
static rlhf_status sum_block(const struct rlhf__optim *o, uint32_t block, uint32_t own) {
    const struct rlhf__optim_blocks *b = o->blocks;
    const rlhf_compute *t = o->compute;
    const uint32_t k = b->cut.block[block].first;
    const rlhf_tensors pieces = {.size = sizeof pieces,
                                 .n = b->cut.block[block].end - k,
                                 .len = b->len + k,
                                 .g = b->places + k};
    RLHF_TRY(o->list.size ? t->sumsq_many(t->ctx, &pieces, 0, 0,
                                          rlhf_dev_at(b->dev_clip, own * sizeof *b->clip))
                          : sum_singly(o, block));
    b->is_summed[block] = 1;
    return RLHF_OK;
}

rlhf_status rlhf__optim_blocks_complete(struct rlhf__optim *o, uint64_t at) {
    const struct rlhf__optim_blocks *b = o->blocks;
    for (uint32_t i = 0; i < b->cut.n; i++) {
        int complete = !b->is_summed[i];
        for (uint32_t k = b->cut.block[i].first; complete && k < b->cut.block[i].end; k++)
            complete = b->cut.piece[k].at >= at;
        if (complete) RLHF_TRY(sum_block(o, i, i));
    }
    return RLHF_OK;
}

// Compute the sums of squares of this process's blocks. A single download fetches all of them.
static rlhf_status own_sums(const struct rlhf__optim *o) {
    const struct rlhf__optim_blocks *b = o->blocks;
    const rlhf_compute *t = o->compute;
    uint32_t own = 0;
    for (uint32_t i = 0; i < b->cut.n; i++) {
        if (!is_own(b, i)) continue;
        if (!b->is_summed[i]) RLHF_TRY(sum_block(o, i, own));
        own++;
    }
    memset(b->is_summed, 0, b->cut.n);
    if (!o->list.size || own == 0) return RLHF_OK;
    RLHF_TRY(t->download(t->ctx, b->clip, b->dev_clip, own * sizeof *b->clip));
    own = 0;
    for (uint32_t i = 0; i < b->cut.n; i++)
        if (is_own(b, i)) b->sum[i] = b->clip[own++].sumsq;
    return RLHF_OK;
}

// Exchange the sums of squares. Block i is in window i / ranks. No process owns two blocks of the
// same window, so the window's number is the index of the block's sum.
static rlhf_status all_sums(const struct rlhf__optim *o, struct rlhf__error *err) {
    const struct rlhf__optim_blocks *b = o->blocks;
    const uint32_t ranks = b->share->ranks;
    if (!is_divided(b) || !b->share->team) return RLHF_OK;
    const uint64_t each = (b->cut.n + ranks - 1) / ranks;
    for (uint32_t i = 0; i < b->cut.n; i++)
        if (is_own(b, i)) b->sent[i / ranks] = b->sum[i];
    RLHF_TRY(rlhf__team_gather(b->share->team, b->sent, each * sizeof *b->sent, b->received, err));
    for (uint32_t i = 0; i < b->cut.n; i++)
        b->sum[i] = b->received[b->cut.block[i].owner * each + i / ranks];
    return RLHF_OK;
}

static rlhf_status norm(const struct rlhf__optim *o, int32_t loss_ok, rlhf_clip *clip,
                        struct rlhf__error *err) {
    const struct rlhf__optim_blocks *b = o->blocks;
    const double max = o->config.max_grad_norm;
    const rlhf_status st = own_sums(o);
    RLHF_TRY(all_sums(o, err));
    if (st != RLHF_OK) return rlhf__compute_fail(o->kernels, st, "gradient norm", err);
    *clip = (rlhf_clip){.scale = 1};
    for (uint32_t i = 0; i < b->cut.n; i++)
        clip->sumsq += b->sum[i];
    clip->norm = sqrt(clip->sumsq);
    if (max > 0 && clip->norm > max) clip->scale = max / clip->norm;
    clip->skip = !loss_ok || !isfinite(clip->norm);
    return RLHF_OK;
}

// ---- the step ----

static rlhf_status muon_own(const struct rlhf__optim *o, double factor, double scale,
                            struct rlhf__error *err) {
    const struct rlhf__optim_blocks *b = o->blocks;
    for (uint32_t i = 0; o->muon && i < b->cut.n; i++)
        for (uint32_t k = b->cut.block[i].first; is_own(b, i) && k < b->cut.block[i].end; k++) {
            const struct rlhf__optim_item *it = &o->items[b->cut.piece[k].tensor];
            if (it->muon) RLHF_TRY(rlhf__optim_muon(o, it, factor, scale, err));
        }
    return RLHF_OK;
}

// Update this process's blocks with AdamW. Afterwards all gradients are 0.
static rlhf_status adamw_list(const struct rlhf__optim *o, double factor, double scale,
                              struct rlhf__error *err) {
    struct rlhf__optim_blocks *b = o->blocks;
    const rlhf_compute *t = o->compute;
    const size_t n = b->n_list;
    const rlhf_dev *g = b->places;
    const rlhf_adamw a = rlhf__optim_adamw(o, factor, 1, scale);
    for (uint32_t k = 0; k < b->cut.n_pieces; k++) {
        const struct rlhf__optim_item *it = &o->items[b->cut.piece[k].tensor];
        b->rates[k] = rlhf__optim_lr(o, it);
        b->rates[n + k] = rlhf__optim_decay(o, it);
    }
    const rlhf_tensors all = {sizeof all, b->n_list, b->len,   g,           g + n,
                              g + 2 * n,  g + 3 * n, b->rates, b->rates + n};
    const rlhf_status st = t->adamw_many(t->ctx, &all, &a, NULL);
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, "the optimizer's step", err);
}

static rlhf_status adamw_singly(const struct rlhf__optim *o, double factor, double scale,
                                struct rlhf__error *err) {
    const struct rlhf__optim_blocks *b = o->blocks;
    const rlhf_compute *t = o->compute;
    const size_t n = b->n_list;
    const rlhf_dev *g = b->places;
    for (uint32_t k = 0; k < b->cut.n_pieces; k++) {
        const struct rlhf__optim_item *it = &o->items[b->cut.piece[k].tensor];
        if (!g[n + k]) continue;
        const rlhf_adamw a =
            rlhf__optim_adamw(o, rlhf__optim_lr(o, it) * factor, rlhf__optim_decay(o, it), scale);
        const rlhf_status st =
            t->adamw(t->ctx, g[n + k], g[k], g[2 * n + k], g[3 * n + k], b->len[k], &a);
        if (st != RLHF_OK) return rlhf__compute_fail(o->kernels, st, it->param.name, err);
    }
    return rlhf__optim_zero(o, err);
}

// ---- several processes ----

static rlhf_status sum_failed(const struct rlhf__optim *o, rlhf_status st,
                              struct rlhf__error *err) {
    return st == RLHF_OK ? st : rlhf__compute_fail(o->kernels, st, "sums over processes", err);
}

rlhf_status rlhf__optim_blocks_reduce(struct rlhf__optim *o, const rlhf_dev *aside,
                                      struct rlhf__error *err) {
    struct rlhf__optim_blocks *b = o->blocks;
    rlhf_status table = RLHF_OK;
    if (!is_divided(b) || !b->share->team) return RLHF_OK;
    RLHF_TRY(rlhf__sum_reduce(&b->over, aside, &table, err));
    return sum_failed(o, table, err);
}

rlhf_status rlhf__optim_blocks_spread(struct rlhf__optim *o, struct rlhf__error *err) {
    struct rlhf__optim_blocks *b = o->blocks;
    rlhf_status table = RLHF_OK;
    if (!is_divided(b) || !b->share->team) return RLHF_OK;
    RLHF_TRY(rlhf__sum_spread(&b->over, &table, err));
    return sum_failed(o, table, err);
}

rlhf_status rlhf__optim_blocks_step(struct rlhf__optim *o, double factor, int32_t loss_ok,
                                    rlhf_clip *clip, struct rlhf__error *err) {
    RLHF_TRY(norm(o, loss_ok, clip, err));
    if (clip->skip) return rlhf__optim_zero(o, err);
    rlhf_status st = muon_own(o, factor, clip->scale, err);
    if (st == RLHF_OK)
        st = o->list.size ? adamw_list(o, factor, clip->scale, err)
                          : adamw_singly(o, factor, clip->scale, err);
    if (o->blocks->is_late) return st;
    // Exchange the values even if this process has failed, because the other processes wait for
    // them.
    struct rlhf__error unsaid;
    const rlhf_status spread = rlhf__optim_blocks_spread(o, st == RLHF_OK ? err : &unsaid);
    return st == RLHF_OK ? spread : st;
}
