// cli.h: the command line of a training run, which takes flags only, without a subcommand.
#ifndef RLHF_HOST_CMD_CLI_H
#define RLHF_HOST_CMD_CLI_H

#include "cmd/commands.h"

// Parse, layer, resolve, then print the config, or run. Exit status as in commands.h. [main]
int rlhf__cli_train(const struct rlhf__env *env, int argc, char **argv);

// The flags of a training run, one line each. [main]
void rlhf__cli_train_help(FILE *out);

#endif
