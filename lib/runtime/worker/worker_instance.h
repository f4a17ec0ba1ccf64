// worker_instance.h: one instance of a stand-in (stand_in.h): its workers and the requests to them.
#ifndef RLHF_LIB_RUNTIME_WORKER_WORKER_INSTANCE_H
#define RLHF_LIB_RUNTIME_WORKER_WORKER_INSTANCE_H

#include "plugin/load.h"
#include "wire/describe.h"
#include "worker/ask.h"
#include "worker/worker_rules.h"

// A plugin file as its worker described it, and how to start workers for it.
struct rlhf__stand_in {
    struct rlhf__outside base; // first member: load.h passes it back
    struct rlhf__description what;
    rlhf_reward_ops ops;
    rlhf_environment_ops environment;
    rlhf_sink_ops sink;
    int32_t kind; // RLHF_KIND_REWARD, _ENVIRONMENT or _SINK: which ops are used
    struct rlhf__worker_rules rules;
    const char *program;     // executable of the workers, borrowed
    char *path, *id, *asker; // id NULL: the only plugin of its kind in the file
    char sha256[65];
    char *confined; // the confinement in force, as text
    // a worker that has opened the file but has no instance yet; NULL = none
    struct rlhf__worker *spare;
    struct rlhf__strings said; // texts that why_unused() returned
};

// Start a worker, which may write in the directory `writes` (NULL: nowhere), and let it open the
// file. If `what` is not NULL, *what receives the description.
// Errors: those of opening the file; RLHF_E_INVALID if the worker fails. [main]
rlhf_status rlhf__stand_in_worker(struct rlhf__stand_in *s, const char *writes,
                                  struct rlhf__worker **out, struct rlhf__description *what,
                                  struct rlhf__error *err);

// The functions of a stand-in's descriptor and ops, except score() (worker_scoring.h) and the
// functions for episodes (episode_calls.h). [as rlhf_plugin says]
rlhf_status rlhf__stand_in_create(const rlhf_host *api, const void *config, void **self);
void rlhf__stand_in_destroy(void *self);
rlhf_status rlhf__stand_in_save(void *self, const rlhf_ostream *out);
rlhf_status rlhf__stand_in_load(void *self, const rlhf_istream *in, uint32_t state_version);
rlhf_status rlhf__stand_in_check_row(void *self, const rlhf_row_in *);

// See struct rlhf__outside. [as there]
int64_t rlhf__stand_in_ended_at(void *self);

// ---- for worker_scoring.c, episode_calls.c and sink_calls.c ----

#define RLHF__POOL_LIMIT "rewards.timeout_s"
enum { RLHF__POOL_WHY = 2044 }; // most bytes of a reason

// A worker of an instance.
struct rlhf__pool_worker {
    struct rlhf__worker *worker; // NULL: to be started
    struct rlhf__ear ear;
};

struct rlhf__pool {
    struct rlhf__stand_in *s;
    const rlhf_host *api;
    struct rlhf__buf options;       // as JSON
    struct rlhf__buf confined;      // the confinement that was last logged
    struct rlhf__pool_worker *hand; // [n]
    uint32_t n, state_version;      // state_version: of `state`
    struct rlhf__buf state;         // after the last successful batch, or as loaded
    int32_t has_state, lost_state;  // lost_state: could not be saved after the last batch
    int64_t ended_at;               // see struct rlhf__outside
    char *writes;                   // of a sink: the directory in which it may write; NULL: none
    // of an environment:
    uint64_t starts;         // of workers
    char *tools;             // as its first worker declared them; NULL: none
    uint32_t places;         // number of places that the present worker uses or has used
    struct rlhf__buf vacant; // u32 places that can be used again
    struct rlhf__buf closed; // u32 places of states that the worker has to close
};

// Fail the call for the reason `why`. Returns `code`. [main]
rlhf_status rlhf__pool_fail(const struct rlhf__pool *t, rlhf_status code, const char *why);

// Record that one worker's part of a call failed. `first` is 1 if no other part has failed yet;
// otherwise the reason is only logged. [main]
rlhf_status rlhf__pool_fail_part(const struct rlhf__pool *t, rlhf_status code, const char *why,
                                 int first);

// Returns the plugin's status from the answer to a request. If the status is a failure, reports it
// as rlhf__pool_fail_part does. If the worker gave a reason, the report has this reason, otherwise
// the plugin's own message. [main]
rlhf_status rlhf__pool_said(const struct rlhf__pool *t, const struct rlhf__asked *a, int first);

// Send a request to a worker, which must be running. If all workers of an instance get the same
// request, only the metrics of the first one are reported. Errors are reported to the host. [main]
rlhf_status rlhf__pool_ask(const struct rlhf__pool *t, struct rlhf__pool_worker *h,
                           struct rlhf__asked *a);

// End the worker after it has destroyed its instance. [main]
void rlhf__pool_stop(const struct rlhf__pool *t, struct rlhf__pool_worker *h);

// Start the worker if it is not running or has failed. [main]
rlhf_status rlhf__pool_ready(struct rlhf__pool *t, struct rlhf__pool_worker *h);

// Keep the state after a successful batch; a restarted worker continues from it. [main]
rlhf_status rlhf__pool_keep_state(struct rlhf__pool *t, struct rlhf__wire *result);

#endif
