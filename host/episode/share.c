// share.c: see share.h.
#include "episode/share.h"

#include "sample/rollout_share.h"
#include "team/reports.h"

#include <stdlib.h>
#include <string.h>

// The beginning of a message. After it come the reports, a byte for each row (1: lost), and what
// rlhf__rollout_pack appends.
struct head {
    struct rlhf__episode_counts counts;
    uint64_t reports; // bytes
};

// Play the rows [from, to) of the request, and append them to a message.
static rlhf_status play(const struct rlhf__episodes_request *of,
                        const struct rlhf__rollout_request *q, uint32_t from, uint32_t to,
                        struct rlhf__buf *out, struct rlhf__error *err) {
    struct rlhf__episodes_request part = *of;
    struct rlhf__rollout_request own = *q;
    struct rlhf__rows e = {0};
    struct rlhf__buf reports = RLHF__BUF_INIT;
    struct head head = {.reports = 0};
    int64_t tokens = 0;
    uint8_t *lost = calloc((size_t)(to - from) + 1, 1);
    if (!lost) return RLHF__NOMEM(err, "out of memory for %u episodes", to - from);
    part.row = of->row + from;
    part.n = own.n = to - from;
    part.first = of->first + from;
    part.metric = rlhf__reports_put;
    part.metric_ctx = &reports;
    own.first = q->first + from;
    rlhf_status st = RLHF_OK;
    if (own.n > 0) st = rlhf__playing_all(&part, own, &e, lost, &tokens, &head.counts, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&reports, err);
    head.reports = reports.len;
    rlhf__buf_put(out, &head, sizeof head);
    if (reports.len) rlhf__buf_put(out, reports.data, reports.len);
    rlhf__buf_put(out, lost, own.n);
    if (st == RLHF_OK) rlhf__rollout_pack(&e, tokens, out);
    rlhf__rows_finish(&e);
    rlhf__buf_free(&reports);
    free(lost);
    return st;
}

// Pass a rank's reports on to the request's `metric` or to the run, and add its counts.
static rlhf_status take_head(const struct rlhf__episodes_request *of, struct rlhf__part *p,
                             struct rlhf__episode_counts *counts, struct rlhf__error *err) {
    const rlhf_host *host = of->setup->environment->host;
    const struct rlhf__services *run = host ? rlhf__services_behind(host) : NULL;
    struct head head;
    RLHF_TRY(rlhf__part_get(p, &head, sizeof head, err));
    rlhf__episode_counts_add(counts, &head.counts);
    if (of->metric || !run)
        return rlhf__reports_take(p, head.reports, of->metric, of->metric_ctx, err);
    return rlhf__reports_take(p, head.reports, run->metric, run->metric_ctx, err);
}

// Put together what the ranks have played.
static rlhf_status take(const struct rlhf__episodes_request *of,
                        const struct rlhf__rollout_request *q, const struct rlhf__team *team,
                        const uint32_t *first, const struct rlhf__parts *parts,
                        struct rlhf__rows *e, int64_t *tokens, struct rlhf__episode_counts *counts,
                        struct rlhf__error *err) {
    struct rlhf__part *part = calloc((size_t)team->ranks, sizeof *part);
    uint8_t *lost = calloc((size_t)q->n + 1, 1);
    rlhf_status st = RLHF_OK;
    if (!part || !lost) st = RLHF__NOMEM(err, "out of memory for %u episodes", q->n);
    for (int32_t r = 0; st == RLHF_OK && r < team->ranks; r++) {
        part[r] = rlhf__part_of(parts, r);
        st = take_head(of, &part[r], counts, err);
        if (st == RLHF_OK)
            st = rlhf__part_get(&part[r], lost + first[r], first[r + 1] - first[r], err);
    }
    counts->seconds /= team->ranks; // they wait at the same time
    if (st == RLHF_OK)
        st = rlhf__rollout_unpack(q, of->row, team->ranks, first, part, e, tokens, err);
    if (st == RLHF_OK) st = rlhf__playing_leave_out(of, lost, e, err);
    free(part);
    free(lost);
    return st;
}

rlhf_status rlhf__playing_share(struct rlhf__team *team, const struct rlhf__episodes_request *of,
                                const struct rlhf__rollout_request *q, struct rlhf__rows *e,
                                int64_t *tokens, struct rlhf__episode_counts *counts,
                                struct rlhf__error *err) {
    *counts = (struct rlhf__episode_counts){0};
    if (!rlhf__team_shares(team)) return rlhf__playing_sample(of, *q, e, tokens, counts, err);
    struct rlhf__buf own = RLHF__BUF_INIT;
    struct rlhf__parts parts = {0};
    uint32_t *first = calloc((size_t)team->ranks + 1, sizeof *first);
    rlhf_status st = first ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %d ranks", team->ranks);
    if (first) rlhf__rollout_deal(team, q->n, of->group, first);
    if (st == RLHF_OK) st = play(of, q, first[team->rank], first[team->rank + 1], &own, err);
    st = rlhf__parts_exchange(team, RLHF__DOOR_ROLLOUT, (int64_t)q->first, &own, st, &parts, err);
    if (st == RLHF_OK && first) st = take(of, q, team, first, &parts, e, tokens, counts, err);
    rlhf__parts_finish(&parts);
    rlhf__buf_free(&own);
    free(first);
    return st;
}
