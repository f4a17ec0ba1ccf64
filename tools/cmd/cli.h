// cli.h: the command line of a training run, which has flags but no subcommand.
#ifndef RLHF_HOST_CMD_CLI_H
#define RLHF_HOST_CMD_CLI_H

#include "cmd/commands.h"

// Parse the flags, combine and resolve the config, then print the config or run it. Returns the
// exit status as in commands.h. [main]
int rlhf__cli_train(const struct rlhf__env *env, int argc, char **argv);

// Print the flags of a training run, one line each. [main]
void rlhf__cli_train_help(FILE *out);

#endif
