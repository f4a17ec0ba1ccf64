// commands.h: the subcommands. Each is one file, cmd/<name>.c, and returns the exit status: 0, 2
// for bad input, 1 for run-time failures, 128 + n after signal n asked to end (Ctrl-C: 130). They
// print their own error.
#ifndef RLHF_HOST_COMMANDS_H
#define RLHF_HOST_COMMANDS_H

#include "base/dirs.h"
#include "base/log.h"
#include "config/config.h"
#include "plugin/load.h"

#include <signal.h>

// What main() set up for every command.
struct rlhf__env {
    const struct rlhf__dirs *dirs;
    struct rlhf__log *log;
    const volatile sig_atomic_t *cancelled; // see base/signals.h; NULL = never
    volatile sig_atomic_t *checkpoint;      // the same: one is wanted; NULL = never
};

struct rlhf__run_dir;

// A training run, fully validated: config resolved, plugins open.
struct rlhf__run_request {
    const struct rlhf__env *env;
    const struct rlhf__config *config;
    struct rlhf__plugins *plugins; // open models through it
    const struct rlhf__plugin *algo;
    const struct rlhf__plugin **rewards; // [config->n_reward]
    const struct rlhf__plugin *judge;    // NULL = none
    const char *resume;                  // run directory to go on with, NULL = a new run
    struct rlhf__run_dir *dir;           // train/run_dir.h
    int32_t dry_run;                     // 1: set everything up, run no phase, write nothing
    int32_t allow_changed_plugins;       // 1: resume with other code than made the run
};

int rlhf__cmd_run(const struct rlhf__run_request *req); // train; cmd/run.c

// The exit status of a command that ended with st; logs err unless a signal asked for the end.
// [main]
int rlhf__cmd_end(const struct rlhf__env *env, rlhf_status st, const struct rlhf__error *err);

// The rest take argv with argv[0] = the command's name and parse it with flags.h.
int rlhf__cmd_generate(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_eval(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_label(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_pairs(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_plugin(const struct rlhf__env *env, int argc, char **argv); // list | info

#endif
