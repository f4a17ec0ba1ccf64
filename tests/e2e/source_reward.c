// source_reward.c: a reward that checks where each row comes from. The first capital letter of
// prompt i is 'A' + i. Held-out prompts have no capital letter and index -1. Every `every`-th row
// gets NaN.
#include "support/plugin.h"

#include <rlhf/reward.h>

#include <math.h>

struct config {
    int64_t every;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, every, 0, 0, 1000, "n > 0: one of n rows gets NaN"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
};

TEST_INSTANCE(struct self)

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct self *s = self;
    const int64_t every = s->config->every;
    for (uint32_t i = 0; i < in->n; i++) {
        int64_t want = -1;
        for (uint64_t k = 0; k < in->prompt[i].len && want < 0; k++)
            if (in->prompt[i].ptr[k] >= 'A' && in->prompt[i].ptr[k] <= 'Z')
                want = in->prompt[i].ptr[k] - 'A';
        if (in->source[i] != want)
            return s->host->fail(s->host, RLHF_E_INTERNAL, "a row of another prompt");
        out->seq[i] = (float)(in->ids[in->offset[i] + in->prompt_len[i]] % 2);
        if (every > 0 && i % every == every - 1) out->seq[i] = NAN;
    }
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "source_reward", .summary = "knows where rows come from",
            TEST_OPTIONS(opts), TEST_INSTANCES)
