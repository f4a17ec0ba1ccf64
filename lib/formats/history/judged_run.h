// judged_run.h: a run that was read completely and judged. All commands that judge a run use this
// file, so their sentences agree.
#ifndef RLHF_FORMATS_HISTORY_JUDGED_RUN_H
#define RLHF_FORMATS_HISTORY_JUDGED_RUN_H

#include "history/curves.h"
#include "verdict/verdict.h"

// Zero-initialize; release with rlhf__judged_run_finish.
struct rlhf__judged_run {
    struct rlhf__run_files files;
    struct rlhf__curves curves;
    struct rlhf__series_set series;
    struct rlhf__verdict verdict;
    json_t *spread, *texts; // see spread.h and texts.h; spread is NULL without spread.jsonl
    int64_t phases;         // planned, as the run's events say; 0: unknown
};

// Set run[i].files for each of the n paths, add all runs to *range, and divide the range. Errors:
// RLHF_E_INVALID if a path is not a run or occurs twice; RLHF_E_IO, RLHF_E_NOMEM. [any]
rlhf_status rlhf__judged_runs_open(const char *const *paths, size_t n, struct rlhf__judged_run *run,
                                   struct rlhf__curve_range *range, struct rlhf__error *err);

// Read metrics.jsonl, spread.jsonl, samples.jsonl and events.jsonl of a run whose
// `files` are open. The range must cover all runs that are read together. Errors: RLHF_E_NOMEM.
// [any]
rlhf_status rlhf__judged_run_read(struct rlhf__judged_run *, const struct rlhf__curve_range *,
                                  struct rlhf__error *err);

// Set `verdict`. Call this function after rlhf__judged_run_read, because the verdict also reports
// which parts of the files could not be read. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__judged_run_judge(struct rlhf__judged_run *, struct rlhf__error *err);

void rlhf__judged_run_finish(struct rlhf__judged_run *); // accepts a zeroed struct [any]

#endif
