// run_settings.h: the settings of a run's config.json as a flat list.
#ifndef RLHF_FORMATS_HISTORY_RUN_SETTINGS_H
#define RLHF_FORMATS_HISTORY_RUN_SETTINGS_H

#include "base/buf.h"

#include <jansson.h>

// Returns the settings of a config as one object, a new reference. Each key is the dotted name of a
// setting, with an index for each item of a list: {"algo.clip_range": 0.2, "reward.0.weight": 1}.
// The object has at most 4,000 settings. [any]
json_t *rlhf__settings_flat(const json_t *config);

// Append a setting's value as a user would type it: a string without quotes, other values as JSON.
// If `value` is NULL, appends nothing. [any]
void rlhf__settings_put(struct rlhf__buf *out, const json_t *value);

#endif
