// inspect.h: `rlhf-host inspect`.
#ifndef RLHF_TOOLS_INSPECT_INSPECT_H
#define RLHF_TOOLS_INSPECT_INSPECT_H

#include "base/env.h"

// The command; exit status as in cmd/commands.h. [main]
int rlhf__cmd_inspect(const struct rlhf__env *env, int argc, char **argv);

#endif
