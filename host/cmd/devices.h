// devices.h: the table of instruction sets that a backend chooses among (rlhf_level), as `rlhf-host
// devices` and --version show it.
#ifndef RLHF_HOST_CMD_DEVICES_H
#define RLHF_HOST_CMD_DEVICES_H

#include "base/buf.h"

#include <jansson.h>
#include <rlhf/compute.h>

// The levels as a JSON list, lowest first; empty where there are none. [any]
json_t *rlhf__levels_json(const rlhf_device_info *);

// The same list as lines, appended: a head, then the levels, the one in use marked with a star.
// Nothing for an empty list. [any]
void rlhf__levels_put(struct rlhf__buf *out, const json_t *levels);

#endif
