// cli.h: the command line of a training run, which has flags but no subcommand.
#ifndef RLHF_HOST_CMD_CLI_H
#define RLHF_HOST_CMD_CLI_H

#include "cmd/commands.h"

// Parse the flags, combine and resolve the config, then print the config or run it. Returns the
// exit status as in commands.h. [main]
int rlhf__cli_train(const struct rlhf__env *env, int argc, char **argv);

// What a command does with a run that was described by a training run's flags. `run` gets the
// request, valid only during the call, and returns the exit status.
struct rlhf__cli_use {
    int (*run)(const struct rlhf__run_request *req, void *self);
    void *self;
    const char *command; // its name: it rejects --resume and --dry-run; NULL: training
};

// rlhf__cli_train, but call use->run in place of running it. [main]
int rlhf__cli_with_run(const struct rlhf__env *env, int argc, char **argv,
                       const struct rlhf__cli_use *use);

// Print the flags of a training run, one line each. [main]
void rlhf__cli_train_help(FILE *out);

#endif
