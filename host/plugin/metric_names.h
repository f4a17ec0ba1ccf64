// metric_names.h: the full names of plugins' metrics. They keep a plugin's metric from replacing
// another's or the host's own (docs/metrics.md).
#ifndef RLHF_HOST_METRIC_NAMES_H
#define RLHF_HOST_METRIC_NAMES_H

#include <stddef.h>

// Bytes of a metric's full name with its NUL. Metrics with longer names are ignored.
enum { RLHF__METRIC_NAME = 256 };

// out = the name prefixed by the owner ("rewards/imdb/hits"); for the owner "" the name itself. 1:
// the plugin may report it. 0: the name belongs to the host. -1: it is too long; `out` is cut.
// [any]
int rlhf__metric_name(const char *owner, const char *name, char out[RLHF__METRIC_NAME]);

#endif
