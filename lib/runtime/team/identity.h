// identity.h: checks that all ranks execute the same run, with the same settings, files, code and
// sizes.
#ifndef RLHF_HOST_TEAM_IDENTITY_H
#define RLHF_HOST_TEAM_IDENTITY_H

#include "team/team.h"

#include <jansson.h>

// Compare `own` among the ranks. `t` may be NULL. Errors: RLHF_E_INVALID if `own` of a rank differs
// from that of rank 0; the message names the first member that differs (such as
// "settings.batch.size"), with both values. Other errors: those of rlhf__team_gather; RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__team_same(struct rlhf__team *t, const json_t *own, struct rlhf__error *err);

#endif
