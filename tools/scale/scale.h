// scale.h: `rlhf-host scale`: forecasts what a planned run costs on a number of ranks.
#ifndef RLHF_TOOLS_SCALE_SCALE_H
#define RLHF_TOOLS_SCALE_SCALE_H

#include "base/env.h"

// The command; exit status as in cmd/commands.h. [main]
int rlhf__cmd_scale(const struct rlhf__env *env, int argc, char **argv);

#endif
