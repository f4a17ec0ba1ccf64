// cli.h: the command line of a training run, which has flags but no subcommand.
#ifndef RLHF_HOST_CMD_CLI_H
#define RLHF_HOST_CMD_CLI_H

#include "cmd/commands.h"

// Parse the flags, combine and resolve the config, then print the config or run it. Returns the
// exit status as in commands.h. [main]
int rlhf__cli_train(const struct rlhf__env *env, int argc, char **argv);

// A command that accepts the flags of a training run, but calls `run` instead of training. `run`
// receives the request that the flags describe, and returns the exit status. The request is valid
// only during the call.
struct rlhf__cli_use {
    int (*run)(const struct rlhf__run_request *req, void *self);
    void *self;
    const char *command; // name of a command, which rejects --resume and --dry-run; NULL: training
};

// Like rlhf__cli_train, but calls use->run instead of training. [main]
int rlhf__cli_with_run(const struct rlhf__env *env, int argc, char **argv,
                       const struct rlhf__cli_use *use);

// Print the flags of a training run, one line each. [main]
void rlhf__cli_train_help(FILE *out);

#endif
