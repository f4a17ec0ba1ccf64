// roaming_reward.c: a reward that changes the working directory of the process, or that waits for a
// file before it scores.
#include <rlhf/plugin.h>
#include <rlhf/reward.h>

#include <time.h>
#include <unistd.h>

struct config {
    const char *cd;   // chdir here with every call; "" = stay
    const char *gate; // wait for this file (absolute path); "" = do not
    int64_t free;     // calls before the first that waits
};

static const rlhf_opt opts[] = {
    RLHF_OPT_STR(struct config, cd, "", "directory to go to"),
    RLHF_OPT_STR(struct config, gate, "", "file to wait for"),
    RLHF_OPT_I64(struct config, free, 0, 0, 1000, "calls that do not wait"),
};

struct self {
    const rlhf_host *host;
    struct config config;
    int64_t calls;
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct self *s = host->alloc(host, sizeof *s);
    if (!s) return RLHF_E_NOMEM;
    s->host = host;
    s->config = *(const struct config *)config;
    s->calls = 0;
    *self = s;
    return s->config.cd[0] && chdir(s->config.cd) != 0 ? RLHF_E_IO : RLHF_OK;
}

static void destroy(void *self) {
    struct self *s = self;
    if (s) s->host->free(s->host, s);
}

// At most a minute: a test that goes wrong ends all the same.
static void wait_for(const char *path) {
    const struct timespec pause = {0, 5000000};
    for (int i = 0; i < 12000 && access(path, F_OK) != 0; i++)
        nanosleep(&pause, NULL);
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct self *s = self;
    if (s->config.cd[0] && chdir(s->config.cd) != 0) return RLHF_E_IO;
    if (s->config.gate[0] && s->calls++ >= s->config.free) wait_for(s->config.gate);
    for (uint32_t i = 0; i < in->n; i++)
        out->seq[i] = (float)(i % 3);
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {sizeof ops, 0, score};

static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .host_minor_min = RLHF_ABI_MINOR,
    .id = "org.rlhf-host.test.roaming_reward",
    .version = "1",
    .summary = "changes directories and waits",
    .opts = opts,
    .n_opts = 3,
    .opt_stride = sizeof(rlhf_opt),
    .config_size = sizeof(struct config),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};

RLHF_DEFINE_PLUGIN(plugin)
