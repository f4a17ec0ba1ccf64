// even_judge.c: a reward that gives every response the share of its tokens whose id is even. A
// reward model can learn this from pairs.
#include "support/plugin.h"

#include <rlhf/reward.h>

struct config {
    int64_t reserved;
};

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    (void)self;
    for (uint32_t i = 0; i < in->n; i++) {
        int32_t begin = in->offset[i] + in->prompt_len[i], end = in->offset[i + 1], even = 0;
        for (int32_t k = begin; k < end; k++)
            even += in->ids[k] % 2 == 0;
        out->seq[i] = end > begin ? (float)even / (float)(end - begin) : 0;
    }
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "even_judge", .summary = "share of even token ids")
