// untrue_reward.c: a reward that declares RLHF_REWARD_EXTERNAL, but computes with a model of the
// host, the classifier.
#include "support/plugin.h"

#include <rlhf/reward.h>
#include <rlhf/service.h>

struct config {
    int32_t opens; // 1: opens a model in each call; 0: uses only the first model
    int32_t reserved;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_BOOL(struct config, opens, 0, "open the classifier in score()"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    const rlhf_classifier_service *service;
    rlhf_classifier *model;
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct self *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = config;
    s->service = host->service(host, RLHF_SVC_CLASSIFIER);
    const rlhf_classifier_open how = {.size = sizeof how};
    const rlhf_status st = s->service->open(host, &how, &s->model);
    if (st < 0) host->free(host, s);
    if (st == RLHF_OK) *self = s;
    return st;
}

static void destroy(void *self) {
    struct self *s = self;
    if (!s) return;
    s->service->close(s->host, s->model);
    s->host->free(s->host, s);
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct self *s = self;
    float logits[16];
    rlhf_classifier *again = NULL;
    const rlhf_classifier_open how = {.size = sizeof how};
    const rlhf_classifier_out to = {.size = sizeof to, .logits = logits};
    if (s->config->opens) RLHF_TRY(s->service->open(s->host, &how, &again));
    for (uint32_t i = 0; i < in->n; i++) {
        const rlhf_classifier_in q = {.size = sizeof q, .n = 1, .text = &in->response[i]};
        RLHF_TRY(s->service->logits(s->host, s->model, &q, &to));
        out->seq[i] = logits[0];
    }
    s->service->close(s->host, again);
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {
    .size = sizeof ops, .flags = RLHF_REWARD_ROW_ALONE | RLHF_REWARD_EXTERNAL, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "untrue", .summary = "says that it uses no model", TEST_OPTIONS(opts),
            TEST_INSTANCES)
