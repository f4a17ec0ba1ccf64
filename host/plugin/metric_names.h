// metric_names.h: under which name a metric of a plugin is kept, so that no plugin's metric takes
// the place of another's or of the host's own (docs/metrics.md).
#ifndef RLHF_HOST_METRIC_NAMES_H
#define RLHF_HOST_METRIC_NAMES_H

#include <stddef.h>

// out = the name with the owner in front ("rewards/imdb/hits"); of an owner "" the name as it is.
// 0 when that name is the host's own: then the metric is not the plugin's to report. [any]
int rlhf__metric_name(const char *owner, const char *name, char *out, size_t cap);

#endif
