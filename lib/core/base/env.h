// env.h: the environment that main() sets up for every command.
#ifndef RLHF_CORE_BASE_ENV_H
#define RLHF_CORE_BASE_ENV_H

#include "base/dirs.h"
#include "base/log.h"

#include <signal.h>

struct rlhf__env {
    const struct rlhf__dirs *dirs;
    struct rlhf__log *log;
    const volatile sig_atomic_t *cancelled; // see base/signals.h; NULL = never
    volatile sig_atomic_t *checkpoint;      // likewise, 1 = a checkpoint is requested; NULL = never
    const char *const *argv;                // the command as typed, up to a NULL; NULL = not known
    // If the setting log.report is on and this pointer is not NULL, rank 0 calls the function after
    // each run that has finished at least one phase. `run` is the run's directory. The function
    // reports its own failures.
    void (*run_ended)(const struct rlhf__env *env, const char *run);
};

#endif
