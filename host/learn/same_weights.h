// same_weights.h: checks that all ranks of a team have the same weights.
#ifndef RLHF_HOST_LEARN_SAME_WEIGHTS_H
#define RLHF_HOST_LEARN_SAME_WEIGHTS_H

#include "model/model.h"
#include "team/team.h"

// Compare the trained weights of n models, some of which may be NULL, between the ranks. All ranks
// must call this function. Does nothing without a team. Errors: RLHF_E_INTERNAL if a rank's weights
// differ from rank 0's in any bit (the message names the rank); those of rlhf__team_agree. [main]
rlhf_status rlhf__same_weights(struct rlhf__team *team, const struct rlhf__model *const *models,
                               uint32_t n, int64_t phase, struct rlhf__error *err);

#endif
