// pass_share.h: passes without gradients that are divided among the ranks of a team.
#ifndef RLHF_HOST_LEARN_PASS_SHARE_H
#define RLHF_HOST_LEARN_PASS_SHARE_H

#include "learn/pass.h"

struct rlhf__team;

// Like rlhf__pass, but each rank forwards only some of the rows, divided as by rlhf__deal, and
// receives the outputs of the other rows. out->flops counts only this rank's work. `team` may be
// NULL. Errors: those of rlhf__pass on any rank; those of rlhf__team_agree. [step]
rlhf_status rlhf__pass_share(struct rlhf__team *team, const struct rlhf__model *m,
                             const struct rlhf__rows *e, const rlhf_dist *dist,
                             int64_t microbatch_tokens, const struct rlhf__pass_out *out,
                             struct rlhf__error *err);

#endif
