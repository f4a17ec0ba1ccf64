// runs.h: `rlhf-host runs list | compare | show | prune`, for an overview of the runs in a
// directory, and `rlhf-host samples`, for the texts of one.
#ifndef RLHF_TOOLS_RUNS_RUNS_H
#define RLHF_TOOLS_RUNS_RUNS_H

#include "base/env.h"

// The commands; exit status as in cmd/commands.h. [main]
int rlhf__cmd_runs(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_samples(const struct rlhf__env *env, int argc, char **argv);

// The parts of `runs`, one file each: runs/<name>.c. argv[0] is "runs <name>", for messages. [main]
int rlhf__runs_list(const struct rlhf__env *env, int argc, char **argv);
int rlhf__runs_compare(const struct rlhf__env *env, int argc, char **argv);
int rlhf__runs_show(const struct rlhf__env *env, int argc, char **argv);
int rlhf__runs_prune(const struct rlhf__env *env, int argc, char **argv);

#endif
