// probe.h: an instance of a plugin on a host that records its allocations, messages and metrics,
// with thread and call. For a child process that tests a plugin.
#ifndef RLHF_HOST_CHECK_PROBE_H
#define RLHF_HOST_CHECK_PROBE_H

#include "check/child_log.h"
#include "plugin/row_service.h"
#include "plugin/services.h"

struct rlhf__check_fakes; // fake services (fakes.h)

// One plugin of the file under test, in a child.
struct rlhf__check {
    struct rlhf__child_log *log;
    const struct rlhf__dirs *dirs;
    const struct rlhf__plugin *plugin;
    const json_t *options; // as given by the author, may be NULL
    const json_t *rows;    // data rows as given by the author, may be NULL
    int32_t seconds;       // limit for a step
    int32_t reserved;
    struct rlhf__services services;
    struct rlhf__check_fakes *fakes;
};

// The services for instances: the host's row service, and fakes of the others. Errors:
// RLHF_E_NOMEM. c must not move. [main]
rlhf_status rlhf__check_services(struct rlhf__check *c, struct rlhf__error *err);
void rlhf__check_services_finish(struct rlhf__check *c); // [main]

struct rlhf__probe_host;

struct rlhf__probe {
    struct rlhf__check *check;
    struct rlhf__probe_host *host;
    void *config, *self;
    struct rlhf__strings strings;
    const struct rlhf__instance *kernels; // what a model computes with; NULL: nothing
};

// Create an instance with these options (NULL: the author's). fail_at: the allocation that fails, 1
// = the first, 0 = none. Violations by create() are reported; the caller decides about a failure,
// whose message is in err. *t needs finish in any case. [main]
rlhf_status rlhf__probe_create(struct rlhf__check *c, const json_t *options, int64_t fail_at,
                               struct rlhf__probe *t, struct rlhf__error *err);
// Destroy the instance and report its leaks. [main]
void rlhf__probe_finish(struct rlhf__probe *t);

// A function of the plugin runs between begin and end. If it waits (after a warning it keeps
// polling host->cancelled), it is told to stop and is not called again. st is its return value;
// invalid ones and failures without a message are reported. Returns st, or RLHF_E_INTERNAL for an
// invalid status; err has the plugin's message. [any]
void rlhf__probe_begin(struct rlhf__probe *t, const char *function);
rlhf_status rlhf__probe_end(struct rlhf__probe *t, rlhf_status st, struct rlhf__error *err);

// Number of allocations so far; and: let allocation n from now on fail (0: none). [main]
int64_t rlhf__probe_allocs(const struct rlhf__probe *t);
void rlhf__probe_fail_alloc(struct rlhf__probe *t, int64_t n);

// 1 if an allocation failed this way. [main]
int rlhf__probe_starved(const struct rlhf__probe *t);

// The message of host->fail, by the plugin or by a service, in the last call, or "". [main]
const char *rlhf__probe_words(const struct rlhf__probe *t);

// The id of a service that the plugin asked for and the check does not have, or "". [main]
const char *rlhf__probe_missing(const struct rlhf__probe *t);

#endif
