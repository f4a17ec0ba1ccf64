// recompute.h: `rlhf-host recompute`.
#ifndef RLHF_TOOLS_RECOMPUTE_RECOMPUTE_H
#define RLHF_TOOLS_RECOMPUTE_RECOMPUTE_H

#include "base/env.h"

// The command; exit status as in cmd/commands.h, and also 1 if a phase differs. [main]
int rlhf__cmd_recompute(const struct rlhf__env *env, int argc, char **argv);

#endif
