// describe.h: the descriptor of a reward, an environment or a sink as bytes. A worker describes the
// plugin that it opened. The host builds a descriptor from this description, and checks it like any
// other (plugin/descriptor.h).
#ifndef RLHF_HOST_WIRE_DESCRIBE_H
#define RLHF_HOST_WIRE_DESCRIBE_H

#include "plugin/load.h"
#include "wire/wire.h"

// Append the description of `p`, which rlhf__description_get reads. [any]
void rlhf__description_put(const struct rlhf__plugin *p, struct rlhf__buf *out);

enum {
    RLHF__DESCRIBED_WHY_UNUSED = 1, // the plugin has why_unused()
    RLHF__DESCRIBED_CHECK_ROW = 2,  // the plugin has check_row()
    RLHF__DESCRIBED_PROGRAM = 4,    // the plugin has the extension RLHF_EXT_PROGRAM
    RLHF__DESCRIBED_RESET = 8,      // the environment has reset()
    RLHF__DESCRIBED_FINISH = 16,    // the environment has finish()
    RLHF__DESCRIBED_POLL = 32,      // the environment has poll()
    RLHF__DESCRIBED_END = 64        // the sink has end()
};

// A worker's description of a plugin. The description owns its memory. The plugin's config struct
// has one slot of 16 bytes per option. `desc` lacks functions and ops, and the caller sets its
// kind.
struct rlhf__description {
    rlhf_plugin desc;
    rlhf_opt *opts; // [desc.n_opts]
    struct rlhf__strings strings;
    const char ***lists;     // [2 * desc.n_opts]: choices, default of a LIST
    uint32_t ops_flags, has; // has: RLHF__DESCRIBED_*
};

// Read a description. Call rlhf__description_finish on *out in any case. Errors: RLHF_E_UNSUPPORTED
// (malformed), RLHF_E_NOMEM. [main]
rlhf_status rlhf__description_get(struct rlhf__wire *in, struct rlhf__description *out,
                                  struct rlhf__error *err);
void rlhf__description_finish(struct rlhf__description *); // accepts a zeroed struct [main]

#endif
