// order.c: see order.h. Fisher-Yates with one Philox block a draw; pass p uses the counters from
// p * 2^40 on.
#include "data/order.h"

#include <rlhf/rng.h>
#include <stdlib.h>

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
