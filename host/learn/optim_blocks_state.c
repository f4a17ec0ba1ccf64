// optim_blocks_state.c: the moments of an optimizer whose state is divided between processes; see
// optim_blocks.h.
#include "learn/optim_blocks.h"

#include <string.h>

// The part of a tensor's elements [from, from + n) that is in one piece.
struct overlap {
    rlhf_dev at;       // on the device; NULL if another process owns the piece
    uint64_t first, n; // first: index of the first element, counted from `from`
    uint32_t owner;
};

// Returns the elements that are in piece k of block i. If there are none, the member n is 0.
static struct overlap overlap_of(const struct rlhf__optim_blocks *b, uint32_t i, uint32_t k,
                                 uint32_t item, int v, uint64_t from, uint64_t n) {
    const struct rlhf__piece *p = &b->cut.piece[k];
    const uint64_t end = p->from + p->len;
    struct overlap x = {.owner = b->cut.block[i].owner};
    if (p->tensor != item || end <= from || p->from >= from + n) return x;
    const uint64_t first = p->from > from ? p->from : from, to = end < from + n ? end : from + n;
    const rlhf_dev place = b->places[(size_t)b->n_list * (v ? 3 : 2) + k];
    x.first = first - from;
    x.n = to - first;
    if (place) x.at = rlhf_dev_at(place, (first - p->from) * sizeof(float));
    return x;
}

// Copy the elements of one piece to rank 0.
static rlhf_status fetch(const struct rlhf__optim *o, const struct overlap *x, float *host,
                         rlhf_status *table, struct rlhf__error *err) {
    const struct rlhf__optim_blocks *b = o->blocks;
    const rlhf_compute *t = o->compute;
    const struct rlhf__share *share = b->share;
    rlhf_block *out = b->over.out, *in = b->over.in;
    float *at = share->rank == 0 ? host + x->first : rlhf__sum_host(&b->over);
    uint64_t ticket = 0;
    if (share->rank == x->owner && *table == RLHF_OK)
        *table = t->download(t->ctx, at, x->at, x->n * sizeof(float));
    if (x->owner == 0) return RLHF_OK;
    memset(out, 0, share->ranks * sizeof *out);
    memset(in, 0, share->ranks * sizeof *in);
    const rlhf_block numbers = {at, x->n * sizeof(float)};
    if (share->rank == 0) in[x->owner] = numbers;
    if (share->rank == x->owner) out[0] = numbers;
    RLHF_TRY(rlhf__team_exchange(share->team, out, in, &ticket, err));
    return rlhf__team_wait(share->team, ticket, err);
}

rlhf_status rlhf__optim_blocks_get(const struct rlhf__optim *o, uint32_t item, int v, uint64_t from,
                                   uint64_t n, float *host, struct rlhf__error *err) {
    const struct rlhf__optim_blocks *b = o->blocks;
    rlhf_status table = RLHF_OK;
    for (uint32_t i = 0; i < b->cut.n; i++)
        for (uint32_t k = b->cut.block[i].first; k < b->cut.block[i].end; k++) {
            struct overlap x = overlap_of(b, i, k, item, v, from, n);
            const uint64_t all = x.n, most = b->over.len;
            const rlhf_dev at = x.at;
            for (uint64_t done = 0; done < all; done += x.n, x.first += x.n) {
                x.n = all - done < most ? all - done : most;
                x.at = at ? rlhf_dev_at(at, done * sizeof(float)) : NULL;
                RLHF_TRY(fetch(o, &x, host, &table, err));
            }
        }
    return table == RLHF_OK ? table : rlhf__compute_fail(o->kernels, table, "optimizer state", err);
}

rlhf_status rlhf__optim_blocks_put(struct rlhf__optim *o, uint32_t item, int v, uint64_t from,
                                   uint64_t n, const float *host, struct rlhf__error *err) {
    const struct rlhf__optim_blocks *b = o->blocks;
    const rlhf_compute *t = o->compute;
    for (uint32_t i = 0; i < b->cut.n; i++)
        for (uint32_t k = b->cut.block[i].first; k < b->cut.block[i].end; k++) {
            const struct overlap x = overlap_of(b, i, k, item, v, from, n);
            if (x.n == 0 || x.owner != b->share->rank) continue;
            const rlhf_status st = t->upload(t->ctx, x.at, host + x.first, x.n * sizeof(float));
            if (st != RLHF_OK)
                return rlhf__compute_fail(o->kernels, st, o->items[item].param.name, err);
        }
    return RLHF_OK;
}
