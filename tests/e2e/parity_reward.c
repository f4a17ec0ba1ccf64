// parity_reward.c: a reward whose value is the first id of a response modulo `levels`, so that
// groups without spread occur by chance. With levels=1 all rows have the same reward. With
// prompt=true the reward is constant within a group and differs between groups.
#include "support/plugin.h"

#include <rlhf/reward.h>

struct config {
    int64_t levels;
    int32_t prompt, reserved;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, levels, 2, 1, 1000, "how many different rewards there are"),
    RLHF_OPT_BOOL(struct config, prompt, 0, "look at the first id of the prompt instead"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
};

TEST_INSTANCE(struct self)

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct self *s = self;
    for (uint32_t i = 0; i < in->n; i++)
        out->seq[i] = (float)(in->ids[in->offset[i] + (s->config->prompt ? 0 : in->prompt_len[i])] %
                              s->config->levels);
    rlhf_metric_last(s->host, "rows", (double)in->n);
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};
TEST_PLUGIN(RLHF_KIND_REWARD, "parity", .summary = "pays odd first tokens", TEST_OPTIONS(opts),
            TEST_INSTANCES)
