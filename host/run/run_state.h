// run_state.h: state/run.json of a checkpoint: the counters of a run.
#ifndef RLHF_HOST_RUN_RUN_STATE_H
#define RLHF_HOST_RUN_RUN_STATE_H

#include "run/run.h"

// Returns the run's current state (new reference, NULL = out of memory). The state does not name
// the best checkpoint yet; saving.c adds it just before the state is written. [main]
json_t *rlhf__run_state_json(const struct rlhf__run *r);

// Set the run's state from the checkpoint in `dir`. Errors: RLHF_E_IO; RLHF_E_INVALID, with the
// file's name. [main]
rlhf_status rlhf__run_state_load(struct rlhf__run *r, const char *dir, struct rlhf__error *err);

#endif
