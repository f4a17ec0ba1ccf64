// grown_reward.c: the template of a reward, built with older or longer headers; see test_growth.c.
#include <rlhf/reward.h>

#include "grown.h"

#include <templates/reward.c>

const rlhf_bundle *rlhf_plugin_v0(void) {
    static rlhf_reward_ops grown;
    grown = ops;
    GROWN_TAIL(&grown, "ops");
    return grown_bundle(grown_descriptor(), &grown);
}
