// probe.h: an instance of a plugin on a host that records allocations, messages and metrics, each
// with its thread and call. Used in a child process that tests a plugin.
#ifndef RLHF_TOOLS_CHECK_PROBE_H
#define RLHF_TOOLS_CHECK_PROBE_H

#include "check/child_log.h"
#include "plugin/row_service.h"
#include "plugin/services.h"

struct rlhf__check_fakes; // fake services (fakes.h)

// One plugin of the file under test; in a child process.
struct rlhf__check {
    struct rlhf__child_log *log;
    const struct rlhf__dirs *dirs;
    const struct rlhf__plugin *plugin;
    const json_t *options; // as given by the author, may be NULL
    const json_t *rows;    // data rows as given by the author, may be NULL
    int32_t seconds;       // limit for a step
    int32_t walled;        // 1: this process is confined as a worker is
    const char *scratch;   // for sinks: run->dir; only "own" below it can be written
    struct rlhf__services services;
    struct rlhf__check_fakes *fakes;
};

// Set up c->services: the host's row service, and fakes of the other services. Errors:
// RLHF_E_NOMEM. *c must not be moved afterwards. [main]
rlhf_status rlhf__check_services(struct rlhf__check *c, struct rlhf__error *err);
void rlhf__check_services_finish(struct rlhf__check *c); // [main]

struct rlhf__probe_host;

struct rlhf__probe {
    struct rlhf__check *check;
    struct rlhf__probe_host *host;
    void *config, *self;
    struct rlhf__strings strings;
    const struct rlhf__instance *kernels; // the kernels of a model; NULL: none
};

// Create an instance with `options` or, if this is NULL, with the author's options. The fail_at-th
// allocation fails (1 = the first, 0 = none). Reports violations by create(). If create() fails,
// err has its message, and the caller decides whether that is a violation. Call rlhf__probe_finish
// in any case. [main]
rlhf_status rlhf__probe_init(struct rlhf__check *c, const json_t *options, int64_t fail_at,
                             struct rlhf__probe *t, struct rlhf__error *err);
// Destroy the instance and report its leaks. [main]
void rlhf__probe_finish(struct rlhf__probe *t);

// Call rlhf__probe_begin before each call of a plugin's function, and rlhf__probe_end after it.
// `st` is the status that the function returned. rlhf__probe_end reports an invalid status, and a
// failure without a message. It returns `st`, or RLHF_E_INTERNAL for an invalid status; err has the
// plugin's message.
//
// If the function waits (it logs a warning, then keeps polling host->cancelled), the host cancels
// the call and never calls the function again. [any]
void rlhf__probe_begin(struct rlhf__probe *t, const char *function);
rlhf_status rlhf__probe_end(struct rlhf__probe *t, rlhf_status st, struct rlhf__error *err);

// Report if the floating-point environment of this thread is not the standard one, and restore it.
// `what` is what changed it: "create()". rlhf__probe_end calls this function. [any]
void rlhf__probe_floats(struct rlhf__child_log *, const char *what);

// rlhf__probe_allocs returns the number of allocations so far. rlhf__probe_fail_alloc makes the
// n-th of the following allocations fail, or none if n is 0. [main]
int64_t rlhf__probe_allocs(const struct rlhf__probe *t);
void rlhf__probe_fail_alloc(struct rlhf__probe *t, int64_t n);

// 1 if rlhf__probe_fail_alloc or fail_at made an allocation fail. [main]
int rlhf__probe_starved(const struct rlhf__probe *t);

// Record a report of a metric, as host->metric does. Returns 0 if it violates a rule. [any]
int rlhf__probe_may_report(struct rlhf__probe *t, const char *name, double value, double weight,
                           int32_t combine);

// Returns the name of the i-th metric that the instance reported, and sets *value to its combined
// value. Returns NULL if there are fewer metrics. [main]
const char *rlhf__probe_metric(const struct rlhf__probe *t, size_t i, double *value);

// Set the function that host->reduce calls from now on, outside of loss(). [main]
typedef void rlhf__probe_reduce_fn(void *ctx, double *sums, uint32_t n);
void rlhf__probe_reduce_to(struct rlhf__probe *t, rlhf__probe_reduce_fn *reduce, void *ctx);

// The message of host->fail in the last call, from the plugin or from a service, or "". [main]
const char *rlhf__probe_words(const struct rlhf__probe *t);

// The id of a service that the plugin asked for and that the check does not have, or "". [main]
const char *rlhf__probe_missing(const struct rlhf__probe *t);

// ---- state ----

// The saved state of an instance in memory, which another instance can load.
struct rlhf__state_buffer {
    rlhf_ostream out; // must be the first member
    rlhf_istream in;
    char *bytes;
    uint64_t len, at, limit; // bytes written, bytes read, most bytes to write
    rlhf_status full;        // what write() returns beyond `limit`
    int32_t refused;         // 1: write() has failed
};

// Returns 0 if out of memory. Call rlhf__state_buffer_finish even then. [main]
int rlhf__state_buffer_init(struct rlhf__state_buffer *s);
void rlhf__state_buffer_finish(struct rlhf__state_buffer *s);

// These functions call save() and load() of an instance, and return the plugin's status. The plugin
// must have save() and load(). If a call violates a rule, this is reported. [main]
rlhf_status rlhf__state_buffer_save(struct rlhf__probe *t, struct rlhf__state_buffer *s,
                                    struct rlhf__error *err);
rlhf_status rlhf__state_buffer_load(struct rlhf__probe *t, struct rlhf__state_buffer *s,
                                    uint32_t version, struct rlhf__error *err);

#endif
