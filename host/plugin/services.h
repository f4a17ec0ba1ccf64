// services.h: instances of plugins and the rlhf_host table that each of them gets.
#ifndef RLHF_HOST_PLUGIN_SERVICES_H
#define RLHF_HOST_PLUGIN_SERVICES_H

#include "base/log.h"
#include "base/running.h"
#include "plugin/load.h"
#include "plugin/note.h"

#include <signal.h>

// A table that host->service(id) returns; both borrowed.
struct rlhf__service {
    const char *id;
    const void *table;
};

enum { RLHF__MAX_SERVICES = 16 };

// Shared by all instances of a run. The run fills it; it outlives the instances. It may be copied
// for instances whose metrics go elsewhere.
struct rlhf__services {
    struct rlhf__log *log;                                     // NULL = silent
    void (*metric)(void *ctx, const char *name, double value); // NULL = ignored
    void *metric_ctx;
    const volatile sig_atomic_t *cancelled; // NULL = never
    uint64_t seed;
    int64_t phase; // set by the loop, shown in messages; < 0 = outside phases
    // A service's last failure, shared by copies. It is the message for a plugin that passes a
    // service's status on without a message. NULL = not recorded.
    struct rlhf__note *failure;
    struct rlhf__service offered[RLHF__MAX_SERVICES]; // use rlhf__services_offer
    size_t n_offered;
};

// Offer a table under an id. Earlier copies do not have it. Errors: RLHF_E_INTERNAL if the id is
// taken, or if there are RLHF__MAX_SERVICES services already. [main]
rlhf_status rlhf__services_offer(struct rlhf__services *, const char *id, const void *table,
                                 struct rlhf__error *err);

// The table of that id, or NULL. [any]
const void *rlhf__services_find(const struct rlhf__services *, const char *id);

// For a service whose call fails: record the message for the plugin that called. Returns err->code.
// [any]
rlhf_status rlhf__services_failed(const struct rlhf__services *, const struct rlhf__error *err);

struct rlhf__instance {
    const struct rlhf__plugin *plugin;
    void *self;            // first argument of the ops
    void *config;          // the plugin's filled config struct
    const rlhf_host *host; // NULL: not made by rlhf__instance_create; its calls must not fail
};

// Fill a config struct from options (may be NULL; lenient per origin, see options.h) and call
// create. owner is the instance's role in the run, which its metrics' names begin with:
// "rewards/<name>", "judge", "models/<role>", "" for the algorithm. [main]
rlhf_status rlhf__instance_create(const struct rlhf__plugin *plugin,
                                  struct rlhf__services *services, const char *owner,
                                  const json_t *options, const struct rlhf__origin *from,
                                  struct rlhf__instance **out, struct rlhf__error *err);
void rlhf__instance_destroy(struct rlhf__instance *i); // NULL allowed [main]

// 1 if the plugin has asked the host for this service and the host offers it. [any]
int rlhf__instance_asked(const struct rlhf__instance *i, const char *id);

// From now on send metrics that the plugin reports with host->metric to `metric`, under the run's
// name for them; NULL: to the run again. [step]
void rlhf__instance_metrics_to(const struct rlhf__instance *i,
                               void (*metric)(void *ctx, const char *name, double value),
                               void *ctx);

// Report to the run a metric that `metric` held back. It is not sent to `metric`, which may call
// this. [step]
void rlhf__instance_report(const struct rlhf__instance *i, const char *name, double value);

// The instance that owns a table, for plugins of the host itself (worker/). [any]
const struct rlhf__instance *rlhf__instance_behind(const rlhf_host *);
struct rlhf__services *rlhf__services_behind(const rlhf_host *);
const char *rlhf__owner_behind(const rlhf_host *); // owner of that instance

// host->rng of an instance of the plugin `id`. [any]
void rlhf__instance_rng(const char *id, const char *owner, uint64_t seed, const char *stream,
                        rlhf_rng *out);

// A call into a plugin: begin, call, end. Between begin and end the call is recorded
// (base/running.h).
struct rlhf__call {
    const struct rlhf__instance *instance;
    const char *function; // "score()"
    struct rlhf__running before;
    uint64_t said, service_said; // marks of failures of the plugin and the services
};
struct rlhf__call rlhf__call_begin(const struct rlhf__instance *i, const char *function); // [any]

// `status` is the plugin's return value. A failure becomes err: "reward org.x.period, score(),
// phase 12: <why>". The reason is the message of the plugin's host->fail during the call, otherwise
// that of a service which failed with this status during the call, otherwise the status' text.
// Returns the status, unknown ones as RLHF_E_INTERNAL. Ends the process if it is a child that the
// plugin forked. [any]
rlhf_status rlhf__call_end(const struct rlhf__call *call, rlhf_status status,
                           struct rlhf__error *err);

// "it returned 7, which is not a valid status", for a positive one, into out[cap]; returns out.
// [any]
const char *rlhf__no_status(rlhf_status status, char *out, size_t cap);

// Append the instance's state to out: id, state_version, length, bytes, CRC. Appends nothing for
// plugins without state. [main]
rlhf_status rlhf__instance_save(const struct rlhf__instance *i, struct rlhf__buf *out,
                                struct rlhf__error *err);

// Restore what rlhf__instance_save wrote; for a plugin without state n must be 0. Errors:
// RLHF_E_INVALID for another id, a damaged block or a refused version. [main]
rlhf_status rlhf__instance_load(const struct rlhf__instance *i, const void *bytes, size_t n,
                                struct rlhf__error *err);

#endif
