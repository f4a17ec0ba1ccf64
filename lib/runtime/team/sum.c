// sum.c: see sum.h.
#include "team/sum.h"

#include "team/slice.h"

#include <stdlib.h>
#include <string.h>

// Minimum number of elements of a block that are exchanged at a time, if the block has that many.
#define LEAST ((uint64_t)1 << 14)
// The maximum between machines. Messages that are under way share the line, so with long messages
// even the first one, for which a pass waits, arrives late.
#define SHORT  ((uint64_t)1 << 16)
#define BUFFER ((uint64_t)1 << 22) // elements of all buffers on the host, roughly

// ---- life ----

static uint32_t most_nodes(const struct rlhf__sum *s) {
    uint32_t most = 1;
    for (uint32_t k = 0; k < s->share->ranks; k++)
        if (s->has[k].n > most) most = s->has[k].n;
    return most;
}

// Returns the same on all ranks. So this is decided by the whole run: the ranks of a part of it
// (team->parent) may have different numbers of other ranks on their machines.
static int is_between_machines(const struct rlhf__sum *s) {
    const struct rlhf__team *t = s->share->team;
    while (t && t->parent)
        t = t->parent;
    return t && !s->on_device && t->locals < t->ranks;
}

// Choose how many elements of a block are exchanged at a time. All ranks choose the same number.
static uint64_t choose_len(const struct rlhf__sum *s) {
    const uint64_t most = is_between_machines(s) ? SHORT : RLHF__BLOCK;
    const uint64_t each = 2 * (uint64_t)most_nodes(s) * (s->share->ranks - 1) * RLHF__SUM_DEPTH;
    uint64_t len = each > 0 ? BUFFER / each : BUFFER;
    if (len > most) len = most;
    if (len < LEAST) len = LEAST;
    if (len > s->blocks->longest) len = s->blocks->longest;
    return len > 0 ? len : 1;
}

// With in_place, the buffers are memory of the table, so that its ops can add the received numbers.
static rlhf_status make_buffers(struct rlhf__sum *s, struct rlhf__error *err) {
    const uint32_t ranks = s->share->ranks;
    const uint64_t each = (uint64_t)most_nodes(s) * (ranks - 1) * s->len * sizeof(float);
    const rlhf_compute *t = s->compute;
    void *all = NULL;
    if (s->in_place) {
        const rlhf_status st = t->alloc(t->ctx, 2 * RLHF__SUM_DEPTH * each, &s->device);
        if (st != RLHF_OK) return rlhf__fail(err, st, "no memory for messages to other ranks");
        all = (void *)s->device;
        if (s->on_device) s->host = calloc(s->len, sizeof(float));
    } else {
        all = s->host = calloc(2 * RLHF__SUM_DEPTH, each + 1);
    }
    s->out = calloc((size_t)ranks + 1, sizeof *s->out);
    s->in = calloc((size_t)ranks + 1, sizeof *s->in);
    if (!all || !s->out || !s->in || (s->on_device && !s->host))
        return RLHF__NOMEM(err, "out of memory for messages to other ranks");
    for (uint64_t i = 0; i < RLHF__SUM_DEPTH; i++) {
        s->send[i] = (float *)((char *)all + 2 * i * each);
        s->recv[i] = (float *)((char *)all + (2 * i + 1) * each);
    }
    return RLHF_OK;
}

static uint64_t low_of(const struct rlhf__sum *s, uint32_t window) {
    const uint32_t ranks = s->share->ranks;
    uint64_t low = UINT64_MAX;
    for (uint32_t b = window * ranks; b < (window + 1) * ranks && b < s->blocks->n; b++)
        for (uint32_t k = s->blocks->block[b].first; k < s->blocks->block[b].end; k++)
            if (s->blocks->piece[k].at < low) low = s->blocks->piece[k].at;
    return low;
}

// A backward pass completes the gradients from the last layer to the first. So the windows are
// taken from the highest to the lowest, in the same order on all ranks.
static rlhf_status make_order(struct rlhf__sum *s, struct rlhf__error *err) {
    const uint32_t n = rlhf__sum_windows(s);
    s->order = calloc((size_t)n + 1, sizeof *s->order);
    s->low = calloc((size_t)n + 1, sizeof *s->low);
    if (!s->order || !s->low) return RLHF__NOMEM(err, "out of memory for %u windows", n);
    for (uint32_t w = 0; w < n; w++) {
        uint32_t at = w;
        s->low[w] = low_of(s, w);
        for (; at > 0 && s->low[s->order[at - 1]] < s->low[w]; at--)
            s->order[at] = s->order[at - 1];
        s->order[at] = w;
    }
    return RLHF_OK;
}

rlhf_status rlhf__sum_init(struct rlhf__sum *s, const rlhf_compute *t,
                           const struct rlhf__blocks *blocks, const struct rlhf__share *share,
                           struct rlhf__error *err) {
    uint64_t nodes = 0;
    *s = (struct rlhf__sum){.compute = t, .blocks = blocks, .share = share};
    s->on_device = share->team && share->team->device;
    s->in_place = s->on_device || (t->flags & RLHF_COMPUTE_HOST_MEMORY) != 0;
    s->has = calloc((size_t)share->ranks + 1, sizeof *s->has);
    if (!s->has) return RLHF__NOMEM(err, "out of memory for %u ranks", share->ranks);
    for (uint32_t k = 0; k < share->ranks; k++) {
        s->has[k] =
            rlhf__tree_of(share->shards, rlhf__share_from(share, k), rlhf__share_to(share, k));
        nodes += s->has[k].n;
    }
    s->len = choose_len(s);
    RLHF_TRY(make_order(s, err));
    RLHF_TRY(make_buffers(s, err));
    const rlhf_status st = t->alloc(t->ctx, nodes * s->len * sizeof(float), &s->node);
    return st == RLHF_OK ? st : rlhf__fail(err, st, "no memory for sums over ranks");
}

void rlhf__sum_finish(struct rlhf__sum *s) {
    if (s->compute) {
        s->compute->release(s->compute->ctx, s->node);
        s->compute->release(s->compute->ctx, s->device);
    }
    free(s->host);
    free(s->order);
    free(s->low);
    free(s->has);
    free(s->out);
    free(s->in);
    memset(s, 0, sizeof *s);
}

static enum rlhf__place node_place(const struct rlhf__sum *s, uint32_t node) {
    return node + 1 == s->has[s->share->rank].n ? RLHF__GRAD : RLHF__ASIDE;
}

// ---- windows ----

// The two steps that a walk over the windows takes for each window.
struct walk {
    // Fill the send buffer and the messages.
    rlhf_status (*begin)(struct rlhf__sum *s, struct rlhf__slice p, uint32_t slot,
                         const rlhf_dev *aside);
    // Use the received numbers.
    rlhf_status (*end)(struct rlhf__sum *s, struct rlhf__slice p, uint32_t slot,
                       const rlhf_dev *aside);
};

// Replace addresses of the compute table with those that the device's library uses.
static rlhf_status make_native(const struct rlhf__sum *s, rlhf_block *block) {
    const rlhf_compute *t = s->compute;
    void *stream;
    for (uint32_t k = 0; k < s->share->ranks; k++)
        if (block[k].bytes)
            RLHF_TRY(t->native(t->ctx, (rlhf_dev)block[k].at, &block[k].at, &stream));
    return RLHF_OK;
}

static rlhf_status exchange(struct rlhf__sum *s, uint64_t *ticket, struct rlhf__error *err) {
    struct rlhf__team *team = s->share->team;
    if (!s->on_device) return rlhf__team_exchange(team, s->out, s->in, ticket, err);
    rlhf_status st = make_native(s, s->out);
    if (st == RLHF_OK) st = make_native(s, s->in);
    if (st != RLHF_OK) return rlhf__fail(err, st, "gradients have no address on the device");
    return rlhf__team_exchange_device(team, s->out, s->in, ticket, err);
}

static rlhf_status wait_for(struct rlhf__sum *s, uint64_t ticket, struct rlhf__error *err) {
    return s->on_device ? rlhf__team_wait_device(s->share->team, ticket, err)
                        : rlhf__team_wait(s->share->team, ticket, err);
}

// Keep the first failure of the table.
static void note(rlhf_status *table, rlhf_status st) {
    if (*table == RLHF_OK) *table = st;
}

static rlhf_status walk(struct rlhf__sum *s, const struct walk *w, const rlhf_dev *aside,
                        rlhf_status *table, struct rlhf__error *err) {
    struct rlhf__slice head = {0}, tail = {0};
    uint64_t begun = 0, ended = 0;
    *table = RLHF_OK;
    while (tail.window < rlhf__sum_windows(s)) {
        while (head.window < rlhf__sum_windows(s) && begun < ended + RLHF__SUM_DEPTH &&
               (!s->ready ||
                s->ready(s->ready_ctx, s->low[rlhf__slice_window(s, head)], begun == ended))) {
            const uint32_t slot = (uint32_t)(begun++ % RLHF__SUM_DEPTH);
            note(table, w->begin(s, head, slot, aside));
            RLHF_TRY(exchange(s, &s->ticket[slot], err));
            head = rlhf__slice_next(s, head);
        }
        const uint32_t slot = (uint32_t)(ended++ % RLHF__SUM_DEPTH);
        RLHF_TRY(wait_for(s, s->ticket[slot], err));
        if (*table == RLHF_OK) note(table, w->end(s, tail, slot, aside));
        tail = rlhf__slice_next(s, tail);
        if (s->ended) s->ended(s->ended_ctx, tail.window);
    }
    return RLHF_OK;
}

static rlhf_block block_at(float *at, uint64_t n) {
    return (rlhf_block){n ? at : NULL, n * sizeof(float)};
}

// ---- reduce ----

// Each rank owns one block of the window, and adds up all ranks' nodes for that block. Exchange
// nodes with every other rank: send this rank's nodes for the other rank's block, and receive the
// other rank's nodes for this rank's block.
static rlhf_status begin_reduce(struct rlhf__sum *s, struct rlhf__slice p, uint32_t slot,
                                const rlhf_dev *aside) {
    const uint32_t own = s->share->rank, nodes = s->has[own].n;
    const uint64_t mine = rlhf__slice_len(s, p, own);
    float *send = s->send[slot], *recv = s->recv[slot];
    rlhf_status st = RLHF_OK;
    for (uint32_t k = 0; k < s->share->ranks; k++) {
        const uint64_t len = rlhf__slice_len(s, p, k);
        float *grad = nodes == 1 ? rlhf__slice_direct(s, p, k, RLHF__GRAD) : NULL;
        s->out[k] = s->in[k] = (rlhf_block){NULL, 0};
        if (k == own) continue;
        s->out[k] = block_at(grad ? grad : send, nodes * len);
        s->in[k] = block_at(recv, s->has[k].n * mine);
        recv += s->has[k].n * mine;
        for (uint32_t j = 0; !grad && j < nodes; j++, send += len) {
            const enum rlhf__place place = node_place(s, j);
            note(&st, rlhf__slice_move(s, p, k, place, place == RLHF__ASIDE ? aside[j] : NULL,
                                       RLHF__DOWN, send, NULL));
        }
    }
    return st;
}

// The nodes of one slice while they are added. f32 addition is commutative, so x + y can be stored
// in x or in y. The places are chosen so that the final sum is in `grad` if possible.
struct adding {
    struct rlhf__tree tree;
    rlhf_dev at[RLHF__TREE_DEPTH];
    rlhf_dev grad, next; // next: free staging memory
    uint64_t len;
};

// x += y
static rlhf_status add(const struct rlhf__sum *s, rlhf_dev x, rlhf_dev y, uint64_t n) {
    float *restrict to = (float *)(void *)x;
    const float *restrict from = (const float *)(const void *)y;
    if (!s->by_hand) return s->compute->add(s->compute->ctx, x, y, RLHF_F32, n);
    if (!to || !from) return RLHF_E_INTERNAL; // blocks of n elements have memory
    for (uint64_t i = 0; i < n; i++)
        to[i] += from[i];
    return RLHF_OK;
}

static rlhf_status add_node(const struct rlhf__sum *s, struct adding *a,
                            struct rlhf__tree_node node, rlhf_dev x) {
    const uint32_t was = a->tree.n, adds = rlhf__tree_push(&a->tree, node);
    for (uint32_t i = 0; i < adds; i++) {
        const rlhf_dev left = a->at[was - 1 - i];
        const rlhf_dev sum = left == a->grad ? left : x, other = sum == x ? left : x;
        RLHF_TRY(add(s, sum, other, a->len));
        x = sum;
    }
    a->at[a->tree.n - 1] = x;
    return RLHF_OK;
}

// Set *x to the address of a node of this rank, or of the node's copy in staging memory.
static rlhf_status own_node(const struct rlhf__sum *s, struct rlhf__slice p, uint32_t node,
                            const rlhf_dev *aside, struct adding *a, rlhf_dev *x) {
    const enum rlhf__place place = node_place(s, node);
    const rlhf_dev copy = place == RLHF__ASIDE ? aside[node] : NULL;
    *x = rlhf__slice_whole(s, p, s->share->rank, place, copy);
    if (*x) return RLHF_OK;
    *x = a->next;
    a->next = rlhf_dev_at(a->next, a->len * sizeof(float));
    return rlhf__slice_move(s, p, s->share->rank, place, copy, RLHF__OUT, NULL, *x);
}

// Set *x to the address of a node of another rank, which is at *recv in the receive buffer.
static rlhf_status received_node(const struct rlhf__sum *s, float **recv, struct adding *a,
                                 rlhf_dev *x) {
    const uint64_t bytes = a->len * sizeof(float);
    const float *from = *recv;
    *x = s->in_place ? (rlhf_dev)(void *)*recv : a->next;
    *recv += a->len;
    if (s->in_place) return RLHF_OK;
    a->next = rlhf_dev_at(*x, bytes);
    return s->compute->upload(s->compute->ctx, *x, from, bytes);
}

static rlhf_status end_reduce(struct rlhf__sum *s, struct rlhf__slice p, uint32_t slot,
                              const rlhf_dev *aside) {
    const uint32_t own = s->share->rank;
    float *recv = s->recv[slot];
    struct adding a = {
        .tree.shards = s->share->shards, .next = s->node, .len = rlhf__slice_len(s, p, own)};
    if (a.len == 0) return RLHF_OK;
    a.grad = rlhf__slice_whole(s, p, own, RLHF__GRAD, NULL);
    for (uint32_t k = 0; k < s->share->ranks; k++)
        for (uint32_t j = 0; j < s->has[k].n; j++) {
            rlhf_dev x = a.next;
            if (k == own)
                RLHF_TRY(own_node(s, p, j, aside, &a, &x));
            else
                RLHF_TRY(received_node(s, &recv, &a, &x));
            RLHF_TRY(add_node(s, &a, s->has[k].at[j], x));
        }
    if (a.at[0] == a.grad) return RLHF_OK;
    return rlhf__slice_move(s, p, own, RLHF__GRAD, NULL, RLHF__IN, NULL, a.at[0]);
}

rlhf_status rlhf__sum_reduce(struct rlhf__sum *s, const rlhf_dev *aside, rlhf_status *table,
                             struct rlhf__error *err) {
    static const struct walk reduce = {begin_reduce, end_reduce};
    return walk(s, &reduce, aside, table, err);
}

// ---- spread ----

static rlhf_status begin_spread(struct rlhf__sum *s, struct rlhf__slice p, uint32_t slot,
                                const rlhf_dev *aside) {
    const uint32_t own = s->share->rank;
    const uint64_t mine = rlhf__slice_len(s, p, own);
    float *recv = s->recv[slot], *value = rlhf__slice_direct(s, p, own, RLHF__VALUE);
    (void)aside;
    for (uint32_t k = 0; k < s->share->ranks; k++) {
        const uint64_t len = rlhf__slice_len(s, p, k);
        float *to = rlhf__slice_direct(s, p, k, RLHF__VALUE);
        s->out[k] = s->in[k] = (rlhf_block){NULL, 0};
        if (k == own) continue;
        s->out[k] = block_at(value ? value : s->send[slot], mine);
        s->in[k] = block_at(to ? to : recv, len);
        if (!to) recv += len;
    }
    return value ? RLHF_OK
                 : rlhf__slice_move(s, p, own, RLHF__VALUE, NULL, RLHF__DOWN, s->send[slot], NULL);
}

static rlhf_status end_spread(struct rlhf__sum *s, struct rlhf__slice p, uint32_t slot,
                              const rlhf_dev *aside) {
    float *recv = s->recv[slot];
    (void)aside;
    for (uint32_t k = 0; k < s->share->ranks; k++) {
        if (k == s->share->rank || rlhf__slice_direct(s, p, k, RLHF__VALUE)) continue;
        RLHF_TRY(rlhf__slice_move(s, p, k, RLHF__VALUE, NULL, RLHF__UP, recv, NULL));
        recv += rlhf__slice_len(s, p, k);
    }
    return RLHF_OK;
}

rlhf_status rlhf__sum_spread(struct rlhf__sum *s, rlhf_status *table, struct rlhf__error *err) {
    static const struct walk spread = {begin_spread, end_spread};
    s->upwards = 1;
    rlhf_status st = walk(s, &spread, NULL, table, err);
    s->upwards = 0;
    if (st != RLHF_OK || !s->on_device) return st;
    // A spread is the last exchange of a step. Wait for the device here, so that a failure is
    // noticed now and no rank later waits for another rank's stream.
    note(table, s->compute->sync(s->compute->ctx));
    return wait_for(s, 0, err);
}

static int holds(const struct rlhf__sum *s, uint32_t window, uintptr_t from, uintptr_t to) {
    const uint32_t ranks = s->share->ranks;
    for (uint32_t b = window * ranks; b < (window + 1) * ranks && b < s->blocks->n; b++)
        for (uint32_t k = s->blocks->block[b].first; k < s->blocks->block[b].end; k++) {
            const struct rlhf__piece *p = &s->blocks->piece[k];
            const uintptr_t at = (uintptr_t)p->value;
            if (at < to && from < at + p->len * sizeof(float)) return 1;
        }
    return 0;
}

uint32_t rlhf__sum_until(const struct rlhf__sum *s, rlhf_dev value, uint64_t bytes) {
    const uintptr_t from = (uintptr_t)value;
    const uint32_t n = rlhf__sum_windows(s);
    for (uint32_t k = n; k > 0; k--)
        if (holds(s, s->order[n - k], from, from + bytes)) return k;
    return 0;
}
