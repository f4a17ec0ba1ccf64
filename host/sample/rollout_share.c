// rollout_share.c: see rollout_share.h.
#include "sample/rollout_share.h"

#include <stdlib.h>
#include <string.h>

// ---- this rank's responses ----

static int32_t length(const struct rlhf__rows *e, uint32_t i) {
    return e->offset[i + 1] - e->offset[i] - e->prompt_len[i];
}

// Pack the data that an environment affects: the prompts, who wrote each token, and how the
// episodes ended.
static void pack_turns(const struct rlhf__rows *e, struct rlhf__buf *out) {
    rlhf__buf_put(out, e->prompt_len, e->n * sizeof *e->prompt_len);
    rlhf__buf_put(out, e->end, e->n);
    rlhf__buf_put(out, e->verdict, e->n);
    for (uint32_t i = 0; i < e->n; i++) {
        const size_t from = (size_t)e->offset[i], n = (size_t)e->prompt_len[i];
        const size_t at = from + n, len = (size_t)length(e, i);
        rlhf__buf_put(out, e->ids + from, n * sizeof *e->ids);
        rlhf__buf_put(out, e->turn + at, len * sizeof *e->turn);
        rlhf__buf_put(out, e->paid + at, len * sizeof *e->paid);
    }
}

// Pack only data that the request does not determine: lengths, ends, ids, log-probs and supports.
void rlhf__rollout_pack(const struct rlhf__rows *e, int64_t tokens, struct rlhf__buf *out) {
    const int32_t turns = e->turn != NULL;
    rlhf__buf_put(out, &tokens, sizeof tokens);
    rlhf__buf_put(out, &turns, sizeof turns);
    for (uint32_t i = 0; i < e->n; i++) {
        const int32_t len = length(e, i);
        rlhf__buf_put(out, &len, sizeof len);
    }
    rlhf__buf_put(out, e->finished, e->n);
    if (turns) pack_turns(e, out);
    for (uint32_t i = 0; i < e->n; i++) {
        const size_t at = (size_t)e->offset[i] + (size_t)e->prompt_len[i], n = (size_t)length(e, i);
        rlhf__buf_put(out, e->ids + at, n * sizeof *e->ids);
        rlhf__buf_put(out, e->token[RLHF__LOGP_SAMPLED] + at, n * sizeof(float));
    }
    const size_t words = (size_t)rlhf__rows_response_tokens(e, 0, e->n) * e->support_words;
    if (e->support) rlhf__buf_put(out, e->support, words * sizeof *e->support);
}

// ---- all responses ----

// The rows of all ranks, in the order of the batch.
struct all {
    const struct rlhf__rollout_request *q;
    const int64_t *row;
    struct rlhf__part *part; // [ranks] what is still to be read
    const uint32_t *first;   // [ranks + 1] the rows of each rank
    int32_t *len;            // [n]
    int32_t *prompt_len;     // [n]
    uint8_t *finished;       // [n]
    uint8_t *end, *verdict;  // [n] of episodes
    int64_t tokens;          // that the models of all ranks computed
    int32_t ranks;
    int32_t turns; // 1: the rows are episodes
};

static rlhf_status read_rank(struct all *a, int32_t r, struct rlhf__error *err) {
    struct rlhf__part *p = &a->part[r];
    const uint32_t from = a->first[r], n = a->first[r + 1] - from;
    int64_t tokens;
    RLHF_TRY(rlhf__part_get(p, &tokens, sizeof tokens, err));
    a->tokens += tokens;
    RLHF_TRY(rlhf__part_get(p, &a->turns, sizeof a->turns, err));
    RLHF_TRY(rlhf__part_get(p, a->len + from, n * sizeof *a->len, err));
    RLHF_TRY(rlhf__part_get(p, a->finished + from, n, err));
    if (!a->turns) return RLHF_OK;
    RLHF_TRY(rlhf__part_get(p, a->prompt_len + from, n * sizeof *a->prompt_len, err));
    RLHF_TRY(rlhf__part_get(p, a->end + from, n, err));
    return rlhf__part_get(p, a->verdict + from, n, err);
}

static rlhf_status read_lengths(struct all *a, struct rlhf__error *err) {
    for (int32_t r = 0; r < a->ranks; r++)
        if (a->first[r + 1] > a->first[r]) RLHF_TRY(read_rank(a, r, err));
    for (uint32_t i = 0; i < a->q->n && !a->turns; i++)
        a->prompt_len[i] = rlhf__prompts_get(a->q->prompts, a->row[i]).n;
    return RLHF_OK;
}

static void fill_about(const struct all *a, uint32_t i, struct rlhf__rows *e) {
    const struct rlhf__rollout_request *q = a->q;
    e->prompt_len[i] = a->prompt_len[i];
    e->source[i] = a->row[i];
    e->version[i] = q->version;
    e->finished[i] = a->finished[i];
    e->group[i] = (int32_t)(i / (q->group ? q->group : 1));
    e->offset[i + 1] = e->offset[i] + a->prompt_len[i] + a->len[i];
    if (!a->turns) return;
    e->end[i] = a->end[i];
    e->verdict[i] = a->verdict[i];
}

// Read row i's prompt. For each token after the prompt, read the token's turn and reward.
static rlhf_status fill_turns(const struct all *a, uint32_t i, struct rlhf__rows *e,
                              struct rlhf__part *from, struct rlhf__error *err) {
    const size_t at = (size_t)e->offset[i] + (size_t)e->prompt_len[i], n = (size_t)a->len[i];
    RLHF_TRY(rlhf__part_get(from, e->ids + e->offset[i], (size_t)e->prompt_len[i] * sizeof *e->ids,
                            err));
    RLHF_TRY(rlhf__part_get(from, e->turn + at, n * sizeof *e->turn, err));
    return rlhf__part_get(from, e->paid + at, n * sizeof *e->paid, err);
}

static rlhf_status fill_row(const struct all *a, uint32_t i, struct rlhf__part *from,
                            struct rlhf__rows *e, struct rlhf__error *err) {
    const size_t at = (size_t)e->offset[i] + (size_t)e->prompt_len[i], n = (size_t)a->len[i];
    float *sampled = e->token[RLHF__LOGP_SAMPLED] + at;
    if (!a->turns)
        memcpy(e->ids + e->offset[i], rlhf__prompts_get(a->q->prompts, a->row[i]).ids,
               (size_t)e->prompt_len[i] * sizeof *e->ids);
    RLHF_TRY(rlhf__part_get(from, e->ids + at, n * sizeof *e->ids, err));
    RLHF_TRY(rlhf__part_get(from, sampled, n * sizeof *sampled, err));
    memcpy(e->token[RLHF__LOGP_OLD] + at, sampled, n * sizeof *sampled);
    return RLHF_OK;
}

static rlhf_status fill_rank(const struct all *a, int32_t r, struct rlhf__rows *e,
                             struct rlhf__error *err) {
    const uint32_t from = a->first[r], to = a->first[r + 1];
    for (uint32_t i = from; i < to; i++)
        fill_about(a, i, e);
    for (uint32_t i = from; a->turns && i < to; i++)
        RLHF_TRY(fill_turns(a, i, e, &a->part[r], err));
    for (uint32_t i = from; i < to; i++)
        RLHF_TRY(fill_row(a, i, &a->part[r], e, err));
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
        total += (uint64_t)(a->prompt_len[i] + a->len[i]);
    if (total > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "a batch of %llu tokens is too large",
                          (unsigned long long)total);
    RLHF_TRY(rlhf__rows_init(e, q->n, (uint32_t)total, err));
    e->flags |= RLHF__DRAWN;
    if (a->turns) RLHF_TRY(rlhf__rows_add_turns(e, err));
    for (int32_t r = 0; r < a->ranks; r++)
        RLHF_TRY(fill_rank(a, r, e, err));
    return q->keep_support ? fill_support(a, e, err) : RLHF_OK;
}

rlhf_status rlhf__rollout_unpack(const struct rlhf__rollout_request *q, const int64_t *row,
                                 int32_t ranks, const uint32_t *first, struct rlhf__part *part,
                                 struct rlhf__rows *e, int64_t *tokens, struct rlhf__error *err) {
    const size_t n = (size_t)q->n + 1;
    struct all a = {.q = q, .row = row, .part = part, .first = first, .ranks = ranks};
    a.len = calloc(2 * n, sizeof *a.len);
    a.finished = calloc(3 * n, 1);
    rlhf_status st = RLHF_OK;
    if (!a.len || !a.finished) st = RLHF__NOMEM(err, "out of memory for %u responses", q->n);
    if (st == RLHF_OK) {
        a.prompt_len = a.len + n;
        a.end = a.finished + n;
        a.verdict = a.end + n;
        st = fill(&a, e, err);
    }
    if (tokens) *tokens += a.tokens;
    free(a.len);
    free(a.finished);
    return st;
}

// ---- the exchange ----

// Divide n rows among the ranks, in whole groups. Rank r gets the rows [first[r], first[r + 1]).
static void deal(const struct rlhf__team *team, uint32_t n, uint32_t group, uint32_t *first) {
    const uint32_t each = group ? group : 1, groups = n / each;
    for (int32_t r = 0; r < team->ranks; r++)
        first[r] = rlhf__team_from(team, r, groups) * each;
    first[team->ranks] = n;
}

static rlhf_status assemble(const struct rlhf__rollout_request *q, const int64_t *row,
                            const struct rlhf__rollout_part *how, int32_t ranks,
                            const uint32_t *first, const struct rlhf__parts *parts,
                            struct rlhf__rows *e, int64_t *tokens, struct rlhf__error *err) {
    struct rlhf__part *part = calloc((size_t)ranks, sizeof *part);
    rlhf_status st = part ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %d ranks", ranks);
    for (int32_t r = 0; st == RLHF_OK && r < ranks; r++) {
        part[r] = rlhf__part_of(parts, r);
        if (how->read_head) st = how->read_head(how->arg, first[r], first[r + 1], &part[r], err);
    }
    if (st == RLHF_OK) st = rlhf__rollout_unpack(q, row, ranks, first, part, e, tokens, err);
    free(part);
    return st;
}

rlhf_status rlhf__rollout_exchange(struct rlhf__team *team, const struct rlhf__rollout_request *q,
                                   const int64_t *row, const struct rlhf__rollout_part *how,
                                   struct rlhf__rows *e, int64_t *tokens, struct rlhf__error *err) {
    struct rlhf__buf own = RLHF__BUF_INIT;
    struct rlhf__parts parts = {0};
    const int32_t ranks = team->ranks, rank = team->rank;
    uint32_t *first = calloc((size_t)ranks + 1, sizeof *first);
    rlhf_status st = first ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %d ranks", ranks);
    if (first) {
        deal(team, q->n, q->group, first);
        st = how->sample(how->arg, first[rank], first[rank + 1], &own, err);
    }
    st =
        rlhf__parts_exchange(team, RLHF__BARRIER_ROLLOUT, (int64_t)q->first, &own, st, &parts, err);
    if (st == RLHF_OK && first) st = assemble(q, row, how, ranks, first, &parts, e, tokens, err);
    rlhf__parts_finish(&parts);
    rlhf__buf_finish(&own);
    free(first);
    return st;
}

// ---- responses ----

struct responses {
    const struct rlhf__rollout_request *q;
    const int64_t *row;
};

static rlhf_status sample(void *arg, uint32_t from, uint32_t to, struct rlhf__buf *out,
                          struct rlhf__error *err) {
    const struct responses *of = arg;
    struct rlhf__rollout_request own = *of->q;
    struct rlhf__rows e = {0};
    int64_t tokens = 0;
    own.n = to - from;
    own.first = of->q->first + from;
    rlhf_status st = RLHF_OK;
    if (own.n > 0) st = rlhf__rollout(&own, of->row + from, &e, &tokens, err);
    if (st == RLHF_OK) rlhf__rollout_pack(&e, tokens, out);
    rlhf__rows_finish(&e);
    return st;
}

rlhf_status rlhf__rollout_share(struct rlhf__team *team, const struct rlhf__rollout_request *q,
                                const int64_t *row, struct rlhf__rows *e, int64_t *tokens,
                                struct rlhf__error *err) {
    if (!rlhf__team_shares(team)) return rlhf__rollout(q, row, e, tokens, err);
    struct responses of = {q, row};
    const struct rlhf__rollout_part how = {.sample = sample, .arg = &of};
    return rlhf__rollout_exchange(team, q, row, &how, e, tokens, err);
}
