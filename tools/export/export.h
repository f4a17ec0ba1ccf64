// export.h: `rlhf-host export`.
#ifndef RLHF_TOOLS_EXPORT_EXPORT_H
#define RLHF_TOOLS_EXPORT_EXPORT_H

#include "base/env.h"

// The command; exit status as in cmd/commands.h. [main]
int rlhf__cmd_export(const struct rlhf__env *env, int argc, char **argv);

#endif
