// plugin.h: the parts of `rlhf-host plugin`.
#ifndef RLHF_HOST_CMD_PLUGIN_H
#define RLHF_HOST_CMD_PLUGIN_H

#include "cmd/commands.h"

int rlhf__plugin_list(const struct rlhf__env *env, int argc, char **argv);
int rlhf__plugin_info(const struct rlhf__env *env, int argc, char **argv);
int rlhf__plugin_new(const struct rlhf__env *env, int argc, char **argv);

// The flags of `plugin new`, one line each. [main]
void rlhf__plugin_new_help(FILE *out);

#endif
