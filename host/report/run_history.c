// run_history.c: see run_history.h.
#include "report/run_history.h"

#include "history/rules.h"
#include "history/run_lines.h"
#include "history/signs.h"
#include "report/jsonl.h"

#include <string.h>

void rlhf__run_history_finish(struct rlhf__run_history *h) {
    json_decref(h->config);
    rlhf__series_set_finish(&h->series);
    *h = (struct rlhf__run_history){0};
}

rlhf_status rlhf__run_history_begin(struct rlhf__run_history *h, const struct rlhf__config *c,
                                    int may_end, struct rlhf__error *err) {
    rlhf__run_history_finish(h);
    RLHF_TRY(rlhf__config_to_json(c, &h->config, err));
    rlhf__run_facts_read(h->config, &h->facts);
    h->facts.may_end = may_end;
    return RLHF_OK;
}

// ---- phases ----

static rlhf_status take_row(void *arg, json_t *row, struct rlhf__error *err) {
    struct rlhf__run_history *h = arg;
    return rlhf__series_set_row(&h->series, row, rlhf__run_row_phase(row), err);
}

rlhf_status rlhf__run_history_read(struct rlhf__run_history *h, const struct rlhf__folder *run,
                                   struct rlhf__error *err) {
    return rlhf__jsonl_each(run, "metrics.jsonl", take_row, h, err);
}

struct taking {
    struct rlhf__run_history *history;
    const struct rlhf__metrics *metrics;
    struct rlhf__error *err;
    int64_t phase;
    rlhf_status st;
};

static void take(void *arg, const char *name) {
    struct taking *t = arg;
    double value;
    if (t->st != RLHF_OK || !rlhf__series_is_read(name) ||
        !rlhf__metrics_get(t->metrics, name, &value))
        return;
    t->st = rlhf__series_set_put(&t->history->series, name, t->phase, value, t->err);
}

rlhf_status rlhf__run_history_add(struct rlhf__run_history *h, const struct rlhf__metrics *m,
                                  int64_t phase, struct rlhf__error *err) {
    struct taking t = {.history = h, .metrics = m, .err = err, .phase = phase, .st = RLHF_OK};
    rlhf__metrics_names(m, take, &t);
    return t.st == RLHF_OK ? rlhf__series_set_derive(&h->series, phase, err) : t.st;
}

// ---- warnings ----

// Long runs are checked less often, because the rules read the whole series each time.
static int is_due(int64_t phase) {
    return phase >= RLHF__TREND_PHASES && phase % (1 + phase / 1000) == 0;
}

rlhf_status rlhf__run_history_warn(const struct rlhf__run_history *h, struct rlhf__findings *said,
                                   struct rlhf__report *r, int64_t phase, struct rlhf__error *err) {
    const struct rlhf__history whole = {&h->series, &h->facts};
    struct rlhf__notes notes = {0};
    if (!is_due(phase)) return RLHF_OK;
    rlhf__signs_apply(&whole, &notes);
    rlhf__rules_apply(&whole, &notes);
    for (size_t i = 0; i < notes.n; i++) {
        const struct rlhf__run_note *n = &notes.all[i];
        if (!rlhf__findings_note(said, n)) continue;
        rlhf__report_warn(r, phase, n->id, "since phase %lld: %s What helps: %s",
                          (long long)n->held.phase, n->text, n->change);
    }
    const rlhf_status st = rlhf__notes_ok(&notes, err);
    rlhf__notes_finish(&notes);
    return st;
}
