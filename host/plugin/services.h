// services.h: instances of plugins and the rlhf_host table each of them gets.
#ifndef RLHF_HOST_PLUGIN_SERVICES_H
#define RLHF_HOST_PLUGIN_SERVICES_H

#include "base/log.h"
#include "base/running.h"
#include "plugin/load.h"

#include <signal.h>

// What all instances of a run share. Filled by the run; outlives the instances.
struct rlhf__services {
    struct rlhf__log *log;                                     // NULL = silent
    void (*metric)(void *ctx, const char *name, double value); // NULL = dropped
    void *metric_ctx;
    const void *(*service)(void *ctx, const char *id); // NULL = none
    void *service_ctx;
    // What a service last failed with ("" = nothing), forgotten by the call: the message of a
    // plugin that passes a service's status on without words of its own. NULL = none. [main] or
    // [step]
    void (*service_failure)(void *ctx, char *text, size_t cap);
    const volatile sig_atomic_t *cancelled; // NULL = never
    uint64_t seed;
    int64_t phase; // set by the loop, shown in messages; < 0 = not in a phase
};

struct rlhf__instance {
    const struct rlhf__plugin *plugin;
    void *self;   // first argument of the ops
    void *config; // the plugin's filled config struct
    const rlhf_host *host;
};

// Fill a config struct from options (may be NULL; lenient per origin, see options.h) and call
// create. [main]
rlhf_status rlhf__instance_create(const struct rlhf__plugin *plugin,
                                  struct rlhf__services *services, const json_t *options,
                                  const struct rlhf__origin *from, struct rlhf__instance **out,
                                  struct rlhf__error *err);
void rlhf__instance_destroy(struct rlhf__instance *i); // NULL allowed [main]

// Turn a negative status of `function` ("score()") into err: "reward org.x.period, score(), phase
// 12: <what the plugin said with host->fail on this thread, else the status' text>". Returns the
// status, unknown ones as RLHF_E_INTERNAL. [any]
rlhf_status rlhf__plugin_call_failed(const struct rlhf__instance *i, const char *function,
                                     rlhf_status status, struct rlhf__error *err);

// A call into a plugin: begin, call, end. Between the two the call is on record (base/running.h).
struct rlhf__call {
    const struct rlhf__instance *instance;
    const char *function;
    struct rlhf__running before;
};
struct rlhf__call rlhf__call_begin(const struct rlhf__instance *i, const char *function); // [any]

// `status` is what the plugin returned: RLHF_OK, or what rlhf__plugin_call_failed makes of it. Ends
// the process when it is a child that the plugin forked. [any]
rlhf_status rlhf__call_end(const struct rlhf__call *call, rlhf_status status,
                           struct rlhf__error *err);

// Append the instance's state to out: id, state_version, length, bytes, CRC. Nothing is appended
// for plugins without state. [main]
rlhf_status rlhf__instance_save(const struct rlhf__instance *i, struct rlhf__buf *out,
                                struct rlhf__error *err);

// Give back what rlhf__instance_save wrote; n 0 is what a plugin without state needs. Another id, a
// damaged block or a refused version: RLHF_E_INVALID. [main]
rlhf_status rlhf__instance_load(const struct rlhf__instance *i, const void *bytes, size_t n,
                                struct rlhf__error *err);

#endif
