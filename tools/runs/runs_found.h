// runs_found.h: the runs in a directory, the newest first, and which of their checkpoints may be
// removed.
#ifndef RLHF_TOOLS_RUNS_RUNS_FOUND_H
#define RLHF_TOOLS_RUNS_RUNS_FOUND_H

#include "runs/run_row.h"

#define RLHF__RUNS_DIR "runs" // where runs are, unless the user says otherwise

// Check that the directory RLHF__RUNS_DIR exists. Errors: RLHF_E_INVALID; the message begins with
// `command`. [any]
rlhf_status rlhf__runs_default(const char *command, struct rlhf__error *err);

// Zero-initialize; release with rlhf__runs_found_finish.
struct rlhf__runs_found {
    struct rlhf__run_row *all;
    size_t n, cap;
    int64_t others; // directories that are not runs and do not contain any
    int64_t closed; // directories that could not be read
};

// Append the runs in a directory. Also finds runs in its subdirectories, and names them
// "GROUP/RUN". If the directory itself is a run, only that run is appended. Skips links, and names
// that begin with a dot. Errors: RLHF_E_INVALID if `dir` is not a directory, RLHF_E_IO,
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__runs_find(const char *dir, struct rlhf__runs_found *out, struct rlhf__error *err);

// Sort by the start of the run, the newest first. [any]
void rlhf__runs_sort(struct rlhf__runs_found *);

void rlhf__runs_found_finish(struct rlhf__runs_found *); // accepts a zeroed one [any]

#endif
