// batches.c: see batches.h.
#include "data/batches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__batches_init(struct rlhf__batches *b, int64_t n, const struct rlhf__batch_opts *o,
                               int64_t (*length)(const void *ctx, int64_t row), const void *ctx,
                               struct rlhf__error *err) {
    memset(b, 0, sizeof *b);
    b->batch_size = o->batch_size;
    b->batch_tokens = o->batch_tokens;
    b->length = length;
    b->ctx = ctx;
    double end = o->epochs * (double)n;
    b->end = o->epochs > 0 && end < 1e15 ? llround(end) : INT64_MAX;
    if (b->end < 1) b->end = 1;
    return rlhf__order_init(&b->order, n, o->seed, "data", o->shuffle, err);
}

void rlhf__batches_finish(struct rlhf__batches *b) {
    rlhf__order_finish(&b->order);
    memset(b, 0, sizeof *b);
}

static int64_t visited(const struct rlhf__batches *b) {
    return (int64_t)b->order.pass * b->order.n + b->order.pos;
}

// The row that no longer fits is given back to the order.
static rlhf_status choose(struct rlhf__batches *b, int64_t **pick, int64_t *n, int64_t *total,
                          struct rlhf__error *err) {
    int64_t cap = 0;
    *n = *total = 0;
    while (visited(b) < b->end) {
        uint64_t pass = b->order.pass;
        int64_t pos = b->order.pos, row = rlhf__order_next(&b->order);
        int64_t len = b->length(b->ctx, row);
        if (b->batch_tokens > 0 && *n > 0 && *total + len > b->batch_tokens)
            return rlhf__order_seek(&b->order, pass, pos, err);
        if (*n == cap) {
            cap = cap ? cap * 2 : 64;
            int64_t *more = realloc(*pick, (size_t)cap * sizeof *more);
            if (!more) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a batch");
            *pick = more;
        }
        (*pick)[(*n)++] = row;
        *total += len;
        if (b->batch_tokens <= 0 && *n == b->batch_size) break;
    }
    return RLHF_OK;
}

rlhf_status rlhf__batches_next(struct rlhf__batches *b, int64_t **pick, uint32_t *n,
                               uint32_t *total, struct rlhf__error *err) {
    int64_t rows, tokens;
    *pick = NULL;
    rlhf_status st = choose(b, pick, &rows, &tokens, err);
    if (st == RLHF_OK && tokens > INT32_MAX)
        st = rlhf__fail(err, RLHF_E_INVALID, "a batch of %lld tokens is too large",
                        (long long)tokens);
    if (st != RLHF_OK) {
        free(*pick);
        *pick = NULL;
        return st;
    }
    *n = (uint32_t)rows;
    *total = (uint32_t)tokens;
    return RLHF_OK;
}

rlhf_status rlhf__batches_count(struct rlhf__batches *b, int64_t *out, struct rlhf__error *err) {
    *out = 0;
    if (b->end == INT64_MAX) return RLHF_OK;
    uint64_t pass = b->order.pass;
    int64_t pos = b->order.pos, n, total;
    rlhf_status st = rlhf__order_seek(&b->order, 0, 0, err);
    while (st == RLHF_OK && visited(b) < b->end) {
        int64_t *pick = NULL;
        st = choose(b, &pick, &n, &total, err);
        free(pick);
        ++*out;
    }
    return st == RLHF_OK ? rlhf__order_seek(&b->order, pass, pos, err) : st;
}
