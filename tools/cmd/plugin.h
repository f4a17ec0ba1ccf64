// plugin.h: the parts of `rlhf-host plugin`.
#ifndef RLHF_HOST_CMD_PLUGIN_H
#define RLHF_HOST_CMD_PLUGIN_H

#include "cmd/commands.h"
#include "plugin/load.h"

int rlhf__plugin_list(const struct rlhf__env *env, int argc, char **argv);
int rlhf__plugin_info(const struct rlhf__env *env, int argc, char **argv);
int rlhf__plugin_new(const struct rlhf__env *env, int argc, char **argv);

// A file that rlhf__plugin_file_ask opened in its child process.
struct rlhf__plugin_file {
    struct rlhf__plugins *plugins;      // owner of `plugin`
    const struct rlhf__plugin **plugin; // [n]
    size_t n;
    int32_t other; // 1: the file is not a plugin of any version; this counts as a failure
};

// Open the file at `path`, which is absolute. If with_sum is 1, set the sha256 of its plugins. Even
// after a failure, call finish on *out. Errors: those of rlhf__plugin_open_file. [main, in the
// child]
rlhf_status rlhf__plugin_file_open(const struct rlhf__dirs *dirs, const char *path, int with_sum,
                                   struct rlhf__plugin_file *out, struct rlhf__error *err);
void rlhf__plugin_file_finish(struct rlhf__plugin_file *); // accepts a zeroed one [main]

// Like rlhf__child_ask, but the child is confined as a worker is (supervise/confine.h), because
// foreign code may run in it. Messages begin with `what`. [main]
rlhf_status rlhf__plugin_file_ask(const char *what,
                                  rlhf_status (*work)(void *arg, struct rlhf__buf *out), void *arg,
                                  struct rlhf__buf *out, struct rlhf__error *err);

// Print the flags of `plugin new`, one line each. [main]
void rlhf__plugin_new_help(FILE *out);

#endif
