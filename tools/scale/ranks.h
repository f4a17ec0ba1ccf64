// ranks.h: `mpirun -n 2 rlhf-host scale --measure FILE`: measures the network between the ranks
// that a launcher started.
#ifndef RLHF_TOOLS_SCALE_RANKS_H
#define RLHF_TOOLS_SCALE_RANKS_H

#include "base/env.h"

// Measure the network. Rank 0 stores the results in the file, and prints them: as the same JSON
// object if `json` is 1, otherwise as a table. Figures of a run that the file already has do not
// change. Returns the exit status, which is 2 if no launcher started
// several processes or if the file is of another kind. [main]
int rlhf__scale_ranks(const struct rlhf__env *env, const char *file, int json);

#endif
