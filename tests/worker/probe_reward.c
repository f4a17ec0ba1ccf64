// probe_reward.c: a reward that tries the things that a worker must not be able to do (probe.h),
// and logs the outcomes (probe_try.c).
#include "worker/probe.h"

#include "support/plugin.h"

#include <rlhf/reward.h>

#include <string.h>

struct config {
    const char *dir, *probe;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_STR(struct config, dir, "", "where the bait lies"),
    RLHF_OPT_STR(struct config, probe, "", "one that is tried alone, empty: all others"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
};

TEST_INSTANCE(struct self)

static void tell(void *ctx, const char *line) {
    const struct self *s = ctx;
    s->host->log(s->host, RLHF_LOG_INFO, line);
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct self *s = self;
    struct bait b;
    for (uint32_t i = 0; i < in->n; i++)
        out->seq[i] = (float)in->response[i].len;
    if (in->phase != 0) return RLHF_OK;
    if (probe_bait(s->config->dir, &b) != 0)
        return s->host->fail(s->host, RLHF_E_INVALID, "there is no bait");
    if (!*s->config->probe) probe_all(&b, tell, self);
    for (const struct probe *p = probe_alone; p->name; p++)
        if (strcmp(p->name, s->config->probe) == 0) p->run(&b);
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "probe_reward", .summary = "tries what it must not",
            TEST_OPTIONS(opts), TEST_INSTANCES)
