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
        b->block[b->n++] = (struct rlhf__block){b->n_pieces, b->n_pieces, 0};
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

void rlhf__blocks_finish(struct rlhf__blocks *b) {
    free(b->piece);
    free(b->block);
    memset(b, 0, sizeof *b);
}
