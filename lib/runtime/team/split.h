// split.h: divides the ranks of a run into learners, which train, and actors, which sample the
// responses of the next phase at the same time (parallel.actors).
//
// The learners are the first ranks. They form a separate team, with barriers that the actors do not
// pass. Learners and actors meet at the barriers of the whole team (sample/actors.h).
#ifndef RLHF_HOST_TEAM_SPLIT_H
#define RLHF_HOST_TEAM_SPLIT_H

#include "base/error.h"
#include "team/team.h"

struct rlhf__split {
    struct rlhf__team *all;     // the ranks of the run; borrowed
    struct rlhf__team learners; // ranks [0, all->ranks - actors)
    rlhf_collective table;      // of the learners: sends nothing to the actors
    rlhf_block *block;          // [4 * all->ranks]
    int32_t actors;
};

// Divide the ranks: the last `actors` of them are actors. At least one rank must learn. Do not move
// *s; finish it even after a failure. All ranks must call this function. Errors: RLHF_E_INVALID if
// the ranks pass different values of `actors`; RLHF_E_NOMEM. [main]
rlhf_status rlhf__split_init(struct rlhf__split *s, struct rlhf__team *all, int64_t actors,
                             struct rlhf__error *err);
void rlhf__split_finish(struct rlhf__split *s); // accepts a zeroed struct [main]

// Returns the number of learners. [any]
static inline int32_t rlhf__split_learners(const struct rlhf__split *s) {
    return s->all->ranks - s->actors;
}

// Returns 1 if this process is an actor. If `s` is NULL, all processes are learners. [any]
static inline int rlhf__split_acts(const struct rlhf__split *s) {
    return s && s->all->rank >= rlhf__split_learners(s);
}

// Returns the team of the learners, or NULL if there is only one learner or this process is an
// actor. [any]
static inline struct rlhf__team *rlhf__split_team(struct rlhf__split *s) {
    return rlhf__split_acts(s) || s->learners.ranks < 2 ? NULL : &s->learners;
}

#endif
