// recomputable.c: rlhf__say_recomputable of setup.h.
#include "setup/setup.h"

void rlhf__say_recomputable(const struct rlhf__run *r) {
    const struct rlhf__config *c = r->config;
    const char *untrue = NULL; // a reward that does not promise the same scores each time
    if (r->req->resume || r->req->recorded || c->log.rollouts || c->rollout.ahead > 0) return;
    for (size_t i = 0; i < c->n_reward && !untrue; i++)
        if (!(r->req->rewards[i]->ops.reward.flags & RLHF_REWARD_FUNCTION))
            untrue = r->req->rewards[i]->file;
    if (!untrue) return;
    rlhf__logf(r->report.log, RLHF_LOG_INFO,
               "%s does not promise the same scores each time, and they are not recorded, so "
               "verify cannot recompute this run; log.rollouts=true records them",
               untrue);
}
