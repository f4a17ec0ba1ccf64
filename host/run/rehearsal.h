// rehearsal.h: a phase of a run on paper, to know what memory it takes: the calls that it will
// make, with rows as large as they may be, on models whose backend counts and computes nothing.
#ifndef RLHF_HOST_REHEARSAL_H
#define RLHF_HOST_REHEARSAL_H

#include "model/room.h"
#include "run/run.h"

// Run one with everything that rlhf__setup_rows opened, which is on paper, and refuse the run when
// what it takes does not fit (model/room.h) unless compute.memory_check is off. A model that fails
// on paper is counted as far as it came, and a line says so. *out (NULL allowed) = what it takes,
// also when it is refused. [main]
rlhf_status rlhf__rehearse(struct rlhf__run *r, struct rlhf__room_need *out,
                           struct rlhf__error *err);

#endif
