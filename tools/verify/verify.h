// verify.h: `rlhf-host verify`.
#ifndef RLHF_TOOLS_VERIFY_VERIFY_H
#define RLHF_TOOLS_VERIFY_VERIFY_H

#include "base/env.h"

// The command; exit status as in cmd/commands.h, and also 1 if something differs. [main]
int rlhf__cmd_verify(const struct rlhf__env *env, int argc, char **argv);

#endif
