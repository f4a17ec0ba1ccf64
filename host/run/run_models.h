// run_models.h: run directories that a run's settings name where a model is wanted.
//
// Each is replaced, in the settings too, by the checkpoint that represents it
// (weights/run_checkpoint.h): config.json names the checkpoint, so a resumed run reads the same
// weights, however far the other run has progressed.
#ifndef RLHF_HOST_RUN_MODELS_H
#define RLHF_HOST_RUN_MODELS_H

#include "run/run.h"

// policy.path, policy.adapter.path, reference.path and value.path; before any model is opened.
// Errors: RLHF_E_INVALID (a run without a checkpoint). [main]
rlhf_status rlhf__run_models_settings(struct rlhf__run *r, struct rlhf__error *err);

// Options of rewards and of the judge by which they opened a run's model; these are open. [main]
rlhf_status rlhf__run_models_rewards(struct rlhf__run *r, struct rlhf__error *err);

#endif
