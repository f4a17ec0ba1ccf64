// run_history.h: the metrics of a run so far, including those from before a resume. The rules that
// judge a whole run (history/rules.h) read these metrics, for the warnings about trends and for the
// closing summary.
#ifndef RLHF_HOST_REPORT_RUN_HISTORY_H
#define RLHF_HOST_REPORT_RUN_HISTORY_H

#include "base/folder.h"
#include "config/config.h"
#include "history/verdict.h"
#include "report/findings.h"
#include "report/report.h"

// Zero-initialize; release with rlhf__run_history_finish.
struct rlhf__run_history {
    json_t *config; // `facts` borrows from it
    struct rlhf__run_facts facts;
    struct rlhf__series_set series;
};

void rlhf__run_history_finish(struct rlhf__run_history *); // accepts a zeroed one [any]

// Begin the history of a run with this config. `may_end` is 1 if responses may end before the
// length limit, and -1 otherwise. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__run_history_begin(struct rlhf__run_history *, const struct rlhf__config *,
                                    int may_end, struct rlhf__error *err);

// Read the earlier phases of a resumed run from its metrics.jsonl, if the file exists. Errors:
// RLHF_E_NOMEM; RLHF_E_IO or RLHF_E_INVALID if the file cannot be read. If it cannot, the caller
// may begin the history with the next phase. [main]
rlhf_status rlhf__run_history_read(struct rlhf__run_history *, const struct rlhf__folder *run,
                                   struct rlhf__error *err);

// Add the metrics of a phase, counted from 1, before they are written. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__run_history_add(struct rlhf__run_history *, const struct rlhf__metrics *,
                                  int64_t phase, struct rlhf__error *err);

// Log a warning for each problem that the rules find in the metrics so far, unless the problem was
// reported before. Marks the problem as reported in `*said`. `phase` is the newest phase. Errors:
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__run_history_warn(const struct rlhf__run_history *, struct rlhf__findings *said,
                                   struct rlhf__report *, int64_t phase, struct rlhf__error *err);

#endif
