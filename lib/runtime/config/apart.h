// apart.h: opens a reward, the judge, the environment or a sink in this process or in a worker.
#ifndef RLHF_HOST_CONFIG_APART_H
#define RLHF_HOST_CONFIG_APART_H

#include "config/config.h"
#include "plugin/load.h"

struct rlhf__apart {
    const struct rlhf__config *c;
    const struct rlhf__plugin_config *p; // its entry in `c`
    const char *section, *flag;          // for messages: "reward.0", "--reward"
    int32_t kind;                        // RLHF_KIND_REWARD, _ENVIRONMENT or _SINK
};

// Open the plugin, in a worker or in this process. `isolate` of the plugin's config entry decides
// which; if that is 0, the setting rewards.isolate decides. A plugin that came with rlhf-host and
// only starts programs is never put into a worker; the programs that it starts are confined
// instead. Errors: those of rlhf__plugin_open and rlhf__worker_plugin; RLHF_E_INVALID if a resumed
// run's config.json weakens the confinement, or if `network` would be ignored. [main]
rlhf_status rlhf__apart_open(struct rlhf__plugins *plugins, const struct rlhf__apart *q,
                             const struct rlhf__plugin **out, struct rlhf__error *err);

#endif
