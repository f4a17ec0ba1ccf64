// services.h: instances of plugins and the rlhf_host table that each of them gets.
#ifndef RLHF_HOST_PLUGIN_SERVICES_H
#define RLHF_HOST_PLUGIN_SERVICES_H

#include "base/log.h"
#include "base/running.h"
#include "plugin/growth.h"
#include "plugin/load.h"
#include "plugin/note.h"
#include "supervise/tail.h"

#include <signal.h>
#include <stdatomic.h>

// A table that host->service(id) returns; `id` and `table` are borrowed. Its functions get the
// caller's rlhf_host, look up their own table in it, and find their data through that table. They
// therefore work with any host that offers the table: in a run, in a worker or in `plugin check`.
struct rlhf__service {
    const char *id;
    const void *table;
    enum rlhf__struct which;
};

enum { RLHF__MAX_SERVICES = 16 };

// Why host->reduce fails for every other kind of plugin.
#define RLHF__REDUCE_FOR_ALGOS                                                                     \
    "it called reduce(), which is only for algorithms; the sums were not changed"

// Receives the values that a plugin reports with host->metric, under their names in the run.
typedef void rlhf__metric_fn(void *ctx, const char *name, double value, double weight,
                             int32_t combine);

// The parts that all instances of a run share. The run fills this struct, which must outlive the
// instances. Instances whose metrics go elsewhere may use a copy of it.
struct rlhf__services {
    struct rlhf__log *log;   // NULL = silent
    rlhf__metric_fn *metric; // NULL = ignored
    void *metric_ctx;
    const volatile sig_atomic_t *cancelled; // NULL = never
    uint64_t seed;
    int64_t phase; // set by the loop, for messages; < 0 = outside of phases
    // The backend that models compute with, or NULL. If a model fails without a message because the
    // backend failed, the backend's message is reported.
    const struct rlhf__instance *kernels;
    // For the algorithm's host->reduce; NULL: there is one process. Errors: any.
    rlhf_status (*reduce)(void *ctx, double *sums, uint32_t n, struct rlhf__error *err);
    void *reduce_ctx;
    struct rlhf__service offered[RLHF__MAX_SERVICES]; // use rlhf__services_offer
    size_t n_offered;
};

// Offer a table, a struct `which`, under an id. Copies of *s that were made earlier do not get it.
// Errors: RLHF_E_INTERNAL if the id is taken, or if RLHF__MAX_SERVICES tables are already offered.
// [main]
rlhf_status rlhf__services_offer(struct rlhf__services *s, const char *id, enum rlhf__struct which,
                                 const void *table, struct rlhf__error *err);

// Returns the table with that id, or NULL. [any]
const void *rlhf__services_find(const struct rlhf__services *, const char *id);

// Copies of offered tables for a plugin of an earlier minor version of the contract, with the sizes
// that the tables had then. Begin with zeros.
struct rlhf__cut_tables {
    _Atomic(void *) at[RLHF__MAX_SERVICES];
};

// Like rlhf__services_find, for a plugin that was built with this minor version. NULL also if
// memory has run out. [any]
const void *rlhf__services_for(const struct rlhf__services *, const char *id, uint32_t minor,
                               struct rlhf__cut_tables *cut);
void rlhf__cut_tables_finish(struct rlhf__cut_tables *); // [main]

// What a function of a service does.
enum rlhf__service_act {
    RLHF__SERVICE_COMPUTES, // with a model
    RLHF__SERVICE_OPENS_MODEL,
    RLHF__SERVICE_OPENS, // an object without a model
    RLHF__SERVICE_CLOSES
};

// Returns RLHF_OK if the caller may do this now: one of its functions runs on this thread, and that
// function is [main] or the service computes. Otherwise reports why not, and returns
// RLHF_E_INVALID. A wrong close makes the plugin's call fail. A reward with RLHF_REWARD_EXTERNAL
// may not use models (RLHF_E_UNSUPPORTED). [any]
rlhf_status rlhf__service_may(const rlhf_host *caller, enum rlhf__service_act);

// For plugins that the host itself implements (worker/): from now on, the caller counts as inside
// of this function of the plugin that it stands in for. _enter returns what _leave needs. [any]
const char *rlhf__host_enter(const rlhf_host *, const char *function);
void rlhf__host_leave(const rlhf_host *, const char *outer);

// Report to the caller's host that a service's call has failed, with the message of `err`. Returns
// err->code. [any]
rlhf_status rlhf__service_failed(const rlhf_host *caller, const struct rlhf__error *err);

struct rlhf__instance {
    const struct rlhf__plugin *plugin;
    void *self;            // first argument of the ops
    void *config;          // the plugin's filled config struct
    const rlhf_host *host; // NULL: not made by rlhf__instance_open; then its calls must not fail
};

// Fill a config struct from `options` (may be NULL) and call the plugin's create(). How strictly
// the options are checked depends on their origin (options.h). `owner` is the instance's role in
// the run: "rewards/<name>", "judge", "models/<role>", or "" for the algorithm. `owner` is also the
// prefix of the instance's metrics. [main]
rlhf_status rlhf__instance_open(const struct rlhf__plugin *plugin, struct rlhf__services *services,
                                const char *owner, const json_t *options,
                                const struct rlhf__origin *from, struct rlhf__instance **out,
                                struct rlhf__error *err);
void rlhf__instance_close(struct rlhf__instance *i); // `i` may be NULL [main]

// From now on, `metric` receives the values that the plugin reports with host->metric, under their
// names in the run. If `metric` is NULL, the run receives them, as if this function had not been
// called. [step]
void rlhf__instance_metrics_to(const struct rlhf__instance *i, rlhf__metric_fn *metric, void *ctx);

// Write the message of the plugin's last host->fail into out[cap] and return its code. If the
// plugin has not called host->fail, write "" and return 0. [any]
rlhf_status rlhf__instance_said(const struct rlhf__instance *i, char *out, size_t cap);

// Returns the instance for which the host made this rlhf_host. For plugins that the host itself
// implements (worker/). [any]
const struct rlhf__instance *rlhf__instance_behind(const rlhf_host *);
struct rlhf__services *rlhf__services_behind(const rlhf_host *);
const char *rlhf__owner_behind(const rlhf_host *); // owner of that instance

// Do what host->rng does, for an instance of the plugin `id`. [any]
void rlhf__instance_rng(const char *id, const char *owner, uint64_t seed, const char *stream,
                        rlhf_rng *out);

// A call into a plugin: begin, call, end. While the call runs, base/running.h has a record of it.
struct rlhf__call {
    const struct rlhf__instance *instance;
    const char *function; // "score()"
    const char *outer;    // for rlhf__on_call_end
    struct rlhf__running before;
    uint64_t said, kernels_said; // marks in the messages of the plugin and of the kernels
};
struct rlhf__call rlhf__call_begin(const struct rlhf__instance *i, const char *function); // [any]

// For functions that the host offers outside of rlhf_host and that are allowed only during a call
// ([call] in rlhf/base.h). _where: returns where the plugin calls such a function although it may
// not ("after score() had returned"), in out[cap], or NULL if it may. _may_report: returns 1 if the
// plugin may report the metric now; otherwise warns. [any]
const char *rlhf__instance_where(const struct rlhf__instance *, char *out, size_t cap);
int rlhf__instance_may_report(const struct rlhf__instance *, const char *name, double weight,
                              int32_t combine);

// Call this function after the plugin has returned `status`. Returns the status, or RLHF_E_INTERNAL
// if the status is unknown. A failure sets `err` to "reward period.so, score(), phase 12: <why>".
// If the plugin or the kernels gave a message, the names create(), open() and check_row() are left
// out. <why> is the first of these that exists:
//
// - the last message of host->fail during the call, from the plugin or from a service that it
//   called. If the status is RLHF_E_NOMEM or RLHF_E_CANCELLED, only a message with that code is
//   used, because a plugin may return these two without a message
// - the message of the kernels, if they failed with this status during the call
// - the text of the status
//
// Exits if this process is a child that the plugin forked. [any]
rlhf_status rlhf__call_end(const struct rlhf__call *call, rlhf_status status,
                           struct rlhf__error *err);

// Put "algorithm NAME, loss(): " before a message about what the plugin gave in a call that has
// ended. Returns err->code. [any]
rlhf_status rlhf__call_context(const struct rlhf__call *call, struct rlhf__error *err);

// Like rlhf__call_end, for a call in which the plugin has filled a struct: if the call succeeded,
// also does rlhf__filled_end. [any]
rlhf_status rlhf__call_end_filled(const struct rlhf__call *call, rlhf_status status,
                                  const struct rlhf__filled *filled, void *out,
                                  struct rlhf__error *err);

// Record what a plugin did wrong in the call, which is still running. Returns RLHF_E_INTERNAL, for
// rlhf__call_end. [any]
rlhf_status rlhf__call_fault(const struct rlhf__call *, const char *why);

// _kept: end the check of arrays that were marked, and of structs that were lent, before the call
// (supervise/tail.h). If the plugin wrote past the end of an array, or to a struct, restores it and
// returns RLHF_E_INTERNAL, and that is the call's message; otherwise
// returns `status`. _wrote: the same, followed by rlhf__call_end. [any]
rlhf_status rlhf__call_kept(const struct rlhf__call *, struct rlhf__tails *, rlhf_status status);
rlhf_status rlhf__call_wrote(const struct rlhf__call *, struct rlhf__tails *, rlhf_status status,
                             struct rlhf__error *err);

// _is_refusal: returns 1 if a message looks as if the system refused something that a confined
// process may not do. _confined_hint: returns what such a process may not do, as text to follow the
// message, or "" if the plugin and its programs are not confined, or may use the network. A failed
// call's message contains both. [any]
#define RLHF__CONFINED_HINT                                                                        \
    "; it runs in a process that cannot write files and has no network (its option network=true "  \
    "allows the network)"
int rlhf__is_refusal(const char *why);
const char *rlhf__confined_hint(const struct rlhf__plugin *);

// Write only the <why> of a failed call (see rlhf__call_end) into out[cap]. Returns `out`. [any]
const char *rlhf__call_why(const struct rlhf__call *call, rlhf_status status, char *out,
                           size_t cap);

// Returns 1 if a message with the status `said` can be the reason why a call returned `status`.
// Returns 0 if it cannot: `status` says that the plugin ran out of memory or was cancelled, and the
// message is about an earlier failure, which the plugin handled. [any]
int rlhf__words_fit(rlhf_status said, rlhf_status status);

// Write "it returned 7, which is not a valid status" into out[cap], for a positive status. Returns
// `out`. [any]
const char *rlhf__no_status(rlhf_status status, char *out, size_t cap);

// Append the instance's state to `out`: id, state_version, length, bytes, CRC. Appends nothing if
// the plugin is stateless. [main]
rlhf_status rlhf__instance_save(const struct rlhf__instance *i, struct rlhf__buf *out,
                                struct rlhf__error *err);

// Restore a state that rlhf__instance_save wrote. For a plugin without state, `n` must be 0.
// Errors: RLHF_E_INVALID for another id, a damaged block, or a version that the plugin rejects.
// [main]
rlhf_status rlhf__instance_load(const struct rlhf__instance *i, const void *bytes, size_t n,
                                struct rlhf__error *err);

#endif
