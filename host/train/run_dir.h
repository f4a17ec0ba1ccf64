// run_dir.h: the directory a run leaves behind: its name, and what is written at its start.
#ifndef RLHF_HOST_RUN_DIR_H
#define RLHF_HOST_RUN_DIR_H

#include "train/trainer.h"

// Choose the run directory before anything is loaded: run.dir, else runs/<algo>-<date>-<n>, the
// first n that is free. An existing one is refused (RLHF_E_INVALID) with the way to resume it.
// [main]
rlhf_status rlhf__run_dir_choose(const struct rlhf__run_request *req, char out[4096],
                                 struct rlhf__error *err);

// Make t->dir and write config.json (the resolved config). [main]
rlhf_status rlhf__run_dir_make(const struct rlhf__trainer *t, struct rlhf__error *err);

#endif
