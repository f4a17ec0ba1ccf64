// metric_names.h: the full names of metrics from plugins. Their prefixes keep a plugin from
// replacing a metric of another plugin or of the host (docs/metrics.md).
#ifndef RLHF_HOST_PLUGIN_METRIC_NAMES_H
#define RLHF_HOST_PLUGIN_METRIC_NAMES_H

#include <stddef.h>

// Size of a metric's full name, including its NUL. Metrics with longer names are ignored.
enum { RLHF__METRIC_NAME = 256 };

// Write a metric's full name to `out`: the owner as prefix and then the name ("rewards/imdb/hits"),
// or only the name if `owner` is "". Returns 1 if the plugin may report it, 0 if the name belongs
// to the host, or -1 if it is too long (`out` is then truncated). [any]
int rlhf__metric_name(const char *owner, const char *name, char out[RLHF__METRIC_NAME]);

#endif
