// reduce.h: sums of a few numbers over the ranks of a team, for algorithms (rlhf_host.reduce).
#ifndef RLHF_HOST_TEAM_REDUCE_H
#define RLHF_HOST_TEAM_REDUCE_H

#include "team/team.h"

// Replace each sums[i] with its sum over all ranks, added in the order of ranks. Zeros (+0) are not
// added, so a number that only one rank has keeps its bits. `ctx` is a struct rlhf__team, or NULL
// if there is only one process. This function is for struct rlhf__services.reduce. Errors: those of
// rlhf__team_agree and rlhf__team_gather; RLHF_E_NOMEM. [step]
rlhf_status rlhf__team_reduce(void *ctx, double *sums, uint32_t n, struct rlhf__error *err);

#endif
