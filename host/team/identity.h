// identity.h: checks that all ranks execute the same run: same settings, files, code and sizes.
#ifndef RLHF_HOST_TEAM_IDENTITY_H
#define RLHF_HOST_TEAM_IDENTITY_H

#include "team/team.h"

#include <jansson.h>

// Compare `own` among the ranks. t may be NULL. Errors: RLHF_E_INVALID if `own` of a rank differs
// from that of rank 0; the message names the first member that differs, with both values
// ("settings.batch.size"). Also those of gather, and RLHF_E_NOMEM. [main]
rlhf_status rlhf__team_same(struct rlhf__team *t, const json_t *own, struct rlhf__error *err);

#endif
