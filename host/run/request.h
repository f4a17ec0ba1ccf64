// request.h: a training run that is asked for, fully validated: config resolved, plugins open.
#ifndef RLHF_HOST_REQUEST_H
#define RLHF_HOST_REQUEST_H

#include "base/env.h"
#include "config/config.h"
#include "plugin/load.h"

struct rlhf__room_need;
struct rlhf__run_dir;

struct rlhf__run_request {
    const struct rlhf__env *env;
    struct rlhf__config *config;   // setting up writes the backend that "auto" found into it
    struct rlhf__plugins *plugins; // open models through it
    const struct rlhf__plugin *algo;
    const struct rlhf__plugin **rewards; // [config->n_reward]
    const struct rlhf__plugin *judge;    // NULL = none
    const char *resume;                  // run directory to go on with, NULL = a new run
    struct rlhf__run_dir *dir;           // keep/run_dir.h
    int32_t dry_run;                     // 1: set everything up, run no phase, write nothing
    int32_t allow_changed_plugins;       // 1: resume with other code than made the run
    int32_t allow_changed_inputs;        // 1: resume with other rows and frozen models
    int32_t reserved;
    struct rlhf__room_need *need; // filled with the memory that the run takes; NULL = not wanted
};

#endif
