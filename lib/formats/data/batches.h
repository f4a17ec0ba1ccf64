// batches.h: which rows make the next batch of a supervised run: so many rows, or as many as fit in
// so many tokens, in the order of order.h, until a number of passes is done.
//
// The cursor is that of the order. It knows lengths, not rows.
#ifndef RLHF_HOST_DATA_BATCHES_H
#define RLHF_HOST_DATA_BATCHES_H

#include "data/order.h"

struct rlhf__batch_opts {
    int64_t batch_size;   // rows a batch, > 0
    int64_t batch_tokens; // > 0: instead, as many rows as fit in this many tokens, at least one
    double epochs;        // passes after which the batches end; 0 = never
    uint64_t seed;
    int32_t shuffle, reserved;
};

struct rlhf__batches {
    struct rlhf__order order;
    int64_t batch_size, batch_tokens;
    int64_t end; // rows to visit in all passes; INT64_MAX = no end
    int64_t (*length)(const void *ctx, int64_t row); // tokens of a row
    const void *ctx;
};

// n rows whose lengths `length` tells; ctx must outlive the batches. Release with
// rlhf__batches_finish. Errors: those of rlhf__order_init. [main]
rlhf_status rlhf__batches_init(struct rlhf__batches *, int64_t n, const struct rlhf__batch_opts *,
                               int64_t (*length)(const void *ctx, int64_t row), const void *ctx,
                               struct rlhf__error *err);
void rlhf__batches_finish(struct rlhf__batches *); // accepts zeroed ones [main]

// The rows of the next batch: (*pick)[*n] (fresh; caller frees with free()) of *total tokens; none
// after the end. Errors: RLHF_E_NOMEM; RLHF_E_INVALID (over 2^31 - 1 tokens). [main]
rlhf_status rlhf__batches_next(struct rlhf__batches *, int64_t **pick, uint32_t *n, uint32_t *total,
                               struct rlhf__error *err);

// How many batches there are from the first to the end; 0 when there is no end. Walks the order:
// the cursor is put back. [main]
rlhf_status rlhf__batches_count(struct rlhf__batches *, int64_t *out, struct rlhf__error *err);

#endif
