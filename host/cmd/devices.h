// devices.h: the table of instruction sets that a backend chooses from (levels of describe()), for
// `rlhf-host devices` and --version.
#ifndef RLHF_HOST_CMD_DEVICES_H
#define RLHF_HOST_CMD_DEVICES_H

#include "base/buf.h"
#include "model/device_info.h"

#include <jansson.h>

// The levels as a JSON list, lowest first; empty if there are none. [any]
json_t *rlhf__levels_json(const struct rlhf__device_info *);

// Append the same list as lines: a heading, then the levels; a star marks the one in use. Appends
// nothing for an empty list. [any]
void rlhf__levels_put(struct rlhf__buf *out, const json_t *levels);

#endif
