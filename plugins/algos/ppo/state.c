// state.c: what a resumed run needs of ppo.so: the KL controller's coefficient.
#include "ppo/ppo.h"

#include <rlhf/log.h>

static const char magic[4] = {'R', 'P', 'P', 'O'};

rlhf_status rlhf__ppo_save(void *self, const rlhf_ostream *out) {
    const struct rlhf__ppo *p = self;
    return rlhf__kl_control_save(&p->kl, magic, out);
}

rlhf_status rlhf__ppo_load(void *self, const rlhf_istream *in, uint32_t state_version) {
    struct rlhf__ppo *p = self;
    if (state_version != RLHF__PPO_STATE_VERSION)
        return rlhf_failf(p->host, RLHF_E_UNSUPPORTED,
                          "state version %u; this ppo reads version %d", (unsigned)state_version,
                          RLHF__PPO_STATE_VERSION);
    return rlhf__kl_control_load(p->host, &p->kl, magic, in);
}
