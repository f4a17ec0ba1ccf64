// token_reward.c: a reward with known numbers. Row i of a batch gets i % 4 - shift at the end. With
// the option `tokens`, it gets half of that value at the response's first token and half at its
// last token. With the option `bad`, the first token's reward is NaN in every `bad`-th row.
#include "support/plugin.h"

#include <rlhf/reward.h>

#include <math.h>

struct config {
    int64_t bad;
    double shift;
    int32_t tokens, reserved;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, bad, 0, 0, 1000, "which rows have a NaN; 0: none"),
    RLHF_OPT_F64(struct config, shift, 0, -3e38, 3e38, "taken from every row"),
    RLHF_OPT_BOOL(struct config, tokens, 1, "pay token by token"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
};

TEST_INSTANCE(struct self)

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct config *c = ((const struct self *)self)->config;
    for (uint32_t i = 0; i < in->n; i++) {
        float worth = (float)(i % 4) - (float)c->shift;
        int32_t first = in->offset[i] + in->prompt_len[i], last = in->offset[i + 1] - 1;
        int bad = c->bad > 0 && i % c->bad == c->bad - 1;
        out->seq[i] = worth;
        if (!c->tokens || first > last) continue;
        out->seq[i] = 0;
        out->token[first] += worth / 2;
        out->token[last] += worth / 2;
        if (bad) out->token[first] = NAN;
    }
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {
    .size = sizeof ops, .flags = RLHF_REWARD_PER_TOKEN, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "token_reward", .summary = "pays token by token", TEST_OPTIONS(opts),
            TEST_INSTANCES)
