// commands.h: the subcommands. Each is one file, cmd/<name>.c, and returns the exit status: 0, 2
// for bad input, 1 for run-time failures, 128 + n after signal n asked it to end (Ctrl-C: 130).
// They print their own errors.
#ifndef RLHF_HOST_COMMANDS_H
#define RLHF_HOST_COMMANDS_H

#include "base/env.h"
#include "base/error.h"

struct rlhf__run_request; // run/run.h

int rlhf__cmd_run(const struct rlhf__run_request *req); // train; cmd/cli.c

// The exit status of a command that ended with st; logs err unless a signal ended it. [main]
int rlhf__cmd_end(const struct rlhf__env *env, rlhf_status st, const struct rlhf__error *err);

// The others take argv with argv[0] = the command's name and parse it with flags.h.
int rlhf__cmd_generate(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_eval(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_label(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_pairs(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_plugin(const struct rlhf__env *env, int argc, char **argv); // list | info
int rlhf__cmd_devices(const struct rlhf__env *env, int argc, char **argv);

#endif
