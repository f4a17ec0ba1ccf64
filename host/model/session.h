// session.h: what a command must set up before it can open a model: compute, plugins, services.
// The services that run models are separate (service/text_services.h).
//
// A training run has its own set-up (run/run.h), because its plugins come from the config.
#ifndef RLHF_HOST_MODEL_SESSION_H
#define RLHF_HOST_MODEL_SESSION_H

#include "base/dirs.h"
#include "base/file.h"
#include "config/schema.h"
#include "model/compute.h"
#include "model/model.h"
#include "plugin/row_service.h"
#include "worker/programs.h"

#include <signal.h>

struct rlhf__session {
    struct rlhf__plugins *plugins;
    struct rlhf__compute *compute;
    struct rlhf__services services;
    struct rlhf__model_env models;
    struct rlhf__programs programs; // programs that rewards run
    rlhf_limits limits;             // set and offered when rewards are opened (sample/rewards.h)
};

// Set `out` to the directory of a shipped model: <share>/models/<name>. [any]
void rlhf__default_model(const struct rlhf__dirs *dirs, const char *name, char out[RLHF__PATH_CAP]);

// Convert "auto", "f32" or "bf16" to enum rlhf__dtype_choice. `flag` is named in the error. [any]
rlhf_status rlhf__dtype_choice(const char *text, const char *flag, int32_t *out,
                               struct rlhf__error *err);

// Returns the compute spec for these settings. `log` gets the backend's log lines. [any]
struct rlhf__compute_spec rlhf__session_compute(const struct rlhf__dirs *dirs,
                                                const struct rlhf__compute_config *compute,
                                                int64_t threads, struct rlhf__log *log);

// Open a backend and its services. `plugins` is borrowed. Do not move *s. Release *s with
// rlhf__session_finish, even after a failure. [main]
rlhf_status rlhf__session_init(struct rlhf__session *s, const struct rlhf__dirs *dirs,
                               struct rlhf__log *log, const volatile sig_atomic_t *cancelled,
                               struct rlhf__plugins *plugins,
                               const struct rlhf__compute_config *compute,
                               const struct rlhf__run_config *run, struct rlhf__error *err);
// Close all models of the session first. Accepts a zeroed struct. [main]
void rlhf__session_finish(struct rlhf__session *s);

#endif
