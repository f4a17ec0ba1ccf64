// resume.h: the config of a resumed run: the stored one, and the few settings that may change.
#ifndef RLHF_HOST_RESUME_H
#define RLHF_HOST_RESUME_H

#include "config/config.h"
#include "config/schema.h"

struct rlhf__plugin;

// Read RUN/config.json over the defaults in c. Refuses --config and --preset, and a run directory
// with a link that leads out of it. [main]
rlhf_status rlhf__resume_load(const struct rlhf__config_request *req, struct rlhf__config *c,
                              struct rlhf__error *err);

// Refuse differences from the stored config (NULL: no such setting was given), except run.phases,
// run.stop_after, run.stop_on, run.threads, compute.backend, compute.gpu, compute.workspace_mib,
// data.max_mib, checkpoint.*, early_stop.* and log.*: any other change would make the rest a
// different run. Rows, prompts, the models of policy.path and reference.path, and the code files in
// rewards' options may have moved: such a path is marked "moved" in c->given, or in the reward's
// origin, and must still have the same content as when the run began (keep/manifest.h). Then
// c->run.dir is the resumed directory. [main]
rlhf_status rlhf__resume_check(const struct rlhf__config_request *req,
                               const struct rlhf__config *stored, struct rlhf__config *c,
                               struct rlhf__error *err);

// Refuse plugins and kernels that the stored config names by a path outside the search directories,
// unless they were named again or req->trust_run is set. [main]
rlhf_status rlhf__resume_trust(const struct rlhf__config_request *req, const struct rlhf__config *c,
                               struct rlhf__error *err);

// Append " --reward PATH", " --set SETTING=VALUE" and so on, as typed in a shell, for everything
// that must be given again to resume a run of this resolved config without --trust-run: code that
// rlhf__resume_trust refuses, options with RLHF_OPT_CODE, and settings that weaken a worker's
// confinement. plugin: of the rewards [c->n_reward]; judge: NULL without one; sink: of the sinks
// [c->n_sink]. [main]
void rlhf__resume_words(const struct rlhf__dirs *dirs, const struct rlhf__config *c,
                        const struct rlhf__plugin *const *plugin, const struct rlhf__plugin *judge,
                        const struct rlhf__plugin *const *sink, struct rlhf__buf *words);

#endif
