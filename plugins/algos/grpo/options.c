// options.c: see options.h. Sources of the defaults: docs/algorithms/grpo.md.
#include "grpo/options.h"

#include <rlhf/log.h>

const char *const rlhf__grpo_scale_names[] = {"group", "batch", "none", NULL};
const char *const rlhf__grpo_loss_names[] = {"grpo", "bnpo", "dr_grpo", "dapo", "cispo", NULL};

int32_t rlhf__grpo_aggregation(const struct rlhf__grpo_options *o) {
    switch (o->loss) {
    case RLHF__GRPO_LOSS_BNPO:
        return RLHF__AGG_TOKEN;
    case RLHF__GRPO_LOSS_DR_GRPO:
        return RLHF__AGG_MAX_LEN;
    case RLHF__GRPO_LOSS_DAPO:
    case RLHF__GRPO_LOSS_CISPO:
        return RLHF__AGG_DAPO;
    default:
        return RLHF__AGG_SEQUENCE;
    }
}

rlhf_status rlhf__grpo_options_check(const rlhf_host *host, const struct rlhf__grpo_options *o) {
    if (o->pg.group_size < 2)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "group_size is %lld; a response is compared with the others of its "
                          "prompt, so it must be at least 2",
                          (long long)o->pg.group_size);
    if (o->pg.dual_clip > 0 && o->loss == RLHF__GRPO_LOSS_CISPO)
        return host->fail(host, RLHF_E_INVALID,
                          "dual_clip has no meaning with loss cispo, which bounds the ratio "
                          "anyway; leave it at 0");
    return RLHF_OK;
}
