// reward_share.c: see reward_share.h.
#include "sample/reward_share.h"

#include "team/reports.h"

#include <stdlib.h>
#include <string.h>

// ---- which rows ----

// Returns 1 if each rank may call the reward for a part of the rows.
static int is_dealt(const struct rlhf__instance *reward) {
    return reward->plugin->desc.state_version == 0 &&
           !(reward->plugin->ops.reward.flags & RLHF_REWARD_WHOLE_BATCH);
}

// Divide the rows among the ranks, in whole groups: rank k gets the rows [first[k], first[k + 1]).
// If `dealt` is 0, rank 0 gets all rows.
static void deal(const struct rlhf__team *t, const struct rlhf__reward_rows *r, int dealt,
                 uint32_t *first) {
    uint32_t groups = 0, group = 0;
    int32_t rank = 0;
    for (uint32_t i = 0; i < r->n; i++)
        groups += i == 0 || r->group[i] != r->group[i - 1];
    for (int32_t k = 1; k <= t->ranks; k++)
        first[k] = r->n;
    first[0] = 0;
    if (!dealt) return;
    for (uint32_t i = 0; i < r->n; i++) {
        if (i > 0 && r->group[i] == r->group[i - 1]) continue;
        while (rank + 1 < t->ranks && group == rlhf__team_from(t, rank + 1, groups))
            first[++rank] = i;
        group++;
    }
}

// ---- answers as bytes ----

struct counts {
    int64_t failures, retries, unscored, not_finite;
    uint64_t reports; // bytes
};

static int per_token(const struct rlhf__reward_call *q) {
    return (q->plugin->plugin->ops.reward.flags & RLHF_REWARD_PER_TOKEN) != 0;
}

static void pack(const struct rlhf__reward_call *q, const struct rlhf__reward_rows *r,
                 const struct rlhf__reward_answer *a, const struct rlhf__reward_tally *t,
                 const struct rlhf__buf *reports, struct rlhf__buf *out) {
    const struct counts c = {t->failures, t->retries, t->unscored, t->not_finite, reports->len};
    rlhf__buf_put(out, &c, sizeof c);
    rlhf__buf_put(out, a->seq, r->n * sizeof *a->seq);
    rlhf__buf_put(out, a->verdict, r->n);
    rlhf__buf_put(out, a->failed, r->n);
    if (per_token(q)) rlhf__buf_put(out, a->token, (size_t)r->offset[r->n] * sizeof *a->token);
    if (reports->len) rlhf__buf_put(out, reports->data, reports->len);
    if (reports->bad) out->bad = 1;
}

static rlhf_status unpack(struct rlhf__part *p, const struct rlhf__reward_call *q, uint32_t from,
                          uint32_t to, const struct rlhf__reward_rows *r,
                          struct rlhf__reward_answer *a, struct rlhf__error *err) {
    const size_t n = to - from, at = (size_t)r->offset[from];
    struct counts c;
    RLHF_TRY(rlhf__part_get(p, &c, sizeof c, err));
    RLHF_TRY(rlhf__part_get(p, a->seq + from, n * sizeof *a->seq, err));
    RLHF_TRY(rlhf__part_get(p, a->verdict + from, n, err));
    RLHF_TRY(rlhf__part_get(p, a->failed + from, n, err));
    if (per_token(q))
        RLHF_TRY(
            rlhf__part_get(p, a->token + at, ((size_t)r->offset[to] - at) * sizeof *a->token, err));
    const struct rlhf__reward_tally more = {.failures = c.failures,
                                            .retries = c.retries,
                                            .unscored = c.unscored,
                                            .not_finite = c.not_finite};
    if (q->tally) rlhf__reward_tally_add(q->tally, &more);
    return rlhf__reports_take(p, c.reports, q->metric, q->metric_ctx, err);
}

// ---- the barrier ----

// Call the reward for the rows [from, to).
static rlhf_status ask(const struct rlhf__reward_call *q, const struct rlhf__reward_rows *r,
                       uint32_t from, uint32_t to, struct rlhf__buf *out, struct rlhf__error *err) {
    struct rlhf__reward_rows some = {0};
    struct rlhf__reward_answer part = {0};
    struct rlhf__reward_tally tally = {0};
    struct rlhf__buf reports = RLHF__BUF_INIT;
    struct rlhf__reward_call own = *q;
    uint32_t *pick = calloc((size_t)(to - from) + 1, sizeof *pick);
    rlhf_status st = pick ? RLHF_OK : RLHF__NOMEM(err, "out of memory scoring %u rows", to - from);
    own.metric = rlhf__reports_put;
    own.metric_ctx = &reports;
    own.tally = &tally;
    own.row_from = from;
    own.row_all = r->n;
    for (uint32_t i = from; st == RLHF_OK && i < to; i++)
        pick[i - from] = i;
    if (st == RLHF_OK) st = rlhf__reward_rows_pick(&some, r, pick, to - from, err);
    if (st == RLHF_OK) st = rlhf__reward_answer_init(&part, &some, err);
    if (st == RLHF_OK && to > from) st = rlhf__reward_ask(&own, NULL, &some, &part, err);
    if (st == RLHF_OK) pack(q, &some, &part, &tally, &reports, out);
    if (q->tally) q->tally->seconds += tally.seconds;
    rlhf__reward_answer_finish(&part);
    rlhf__reward_rows_finish(&some);
    rlhf__buf_finish(&reports);
    free(pick);
    return st;
}

rlhf_status rlhf__reward_share(struct rlhf__team *team, const struct rlhf__reward_call *q,
                               struct rlhf__overlap_answers *early,
                               const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                               struct rlhf__error *err) {
    if (!rlhf__team_shares(team)) return rlhf__reward_ask(q, early, r, a, err);
    struct rlhf__buf own = RLHF__BUF_INIT;
    struct rlhf__parts parts = {0};
    uint32_t *first = calloc((size_t)team->ranks + 1, sizeof *first);
    rlhf_status st = first ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %d ranks", team->ranks);
    if (first) deal(team, r, is_dealt(q->plugin), first);
    if (st == RLHF_OK) st = ask(q, r, first[team->rank], first[team->rank + 1], &own, err);
    st = rlhf__parts_exchange(team, RLHF__BARRIER_REWARDS, r->n, &own, st, &parts, err);
    for (int32_t k = 0; first && st == RLHF_OK && k < team->ranks; k++) {
        struct rlhf__part p = rlhf__part_of(&parts, k);
        st = unpack(&p, q, first[k], first[k + 1], r, a, err);
    }
    rlhf__parts_finish(&parts);
    rlhf__buf_finish(&own);
    free(first);
    return st;
}
