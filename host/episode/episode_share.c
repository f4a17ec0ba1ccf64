// episode_share.c: see episode_share.h.
#include "episode/episode_share.h"

#include "sample/rollout_share.h"
#include "team/reports.h"

#include <stdlib.h>

// A message between ranks begins with this struct. The environment's reports follow, then one byte
// for each row (1 = the episode was given up), then the bytes of rlhf__rollout_pack.
struct head {
    struct rlhf__episode_counts counts;
    uint64_t reports; // bytes
};

struct plays {
    const struct rlhf__episodes_request *of;
    const struct rlhf__rollout_request *q;
    struct rlhf__episode_counts *counts; // of all ranks
    uint8_t *lost;                       // [n], of all ranks; allocated with the first head
};

// Play the rows [from, to) of the request, and append them to a message.
static rlhf_status play(void *arg, uint32_t from, uint32_t to, struct rlhf__buf *out,
                        struct rlhf__error *err) {
    const struct plays *all = arg;
    struct rlhf__episodes_request part = *all->of;
    struct rlhf__rollout_request own = *all->q;
    struct rlhf__rows e = {0};
    struct rlhf__buf reports = RLHF__BUF_INIT;
    struct head head = {.reports = 0};
    int64_t tokens = 0;
    uint8_t *lost = calloc((size_t)(to - from) + 1, 1);
    if (!lost) return RLHF__NOMEM(err, "out of memory for %u episodes", to - from);
    part.row += from;
    part.n = own.n = to - from;
    part.first += from;
    part.metric = rlhf__reports_put;
    part.metric_ctx = &reports;
    own.first += from;
    rlhf_status st = RLHF_OK;
    if (own.n > 0) st = rlhf__playing_all(&part, own, &e, lost, &tokens, &head.counts, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&reports, err);
    head.reports = reports.len;
    rlhf__buf_put(out, &head, sizeof head);
    if (reports.len) rlhf__buf_put(out, reports.data, reports.len);
    rlhf__buf_put(out, lost, own.n);
    if (st == RLHF_OK) rlhf__rollout_pack(&e, tokens, out);
    rlhf__rows_finish(&e);
    rlhf__buf_finish(&reports);
    free(lost);
    return st;
}

static rlhf_status take_reports(const struct rlhf__episodes_request *of, struct rlhf__part *p,
                                uint64_t bytes, struct rlhf__error *err) {
    const rlhf_host *host = of->setup->environment->host;
    const struct rlhf__services *run = host ? rlhf__services_behind(host) : NULL;
    if (of->metric || !run) return rlhf__reports_take(p, bytes, of->metric, of->metric_ctx, err);
    return rlhf__reports_take(p, bytes, run->metric, run->metric_ctx, err);
}

// Pass a rank's reports to the request's `metric`. If `metric` is NULL, pass them to the run. Add
// the rank's counts to the total, and store which of its rows were given up.
static rlhf_status read_head(void *arg, uint32_t from, uint32_t to, struct rlhf__part *p,
                             struct rlhf__error *err) {
    struct plays *all = arg;
    struct head head;
    if (!all->lost) all->lost = calloc((size_t)all->q->n + 1, 1);
    if (!all->lost) return RLHF__NOMEM(err, "out of memory for %u episodes", all->q->n);
    RLHF_TRY(rlhf__part_get(p, &head, sizeof head, err));
    rlhf__episode_counts_add(all->counts, &head.counts);
    RLHF_TRY(take_reports(all->of, p, head.reports, err));
    return rlhf__part_get(p, all->lost + from, to - from, err);
}

rlhf_status rlhf__playing_share(struct rlhf__team *team, const struct rlhf__episodes_request *of,
                                const struct rlhf__rollout_request *q, struct rlhf__rows *e,
                                int64_t *tokens, struct rlhf__episode_counts *counts,
                                struct rlhf__error *err) {
    *counts = (struct rlhf__episode_counts){0};
    if (!rlhf__team_shares(team)) return rlhf__playing_sample(of, *q, e, tokens, counts, err);
    struct plays all = {.of = of, .q = q, .counts = counts};
    const struct rlhf__rollout_part how = {.sample = play, .read_head = read_head, .arg = &all};
    rlhf_status st = rlhf__rollout_exchange(team, q, of->row, &how, e, tokens, err);
    counts->seconds /= team->ranks; // the ranks wait at the same time
    if (st == RLHF_OK) st = rlhf__playing_leave_out(of, all.lost, e, err);
    free(all.lost);
    return st;
}
