// help_trl.h: `rlhf-host help trl [FIELD]`: what becomes of the fields of TRL's configurations.
#ifndef RLHF_TOOLS_CMD_HELP_TRL_H
#define RLHF_TOOLS_CMD_HELP_TRL_H

#include "base/env.h"

// Print all fields and words of TRL, one per line, or everything about one of them. Returns the
// exit status: 2 for an unknown field, after an error that suggests the nearest one. [main]
int rlhf__help_trl(const struct rlhf__env *env, const char *field);

#endif
