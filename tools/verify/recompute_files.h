// recompute_files.h: what recomputing needs from a run directory: rows of metrics, checkpoints, and
// a description of the arithmetic.
#ifndef RLHF_TOOLS_VERIFY_RECOMPUTE_FILES_H
#define RLHF_TOOLS_VERIFY_RECOMPUTE_FILES_H

#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

// Set *row to the row of `phase` in DIR/metrics.jsonl (a new reference), or to NULL if none exists.
// Set *last to the last phase in the file, or to 0 if the file has no phases. Skips lines that
// cannot be read. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__run_files_metrics(const char *dir, int64_t phase, json_t **row, int64_t *last,
                                    struct rlhf__error *err);

// Return 1 if RUN/checkpoints has a complete checkpoint of the phase. [main]
int rlhf__run_files_checkpoint(const char *run, int64_t phase);

// Compare the manifests of a run and of a recomputed phase. *exact is 1 if both computed with the
// same arithmetic, so that each bit must be equal. *bf16 is 1 if the run's matrix products are in
// bf16. Errors: RLHF_E_INVALID (no manifest). [main]
rlhf_status rlhf__run_files_arithmetic(const char *run, const char *again, int *exact, int *bf16,
                                       struct rlhf__error *err);

#endif
