// options.c: see options.h. Sources of the defaults: docs/algorithms/grpo.md.
#include "grpo/options.h"

#include <rlhf/log.h>

const char *const rlhf__grpo_scale_names[] = {"group", "batch", "none", NULL};
const char *const rlhf__grpo_loss_names[] = {"grpo", "bnpo", "dr_grpo", "dapo", "cispo", NULL};

struct rlhf__clip rlhf__grpo_clip(const struct rlhf__grpo_options *o) {
    struct rlhf__clip clip = {
        o->clip_range, o->clip_range_high < 0 ? o->clip_range : o->clip_range_high, o->dual_clip};
    return clip;
}

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
    if (o->group_size < 2)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "group_size is %lld; a response is compared with the others of its "
                          "prompt, so it must be at least 2",
                          (long long)o->group_size);
    struct rlhf__clip clip = rlhf__grpo_clip(o);
    if (clip.dual > 0 && o->loss == RLHF__GRPO_LOSS_CISPO)
        return host->fail(host, RLHF_E_INVALID,
                          "dual_clip has no meaning with loss cispo, which bounds the ratio "
                          "anyway; leave it at 0");
    if (clip.dual > 0 && clip.dual <= 1.0 + clip.high)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "dual_clip is %g; it must be 0 or above 1 + clip_range_high = %g",
                          clip.dual, 1.0 + clip.high);
    return RLHF_OK;
}
