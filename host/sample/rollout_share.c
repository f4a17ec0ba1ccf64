// rollout_share.c: see rollout_share.h.
#include "sample/rollout_share.h"

#include <stdlib.h>
#include <string.h>

// ---- this rank's responses ----

static int32_t length(const struct rlhf__rows *e, uint32_t i) {
    return e->offset[i + 1] - e->offset[i] - e->prompt_len[i];
}

// Pack only data that the request does not determine: lengths, ends, ids, log-probs and supports.
void rlhf__rollout_pack(const struct rlhf__rows *e, int64_t tokens, struct rlhf__buf *out) {
    rlhf__buf_put(out, &tokens, sizeof tokens);
    for (uint32_t i = 0; i < e->n; i++) {
        const int32_t len = length(e, i);
        rlhf__buf_put(out, &len, sizeof len);
    }
    rlhf__buf_put(out, e->finished, e->n);
    for (uint32_t i = 0; i < e->n; i++) {
        const size_t at = (size_t)e->offset[i] + (size_t)e->prompt_len[i], n = (size_t)length(e, i);
        rlhf__buf_put(out, e->ids + at, n * sizeof *e->ids);
        rlhf__buf_put(out, e->token[RLHF__LOGP_SAMPLED] + at, n * sizeof(float));
    }
    const size_t words = (size_t)rlhf__rows_response_tokens(e, 0, e->n) * e->support_words;
    if (e->support) rlhf__buf_put(out, e->support, words * sizeof *e->support);
}

// Sample the rows [from, to) of the request.
static rlhf_status sample(const struct rlhf__rollout_request *q, const int64_t *row, uint32_t from,
                          uint32_t to, struct rlhf__buf *out, struct rlhf__error *err) {
    struct rlhf__rollout_request own = *q;
    struct rlhf__rows e = {0};
    int64_t tokens = 0;
    own.n = to - from;
    own.first = q->first + from;
    rlhf_status st = RLHF_OK;
    if (own.n > 0) st = rlhf__rollout(&own, row + from, &e, &tokens, err);
    if (st == RLHF_OK) rlhf__rollout_pack(&e, tokens, out);
    rlhf__rows_finish(&e);
    return st;
}

// ---- all responses ----

// The rows of all ranks, in the order of the batch.
struct all {
    const struct rlhf__rollout_request *q;
    const int64_t *row;
    struct rlhf__part *part; // [ranks] what is still to be read
    const uint32_t *first;   // [ranks + 1] the rows of each rank
    int32_t *len;            // [n]
    uint8_t *finished;       // [n]
    int64_t tokens;          // that the models of all ranks computed
    int32_t ranks, reserved;
};

static rlhf_status read_lengths(struct all *a, struct rlhf__error *err) {
    for (int32_t r = 0; r < a->ranks; r++) {
        const uint32_t n = a->first[r + 1] - a->first[r];
        int64_t tokens;
        if (n == 0) continue;
        RLHF_TRY(rlhf__part_get(&a->part[r], &tokens, sizeof tokens, err));
        a->tokens += tokens;
        RLHF_TRY(rlhf__part_get(&a->part[r], a->len + a->first[r], n * sizeof *a->len, err));
        RLHF_TRY(rlhf__part_get(&a->part[r], a->finished + a->first[r], n, err));
    }
    return RLHF_OK;
}

static rlhf_status fill_row(const struct all *a, uint32_t i, struct rlhf__part *from,
                            struct rlhf__rows *e, struct rlhf__error *err) {
    const struct rlhf__rollout_request *q = a->q;
    const struct rlhf__prompt p = rlhf__prompts_get(q->prompts, a->row[i]);
    const size_t at = (size_t)e->offset[i] + (size_t)p.n, n = (size_t)a->len[i];
    memcpy(e->ids + e->offset[i], p.ids, (size_t)p.n * sizeof *e->ids);
    RLHF_TRY(rlhf__part_get(from, e->ids + at, n * sizeof *e->ids, err));
    RLHF_TRY(rlhf__part_get(from, e->token[RLHF__LOGP_SAMPLED] + at, n * sizeof(float), err));
    memcpy(e->token[RLHF__LOGP_OLD] + at, e->token[RLHF__LOGP_SAMPLED] + at, n * sizeof(float));
    e->prompt_len[i] = p.n;
    e->source[i] = a->row[i];
    e->version[i] = q->version;
    e->finished[i] = a->finished[i];
    e->group[i] = (int32_t)(i / (q->group ? q->group : 1));
    e->offset[i + 1] = (int32_t)(at + n);
    return RLHF_OK;
}

static rlhf_status fill_support(struct all *a, struct rlhf__rows *e, struct rlhf__error *err) {
    RLHF_TRY(rlhf__rows_add_support(e, a->q->model->info.n_vocab, err));
    uint32_t *to = e->support;
    for (int32_t r = 0; r < a->ranks; r++) {
        const size_t words =
            (size_t)rlhf__rows_response_tokens(e, a->first[r], a->first[r + 1]) * e->support_words;
        RLHF_TRY(rlhf__part_get(&a->part[r], to, words * sizeof *to, err));
        to += words;
    }
    return RLHF_OK;
}

static rlhf_status fill(struct all *a, struct rlhf__rows *e, struct rlhf__error *err) {
    const struct rlhf__rollout_request *q = a->q;
    uint64_t total = 0;
    RLHF_TRY(read_lengths(a, err));
    for (uint32_t i = 0; i < q->n; i++)
        total += (uint64_t)(rlhf__prompts_get(q->prompts, a->row[i]).n + a->len[i]);
    if (total > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "a batch of %llu tokens is too large",
                          (unsigned long long)total);
    RLHF_TRY(rlhf__rows_init(e, q->n, (uint32_t)total, err));
    e->flags |= RLHF__DRAWN;
    for (int32_t r = 0; r < a->ranks; r++)
        for (uint32_t i = a->first[r]; i < a->first[r + 1]; i++)
            RLHF_TRY(fill_row(a, i, &a->part[r], e, err));
    return q->keep_support ? fill_support(a, e, err) : RLHF_OK;
}

rlhf_status rlhf__rollout_unpack(const struct rlhf__rollout_request *q, const int64_t *row,
                                 int32_t ranks, const uint32_t *first, struct rlhf__part *part,
                                 struct rlhf__rows *e, int64_t *tokens, struct rlhf__error *err) {
    struct all a = {.q = q, .row = row, .part = part, .first = first, .ranks = ranks};
    a.len = calloc((size_t)q->n + 1, sizeof *a.len);
    a.finished = calloc((size_t)q->n + 1, 1);
    rlhf_status st = RLHF_OK;
    if (!a.len || !a.finished) st = RLHF__NOMEM(err, "out of memory for %u responses", q->n);
    if (st == RLHF_OK) st = fill(&a, e, err);
    if (tokens) *tokens += a.tokens;
    free(a.len);
    free(a.finished);
    return st;
}

static rlhf_status assemble(const struct rlhf__rollout_request *q, const int64_t *row,
                            const struct rlhf__team *team, const uint32_t *first,
                            const struct rlhf__parts *parts, struct rlhf__rows *e, int64_t *tokens,
                            struct rlhf__error *err) {
    struct rlhf__part *part = calloc((size_t)team->ranks, sizeof *part);
    if (!part) return RLHF__NOMEM(err, "out of memory for %d ranks", team->ranks);
    for (int32_t r = 0; r < team->ranks; r++)
        part[r] = rlhf__part_of(parts, r);
    const rlhf_status st = rlhf__rollout_unpack(q, row, team->ranks, first, part, e, tokens, err);
    free(part);
    return st;
}

rlhf_status rlhf__rollout_share(struct rlhf__team *team, const struct rlhf__rollout_request *q,
                                const int64_t *row, struct rlhf__rows *e, int64_t *tokens,
                                struct rlhf__error *err) {
    if (!rlhf__team_shares(team)) return rlhf__rollout(q, row, e, tokens, err);
    struct rlhf__buf own = RLHF__BUF_INIT;
    struct rlhf__parts parts = {0};
    const uint32_t each = q->group ? q->group : 1, groups = q->n / each;
    uint32_t *first = calloc((size_t)team->ranks + 1, sizeof *first);
    rlhf_status st = first ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %d ranks", team->ranks);
    for (int32_t r = 0; st == RLHF_OK && r <= team->ranks; r++)
        first[r] = rlhf__team_from(team, r, groups) * each;
    if (st == RLHF_OK) first[team->ranks] = q->n;
    if (st == RLHF_OK) st = sample(q, row, first[team->rank], first[team->rank + 1], &own, err);
    st = rlhf__parts_exchange(team, RLHF__DOOR_ROLLOUT, (int64_t)q->first, &own, st, &parts, err);
    if (st == RLHF_OK && first) st = assemble(q, row, team, first, &parts, e, tokens, err);
    rlhf__parts_finish(&parts);
    rlhf__buf_free(&own);
    free(first);
    return st;
}
