// network.h: measures the network between the ranks of a team: the latency, and the bytes per
// second of an exchange of gradients.
#ifndef RLHF_TOOLS_SCALE_NETWORK_H
#define RLHF_TOOLS_SCALE_NETWORK_H

#include "base/buf.h"
#include "scale/figures.h"
#include "team/team.h"

// Measure with messages of up to `most` bytes (65,536 or more). All ranks make this call and get
// the same numbers. Errors: RLHF_E_NOMEM, and those of the collective. [main]
rlhf_status rlhf__scale_network(struct rlhf__team *t, uint64_t most, struct rlhf__scale_line *out,
                                struct rlhf__error *err);

// Append what was measured. [any]
void rlhf__scale_network_table(const struct rlhf__scale_line *l, struct rlhf__buf *out);

#endif
