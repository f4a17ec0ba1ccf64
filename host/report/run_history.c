// run_history.c: see run_history.h.
#include "report/run_history.h"

#include "config/config_json.h"
#include "history/run_lines.h"
#include "report/jsonl.h"
#include "report/phase_report.h"
#include "verdict/rules.h"

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

// ---- what is reported ----

static int is_said(const struct rlhf__run_history *h, const char *id) {
    for (size_t i = 0; i < h->n_said; i++)
        if (strcmp(h->said[i], id) == 0) return 1;
    return 0;
}

// Returns 1 if the note is news: if the problem was not reported before, and does not only follow
// from a loss of the policy that was.
static int is_news(struct rlhf__run_history *h, const struct rlhf__run_note *n) {
    if (is_said(h, n->id) || h->n_said == sizeof h->said / sizeof *h->said) return 0;
    if (h->lost_at && rlhf__rules_follows(n, h->lost_at)) return 0;
    if ((n->flags & RLHF__NOTE_LOST) && !h->lost_at) h->lost_at = n->held.phase;
    h->said[h->n_said++] = n->id;
    return 1;
}

static void see_loss(struct rlhf__run_history *h, const struct rlhf__run_note *n) {
    if (h->lost) return;
    if (strcmp(n->id, "collapsed") == 0) h->lost = "has collapsed";
    if (strcmp(n->id, "far") == 0) h->lost = "is far from the reference";
}

static void say(const struct rlhf__phase *p, const struct rlhf__run_note *n, int64_t phase) {
    const char *helps = n->change ? " What helps: " : "", *change = n->change ? n->change : "";
    if (n->held.phase == phase || n->held.n <= 1)
        rlhf__report_warn(p->report, phase, n->id, "%s%s%s", n->text, helps, change);
    else
        rlhf__report_warn(p->report, phase, n->id, "since phase %lld: %s%s%s",
                          (long long)n->held.phase, n->text, helps, change);
    rlhf__phase_details(p, n->id);
}

// Apply the rules to the newest phase. If `p` is NULL, the phase is one from before a resume, and
// nothing is logged. Long runs look for trends less often, because those rules read whole series.
static rlhf_status look(struct rlhf__run_history *h, int64_t phase, const struct rlhf__phase *p,
                        struct rlhf__error *err) {
    const struct rlhf__history whole = {&h->series, &h->facts};
    struct rlhf__notes notes = {0};
    h->lost = NULL;
    rlhf__rules_apply(&whole, phase % (1 + phase / 1000) == 0, &notes);
    for (size_t i = 0; i < notes.n; i++) {
        if (!rlhf__rules_due(&notes.all[i], phase)) continue;
        see_loss(h, &notes.all[i]);
        if (is_news(h, &notes.all[i]) && p) say(p, &notes.all[i], phase);
    }
    const rlhf_status st = rlhf__notes_ok(&notes, err);
    rlhf__notes_finish(&notes);
    return st;
}

rlhf_status rlhf__run_history_warn(struct rlhf__run_history *h, const struct rlhf__phase *p,
                                   struct rlhf__error *err) {
    return look(h, p->count->phase + 1, p, err);
}

// ---- phases ----

struct reading {
    struct rlhf__run_history *history;
    int64_t phases;
};

static rlhf_status take_row(void *arg, json_t *row, struct rlhf__error *err) {
    const struct reading *r = arg;
    const int64_t phase = rlhf__run_row_phase(row);
    if (phase < 0 || phase > r->phases) return RLHF_OK;
    RLHF_TRY(rlhf__series_set_row(&r->history->series, row, phase, err));
    return phase > 0 ? look(r->history, phase, NULL, err) : RLHF_OK;
}

rlhf_status rlhf__run_history_read(struct rlhf__run_history *h, const struct rlhf__folder *run,
                                   int64_t phases, struct rlhf__error *err) {
    struct reading r = {h, phases};
    return rlhf__jsonl_each(run, "metrics.jsonl", take_row, &r, err);
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
