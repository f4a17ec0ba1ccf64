// rows.c: see rows.h.
#include "batch/rows.h"

#include "batch/row_columns.h"
#include "supervise/tail.h"

#include <rlhf/reward.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Allocate the column, with zeros.
static rlhf_status add_column(struct rlhf__rows *e, const struct rlhf__row_column *c, int k,
                              struct rlhf__error *err) {
    const size_t count = c->per_token ? e->total : e->n;
    void *to = rlhf__tail_alloc(count, rlhf__row_column_bytes(e, c));
    rlhf__row_column_set(e, c, k, to);
    if (to) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for %s of %u rows with %u tokens", c->name, e->n,
                       e->total);
}

// Returns the column with this offset, which must be in the table.
static const struct rlhf__row_column *column_of(size_t member) {
    const struct rlhf__row_column *c = rlhf__row_columns;
    while (c->rows_at != member)
        c++;
    return c;
}

rlhf_status rlhf__rows_add(struct rlhf__rows *e, size_t member, struct rlhf__error *err) {
    return add_column(e, column_of(member), 0, err);
}

rlhf_status rlhf__rows_init(struct rlhf__rows *e, uint32_t n, uint32_t total,
                            struct rlhf__error *err) {
    memset(e, 0, sizeof *e);
    e->n = n;
    e->total = total;
    e->offset = rlhf__tail_alloc((size_t)n + 1, sizeof *e->offset);
    rlhf_status st = RLHF_OK;
    if (!e->offset) st = RLHF__NOMEM(err, "out of memory for a batch of %u tokens", total);
    for (size_t i = 0; st == RLHF_OK && i < rlhf__n_row_columns; i++)
        if (rlhf__row_columns[i].always) st = add_column(e, &rlhf__row_columns[i], 0, err);
    if (st != RLHF_OK) rlhf__rows_finish(e);
    return st;
}

void rlhf__rows_finish(struct rlhf__rows *e) {
    for (size_t i = 0; i < rlhf__n_row_columns; i++)
        for (int k = 0; k < rlhf__row_columns[i].repeat; k++)
            free(rlhf__row_column(e, &rlhf__row_columns[i], k));
    free(e->offset);
    free(e->ref_row);
    free(e->support);
    memset(e, 0, sizeof *e);
}

// The row comes from a batch without turns: mark all its response tokens as turn 0.
static void one_turn(struct rlhf__rows *e, uint32_t i) {
    for (int32_t t = e->offset[i]; t < e->offset[i + 1]; t++)
        e->turn[t] = t - e->offset[i] < e->prompt_len[i] ? -1 : 0;
}

// Copy row `from` of src to row `to` of dst, which has the row's offsets. A column that src lacks
// keeps its zeros.
static void copy_row(struct rlhf__rows *dst, uint32_t to, const struct rlhf__rows *src,
                     uint32_t from) {
    for (size_t i = 0; i < rlhf__n_row_columns; i++) {
        const struct rlhf__row_column *c = &rlhf__row_columns[i];
        const size_t bytes = rlhf__row_column_bytes(dst, c);
        const size_t a = c->per_token ? (size_t)dst->offset[to] : to;
        const size_t b = c->per_token ? (size_t)src->offset[from] : from;
        const size_t n = c->per_token ? (size_t)src->offset[from + 1] - b : 1;
        for (int k = 0; k < c->repeat; k++) {
            const char *x = rlhf__row_column(src, c, k);
            char *y = rlhf__row_column(dst, c, k);
            if (x && y) memcpy(y + a * bytes, x + b * bytes, n * bytes);
        }
    }
    if (dst->turn && !src->turn) one_turn(dst, to);
}

// Give dst every column that src has.
static rlhf_status add_columns_of(struct rlhf__rows *dst, const struct rlhf__rows *src,
                                  struct rlhf__error *err) {
    if (src->d_hidden) dst->d_hidden = src->d_hidden;
    if (src->n_named) dst->n_named = src->n_named;
    if (src->reward_score) dst->n_rewards = src->n_rewards;
    if (src->carry_row) dst->carry_rows = src->carry_rows;
    if (src->carry_token) dst->carry_tokens = src->carry_tokens;
    for (size_t i = 0; i < rlhf__n_row_columns; i++) {
        const struct rlhf__row_column *c = &rlhf__row_columns[i];
        for (int k = 0; k < c->repeat; k++)
            if (rlhf__row_column(src, c, k) && !rlhf__row_column(dst, c, k))
                RLHF_TRY(add_column(dst, c, k, err));
    }
    return RLHF_OK;
}

static rlhf_status make_support(struct rlhf__rows *e, uint32_t words, struct rlhf__error *err) {
    size_t tokens = (size_t)rlhf__rows_response_tokens(e, 0, e->n);
    e->support_words = words;
    e->support = rlhf__tail_alloc(tokens * words, sizeof *e->support);
    if (e->support) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for the candidates of %zu sampled tokens", tokens);
}

rlhf_status rlhf__rows_add_turns(struct rlhf__rows *e, struct rlhf__error *err) {
    RLHF_TRY(RLHF__ROWS_ADD(e, turn, err));
    RLHF_TRY(RLHF__ROWS_ADD(e, end, err));
    RLHF_TRY(RLHF__ROWS_ADD(e, paid, err));
    RLHF_TRY(RLHF__ROWS_ADD(e, verdict, err));
    for (uint32_t t = 0; t < e->total; t++)
        e->turn[t] = -1;
    return RLHF_OK;
}

int32_t rlhf__rows_last_turn(const struct rlhf__rows *e, uint32_t i, int32_t *end) {
    const int32_t from = e->offset[i], len = e->offset[i + 1] - from, first = e->prompt_len[i];
    int32_t to = len, at;
    while (to > first && !rlhf__rows_is_response(e, from + to - 1))
        to--;
    *end = to > first ? to : len;
    if (!e->turn || to == first) return e->turn ? len : first;
    for (at = to - 1; at > first && e->turn[from + at - 1] == e->turn[from + to - 1];)
        at--;
    return at;
}

rlhf_status rlhf__rows_add_named(struct rlhf__rows *e, uint32_t n, struct rlhf__error *err) {
    const struct rlhf__row_column *c = column_of(offsetof(struct rlhf__rows, named));
    for (; e->n_named < n; e->n_named++)
        RLHF_TRY(add_column(e, c, (int)e->n_named, err));
    return RLHF_OK;
}

int64_t rlhf__rows_loss_tokens(const struct rlhf__rows *e, uint32_t from, uint32_t to) {
    int64_t sum = rlhf__rows_response_tokens(e, from, to);
    for (uint32_t i = from; e->left_out && i < to; i++)
        for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++)
            if (rlhf__rows_is_response(e, k)) sum -= e->left_out[k];
    return sum;
}

rlhf_status rlhf__rows_add_support(struct rlhf__rows *e, int32_t n_vocab, struct rlhf__error *err) {
    return make_support(e, rlhf_support_words(n_vocab), err);
}

uint32_t *rlhf__rows_support(const struct rlhf__rows *e, uint32_t from) {
    if (!e->support) return NULL;
    return e->support + (size_t)rlhf__rows_response_tokens(e, 0, from) * e->support_words;
}

static rlhf_status make_refs(struct rlhf__rows *e, rlhf_dev hidden, struct rlhf__error *err) {
    size_t tokens = (size_t)rlhf__rows_response_tokens(e, 0, e->n);
    e->ref_dev_hidden = hidden;
    e->ref_row = rlhf__tail_alloc(tokens, sizeof *e->ref_row);
    if (e->ref_row) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for the reference's states of %zu tokens", tokens);
}

rlhf_status rlhf__rows_refer(struct rlhf__rows *e, rlhf_dev hidden, struct rlhf__error *err) {
    RLHF_TRY(make_refs(e, hidden, err));
    int64_t tokens = rlhf__rows_response_tokens(e, 0, e->n);
    for (int32_t t = 0; t < tokens; t++)
        e->ref_row[t] = t;
    return RLHF_OK;
}

// Copy the arrays that have one entry per response token: `support`, and `ref_row`, the positions
// of the reference's hidden states.
static rlhf_status pick_responses(struct rlhf__rows *dst, const struct rlhf__rows *src,
                                  const uint32_t *pick, struct rlhf__error *err) {
    if (!src->support && !src->ref_row) return RLHF_OK;
    // number of response tokens before each row
    size_t *first = calloc((size_t)src->n + 1, sizeof *first);
    if (!first) return RLHF__NOMEM(err, "out of memory for %u rows", src->n);
    for (uint32_t i = 0; i < src->n; i++)
        first[i + 1] = first[i] + (size_t)rlhf__rows_response_tokens(src, i, i + 1);
    rlhf_status st = src->support ? make_support(dst, src->support_words, err) : RLHF_OK;
    if (st == RLHF_OK && src->ref_row) st = make_refs(dst, src->ref_dev_hidden, err);
    size_t words = src->support_words, at = 0;
    for (uint32_t i = 0; st == RLHF_OK && i < dst->n; i++) {
        size_t from = first[pick[i]], len = first[pick[i] + 1] - from;
        if (src->support)
            memcpy(dst->support + at * words, src->support + from * words,
                   len * words * sizeof *dst->support);
        if (src->ref_row)
            memcpy(dst->ref_row + at, src->ref_row + from, len * sizeof *dst->ref_row);
        at += len;
    }
    free(first);
    return st;
}

rlhf_status rlhf__rows_pick(struct rlhf__rows *dst, const struct rlhf__rows *src,
                            const uint32_t *pick, uint32_t n, struct rlhf__error *err) {
    uint32_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += (uint32_t)(src->offset[pick[i] + 1] - src->offset[pick[i]]);
    rlhf_status st = rlhf__rows_init(dst, n, total, err);
    if (st != RLHF_OK) return st;
    dst->flags = src->flags;
    st = add_columns_of(dst, src, err);
    if (st != RLHF_OK) {
        rlhf__rows_finish(dst);
        return st;
    }
    for (uint32_t i = 0; i < n; i++) {
        int32_t len = src->offset[pick[i] + 1] - src->offset[pick[i]];
        dst->offset[i + 1] = dst->offset[i] + len;
        copy_row(dst, i, src, pick[i]);
    }
    st = pick_responses(dst, src, pick, err);
    if (st != RLHF_OK) rlhf__rows_finish(dst);
    return st;
}

rlhf_status rlhf__rows_join(struct rlhf__rows *dst, const struct rlhf__rows *a,
                            const struct rlhf__rows *b, struct rlhf__error *err) {
    const struct rlhf__rows *const part[] = {a, b};
    uint32_t at = 0;
    int32_t group = 0, next = 0;
    RLHF_TRY(rlhf__rows_init(dst, a->n + b->n, a->total + b->total, err));
    dst->flags = a->flags | b->flags;
    rlhf_status st = add_columns_of(dst, a, err);
    if (st == RLHF_OK) st = add_columns_of(dst, b, err);
    if (st != RLHF_OK) {
        rlhf__rows_finish(dst);
        return st;
    }
    for (int k = 0; k < 2; k++, group = next)
        for (uint32_t i = 0; i < part[k]->n; i++, at++) {
            dst->offset[at + 1] = dst->offset[at] + part[k]->offset[i + 1] - part[k]->offset[i];
            copy_row(dst, at, part[k], i);
            dst->group[at] += group;
            if (dst->group[at] >= next) next = dst->group[at] + 1;
        }
    const uint32_t words = a->support ? a->support_words : b->support_words;
    if (!a->support && !b->support) return RLHF_OK;
    st = make_support(dst, words, err);
    if (st != RLHF_OK) {
        rlhf__rows_finish(dst);
        return st;
    }
    for (int k = 0, from = 0; k < 2; k++) {
        const size_t tokens = (size_t)rlhf__rows_response_tokens(part[k], 0, part[k]->n);
        if (part[k]->support)
            memcpy(dst->support + (size_t)from * words, part[k]->support,
                   tokens * words * sizeof *dst->support);
        from += (int)tokens;
    }
    return RLHF_OK;
}

int64_t rlhf__rows_response_tokens(const struct rlhf__rows *e, uint32_t from, uint32_t to) {
    int64_t sum = 0;
    for (uint32_t i = from; i < to; i++) {
        const int32_t first = e->offset[i] + e->prompt_len[i], end = e->offset[i + 1];
        if (!e->turn) sum += end - first;
        for (int32_t t = first; e->turn && t < end; t++)
            sum += e->turn[t] >= 0;
    }
    return sum;
}

uint32_t rlhf__rows_group_end(const struct rlhf__rows *e, uint32_t i) {
    uint32_t to = i + 1;
    while (to < e->n && e->group[to] == e->group[i])
        to++;
    return to;
}

static double paid(const struct rlhf__rows *e, uint32_t i) {
    double sum = (double)e->score[i];
    for (int32_t t = e->offset[i] + e->prompt_len[i]; t < e->offset[i + 1]; t++)
        sum += (double)e->token[RLHF__TOKEN_REWARD][t];
    return sum;
}

void rlhf__rows_number(struct rlhf__rows *e) {
    for (uint32_t i = 0; i < e->n; i++)
        e->row[i] = i;
}

// Returns the reward of row i: the total of all rewards for k = 0, and the score of reward k - 1
// for other k.
static double reward_of(const struct rlhf__rows *e, uint32_t i, uint32_t k) {
    return k ? (double)e->reward_score[i * e->n_rewards + k - 1] : paid(e, i);
}

int rlhf__rows_flat(const struct rlhf__rows *e, uint32_t from, uint32_t to) {
    for (uint32_t k = 0; k <= (e->reward_score ? e->n_rewards : 0); k++) {
        double low = INFINITY, high = -INFINITY;
        for (uint32_t i = from; i < to; i++) {
            const double y = reward_of(e, i, k);
            if (isnan(y) && k) continue; // the reward could not score this row
            if (isnan(y)) return 0;
            low = fmin(low, y);
            high = fmax(high, y);
        }
        if (!(high - low <= 0x1p-21 * fmax(fabs(low), fabs(high)))) return 0;
    }
    return 1;
}

int rlhf__rows_same_prompt(const struct rlhf__rows *e, uint32_t i) {
    int32_t n = e->prompt_len[i];
    if (e->group[i] != e->group[i - 1] || n != e->prompt_len[i - 1] || n < 2) return 0;
    return memcmp(e->ids + e->offset[i - 1], e->ids + e->offset[i], (size_t)n * sizeof *e->ids) ==
           0;
}

// Returns the number of tokens that rows [at, to) add to a slice that starts at `from`. If `share`
// is 1, a row with the same prompt as the row before it adds only the prompt's last token and its
// response.
static int64_t slice_cost(const struct rlhf__rows *e, uint32_t from, uint32_t at, uint32_t to,
                          int share) {
    int64_t sum = 0;
    for (uint32_t i = at; i < to; i++) {
        sum += e->offset[i + 1] - e->offset[i];
        if (share && i > from && rlhf__rows_same_prompt(e, i)) sum -= e->prompt_len[i] - 1;
    }
    return sum;
}

uint32_t rlhf__rows_slice_end(const struct rlhf__rows *e, uint32_t from, int64_t max_tokens,
                              int share) {
    if (max_tokens <= 0) return e->n;
    int64_t used = 0;
    uint32_t to = from;
    while (to < e->n) {
        uint32_t end = e->flags & RLHF__WHOLE_GROUPS ? rlhf__rows_group_end(e, to) : to + 1;
        used += slice_cost(e, from, to, end, share);
        if (used > max_tokens && to > from) break;
        to = end;
    }
    return to;
}

void rlhf__rows_largest_slice(const struct rlhf__rows *e, int64_t max_tokens, int share,
                              uint32_t *rows, uint32_t *tokens) {
    *rows = *tokens = 0;
    for (uint32_t from = 0, to; from < e->n; from = to) {
        to = rlhf__rows_slice_end(e, from, max_tokens, share);
        uint32_t t = (uint32_t)(e->offset[to] - e->offset[from]);
        if (to - from > *rows) *rows = to - from;
        if (t > *tokens) *tokens = t;
    }
}

rlhf_batch rlhf__rows_batch(const struct rlhf__rows *e, uint32_t from, uint32_t to,
                            int32_t *offset) {
    for (uint32_t i = from; i <= to; i++)
        offset[i - from] = e->offset[i] - e->offset[from];
    return (rlhf_batch){.size = sizeof(rlhf_batch),
                        .n = to - from,
                        .total = (uint32_t)offset[to - from],
                        .ids = e->ids + e->offset[from],
                        .offset = offset,
                        .prompt_len = e->prompt_len + from,
                        .turn = e->turn ? e->turn + e->offset[from] : NULL};
}
