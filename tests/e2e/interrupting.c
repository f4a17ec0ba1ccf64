// interrupting.c: an algorithm that sends Ctrl-C (SIGINT) from plan(), before rows are read, and a
// reward that sends it from create(), after rows were read.
#include <rlhf/algo.h>
#include <rlhf/plugin.h>
#include <rlhf/reward.h>

#include <signal.h>

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    (void)self;
    (void)info;
    out->source = RLHF_SOURCE_TEXT;
    out->heads = RLHF_HEAD_LOGP;
    out->epochs = out->minibatches = out->group_size = 1;
    raise(SIGINT);
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    (void)self;
    (void)in;
    (void)out;
    return RLHF_OK;
}

static const rlhf_algo_ops algo_ops = {.size = sizeof algo_ops, .plan = plan, .loss = loss};

static const rlhf_plugin algo = {
    .size = sizeof algo,
    .kind = RLHF_KIND_ALGO,
    .id = "org.rlhf-host.test.interrupting",
    .version = "1",
    .summary = "presses Ctrl-C",
    .ops = &algo_ops,
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    (void)host;
    (void)config;
    static int nothing;
    *self = &nothing;
    raise(SIGINT);
    return RLHF_OK;
}

static void destroy(void *self) { (void)self; }

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    (void)self;
    for (uint32_t i = 0; i < in->n; i++)
        out->seq[i] = 0;
    return RLHF_OK;
}

static const rlhf_reward_ops reward_ops = {.size = sizeof reward_ops, .score = score};

static const rlhf_plugin reward = {
    .size = sizeof reward,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.test.interrupting-reward",
    .version = "1",
    .summary = "presses Ctrl-C",
    .create = create,
    .destroy = destroy,
    .ops = &reward_ops,
};

const rlhf_bundle *rlhf_plugin_v1(void) {
    static const rlhf_plugin *const list[] = {&algo, &reward};
    static const rlhf_bundle bundle = {sizeof(rlhf_bundle), RLHF_ABI_MAJOR, RLHF_ABI_MINOR, 2, list,
                                       RLHF_SDK_VERSION};
    return &bundle;
}
