// run_state.h: state/run.json of a checkpoint: counters, cursors, early stopping, the best so far.
#ifndef RLHF_HOST_RUN_STATE_H
#define RLHF_HOST_RUN_STATE_H

#include "base/error.h"

#include <jansson.h>

struct rlhf__run;

// The run's current state (new reference, NULL = out of memory) without the best checkpoint, which
// is added when the state is written. [main]
json_t *rlhf__run_state(const struct rlhf__run *r);
rlhf_status rlhf__run_state_add_best(const struct rlhf__run *r, json_t *state,
                                     struct rlhf__error *err);

// Restore the run from state/run.json in the checkpoint `dir`. Errors: RLHF_E_INVALID naming file
// and field, or another algorithm. [main]
rlhf_status rlhf__run_state_load(struct rlhf__run *r, const char *dir, struct rlhf__error *err);

#endif
