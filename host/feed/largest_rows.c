// largest_rows.c: see largest_rows.h.
#include "feed/largest_rows.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_AHEAD 64 // phases

// Of the next LOOK_AHEAD phases, find the phase whose prompts have the most tokens. Copies its
// prompts to `best`.
static void longest_prompts(const struct rlhf__largest_rows *q, int64_t *row, int64_t *best) {
    int64_t most = -1;
    for (int k = 0; k < LOOK_AHEAD; k++) {
        int64_t tokens = 0;
        for (uint32_t i = 0; i < q->n; i++) {
            row[i] = i % q->group ? row[i - 1] : rlhf__order_next(q->order);
            tokens += rlhf__prompts_get(q->prompts, row[i]).n;
        }
        if (tokens > most) memcpy(best, row, q->n * sizeof *row);
        if (tokens > most) most = tokens;
    }
}

struct length {
    int64_t prompt;
    int32_t tokens;
};

static int longer_first(const void *a, const void *b) {
    const struct length *x = a, *y = b;
    if (x->tokens != y->tokens) return x->tokens > y->tokens ? -1 : 1;
    return (x->prompt > y->prompt) - (x->prompt < y->prompt);
}

// If the algorithm may choose any prompts, take the longest of all prompts, repeated if there are
// too few.
static rlhf_status longest_of_all(const struct rlhf__largest_rows *q, int64_t *row,
                                  struct rlhf__error *err) {
    const int64_t count = rlhf__prompts_count(q->prompts);
    struct length *all = calloc((size_t)count + 1, sizeof *all);
    if (!all) return RLHF__NOMEM(err, "out of memory for %lld prompts", (long long)count);
    for (int64_t i = 0; i < count; i++)
        all[i] = (struct length){.prompt = i, .tokens = rlhf__prompts_get(q->prompts, i).n};
    qsort(all, (size_t)count, sizeof *all, longer_first);
    for (uint32_t i = 0; i < q->n; i++)
        row[i] = all[i / q->group % count].prompt;
    free(all);
    return RLHF_OK;
}

// Returns the maximum number of tokens after prompt p. In an episode, the environment may write
// some of these tokens, but the rows are largest if the policy writes all of them.
static int32_t most_after(const struct rlhf__largest_rows *q, const struct rlhf__prompt *p) {
    return q->longest ? q->longest - p->n : q->max_new;
}

// Make rows of these prompts, with responses of full length.
static rlhf_status lay_out(const struct rlhf__largest_rows *q, const int64_t *row,
                           struct rlhf__rows *e, struct rlhf__error *err) {
    int64_t total = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        const struct rlhf__prompt p = rlhf__prompts_get(q->prompts, row[i]);
        total += p.n + most_after(q, &p);
    }
    if (total > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "a batch of %lld tokens is too large",
                          (long long)total);
    RLHF_TRY(rlhf__rows_init(e, q->n, (uint32_t)total, err));
    e->flags |= RLHF__DRAWN | q->flags;
    for (uint32_t i = 0; i < q->n; i++) {
        const struct rlhf__prompt p = rlhf__prompts_get(q->prompts, row[i]);
        memcpy(e->ids + e->offset[i], p.ids, (size_t)p.n * sizeof *e->ids);
        e->prompt_len[i] = p.n;
        e->source[i] = row[i];
        e->group[i] = (int32_t)(i / q->group);
        e->offset[i + 1] = e->offset[i] + p.n + most_after(q, &p);
    }
    return q->n_vocab_support ? rlhf__rows_add_support(e, q->n_vocab_support, err) : RLHF_OK;
}

rlhf_status rlhf__largest_rows(const struct rlhf__largest_rows *q, struct rlhf__rows *e,
                               struct rlhf__error *err) {
    const size_t n = q->n;
    const uint64_t pass = q->order->pass;
    const int64_t pos = q->order->pos;
    int64_t *row = calloc(2 * n, sizeof *row);
    if (!row) return RLHF__NOMEM(err, "out of memory for %zu prompts", n);
    rlhf_status st = RLHF_OK;
    if (q->any)
        st = longest_of_all(q, row, err);
    else
        longest_prompts(q, row + n, row);
    if (st == RLHF_OK) st = rlhf__order_seek(q->order, pass, pos, err);
    if (st == RLHF_OK) st = lay_out(q, row, e, err);
    free(row);
    return st;
}
