// recorded_play.c: see recorded_play.h.
#include "feed/recorded_play.h"

#include "feed/recorded_rows.h"
#include "sample/decode.h"

#include <stdlib.h>
#include <string.h>

// The recorded episodes, and the position that the replay has reached in each of them.
struct playing {
    struct rlhf__rows was;
    struct rlhf__gen_turns turns;
    const int32_t **prompt; // [n]
    int32_t *at;            // [n] the next token of the row; -1: its episode is over
};

// ---- for the decoder ----

// Returns the end of the segment that token t belongs to.
static int32_t segment_end(const struct playing *p, uint32_t i, int32_t t) {
    const int32_t end = p->was.offset[i + 1], turn = p->was.turn[t];
    while (t < end && p->was.turn[t] == turn)
        t++;
    return t;
}

static rlhf_status begin(void *ctx, uint32_t i, struct rlhf__error *err) {
    (void)ctx;
    (void)i;
    (void)err;
    return RLHF_OK;
}

// Called when the policy has ended a turn. The episode goes on if the turn equals the recorded turn
// and the record has an answer to it.
static rlhf_status ended(void *ctx, uint32_t i, const int32_t *ids, int32_t n, int stopped,
                         struct rlhf__error *err) {
    struct playing *p = ctx;
    const int32_t from = p->at[i], end = segment_end(p, i, from);
    const int same =
        end - from == n && memcmp(p->was.ids + from, ids, (size_t)n * sizeof *ids) == 0;
    (void)stopped;
    (void)err;
    p->at[i] = same && end < p->was.offset[i + 1] ? end : -1;
    return RLHF_OK;
}

static rlhf_status advance(void *ctx, int wait, struct rlhf__error *err) {
    (void)ctx;
    (void)wait;
    (void)err;
    return RLHF_OK;
}

// Returns what the decoder does next with row i. On the first call, the row has only its prompt to
// read. On later calls, the policy has finished a turn, and the row reads the environment's
// recorded text. The row is over if the turn differs from the recorded turn, or if the record ends
// with this turn.
static int next(void *ctx, uint32_t i, const int32_t **ids, int32_t *n) {
    struct playing *p = ctx;
    const int32_t from = p->at[i];
    if (from < 0) return RLHF__GEN_OVER;
    if (p->was.turn[from] >= 0) return RLHF__GEN_READ;
    const int32_t end = segment_end(p, i, from);
    if (end == p->was.offset[i + 1]) return RLHF__GEN_OVER;
    *ids = p->was.ids + from;
    *n = end - from;
    p->at[i] = end;
    return RLHF__GEN_READ;
}

// ---- the rows ----

static rlhf_status check(const struct rlhf__recorded *r, const struct playing *p,
                         const struct rlhf__rollout_request *q, struct rlhf__error *err) {
    const json_t *phase = json_object_get(json_array_get(rlhf__recorded_rows(r), 0), "phase");
    if (p->was.n != q->n)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s has %u of the %u rows that phase %lld sampled, so it lacks what the "
                          "environment answered in the others",
                          rlhf__recorded_path(r), p->was.n, q->n,
                          (long long)json_integer_value(phase));
    for (uint32_t i = 0; i < q->n; i++) {
        const int32_t first = p->was.offset[i] + p->was.prompt_len[i];
        if (first == p->was.offset[i + 1] || p->was.turn[first] < 0)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: row %u of phase %lld does not begin with a turn of the policy",
                              rlhf__recorded_path(r), i, (long long)json_integer_value(phase));
    }
    return RLHF_OK;
}

// Returns 1 if the last turn of row i was cut because the row had reached its length limit.
static int is_cut(const struct rlhf__rows *was, uint32_t i, int32_t max_new) {
    int32_t end;
    const int32_t from = rlhf__rows_last_turn(was, i, &end);
    return was->end[i] == RLHF_EPISODE_TURN_LENGTH && end - from < max_new;
}

// Returns the length at which the decoder ends rows. If the run cut a row at the length limit, the
// result is the length of the longest recorded row. Otherwise max_new is added to that length,
// because a turn that is sampled now may be longer than the recorded turn. The result is at most
// the context length.
static int32_t longest_of(const struct playing *p, const struct rlhf__rollout_request *q) {
    const int32_t n_ctx = q->model->info.n_ctx;
    int32_t longest = 0, more = q->max_new;
    for (uint32_t i = 0; i < p->was.n; i++) {
        const int32_t n = p->was.offset[i + 1] - p->was.offset[i];
        if (n > longest) longest = n;
        if (is_cut(&p->was, i, q->max_new)) more = 0;
    }
    return longest + more < n_ctx ? longest + more : n_ctx;
}

static rlhf_status open_all(const struct rlhf__recorded *r, const struct rlhf__rollout_request *q,
                            struct playing *p, struct rlhf__error *err) {
    RLHF_TRY(rlhf__recorded_episodes(r, q->prompts, q->model->info.n_vocab, &p->was, err));
    RLHF_TRY(check(r, p, q, err));
    p->prompt = calloc((size_t)q->n + 1, sizeof(int32_t *));
    p->at = calloc((size_t)q->n + 1, sizeof *p->at);
    if (!p->prompt || !p->at) return RLHF__NOMEM(err, "out of memory for %u episodes", q->n);
    for (uint32_t i = 0; i < q->n; i++) {
        p->prompt[i] = p->was.ids + p->was.offset[i];
        p->at[i] = p->was.offset[i] + p->was.prompt_len[i];
    }
    p->turns = (struct rlhf__gen_turns){.ctx = p,
                                        .longest = longest_of(p, q),
                                        .begin = begin,
                                        .ended = ended,
                                        .advance = advance,
                                        .next = next};
    return RLHF_OK;
}

// Copy the recorded end of row i's episode, and the recorded rewards of the turns that the new row
// has.
static void take(const struct playing *p, uint32_t i, struct rlhf__rows *e) {
    const int32_t from = e->offset[i], was = p->was.offset[i];
    const int32_t end = e->offset[i + 1] - from, n = p->was.offset[i + 1] - was;
    e->end[i] = p->was.end[i];
    e->verdict[i] = p->was.verdict[i];
    e->finished[i] = p->was.finished[i];
    for (int32_t t = e->prompt_len[i]; t < end && t < n; t++)
        if (e->turn[from + t] >= 0) e->paid[from + t] = p->was.paid[was + t];
}

rlhf_status rlhf__recorded_play(const struct rlhf__recorded *r,
                                const struct rlhf__rollout_request *request, const int64_t *row,
                                struct rlhf__experience *x, struct rlhf__error *err) {
    struct playing p = {.at = NULL};
    struct rlhf__rollout_request q = *request;
    rlhf_status st = open_all(r, &q, &p, err);
    q.cache = NULL; // it may be too small, because the limits do not count tools
    q.turns = &p.turns;
    q.turn_prompt = p.prompt;
    q.turn_prompt_len = p.was.prompt_len;
    if (st == RLHF_OK) st = rlhf__rollout(&q, row, &x->rows, &x->tokens, err);
    for (uint32_t i = 0; st == RLHF_OK && i < q.n; i++)
        take(&p, i, &x->rows);
    rlhf__rows_finish(&p.was);
    free(p.prompt);
    free(p.at);
    return st;
}
