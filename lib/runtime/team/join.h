// join.h: if a launcher started this training command, connects it with the other ranks, and
// silences every rank but rank 0.
#ifndef RLHF_HOST_TEAM_JOIN_H
#define RLHF_HOST_TEAM_JOIN_H

#include "base/env.h"
#include "team/team_open.h"

// If a launcher started this process with a rank other than 0, keep the log from printing errors,
// because the ranks agree on errors and rank 0 prints them. Call this first. [main]
void rlhf__join_prepare(struct rlhf__log *log);

// Returns RLHF_E_INVALID if a launcher started several processes, because `command` works only in a
// single process. [main]
rlhf_status rlhf__join_refuse(const char *command, struct rlhf__error *err);

// Join the other ranks, if there are any, and agree with them on `st`. `st` is the result of this
// process's work so far; its message is in *err. From then on, ranks above 0 log only errors, which
// begin with "rank 3 on HOST: ", and the launcher's variables are removed from this process.
// `backend` and `timeout_s` are as in struct rlhf__collective_spec. `backend` may be NULL if the
// settings could not be read. Close *out even after a failure. Errors: the `st` of a rank that
// failed; those of rlhf__collective_open. [main]
rlhf_status rlhf__join(const struct rlhf__env *env, const char *backend, double timeout_s,
                       struct rlhf__collective *out, rlhf_status st, struct rlhf__error *err);

// Returns the team, or NULL if this process is alone. [any]
static inline struct rlhf__team *rlhf__joined(struct rlhf__collective *c) {
    return c->team.ranks > 1 ? &c->team : NULL;
}

#endif
