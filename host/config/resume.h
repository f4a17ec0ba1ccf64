// resume.h: the config of a run that goes on: the stored one, and the few things that may change.
#ifndef RLHF_HOST_RESUME_H
#define RLHF_HOST_RESUME_H

#include "config/request.h"
#include "config/schema.h"

struct rlhf__plugin;

// Read RUN/config.json over the built-in values in c. --config and --preset are refused, and a run
// directory in which a link leads out of it. [main]
rlhf_status rlhf__resume_load(const struct rlhf__config_request *req, struct rlhf__config *c,
                              struct rlhf__error *err);

// Refuse what differs from the stored config (NULL: nothing was given that could), except
// run.phases, run.stop_after, run.stop_on, run.threads, compute.backend, compute.gpu,
// compute.workspace_mib, data.max_mib, checkpoint.*, early_stop.* and log.*: anything else would
// make the rest of the run a different run. Rows, prompts, the models of policy.path and
// reference.path, and the code files that rewards' options name may have moved: such a path is
// marked "moved" in c->given, or in the reward's origin, and must still hold what the run began
// with (keep/inputs.h). Then c->run.dir is the resumed directory. [main]
rlhf_status rlhf__resume_check(const struct rlhf__config_request *req,
                               const struct rlhf__config *stored, struct rlhf__config *c,
                               struct rlhf__error *err);

// Refuse plugins and kernels that the stored config names by a path outside the places where names
// are looked up, unless they were named again or req->trust_run is set. [main]
rlhf_status rlhf__resume_trust(const struct rlhf__config_request *req, const struct rlhf__config *c,
                               struct rlhf__error *err);

// Append " --reward PATH", " --set SETTING=VALUE" and so on, as typed in a shell, for all that must
// be given again to resume a run of this resolved config without --trust-run: what concerns
// rlhf__resume_trust, options with RLHF_OPT_CODE, and settings that weaken a worker's confinement.
// plugin: of the rewards [c->n_reward]; judge: NULL without one. [main]
void rlhf__resume_words(const struct rlhf__dirs *dirs, const struct rlhf__config *c,
                        const struct rlhf__plugin *const *plugin, const struct rlhf__plugin *judge,
                        struct rlhf__buf *words);

#endif
