// blocks.c: see blocks.h.
#include "team/blocks.h"

#include <stdlib.h>
#include <string.h>

// Make room for one more element. Returns NULL if out of memory; the old array then stays valid.
static void *grown(void *p, uint32_t n, uint32_t *cap, size_t size) {
    if (n < *cap) return p;
    const uint32_t more = *cap ? 2 * *cap : 64;
    void *q = realloc(p, more * size);
    if (q) *cap = more;
    return q;
}

static uint64_t limit(const struct rlhf__blocks *b) { return b->limit ? b->limit : RLHF__BLOCK; }

static rlhf_status add_piece(struct rlhf__blocks *b, const struct rlhf__piece *p,
                             struct rlhf__error *err) {
    void *pieces = grown(b->piece, b->n_pieces, &b->pieces_cap, sizeof *b->piece);
    if (pieces) b->piece = pieces;
    void *blocks = pieces ? grown(b->block, b->n, &b->cap, sizeof *b->block) : NULL;
    if (!blocks) return RLHF__NOMEM(err, "out of memory for a list of parameters");
    b->block = blocks;
    if (b->n == 0 || b->block[b->n - 1].len + p->len > limit(b))
        b->block[b->n++] = (struct rlhf__block){.first = b->n_pieces, .end = b->n_pieces};
    struct rlhf__block *last = &b->block[b->n - 1];
    b->piece[b->n_pieces++] = *p;
    last->end = b->n_pieces;
    last->len += p->len;
    if (last->len > b->longest) b->longest = last->len;
    return RLHF_OK;
}

rlhf_status rlhf__blocks_add(struct rlhf__blocks *b, const struct rlhf__piece *whole, int one_piece,
                             struct rlhf__error *err) {
    for (uint64_t from = 0, len; from < whole->len; from += len) {
        len = whole->len - from;
        if (!one_piece && len > limit(b)) len = limit(b);
        const uint64_t bytes = from * sizeof(float);
        struct rlhf__piece p = *whole;
        p.grad = rlhf_dev_at(whole->grad, bytes);
        p.value = rlhf_dev_at(whole->value, bytes);
        p.at += bytes;
        p.from += from;
        p.len = len;
        RLHF_TRY(add_piece(b, &p, err));
    }
    return RLHF_OK;
}

// ---- owners ----

// Writes the numbers of the blocks [from, from + n) to `order`, the longest first. Blocks of equal
// length keep their order.
static void by_length(const struct rlhf__blocks *b, uint32_t from, uint32_t n, uint32_t *order) {
    for (uint32_t i = 0, at; i < n; i++) {
        const uint64_t len = b->block[from + i].len;
        for (at = i; at > 0 && b->block[order[at - 1]].len < len; at--)
            order[at] = order[at - 1];
        order[at] = from + i;
    }
}

// Sorts the ranks by the number of elements that they own, the fewest first.
static void by_load(uint32_t *order, const uint64_t *owned, uint32_t ranks) {
    for (uint32_t i = 0; i < ranks; i++)
        order[i] = i;
    for (uint32_t i = 1; i < ranks; i++)
        for (uint32_t at = i; at > 0 && owned[order[at]] < owned[order[at - 1]]; at--) {
            const uint32_t r = order[at];
            order[at] = order[at - 1];
            order[at - 1] = r;
        }
}

rlhf_status rlhf__blocks_deal(struct rlhf__blocks *b, uint32_t ranks, struct rlhf__error *err) {
    const uint32_t windows = (b->n + ranks - 1) / ranks;
    uint32_t *order = calloc(ranks, sizeof *order), *rank = calloc(ranks, sizeof *rank);
    uint64_t *owned = calloc(ranks, sizeof *owned);
    free(b->dealt);
    b->dealt = malloc(((size_t)windows * ranks + 1) * sizeof *b->dealt);
    const int ok = order && rank && owned && b->dealt;
    for (uint32_t w = 0; ok && w < windows; w++) {
        const uint32_t from = w * ranks, n = b->n - from < ranks ? b->n - from : ranks;
        by_length(b, from, n, order);
        by_load(rank, owned, ranks);
        for (uint32_t k = 0; k < ranks; k++)
            b->dealt[from + rank[k]] = k < n ? order[k] : RLHF__NO_BLOCK;
        for (uint32_t k = 0; k < n; k++) {
            b->block[order[k]].owner = rank[k];
            owned[rank[k]] += b->block[order[k]].len;
        }
    }
    free(order);
    free(rank);
    free(owned);
    return ok ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %u ranks", ranks);
}

void rlhf__blocks_finish(struct rlhf__blocks *b) {
    free(b->piece);
    free(b->block);
    free(b->dealt);
    memset(b, 0, sizeof *b);
}
