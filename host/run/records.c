// records.c: see records.h.
#include "run/records.h"

#include "keep/run_dir.h"
#include "report/phase_report.h"
#include "run/chained.h"
#include "run/run.h"

// Begin the history of metrics. Trends and the closing summary are computed from this history. A
// resumed run reads the metrics of its earlier phases.
static rlhf_status begin_history(struct rlhf__run *r, int64_t phases, struct rlhf__error *err) {
    const int may_end =
        rlhf__cast_samples(&r->cast) && rlhf__responses_may_end(r->config, r->cast.policy);
    RLHF_TRY(rlhf__run_history_begin(&r->history, r->config, may_end ? 1 : -1, err));
    if (phases == 0 || !r->req->dir->root) return RLHF_OK;
    struct rlhf__error unread = {0, ""};
    const rlhf_status st = rlhf__run_history_read(&r->history, r->req->dir->root, phases, &unread);
    if (st == RLHF_E_NOMEM) *err = unread;
    if (st == RLHF_OK || st == RLHF_E_NOMEM) return st;
    rlhf__logf(r->report.log, RLHF_LOG_WARN, "%s; trends and the summary begin with the next phase",
               unread.text);
    return RLHF_OK;
}

static rlhf_status open_metrics(struct rlhf__run *r, const struct rlhf__folder *to, int64_t keep,
                                struct rlhf__error *err) {
    struct rlhf__report *p = &r->report;
    RLHF_TRY(rlhf__metrics_open(to, keep, p->log, &p->metrics, err));
    r->session.services.metric = rlhf__metrics_reported;
    r->session.services.metric_ctx = p->metrics;
    return RLHF_OK;
}

rlhf_status rlhf__records_open(struct rlhf__run *r, const struct rlhf__folder *to, int64_t keep,
                               struct rlhf__error *err) {
    struct rlhf__report *p = &r->report;
    RLHF_TRY(open_metrics(r, to, keep, err));
    RLHF_TRY(rlhf__samples_open(to, keep, p->log, &p->samples, err));
    RLHF_TRY(rlhf__spread_open(to, keep, p->log, &p->spread, err));
    RLHF_TRY(rlhf__events_open(to, keep, p->log, &p->events, err));
    RLHF_TRY(rlhf__chained_open(r, to, keep, err));
    return begin_history(r, keep < 0 ? r->count.phase : keep, err);
}

rlhf_status rlhf__records_open_rollouts(struct rlhf__run *r, int64_t keep,
                                        struct rlhf__error *err) {
    const struct rlhf__folder *run = r->req->dir->root;
    int writes = r->config->log.rollouts;
    if (!writes && (keep < 0 || !rlhf__folder_has(run, "rollouts.jsonl"))) return RLHF_OK;
    rlhf_status st = rlhf__rollout_log_open(run, keep, r->report.log, &r->report.rollout_log, err);
    if (st != RLHF_OK || writes) return st;
    rlhf__rollout_log_close(r->report.rollout_log);
    r->report.rollout_log = NULL;
    return RLHF_OK;
}

rlhf_status rlhf__records_open_silent(struct rlhf__run *r, struct rlhf__error *err) {
    RLHF_TRY(open_metrics(r, NULL, -1, err));
    return begin_history(r, r->count.phase, err);
}

rlhf_status rlhf__records_go_back(struct rlhf__run *r, int64_t phase, struct rlhf__error *err) {
    if (!rlhf__run_writes(r)) return RLHF_OK;
    rlhf__run_close_records(r);
    RLHF_TRY(rlhf__records_open(r, r->req->dir->root, phase, err));
    return rlhf__records_open_rollouts(r, phase, err);
}
