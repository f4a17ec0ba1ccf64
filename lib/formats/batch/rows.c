// rows.c: see rows.h.
#include "batch/rows.h"

#include <rlhf/reward.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Like calloc, but also returns a valid pointer for 0 elements.
static void *zeroed(size_t n, size_t size) { return calloc(n ? n : 1, size); }

rlhf_status rlhf__rows_init(struct rlhf__rows *e, uint32_t n, uint32_t total,
                            struct rlhf__error *err) {
    memset(e, 0, sizeof *e);
    e->n = n;
    e->total = total;
    e->ids = zeroed(total, sizeof *e->ids);
    e->offset = zeroed((size_t)n + 1, sizeof *e->offset);
    e->prompt_len = zeroed(n, sizeof *e->prompt_len);
    e->group = zeroed(n, sizeof *e->group);
    e->label = zeroed(n, sizeof *e->label);
    e->source = zeroed(n, sizeof *e->source);
    e->version = zeroed(n, sizeof *e->version);
    e->finished = zeroed(n, sizeof *e->finished);
    e->use = zeroed(n, sizeof *e->use);
    e->score = zeroed(n, sizeof *e->score);
    e->reward = zeroed(n, sizeof *e->reward);
    int ok = e->ids && e->offset && e->prompt_len && e->group && e->label && e->source &&
             e->version && e->finished && e->use && e->score && e->reward;
    for (int k = 0; k < RLHF__N_TOKEN_ARRAYS; k++) {
        e->token[k] = zeroed(total, sizeof *e->token[k]);
        ok = ok && e->token[k];
    }
    if (ok) return RLHF_OK;
    rlhf__rows_finish(e);
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a batch of %u tokens", total);
}

void rlhf__rows_finish(struct rlhf__rows *e) {
    free(e->ids);
    free(e->offset);
    free(e->prompt_len);
    free(e->group);
    free(e->label);
    free(e->source);
    free(e->version);
    free(e->finished);
    free(e->use);
    free(e->score);
    free(e->reward);
    for (int k = 0; k < RLHF__N_TOKEN_ARRAYS; k++)
        free(e->token[k]);
    free(e->ref_hidden);
    free(e->ref_row);
    free(e->support);
    free(e->left_out);
    free(e->margin);
    free(e->turn);
    free(e->end);
    free(e->paid);
    free(e->verdict);
    for (uint32_t k = 0; k < e->n_named; k++)
        free(e->named[k]);
    memset(e, 0, sizeof *e);
}

// If `src` has no turns, all its response tokens are turn 0.
static void copy_turns(struct rlhf__rows *dst, uint32_t to, const struct rlhf__rows *src,
                       uint32_t from) {
    const int32_t a = dst->offset[to], b = src->offset[from], len = src->offset[from + 1] - b;
    for (int32_t k = 0; k < len; k++)
        dst->turn[a + k] = src->turn ? src->turn[b + k] : k < src->prompt_len[from] ? -1 : 0;
    dst->end[to] = src->turn ? src->end[from] : RLHF_EPISODE_OPEN;
    if (!src->turn) return;
    memcpy(dst->paid + a, src->paid + b, (size_t)len * sizeof *dst->paid);
    dst->verdict[to] = src->verdict[from];
}

static void copy_row(struct rlhf__rows *dst, uint32_t to, const struct rlhf__rows *src,
                     uint32_t from) {
    size_t a = (size_t)dst->offset[to], b = (size_t)src->offset[from];
    size_t len = (size_t)(src->offset[from + 1] - src->offset[from]);
    memcpy(dst->ids + a, src->ids + b, len * sizeof *dst->ids);
    for (int k = 0; k < RLHF__N_TOKEN_ARRAYS; k++)
        memcpy(dst->token[k] + a, src->token[k] + b, len * sizeof(float));
    if (src->ref_hidden) {
        size_t d = (size_t)src->d_hidden;
        memcpy(dst->ref_hidden + a * d, src->ref_hidden + b * d, len * d * sizeof(float));
    }
    for (uint32_t k = 0; k < dst->n_named; k++)
        memcpy(dst->named[k] + a, src->named[k] + b, len * sizeof(float));
    if (src->margin) dst->margin[to] = src->margin[from];
    if (src->left_out) memcpy(dst->left_out + a, src->left_out + b, len);
    if (dst->turn) copy_turns(dst, to, src, from);
    dst->prompt_len[to] = src->prompt_len[from];
    dst->group[to] = src->group[from];
    dst->label[to] = src->label[from];
    dst->source[to] = src->source[from];
    dst->version[to] = src->version[from];
    dst->finished[to] = src->finished[from];
    dst->use[to] = src->use[from];
    dst->score[to] = src->score[from];
    dst->reward[to] = src->reward[from];
}

static rlhf_status make_support(struct rlhf__rows *e, uint32_t words, struct rlhf__error *err) {
    size_t tokens = (size_t)rlhf__rows_response_tokens(e, 0, e->n);
    e->support_words = words;
    e->support = zeroed(tokens * words, sizeof *e->support);
    if (e->support) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for the candidates of %zu sampled tokens", tokens);
}

rlhf_status rlhf__rows_add_left_out(struct rlhf__rows *e, struct rlhf__error *err) {
    e->left_out = zeroed(e->total, 1);
    if (e->left_out) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for a batch of %u tokens", e->total);
}

rlhf_status rlhf__rows_add_margins(struct rlhf__rows *e, struct rlhf__error *err) {
    e->margin = zeroed(e->n, sizeof *e->margin);
    if (e->margin) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for a batch of %u rows", e->n);
}

rlhf_status rlhf__rows_add_turns(struct rlhf__rows *e, struct rlhf__error *err) {
    e->turn = zeroed(e->total, sizeof *e->turn);
    e->end = zeroed(e->n, 1);
    e->paid = zeroed(e->total, sizeof *e->paid);
    e->verdict = zeroed(e->n, 1);
    if (!e->turn || !e->end || !e->paid || !e->verdict)
        return RLHF__NOMEM(err, "out of memory for a batch of %u tokens", e->total);
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
    for (; e->n_named < n; e->n_named++) {
        e->named[e->n_named] = zeroed(e->total, sizeof(float));
        if (!e->named[e->n_named])
            return RLHF__NOMEM(err, "out of memory for a batch of %u tokens", e->total);
    }
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
    e->ref_row = zeroed(tokens, sizeof *e->ref_row);
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
    dst->d_hidden = src->d_hidden;
    dst->flags = src->flags;
    if (src->ref_hidden) {
        dst->ref_hidden = zeroed((size_t)total * (size_t)src->d_hidden, sizeof(float));
        if (!dst->ref_hidden) {
            rlhf__rows_finish(dst);
            return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for hidden states");
        }
    }
    if ((src->left_out && rlhf__rows_add_left_out(dst, err) != RLHF_OK) ||
        (src->margin && rlhf__rows_add_margins(dst, err) != RLHF_OK) ||
        (src->turn && rlhf__rows_add_turns(dst, err) != RLHF_OK) ||
        rlhf__rows_add_named(dst, src->n_named, err) != RLHF_OK) {
        rlhf__rows_finish(dst);
        return RLHF_E_NOMEM;
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
    if ((a->turn || b->turn) && rlhf__rows_add_turns(dst, err) != RLHF_OK) {
        rlhf__rows_finish(dst);
        return RLHF_E_NOMEM;
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
    const rlhf_status st = make_support(dst, words, err);
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

int rlhf__rows_flat(const struct rlhf__rows *e, uint32_t from, uint32_t to) {
    double low = from < to ? paid(e, from) : 0, high = low;
    for (uint32_t i = from + 1; i < to; i++) {
        const double y = paid(e, i);
        if (isnan(y)) return 0;
        low = fmin(low, y);
        high = fmax(high, y);
    }
    return high - low <= 0x1p-21 * fmax(fabs(low), fabs(high));
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
