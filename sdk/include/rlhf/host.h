// rlhf/host.h: what the host offers to every plugin.
//
// Plugin contract 1.0, frozen: it only grows.
//
// A plugin does not import symbols from the host; it uses only this table. Larger features are
// services: look one up with service(id), e.g. "rlhf.classifier/1" (see service.h). Messages are
// complete strings; format them with the helpers in log.h.
#ifndef RLHF_HOST_H
#define RLHF_HOST_H

#include "base.h"
#include "rng.h"

enum rlhf_log_level {
    RLHF_LOG_DEBUG = 0,
    RLHF_LOG_INFO = 1,
    RLHF_LOG_WARN = 2,
    RLHF_LOG_ERROR = 3
};

// How the host combines the values that plugins report under one metric name in a phase. Reports
// may come from several workers and processes, and from retried calls. Apart from LAST, the result
// does not depend on how the rows are divided among workers and processes if each report is about
// one row or one group. How often a function is called, and with how many rows, does depend on it.
enum rlhf_combine {
    RLHF_COMBINE_MEAN = 1, // sum of weight * value / sum of weight
    RLHF_COMBINE_SUM = 2,  // sum of weight * value
    RLHF_COMBINE_LAST = 3, // the last value; the weight is ignored
    RLHF_COMBINE_MAX = 4,  // the weight is ignored
    RLHF_COMBINE_MIN = 5   // the weight is ignored
};

#define RLHF_METRIC_NAME_MAX 128 // bytes of a metric's name, in all of 1.x

typedef struct rlhf_host rlhf_host;
struct rlhf_host {
    uint32_t size;
    uint32_t abi_minor;         // of the host; it may be later than the plugin's
    const char *name, *version; // "rlhf-host", its version
    // Log one line; the host adds time, plugin id and step. level: enum rlhf_log_level. With any
    // other level, the line is a warning that names the level. msg NULL: an empty line. [any]
    void (*log)(const rlhf_host *, int32_t level, const char *msg);
    // Record why a call fails and return `code`: `return host->fail(host, RLHF_E_INVALID, "...")`.
    // The host copies msg and prints it with plugin, function and step. `code` is one of the
    // negative codes; if it is 0 or more, fail() returns RLHF_E_INTERNAL. The last message of a
    // call counts; if the call then returns RLHF_OK, the message is dropped. [any] [R:no-words]
    rlhf_status (*fail)(const rlhf_host *, rlhf_status code, const char *msg);
    // Returns zeroed, 64-byte aligned memory, or NULL if memory has run out or `bytes` is 0.
    // Release the memory with free. [any] [R:alloc-overrun] [R:out-of-memory]
    void *(*alloc)(const rlhf_host *, uint64_t bytes);
    void (*free)(const rlhf_host *, void *); // NULL allowed [any] [R:free]
    // Report a scalar metric for the current phase. `combine` (enum rlhf_combine) is how the host
    // combines the values reported under one name in a phase. All reports of a name must have the
    // same combine. A combined value that is not finite is stored as null. weight, >= 0, is usually
    // the number of rows or tokens that the value describes. If the weights of a mean sum to 0, the
    // host does not report the mean. The helpers below are shorter forms of this function.
    //
    // A name has at most RLHF_METRIC_NAME_MAX bytes: letters from a to z and A to Z, digits, '_',
    // '-', '.' and '/'. The parts between the '/' are not empty, and none is "." or "..". The host
    // prefixes it: rewards/<reward>/<name> for a reward, judge/<name> for a judge,
    // environment/<name> for an environment, models/<role>/<name> for a model; names from an
    // algorithm stay unchanged. Report only in functions of a phase, so not in create(), destroy(),
    // save(), load(), plan(), check_row(), an environment's close(), extensions, or a model's
    // open(), info() and param(). The host ignores, with a warning, a report that breaks these
    // rules, that has a name of the host (base.h), or that is made where [call] does not allow it.
    // The warning names the plugin and the metric. It comes once for each name, and for at most 64
    // names. The host ignores metrics of sinks, without a warning. [call] [R:metric-name]
    // [R:metric-text] [R:metric-phase] [R:metric-weight] [R:metric-combine] [R:thread]
    void (*metric)(const rlhf_host *, const char *name, double value, double weight,
                   int32_t combine);
    // Sets *out to the generator of the named stream, with the run's seed and counter 0. Each
    // instance has separate streams, so other plugins, other rewards of the same plugin, and the
    // host get different numbers under the same name. [any]
    void (*rng)(const rlhf_host *, const char *stream, rlhf_rng *out);
    // Returns non-zero after the user has asked to stop; poll in long loops. [any] [R:hang]
    int32_t (*cancelled)(const rlhf_host *);
    // Returns the service table with that id, or NULL if it is not available. The look-up has no
    // other effect. Pass this host as the first argument of the service's functions. Services are
    // available from create() until destroy() returns. Look services up in create(), fail there if
    // a required one is missing, and keep the pointers. [any]
    const void *(*service)(const rlhf_host *, const char *id);
    // Replaces each sums[i] by its sum over all workers that train this model. The sum is in rank
    // order, so every worker gets the same bits. In a run of one process the sums do not change.
    // The workers divide the rows of a minibatch among them (algo.h), so sums accumulated in loss()
    // must be added up with this function before they are used in a decision or a metric. All
    // workers must make the same calls with the same n, so do not call it in loss(): the call of
    // loss() then fails, in a run of one process too. Only for algorithms: other plugins get
    // RLHF_E_UNSUPPORTED, and the sums do not change. [call] [R:reduce]
    rlhf_status (*reduce)(const rlhf_host *, double *sums, uint32_t n);
};

// Report a metric of which the phase keeps the last value, e.g. a controller's coefficient. [call]
static inline void rlhf_metric_last(const rlhf_host *host, const char *name, double value) {
    host->metric(host, name, value, 1.0, RLHF_COMBINE_LAST);
}

// Report the mean over `weight` rows or tokens. [call]
static inline void rlhf_metric_mean(const rlhf_host *host, const char *name, double mean,
                                    double weight) {
    host->metric(host, name, mean, weight, RLHF_COMBINE_MEAN);
}

// Add to a metric that counts. [call]
static inline void rlhf_metric_add(const rlhf_host *host, const char *name, double amount) {
    host->metric(host, name, amount, 1.0, RLHF_COMBINE_SUM);
}

#endif
