// bad_iteration.c: an algorithm that learns nothing and misuses rlhf/draft/iteration.h in one way.
#include "support/plugin.h"

#include <rlhf/algo.h>
#include <rlhf/draft/iteration.h>

struct config {
    int32_t how, reserved;
};

enum {
    EARLY,
    EARLY_PAIRS,
    SYNC,
    UNPLANNED_PAIRS,
    UNPLANNED_UPDATE,
    EPOCHS,
    BATCH,
    LR,
    SHARE,
    HISTORY,
    SHORT,
    GROUP
};

static const char *const ways[] = {
    "early",  "early_pairs", "sync", "unplanned_pairs", "unplanned_update",
    "epochs", "batch",       "lr",   "share",           "history",
    "short",  "group",       NULL};

static const rlhf_opt opts[] = {
    RLHF_OPT_ENUM(struct config, how, 0, ways, "what it does wrong"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
};

TEST_INSTANCE(struct self)

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    const struct self *s = self;
    (void)info;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP;
    out->epochs = out->minibatches = 1;
    out->group_size = s->config->how == GROUP ? 1 : 2;
    return RLHF_OK;
}

static const void *extension(void *self, const char *id) {
    static const rlhf_iteration use = {.size = sizeof use, .reward_model = 1};
    const struct self *s = self;
    return s && s->config->how >= EPOCHS && strcmp(id, RLHF_EXT_ITERATION) == 0 ? &use : NULL;
}

static rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    (void)out;
    const struct self *s = self;
    (void)in;
    uint32_t added;
    const rlhf_iteration_service *it = s->host->service(s->host, RLHF_SVC_ITERATION);
    if (s->config->how == EARLY) return it->reference_sync(s->host);
    if (s->config->how == EARLY_PAIRS) return it->collect_pairs(s->host, &added);
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    (void)self;
    (void)in;
    (void)out;
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    const struct self *s = self;
    const rlhf_iteration_service *it = s->host->service(s->host, RLHF_SVC_ITERATION);
    rlhf_reward_update u = {
        .size = sizeof u, .epochs = 1, .batch_pairs = 2, .lr = 0.01, .replay_share = 0.1};
    rlhf_reward_update_report report = {.size = sizeof report};
    uint32_t added;
    (void)info;
    if (s->config->how == SYNC) return it->reference_sync(s->host);
    if (s->config->how == UNPLANNED_PAIRS) return it->collect_pairs(s->host, &added);
    if (s->config->how == EPOCHS) u.epochs = 0;
    if (s->config->how == BATCH) u.batch_pairs = -1;
    if (s->config->how == LR) u.lr = 0;
    if (s->config->how == SHARE) u.replay_share = 1.5;
    if (s->config->how == HISTORY) u.history_max = -1;
    if (s->config->how == SHORT) u.size = 8;
    return it->reward_update(s->host, &u, &report);
}

static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = plan,
    .advantages = advantages,
    .loss = loss,
    .phase_end = phase_end,
};

TEST_PLUGIN(RLHF_KIND_ALGO, "bad_iteration", .summary = "misuses the iteration service on purpose",
            TEST_OPTIONS(opts), TEST_INSTANCES, .extension = extension)
