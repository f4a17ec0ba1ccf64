// resume.h: the config of a run that goes on: the stored one, and the few things that may change.
#ifndef RLHF_HOST_RESUME_H
#define RLHF_HOST_RESUME_H

#include "config/request.h"
#include "config/schema.h"

// Read RUN/config.json over the built-in values in c. --config and --preset are refused, and a run
// directory in which a link leads out of it. [main]
rlhf_status rlhf__resume_load(const struct rlhf__config_request *req, struct rlhf__config *c,
                              struct rlhf__error *err);

// Refuse what differs from the stored config (NULL: nothing was given that could), except
// run.phases, run.stop_after, run.threads, compute.backend, compute.gpu, compute.workspace_mib,
// data.max_mib, checkpoint.*, early_stop.* and log.*: anything else would make the rest of the run
// a different run. Rows, prompts, and the models of policy.path and reference.path may lie
// elsewhere by now: such a path is marked "moved" in c->given, and what is there has to be what the
// run began with (keep/inputs.h). Then c->run.dir is the resumed directory. [main]
rlhf_status rlhf__resume_check(const struct rlhf__config_request *req,
                               const struct rlhf__config *stored, struct rlhf__config *c,
                               struct rlhf__error *err);

// Refuse plugins and kernels that the stored config names by a path outside the places where names
// are looked up, unless they were named again or req->trust_run is set. [main]
rlhf_status rlhf__resume_trust(const struct rlhf__config_request *req, const struct rlhf__config *c,
                               struct rlhf__error *err);

#endif
