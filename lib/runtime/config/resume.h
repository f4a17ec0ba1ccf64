// resume.h: the config of a resumed run. It is the stored config, except for the few settings that
// may change.
#ifndef RLHF_HOST_CONFIG_RESUME_H
#define RLHF_HOST_CONFIG_RESUME_H

#include "config/config_request.h"
#include "config/schema.h"

struct rlhf__plugin;

// Read RUN/config.json into `c`, where the stored settings override the defaults. Rejects --config
// and --preset, and a run directory that contains a link to the outside. [main]
rlhf_status rlhf__resume_load(const struct rlhf__config_request *req, struct rlhf__config *c,
                              struct rlhf__error *err);

// Reject settings that differ from the stored config and would make the rest of the run a different
// run. If `stored` is NULL, nothing is compared. Sets c->run.dir to the resumed directory.
// - These may change: run.phases, run.stop_after, run.stop_on, run.threads, compute.backend,
//   compute.gpu, compute.workspace_mib, data.max_mib, checkpoint.*, early_stop.*, log.*, and others
//   listed in resume.c.
// - These may have moved: rows, prompts, prompts.template, the models of policy.path,
//   reference.path and models.*, and code files in the options of rewards, the judge and the
//   environment. A new path is marked "moved" in c->given or in the plugin's origin. Its content
//   must be the same as when the run began (keep/manifest.h). [main]
rlhf_status rlhf__resume_check(const struct rlhf__config_request *req,
                               const struct rlhf__config *stored, struct rlhf__config *c,
                               struct rlhf__error *err);

// Reject plugins and kernels that the stored config names by a path outside the search directories,
// unless they were named again or req->trust_run is set. [main]
rlhf_status rlhf__resume_trust(const struct rlhf__config_request *req, const struct rlhf__config *c,
                               struct rlhf__error *err);

// The opened plugins of a config. A plugin that is not opened or not used is NULL.
struct rlhf__resume_code {
    const struct rlhf__plugin *const *reward; // [n_reward] of the config
    const struct rlhf__plugin *judge, *environment;
    const struct rlhf__plugin *const *sink; // [n_sink] of the config
};

// Append the flags that must be given again to resume a run of the config `c` without --trust-run,
// quoted for a shell: " --reward PATH", " --set SETTING=VALUE", ... The flags are for code that
// rlhf__resume_trust rejects, for access to the network, for options with RLHF_OPT_TRUSTED, and for
// plugins that run outside a worker. The flags of the last two kinds are appended only if the
// plugin is open and its config is resolved. Flags that `req` already has are left out. [main]
void rlhf__resume_words(const struct rlhf__config_request *req, const struct rlhf__config *c,
                        const struct rlhf__resume_code *code, struct rlhf__buf *words);

#endif
