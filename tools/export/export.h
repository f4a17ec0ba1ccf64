// export.h: `rlhf-host export`.
#ifndef RLHF_TOOLS_EXPORT_EXPORT_H
#define RLHF_TOOLS_EXPORT_EXPORT_H

#include "base/env.h"

// As the commands in cmd/commands.h. [main]
int rlhf__cmd_export(const struct rlhf__env *env, int argc, char **argv);

#endif
