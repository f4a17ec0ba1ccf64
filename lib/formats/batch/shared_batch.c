// shared_batch.c: see shared_batch.h.
#include "batch/shared_batch.h"

#include <stdlib.h>
#include <string.h>

void rlhf__shared_batch_finish(struct rlhf__shared_batch *b) {
    free(b->ints);
    memset(b, 0, sizeof *b);
}

// Allocate both layouts for n rows. There are at most n / 2 prefixes, because at least two rows
// share each prefix. The compact layout never has more tokens than the full layout.
static rlhf_status reserve(struct rlhf__shared_batch *b, size_t n, size_t total,
                           struct rlhf__error *err) {
    size_t rows = n + n / 2, need = (n + 1) + 2 * n + (rows + 1) + 2 * rows + 2 * total;
    if (b->ints && need <= b->ints_cap) return RLHF_OK;
    rlhf__shared_batch_finish(b);
    b->ints = malloc(need * sizeof *b->ints);
    if (!b->ints) return RLHF__NOMEM(err, "out of memory for %zu tokens", total);
    b->ints_cap = need;
    return RLHF_OK;
}

// The compact layout while it is written.
struct writer {
    int32_t *ids, *offset, *prompt_len, *prefix, *turn; // `turn` NULL: one turn
    uint32_t rows;
};

// Add a row with tokens [from, from + n) of e. Returns the new row's index.
static int32_t add_row(struct writer *w, const struct rlhf__rows *e, int32_t from, int32_t n,
                       int32_t prompt_len, int32_t prefix) {
    int32_t at = w->offset[w->rows];
    memcpy(w->ids + at, e->ids + from, (size_t)n * sizeof *w->ids);
    if (w->turn) memcpy(w->turn + at, e->turn + from, (size_t)n * sizeof *w->turn);
    w->prompt_len[w->rows] = prompt_len;
    w->prefix[w->rows] = prefix;
    w->offset[w->rows + 1] = at + n;
    return (int32_t)w->rows++;
}

// Returns the index after the last of the adjacent rows within [i, to) that share row i's prompt.
static uint32_t run_end(const struct rlhf__rows *e, uint32_t i, uint32_t to, int share) {
    uint32_t end = i + 1;
    while (share && end < to && rlhf__rows_same_prompt(e, end))
        end++;
    return end;
}

static void write_compact(struct rlhf__shared_batch *b, struct writer *w,
                          const struct rlhf__rows *e, uint32_t from, uint32_t to, int share) {
    w->offset[0] = 0;
    for (uint32_t i = from, end; i < to; i = end) {
        end = run_end(e, i, to, share);
        int32_t cut = end - i > 1 ? e->prompt_len[i] - 1 : 0, prefix = -1;
        if (cut) prefix = add_row(w, e, e->offset[i], cut, cut, -1);
        for (uint32_t k = i; k < end; k++) {
            b->shared[k - from] = cut;
            b->row[k - from] =
                add_row(w, e, e->offset[k] + cut, e->offset[k + 1] - e->offset[k] - cut,
                        e->prompt_len[k] - cut, prefix);
        }
        if (cut) b->is_shared = 1;
    }
}

rlhf_status rlhf__shared_batch_fill(struct rlhf__shared_batch *b, const struct rlhf__rows *e,
                                    uint32_t from, uint32_t to, int share,
                                    struct rlhf__error *err) {
    size_t n = to - from, rows = n + n / 2;
    RLHF_TRY(reserve(b, n, (size_t)(e->offset[to] - e->offset[from]), err));
    b->offset = b->ints;
    b->row = b->offset + n + 1;
    b->shared = b->row + n;
    struct writer w = {.offset = b->shared + n};
    w.prompt_len = w.offset + rows + 1;
    w.prefix = w.prompt_len + rows;
    w.ids = w.prefix + rows;
    w.turn = e->turn ? w.ids + (e->offset[to] - e->offset[from]) : NULL;
    b->is_shared = 0;
    b->full = b->compact = rlhf__rows_batch(e, from, to, b->offset);
    if (!share) return RLHF_OK;
    write_compact(b, &w, e, from, to, share);
    if (b->is_shared)
        b->compact = (rlhf_batch){.size = sizeof(rlhf_batch),
                                  .n = w.rows,
                                  .total = (uint32_t)w.offset[w.rows],
                                  .ids = w.ids,
                                  .offset = w.offset,
                                  .prompt_len = w.prompt_len,
                                  .prefix = w.prefix,
                                  .turn = w.turn};
    return RLHF_OK;
}

// ---- copying between the layouts ----

static void move(float *to, const float *from, int32_t tokens, int32_t width) {
    memcpy(to, from, (size_t)tokens * (size_t)width * sizeof *to);
}

void rlhf__shared_batch_expand(const struct rlhf__shared_batch *b, float *full,
                               const float *compact, int32_t width) {
    size_t d = (size_t)width;
    if (!b->is_shared) {
        move(full, compact, (int32_t)b->full.total, width);
        return;
    }
    for (uint32_t i = 0; i < b->full.n; i++) {
        int32_t at = b->full.offset[i], len = b->full.offset[i + 1] - at, cut = b->shared[i];
        int32_t row = b->row[i];
        if (cut) {
            int32_t first = b->compact.offset[b->compact.prefix[row]];
            move(full + (size_t)at * d, compact + (size_t)first * d, cut, width);
        }
        move(full + (size_t)(at + cut) * d, compact + (size_t)b->compact.offset[row] * d, len - cut,
             width);
    }
}

void rlhf__shared_batch_contract(const struct rlhf__shared_batch *b, float *compact,
                                 const float *full, int32_t width) {
    size_t d = (size_t)width;
    if (!b->is_shared) {
        move(compact, full, (int32_t)b->full.total, width);
        return;
    }
    for (uint32_t i = 0; i < b->full.n; i++) {
        int32_t at = b->full.offset[i], len = b->full.offset[i + 1] - at, cut = b->shared[i];
        int32_t row = b->row[i];
        // Only the first row after a prefix fills that prefix.
        if (cut && b->compact.prefix[row] == row - 1) {
            int32_t first = b->compact.offset[row - 1];
            move(compact + (size_t)first * d, full + (size_t)at * d, cut, width);
        }
        move(compact + (size_t)b->compact.offset[row] * d, full + (size_t)(at + cut) * d, len - cut,
             width);
    }
}

#define N_HEADS 5

// List the per-token heads in a fixed order.
static void per_token(const rlhf_heads *h, float *out[N_HEADS]) {
    out[0] = h->logp;
    out[1] = h->entropy;
    out[2] = h->kl;
    out[3] = h->value;
    out[4] = h->token_score;
}

void rlhf__shared_heads_expand(const struct rlhf__shared_batch *b, const rlhf_heads *full,
                               const rlhf_heads *compact) {
    float *f[N_HEADS], *c[N_HEADS];
    per_token(full, f);
    per_token(compact, c);
    for (int k = 0; k < N_HEADS; k++)
        if (f[k] && c[k]) rlhf__shared_batch_expand(b, f[k], c[k], 1);
}

void rlhf__shared_heads_contract(const struct rlhf__shared_batch *b, const rlhf_heads *compact,
                                 const rlhf_heads *full) {
    float *f[N_HEADS], *c[N_HEADS];
    per_token(full, f);
    per_token(compact, c);
    for (int k = 0; k < N_HEADS; k++)
        if (f[k] && c[k]) rlhf__shared_batch_contract(b, c[k], f[k], 1);
}
