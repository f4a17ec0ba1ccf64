// run_row_json.h: a run as an object of `--json`.
#ifndef RLHF_TOOLS_RUNS_RUN_ROW_JSON_H
#define RLHF_TOOLS_RUNS_RUN_ROW_JSON_H

#include "runs/run_row.h"

// Returns {"run", "path", "state", "phase", "phases", "metric", "first", "last", "kl", "seconds",
// "eta_s", "bytes", "started", "checkpoint", "resume", "reason", "version", "trouble"}. Values that
// are not known are null. New reference. [any]
json_t *rlhf__run_row_json(const struct rlhf__run_row *);

#endif
