// shard_sums.c: see shard_sums.h.
#include "learn/shard_sums.h"

#include "model/compute.h"

// Bytes of gradients that each thread adds at a time. These bytes and as many bytes of a pending
// sum fill a cache of 1 MiB.
#define PIECE ((uint64_t)512 << 10)

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

void rlhf__shard_sums_finish(struct rlhf__shard_sums *s) {
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; s->compute && i < s->n_aside; i++)
            s->compute->release(s->compute->ctx, s->aside[k][i]);
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

static rlhf_status add(const rlhf_compute *t, rlhf_dev to, rlhf_dev from, uint64_t bytes) {
    return t->add(t->ctx, to, from, RLHF_F32, bytes / sizeof(float));
}

// Push a range of the current shard's gradients onto the tree. A sum may be stored in the place of
// either operand, because f32 addition is commutative.
static rlhf_status push_piece(const struct rlhf__shard_sums *s, struct range x) {
    const rlhf_compute *t = s->compute;
    struct rlhf__tree tree = s->tree;
    rlhf_dev aside[RLHF__TREE_DEPTH] = {NULL};
    const uint32_t adds = rlhf__tree_push(&tree, (struct rlhf__tree_node){0, s->shard});
    for (uint32_t i = 0; i < s->n_aside; i++)
        aside[i] = rlhf_dev_at(s->aside[x.k][i], x.at);
    for (uint32_t i = 1; i < adds; i++)
        RLHF_TRY(add(t, x.grad, aside[s->tree.n - i], x.bytes));
    const uint32_t to = tree.n - 1; // the place of the result
    if (s->shard == s->last) return adds ? add(t, x.grad, aside[to], x.bytes) : RLHF_OK;
    RLHF_TRY(adds ? add(t, aside[to], x.grad, x.bytes)
                  : t->copy(t->ctx, aside[to], x.grad, x.bytes));
    return t->zero(t->ctx, x.grad, x.bytes);
}

// Like push_piece, but cuts a range in host memory into pieces and pushes them one by one, so that
// later operations find each piece in the cache.
static rlhf_status push(const struct rlhf__shard_sums *s, struct range x) {
    const rlhf_compute *t = s->compute;
    const uint64_t step =
        t->flags & RLHF_COMPUTE_HOST_MEMORY && t->threads ? t->threads * PIECE : x.bytes;
    for (uint64_t at = 0, n; at < x.bytes; at += n) {
        n = x.bytes - at < step ? x.bytes - at : step;
        RLHF_TRY(push_piece(s, (struct range){x.k, rlhf_dev_at(x.grad, at), x.at + at, n}));
    }
    return RLHF_OK;
}

int rlhf__shard_sums_graded(struct rlhf__shard_sums *s, rlhf_dev grad, uint64_t bytes) {
    const rlhf_dev grads = s->optim[0]->grads;
    if (rlhf_dev_at(grad, bytes) != rlhf_dev_at(grads, s->complete)) return 0;
    s->complete = (uintptr_t)grad - (uintptr_t)grads;
    if (s->table == RLHF_OK) s->table = push(s, (struct range){0, grad, s->complete, bytes});
    return 1;
}

rlhf_status rlhf__shard_sums_end(struct rlhf__shard_sums *s) {
    RLHF_TRY(s->table);
    for (int k = 0; k < 2; k++) {
        const struct rlhf__optim *o = s->optim[k];
        uint64_t at = 0;
        if (o && o->grads)
            RLHF_TRY(push(s, (struct range){k, o->grads, 0, k ? o->grads_bytes : s->complete}));
        for (uint32_t i = 0; o && !o->grads && i < o->n; i++) {
            const uint64_t bytes = (uint64_t)o->items[i].n * sizeof(float);
            RLHF_TRY(push(s, (struct range){k, o->items[i].param.grad, at, bytes}));
            at += bytes;
        }
    }
    rlhf__tree_push(&s->tree, (struct rlhf__tree_node){0, s->shard});
    return RLHF_OK;
}
