// rude_reward.c: a reward whose texts all contain characters that a terminal would obey: its
// summary, help, log lines, metric and error message. A descriptor with other such characters than
// a bidi override is refused (tests/plugin/test_load.c).
#include "support/plugin.h"

#include <rlhf/reward.h>

// ESC, a line break, a C1 control (CSI), a bidi override and an invalid UTF-8 byte.
#define RUDE                                                                                       \
    "\033[31mred\nerror: forged\xc2\x9b"                                                           \
    "2J\xe2\x80\xae"                                                                               \
    "abc\xff."

#define TURNED                                                                                     \
    "\xe2\x80\xae"                                                                                 \
    "abc"

struct config {
    int32_t fail, reserved;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_BOOL(struct config, fail, 0, "helps " TURNED),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
};

TEST_INSTANCE(struct self)

static rlhf_status create_loud(const rlhf_host *host, const void *config, void **self) {
    host->log(host, RLHF_LOG_INFO, "logs " RUDE);
    return create(host, config, self);
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct self *s = self;
    if (s->config->fail) return s->host->fail(s->host, RLHF_E_INVALID, "fails " RUDE);
    for (uint32_t i = 0; i < in->n; i++)
        out->seq[i] = (float)i;
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "rude_reward", .summary = "sums up " TURNED, TEST_OPTIONS(opts),
            .create = create_loud, .destroy = destroy)
