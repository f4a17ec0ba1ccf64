// period_count.c: rewards the number of periods in a response, which can be checked by eye.
//
// A period is the byte 0x2E, so a response may contain any bytes, and "..." counts as three.
// Sentences are not detected. The plugin has no create(), so its instance is the option struct
// itself.
#include <rlhf/reward.h>

struct period_config {
    int64_t cap;
    int32_t per_token;
};

static int64_t count_periods(rlhf_str text) {
    int64_t count = 0;
    for (uint64_t i = 0; i < text.len; i++)
        count += text.ptr[i] == '.';
    return count;
}

static rlhf_status period_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct period_config *c = self;
    for (uint32_t i = 0; i < in->n; i++) {
        int64_t count = count_periods(in->response[i]);
        if (c->cap > 0 && count > c->cap) count = c->cap;
        int64_t tokens = (int64_t)in->offset[i + 1] - in->offset[i] - in->prompt_len[i];
        double score = (double)count;
        if (c->per_token) score = tokens > 0 ? score / (double)tokens : 0;
        out->seq[i] = (float)score;
    }
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_I64(struct period_config, cap, 0, 0, 1000000,
                 "count no more than this many periods; 0 = no limit"),
    RLHF_OPT_BOOL(struct period_config, per_token, 0,
                  "divide the (capped) count by the number of response tokens"),
};
static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_REWARD_FUNCTION,
    .score = period_score,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.period_count",
    .version = RLHF_SDK_VERSION,
    .summary = "number of periods in the response",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct period_config, options),
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
