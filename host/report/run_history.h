// run_history.h: the metrics of a run so far, including those from before a resume, and the
// problems that were reported about them by the rules (verdict/rules.h).
//
// A problem is reported once per run. Which problems were reported is not stored: a resumed run
// applies the rules to its earlier phases again, in the same way as when it trained them.
#ifndef RLHF_HOST_REPORT_RUN_HISTORY_H
#define RLHF_HOST_REPORT_RUN_HISTORY_H

#include "base/folder.h"
#include "learn/phase.h"
#include "report/metrics.h"
#include "verdict/verdict.h"

// Zero-initialize; release with rlhf__run_history_finish.
struct rlhf__run_history {
    json_t *config; // `facts` borrows from it
    struct rlhf__run_facts facts;
    struct rlhf__series_set series;
    const char *said[32]; // ids of the problems that were reported
    size_t n_said;
    // What happened to the policy of the newest phase, or NULL: "has collapsed" or "is far from the
    // reference".
    const char *lost;
    int64_t lost_at; // the phase in which a reported loss of the policy began; 0: none
};

void rlhf__run_history_finish(struct rlhf__run_history *); // accepts a zeroed one [any]

// Begin the history of a run with this config. `may_end` is 1 if responses may end before the
// length limit, and -1 otherwise. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__run_history_begin(struct rlhf__run_history *, const struct rlhf__config *,
                                    int may_end, struct rlhf__error *err);

// Read the first `phases` phases from a run's metrics.jsonl, if the file exists. Errors:
// RLHF_E_NOMEM; RLHF_E_IO or RLHF_E_INVALID if the file cannot be read. If it cannot, the caller
// may begin the history with the next phase. [main]
rlhf_status rlhf__run_history_read(struct rlhf__run_history *, const struct rlhf__folder *run,
                                   int64_t phases, struct rlhf__error *err);

// Add the metrics of a phase, counted from 1, before they are written. Phase 0 has metrics from
// before the first phase. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__run_history_add(struct rlhf__run_history *, const struct rlhf__metrics *,
                                  int64_t phase, struct rlhf__error *err);

// Log a warning for each problem that the rules find and that was not reported before, in the phase
// whose metrics were added last. Sets `lost`. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__run_history_warn(struct rlhf__run_history *, const struct rlhf__phase *,
                                   struct rlhf__error *err);

#endif
