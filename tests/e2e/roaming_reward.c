// roaming_reward.c: a reward that changes the working directory of the process. It can also wait
// until a file exists, either in score() or in create().
#include "support/plugin.h"

#include <rlhf/reward.h>

#include <time.h>
#include <unistd.h>

struct config {
    const char *cd;   // changes to this directory in every call; "" = stays
    const char *gate; // waits for this file (absolute path); "" = does not wait
    int64_t free;     // number of calls that do not wait; -1: create() waits
};

static const rlhf_opt opts[] = {
    RLHF_OPT_STR(struct config, cd, "", "directory to go to"),
    RLHF_OPT_STR(struct config, gate, "", "file to wait for"),
    RLHF_OPT_I64(struct config, free, 0, -1, 1000, "calls that do not wait"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    int64_t calls;
};

TEST_INSTANCE(struct self)

// Waits at most a minute, so that a failing test ends, too.
static void wait_for(const char *path) {
    const struct timespec pause = {0, 5000000};
    for (int i = 0; i < 12000 && access(path, F_OK) != 0; i++)
        nanosleep(&pause, NULL);
}

static rlhf_status create_away(const rlhf_host *host, const void *config, void **self) {
    const struct config *c = config;
    RLHF_TRY(create(host, config, self));
    if (c->gate[0] && c->free < 0) wait_for(c->gate);
    return c->cd[0] && chdir(c->cd) != 0 ? RLHF_E_IO : RLHF_OK;
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct self *s = self;
    if (s->config->cd[0] && chdir(s->config->cd) != 0) return RLHF_E_IO;
    if (s->config->gate[0] && s->calls++ >= s->config->free) wait_for(s->config->gate);
    for (uint32_t i = 0; i < in->n; i++)
        out->seq[i] = (float)(i % 3);
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "roaming_reward", .summary = "changes directories and waits",
            TEST_OPTIONS(opts), .create = create_away, .destroy = destroy)
