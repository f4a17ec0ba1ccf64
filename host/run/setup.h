// setup.h: what rlhf__run_create is made of.
#ifndef RLHF_HOST_SETUP_H
#define RLHF_HOST_SETUP_H

#include "run/setup_models.h"

// Everything that depends on the source of rows that is planned: the feed, the policy and what else
// is needed to use its rows. [main]
rlhf_status rlhf__setup_rows(struct rlhf__run *r, struct rlhf__error *err);

// What is made of rows and models, which are loaded: the feed's own, what trains a reward model.
// [main]
rlhf_status rlhf__setup_ready(struct rlhf__run *r, struct rlhf__error *err);

// List in r->inputs what a resume opens again: the rows, the reference unless the checkpoint has
// one, and what rewards and judge opened, but for a reward model that the run trains. All of it is
// open. [main]
rlhf_status rlhf__setup_inputs(struct rlhf__run *r, struct rlhf__error *err);

#endif
