// reference.h: the model that the policy is compared with, and what it says of rows.
#ifndef RLHF_HOST_REFERENCE_H
#define RLHF_HOST_REFERENCE_H

#include "run/run.h"

// Open t->reference when the plan asks for one, whatever the rows are: reference.path, else where
// the policy starts. t->policy is open. Errors: those of rlhf__model_open; RLHF_E_INVALID for
// another vocabulary and, with RLHF_HEAD_KL, for a model of another plugin or width. [main]
rlhf_status rlhf__reference_open(struct rlhf__run *t, struct rlhf__error *err);

// Log-probs of the rows by the reference and, for the full KL, its hidden states, into e; nothing
// when the plan wants none. [step]
rlhf_status rlhf__reference_pass(struct rlhf__run *t, struct rlhf__episodes *e,
                                 struct rlhf__error *err);

#endif
