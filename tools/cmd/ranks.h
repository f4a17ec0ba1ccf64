// ranks.h: turns the process of a training command into a rank of a run. The process joins the
// other ranks, gets rank 0's files if it cannot see the run directory, and becomes a learner or an
// actor.
#ifndef RLHF_HOST_CMD_RANKS_H
#define RLHF_HOST_CMD_RANKS_H

#include "run/run.h"
#include "team/join.h"

struct rlhf__ranks {
    struct rlhf__collective collective;
    struct rlhf__split split;
    char shipped[RLHF__PATH_CAP]; // directory with what rank 0 sent; "" = none
    int32_t joined;               // joined 1: the other ranks, if any, were joined
};

// Call this before the settings of a resumed run are read. If a launcher started several processes,
// join these processes. If this rank cannot see the run directory *resume, receive the settings
// from rank 0 and set *resume to the local directory that holds the copy. `backend` and `timeout_s`
// have the values that the user typed, or NULL and 0. Errors: those of rlhf__join and
// rlhf__ship_files. [main]
rlhf_status rlhf__ranks_resume(struct rlhf__ranks *, const struct rlhf__env *env,
                               const char **resume, const char *backend, double timeout_s,
                               struct rlhf__error *err);

// Join the other ranks, unless that was done before, and then choose the actors. st is the result
// of this rank's work so far. If st is a failure on any rank, all ranks fail with it. Other errors:
// those of rlhf__join; RLHF_E_INVALID (parallel.actors). [main]
rlhf_status rlhf__ranks_join(struct rlhf__ranks *, struct rlhf__run_request *run, rlhf_status st,
                             struct rlhf__error *err);

// Let the other ranks read the checkpoint that rank 0 has chosen, or a copy of this checkpoint. All
// ranks must call this function. Errors: those of rlhf__ship_files. [main]
rlhf_status rlhf__ranks_share(const struct rlhf__run_request *run, struct rlhf__error *err);

// Leave the other ranks; see rlhf__collective_close. Accepts a zeroed struct. [main]
void rlhf__ranks_leave(struct rlhf__ranks *, int status);

#endif
