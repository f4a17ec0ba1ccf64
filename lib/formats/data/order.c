// order.c: see order.h. The shuffle is Fisher-Yates with one Philox block for each draw. Pass p
// uses the counters that begin at p * 2^40.
#include "data/order.h"

#include <math.h>
#include <rlhf/rng.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS ((int64_t)1 << 40)

static void shuffle(struct rlhf__order *o) {
    rlhf_rng rng = {.seed = o->seed, .stream = o->stream, .counter = o->pass << 40};
    for (int64_t i = 0; i < o->n; i++)
        o->perm[i] = i;
    for (int64_t i = o->n - 1; i > 0; i--) {
        int64_t j = (int64_t)rlhf_rng_below(&rng, (uint64_t)i + 1), t = o->perm[i];
        o->perm[i] = o->perm[j];
        o->perm[j] = t;
    }
    o->loaded = o->pass + 1;
}

rlhf_status rlhf__order_init(struct rlhf__order *order, int64_t n, uint64_t seed,
                             const char *stream, int shuffled, struct rlhf__error *err) {
    *order = (struct rlhf__order){
        .n = n, .seed = seed, .stream = rlhf_rng_stream(stream), .shuffle = shuffled != 0};
    if (n < 1 || n > MAX_ROWS)
        return rlhf__fail(err, RLHF_E_INVALID, "%lld rows cannot be put in order", (long long)n);
    if (shuffled) order->perm = malloc((size_t)n * sizeof *order->perm);
    if (shuffled && !order->perm)
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the order of %lld rows",
                          (long long)n);
    return RLHF_OK;
}

void rlhf__order_finish(struct rlhf__order *order) {
    free(order->perm);
    *order = (struct rlhf__order){0};
}

int64_t rlhf__order_next(struct rlhf__order *o) {
    if (o->shuffle && o->loaded != o->pass + 1) shuffle(o);
    int64_t row = o->shuffle ? o->perm[o->pos] : o->pos;
    if (++o->pos == o->n) {
        o->pos = 0;
        o->pass++;
    }
    return row;
}

rlhf_status rlhf__order_seek(struct rlhf__order *o, uint64_t pass, int64_t pos,
                             struct rlhf__error *err) {
    if (pos < 0 || pos >= o->n)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "row %lld of a pass over %lld rows: the data has changed", (long long)pos,
                          (long long)o->n);
    o->pass = pass;
    o->pos = pos;
    return RLHF_OK;
}

double rlhf__order_epoch(const struct rlhf__order *o) {
    return (double)o->pass + (double)o->pos / (double)o->n;
}

// ---- batches ----

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

// Chooses the rows of a batch. A row that no longer fits becomes the first row of the next batch.
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
