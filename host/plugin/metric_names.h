// metric_names.h: under which name a metric of a plugin is kept, so that no plugin's metric takes
// the place of another's or of the host's own (docs/metrics.md).
#ifndef RLHF_HOST_METRIC_NAMES_H
#define RLHF_HOST_METRIC_NAMES_H

#include <stddef.h>

// Bytes of a metric's full name with its NUL. No metric with a longer name is kept.
enum { RLHF__METRIC_NAME = 256 };

// out = the name with the owner in front ("rewards/imdb/hits"); of an owner "" the name as it is.
// 1: the plugin may report it. 0: the name is the host's own. -1: it is too long, and is cut in
// `out`. [any]
int rlhf__metric_name(const char *owner, const char *name, char out[RLHF__METRIC_NAME]);

#endif
