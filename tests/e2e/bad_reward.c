// bad_reward.c: a reward that misbehaves in one way: it gives NaN for chosen rows, fails, leaves
// rows unwritten, marks rows as failed, or gives huge numbers.
#include "support/plugin.h"

#include <rlhf/reward.h>

#include <math.h>

struct config {
    int64_t every; // rows with index % every == every - 1 misbehave
    int32_t how, reserved;
};

static const char *const ways[] = {"nan", "inf", "skip", "fail", "failed", "huge", NULL};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, every, 4, 1, 1000, "which rows misbehave"),
    RLHF_OPT_ENUM(struct config, how, 0, ways, "what they do"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
};

TEST_INSTANCE(struct self)

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct self *s = self;
    if (s->config->how == 3) return s->host->fail(s->host, RLHF_E_INVALID, "no opinion today");
    for (uint32_t i = 0; i < in->n; i++) {
        int bad = i % s->config->every == s->config->every - 1;
        if (bad && s->config->how == 2) continue;
        if (bad && s->config->how == 4) {
            out->failed[i] = 1;
            continue;
        }
        if (s->config->how == 5) {
            out->seq[i] = bad ? -3e38F : 3e38F;
            continue;
        }
        out->seq[i] = !bad ? (float)(i % 3) : s->config->how == 0 ? -NAN : INFINITY;
    }
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "bad_reward", .summary = "misbehaves on purpose", TEST_OPTIONS(opts),
            TEST_INSTANCES)
