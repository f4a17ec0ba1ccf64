// team_open.h: opens the collective (rlhf/draft/collective.h) that connects the ranks of a run.
#ifndef RLHF_LIB_RUNTIME_TEAM_TEAM_OPEN_H
#define RLHF_LIB_RUNTIME_TEAM_TEAM_OPEN_H

#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "team/launch.h"
#include "team/team.h"

struct rlhf__collective {
    const rlhf_collectives *plugin; // static data of the shared object; NULL: this process is alone
    rlhf_collective *made;          // result of its create(), argument of its destroy()
    rlhf_collective read;           // a copy of *made with the members that this host knows
    struct rlhf__team team;         // its table is &read
    struct rlhf__log *log;
    char path[RLHF__PATH_CAP]; // of the shared object
    char sha256[65];           // of the file
    char unused[7];
};

#define RLHF__NCCL "nccl" // the collective between GPUs

struct rlhf__collective_spec {
    const struct rlhf__dirs *dirs; // the shared objects are in <lib>/collectives
    struct rlhf__launch launch;
    // Which collective to open. "auto" means the launcher's collective, or none without a launcher.
    // "none" means no collective. "mpi" and "nccl" mean the collective for the launcher's MPI. A
    // value with a '/' is the path of a file. Any other NAME means collective_NAME.so in
    // RLHF_PLUGIN_PATH or <lib>/collectives.
    const char *backend;
    double timeout_s;      // as in rlhf_collective_options
    struct rlhf__log *log; // gets the sentence about a rank that is lost
};

// Join the other ranks. *out must not move in memory; out->team.ranks is 0 if this process is
// alone. If a rank is lost later, the reason is logged and all ranks exit with status 1. Call
// rlhf__collective_close on *out even after a failure. Errors: those of create(); RLHF_E_INVALID if
// the file does not exist, can be changed by others or is not a collective of this version, or if
// the launcher belongs to another MPI. [main]
rlhf_status rlhf__collective_open(const struct rlhf__collective_spec *,
                                  struct rlhf__collective *out, struct rlhf__error *err);

// Find the collective s->backend and load it, in this process only. To join the other ranks, call
// rlhf__collective_join next. Call rlhf__collective_close on *out even after a failure. Errors:
// those of rlhf__collective_open. [main]
rlhf_status rlhf__collective_load(const struct rlhf__collective_spec *s,
                                  struct rlhf__collective *out, struct rlhf__error *err);

// Join the ranks that o->base connects, in order to exchange device memory. All ranks must call
// this function. Errors: those of create(), which are the same on all ranks; RLHF_E_INVALID if the
// collective exchanges no device memory. [main]
rlhf_status rlhf__collective_join(struct rlhf__collective *, const rlhf_collective_options *o,
                                  struct rlhf__error *err);

// Leave the collective, together with the other ranks. If they can no longer be reached, terminates
// all ranks with `status` and does not return. Accepts a zeroed struct. [main]
void rlhf__collective_close(struct rlhf__collective *, int status);

#endif
