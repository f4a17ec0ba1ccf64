// order.h: the order in which rows are visited. Each pass visits all rows: with `shuffle` in a new
// permutation, otherwise in the order of the files.
//
// The permutation of pass p is a pure function of (seed, stream name, p, n). So a checkpoint needs
// only the position, which is two integers.
//
// It does not know what the rows are.
#ifndef RLHF_FORMATS_DATA_ORDER_H
#define RLHF_FORMATS_DATA_ORDER_H

#include "base/error.h"

struct rlhf__order {
    int64_t n;             // number of rows
    uint64_t seed, stream; // key of the permutations; stream is rlhf_rng_stream(name)
    int32_t shuffle;       // 0: every pass visits the rows in the order of the files
    uint64_t pass;         // cursor: number of finished passes
    int64_t pos;           // cursor: number of rows of this pass already visited, 0 <= pos < n
    uint64_t loaded;       // 1 + the pass whose permutation is in perm; 0 = none
    int64_t *perm;         // [n], NULL without shuffle
};

// Make an order of n rows (1 <= n <= 2^40) with the cursor at the start. Release it with
// rlhf__order_finish. `stream` is "data" for datasets and "prompts" for prompts. Errors:
// RLHF_E_INVALID, RLHF_E_NOMEM. [main]
rlhf_status rlhf__order_init(struct rlhf__order *order, int64_t n, uint64_t seed,
                             const char *stream, int shuffle, struct rlhf__error *err);

// Accepts a zeroed order. [main]
void rlhf__order_finish(struct rlhf__order *order);

// The next row, in [0, n). When a pass ends, the next one starts. [main]
int64_t rlhf__order_next(struct rlhf__order *order);

// Restore the cursor from a checkpoint. Errors: RLHF_E_INVALID (pos outside [0, n)). [main]
rlhf_status rlhf__order_seek(struct rlhf__order *order, uint64_t pass, int64_t pos,
                             struct rlhf__error *err);

// The number of passes so far, as a fraction: pass + pos / n. [any]
double rlhf__order_epoch(const struct rlhf__order *order);

// ---- batches ----

struct rlhf__batch_opts {
    int64_t batch_size;   // number of rows in a batch, > 0
    int64_t batch_tokens; // > 0: a batch has as many rows as fit in this many tokens, at least one
    double epochs;        // number of passes after which the batches end; 0 = never
    uint64_t seed;
    int32_t shuffle;
};

struct rlhf__batches {
    struct rlhf__order order;
    int64_t batch_size, batch_tokens;
    int64_t end; // number of rows to visit in all passes; INT64_MAX = no end
    int64_t (*length)(const void *ctx, int64_t row); // number of tokens of a row
    const void *ctx;
};

// Divide a set of n rows into batches. `length` returns the number of tokens of a row. `ctx` must
// outlive the batches. Release with rlhf__batches_finish. Errors: those of rlhf__order_init. [main]
rlhf_status rlhf__batches_init(struct rlhf__batches *, int64_t n, const struct rlhf__batch_opts *,
                               int64_t (*length)(const void *ctx, int64_t row), const void *ctx,
                               struct rlhf__error *err);
void rlhf__batches_finish(struct rlhf__batches *); // accepts a zeroed struct [main]

// Set *pick to a new array with the *n rows of the next batch. The caller frees the array with
// free(). *total is the number of tokens of these rows. After the end, *n is 0. Errors:
// RLHF_E_NOMEM, RLHF_E_INVALID (more than 2^31 - 1 tokens). [main]
rlhf_status rlhf__batches_next(struct rlhf__batches *, int64_t **pick, uint32_t *n, uint32_t *total,
                               struct rlhf__error *err);

// Set *out to the total number of batches, or to 0 if the batches never end. Visits the whole order
// to count them, and then restores the cursor. [main]
rlhf_status rlhf__batches_count(struct rlhf__batches *, int64_t *out, struct rlhf__error *err);

#endif
