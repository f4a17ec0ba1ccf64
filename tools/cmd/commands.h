// commands.h: the commands. Each command has one file, in tools/cmd or in the directory of its area
// (tools/eval). A command's function receives the command line, with argv[0] = the command's name,
// and parses it with flags.h. The function prints its own errors and returns the exit status:
//
// 0        success
// 1        the command failed while running
// 2        bad input
// 128 + n  signal n asked it to end (Ctrl-C: 130)
//
// Training has no subcommand; its command line is in cli.h. If run.stop_on ended the run, training
// exits with status 3. A new command also needs a row in tools/main.c and a usage line in help.c.
#ifndef RLHF_HOST_CMD_COMMANDS_H
#define RLHF_HOST_CMD_COMMANDS_H

#include "base/env.h"
#include "base/error.h"

struct rlhf__run_request; // run/run.h

int rlhf__cmd_run(const struct rlhf__run_request *req); // training: cmd/cli.c

// Returns the exit status of a command that ended with the result `st`. Logs `err`, unless a signal
// ended the command. [main]
int rlhf__cmd_end(const struct rlhf__env *env, rlhf_status st, const struct rlhf__error *err);

// One function for each subcommand.
int rlhf__cmd_eval(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_label(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_pairs(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_plugin(const struct rlhf__env *env, int argc, char **argv); // list | info
int rlhf__cmd_devices(const struct rlhf__env *env, int argc, char **argv);

#endif
