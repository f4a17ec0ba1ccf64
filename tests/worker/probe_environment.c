// probe_environment.c: an environment that tries the things that a worker must not be able to do
// (probe.h) in its first call, and logs the outcomes.
#include "worker/probe.h"

#include "support/plugin.h"

#include <rlhf/environment.h>

struct config {
    const char *dir;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_STR(struct config, dir, "", "where the bait lies"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    int tried;
};

TEST_INSTANCE(struct self)

static void tell(void *ctx, const char *line) {
    const struct self *s = ctx;
    s->host->log(s->host, RLHF_LOG_INFO, line);
}

static rlhf_status reset(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    struct self *s = self;
    struct bait b;
    (void)in;
    (void)out;
    if (s->tried++) return RLHF_OK;
    if (probe_bait(s->config->dir, &b) != 0)
        return s->host->fail(s->host, RLHF_E_INVALID, "there is no bait");
    probe_all(&b, tell, self);
    return RLHF_OK;
}

static rlhf_status step(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    (void)self;
    for (uint32_t i = 0; i < in->n; i++)
        out->end[i] = RLHF_EPISODE_DONE;
    return RLHF_OK;
}

static const rlhf_environment_ops ops = {
    .size = sizeof ops, .flags = RLHF_ENVIRONMENT_PAYS, .reset = reset, .step = step};

TEST_PLUGIN(RLHF_KIND_ENVIRONMENT, "probe_environment", .summary = "tries what it must not",
            TEST_OPTIONS(opts), TEST_INSTANCES)
