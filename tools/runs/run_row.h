// run_row.h: one run as `runs list` shows it. It needs only a few small reads: config.json,
// manifest.json, the lock, and the first and the last line of metrics.jsonl and events.jsonl.
#ifndef RLHF_TOOLS_RUNS_RUN_ROW_H
#define RLHF_TOOLS_RUNS_RUN_ROW_H

#include "history/run_files.h"
#include "verdict/measures.h"

enum rlhf__run_state {
    RLHF__RUN_RUNNING, // a process holds its lock
    RLHF__RUN_DONE,    // all phases are done
    RLHF__RUN_STOPPED, // it ended before its last phase, without a failure
    RLHF__RUN_FAILED,  // it ended with an error
    RLHF__RUN_DIED,    // its process is gone and did not say why
    RLHF__RUN_EMPTY    // before the end of the first phase
};

// Release with rlhf__run_row_finish. A number that is not known is NaN.
struct rlhf__run_row {
    char *path, *name;      // path as the user may type it; name below the directory that was
                            // searched
    uint64_t device, inode; // of the directory
    int32_t state;
    int32_t paths_left_out; // 1: `paths` is incomplete
    int32_t names_code;     // 1: --resume asks the user to name its code or service again
    int64_t phase, wanted;  // phases done; phases in all, 0: not known
    int64_t checkpoint;     // phases done in the checkpoint that --resume starts from; 0: none
    int64_t bytes;          // of the directory
    struct rlhf__headline headline;
    double first, last; // of the headline
    double kl;          // objective/kl of the last phase
    double seconds;     // from the start of the last process to its last phase
    double left;        // estimate; only of a running run
    double started;     // seconds since 1970
    char *reason;       // why it stopped or failed; "" if it is not known
    char *version;      // of the program that started it; "" if it is not known
    json_t *trouble;    // sentences about what could not be read
    // Paths of checkpoints that the run's config.json and manifest.json name; NULL if neither file
    // can be read.
    json_t *paths;
};

// Read the run at `path`. Errors: RLHF_E_INVALID if it is not the directory of a run; RLHF_E_IO,
// RLHF_E_NOMEM. Release the row, even after a failure. [main]
rlhf_status rlhf__run_row_read(const char *path, const char *name, struct rlhf__run_row *out,
                               struct rlhf__error *err);
void rlhf__run_row_finish(struct rlhf__run_row *); // accepts a zeroed one [any]

// "running", "done", "stopped", "failed", "died" or "empty". [any]
const char *rlhf__run_state_name(int32_t state);

// 1 if --resume can continue the run. [any]
int rlhf__run_row_resumes(const struct rlhf__run_row *);

// Append "rlhf-host --resume PATH", quoted for a shell. [any]
void rlhf__run_row_put_resume(const struct rlhf__run_row *, struct rlhf__buf *out);

// Append what `rlhf-host --resume` would do, e.g. "goes on after phase 3", and whether it would
// first ask the user to name the run's code. [any]
void rlhf__run_row_put_goes_on(const struct rlhf__run_row *, struct rlhf__buf *out);

#endif
