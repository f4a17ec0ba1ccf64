// sum.c: see sum.h.
#include "team/sum.h"

#include <stdlib.h>
#include <string.h>

// Minimum number of elements of a block that are exchanged at a time, if the block has so many.
#define LEAST  ((uint64_t)1 << 14)
#define BUFFER ((uint64_t)1 << 22) // elements of all buffers on the host, roughly

// ---- life ----

static uint32_t most_nodes(const struct rlhf__sum *s) {
    uint32_t most = 1;
    for (uint32_t k = 0; k < s->share->ranks; k++)
        if (s->has[k].n > most) most = s->has[k].n;
    return most;
}

// Choose how many elements of a block are exchanged at a time. All ranks choose the same number.
static uint64_t choose_len(const struct rlhf__sum *s) {
    const uint64_t each = 2 * (uint64_t)most_nodes(s) * (s->share->ranks - 1) * RLHF__SUM_DEPTH;
    uint64_t len = each > 0 ? BUFFER / each : BUFFER;
    if (len > RLHF__BLOCK) len = RLHF__BLOCK;
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
    } else {
        all = s->host = calloc(2 * RLHF__SUM_DEPTH, each + 1);
    }
    s->out = calloc((size_t)ranks + 1, sizeof *s->out);
    s->in = calloc((size_t)ranks + 1, sizeof *s->in);
    if (!all || !s->out || !s->in)
        return RLHF__NOMEM(err, "out of memory for messages to other ranks");
    for (uint64_t i = 0; i < RLHF__SUM_DEPTH; i++) {
        s->send[i] = (float *)((char *)all + 2 * i * each);
        s->recv[i] = (float *)((char *)all + (2 * i + 1) * each);
    }
    return RLHF_OK;
}

static uint32_t windows(const struct rlhf__sum *s) {
    return (s->blocks->n + s->share->ranks - 1) / s->share->ranks;
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
    const uint32_t n = windows(s);
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
    s->in_place = (t->flags & RLHF_COMPUTE_HOST_MEMORY) != 0;
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

// ---- parts of a block ----

// A part of a window: the same range of elements in each of its blocks.
struct part {
    uint32_t window, reserved; // window: its place in the order
    uint64_t from;             // elements of each block before the part
};

static uint32_t block_of(const struct rlhf__sum *s, struct part p, uint32_t rank) {
    return s->order[p.window] * s->share->ranks + rank;
}

// Returns the number of elements that the part has in a rank's block.
static uint64_t len_of(const struct rlhf__sum *s, struct part p, uint32_t rank) {
    const uint32_t b = block_of(s, p, rank);
    const uint64_t all = b < s->blocks->n ? s->blocks->block[b].len : 0;
    if (all <= p.from) return 0;
    return all - p.from < s->len ? all - p.from : s->len;
}

static struct part next_part(const struct rlhf__sum *s, struct part p) {
    const struct part more = {p.window, 0, p.from + s->len};
    for (uint32_t k = 0; k < s->share->ranks; k++)
        if (len_of(s, more, k) > 0) return more;
    return (struct part){p.window + 1, 0, 0};
}

// Where the numbers of a piece are: its gradient, the copy of it in `aside`, or its value.
enum place { GRAD, ASIDE, VALUE };

static rlhf_dev address(const struct rlhf__piece *p, enum place place, rlhf_dev aside) {
    if (place == ASIDE) return rlhf_dev_at(aside, p->at);
    return place == GRAD ? p->grad : p->value;
}

// How numbers are moved between a block and contiguous memory.
enum way { DOWN, UP, OUT, IN }; // to the host, from it; to device memory, from it

// Copy between contiguous memory and x, with in_place.
static void copy_by_hand(enum way way, float *contiguous, float *x, uint64_t bytes) {
    if (way == DOWN || way == OUT)
        memcpy(contiguous, x, bytes);
    else
        memcpy(x, contiguous, bytes);
}

// Move the part of a block. `host` or `dev` is the contiguous memory.
static rlhf_status move(const struct rlhf__sum *s, struct part part, uint32_t rank,
                        enum place place, rlhf_dev aside, enum way way, float *host, rlhf_dev dev) {
    const rlhf_compute *t = s->compute;
    uint64_t left = len_of(s, part, rank), skip = part.from, at = 0;
    if (left == 0) return RLHF_OK;
    const struct rlhf__block *b = &s->blocks->block[block_of(s, part, rank)];
    for (uint32_t k = b->first; left > 0 && k < b->end; k++) {
        const struct rlhf__piece *p = &s->blocks->piece[k];
        if (skip >= p->len) {
            skip -= p->len;
            continue;
        }
        const uint64_t n = p->len - skip < left ? p->len - skip : left, bytes = n * sizeof(float);
        const rlhf_dev x = rlhf_dev_at(address(p, place, aside), skip * sizeof(float));
        const rlhf_dev d = rlhf_dev_at(dev, at * sizeof(float));
        if (s->by_hand)
            copy_by_hand(way, host ? host + at : (float *)(void *)d, (float *)(void *)x, bytes);
        else
            RLHF_TRY(way == DOWN  ? t->download(t->ctx, host + at, x, bytes)
                     : way == UP  ? t->upload(t->ctx, x, host + at, bytes)
                     : way == OUT ? t->copy(t->ctx, d, x, bytes)
                                  : t->copy(t->ctx, x, d, bytes));
        at += n;
        left -= n;
        skip = 0;
    }
    return RLHF_OK;
}

// Returns the address of a part that is within one piece, else NULL.
static rlhf_dev whole_part(const struct rlhf__sum *s, struct part part, uint32_t rank,
                           enum place place, rlhf_dev aside) {
    if (len_of(s, part, rank) == 0) return NULL;
    const struct rlhf__block *b = &s->blocks->block[block_of(s, part, rank)];
    const struct rlhf__piece *p = &s->blocks->piece[b->first];
    if (b->end - b->first != 1) return NULL;
    return rlhf_dev_at(address(p, place, aside), part.from * sizeof(float));
}

// Returns the memory from which the part can be sent, or in which it can be received, without a
// buffer; else NULL.
static float *direct(const struct rlhf__sum *s, struct part p, uint32_t rank, enum place place) {
    return s->in_place ? (float *)(void *)whole_part(s, p, rank, place, NULL) : NULL;
}

static enum place node_place(const struct rlhf__sum *s, uint32_t node) {
    return node + 1 == s->has[s->share->rank].n ? GRAD : ASIDE;
}

// ---- windows ----

// The two steps of a walk over the windows, for each window.
struct walk {
    // Fill the send buffer and the messages.
    rlhf_status (*begin)(struct rlhf__sum *s, struct part p, uint32_t slot, const rlhf_dev *aside);
    // Use the received numbers.
    rlhf_status (*end)(struct rlhf__sum *s, struct part p, uint32_t slot, const rlhf_dev *aside);
};

// Keep the first failure of the table.
static void note(rlhf_status *table, rlhf_status st) {
    if (*table == RLHF_OK) *table = st;
}

static rlhf_status walk(struct rlhf__sum *s, const struct walk *w, const rlhf_dev *aside,
                        rlhf_status *table, struct rlhf__error *err) {
    struct part head = {0}, tail = {0};
    uint64_t begun = 0, ended = 0;
    *table = RLHF_OK;
    while (tail.window < windows(s)) {
        while (
            head.window < windows(s) && begun < ended + RLHF__SUM_DEPTH &&
            (!s->ready || s->ready(s->ready_ctx, s->low[s->order[head.window]], begun == ended))) {
            const uint32_t slot = (uint32_t)(begun++ % RLHF__SUM_DEPTH);
            note(table, w->begin(s, head, slot, aside));
            RLHF_TRY(rlhf__team_exchange(s->share->team, s->out, s->in, &s->ticket[slot], err));
            head = next_part(s, head);
        }
        const uint32_t slot = (uint32_t)(ended++ % RLHF__SUM_DEPTH);
        RLHF_TRY(rlhf__team_wait(s->share->team, s->ticket[slot], err));
        if (*table == RLHF_OK) note(table, w->end(s, tail, slot, aside));
        tail = next_part(s, tail);
    }
    return RLHF_OK;
}

static rlhf_block block_at(float *at, uint64_t n) {
    return (rlhf_block){n ? at : NULL, n * sizeof(float)};
}

// ---- reduce ----

// Each rank owns one block of the window. Send every other rank this rank's nodes for the block
// that it owns, and receive the other ranks' nodes for the block that this rank owns.
static rlhf_status begin_reduce(struct rlhf__sum *s, struct part p, uint32_t slot,
                                const rlhf_dev *aside) {
    const uint32_t own = s->share->rank, nodes = s->has[own].n;
    const uint64_t mine = len_of(s, p, own);
    float *send = s->send[slot], *recv = s->recv[slot];
    rlhf_status st = RLHF_OK;
    for (uint32_t k = 0; k < s->share->ranks; k++) {
        const uint64_t len = len_of(s, p, k);
        float *grad = nodes == 1 ? direct(s, p, k, GRAD) : NULL;
        s->out[k] = s->in[k] = (rlhf_block){NULL, 0};
        if (k == own) continue;
        s->out[k] = block_at(grad ? grad : send, nodes * len);
        s->in[k] = block_at(recv, s->has[k].n * mine);
        recv += s->has[k].n * mine;
        for (uint32_t j = 0; !grad && j < nodes; j++, send += len) {
            const enum place place = node_place(s, j);
            note(&st, move(s, p, k, place, place == ASIDE ? aside[j] : NULL, DOWN, send, NULL));
        }
    }
    return st;
}

// The nodes of one part while they are added. f32 addition is commutative, so a sum can replace
// either of its two operands; the last sum should end up in `grad`.
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

// Set *x to the address of an own node, or of its copy in staging memory.
static rlhf_status own_node(const struct rlhf__sum *s, struct part p, uint32_t node,
                            const rlhf_dev *aside, struct adding *a, rlhf_dev *x) {
    const enum place place = node_place(s, node);
    const rlhf_dev copy = place == ASIDE ? aside[node] : NULL;
    *x = whole_part(s, p, s->share->rank, place, copy);
    if (*x) return RLHF_OK;
    *x = a->next;
    a->next = rlhf_dev_at(a->next, a->len * sizeof(float));
    return move(s, p, s->share->rank, place, copy, OUT, NULL, *x);
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

static rlhf_status end_reduce(struct rlhf__sum *s, struct part p, uint32_t slot,
                              const rlhf_dev *aside) {
    const uint32_t own = s->share->rank;
    float *recv = s->recv[slot];
    struct adding a = {.tree.shards = s->share->shards, .next = s->node, .len = len_of(s, p, own)};
    if (a.len == 0) return RLHF_OK;
    a.grad = whole_part(s, p, own, GRAD, NULL);
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
    return move(s, p, own, GRAD, NULL, IN, NULL, a.at[0]);
}

rlhf_status rlhf__sum_reduce(struct rlhf__sum *s, const rlhf_dev *aside, rlhf_status *table,
                             struct rlhf__error *err) {
    static const struct walk reduce = {begin_reduce, end_reduce};
    return walk(s, &reduce, aside, table, err);
}

// ---- spread ----

static rlhf_status begin_spread(struct rlhf__sum *s, struct part p, uint32_t slot,
                                const rlhf_dev *aside) {
    const uint32_t own = s->share->rank;
    const uint64_t mine = len_of(s, p, own);
    float *recv = s->recv[slot], *value = direct(s, p, own, VALUE);
    (void)aside;
    for (uint32_t k = 0; k < s->share->ranks; k++) {
        const uint64_t len = len_of(s, p, k);
        float *to = direct(s, p, k, VALUE);
        s->out[k] = s->in[k] = (rlhf_block){NULL, 0};
        if (k == own) continue;
        s->out[k] = block_at(value ? value : s->send[slot], mine);
        s->in[k] = block_at(to ? to : recv, len);
        if (!to) recv += len;
    }
    return value ? RLHF_OK : move(s, p, own, VALUE, NULL, DOWN, s->send[slot], NULL);
}

static rlhf_status end_spread(struct rlhf__sum *s, struct part p, uint32_t slot,
                              const rlhf_dev *aside) {
    float *recv = s->recv[slot];
    (void)aside;
    for (uint32_t k = 0; k < s->share->ranks; k++) {
        if (k == s->share->rank || direct(s, p, k, VALUE)) continue;
        RLHF_TRY(move(s, p, k, VALUE, NULL, UP, recv, NULL));
        recv += len_of(s, p, k);
    }
    return RLHF_OK;
}

rlhf_status rlhf__sum_spread(struct rlhf__sum *s, rlhf_status *table, struct rlhf__error *err) {
    static const struct walk spread = {begin_spread, end_spread};
    return walk(s, &spread, NULL, table, err);
}
