// old_checkpoints.h: finds which checkpoints of a run may be removed. The run keeps its newest
// checkpoints, those that `latest` and `best` point at, and those from which another run began. A
// run that is still running keeps all its checkpoints.
#ifndef RLHF_TOOLS_RUNS_OLD_CHECKPOINTS_H
#define RLHF_TOOLS_RUNS_OLD_CHECKPOINTS_H

#include "runs/runs_found.h"

// A checkpoint that a run names in its config.json or manifest.json.
struct rlhf__needed {
    uint64_t device, inode;
    char *moved; // owned "RUN/checkpoints/NUMBER" of a path that does not exist; NULL: it exists
    const struct rlhf__run_row *by; // borrowed
};

// Zero-initialize; release with rlhf__needed_finish.
struct rlhf__needed_list {
    struct rlhf__needed *all;
    size_t n;
    const char *unknown; // a run whose settings cannot be read, borrowed; NULL: none
    const char *crowded; // a run that names more checkpoints than were collected, also borrowed
};

// Append the checkpoints that these runs name. The runs are borrowed. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__needed_collect(const struct rlhf__runs_found *, struct rlhf__needed_list *out,
                                 struct rlhf__error *err);
void rlhf__needed_finish(struct rlhf__needed_list *);

struct rlhf__old_checkpoint {
    char name[32]; // below RUN/checkpoints
    int64_t bytes;
    const char *needed_by; // a run's name, borrowed; NULL: the checkpoint may be removed
};

struct rlhf__old_checkpoints {
    struct rlhf__old_checkpoint *all; // the oldest first
    size_t n;
    int64_t bytes; // of those that may be removed
    size_t n_free; // how many may be removed
};

// List the removable checkpoints of a run that is not running. The newest checkpoints are not
// removable; `keep` (at least 1) is their number. Errors: RLHF_E_IO, RLHF_E_NOMEM. Release with
// rlhf__old_checkpoints_finish, even after a failure. [main]
rlhf_status rlhf__old_checkpoints_find(const struct rlhf__run_row *, int64_t keep,
                                       const struct rlhf__needed_list *,
                                       struct rlhf__old_checkpoints *out, struct rlhf__error *err);
void rlhf__old_checkpoints_finish(struct rlhf__old_checkpoints *);

#endif
