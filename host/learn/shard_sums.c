// shard_sums.c: see shard_sums.h.
#include "learn/shard_sums.h"

#include "learn/optim_blocks.h"
#include "model/compute.h"

_Static_assert(RLHF__TREE_DEPTH <= RLHF_ADD_ALL_MAX, "one call adds all pending sums");

#define PART ((uint64_t)1 << 20) // bytes that fit into the L2 caches of two cores

// ---- life ----

// Returns the bytes of an optimizer's gradients.
static uint64_t grads_bytes(const struct rlhf__optim *o) {
    uint64_t bytes = 0;
    if (o->grads) return o->grads_bytes;
    for (uint32_t i = 0; i < o->n; i++)
        bytes += (uint64_t)o->items[i].n * sizeof(float);
    return bytes;
}

rlhf_status rlhf__shard_sums_init(struct rlhf__shard_sums *s, const rlhf_compute *t,
                                  struct rlhf__optim *policy, struct rlhf__optim *critic,
                                  const struct rlhf__share *share, struct rlhf__error *err) {
    *s = (struct rlhf__shard_sums){.compute = t, .optim = {policy, critic}};
    s->completes = share->ranks <= 1 && t->flags & RLHF_COMPUTE_HOST_MEMORY;
    s->n_aside = rlhf__tree_asides(share->shards, rlhf__share_from(share, share->rank),
                                   rlhf__share_to(share, share->rank));
    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; s->optim[k] && i < s->n_aside; i++) {
            const rlhf_status st = t->alloc(t->ctx, grads_bytes(s->optim[k]), &s->aside[k][i]);
            if (st != RLHF_OK)
                return rlhf__compute_fail(s->optim[k]->kernels, st, "the gradients of shards", err);
        }
    }
    return RLHF_OK;
}

void rlhf__shard_sums_finish(struct rlhf__shard_sums *s) {
    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; s->compute && i < s->n_aside; i++)
            s->compute->release(s->compute->ctx, s->aside[k][i]);
    }
    *s = (struct rlhf__shard_sums){0};
}

void rlhf__shard_sums_begin(struct rlhf__shard_sums *s, const struct rlhf__share *share) {
    s->tree = (struct rlhf__tree){.shards = share->shards};
    s->last = rlhf__share_to(share, share->rank) - 1;
}

void rlhf__shard_sums_shard(struct rlhf__shard_sums *s, uint32_t shard) {
    s->shard = shard;
    s->complete = s->optim[0]->grads_bytes;
    s->table = RLHF_OK;
}

// ---- sums ----

// Complete gradients of optimizer k, and their position in its buffers.
struct range {
    int k;
    rlhf_dev grad;
    uint64_t at, bytes;
};

// x += src[0], then x += src[1], and so on. If `to` is not NULL, then moves x to `to`, which leaves
// 0 in x.
static rlhf_status add_all(const rlhf_compute *t, rlhf_dev x, const rlhf_dev *src, uint32_t n_src,
                           rlhf_dev to, uint64_t bytes) {
    const uint64_t n = bytes / sizeof(float);
    if (RLHF_COMPUTE_HAS(t, add_all)) return t->add_all(t->ctx, x, src, n_src, to, n);
    for (uint32_t i = 0; i < n_src; i++)
        RLHF_TRY(t->add(t->ctx, x, src[i], RLHF_F32, n));
    if (!to) return RLHF_OK;
    RLHF_TRY(t->copy(t->ctx, to, x, bytes));
    return t->zero(t->ctx, x, bytes);
}

// Push a range onto the tree. The sum stays in the range if this is the process's last shard.
// Otherwise it is moved to the place of the resulting node. A sum may be stored in the place of
// either operand, because f32 addition is commutative.
static rlhf_status push(const struct rlhf__shard_sums *s, struct range x) {
    struct rlhf__tree tree = s->tree;
    rlhf_dev src[RLHF__TREE_DEPTH], to = NULL;
    const uint32_t last = tree.n;
    const uint32_t n = rlhf__tree_push(&tree, (struct rlhf__tree_node){0, s->shard});
    for (uint32_t i = 0; i < n; i++)
        src[i] = rlhf_dev_at(s->aside[x.k][last - 1 - i], x.at);
    if (s->shard != s->last) to = rlhf_dev_at(s->aside[x.k][tree.n - 1], x.at);
    return add_all(s->compute, x.grad, src, n, to, x.bytes);
}

// Push the next range, which ends where the previous one begins. If this completes gradients
// (s->completes), pushes it in parts, from its end to its start, and computes the sums of squares
// of the complete blocks. The parts are so small that they are still in the cache then.
static rlhf_status push_next(const struct rlhf__shard_sums *s, struct range x) {
    const int parts = s->completes && s->shard == s->last;
    for (uint64_t end = x.bytes, from; end > 0; end = from) {
        from = parts && end > PART ? (end - PART + 63) / 64 * 64 : 0;
        RLHF_TRY(push(s, (struct range){x.k, rlhf_dev_at(x.grad, from), x.at + from, end - from}));
        if (parts) RLHF_TRY(rlhf__optim_blocks_complete(s->optim[x.k], x.at + from));
    }
    return RLHF_OK;
}

int rlhf__shard_sums_graded(struct rlhf__shard_sums *s, rlhf_dev grad, uint64_t bytes) {
    const rlhf_dev grads = s->optim[0]->grads;
    if (rlhf_dev_at(grad, bytes) != rlhf_dev_at(grads, s->complete)) return 0;
    s->complete = (uintptr_t)grad - (uintptr_t)grads;
    if (s->table == RLHF_OK) s->table = push_next(s, (struct range){0, grad, s->complete, bytes});
    return 1;
}

rlhf_status rlhf__shard_sums_end(struct rlhf__shard_sums *s) {
    RLHF_TRY(s->table);
    for (int k = 0; k < 2; k++) {
        const struct rlhf__optim *o = s->optim[k];
        uint64_t at = 0;
        if (o && o->grads)
            RLHF_TRY(
                push_next(s, (struct range){k, o->grads, 0, k ? o->grads_bytes : s->complete}));
        for (uint32_t i = 0; o && !o->grads && i < o->n; i++) {
            const uint64_t bytes = (uint64_t)o->items[i].n * sizeof(float);
            RLHF_TRY(push(s, (struct range){k, o->items[i].param.grad, at, bytes}));
            at += bytes;
        }
    }
    rlhf__tree_push(&s->tree, (struct rlhf__tree_node){0, s->shard});
    return RLHF_OK;
}
