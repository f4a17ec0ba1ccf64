// metric_names.h: the full names of metrics from plugins. Their prefixes keep a plugin from
// replacing a metric of another plugin or of the host (docs/metrics.md).
#ifndef RLHF_HOST_PLUGIN_METRIC_NAMES_H
#define RLHF_HOST_PLUGIN_METRIC_NAMES_H

#include <stdatomic.h>
#include <stddef.h>

// Size of a metric's full name, including its NUL. An owner's name leaves room for
// RLHF_METRIC_NAME_MAX bytes.
enum { RLHF__METRIC_NAME = 256 };

// Returns why a plugin may not use the name for a metric, as text to follow the name, or NULL if
// the name is valid. `name` may be NULL. [any]
const char *rlhf__metric_name_fault(const char *name);

// Metrics of the host that an algorithm may not report, and metrics of the host about a reward or
// judge. A name that ends in a slash is a prefix. The lists end with NULL. They do not become
// longer in version 1 of the contract: names of further metrics begin with one of these prefixes or
// with "host/" (docs/contract.md). [any]
const char *const *rlhf__metrics_of_host(void);
const char *const *rlhf__metrics_of_owner(void);

// Write a metric's full name to `out`: the owner as prefix and then the name ("rewards/imdb/hits"),
// or only the name if `owner` is "". Returns NULL, or why the plugin may not report the metric: the
// name is not valid, or the host itself reports a metric of that name. [any]
const char *rlhf__metric_name(const char *owner, const char *name, char out[RLHF__METRIC_NAME]);

// Write to `out` why a report is ignored that was made at the wrong place. `where` is the result of
// rlhf__on_call_where. Returns `out`. [any]
enum { RLHF__METRIC_WHY = 256 };
const char *rlhf__metric_misplaced(const char *where, char out[RLHF__METRIC_WHY]);

// Returns why a metric may not be reported in `function` ("create()"), as text to follow the
// metric's name, or NULL if the function belongs to a phase. [any]
const char *rlhf__metric_not_in(const char *function);

// The names of which the log has had a warning, the first 64 of them. Zero-initialize.
struct rlhf__metrics_named {
    atomic_uint_fast64_t hash[64]; // 0: unused
};

// Adds the name; `name` may be NULL. Returns 1 if it was not there and a place was left. [any]
int rlhf__metric_first(struct rlhf__metrics_named *, const char *name);

#endif
